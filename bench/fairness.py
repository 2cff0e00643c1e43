#!/usr/bin/env python3
"""How evenly the moves of one relay share a link.

    bench/fairness.py BUILD_DIR [--mbit N] [--mib N] [--runs N] [--moves 2,4,8] [--relay FILE]

Two nodes in network namespaces, a link between them that tc limits to --mbit (token bucket, 50 ms of queue), one relay on
each, N moves at once of --mib each, started together or 0.2 s apart. Measured where bytes come out, while all are under way:
Jain's index of the rates ((sum x)^2 / (n * sum x^2); 1 is even, 1/n is one that has it all), and what the link carried.
Prints a Markdown table. Needs root.
"""
import argparse
import os
import pathlib
import socket
import statistics
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


def limit(lab, mbit):
    import lab as lib
    for name in lab.names.values():
        lib.run("tc", "-n", name, "qdisc", "replace", "dev", "mig", "root", "tbf", "rate", f"{mbit}mbit", "burst", "64k",
                "latency", "50ms")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--mbit", type=int, default=500)
    ap.add_argument("--mib", type=int, default=44)
    ap.add_argument("--runs", type=int, default=3)
    ap.add_argument("--moves", default="2,4,8")
    ap.add_argument("--relay", help="another ferry-relay than BUILD_DIR's")
    args = ap.parse_args()
    os.environ["FERRY_BUILD"] = str(args.build.resolve())
    sys.path.insert(0, str(HERE.parent / "tests" / "relay"))
    import lab as lib
    if args.relay:
        lib.RELAY = args.relay
    lab = lib.Lab()
    relays = [lab.relay(n, program=lib.RELAY).ready() for n in "ab"]
    limit(lab, args.mbit)
    print(f"| moves of {args.mib} MiB over {args.mbit} Mbit/s | Jain's index | MiB/s together |\n|---|---|---|")
    for count in map(int, args.moves.split(",")):
        for apart_s in (0, 0.2):
            rows = [one_run(lab, relays, count, args.mib << 20, apart_s) for _ in range(args.runs)]
            index, rate = zip(*rows)
            print(f"| {count}, {'0.2 s apart' if apart_s else 'together'} | {statistics.median(index):.2f} [{min(index):.2f}..{max(index):.2f}] "
                  f"| {statistics.median(rate):.0f} [{min(rate):.0f}..{max(rate):.0f}] |", flush=True)
    lab.close()


main()
