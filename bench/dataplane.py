#!/usr/bin/env python3
"""Moves of a real guest over a shaped link: libvirt by itself, through socat, and through Ferry.

    bench/dataplane.py BUILD_DIR [--part NAME]... [--runs N] [--mbit N] [--delay MS] [--into FILE]

Parts (all of them unless told otherwise):
  transport   the same guest, in the same sandboxes, by `virsh migrate` over TCP, by `virsh migrate --tls`, by libvirt
              through socat, and by ferry-launchers through ferry-relays; interleaved, every way once a round
  queue       what a relay pair holds while it is saturated, beside the link's bandwidth-delay product
  converge    a guest that dirties memory faster than the link carries it: strategy `kubevirt` against `ferry`; takes
              two to five minutes for each run of the former
  plan        what was planned for an idle, a steady and a heavy guest, and what then happened

Results are added to FILE (JSON lines), and the tables are made from all that FILE holds: long measurements can be made in
several short runs. Two network namespaces are the nodes; `tc` shapes what the source sends. Needs root.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from figures import ratios, spread  # noqa: E402
from rig import MIB, Link, Rig  # noqa: E402

# 64 MiB of noise, of which 4 MiB are rewritten all the time: one long round, then a rest of 4 MiB. So the downtime is
# made of the same bytes in each run.
GUEST = {"memory": "128Mi", "args": "ws=4 rate=24 static=60 hb=100 fill=rand"}
BUSY = {"memory": "128Mi", "args": "ws=48 rate=60 static=8 hb=100 fill=rand"}
PLANNED = {
    "idle": {"memory": "128Mi", "args": "ws=4 rate=0 static=60 hb=100 fill=rand"},
    "steady": {"memory": "128Mi", "args": "ws=48 rate=8 static=16 hb=100 fill=rand"},
    "heavy": BUSY,
}


class Bench(Rig):
    def transport(self, way):
        return self.timed(way, GUEST)

    def queue(self):
        """Bytes that QEMU has handed over and that have not come out yet, while a guest is moved."""
        held, windows, rtts = [], [], []

        def look():
            # the target first: what passes between the two looks makes the figure larger, not smaller
            out = {s["move"]: s for s in self.lab.nodes[1].relay_ok("GET", "/v1/streams")["streams"] if s["channel"] == 49152}
            for s in self.lab.nodes[0].relay_ok("GET", "/v1/streams")["streams"]:
                if s["channel"] == 49152 and s["move"] in out and s["bytesOut"] > 4 * MIB:
                    held.append(s["bytesOut"] - out[s["move"]]["bytesIn"])
                    windows.append(out[s["move"]]["windowBytes"])
                    rtts.append(s["rttUs"])
            time.sleep(0.02)

        with self.pods(GUEST) as (guest, source, target):
            mark, link = self.lab.monitor.mark(), Link(source.node.relay.pid)
            self.ferry(guest, source, target, meanwhile=look)
            sent, data = link.stop()
            self.lab.monitor.wait_beats(3, 60)
            rate = sent / data
            row = {"held": statistics.median(held), "held_max": max(held), "window": statistics.median(windows),
                   "rtt_loaded_ms": statistics.median(rtts) / 1000, "rate": rate, "looks": len(held),
                   "gap": self.lab.monitor.worst_gap(mark) * 1000}
            self.check(mark)
            return row

    def converge(self, strategy, allowed):
        return self.steered(BUSY, {"strategy": strategy, **ALLOWED[allowed]})

    def plan(self, kind):
        options = {"allowPostCopy": True, "allowWorkloadDisruption": True, "pathBytesPerS": self.path_rate()}
        with self.pods(PLANNED[kind]) as (guest, source, target):
            plan = source.ok("POST", "/v1/plan", {"options": options})
            mark = self.lab.monitor.mark()
            seconds, _ = self.ferry(guest, source, target, options)
            self.lab.monitor.wait_beats(3, 60)
            end = source.migration()
            samples = [r for r in source.record(self.last.uid) if r["type"] == "sample"]
            row = {"plan": plan, "total": seconds, "gap": self.lab.monitor.worst_gap(mark) * 1000, "mode": end["mode"],
                   "downtime": end.get("downtimeMs", -1), "rounds": max(s["iteration"] for s in samples),
                   "path": options["pathBytesPerS"]}
            self.check(mark)
            return row


# ---- what is done, and the tables -------------------------------------------------------------------

WAYS = ("plain", "tls", "socat", "ferry")
ALLOWED = {
    "post-copy": {"allowPostCopy": True, "allowWorkloadDisruption": True},
    "pause": {"allowWorkloadDisruption": True},
    "nothing": {},
}


def steps(part, args):
    """What one round of a part consists of."""
    if part == "transport":
        order = [("transport", way) for way in WAYS]
        random.shuffle(order)
        return order
    if part == "queue":
        return [("queue",)]
    if part == "converge":
        return [("converge", strategy, allowed) for allowed in args.allow.split(",") for strategy in args.strategies.split(",")]
    return [("plan", kind) for kind in PLANNED]


def print_transport(rows):
    rounds = len({r["round"] for r in rows})
    print(f"\n### The same guest four ways, {rows[0]['mbit']} Mbit/s, {rounds} interleaved runs\n")
    print("| | total s | data phase s | ratio | reported downtime ms | heartbeat gap ms | ratio | MiB on the link | CPU of the transport s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for way in WAYS:
        mine = [r for r in rows if r["step"][1] == way]
        col = lambda key: [r[key] for r in mine]
        print(f"| {way} | {spread(col('total'), 2)} | {spread(col('data'), 2)} | {spread(ratios(rows, way, 'data'), 2)} "
              f"| {spread(col('downtime'))} | {spread(col('gap'))} | {spread(ratios(rows, way, 'gap'), 2)} "
              f"| {spread([b / MIB for b in col('bytes')], 1)} | {spread(col('cpu'), 2)} |")


def print_queue(rows):
    print("\n### Bytes held by a relay pair while the link is full\n")
    print("| link | delay, both ways ms | bandwidth-delay product KiB | window KiB | held KiB, median | most | the most, as time on the link ms |\n|---|---|---|---|---|---|---|")
    for key in sorted({(r["mbit"], r["delay"]) for r in rows}):
        mine = [r for r in rows if (r["mbit"], r["delay"]) == key]
        product = statistics.median(r["rate"] for r in mine) * key[1] * 2 / 1000
        most = [r["held_max"] / 1024 for r in mine]
        print(f"| {key[0]} Mbit/s | {key[1] * 2:g} | {product / 1024:.0f} | {spread([r['window'] / 1024 for r in mine])} "
              f"| {spread([r['held'] / 1024 for r in mine])} | {spread(most)} | {spread([r['held_max'] / r['rate'] * 1000 for r in mine])} |")


def print_converge(rows):
    print(f"\n### A guest that dirties 60 MiB/s, on {rows[0]['mbit']} Mbit/s\n")
    print("| allowed | strategy | runs | total s | end | heartbeat gap ms | time, of kubevirt's |\n|---|---|---|---|---|---|---|")
    for allowed in ALLOWED:
        of = {s: [r for r in rows if r["step"][1:] == [s, allowed]] for s in ("kubevirt", "ferry")}
        for strategy, mine in of.items():
            if not mine:
                continue
            base = statistics.median(r["total"] for r in of["kubevirt"]) if of["kubevirt"] else 0
            ratio = f"{statistics.median(r['total'] for r in mine) / base:.2f}" if base else "-"
            print(f"| {allowed} | {strategy} | {len(mine)} | {spread([r['total'] for r in mine], 1)} | {', '.join(sorted({r['end'] for r in mine}))} "
                  f"| {spread([r['gap'] for r in mine])} | {ratio} |")


def print_plan(rows):
    print("\n### Planned, and what then happened\n")
    print("| guest | sampled dirty rate MiB/s | planned s | took s | off by | planned rounds | rounds | planned downtime ms | heartbeat gap ms |\n|---|---|---|---|---|---|---|---|---|")
    for kind in PLANNED:
        mine = [r for r in rows if r["step"][1] == kind]
        if not mine:
            continue
        of = lambda field: [r["plan"].get("expected", r["plan"]["low"])[field] for r in mine]
        off = [r["plan"].get("expected", r["plan"]["low"])["totalMs"] / 1000 / r["total"] * 100 - 100 for r in mine]
        print(f"| {kind} | {spread([r['plan']['dirtyBytesPerS'] / MIB for r in mine])} | {spread([ms / 1000 for ms in of('totalMs')], 1)} "
              f"| {spread([r['total'] for r in mine], 1)} | {statistics.median(off):+.0f} % [{min(off):+.0f}..{max(off):+.0f}] "
              f"| {spread(of('rounds'))} | {spread([r['rounds'] for r in mine])} | {spread(of('downtimeMs'))} | {spread([r['gap'] for r in mine])} |")


PARTS = {"transport": print_transport, "queue": print_queue, "converge": print_converge, "plan": print_plan}


def measure(args, out):
    with Bench(args.build.resolve(), args.mbit, args.delay) as bench:
        for part in args.part:
            for n in range(args.converge_runs if part == "converge" else args.runs):
                for step in steps(part, args):
                    print(f"\r{part}: round {n + 1} {' '.join(step[1:]):<20}", end="", file=sys.stderr)
                    row = getattr(bench, step[0])(*step[1:])
                    row |= {"part": part, "step": step, "round": f"{os.getpid()}.{n}", "mbit": args.mbit, "delay": args.delay}
                    print(json.dumps(row), file=out, flush=True)
            print(file=sys.stderr)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--part", action="append", choices=PARTS)
    ap.add_argument("--runs", type=int, default=10, help="rounds of each part")
    ap.add_argument("--converge-runs", type=int, default=1, help="rounds of part converge, which takes long")
    ap.add_argument("--mbit", type=int, default=200, help="what the link carries")
    ap.add_argument("--delay", type=float, default=0, help="milliseconds that the link takes, one way")
    ap.add_argument("--allow", default="post-copy,pause", help="of part converge: post-copy, pause, nothing")
    ap.add_argument("--strategies", default="kubevirt,ferry", help="of part converge")
    ap.add_argument("--into", type=pathlib.Path, help="file of results")
    ap.add_argument("--report", action="store_true", help="only print the tables of FILE")
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as tmp:
        path = args.into or pathlib.Path(tmp) / "results"
        if not args.report:
            args.part = args.part or list(PARTS)
            with open(path, "a") as out:
                measure(args, out)
        rows = [json.loads(line) for line in open(path)]
    for part, show in PARTS.items():
        mine = [r for r in rows if r["part"] == part]
        if mine:
            show(mine)


main()
