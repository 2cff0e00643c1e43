#!/usr/bin/env python3
"""`make help` tells of every target of the Makefile, each in one line that fits a terminal."""
import os
import re
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")


def main():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf8") as f:
        text = f.read().replace("\\\n", " ")
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.M))
    assert set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()) == targets, targets
    told = subprocess.run(["make", "--no-print-directory", "-C", ROOT, "help"], text=True, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    assert {line.split()[1] for line in told.splitlines() if line.startswith("  make ")} == targets, told
    assert max(map(len, told.splitlines())) <= 110, told


main()
