#!/usr/bin/env python3
"""How evenly the moves of one relay share a link.

    bench/fairness.py BUILD_DIR [--mbit N] [--mib N] [--runs N] [--moves 2,4,8] [--relay FILE] [--switch]

Two nodes in network namespaces, a link between them that tc limits to --mbit (token bucket, 50 ms of queue) where it leaves the
sender or, with --switch, at the port of a switch between them, which drops what does not fit; one relay on each, N moves at once of --mib each, started together or 0.2 s apart. Measured where bytes come out, while all are under way:
Jain's index of the rates ((sum x)^2 / (n * sum x^2); 1 is even, 1/n is one that has it all), and what the link carried.
Prints a Markdown table. Needs root.
"""
import argparse
import atexit
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PIECE = 256 * 1024


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(v * v for v in values)) if any(values) else 0


class Transfer:
    """One move's memory stream, from connecting to the last byte."""

    def __init__(self, move, size):
        self.near, self.far = move.connect()
        self.size, self.received, self.at, self.done = size, 0, [], None
        for s in (self.near, self.far):
            s.settimeout(300)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.send, self.receive)]

    def start(self):
        for t in self.threads:
            t.start()

    def send(self):
        piece, left = bytes(PIECE), self.size
        while left > 0:
            self.near.sendall(piece[:left])
            left -= min(left, PIECE)
        self.near.shutdown(socket.SHUT_WR)

    def receive(self):
        room = bytearray(PIECE)
        while n := self.far.recv_into(room):
            self.received += n
        self.done = time.monotonic()

    def finish(self):
        for t in self.threads:
            t.join(300)
        assert self.received == self.size, f"{self.received} of {self.size} bytes"


def one_run(lab, relays, count, size, apart_s):
    """Index and MiB/s, from when the last has started until the first is through."""
    import lab as lib
    moves = [lib.Move(lab, *relays, channels=(49152,)) for _ in range(count)]
    transfers = [Transfer(m, size) for m in moves]
    for t in transfers:
        t.start()
        time.sleep(apart_s)
    begin, before = time.monotonic(), [t.received for t in transfers]
    while not any(t.done for t in transfers):
        time.sleep(0.005)
        now, after = time.monotonic(), [t.received for t in transfers]
    rates = [(b - a) / (now - begin) for a, b in zip(before, after)]
    for t in transfers:
        t.finish()
    for m in moves:
        for relay, kind in zip(relays, ("sources", "targets")):
            relay.must("DELETE", f"/v1/{kind}/{m.key}")
    return jain(rates), sum(rates) / (1 << 20)


def shape(lib, namespace, device, mbit):
    lib.run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst", "64k",
            "latency", "50ms")


def put_switch_between(lib, lab, mbit):
    """A third namespace with a bridge: what is too much is lost there, and the senders learn it from their peers alone."""
    name = lab.names["a"] + "sw"
    lib.run("ip", "netns", "add", name)
    lib.run("ip", "-n", name, "link", "add", "switch", "up", "type", "bridge")
    addresses = {n: lib.run("ip", "-n", lab.names[n], "-o", "addr", "show", "dev", "mig", "scope", "global") for n in "ab"}
    lib.run("ip", "-n", lab.names["a"], "link", "del", "mig")
    for n in "ab":
        lib.run("ip", "-n", name, "link", "add", f"p{n}", "up", "type", "veth", "peer", "name", "mig", "netns", lab.names[n])
        lib.run("ip", "-n", name, "link", "set", f"p{n}", "master", "switch")
        for line in addresses[n].splitlines():
            lib.run("ip", "-n", lab.names[n], "addr", "add", line.split()[3], "dev", "mig", *(["nodad"] if "inet6" in line else []))
        lib.run("ip", "-n", lab.names[n], "link", "set", "mig", "up")
        shape(lib, name, f"p{n}", mbit)
    return name


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--mbit", type=int, default=500)
    ap.add_argument("--mib", type=int, default=44)
    ap.add_argument("--runs", type=int, default=3)
    ap.add_argument("--moves", default="2,4,8")
    ap.add_argument("--relay", help="another ferry-relay than BUILD_DIR's")
    ap.add_argument("--switch", action="store_true", help="the limit is not at the sender but behind it")
    args = ap.parse_args()
    os.environ["FERRY_BUILD"] = str(args.build.resolve())
    sys.path.insert(0, str(HERE.parent / "tests" / "relay"))
    import lab as lib
    if args.relay:
        lib.RELAY = args.relay
    lab = lib.Lab()
    if args.switch:
        switch = put_switch_between(lib, lab, args.mbit)
        atexit.register(lambda: subprocess.run(["ip", "netns", "del", switch], check=False))
    relays = [lab.relay(n, program=lib.RELAY).ready() for n in "ab"]
    for name in lab.names.values() if not args.switch else ():
        shape(lib, name, "mig", args.mbit)
    print(f"| moves of {args.mib} MiB over {args.mbit} Mbit/s | Jain's index | MiB/s together |\n|---|---|---|")
    for count in map(int, args.moves.split(",")):
        for apart_s in (0, 0.2):
            rows = [one_run(lab, relays, count, args.mib << 20, apart_s) for _ in range(args.runs)]
            index, rate = zip(*rows)
            print(f"| {count}, {'0.2 s apart' if apart_s else 'together'} | {statistics.median(index):.2f} [{min(index):.2f}..{max(index):.2f}] "
                  f"| {statistics.median(rate):.0f} [{min(rate):.0f}..{max(rate):.0f}] |", flush=True)
    lab.close()


main()
