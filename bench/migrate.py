#!/usr/bin/env python3
"""Moves of a real guest, from the request to its end, beside libvirt alone and libvirt through KubeVirt's proxy.

    bench/migrate.py BUILD_DIR [--part NAME]... [--rounds N] [--mbit N] [--beside DIR] [--into FILE] [--report] [--page DOCUMENT]

Parts (all of them unless told otherwise):
  small, large  a guest of 256 MiB and one of 1 GiB, idle and dirtying memory: Ferry from the migration object to its end
                (API server, controller, handlers, relays, launchers), `virsh migrate` over TCP, `virsh migrate --tls`, libvirt through
                KubeVirt's proxy; interleaved, every way once a round
  busy          a guest that dirties memory faster than the link (of at most 200 Mbit/s here) carries it: strategy `kubevirt`
                against `ferry`; the former takes minutes
  parallel      1, 2, 4 and 8 moves at once on one link: time and fairness

With --beside DIR a site of another build's programs (DIR/bin, as tests/compat/get-programs lays them out) stands beside today's, and
`small` and `large` compare it, plain virsh and today's, in turns.

Results are added to FILE (JSON lines), and the tables are made from all that FILE holds. The link is shaped by tbf, for everybody alike.
Needs root, and a Go toolchain for KubeVirt's proxy.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import end_to_end  # noqa: E402
import migrate_report  # noqa: E402
import peers  # noqa: E402
from figures import put_into  # noqa: E402
from rig import Rig  # noqa: E402

# What is not rewritten is noise, too: QEMU sends every page of it. A rest of 8 MiB makes the downtime the same bytes each time.
GUESTS = {
    "small": {"256 MiB, idle": {"memory": "256Mi", "args": "ws=8 rate=0 static=200 hb=100 fill=rand"},
              "256 MiB, dirtying": {"memory": "256Mi", "args": "ws=8 rate=24 static=200 hb=100 fill=rand"}},
    "large": {"1 GiB, idle": {"memory": "1024Mi", "args": "ws=8 rate=0 static=900 hb=100 fill=rand"},
              "1 GiB, dirtying": {"memory": "1024Mi", "args": "ws=8 rate=24 static=900 hb=100 fill=rand"}},
}
# An emulated guest dirties 60 MiB/s without being busy with nothing else; the link is slower for it.
BUSY = {"memory": "128Mi", "args": "ws=48 rate=60 static=8 hb=100 fill=rand"}
BUSY_MBIT = 200
BUSY_POLICY = {"allowPostCopy": True, "allowWorkloadDisruption": True}
CROWD = {"memory": "192Mi", "args": "ws=4 rate=1 static=120 hb=20 fill=rand"}
WAYS = ("plain", "tls", "proxy", "ferry")
TIMES = {"small": 10, "large": 10, "busy": 3, "parallel": 3}


class Bench:
    """Both rigs stand all the time, so that every way meets the same machine."""

    def __init__(self, args, out):
        self.args, self.out = args, out
        self.began = time.time_ns()  # of a run: a pid may be the same in another namespace
        self.rig = Rig(args.build.resolve(), args.mbit)
        self.site = end_to_end.EndToEnd(args.build.resolve(), args.mbit)
        self.sites = {"ferry": self.site}
        if args.beside:
            self.sites["before"] = end_to_end.EndToEnd(args.beside.resolve(), args.mbit)

    def __enter__(self):
        self.rig.__enter__()
        try:
            for site in self.sites.values():
                site.up()
        except BaseException:
            self.__exit__(RuntimeError)
            raise
        return self

    def __exit__(self, kind, *_):
        for site in self.sites.values():
            site.close(kind is not None)
        self.rig.__exit__(kind)

    def note(self, part, step, n, row, mbit=None):
        row |= {"part": part, "step": step, "round": f"{self.began}.{n}", "mbit": mbit or self.args.mbit}
        print(json.dumps(row), file=self.out, flush=True)

    def ways(self, part, n):
        for guest, options in GUESTS[part].items():
            ways = ("plain", *self.sites) if self.args.beside else WAYS
            for way in random.sample(ways, len(ways)):
                say(f"{guest}: round {n + 1}, {way}")
                row = self.sites[way].timed(guest, options) if way in self.sites else self.rig.timed(way, options)
                self.note(part, [guest, way], n, row)

    def busy(self, n):
        mbit = min(self.args.mbit, BUSY_MBIT)
        self.rig.reshape(mbit)
        for strategy in ("ferry", "kubevirt"):
            say(f"a busy guest: round {n + 1}, strategy {strategy}")
            self.note("busy", ["busy", strategy], n, self.rig.steered(BUSY, {"strategy": strategy, **BUSY_POLICY}), mbit)
        self.rig.reshape(self.args.mbit)

    def parallel(self, n):
        self.site.crowd(8, CROWD)
        for moves in (1, 2, 4, 8):
            for back in (False, True):
                say(f"{moves} at once: round {n + 1}{', back' if back else ''}")
                self.note("parallel", ["parallel", str(moves)], n, self.site.at_once(moves))
        self.site.disperse()

    def run(self, part, n):
        if part in GUESTS:
            self.ways(part, n)
        else:
            getattr(self, part)(n)


def say(text):
    print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)


def rounds_of(part, args):
    return max(1, round(TIMES[part] * args.rounds))


def measure(args, out):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # guests and site go, too
    if set(args.part) & set(GUESTS) and not args.beside:
        peers.build_kubevirt_proxy(args.build.resolve())
    with Bench(args, out) as bench:
        for n in range(max(rounds_of(p, args) for p in args.part)):
            for part in args.part:
                if n < rounds_of(part, args):
                    bench.run(part, n)
        print(file=sys.stderr)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--part", action="append", choices=TIMES)
    ap.add_argument("--rounds", type=float, default=1, help="times the default number of rounds, which is 10 of small and large, 3 of busy and parallel")
    ap.add_argument("--mbit", type=int, default=500, help="what the link carries")
    ap.add_argument("--beside", type=pathlib.Path, help="a directory with another build's programs")
    ap.add_argument("--into", type=pathlib.Path, help="file of results")
    ap.add_argument("--page", type=pathlib.Path, help="document to put the tables into")
    ap.add_argument("--report", action="store_true", help="only print the tables of FILE")
    args = ap.parse_args()
    args.part = args.part or list(TIMES)
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as tmp:
        path = args.into or pathlib.Path(tmp) / "results"
        if not args.report:
            with open(path, "a") as out:
                measure(args, out)
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            migrate_report.show([json.loads(line) for line in open(path)])
        print(text.getvalue())
        if args.page:
            put_into(args.page, "bench-migrate", text.getvalue())


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("bench/migrate.py: needs root: network namespaces and sandboxes")
    try:
        main()
    except subprocess.CalledProcessError as e:
        sys.exit(f"bench/migrate.py: {e}: {e.stderr or ''}")
