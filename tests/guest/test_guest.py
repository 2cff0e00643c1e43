#!/usr/bin/env python3
"""The test guest notices what it must notice: one flipped bit or one stale page or disk block, anywhere.

Runs QEMU with its memory in a file that the test can write to. Argument: heartbeat.elf.
"""
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time

PAGE = DISK_BLOCK = 4096
MIB = 1 << 20


class Guest:
    def __init__(self, elf, directory, args, mib=64, disks=()):
        self.memory = os.path.join(directory, "memory")
        self.qmp_path = os.path.join(directory, "qmp")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg", "-m", str(mib), "-nodefaults", "-display", "none",
             "-object", f"memory-backend-file,id=ram,size={mib}M,mem-path={self.memory},share=on",
             "-machine", "pc,memory-backend=ram", "-serial", "stdio", "-kernel", elf, "-append", args,
             "-qmp", f"unix:{self.qmp_path},server=on,wait=off"] +
            [a for d in disks for a in ("-drive", f"file={d},format=raw,if=virtio,cache=writeback")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pending = b""

    def line(self, pattern, seconds=120):
        """The next line that matches; others are skipped."""
        deadline = time.monotonic() + seconds
        while True:
            while b"\n" in self.pending:
                line, self.pending = self.pending.split(b"\n", 1)
                match = re.match(pattern, line.decode().strip())
                if match:
                    return match
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"no line like {pattern!r} in {seconds} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise AssertionError(f"the guest ended before a line like {pattern!r}")
            self.pending += data

    def verify(self):
        self.process.stdin.write(b"v")
        self.process.stdin.flush()
        match = self.line(r"VERIFY pages=(\d+) bad=(\d+)$")
        return int(match[1]), int(match[2])

    def read(self, address, n):
        with open(self.memory, "rb") as f:
            f.seek(address)
            return f.read(n)

    def write(self, address, data):
        with open(self.memory, "r+b") as f:
            f.seek(address)
            f.write(data)

    def qmp(self, command, **arguments):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.qmp_path)
            f = s.makefile("rw")
            f.readline()
            for c in ("qmp_capabilities", command):
                f.write(json.dumps({"execute": c, "arguments": arguments if c == command else {}}) + "\n")
                f.flush()
                while "return" not in json.loads(f.readline()):
                    pass

    def poke(self, address, data):
        """Writes guest memory through QEMU's monitor: it has a debugger's door, which holds the guest meanwhile."""
        door = self.qmp_path + ".gdb"
        self.qmp("human-monitor-command", **{"command-line": f"gdbserver unix:{door},server=on,wait=off"})
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(door)
            for packet, answer in ((f"M{address:x},{len(data):x}:{data.hex()}", b"OK"), ("D", b"OK")):
                s.sendall(f"${packet}#{sum(packet.encode()) & 255:02x}".encode())
                got = b""
                while answer not in got:
                    part = s.recv(100)
                    check(part and b"$E" not in got, f"the debugger's door answers {got!r}")
                    got += part
                s.sendall(b"+")
        self.qmp("human-monitor-command", **{"command-line": "gdbserver none"})

    def close(self):
        self.process.kill()
        self.process.wait()


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def corruption(elf, directory):
    guest = Guest(elf, directory, "ws=16 rate=0 static=8 fill=word")
    try:
        boot = guest.line(r"BOOT magic_ok=1 memKiB=(\d+) ws=16 static=8 ")
        guest.line("READY")
        pages, bad = guest.verify()
        top = (1 << 20) + int(boot[1]) * 1024
        base = top - pages * PAGE
        check(bad == 0, f"{bad} bad pages in an untouched guest")
        check(pages > 60 * 256, f"only {pages} pages of 64 MiB are covered")
        for where, address in (("working set, first word", base),
                               ("working set, zeros", base + 7 * PAGE + 2000),
                               ("static area", base + 20 * MIB + 8),
                               ("static area, last byte of a page", base + 20 * MIB - 1),
                               ("blank area", base + 30 * MIB + 1234),
                               ("firmware area", top - 4 * MIB + 100),
                               ("last byte", top - 1)):
            before = guest.read(address, 1)
            guest.write(address, bytes([before[0] ^ 0x10]))
            check(guest.verify()[1] == 1, f"a flipped bit was not noticed: {where}")
            guest.write(address, before)
            check(guest.verify()[1] == 0, f"still bad after repair: {where}")
        print("flipped bits are noticed")
        other = guest.read(base + PAGE, PAGE)
        mine = guest.read(base, PAGE)
        guest.write(base, other)
        check(guest.verify()[1] == 1, "a page in the wrong place was not noticed")
        guest.write(base, bytes(PAGE))
        check(guest.verify()[1] == 1, "a missing page was not noticed")
        guest.write(base, mine)
        guest.qmp("system_powerdown")
        guest.line("BYE")
        check(guest.process.wait(20) == 0, "QEMU did not end well after the power button")
    finally:
        guest.close()


def monitor(elf, directory):
    guest = Guest(elf, directory, "ws=8 rate=0 static=8 fill=half")
    try:
        boot = guest.line(r"BOOT magic_ok=1 memKiB=(\d+) ws=8 static=8 rate=0 noise=512 ")
        guest.line("READY")
        pages, bad = guest.verify()
        check(bad == 0, f"{bad} bad pages in an untouched guest")
        address = (1 << 20) + int(boot[1]) * 1024 - pages * PAGE + 3 * PAGE + 3000
        check(guest.read(address, 1) == b"\0", "the second half of a page is not blank")
        guest.poke(address, b"\x01")
        check(guest.verify()[1] == 1, "a byte written through QEMU's monitor was not noticed")
        guest.poke(address, b"\0")
        check(guest.verify()[1] == 0, "still bad after repair")
        print("a byte written through QEMU's monitor is noticed")
    finally:
        guest.close()


def disks(elf, directory):
    """Two disks of different sizes; one flipped byte, one stale block, one block in the wrong place."""
    images = [os.path.join(directory, name) for name in ("one.img", "two.img")]
    for path, mib in zip(images, (3, 8)):
        with open(path, "wb") as f:
            f.truncate(mib * MIB)
    guest = Guest(elf, directory, "ws=1 rate=0 disk=4 drate=0 hb=50", disks=images)
    try:
        guest.line(r"BOOT .* disks=2 blocks=1536$")
        guest.line("READY")
        check(guest.verify()[1] == 0, "bad blocks on untouched disks")
        for image, at in ((images[0], 0), (images[0], 3 * MIB - 1), (images[1], MIB + 77)):
            with open(image, "r+b") as f:
                f.seek(at)
                before = f.read(1)
                for wrong, data in ((1, bytes([before[0] ^ 4])), (0, before)):
                    f.seek(at)
                    f.write(data)
                    f.flush()
                    check(guest.verify()[1] == wrong, f"byte {at} of {os.path.basename(image)}: not {wrong} bad blocks")
        with open(images[1], "r+b") as f:
            f.write(open(images[0], "rb").read(DISK_BLOCK))
            f.flush()
        check(guest.verify()[1] == 1, "a block of another disk was not noticed")
        print("flipped and misplaced bytes on disks are noticed")
    finally:
        guest.close()
    guest = Guest(elf, directory, "ws=1 rate=0 disk=1 drate=4096 hb=50", disks=images[:1])
    try:
        guest.line("READY")
        guest.line(r"HB \d{3,} .* bad=0$")
        check(guest.verify()[1] == 0, "bad blocks on a busy disk")
        deadline = time.monotonic() + 20
        with open(images[0], "r+b", buffering=0) as f:
            old = f.read(DISK_BLOCK)
            while os.pread(f.fileno(), DISK_BLOCK, 0) == old:
                check(time.monotonic() < deadline, "the disk is not rewritten")
            os.pwrite(f.fileno(), old, 0)  # right after a rewrite: the next one is a quarter of a second away
        guest.line(r"CORRUPT disk=0 block=0$")
        guest.line(r"HB \d+ .* bad=1$")
        print("a stale block is noticed before it is rewritten")
    finally:
        guest.close()


def typing(elf, directory):
    """People press keys on its console: only a whole word, alone on a line, ends it."""
    guest = Guest(elf, directory, "ws=1 rate=0 hb=50")
    try:
        guest.line("READY")
        for text in (b"q", b"q\r", b"\x03\x04\r", b"poweroff", b"f\r", b"xpoweroff\n", b"power\noff\n", b"poweroff now\n"):
            guest.process.stdin.write(text)
            guest.process.stdin.flush()
            check(guest.verify()[1] == 0, f"no answer after {text!r}")
            guest.process.stdin.write(b"\n")
        guest.process.stdin.write(b"poweroff\r")
        guest.process.stdin.flush()
        guest.line("BYE")
        check(guest.process.wait(20) == 0, "QEMU did not end well after the word")
        print("a single key does not power it off")
    finally:
        guest.close()


def staleness(elf, directory):
    guest = Guest(elf, directory, "ws=4 rate=40 hb=50 fill=rand")
    try:
        boot = guest.line(r"BOOT magic_ok=1 memKiB=(\d+) ")
        guest.line("READY")
        pages, bad = guest.verify()
        check(bad == 0, f"{bad} bad pages in a busy guest")
        base = (1 << 20) + int(boot[1]) * 1024 - pages * PAGE
        first = int(guest.line(r"HB \d+ t=\d+ gen=(\d+) pg=\d+ bad=0$")[1])
        old = guest.read(base + 100 * PAGE, PAGE)
        while int(guest.line(r"HB \d+ t=\d+ gen=(\d+) pg=\d+ bad=0$")[1]) < first + 2:
            pass
        guest.write(base + 100 * PAGE, old)
        guest.line(r"CORRUPT working page=100 ")
        guest.line(r"HB \d+ t=\d+ gen=\d+ pg=\d+ bad=1$")
        print("a stale page is noticed before it is rewritten")
    finally:
        guest.close()


def main():
    for case in (corruption, monitor, disks, typing, staleness):
        with tempfile.TemporaryDirectory(prefix="ferry-guest-") as directory:
            case(sys.argv[1], directory)


main()
