"""What sanitizers and assertions said in the logs of programs that something may have started again since."""
import contextlib
import os
import re
import shutil
import subprocess
import sys

WORDS = re.compile(r"ERROR: (?:Address|Leak)Sanitizer.*|WARNING: ThreadSanitizer.*|runtime error:.*|\.\./src/\S+ .*: Assertion .*")
LOG = re.compile(r"(.*\.)?log")


def in_text(text):
    return WORDS.findall(text)


def in_logs(root):
    """Of all files below `root` that are called log or *.log: {path: sentences}."""
    found = {}
    for path in (os.path.join(d, name) for d, _, names in os.walk(root) for name in names if LOG.fullmatch(name)):
        with contextlib.suppress(OSError), open(path, errors="replace") as f:
            sentences = in_text(f.read())
            if sentences:
                found[path] = sentences
    return found


def unmount(root):
    """What pods that nobody removed have mounted there."""
    with open("/proc/self/mounts") as f:
        points = [line.split()[1] for line in f]
    for point in reversed([p for p in points if p.startswith(os.path.realpath(root) + "/")]):
        subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)


def remove(root, failed):
    """Removes a lab; raises what its logs complain of, unless the test has failed anyway."""
    found = in_logs(root)
    for path in found:
        print(f"==== {path[len(root) + 1:]}")
        with open(path, errors="replace") as f:
            sys.stdout.writelines(f.readlines()[-200:])
    unmount(root)
    shutil.rmtree(root, ignore_errors=True)
    if found and not failed:
        raise AssertionError(f"programs complain: {list(found.values())}")
