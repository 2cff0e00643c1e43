#!/usr/bin/env python3
"""A guest that owns its QEMU, and the author of a manifest: real sandboxes of a real agent, with an attacker in the launcher's place."""
import json
import os
import shutil
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../pods"))
from host import run, wait_for
import heartbeat

MIB = 1 << 20
A_FEW_MIB = 9 * MIB  # more than any of a pod's logs may ever take
PODS_MIB = 256
PRIVATE = ["exit", "pod", "sandbox.json", "stop", "out/log", "etc/passwd"]


def ask(host, uid, words, seconds=60):
    with heartbeat.connect(os.path.join(host.dir(uid), "launcher.sock")) as s:
        s.settimeout(seconds)
        s.sendall(words.encode())
        data = b""
        while chunk := s.recv(65536):
            data += chunk
    answer = json.loads(data)
    assert "failed" not in answer, answer
    return answer


def taken(path):
    return os.stat(path).st_blocks * 512


def free(path):
    st = os.statvfs(path)
    return st.f_bavail * st.f_frsize, st.f_favail


def floods_its_serial_line(host, uid):
    """100 MB: neither held up nor ended; little of it is kept, and that is the end."""
    log = os.path.join(host.dir(uid), "console/serial.log")
    most = 0
    for _ in range(10):
        ask(host, uid, "flood-serial 10")
        most = max(most, taken(log))
    assert most <= A_FEW_MIB, most
    wait_for("the log to be cut", lambda: taken(log) <= 3 * MIB)
    ask(host, uid, "end-serial the last words")
    with open(log, "rb") as f:
        f.seek(-MIB, os.SEEK_END)
        end = f.read()
    assert end.endswith(b"the last words\n") and b"\0" not in end


# mov dx, 0x3f8; mov al, "x"; again: out dx, al; jmp again
WRITES_FOR_EVER = bytes.fromhex("baf803b078eeebfd").ljust(510, b"\0") + b"\x55\xaa"


def a_full_log_stops_no_guest(host):
    """A real QEMU as libvirt starts it, on a file system that its log fills: the guest goes on writing, and whoever listens hears it."""
    full, image, path = (os.path.join(host.base, name) for name in ("full", "boot.img", "serial.sock"))
    os.mkdir(full)
    with open(image, "wb") as f:
        f.write(WRITES_FOR_EVER.ljust(1 * MIB, b"\0"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "log", full], check=True)
    qemu = subprocess.Popen(["qemu-system-x86_64", "-machine", "pc", "-accel", "tcg", "-m", "32", "-display", "none", "-nodefaults",
                             "-drive", f"file={image},format=raw", "-chardev",
                             f"socket,id=s,path={path},server=on,wait=off,logfile={full}/serial.log,logappend=on", "-serial", "chardev:s"])
    try:
        wait_for("the log to be full", lambda: os.path.exists(f"{full}/serial.log") and taken(f"{full}/serial.log") == MIB, 60)
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(path)
            heard = 0
            while heard < 2 * MIB:
                heard += len(s.recv(65536)) or sys.exit("QEMU hung up")
        assert qemu.poll() is None
    finally:
        qemu.kill()
        qemu.wait()
        subprocess.run(["umount", "-l", full], check=True)


def floods_its_output(host, uid):
    """QEMU's and libvirtd's complaints, 100 MB of them."""
    log = os.path.join(host.dir(uid), "log")
    most = 0
    for _ in range(10):
        ask(host, uid, "flood-output 10")
        most = max(most, taken(log))
    assert most <= A_FEW_MIB, most
    wait_for("the log to be cut", lambda: taken(log) <= 3 * MIB)


def fills_all_that_it_can_write(host, uid):
    """Bytes and names, everywhere: the file system of all pods loses next to nothing."""
    before = free(host.pods_dir)
    for place, most in {"home": 128, "state": 32, "console": 8, "m": 1, "libvirt": 1, "tmp": 64, "disk": 4}.items():
        answer = ask(host, uid, "fill " + place, 120)
        assert answer["errno"] == "ENOSPC" and answer["bytes"] <= most * MIB, (place, answer)
    for place, most in {"home": 4096, "state": 4096, "console": 256, "m": 256, "libvirt": 256, "disk": 4096}.items():
        answer = ask(host, uid, "fill-names " + place, 120)
        assert answer["errno"] == "ENOSPC" and answer["files"] <= most, (place, answer)
    after = free(host.pods_dir)
    assert before[0] - after[0] < MIB and before[1] - after[1] < 100, (before, after)
    # Another guest starts all the same, and this one is told to end, and ends.
    other = host.create_and_wait("beside")
    host.delete("beside")
    host.wait_gone("beside", other)
    with open(os.path.join(host.dir(uid), "console/serial.log"), "rb") as log:
        host.delete("guest")
        host.wait_gone("guest", uid)
        # Who follows it sees that it is gone.
        wait_for("the log to go", lambda: os.fstat(log.fileno()).st_nlink == 0)


def mounts(host, uid):
    with open("/proc/self/mounts") as f:
        return [line.split()[1] for line in f if f"/{uid}/" in line or line.split()[1].startswith(host.pods_dir + "/.gone")]


def puts_something_in_a_logs_place(host):
    """A link to a file of the host's, and a pipe that nobody reads: neither is touched, nobody waits."""
    victim = os.path.join(host.pods_dir, "victim")
    with open(victim, "wb") as f:
        f.write(b"v" * (6 * MIB))
    uid = host.create_and_wait("liar")
    for what in (victim, "fifo"):
        ask(host, uid, "instead-of-serial " + what)
        ask(host, uid, "flood-output 10")
        wait_for("the next log to be looked at", lambda: taken(os.path.join(host.dir(uid), "log")) <= 3 * MIB)
        assert taken(victim) == 6 * MIB
    os.unlink(victim)
    host.delete("liar")
    host.wait_gone("liar", uid)
    assert not mounts(host, uid)


# Numbers that all architectures have alike, and those of this one.
SAME = {"pidfd_getfd": 438, "clone3": 435, "io_uring_setup": 425, "move_mount": 429, "open_tree": 428, "fsopen": 430, "process_madvise": 440}
OURS = {"x86_64": {"ptrace": 101, "unshare": 272, "setns": 308, "mount": 165, "bpf": 321, "keyctl": 250, "add_key": 248, "perf_event_open": 298,
                   "process_vm_readv": 310, "process_vm_writev": 311, "open_by_handle_at": 304, "chroot": 161, "init_module": 175,
                   "msgget": 68, "shmget": 29, "sync": 162, "personality": 135, "vmsplice": 278, "clone": 56, "fanotify_init": 300},
        "aarch64": {"ptrace": 117, "unshare": 97, "setns": 268, "mount": 40, "bpf": 280, "keyctl": 219, "add_key": 217, "perf_event_open": 241,
                    "process_vm_readv": 270, "process_vm_writev": 271, "open_by_handle_at": 265, "chroot": 51, "init_module": 105,
                    "msgget": 186, "shmget": 194, "sync": 81, "personality": 92, "vmsplice": 75, "clone": 220, "fanotify_init": 262}}
PTRACE_SEIZE, CLONE_NEWUSER, CLONE_NEWNET, SIGCHLD = 0x4206, 0x10000000, 0x40000000, 17


def calls_the_kernel(host, uid):
    """Each refused call is an error and nobody's end."""
    number = {**SAME, **OURS[os.uname().machine]}
    rows = [["ptrace", number["ptrace"], PTRACE_SEIZE, 1, 0, 0], ["user namespace", number["clone"], CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0],
            ["network namespace", number["clone"], CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0], ["unknown", 2000, 0, 0, 0],
            *([name, n, 0, 0, 0, 0] for name, n in number.items() if name not in ("ptrace", "clone"))]
    nothing_here = {"clone3", "unknown", "msgget", "shmget", "sync", "personality", "vmsplice"}
    said = ask(host, uid, "calls " + json.dumps(rows))
    for name, answer in said.items():
        assert answer == ("ENOSYS" if name in nothing_here else "EPERM"), (name, answer)
    kinds = [["vsock", 40, socket.SOCK_STREAM, 0], ["packets", 17, socket.SOCK_RAW, 0], ["kernel crypto", 38, socket.SOCK_SEQPACKET, 0],
             ["filters", 16, socket.SOCK_RAW, 12], ["audit", 16, socket.SOCK_RAW, 9], ["bluetooth", 31, socket.SOCK_RAW, 0],
             ["unix", 1, socket.SOCK_STREAM, 0], ["inet", 2, socket.SOCK_STREAM, 0], ["routes", 16, socket.SOCK_RAW, 0]]
    assert ask(host, uid, "sockets " + json.dumps(kinds)) == {
        "vsock": "EAFNOSUPPORT", "packets": "EAFNOSUPPORT", "kernel crypto": "EAFNOSUPPORT", "bluetooth": "EAFNOSUPPORT",
        "filters": "EPROTONOSUPPORT", "audit": "EPROTONOSUPPORT", "unix": "done", "inet": "done", "routes": "done"}


def looks_around(host, uid):
    """The agent's own files, the host's, other processes' memory, devices that only a move needs."""
    paths = [f"{host.dir(uid)}/{name}" for name in PRIVATE] + ["/proc/1/mem", "/proc/1/fd/1", "/proc/self/oom_score_adj_", "/etc/passwd",
                                                              "/run/ferry/bin/ferry-init", "/proc/sys/kernel/core_pattern",
                                                              "/proc/sysrq-trigger"]
    said = ask(host, uid, "reaches " + json.dumps(paths))
    assert "done" not in said.values(), said
    assert "userfaultfd" not in ask(host, uid, "devices")["dev"]


def has_limits(host, uid):
    """Nobody asked for any: memory, processes."""
    found = {}
    for place in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"):
        for at, _, names in os.walk(os.path.join(place, "ferry-pods")):
            if at.endswith("/" + uid):
                for name in {"memory.max", "memory.limit_in_bytes", "pids.max"} & set(names):
                    with open(os.path.join(at, name)) as f:
                        found[name] = f.read().strip()
    print("limits:", found)
    for name, value in found.items():
        assert value != "max" and int(value) < 1 << 40, (name, value)


def names_paths_of_the_host(host):
    """What the author of a manifest may not have as a volume; the event names the option."""
    own = os.path.join(host.root, "data/own")
    os.makedirs(own)
    os.chown(own, 1879048192, 1879048192)
    os.makedirs(os.path.join(host.root, "etc"), exist_ok=True)
    os.symlink("/etc", os.path.join(host.root, "data/link"))
    os.symlink("/etc", os.path.join(own, "link"))
    attacks = {"etc": "/etc", "root": "/", "keys": "/var/lib/ferry/pki", "pods": "/run/ferry/pods", "disk": "/dev/sda", "link": "/data/link",
               "inside": "/data/own/link", "made": "/data/own/new", "up": "/data/../etc"}
    words = {"link": "is a link", "inside": "a guest may write to", "made": "a guest may write to", "up": "without '..'"}
    for name, path in attacks.items():
        host.create(name, mounts=("v",), volumes=[{"name": "v", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}])
    for name in attacks:
        want = words.get(name, "--host-path-roots")

        def told(name=name, want=want):
            status = host.pod(name).get("status", {})
            said = [e["message"] for e in host.api.list("events") if e["involvedObject"]["name"] == name and e["reason"] == "FailedMount"]
            return any(want in text for text in [*said, status.get("message") or ""])
        wait_for(f"{name} to be refused", told, 60)
        assert host.pod(name).get("status", {}).get("phase") != "Running", name
        assert not os.path.exists(os.path.join(own, "new"))
    for name in attacks:
        host.delete(name, grace=0)


def asks_for_too_much(host):
    for name, limit in {"huge": "2Pi", "none": "0", "less": "-1"}.items():
        host.create(name, mounts=("v",), volumes=[{"name": "v", "emptyDir": {"sizeLimit": limit}}])
        host.wait_phase(name, "Failed")
        assert "sizeLimit" in host.pod(name)["status"]["message"]
        host.delete(name, grace=0)


def story(host):
    shutil.copy(os.path.join(HERE, "attacker.py"), host.launcher)
    os.chmod(host.launcher, 0o755)
    run_dir = os.path.join(host.root, "run")
    os.makedirs(run_dir, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={PODS_MIB}m,mode=0755", "run", run_dir], check=True)
    try:
        a_full_log_stops_no_guest(host)
        host.start_agent()
        uid = host.create_and_wait("guest", mounts=("empty",), volumes=[{"name": "empty", "emptyDir": {"sizeLimit": "4Mi"}}])
        has_limits(host, uid)
        calls_the_kernel(host, uid)
        looks_around(host, uid)
        floods_its_serial_line(host, uid)
        floods_its_output(host, uid)
        fills_all_that_it_can_write(host, uid)
        puts_something_in_a_logs_place(host)
        names_paths_of_the_host(host)
        asks_for_too_much(host)
    finally:
        subprocess.run(["umount", "-l", run_dir], check=False)


run(story)
