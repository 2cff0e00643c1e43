#!/usr/bin/python3
"""Runs in a pod's sandbox in the launcher's place, as a guest that owns its QEMU would: it does what the text of each connection to
descriptor 3 says and answers by JSON."""
import ctypes
import errno
import json
import os
import signal
import socket
import sys

HOME, CONSOLE = "/var/run/ferry-home", "/var/run/ferry-console"
PLACES = {"home": HOME, "console": CONSOLE, "m": "/var/run/kubevirt/migrationproxy", "libvirt": "/var/run/ferry-libvirt",
          "state": "/var/run/ferry-state", "tmp": "/tmp", "disk": "/var/run/kubevirt-private/vmi-disks/empty"}
MIB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def flood(fd, mib):
    """What the chardev of QEMU does, and stderr: what does not go in is lost. How much was taken."""
    taken, block = 0, (b"%065535d\n" % 7)
    for _ in range(mib * 16):
        try:
            taken += os.write(fd, block)
        except OSError as e:
            assert e.errno == errno.ENOSPC, e
    return taken


def flood_serial(mib):
    fd = os.open(CONSOLE + "/serial.log", os.O_WRONLY | os.O_APPEND)
    taken = flood(fd, mib)
    return {"taken": taken}


def end_serial(text):
    with open(CONSOLE + "/serial.log", "ab", buffering=0) as f:
        f.write(text.encode() + b"\n")
    return {}


def fill(place):
    """Until there is no more room; how much there was."""
    fd, n, error = os.open(PLACES[place] + "/filled", os.O_WRONLY | os.O_CREAT, 0o600), 0, 0
    while n < 4096 * MIB and not error:
        try:
            n += os.write(fd, b"x" * MIB)
        except OSError as e:
            error = e.errno
    return {"bytes": n, "errno": errno.errorcode.get(error)}


def fill_names(place):
    """The same by files without a byte in them."""
    n, error = 0, 0
    while n < 200000 and not error:
        try:
            os.close(os.open(f"{PLACES[place]}/name{n}", os.O_WRONLY | os.O_CREAT, 0o600))
            n += 1
        except OSError as e:
            error = e.errno
    return {"files": n, "errno": errno.errorcode.get(error)}


def instead_of_serial(what):
    """Something else where the agent looks after a log."""
    path = CONSOLE + "/serial.log"
    os.unlink(path)
    if what == "fifo":
        os.mkfifo(path)
    else:
        os.symlink(what, path)
    return {}


def call(number, *args):
    ctypes.set_errno(0)
    rc = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in args))
    return errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno())) if rc == -1 else "done"


def calls(numbers):
    """What the kernel says to each of [name, number, argument...]."""
    return {row[0]: call(*row[1:]) for row in json.loads(numbers)}


def sockets(kinds):
    said = {}
    for name, family, kind, protocol in json.loads(kinds):
        try:
            socket.socket(family, kind, protocol).close()
            said[name] = "done"
        except OSError as e:
            said[name] = errno.errorcode[e.errno]
    return said


def reaches(paths):
    said = {}
    for path in json.loads(paths):
        try:
            os.close(os.open(path, os.O_WRONLY))
            said[path] = "done"
        except OSError as e:
            said[path] = errno.errorcode[e.errno]
    return said


def devices(_):
    return {"dev": sorted(os.listdir("/dev"))}


WORDS = {"flood-serial": lambda n: flood_serial(int(n)), "flood-output": lambda n: {"taken": flood(1, int(n))}, "end-serial": end_serial,
         "fill": fill, "fill-names": fill_names, "instead-of-serial": instead_of_serial, "calls": calls, "sockets": sockets,
         "reaches": reaches, "devices": devices}
listener = socket.socket(fileno=3)
while True:
    connection, _ = listener.accept()
    with connection:
        text = connection.recv(65536).decode()
        if text.startswith("GET "):
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            continue
        word, _, argument = text.partition(" ")
        try:
            answer = WORDS[word](argument)
        except Exception as e:  # pylint: disable=broad-except
            answer = {"failed": repr(e)}
        connection.sendall(json.dumps(answer).encode())
        sys.stdout.flush()
