#!/usr/bin/env python3
"""Somebody runs code as a daemon of Ferry: what its unit lets them do (tests/lib/unitbox.py confines them by it). Each attack is tried
without the unit first, as root: there it does what it wants, so that the refusal is the unit's."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
import unitbox

HERE = os.path.dirname(os.path.realpath(__file__))
BOX = os.path.join(HERE, "../lib/unitbox.py")
NO_ROOT = ("ferry-apiserver", "ferry-controller")
CONFINED = (*NO_ROOT, "ferry-relay")
# The relay is root until it has its socket: it is asked as what it becomes.
BECOMES = {"ferry-relay": "os.setgroups([]); os.setgid(61200); os.setuid(61200); "}

MAY = {"ferry-controller": {"see other processes"}}  # to know whether another controller lives

# Each ends with code 0 when it did what it wanted.
CALLS = "import ctypes, os, socket, time\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.syscall.restype = libc.mmap.restype = ctypes.c_long\n"
LOOK = """
ready, up = os.pipe()
hold, end = os.pipe()
other = os.fork()
if other == 0:
    os.close(end)
    os.setresuid(1879048192, 1879048192, 1879048192)
    os.write(up, b"x")
    os.read(hold, 1)
    os._exit(0)
os.close(up)
assert os.read(ready, 1)
try:
    os.stat(f"/proc/{other}/ns/net")
finally:
    os.close(end)
"""
SIGNAL = LOOK.replace('os.stat(f"/proc/{other}/ns/net")', "os.kill(other, 9)")
ATTACKS = {
    "signal another user's process": SIGNAL,
    "read a home": "open('/home/ferry-attack/secret').read()",
    "read what others keep in /tmp": "open('/tmp/ferry-attack/secret').read()",
    "write to /etc": "open('/etc/ferry-attack', 'w').close(); os.unlink('/etc/ferry-attack')",
    "write to /var": "open('/var/ferry-attack', 'w').close(); os.unlink('/var/ferry-attack')",
    "write to /usr": "open('/usr/ferry-attack', 'w').close(); os.unlink('/usr/ferry-attack')",
    "change a kernel setting": "f = open('/proc/sys/kernel/hostname', 'r+'); f.write(f.read()); f.close()",
    "name the host": "assert libc.sethostname(b'attack', 6) == 0",
    "make a mount namespace": "assert libc.unshare(0x20000) == 0",
    "make a user namespace": "assert libc.unshare(0x10000000) == 0",
    "mount": "assert libc.mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0",
    "change the root": "assert libc.chroot(b'/') == 0",
    "trace a process": "assert libc.ptrace(0x4206, os.getppid(), 0, 0) == 0",
    "load a filter program into the kernel": "a = (ctypes.c_uint32 * 32)(1, 4, 4, 1); assert libc.syscall(321, 0, a, 72) >= 0",
    "open a packet socket": "socket.socket(17, socket.SOCK_RAW, 0)",
    "open a raw socket": "socket.socket(2, socket.SOCK_RAW, 1)",
    "read the kernel's log": "assert libc.klogctl(10, None, 0) >= 0",
    "see kernel modules": "assert os.listdir('/usr/lib/modules')",
    "open a netlink socket": "socket.socket(16, socket.SOCK_RAW, 0)",
    "make memory that is written and executed": "assert libc.mmap(None, 4096, 7, 0x22, -1, 0) != -1",
    "make memory executable": "p = libc.mmap(None, 4096, 3, 0x22, -1, 0); assert libc.mprotect(ctypes.c_void_p(p), 4096, 5) == 0",
    "make a file setuid": "open('/dev/shm/ferry-attack', 'w').close(); os.chmod('/dev/shm/ferry-attack', 0o4755)",
    "change the personality": "assert libc.personality(8) != -1",
    "take real-time priority": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "see other processes": "open('/proc/1/cmdline').read()",
    "set the clock": "now = time.clock_gettime(0); time.clock_settime(0, now)",
    "look into another user's process": LOOK,
    "make a device of the host's memory": "os.mknod('/dev/shm/ferry-memory', 0o20600, os.makedev(1, 1)); os.unlink('/dev/shm/ferry-memory')",
    "make a device": "os.mknod('/dev/shm/ferry-device', 0o20600, os.makedev(1, 3)); os.unlink('/dev/shm/ferry-device')",
    "see devices": "os.stat('/dev/fuse' if os.path.exists('/dev/fuse') else '/dev/ptmx')",
}
# All of them in one process, each in a child; the answer is a line of JSON.
ALL = """
import json, sys
done = {}
for name, code in json.load(sys.stdin).items():
    pid = os.fork()
    if pid == 0:
        try:
            exec(code)
        except BaseException as e:
            os._exit(1 if isinstance(e, (OSError, AssertionError)) else 2)
        os._exit(0)
    done[name] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps(done))
"""


def attempt(code, *before):
    return subprocess.run([*before, sys.executable, "-c", CALLS + code], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)


def attempt_all(*before, become=""):
    """How each ended: 0 it did what it wanted, 1 it was refused."""
    done = subprocess.run([*before, sys.executable, "-c", CALLS + become + ALL], input=json.dumps(ATTACKS), capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def boxed(bin_dir, unit, *more):
    path = os.path.join(os.path.dirname(os.path.realpath(bin_dir)), "deploy/systemd", unit + ".service")
    return [sys.executable, BOX, path, "--keep", os.path.realpath(sys.base_prefix), "--keep", os.path.realpath(HERE), *more]


def lay_out():
    """Of a test's own mounts: a home, and something in /tmp."""
    for top in ("/home", "/tmp"):
        place = os.path.join(top, "ferry-attack")
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o755)
        with open(os.path.join(place, "secret"), "w") as f:
            f.write("secret")


def test_what_no_daemon_that_serves_others_can_do(bin_dir):
    lay_out()
    try:
        bare = attempt_all()
        able = {name for name, code in bare.items() if code == 0}
        assert len(able) >= len(ATTACKS) - 4, f"root itself cannot: {set(ATTACKS) - able}"
        for unit in CONFINED:
            confined = attempt_all(*boxed(bin_dir, unit), become=BECOMES.get(unit, ""))
            wanted = able - MAY.get(unit, set())
            assert {confined[name] for name in wanted} == {1}, (unit, {n: c for n, c in confined.items() if c != 1})
        print(f"{len(able)} attacks on each of {len(CONFINED)} daemons: {', '.join(sorted(able))}")
    finally:
        for top in ("/home", "/tmp"):
            shutil.rmtree(os.path.join(top, "ferry-attack"), ignore_errors=True)


# Somebody who is ferry-pods is root with mounts and namespaces: its unit refuses what no pod needs.
REFUSED_TO_PODS = {"signal another user's process", "trace a process", "load a filter program into the kernel", "open a packet socket",
                   "open a raw socket", "read the kernel's log", "make a file setuid", "change the personality", "take real-time priority",
                   "set the clock", "look into another user's process", "make a device of the host's memory", "change the root"}


def test_what_the_pods_agent_cannot_do(bin_dir):
    lay_out()
    try:
        bare, confined = attempt_all(), attempt_all(*boxed(bin_dir, "ferry-pods"))
        able = {name for name, code in bare.items() if code == 0}
        refused = REFUSED_TO_PODS - (set() if unitbox.devices_mount() else {"make a device of the host's memory"})
        assert refused <= able, f"root itself cannot: {refused - able}"
        assert {confined[name] for name in refused} == {1}, {n: c for n, c in confined.items() if n in refused and c != 1}
        print(f"of {len(able)} attacks ferry-pods can: {', '.join(sorted(n for n in able if confined[n] == 0))}")
    finally:
        unitbox.forget_groups()
        for top in ("/home", "/tmp"):
            shutil.rmtree(os.path.join(top, "ferry-attack"), ignore_errors=True)


def test_whose_files_they_see(bin_dir):
    """In the data directory of a host that has an API server and is a node."""
    root = tempfile.mkdtemp(prefix="ferry-daemons-")
    try:
        os.chmod(root, 0o755)
        data = os.path.join(root, "var/lib/ferry")
        subprocess.run([os.path.join(bin_dir, "ferry-apiserver"), "pki", "node", "one", "--out", data, "--server", "https://127.0.0.1:1",
                        "--relay-owner", "61200:61200", "--root", root], check=True, timeout=60)
        subprocess.run([os.path.join(bin_dir, "ferry-apiserver"), "serve", "--prepare", "--root", root], check=True, timeout=60)
        subprocess.run([os.path.join(bin_dir, "ferry-apiserver"), "pki", "controller", "--out", os.path.join(data, "controller.kubeconfig"),
                        "--server", "https://127.0.0.1:1", "--root", root], check=True, timeout=60)
        closed = {"ferry-apiserver": ("pki/node.key", "pki/relay.key", "node.kubeconfig"),
                  "ferry-controller": ("pki/node.key", "pki/relay.key", "node.kubeconfig", "ca/ca.key"),
                  "ferry-relay": ("pki/node.key", "node.kubeconfig", "controller.kubeconfig", "ca/ca.key")}
        own = {"ferry-apiserver": "ca/ca.key", "ferry-controller": "controller.kubeconfig", "ferry-relay": "pki/relay.key"}
        for unit, names in closed.items():
            become = BECOMES.get(unit, "")
            box = boxed(bin_dir, unit, "--keep", root)
            for name in (own[unit], *names):
                done = attempt(f"{become}open({os.path.join(data, name)!r}).read()", *box)
                assert (done.returncode == 0) == (name == own[unit]) and (done.returncode == 0 or "Permission denied" in done.stderr), (
                    unit, name, done)
            done = attempt(f"{become}open({os.path.join(data, 'pki/planted')!r}, 'w')", *box)
            assert done.returncode == 1 and ("Permission denied" in done.stderr or "Read-only" in done.stderr), (unit, done)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_no_way_back_to_root(bin_dir):
    with tempfile.TemporaryDirectory(dir="/var/lib") as place:  # not one that a unit hides
        os.chmod(place, 0o755)
        tool = os.path.join(place, "id")
        shutil.copy("/usr/bin/id", tool)
        os.chmod(tool, 0o4755)
        bare = subprocess.run(["setpriv", "--reuid=61202", "--clear-groups", tool, "-u"], capture_output=True, text=True, timeout=60,
                              check=True)
        assert bare.stdout.strip() == "0", "where setuid programs work"
        for unit in NO_ROOT:
            done = subprocess.run([*boxed(bin_dir, unit), tool, "-u"], capture_output=True, text=True, timeout=60, check=True)
            assert done.stdout.strip() not in ("", "0"), (unit, done)


scenario.need_root()
unitbox.need_systemd_analyze()
scenario.main(globals())
