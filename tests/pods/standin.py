#!/usr/bin/python3
"""Runs in the sandbox in the launcher's place and says what it sees there: one JSON answer for each connection to
descriptor 3. Words after --name: `stubborn` ignores SIGTERM. The text "exit N" ends it, "unready" and "ready" say how it answers when the agent asks, "eat N" has a child of it use N MiB."""
import json
import os
import signal
import socket
import sys


def on_term(*_):
    print("told to stop", flush=True)
    os._exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in sys.argv else on_term)
print("stand-in started", os.getpid(), flush=True)


def writable(path):
    try:
        with open(os.path.join(path, "probe"), "w"):
            pass
        os.unlink(os.path.join(path, "probe"))
        return True
    except OSError:
        return False


def status_field(name):
    with open("/proc/self/status") as f:
        return next(line.split()[1] for line in f if line.startswith(name + ":"))


seen = {
    "pid": os.getpid(), "ppid": os.getppid(), "args": sys.argv[1:], "uid": os.getuid(), "gid": os.getgid(),
    "groups": os.getgroups(), "hostname": socket.gethostname(),
    "caps": [status_field(n) for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "users": [open(f"/proc/self/{kind}_map").read().split() for kind in ("uid", "gid")],
    "noNewPrivs": status_field("NoNewPrivs"), "seccomp": status_field("Seccomp"),
    "interfaces": sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else
    sorted(name for _, name in socket.if_nameindex()),
    "env": {k: v for k, v in os.environ.items() if k != "LC_CTYPE"},
    "dev": sorted(os.listdir("/dev")),
    "vfio": {n: [os.stat(f"/dev/vfio/{n}").st_rdev, os.access(f"/dev/vfio/{n}", os.R_OK | os.W_OK)] for n in os.listdir("/dev/vfio")}
    if os.path.isdir("/dev/vfio") else None,
    "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
    "descriptors": sorted(int(f) for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}")),
    "writable": [d for d in ("/", "/etc", "/usr", "/run", "/var", "/tmp", "/run/ferry/bin", "/var/run/ferry-guest",
                             "/var/run/kubevirt/migrationproxy", "/var/run/ferry-libvirt", "/var/run/ferry-console",
                             "/var/run/ferry-state", os.environ["HOME"], os.environ["XDG_RUNTIME_DIR"],
                             os.environ["XDG_CONFIG_HOME"], os.environ["XDG_CACHE_HOME"], os.environ["XDG_DATA_HOME"])
                 if writable(d)],
}
PRIVATE = "/var/run/kubevirt-private"
DISKS = PRIVATE + "/vmi-disks"
seen["disks"] = {name: {"writable": writable(f"{DISKS}/{name}"),
                        "image": os.access(f"{DISKS}/{name}/disk.img", os.R_OK | os.W_OK)}
                 for name in os.listdir(DISKS)}



def file_seen(path):
    st = os.stat(path)
    with open(path, "rb") as f:
        return {"mode": oct(st.st_mode & 0o7777), "uid": st.st_uid, "bytes": f.read().hex()}


seen["files"] = {f"{kind}/{name}": {"writable": writable(f"{PRIVATE}/{kind}/{name}"),
                                    "files": {n: file_seen(f"{PRIVATE}/{kind}/{name}/{n}") for n in os.listdir(f"{PRIVATE}/{kind}/{name}")}}
                 for kind in ("config-map", "secret") for name in os.listdir(f"{PRIVATE}/{kind}")}


def eat(mib):
    """How a child ended that wanted so much memory."""
    child = os.fork()
    if child == 0:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("1000")
        os._exit(len(b"x" * (mib << 20)) % 2)
    return os.waitpid(child, 0)[1]


listener = socket.socket(fileno=3)
while True:
    connection, _ = listener.accept()
    with connection:
        word = connection.recv(100).decode()
        if word.startswith("GET "):  # the agent asks whether we work
            status = "503 Busy" if seen.get("unready") else "200 OK"
            connection.sendall(f"HTTP/1.0 {status}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            continue
        if word in ("ready", "unready"):
            seen["unready"] = word == "unready"
        if word.startswith("exit"):
            os._exit(int(word.split()[1]))
        if word.startswith("eat"):
            seen["ate"] = eat(int(word.split()[1]))
        connection.sendall(json.dumps(seen).encode())
