#!/usr/bin/env python3
"""The first instant of post-copy: the streams die at a chosen byte of the last thing that QEMU sends before its guest may run on
the target. Never two guests run, and one does in the end, with all of its memory.

QEMU sends the state of the guest's devices as one package. A go-between on the source's memory socket finds it in the
stream and decides what of it passes. The socket's buffer is made small, so that QEMU has not written more than was
looked at: the rest then fails where QEMU still writes the package, or just after it."""
import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import heartbeat  # noqa: E402
import lab as labs  # noqa: E402
import linuxguest  # noqa: E402
import scenario  # noqa: E402

BUSY = {"memory": "96Mi", "args": "ws=32 rate=60 hb=50 fill=rand"}
LINK = 160  # Mbit/s: a third of what the guest dirties
POST_COPY = {"allowPostCopy": True, "allowWorkloadDisruption": True}
PACKAGE = b"\x08\x00\x07\x00\x04"  # a command, the seventh, with four bytes: how long the package is
# The sixth, of any length, and what it is about: pages that the target has to forget. They come before the package, when the guest
# has been stopped.
FORGET = re.compile(rb"\x08\x00\x06..\x00\x06pc\.ram", re.DOTALL)
HEADER = len(PACKAGE) + 4
PACKAGE_MAX = 4 << 20
SMALL_BUFFER = 2304  # the kernel doubles it, and hands it out in pieces of
PIECE = SMALL_BUFFER - 64
SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438
libc = ctypes.CDLL(None, use_errno=True)


def descriptors_of(pid):
    """Copies of the sockets that a process has."""
    pidfd = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0)
                if fd >= 0:
                    yield socket.socket(fileno=fd)
    os.close(pidfd)


class GoBetween:
    """Between the source's QEMU and the relay, until the package comes; then all connections die, while QEMU still writes it. With
    `before`, they die when the target is told what to forget, after `before()`."""

    def __init__(self, path, qemu, before):
        self.behind, self.qemu, self.before = path + ".relay", qemu, before
        os.rename(path, self.behind)
        self.cut, self.lock, self.ends = threading.Event(), threading.Lock(), []
        self.listener = socket.socket(socket.AF_UNIX)
        directory = os.open(os.path.dirname(path), os.O_PATH)
        self.name = f"/proc/self/fd/{directory}/{os.path.basename(path)}"  # paths of sockets are short
        self.listener.bind(self.name)
        os.close(directory)
        os.chown(path, labs.VM_USER, labs.VM_USER)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def shrink(self):
        """QEMU's ends of connections to here get small buffers."""
        for s in descriptors_of(self.qemu):
            with s, contextlib.suppress(OSError):
                if s.family == socket.AF_UNIX and s.getpeername() == self.name:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.listener.accept()
                there = heartbeat.connect(self.behind)
                there.settimeout(None)
                self.shrink()
                with self.lock:
                    self.ends += [here, there]
                for way in ((here, there, True), (there, here, False)):
                    threading.Thread(target=self.carry, args=way, daemon=True).start()

    def carry(self, source, sink, forth):
        tail = b""
        with contextlib.suppress(OSError):
            while data := source.recv(HEADER if forth and PACKAGE[:1] in tail[-HEADER:] else PIECE):
                sink.sendall(data)
                tail = (tail + data)[-PIECE:]
                if forth and self.before and FORGET.search(tail):
                    self.before()
                    self.die()
                    return
                at = tail.find(PACKAGE) if forth else -1
                if at >= 0 and len(tail) >= at + HEADER:
                    size = struct.unpack_from(">I", tail, at + len(PACKAGE))[0]
                    if size < PACKAGE_MAX:
                        self.end(source, sink, size, size - (len(tail) - at - HEADER))
                        return
            sink.shutdown(socket.SHUT_WR)

    def end(self, source, sink, size, left):
        """`left` of the package's `size` bytes have not been read. Two pieces fit into QEMU's buffer, and four stay."""
        keep = 3 * PIECE + ((size - 1) % PIECE + 1)
        while left > keep:
            data = source.recv(left - keep)
            sink.sendall(data)
            left -= len(data)
        self.die()

    def die(self):
        self.cut.set()
        with self.lock:
            for s in self.ends:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
                s.close()
        self.listener.close()


class EdgeMove(labs.Move):
    """Its memory goes through a go-between."""

    before = None

    def connect(self, generation):
        super().connect(generation)
        path = os.path.join(self.source.dir, "m", f"{self.key}-49152-source.sock")
        self.between = GoBetween(path, self.source.children("qemu-system")[0], self.before)


class EarlyMove(EdgeMove):
    """It breaks before the package, while the source's launcher stands still."""

    def before(self):
        self.launcher = self.source.children("ferry-launcher")[0]
        os.kill(self.launcher, signal.SIGSTOP)


def break_it(lab, guest, source, kind=EdgeMove, options=None, link=LINK):
    """A move whose streams are dead: (source, target, move, watches of both)."""
    target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    lab.nodes[0].shape(link)
    m = kind(lab, guest, source, target, POST_COPY | (options or {}))
    watches = [labs.Watch(pod) for pod in (source, target)]
    assert m.between.cut.wait(120), "post-copy never began"
    return source, target, m, watches


def come_back(lab, source, target, m, watches, why="taken back"):
    """The guest runs on the source again, and never ran on the target. A QEMU that says itself that the migration failed is not
    taken back from anything: it goes on, and may be moved again."""
    assert m.settle(120) == ("failed", "failed"), (source.migration(), target.migration())
    lab.check_guest(source)
    assert labs.overlap(*watches) == 0 and not watches[1].spans, [w.spans for w in watches]
    for w in watches:
        w.stop()
    why = "" if watches[0].states[-1] == "failed" else why
    assert why in source.migration()["failureReason"], source.migration()
    types = [r["type"] for r in source.record(m.uid)]
    assert types.index("suspend") < types.index("decision"), types  # before post-copy was asked for
    m.close()
    assert target.left_in_m() == [], target.left_in_m()
    target.end()
    source.end()


def test_the_package_does_not_arrive(bin_dir):
    """QEMU 10.0.2 is left in the state "device" and says nothing more, and both libvirtds wait for each other; 10.0.13 says that it failed."""
    with labs.lab(bin_dir) as lab:
        come_back(lab, *break_it(lab, *labs.start(lab, **BUSY)))


def test_the_package_does_not_arrive_and_libvirtd_stands_still(bin_dir):
    """What is known of the target is enough to let the guest run; libvirtd is not asked."""
    with labs.lab(bin_dir) as lab:
        source, target, m, watches = break_it(lab, *labs.start(lab, **BUSY))
        daemon = source.children("libvirtd")[0]
        os.kill(daemon, signal.SIGSTOP)
        mark = lab.monitor.mark()
        labs.wait_for("the target to give up", lambda: m.phase(target) == "failed", 90)
        m.tell()
        lab.monitor.wait_beats(3, 90, mark)
        with contextlib.suppress(ProcessLookupError):  # the launcher may have ended it
            os.kill(daemon, signal.SIGCONT)
        source.wait_ready(90)
        come_back(lab, source, target, m, watches)


def test_qemu_does_not_decide(bin_dir):
    """The streams die when the guest was stopped for the switch, and before the package. Whether it runs on is for the launcher to say,
    which stands still. (QEMU 10.0 stays in "device" here and would not let it run either; others say that the migration failed, and let
    a guest run that they had stopped themselves.) The guest is Linux because its dirty pages are scattered: to name them takes QEMU
    longer than its small buffer is deep."""
    with labs.lab(bin_dir) as lab:
        lab.guest = linuxguest.need()
        source, target, m, watches = break_it(lab, *linuxguest.start(lab), kind=EarlyMove, link=LINK // 4,
                                               options={"completionTimeoutPerGiBS": 10})  # its first round takes twice as long
        try:
            labs.wait_for("QEMU's word", lambda: watches[0].states[-1:] in (["device"], ["failed"]), 60)
            ran = labs.wait_some(watches[0].running, 3)
        finally:
            os.kill(m.launcher, signal.SIGCONT)
        assert not ran, f"QEMU let the guest run: {watches[0].spans}"
        come_back(lab, source, target, m, watches, "")


scenario.need_root()
scenario.main(globals())
