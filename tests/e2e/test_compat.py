#!/usr/bin/env python3
"""Programs of the version before (tests/compat/version) beside today's: node1 is all old, node2 and the API server and the
controller are today's. A VM moves each way; then node1's handler and relay are upgraded under a VM that the old ones started, as
an upgrade of a host does it, and it moves each way again."""
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import scenario
from ferrysite import Site, wait_for

OLD_NODE = "node1"
OF_A_NODE = ("ferry-handler", "ferry-pods", "ferry-relay")  # launcher, init and gate are those of ferry-pods


def old_programs():
    """Directory of the old programs; without them there is nothing to be seen here."""
    found = subprocess.run([os.path.join(HERE, "../compat/get-programs"), "--cached"], text=True, check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if found.returncode != 0:
        print(f"skipped: {found.stderr.strip()}")
        sys.exit(77)
    return found.stdout.strip()


class Mixed(Site):
    """A site whose programs are chosen anew whenever one is started: the old one on the old node until it is upgraded."""

    def __init__(self, bin_dir, old):
        super().__init__(bin_dir)
        self.old, self.today = os.path.realpath(old), os.path.realpath(os.path.dirname(self.bin))
        self.stage = os.path.join(self.base, "programs")
        self.bin = os.path.join(self.stage, "bin")
        os.makedirs(self.bin)
        for shared in ("lib", "share"):
            os.symlink(os.path.join(self.today, shared), os.path.join(self.stage, shared))
        for name in os.listdir(os.path.join(self.today, "bin")):
            self.install(name)

    def install(self, name):
        real, path = os.path.join(self.today, "bin", name), os.path.join(self.bin, name)
        if name == "ferry":
            shutil.copy2(real, path)  # it looks for the others beside itself
            return
        call = ('exec {0}/' + name + ' "$@"') + (" --launcher {0}/ferry-launcher" if name == "ferry-pods" else "") + "\n"
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\ncase \" $* \" in *'/{OLD_NODE} '*)\n"
                    f"[ -e {self.stage}/{name}.new ] || {call.format(os.path.join(self.old, 'bin'))} ;;\nesac\n"
                    + call.format(os.path.join(self.today, "bin")))
        os.chmod(path, 0o755)

    def program(self, name):
        """The file that runs as one of the site's programs."""
        return os.readlink(f"/proc/{self.pid(name)}/exe")

    def upgrade(self, program, name):
        open(os.path.join(self.stage, program + ".new"), "w").close()
        old = self.kill(name, signal.SIGTERM)
        self.wait_restarted(name, old)
        wait_for(f"today's {program}", lambda: self.program(name).startswith(self.today), 20)


def name_of(program):
    """How the site calls the old node's `program`."""
    return f"{OLD_NODE}-{program.removeprefix('ferry-')}"


def launchers_are_old(site, node):
    """Whether the launchers in the pods of a node are the old one's file, which they see under a name of their own."""
    old = os.stat(os.path.join(site.old, "bin/ferry-launcher"))
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == "ferry-launcher" and site.owns(int(pid), node):
                    found.append(os.path.samestat(old, os.stat(f"/proc/{pid}/exe")))
        except OSError:
            continue
    return bool(found) and all(found)


def close_node(site, node, closed):
    code, answer = site.api.call("PATCH", site.api.path("nodes", node), {"spec": {"unschedulable": closed}},
                                 "application/merge-patch+json")
    assert code == 200, answer


def move(site, monitor, to):
    """One move; nothing is lost."""
    mark = monitor.mark()
    done = site.ferry("migrate", "vm", "--to", to, "--watch", timeout=90)
    assert site.node_of("vm") == to, done.stdout
    monitor.wait_beats(10, 30)
    assert f"/{to}/" in monitor.current_log(), monitor.current_log()
    assert monitor.broken_sequence(mark) == [], monitor.broken_sequence(mark)
    pages, bad = monitor.verify()
    assert pages > 0 and bad == 0, (pages, bad)
    wait_for("one QEMU", lambda: len(site.qemus()) == 1, 30)


def test_versions_move_to_each_other(bin_dir):
    with Mixed(bin_dir, old_programs()) as site:
        for program in OF_A_NODE:
            assert site.program(name_of(program)).startswith(site.old), program
        close_node(site, "node2", True)
        site.ferry("vm", "create", "vm", "--memory", "64Mi", "--dirty-rate", "4", "--working-set", "16", "--heartbeat", "20", "--wait")
        close_node(site, "node2", False)
        monitor = site.monitor()
        try:
            monitor.wait_beats(5, 60)
            assert site.node_of("vm") == OLD_NODE and launchers_are_old(site, OLD_NODE)
            move(site, monitor, "node2")
            move(site, monitor, OLD_NODE)
            site.upgrade("ferry-handler", name_of("ferry-handler"))
            move(site, monitor, "node2")
            site.upgrade("ferry-relay", name_of("ferry-relay"))
            move(site, monitor, OLD_NODE)
            assert launchers_are_old(site, OLD_NODE), "the launchers are old to the end"
        finally:
            monitor.stop()


scenario.need_root()
scenario.main(globals())
