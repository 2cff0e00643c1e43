"""A site whose disks can be filled, whose links can be cut and whose clock can be set."""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

import cells
from ferrysite import Site, namespace_names, processes, wait_for

DISK_MIB = 512  # all of the site is on it
DAEMONS = ("ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-relay", "ferry-pods")
WRAPPER = """#!/bin/sh
export FERRY_TEST_CLOCK={clock} LD_PRELOAD={preload} ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS
exec {program} "$@" {more}
"""


class FaultSite(Site):
    """The programs of a build, the daemons among them started by scripts that preload a clock of ours."""

    def __init__(self, bin_dir):
        build = os.path.dirname(os.path.abspath(bin_dir))
        self.programs = tempfile.mkdtemp(prefix="faults-", dir=build)
        os.chmod(self.programs, 0o755)
        super().__init__(os.path.join(self.programs, "bin"))
        self.disk_name = os.path.basename(self.base)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0711", self.disk_name, self.base], check=True)
        self.clock = os.path.join(self.base, "clock")
        self.set_clock(0)
        os.chmod(self.clock, 0o644)
        self.wrap(build)

    def wrap(self, build):
        os.mkdir(self.bin)
        os.mkdir(os.path.join(self.programs, "real"))
        for part in ("lib", "share"):
            os.symlink(os.path.join(build, part), os.path.join(self.programs, part))
        for name in os.listdir(os.path.join(build, "bin")):
            real = os.path.join(self.programs, "real", name)  # all of them: they look for each other beside themselves
            os.link(os.path.join(build, "bin", name), real)
            if name not in DAEMONS:
                os.link(real, os.path.join(self.bin, name))
            else:
                more = f"--resume-window {cells.RESUME_WINDOW_S}" if name == "ferry-handler" else ""
                path = os.path.join(self.bin, name)
                with open(path, "w") as f:
                    f.write(WRAPPER.format(clock=self.clock, preload=os.path.join(build, "tests/faults/clockstep.so"),
                                           program=real, more=more))
                os.chmod(path, 0o755)

    def close(self, failed):
        self.set_clock(0)
        done = super().down()
        if done.returncode != 0:
            print(f"ferry down: {done.stdout}{done.stderr}")
        subprocess.run(["umount", "-l", self.base], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.rmtree(self.programs, ignore_errors=True)

    # -- what can be done to it --------------------------------------------------------------

    def set_clock(self, seconds):
        """In place: the daemons have it mapped."""
        fd = os.open(self.clock, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("q", seconds), 0)
        os.close(fd)

    def fabric(self, *args):
        name = next(n for n in namespace_names(self.root) if n.endswith("-fabric"))
        subprocess.run(["ip", "-n", name, *args], check=True)

    def shape(self, mbit):
        """Limits what every node receives on the migration network."""
        name = next(n for n in namespace_names(self.root) if n.endswith("-fabric"))
        for i in range(1, self.nodes + 1):
            subprocess.run(["tc", "-n", name, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", f"{mbit}mbit",
                            "burst", "64k", "latency", "50ms"], check=True)

    def deafen(self, node):
        """Nothing reaches that node on the migration network, though it is still heard; until shape() is called."""
        name = next(n for n in namespace_names(self.root) if n.endswith("-fabric"))
        subprocess.run(["tc", "-n", name, "qdisc", "replace", "dev", f"m{node.removeprefix('node')}", "root", "tbf", "rate", "8bit",
                        "burst", "1", "limit", "1"], check=True)  # no packet is that short

    def fill(self):
        """No byte can be written any more; the file to remove afterwards."""
        if not os.path.ismount(self.base):
            raise AssertionError(f"{self.base} has no disk of its own; that of the machine is not to be filled")
        path = os.path.join(self.base, "filler")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    for _ in range(DISK_MIB * 2):
                        os.write(fd, b"\0" * size)
        finally:
            os.close(fd)
        return path

    # -- what is seen of it ------------------------------------------------------------------

    def sent(self, node):
        """Bytes that a node has sent on the migration network."""
        with open(f"/proc/{self.running(f'{node}-pods')}/net/dev") as f:
            return next(int(line.split(":")[1].split()[8]) for line in f if line.strip().startswith("migration0:"))

    def running(self, name):
        return wait_for(f"{name} to run", lambda: self.pid(name), 60)

    def in_pod(self, directory, name):
        """Pid of the process of that name in the sandbox of a pod; 0 = none."""
        with open(os.path.join(directory, "sandbox.json")) as f:
            ns = json.JSONDecoder().raw_decode(f.read())[0]["pid-namespace"]
        # libvirtd asks QEMUs of its own what they can do: the guest's is the one with a name.
        found = [pid for pid, command in processes() if os.path.basename(command.split()[0]).startswith(name)
                 and namespace(pid, "pid") == ns and (name != "qemu-system" or "-name guest=" in command)]
        return found[0] if found else 0

    def listeners(self):
        """Listening TCP sockets of relays, and their connections."""
        found = []
        for i in range(1, self.nodes + 1):
            relay = self.running(f"node{i}-relay")
            own = {os.readlink(p) for p in glob.glob(f"/proc/{relay}/fd/*") if os.path.islink(p)}
            for line in list(open(f"/proc/{relay}/net/tcp"))[1:]:
                fields = line.split()
                if f"socket:[{fields[9]}]" in own and fields[3] in ("0A", "01"):
                    found.append(f"TCP socket of node{i}'s relay, {'listening' if fields[3] == '0A' else 'connected'}")
        return found

    def sandboxes(self):
        """Processes that see files of this site through a sandbox: {pid namespace: [command]}."""
        found = {}
        home = namespace(os.getpid(), "pid")
        for pid, command in processes():
            if command.startswith("bwrap ") and self.base not in command:
                continue  # of another site; it sees all mounts of the machine until its sandbox is made
            with contextlib.suppress(OSError):
                if namespace(pid, "pid") not in (0, home) and self.disk_name in open(f"/proc/{pid}/mountinfo").read():
                    found.setdefault(namespace(pid, "pid"), []).append(command)
        return found


def namespace(pid, kind):
    """Number of a process's namespace; 0 when the process is gone."""
    try:
        return int(re.search(r"\d+", os.readlink(f"/proc/{pid}/ns/{kind}"))[0])
    except OSError:
        return 0


def send(fd, sig):
    """A signal to a process that may be gone, and cannot be taken for another one."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(fd, sig)
