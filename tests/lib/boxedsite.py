"""A site whose programs run as their units would have them (unitbox.py)."""
import os
import subprocess
import sys

import unitbox
from ferrysite import Site, wait_for

HERE = os.path.dirname(os.path.realpath(__file__))
DAEMONS = ("ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-pods", "ferry-relay")


class Box:
    """Programs of the directory `real` of a build as their units would have them; what is in `keep` is there for them, too."""

    def __init__(self, real, *keep):
        # As systemd has it: what is mounted on the host is seen by units with mounts of their own.
        subprocess.run(["mount", "--make-rshared", "/"], check=True)
        self.real, self.keep = real, (os.path.dirname(real), *keep)
        self.units = os.path.join(os.path.dirname(real), "deploy/systemd")

    def lines(self, name, root, *words):
        """Of a shell script that becomes the program, with these words and its own, at a site in `root`."""
        real = os.path.join(self.real, name)
        found = ""
        if name == "ferry-apiserver":  # its other verbs are for people
            found += f'[ "$1" = serve ] || exec {real} "$@"\n'
            words += ("--audit-log-path", f"{root}/api/var/log/ferry/audit.log")
        if name in ("ferry-apiserver", "ferry-controller"):  # ExecStartPre=+
            found += f'{real} "$@" --prepare || exit 1\n'
        keep = [*self.keep, *([root] if name == "ferry-controller" else [])]
        box = [sys.executable, os.path.join(HERE, "unitbox.py"), os.path.join(self.units, name + ".service"),
               *(word for path in keep for word in ("--keep", path))]
        return found + f'exec {" ".join(box)} {real} "$@" {" ".join(words)}\n'


class BoxedSite(Site):
    def __init__(self, bin_dir, nodes=2, only=DAEMONS):
        super().__init__(bin_dir, nodes)
        self.real = os.path.realpath(self.bin)
        self.bin = os.path.join(self.base, "programs/bin")
        self.box = Box(self.real, os.path.dirname(self.bin))
        os.makedirs(self.bin)
        os.chmod(os.path.dirname(self.bin), 0o755)
        for shared in ("lib", "share"):
            os.symlink(os.path.join(os.path.dirname(self.real), shared), os.path.join(self.base, "programs", shared))
        for name in os.listdir(self.real):
            self.install(name, name in only)

    def close(self, failed):
        super().close(failed)
        unitbox.forget_groups()

    def install(self, name, boxed):
        path = os.path.join(self.bin, name)
        if name == "ferry":  # it looks for the others beside itself
            subprocess.run(["cp", os.path.join(self.real, name), path], check=True)
        elif not boxed:
            os.symlink(os.path.join(self.real, name), path)
        else:
            with open(path, "w") as f:
                f.write("#!/bin/sh\n" + self.box.lines(name, self.root))
            os.chmod(path, 0o755)

    def status(self, name):
        """What /proc has of a program of the site, as {name: words}."""
        def look():
            pid = self.pid(name)
            if not pid or not os.readlink(f"/proc/{pid}/exe").startswith(self.real):
                return None
            with open(f"/proc/{pid}/status") as f:
                return {k: v.split() for k, v in (line.split(":", 1) for line in f)}
        return wait_for(f"{name} to run", look)
