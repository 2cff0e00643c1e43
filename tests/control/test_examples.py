#!/usr/bin/env python3
"""Those of KubeVirt's examples that are taken (docs/conformance.examples) run, or wait for an object that they name and say so; none hangs.

What is refused when it is applied, tests/api/test_fields.py sees.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import kubevirtfiles
import scenario
from ferrysite import wait_for
from nodes import Plane, phase

RESULTS = os.path.join(HERE, "../../docs/conformance.examples")
OBJECT = re.compile(r"[A-Z]\w+ [\w-]+")
KIND = "/apis/kubevirt.io/v1/namespaces/default/"


def results(beginning):
    """{file: what it says after the beginning}"""
    with open(RESULTS, encoding="utf8") as f:
        return dict(re.findall(rf"^(\S+\.yaml) \| {beginning}(.*)$", f.read(), re.M))


def apply(p, text):
    """(path, name) of the VMI that there is then; a VM is started."""
    kind, name = re.search(r"^kind: (\w+)$", text, re.M)[1], re.search(r"^  name: (\S+)$", text, re.M)[1]
    plural = kind.lower() + "s"
    status, answer = p.api.call("POST", KIND + plural, text, content_type="application/yaml")
    assert status == 201, answer
    if kind == "VirtualMachine":
        status, answer = p.api.call("PATCH", f"{KIND}{plural}/{name}", {"spec": {"runStrategy": "Always"}}, content_type="application/merge-patch+json")
        assert status == 200, answer
    return plural, name


def conditions(p, plural, name):
    """All that the machine and its instance say of themselves."""
    said = ""
    for kind in {plural, "virtualmachineinstances"}:
        status, answer = p.api.call("GET", f"{KIND}{kind}/{name}")
        said += json.dumps(answer.get("status", {}).get("conditions", [])) if status == 200 else ""
    return said


def test_those_that_wait_say_for_what(bin_dir):
    """They name the object, in a condition of the machine or of its instance."""
    examples = kubevirtfiles.examples()
    with Plane(bin_dir) as p:
        for file, objects in results("waits: ").items():
            plural, name = apply(p, examples[file])
            names = [o.rsplit(" ", 1)[1] for o in objects.split(", ") if OBJECT.fullmatch(o)]
            if names:
                wait_for(f"{file} to say what it waits for ({names})", lambda: any(n in conditions(p, plural, name) for n in names))  # pylint: disable=cell-var-from-loop
            else:  # for what the nodes of this test have
                wait_for(f"{file} to run", lambda: phase(p.api.vmi(name)) == "Running", 60)  # pylint: disable=cell-var-from-loop


def test_those_that_run(bin_dir):
    """As they stand."""
    examples = kubevirtfiles.examples()
    with Plane(bin_dir) as p:
        for file in results("runs"):
            _, name = apply(p, examples[file])
            wait_for(f"{file} to run", lambda: phase(p.api.vmi(name)) == "Running", 60)  # pylint: disable=cell-var-from-loop


if __name__ == "__main__":
    kubevirtfiles.directory()
    scenario.main(globals())
