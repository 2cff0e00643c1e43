#!/usr/bin/env python3
"""What `make demo` runs, ended in the middle, without the right to do it, without a tool: it says so, ends non-zero, and leaves nothing."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import scenario
from ferrysite import free_port, leftovers, wait_for

DEMO = os.path.join(HERE, "../../scripts/demo")
PATIENCE = 120


class Demo:
    """scripts/demo on programs of a build; its words as they come."""

    def __init__(self, bin_dir, prefix=(), **more):
        self.said, env = [], dict(os.environ, **more)
        self.process = subprocess.Popen([*prefix, DEMO, os.path.dirname(os.path.abspath(bin_dir))], text=True, env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(10)

    def text(self):
        return "".join(self.said)

    def saw(self, words):
        wait_for(f"'{words}'", lambda: words in self.text() or self.process.poll() is not None, PATIENCE)
        assert words in self.text(), self.text()

    def ended(self):
        code = self.process.wait(PATIENCE)
        self.reader.join(10)
        return code

    def root(self):
        return re.search(r"--root (\S+)", self.text())[1]


def gone(demo):
    root = demo.root()
    assert leftovers(root) == [], leftovers(root)
    assert not os.path.exists(os.path.dirname(root)), root


def test_interrupted(bin_dir):
    """In the middle of the first move, by SIGTERM to it alone; while the site comes up, by Ctrl-C for all; a terminal that goes away."""
    for words, number, everybody in (("$ ferry migrate", signal.SIGTERM, False), ("$ ferry up", signal.SIGINT, True),
                                     ("$ ferry vm create", signal.SIGHUP, True)):
        with Demo(bin_dir) as demo:
            demo.saw(words)
            if everybody:
                os.killpg(demo.process.pid, number)
            else:
                demo.process.send_signal(number)
            assert demo.ended() == 130, demo.text()
            assert number == signal.SIGHUP or "interrupted: cleaning up" in demo.text(), demo.text()
            assert "Traceback" not in demo.text(), demo.text()
            gone(demo)


def readme():
    """The commands under "Try it yourself", but for the build."""
    text = open(os.path.join(HERE, "../../README.md"), encoding="utf8").read()
    block = re.search(r"## Try it yourself\n\n```sh\n(.*?)```", text, re.S)[1]
    return block[block.index("ferry up "):]


def test_readme(bin_dir):
    """Pasted as a whole into a shell, every command of the README does what it says."""
    with tempfile.TemporaryDirectory(prefix="ferry-readme-") as base:
        os.chmod(base, 0o711)
        root = os.path.join(base, "s")
        wrapper = f'ferry() {{ case $1 in up) set -- "$@" --root {root} --port {free_port()} ;; down) set -- "$@" --root {root} ;; esac\n' \
                  'printf "\\n$ ferry %s\\n" "$*"; command ferry "$@"; }\nset -e\n'
        env = dict(os.environ, PATH=os.path.abspath(bin_dir) + ":" + os.environ["PATH"], KUBECONFIG=f"{root}/api/var/lib/ferry/admin.kubeconfig")
        done = subprocess.run(["bash"], input=wrapper + readme(), env=env, text=True, timeout=3 * PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        subprocess.run([os.path.join(bin_dir, "ferry"), "down", "--root", root], stdout=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout
        for words in ("at worst    pre-copy in ", "web moved from ", "sent per second", "HB ", "went from node1 to node2",
                      "no virtual machine is on node2 any more", "Succeeded"):
            assert words in done.stdout, f"'{words}' is not in: {done.stdout}"
        assert leftovers(root) == [], leftovers(root)


# The tree may be below a directory that others may not pass, as /root is: then the same path leads to it, past a directory that they may.
REACHABLE = """
top=$1; shift
mount --bind "$top" /mnt
first=/$(echo "$top" | cut -d / -f 2)
mount -t tmpfs -o mode=0755 way "$first"
mkdir -p "$top"
mount --move /mnt "$top"
exec "$@"
"""


def test_not_root(bin_dir):
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, "test", "-x", DEMO], check=False).returncode:
        nobody = ["unshare", "--mount", "sh", "-euc", REACHABLE, "sh", os.path.realpath(os.path.join(HERE, "../..")), *nobody]
    with Demo(bin_dir, nobody) as demo:
        assert demo.ended() == 1 and demo.text().count("\n") == 1 and "only root may do" in demo.text(), demo.text()


def test_without_the_right_to_make_networks(bin_dir):
    """Root in a container."""
    with Demo(bin_dir, ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]) as demo:
        assert demo.ended() == 1 and "NOT AS PROMISED" in demo.text() and "ferry up" in demo.text(), demo.text()
        gone(demo)


scenario.need_root()
scenario.main(globals())
