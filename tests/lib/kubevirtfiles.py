"""KubeVirt's own schema and examples, which tests/kubevirt/get-kubevirt has fetched."""
import json
import os
import subprocess
import sys

GET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../kubevirt/get-kubevirt")
SKIPPED = 77


def directory():
    """Where they are; where they could not be fetched, the test is skipped and says so."""
    done = subprocess.run([GET, "--cached"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip())
        sys.exit(SKIPPED)
    return done.stdout.strip()


def swagger():
    with open(os.path.join(directory(), "api/openapi-spec/swagger.json"), encoding="utf8") as f:
        return json.load(f)["definitions"]


def examples():
    """{file: text} of the manifests."""
    base = os.path.join(directory(), "examples")
    found = {}
    for name in sorted(os.listdir(base)):
        if name.endswith(".yaml"):
            with open(os.path.join(base, name), encoding="utf8") as f:
                found[name] = f.read()
    return found
