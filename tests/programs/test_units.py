#!/usr/bin/env python3
"""The systemd units as they were built: systemd takes them without a word, and what they call is there and knows the options."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BIN, UNITS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NAMES = ["ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-pods", "ferry-relay"]


def command_of(text):
    [line] = re.findall(r"^ExecStart=(.*)$", text, re.M)
    return line.split()


def options_are_known(name, text):
    program, *words = command_of(text)
    assert os.path.basename(program) == name, program
    verbs = [w for w in words[:1] if not w.startswith("-")]
    done = subprocess.run([os.path.join(BIN, name), *verbs, "--help"], text=True, stdout=subprocess.PIPE, timeout=60, check=True)
    for option in (w for w in words if w.startswith("--")):
        assert re.search(rf"^\s.*{option}\b", done.stdout, re.M), f"{name} has no {option}"


def main():
    found = sorted(os.path.basename(p)[:-len(".service")] for p in glob.glob(os.path.join(UNITS, "*.service")))
    assert found == NAMES, found
    texts = {}
    for name in NAMES:
        with open(os.path.join(UNITS, name + ".service")) as f:
            texts[name] = f.read()
        options_are_known(name, texts[name])
    # What outlives its agent must not be ended with it.
    assert "KillMode=process" in texts["ferry-pods"] and "SendSIGKILL=no" in texts["ferry-pods"]
    assert "FileDescriptorStoreMax=" in texts["ferry-relay"] and "Type=notify" in texts["ferry-relay"]
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not here: units were only read")
        return
    with tempfile.TemporaryDirectory() as d:
        for name, text in texts.items():  # systemd looks whether the program is there
            with open(os.path.join(d, name + ".service"), "w") as f:
                f.write(text.replace(command_of(text)[0], os.path.join(BIN, name)))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *sorted(glob.glob(d + "/*.service"))], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        ours = [line for line in done.stdout.splitlines() if "ferry-" in line]  # of the host's own units it may complain, too
        assert not ours and (done.returncode == 0 or done.stdout), done.stdout


main()
