#!/usr/bin/env python3
"""docs/by-hand.md, typed into two terminals as it stands there: a guest moves, and its heartbeat goes on."""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario  # noqa: E402

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


class Terminal:
    """A shell that is typed into."""

    def __init__(self, environment):
        self.shell = subprocess.Popen(["bash"], cwd=SOURCE, env={**os.environ, **environment}, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.count = 0

    def type(self, text, seconds=120):
        """Types it; what came back until it was through."""
        self.count += 1
        mark = f"through-{self.count}"
        self.shell.stdin.write(f"{text}\necho {mark[:4]}''{mark[4:]}\n".encode())
        self.shell.stdin.flush()
        said, deadline = b"", time.monotonic() + seconds
        while mark.encode() not in said:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.shell.stdout], [], [], left)[0], f"{text}\nis not through: {said.decode()}"
            part = os.read(self.shell.stdout.fileno(), 65536)
            assert part, f"{text}\nended the shell: {said.decode()}"
            said += part
        return said.decode()

    def close(self):
        self.shell.stdin.close()
        try:
            self.shell.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.shell.pid, signal.SIGKILL)
            self.shell.wait()


def blocks():
    text = open(os.path.join(SOURCE, "docs/by-hand.md")).read()
    found = re.findall(r"```sh\n# (terminal 1|terminal 2|both terminals)([^\n]*)\n(.*?)```", text, re.S)
    assert len(found) >= 6, "the page has lost its blocks"
    return found


def heartbeats(said):
    return [int(n) for n in re.findall(r"HB (\d+) ", said)]


def test_the_page(bin_dir):
    work = tempfile.mkdtemp(prefix="ferry-by-hand-")
    environment = {"B": os.path.dirname(os.path.abspath(bin_dir)), "W": work}
    terminals = {"terminal 1": Terminal(environment), "terminal 2": Terminal(environment)}
    said = []
    try:
        for who, what, text in blocks():
            for name in terminals if who == "both terminals" else [who]:
                if "exit\n" in text:
                    text = text.replace("exit\n", "")
                said.append(terminals[name].type(text))
                print(f"--- {name}{what}\n{said[-1]}")
        whole = "".join(said)
        assert '"phase":"succeeded"' in whole and '"type":"end","phase":"succeeded"' in whole, "the guest did not arrive"
        before, after = [heartbeats(s) for s in said if heartbeats(s)][:2]
        assert after[-1] > before[-1], (before, after)
    finally:
        for t in terminals.values():
            t.close()
        shutil.rmtree(work, ignore_errors=True)


scenario.need_root()
scenario.main(globals())
