"""A site whose programs run as their units would have them (unitbox.py)."""
import os
import subprocess
import sys

import unitbox
from ferrysite import Site, wait_for

HERE = os.path.dirname(os.path.realpath(__file__))
DAEMONS = ("ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-pods", "ferry-relay")


class BoxedSite(Site):
    def __init__(self, bin_dir, nodes=2, only=DAEMONS):
        super().__init__(bin_dir, nodes)
        # As systemd has it: what is mounted on the host is seen by units with mounts of their own.
        subprocess.run(["mount", "--make-rshared", "/"], check=True)
        self.real = os.path.realpath(self.bin)
        self.units = os.path.join(os.path.dirname(self.real), "deploy/systemd")
        self.bin = os.path.join(self.base, "programs/bin")
        os.makedirs(self.bin)
        os.chmod(os.path.dirname(self.bin), 0o755)
        for shared in ("lib", "share"):
            os.symlink(os.path.join(os.path.dirname(self.real), shared), os.path.join(self.base, "programs", shared))
        for name in os.listdir(self.real):
            self.install(name, name in only)

    def close(self, failed):
        super().close(failed)
        unitbox.forget_groups()

    def box(self, unit):
        """The words that come before a command."""
        return [sys.executable, os.path.join(HERE, "unitbox.py"), os.path.join(self.units, unit + ".service"),
                "--keep", os.path.dirname(self.real), "--keep", os.path.dirname(self.bin),
                *(["--keep", self.root] if unit == "ferry-controller" else [])]

    def install(self, name, boxed):
        path = os.path.join(self.bin, name)
        if name == "ferry":  # it looks for the others beside itself
            subprocess.run(["cp", os.path.join(self.real, name), path], check=True)
        elif not boxed:
            os.symlink(os.path.join(self.real, name), path)
        else:
            real = os.path.join(self.real, name)
            prepare = {"ferry-apiserver": "serve", "ferry-controller": "--"}.get(name)
            with open(path, "w") as f:
                f.write("#!/bin/sh\n")
                if name == "ferry-apiserver":  # its other verbs are for people
                    f.write(f'[ "$1" = serve ] || exec {real} "$@"\n')
                if prepare:  # ExecStartPre=+
                    f.write(f'{real} "$@" --prepare || exit 1\n')
                more = f" --audit-log-path {self.root}/api/var/log/ferry/audit.log" if name == "ferry-apiserver" else ""
                f.write(f'exec {" ".join(self.box(name))} {real} "$@"{more}\n')
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
