"""A site whose programs are those of the version before (tests/compat/version), each until it is upgraded."""
import os
import shutil
import signal
import subprocess
import sys

from ferrysite import Site, wait_for

HERE = os.path.dirname(os.path.realpath(__file__))


def old_programs():
    """Directory of the old programs; without them there is nothing to be seen here."""
    found = subprocess.run([os.path.join(HERE, "../compat/get-programs"), "--cached"], text=True, check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if found.returncode != 0:
        print(f"skipped: {found.stderr.strip()}")
        sys.exit(77)
    return found.stdout.strip()


class Mixed(Site):
    """Each program is chosen anew whenever it is started: the old one until it is upgraded, on the old nodes; on all, and beside
    them, where `old_nodes` is None."""

    def __init__(self, bin_dir, old, old_nodes=None):
        super().__init__(bin_dir)
        self.old, self.today = os.path.realpath(old), os.path.realpath(os.path.dirname(self.bin))
        self.old_nodes = old_nodes
        self.stage = os.path.join(self.base, "programs")
        self.bin = os.path.join(self.stage, "bin")
        os.makedirs(self.bin)
        for shared in ("lib", "share"):
            os.symlink(os.path.join(self.today, shared), os.path.join(self.stage, shared))
        for name in os.listdir(os.path.join(self.today, "bin")):
            self.install(name)

    def install(self, name):
        path = os.path.join(self.bin, name)
        if name == "ferry":
            # it looks for the others beside itself, and is what looks after a site that it made
            shutil.copy2(os.path.join(self.old if self.old_nodes is None else self.today, "bin", name), path)
            return
        call = ('exec {0}/' + name + ' "$@"') + (" --launcher {0}/ferry-launcher" if name == "ferry-pods" else "") + "\n"
        nodes = "*" if self.old_nodes is None else "|".join(f"*'/{node} '*" for node in self.old_nodes)
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\ncase \" $* \" in {nodes})\n"
                    f"[ -e {self.stage}/{name}.new ] || {call.format(os.path.join(self.old, 'bin'))} ;;\nesac\n"
                    + self.lines_of_today(name, call))
        os.chmod(path, 0o755)

    def lines_of_today(self, _, call):
        """Of a shell script that becomes today's program."""
        return call.format(os.path.join(self.today, "bin"))

    def program(self, name):
        """The file that runs as one of the site's programs."""
        return os.readlink(f"/proc/{self.pid(name)}/exe")

    def upgrade(self, program, *names):
        """Today's from now on, and whatever runs of it is ended and comes back as that."""
        open(os.path.join(self.stage, program + ".new"), "w").close()
        for name in names:
            old = self.kill(name, signal.SIGTERM)
            self.wait_restarted(name, old)
            wait_for(f"today's {program}", lambda name=name: self.program(name).startswith(self.today), 60)

    def upgrade_command(self):
        path = os.path.join(self.bin, "ferry")
        shutil.copy2(os.path.join(self.today, "bin/ferry"), path + ".new")
        os.rename(path + ".new", path)

    def launchers_are_old(self, node):
        """Whether the launchers in the pods of a node are the old one's file, which they see under a name of their own."""
        old = os.stat(os.path.join(self.old, "bin/ferry-launcher"))
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as f:
                    if f.read().strip() == "ferry-launcher" and self.owns(int(pid), node):
                        found.append(os.path.samestat(old, os.stat(f"/proc/{pid}/exe")))
            except OSError:
                continue
        return bool(found) and all(found)


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
