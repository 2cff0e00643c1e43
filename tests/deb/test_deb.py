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
USERS = ("ferry-relay", "ferry-apiserver", "ferry-controller")
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
                    "mount --bind /dev root/dev; mount --bind /proc root/proc\n"
                    "mount -t tmpfs tmpfs root/run; mkdir -p root/run/systemd/system\n"
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


def sums(there):
    return there("sh", "-c", "cd /var/lib/ferry && find . -type f | sort | xargs sha256sum")


def as_of_old(there):
    """A site as a package from before there were users for it left it: all of it root's."""
    there("sh", "-c", "deluser --quiet ferry-apiserver; deluser --quiet ferry-controller; chown root:root /var/lib/ferry; "
          "chmod 711 /var/lib/ferry; mkdir /srv/elsewhere; echo 'data = /srv/elsewhere' >>/etc/ferry/ferry-apiserver.conf; umask 022; "
          "cd /var/lib/ferry; ferry-apiserver pki controller --server https://127.0.0.1:6443 --out controller.kubeconfig --data .; "
          "echo objects >api.db; echo log >api.db-wal; echo admin >admin.kubeconfig; mkdir pki; echo relay >pki/relay.key")
    assert there("find", "/var/lib/ferry", "!", "-user", "root") == ""
    return sums(there)


def site_is_given(there, before):
    """What the unit does before the server starts: the site's files are the server's then, all of them and as they were."""
    unit = there("sh", "-c", "cat /lib/systemd/system/ferry-apiserver.service")
    [prepare] = [line.partition("=+")[2] for line in unit.splitlines() if line.startswith("ExecStartPre=+")]
    assert "/srv/elsewhere" in there("cat", "/etc/systemd/system/ferry-apiserver.service.d/data.conf")
    there("sh", "-c", f"sed -i '/elsewhere/d' /etc/ferry/ferry-apiserver.conf; {prepare}")
    owners = dict(line.split() for line in there("sh", "-c", "cd /var/lib/ferry && find . -printf '%p %u:%g:%m\n'").splitlines())
    own = "ferry-apiserver:ferry-apiserver"
    assert owners["."] == "root:ferry-apiserver:1771", owners
    assert owners["./controller.kubeconfig"] == "ferry-apiserver:ferry-controller:640", owners
    assert {owners[f"./{n}"] for n in ("api.db", "api.db-wal", "admin.kubeconfig", "ca/ca.key")} == {own + ":600"}, owners
    assert owners["./ca"] == own + ":700" and owners["./pki/relay.key"].startswith("root:root:"), owners
    assert sums(there) == before
    as_user = "setpriv --reuid={0} --regid={0} --init-groups cat /var/lib/ferry/{1}"
    there("sh", "-c", as_user.format("ferry-apiserver", "ca/ca.key"))
    there("sh", "-c", as_user.format("ferry-controller", "controller.kubeconfig"))
    assert "Permission denied" in there("sh", "-c", as_user.format("ferry-controller", "api.db") + " 2>&1 || true")


def lives(deb, base):
    there = Overlay(base)
    inside = "/var/tmp/ferry.deb"
    there("sh", "-c", f"cp {deb} {inside} && dpkg --install {inside}")
    assert there.calls() == ["daemon-reload"], "a fresh installation starts nothing"
    for user in USERS:
        assert user in there("getent", "passwd", user)
    assert "Usage: ferry-handler" in there("/usr/bin/ferry-handler", "--help")
    assert there("stat", "-c", "%a %U:%G", "/var/lib/ferry").split() == ["1771", "root:ferry-apiserver"]
    there("sh", "-c", "echo '# mine' >>/etc/ferry/ferry-apiserver.conf; echo key >/var/lib/ferry/key")
    before = as_of_old(there)
    there("dpkg", "--install", inside)  # an upgrade: the order matters
    calls = there.calls()
    assert calls == ["daemon-reload", "reload ferry-relay", "try-restart ferry-apiserver", "try-restart ferry-controller",
                     "try-restart ferry-pods", "try-restart ferry-handler"], calls
    assert "# mine" in there("cat", "/etc/ferry/ferry-apiserver.conf")
    site_is_given(there, before)
    there("dpkg", "--remove", "ferry")
    assert there.calls()[0] == "disable --now ferry-handler"
    assert there("sh", "-c", "ls /usr/bin/ferry* 2>/dev/null || true") == ""
    assert there("cat", "/var/lib/ferry/key") == "key\n", "a removal keeps keys and data"
    there("dpkg", "--purge", "ferry")
    assert there("sh", "-c", "ls -d /etc/systemd/system/ferry* 2>/dev/null || true") == ""
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
