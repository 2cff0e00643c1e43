#!/usr/bin/env python3
"""Every guest runs as a user of its own, the same on all nodes: what one guest's QEMU could do with its user, it cannot do to another
guest on the host. A whole site; the attacker is a process with the first guest's user and group, and nothing else."""
import glob
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for

FIRST, COUNT = 1879048192, 65536
COMMON = 61201  # all guests of sites before
VMIS = "virtualmachineinstances"


def guest(name, **status):
    boot = {"kernelArgs": "ws=4 rate=1 hb=20", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 0, "domain": {
                "memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": boot},
                "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}},
                "volumes": [{"name": "data", "hostDisk": {"path": f"/data/{name}/disk.img", "type": "Disk", "shared": True}}]},
            **({"status": status} if status else {})}


def make_image(site, name):
    """One that both nodes have, as sites of before left it; its paths by node."""
    paths = {node: os.path.join(site.root, node, "data", name, "disk.img") for node in ("node1", "node2")}
    for path in paths.values():
        os.makedirs(os.path.dirname(path))
    with open(paths["node1"], "wb") as f:
        f.truncate(1 << 20)
    os.chmod(paths["node1"], 0o600)
    os.chown(paths["node1"], COMMON, COMMON)
    os.link(paths["node1"], paths["node2"])
    return paths


def user_of(site, name):
    return site.api.vmi(name)["status"].get("runtimeUser")


def pod_of(site, name, node):
    """(directory, pid of QEMU) of a guest on a node."""
    for directory in site.pod_dirs(node):
        if open(os.path.join(directory, "pod")).read().startswith(f"default/virt-launcher-{name}-"):
            ns = json.JSONDecoder().raw_decode(open(os.path.join(directory, "sandbox.json")).read())[0]["pid-namespace"]
            for pid in site.qemus():
                if os.stat(f"/proc/{pid}/ns/pid").st_ino == ns:
                    return directory.rstrip("/"), pid
    return None


def filters(pid):
    """How many filters of system calls a process has: what it has itself, on top of those that it came with."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Seccomp_filters:"))


def ids(pid):
    """Users and groups of a process, each once."""
    lines = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status") if ":\t" in line)
    return set(lines["Uid"].split()), set(lines["Gid"].split())


def started(pid):
    """When a process began, in seconds of the wall clock."""
    with open(f"/proc/{pid}/stat") as f:
        ticks = int(f.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime") as f:
        up = float(f.read().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def nobody_made_the_cache_but_libvirt(site, node, qemu):
    """What libvirt found out about QEMU is given to other guests' pods: it is taken before the first guest of a node runs."""
    [path] = glob.glob(os.path.join(site.root, node, "var/lib/ferry/libvirt-cache/capabilities/*.xml"))
    st = os.stat(path)
    assert (st.st_uid, st.st_mode & 0o777) == (0, 0o644) and st.st_mtime < started(qemu), (st, started(qemu))


def reaches(user, path):
    """Whether a process of that user and group can open a file, list a directory or connect to a socket."""
    code = ("import os,socket,stat,sys\np=sys.argv[1]\n"
            "m=os.stat(p).st_mode\n"
            "if stat.S_ISSOCK(m): socket.socket(socket.AF_UNIX).connect(p)\n"
            "elif stat.S_ISDIR(m): os.listdir(p)\n"
            "else: open(p,'rb').read(1)\n")
    done = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "/usr/bin/python3", "-c", code, path],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "PermissionError" in done.stderr, done.stderr
    return done.returncode == 0


# What somebody does who has every capability of the sandbox's user namespace: the worst that a hole in the kernel's checks could give.
ALL_CAPABILITIES = """
import ctypes, errno, fcntl, os, socket, stat, struct, sys
pid, own, other = (int(a) for a in sys.argv[1:4])
libc = ctypes.CDLL(None, use_errno=True)
status = open("/proc/self/status")
places = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("net", "uts", "ipc", "mnt", "user")]
for place in places:
    assert libc.setns(place, 0) == 0, os.strerror(ctypes.get_errno())
caps = next(line.split()[1] for line in status if line.startswith("CapEff:"))
assert int(caps, 16) & 1 << 21, caps  # of administration, and all others
def mount():
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) < 0:
        raise OSError(ctypes.get_errno(), "mount")
def tap():
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0))
def adjust():
    with open("/proc/1/oom_score_adj", "w") as f:
        f.write("-1000")
attempts = {"root": lambda: os.setresuid(0, 0, 0), "root's group": lambda: os.setresgid(0, 0, 0), "another guest": lambda: os.setresuid(other, other, other),
            "more groups": lambda: os.setgroups([0]), "a mount": mount, "the sandbox's name": lambda: socket.sethostname("x"),
            "its network": tap, "a device": lambda: os.mknod("/var/run/ferry-state/sda", 0o600 | stat.S_IFBLK, os.makedev(8, 0)),
            "another owner": lambda: os.chown("/var/run/ferry-state", other, other), "the clock": lambda: __import__("time").clock_settime(0, 0),
            "what root alone reads": lambda: open("/proc/1/mem", "rb"), "the killer's choice": adjust}
for name, attempt in attempts.items():
    try:
        attempt()
    except OSError as e:
        print(name, errno.errorcode[e.errno])
    else:
        print(name, "DONE")
os.setresgid(own, own, own)
os.setresuid(own, own, own)  # nobody else is there
print("itself", "DONE")
"""


def alone_in_its_namespace(qemu, user, other):
    for kind in ("uid", "gid"):
        assert open(f"/proc/{qemu}/{kind}_map").read().split() == [str(user), str(user), "1"], kind
    done = subprocess.run([sys.executable, "-c", ALL_CAPABILITIES, str(qemu), str(user), str(other)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tried = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert tried.pop("itself") == "DONE" and len(tried) == 12, tried
    assert set(tried.values()) <= {"EPERM", "EINVAL", "EACCES"}, tried


def running(site, name):
    wait_for(f"{name} to run", lambda: (site.api.vmi(name) or {}).get("status", {}).get("phase") == "Running", 120)


def test_guests_have_users_of_their_own(bin_dir):
    with Site(bin_dir) as site:
        images = {name: make_image(site, name) for name in ("one", "two")}
        site.api.create(VMIS, guest("one"))
        running(site, "one")
        where = site.node_of("one")
        nobody_made_the_cache_but_libvirt(site, where, wait_for("QEMU of one", lambda: pod_of(site, "one", where))[1])
        # A manifest that claims the user of a guest that is there gets another one.
        site.api.create(VMIS, guest("two", runtimeUser=user_of(site, "one")))
        running(site, "two")
        users = {name: user_of(site, name) for name in ("one", "two")}
        assert len(set(users.values())) == 2 and all(FIRST <= u < FIRST + COUNT for u in users.values()), users
        nodes = {name: site.node_of(name) for name in users}
        for name, user in users.items():
            directory, qemu = wait_for(f"QEMU of {name}", lambda name=name: pod_of(site, name, nodes[name]))
            assert filters(qemu) >= 3, "QEMU has none of its own"
            assert ids(qemu) == ({str(user)}, {str(user)}), ids(qemu)
            alone_in_its_namespace(qemu, user, next(u for n, u in users.items() if n != name))
            assert os.stat(images[name][nodes[name]]).st_uid == user, "the image was not taken over"
            assert reaches(user, images[name][nodes[name]])
            own = [images[name][nodes[name]], *(f"{directory}/{d}" for d in ("m", "libvirt", "console", "state", "home")),
                   *glob.glob(f"{directory}/libvirt/*"), *glob.glob(f"{directory}/console/*"), f"{directory}/log"]
            assert any(p.endswith("libvirt-sock") for p in own), own
            other = next(u for n, u in users.items() if n != name)
            for path in own:
                for foreign in (other, COMMON):
                    assert not reaches(foreign, path), f"user {foreign} reaches {path} of {name}"
            assert reaches(user, f"{directory}/state")
        # The same user on the other node.
        assert "moved from" in site.ferry("migrate", "one", "--watch", timeout=240).stdout
        there = site.node_of("one")
        assert there != nodes["one"] and user_of(site, "one") == users["one"]
        directory, qemu = wait_for("QEMU of the guest that moved", lambda: pod_of(site, "one", there))
        assert ids(qemu)[0] == {str(users["one"])}
        assert os.stat(images["one"][there]).st_uid == users["one"]
        assert not reaches(users["two"], f"{directory}/m")


scenario.main(globals())
