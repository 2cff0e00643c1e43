#!/usr/bin/env python3
"""Launchers as root: with a libvirtd of their own (qemu:///system), and with one that was there before them."""
import os
import subprocess
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

# A host of its own as far as libvirt can see: /run, /etc/libvirt, /var/*/libvirt, process ids.
BOX = """
mount --make-rprivate / && mount -t tmpfs tmpfs /run && cd /run && mkdir -p libvirt ferry-libvirt ferry-console ferry-state kubevirt/migrationproxy || exit 1
mount --bind "$1/libvirt" libvirt && mount --bind "$1/libvirt" ferry-libvirt && mount --bind "$1/m" kubevirt/migrationproxy || exit 1
mount --bind "$1/console" ferry-console && mount --bind "$1/state" ferry-state || exit 1
for d in /etc /var/lib /var/cache /var/log; do mount -t tmpfs tmpfs $d/libvirt || exit 1; done
{ cat /etc/passwd && echo "relay:x:$2:$2::/:/bin/false"; } >passwd && mount --bind passwd /etc/passwd || exit 1
{ cat /etc/group && echo "relay:x:$2:"; } >group && mount --bind group /etc/group || exit 1
[ ! -e "$1/qemu.conf" ] || cp "$1/qemu.conf" /etc/libvirt/
echo ready
while :; do sleep 1000 & wait; done
"""
QEMU_CONF = """security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
"""
DAEMON_CONF = """auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0770"
host_uuid = "{}"
log_outputs = "3:stderr"
"""


class RootPod(labs.Pod):
    """A launcher that runs as root in such a box; `uri`: of a libvirtd that runs there already."""

    def __init__(self, node, guest, uri=None):  # pylint: disable=super-init-not-called
        self.node, self.uid = node, str(uuid.uuid4())
        self.dir = os.path.join(node.root, "run/ferry/pods", self.uid)
        self.control = os.path.join(self.dir, "launcher.sock")
        for name in ("libvirt", "m", "console", "state"):
            os.makedirs(os.path.join(self.dir, name))
            os.chmod(os.path.join(self.dir, name), 0o2770)  # what appears there is the relay's, too
            os.chown(os.path.join(self.dir, name), 0, labs.RELAY_USER)
        if uri:
            self.write("qemu.conf", QEMU_CONF)
            self.write("libvirtd.conf", DAEMON_CONF.format(uuid.uuid4()))
        self.box = subprocess.Popen(["unshare", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                                     BOX, "box", self.dir, str(labs.RELAY_USER)], stdout=subprocess.PIPE)
        assert self.box.stdout.readline() == b"ready\n"
        self.pid1 = int(open(f"/proc/{self.box.pid}/task/{self.box.pid}/children").read().split()[0])
        self.processes = []
        if uri:
            self.libvirtd = self.run("libvirtd", "--config", f"{self.dir}/libvirtd.conf")
        meta = guest["metadata"]
        self.launcher = self.run(
            os.path.join(node.lab.bin, "ferry-launcher"), "--namespace", meta["namespace"], "--name", meta["name"], "--uid",
            meta["uid"], "--control", self.control, "--guest-dir", node.lab.guest,
            *(["--libvirt", uri] if uri else []))
        node.lab.pods.append(self)
        labs.wait_for("the launcher's status", self.answers)

    def answers(self):
        try:
            return self.call("GET", "/v1/status")[0] == 200
        except OSError:
            return False

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)

    def run(self, *argv):
        with open(os.path.join(self.dir, "log"), "ab") as log:
            p = subprocess.Popen(["nsenter", "-t", str(self.pid1), "-m", "-p", "-u", *argv], stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=log)
        self.processes.append(p)
        return p

    def on_host(self, path):
        return super().on_host(path.replace("/run/libvirt/", "/var/run/ferry-libvirt/"))

    def end(self, grace=10):
        self.ok("DELETE", "/v1/vm", {"graceS": grace})
        assert self.launcher.wait(60) == 0, f"the launcher ended with {self.launcher.returncode}"
        self.remove()

    def remove(self):
        self.node.lab.pods.remove(self)
        self.box.kill()
        self.box.wait()
        for p in self.processes:
            p.wait()


def there_and_back(bin_dir, uri):
    with labs.lab(bin_dir) as lab:
        guest = labs.new_guest()
        pods = [RootPod(node, guest, uri) for node in lab.nodes]
        try:
            pods[0].ok("PUT", "/v1/vm", {"vmi": guest})
            lab.monitor.wait_beats(3, 60)
            for options in ({}, {"allowPostCopy": True, "allowWorkloadDisruption": True}):
                source, target = pods
                m = labs.Move(lab, guest, source, target, options)
                assert m.wait_end_at_source() == ("succeeded", "succeeded"), source.migration()
                lab.check_guest(target)
                m.close()
                print(f"moved to {target.node.name}: downtime {source.migration().get('downtimeMs')} ms")
                if uri:  # it is not ours to end
                    source.ok("DELETE", "/v1/vm", {"graceS": 0})
                    assert source.launcher.wait(60) == 0
                    assert source.libvirtd.poll() is None, "the launcher ended a libvirtd that is not its own"
                    source.remove()
                else:
                    source.end()
                pods = [target, RootPod(source.node, guest, uri)]
        finally:
            for pod in pods:
                if pod in lab.pods:
                    pod.end(0)


def test_own_libvirtd_as_root(bin_dir):
    there_and_back(bin_dir, None)


def test_existing_libvirtd(bin_dir):
    there_and_back(bin_dir, "qemu+unix:///system?socket=/run/libvirt/libvirt-sock")


def test_what_is_refused(bin_dir):
    """A host's own settings are never replaced; a wrong URI is said to be wrong."""
    launcher = [os.path.join(bin_dir, "ferry-launcher"), "--namespace", "n", "--name", "a", "--uid", str(uuid.uuid4())]
    with labs.lab(bin_dir) as lab:
        paths = [a for n in ("control", "console-dir", "state-dir", "libvirt-dir") for a in (f"--{n}", os.path.join(lab.root, n))]
        for name in ("console-dir", "state-dir", "libvirt-dir"):
            os.mkdir(os.path.join(lab.root, name))
        box = ["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs tmpfs /etc/libvirt && "
               "echo 'user = \"me\"' >/etc/libvirt/qemu.conf && exec \"$@\"", "box"]
        for argv, text in ((box + launcher + paths, "belongs to this host"),
                           (launcher + paths + ["--libvirt", "qemu+ssh:///system"], "this transport needs a host")):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1 and text in done.stderr, (done.returncode, done.stderr)
            if os.path.exists(os.path.join(lab.root, "control")):
                os.unlink(os.path.join(lab.root, "control"))


scenario.need_root()
scenario.main(globals())
