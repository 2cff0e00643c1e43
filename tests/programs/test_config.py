#!/usr/bin/env python3
"""Settings files of the programs: the ones that are shipped are right in every line, a mistake is named with its line, the
command line wins."""
import os
import re
import subprocess
import sys
import tempfile

BIN = sys.argv[1]
CONF = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../deploy/conf")
VERBS = {"ferry-relay": ["serve"], "ferry-apiserver": ["serve"]}
NODE = {"ferry-relay": ["--node", "a"], "ferry-pods": ["--node", "a"], "ferry-handler": ["--node", "a", "--node-address", "10.0.0.1"]}
PROGRAMS = ("ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-pods", "ferry-relay")


def run(program, text, *more):
    """(exit code, what it says) of a start that cannot succeed: the log level is none."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "x.conf")
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run([os.path.join(BIN, program), *VERBS.get(program, []), *NODE.get(program, []), "--config", path, *more],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout.replace(path, "FILE")


def settings(text):
    """All settings of a shipped file, those that are commented out too."""
    return "".join(re.sub(r"^#(?=[a-z-]+ = )", "", line) for line in text.splitlines(True))


def main():
    assert sorted(os.listdir(CONF)) == [p + ".conf" for p in PROGRAMS]
    for program in PROGRAMS:
        with open(os.path.join(CONF, program + ".conf")) as f:
            text = f.read()
        assert settings(text).count("log-level") == 1 and "#log-level" not in settings(text), "the settings were not found"
        for shipped in (text, settings(text)):
            code, says = run(program, shipped, "--log-level", "none")
            assert code == 2 and "--log-level: 'none' is none of" in says and "FILE" not in says, (program, says)
        # A mistake, by its line; and the command line before the file.
        code, says = run(program, "# x\nlog-levle = debug\n")
        assert code == 2 and "FILE:2: there is no setting 'log-levle'; did you mean 'log-level'?" in says, says
        code, says = run(program, "log-level = none\n")
        assert code == 2 and "--log-level: 'none' is none of" in says, says
        code, says = run(program, "log-level = none\n", "--log-level", "worse")
        assert code == 2 and "'worse'" in says, says
        help_text = subprocess.run([os.path.join(BIN, program), *VERBS.get(program, []), "--help"], stdout=subprocess.PIPE, text=True,
                                   check=True, timeout=60).stdout
        assert f"/etc/ferry/{program}.conf" in help_text, help_text
        print(f"ok {program}")


main()
