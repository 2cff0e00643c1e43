#!/usr/bin/env python3
"""The Debian package, made of this build: what is in it, and installed, upgraded, removed and purged for real, over an overlay of
this machine, where systemctl only notes how it is called."""
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")
PROGRAMS = ("ferry", "ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-init", "ferry-launcher", "ferry-pods", "ferry-relay")
UNITS = ("ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-pods", "ferry-relay")
SYSTEMCTL = '#!/bin/sh\necho "$@" >>/var/tmp/calls\n'


def out(*words, **more):
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, **more)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}"
    return done.stdout


def looks_right(deb):
    names = [line.split(None, 5)[5] for line in out("dpkg-deb", "--contents", deb).splitlines()]
    owners = {line.split()[1] for line in out("dpkg-deb", "--contents", deb).splitlines()}
    assert owners == {"root/root"}, owners
    for program in PROGRAMS:
        assert f"./usr/bin/{program}" in names, program
    for unit in UNITS:
        assert any(n.endswith(f"/systemd/system/{unit}.service") for n in names), unit
    for page in ("man1/ferry.1.gz", "man1/ferry-why.1.gz", "man5/ferry.conf.5.gz", "man5/ferry-annotations.5.gz", "man7/ferry.7.gz",
                 "man8/ferry-pods.8.gz"):
        assert not shutil.which("rst2man") or f"./usr/share/man/{page}" in names, page
    for name in ("./usr/share/doc/ferry/copyright", "./usr/share/doc/ferry/NEWS.md", "./usr/share/doc/ferry/examples/vm.yaml",
                 "./etc/ferry/ferry-apiserver.conf"):
        assert name in names, name
    assert any(n.endswith("/ferry/gate/ferry.so") for n in names), names
    assert not [n for n in names if "/usr/local" in n or "/home" in n], names
    fields = dict(line.split(": ", 1) for line in out("dpkg-deb", "--field", deb).splitlines() if ": " in line)
    assert fields["Package"] == "ferry" and fields["Depends"].split(", ")[-3:] == ["bubblewrap", "iproute2", "adduser"], fields
    assert "libc6" in fields["Depends"] and "libvirt0" in fields["Depends"], fields["Depends"]
    with tempfile.TemporaryDirectory() as d:
        out("dpkg-deb", "--control", deb, d)
        assert open(os.path.join(d, "conffiles")).read().split() == [
            f"/etc/ferry/{unit}.conf" for unit in UNITS]
        for script in ("postinst", "prerm", "postrm"):
            out("sh", "-n", os.path.join(d, script))


class Overlay:
    """This machine's root with a layer of its own on top; what is done in it is gone with it."""

    def __init__(self, base):
        self.base = base
        for name in ("upper", "work", "root"):
            os.mkdir(os.path.join(base, name))
        with open(os.path.join(base, "run"), "w") as f:
            f.write("set -e; cd \"$1\"; shift\n"
                    "mount --make-rprivate /\n"
                    "mount -t tmpfs tmpfs work; mkdir work/u work/w; [ ! -e upper.tar ] || tar -C work/u -xpf upper.tar\n"
                    "mount -t overlay overlay -o lowerdir=/,upperdir=work/u,workdir=work/w root\n"
                    "mount --bind /dev root/dev; mount -t tmpfs tmpfs root/run; mkdir -p root/run/systemd/system\n"
                    "rc=0; chroot root \"$@\" || rc=$?\n"
                    "tar -C work/u -cpf upper.tar .; exit $rc\n")
        self.put("/usr/local/sbin/systemctl", SYSTEMCTL)

    def __call__(self, *words):
        return out("unshare", "--mount", "sh", os.path.join(self.base, "run"), self.base, *words,
                   env=dict(os.environ, PATH="/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND="noninteractive"))

    def put(self, path, text):
        self("sh", "-c", f"cat >{path} <<'END'\n{text}END\nchmod 755 {path}")

    def calls(self):
        """What systemctl was asked since the last time."""
        return self("sh", "-c", "cat /var/tmp/calls 2>/dev/null || true; rm -f /var/tmp/calls").splitlines()


def lives(deb, base):
    there = Overlay(base)
    inside = "/var/tmp/ferry.deb"
    there("sh", "-c", f"cp {deb} {inside} && dpkg --install {inside}")
    assert there.calls() == ["daemon-reload"], "a fresh installation starts nothing"
    assert "ferry-relay" in there("getent", "passwd", "ferry-relay")
    assert "Usage: ferry-handler" in there("/usr/bin/ferry-handler", "--help")
    assert there("stat", "-c", "%a", "/var/lib/ferry").strip() == "711"
    there("sh", "-c", "echo '# mine' >>/etc/ferry/ferry-apiserver.conf; echo key >/var/lib/ferry/key")
    there("dpkg", "--install", inside)  # an upgrade: the order matters
    calls = there.calls()
    assert calls == ["daemon-reload", "reload ferry-relay", "try-restart ferry-apiserver", "try-restart ferry-controller",
                     "try-restart ferry-pods", "try-restart ferry-handler"], calls
    assert "# mine" in there("cat", "/etc/ferry/ferry-apiserver.conf")
    there("dpkg", "--remove", "ferry")
    assert there.calls()[0] == "disable --now ferry-handler"
    assert there("sh", "-c", "ls /usr/bin/ferry* 2>/dev/null || true") == ""
    assert there("cat", "/var/lib/ferry/key") == "key\n", "a removal keeps keys and data"
    there("dpkg", "--purge", "ferry")
    assert there("sh", "-c", "ls -d /var/lib/ferry /etc/ferry 2>/dev/null || true") == ""


def main():
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    base = tempfile.mkdtemp(prefix="ferry-deb-", dir="/var/tmp")
    try:
        deb = out(os.path.join(ROOT, "scripts/deb"), BUILD, os.path.join(base, "dist"),
                  env=dict(os.environ, DEB_COMPRESSION="none")).strip().splitlines()[-1]
        looks_right(deb)
        lives(deb, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


main()
