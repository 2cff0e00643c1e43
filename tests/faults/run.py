#!/usr/bin/env python3
"""Breaks one thing at one instant of a move, and looks from outside at what becomes of the guest.

    tests/faults/run.py BIN_DIR [--seed N] [--phase P]... [--fault F]... [--into FILE] [--page FILE]

Without --phase and --fault all cells of the table are run (docs/faults.md says what they are), without those that have
passed in FILE already. The same seed runs the same cells in the same order and breaks at the same places. --short runs
the few cells that are part of `make check`. With --page the page is made from FILE; nothing is run when BIN_DIR is `-`.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import signal
import sys
import time
import traceback
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../lib")]
import cells  # noqa: E402
import complaints  # noqa: E402
import move as moves  # noqa: E402
import strike  # noqa: E402
import table  # noqa: E402
from faultsite import FaultSite  # noqa: E402
from runners import overlap  # noqa: E402
from waiting import wait_for, wait_some  # noqa: E402

SHORT = (("Pending", "kill controller"), ("PreparingTarget", "kill target-handler"), ("Running", "kill target-relay"),
         ("Running", "link 2 s"), ("Switch-over", "kill source-libvirtd"), ("Finishing", "kill source-launcher"))
GUESTS = {"calm": "ws=4 rate=2 static=24 hb=20 fill=rand", "busy": "ws=40 rate=60 static=4 hb=20 fill=rand"}
END_S, CLEAN_S, BEATS = 660, 90, 20


def guest(name, kind):
    boot = {"kernelArgs": GUESTS[kind], "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"domain": {"memory": {"guest": "96Mi"}, "firmware": {"kernelBoot": boot}, "devices": {}}}}


class Stage:
    """A site with one guest, used for cell after cell as long as it is clean."""

    def __init__(self, bin_dir):
        self.site = FaultSite(bin_dir)
        try:
            self.site.up()
        except BaseException:
            self.site.print_logs()
            self.site.close(True)
            raise
        self.vm, self.kind, self.monitor, self.read = None, None, None, {}

    def close(self):
        if self.monitor:
            self.monitor.stop()
        self.site.close(False)

    def prepare(self, kind):
        """A guest of that kind runs, on a link of the usual speed."""
        self.site.set_clock(0)
        self.site.shape(moves.COPY_MBIT)
        if self.vm and self.kind == kind:
            return
        self.remove()
        self.vm, self.kind = f"vm-{uuid.uuid4().hex[:6]}", kind
        moves.sure(lambda: self.site.api.create("virtualmachineinstances", guest(self.vm, kind)), "the guest to be made")
        self.monitor = self.site.monitor()
        self.monitor.wait_beats(BEATS, 180)
        wait_for("the guest to be movable", self.movable, 120)

    def vmi(self):
        try:
            return self.site.api.vmi(self.vm) or {}
        except (OSError, AssertionError, ValueError):
            return {}

    def movable(self):
        return any(c["type"] == "LiveMigratable" and c["status"] == "True" for c in self.vmi().get("status", {}).get("conditions", []))

    def remove(self):
        """The guest and all of it go; sentences about what does not."""
        if not self.vm:
            return []
        path = self.site.api.path("virtualmachineinstances", self.vm)
        moves.sure(lambda: self.site.api.call("DELETE", path), "the guest to be deleted")
        self.monitor.stop()
        gone = lambda: self.site.api.vmi(self.vm) is None and not self.site.sandboxes()
        try:
            moves.sure(lambda: wait_for("the guest to go", gone, 30), "the guest to go", CLEAN_S)
        except AssertionError:
            return ["the deleted guest"]
        self.vm = None
        return []

    def complaints(self):
        """What sanitizers and assertions have said since the last time."""
        found = []
        for path in glob.glob(os.path.join(self.site.root, "log/*.log")) + glob.glob(os.path.join(self.site.root, "node*/run/ferry/pods/*/log")):
            with contextlib.suppress(OSError), open(path, errors="replace") as f:
                f.seek(self.read.get(path, 0))
                found += [f"{os.path.basename(path)}: {line}" for line in complaints.in_text(f.read())]
                self.read[path] = f.tell()
        return found

    def leftovers(self, guests):
        """What a move that is over has left; sentences. `guests`: how many run."""
        site, found = self.site, []
        boxes = site.sandboxes()
        if len(boxes) != guests:
            found.append(f"{len(boxes)} sandboxes, not {guests}: {[[c[:60] for c in b] for b in boxes.values()]}")
        found += [f"socket {os.path.join(d, 'm', s)}" for d in site.pod_dirs() for s in os.listdir(os.path.join(d, "m"))
                  if os.path.isdir(os.path.join(d, "m"))]
        found += site.listeners()
        try:
            pods = [p["metadata"]["name"] for p in site.api.list("pods") if p.get("status", {}).get("phase") in ("Pending", "Running")]
        except (OSError, AssertionError, ValueError) as e:
            return found + [f"the list of pods: {e}"]
        return found + ([f"pods {pods}"] if len(pods) != guests else [])


def look(stage, m, mark, took):
    """The end of the move, as it is seen from outside."""
    seen = cells.Seen()
    end = time.monotonic() + END_S
    while not m.over() and time.monotonic() < end:
        time.sleep(0.1)
    status = m.status()
    seen.phase, took["end"] = status.get("phase", ""), time.monotonic()
    state = status.get("migrationState", {})
    seen.reason = state.get("failureReason", "")
    with contextlib.suppress(AssertionError):
        stage.monitor.wait_beats(BEATS, 60 if running(m) else 3)
    alive = running(m)
    with contextlib.suppress(AssertionError):
        wait_for("nothing to be left", lambda: not stage.leftovers(len(alive)), CLEAN_S, 0.5)
    seen.leftovers = stage.leftovers(len(alive))
    seen.runs_on = running(m)
    seen.both_s = overlap(m.source.watch, m.target.watch)
    if seen.runs_on:
        look_at_guest(stage, seen, mark)
        wait_some(lambda: object_node(stage, m), 30)
        seen.object_node = object_node(stage, m)
    else:
        wait_some(lambda: stage.vmi().get("status", {}).get("phase") == "Failed", 60)
    seen.vmi_phase = stage.vmi().get("status", {}).get("phase", "")
    seen.complaints = stage.complaints()
    return seen


def running(m):
    return tuple(s for s in cells.SIDES if m.side(s).watch.running())


def object_node(stage, m):
    node = stage.vmi().get("status", {}).get("nodeName")
    return {m.source.node: "source", m.target.node: "target"}.get(node, "")


def look_at_guest(stage, seen, mark):
    try:
        stage.monitor.wait_beats(BEATS, 60)
        _, seen.bad_pages = stage.monitor.verify(120)
    except (AssertionError, OSError):
        seen.silent = True
    seen.bad_pages = max(seen.bad_pages, stage.monitor.bad_pages())
    seen.broken = stage.monitor.broken_sequence(mark)


def reason_code(reason):
    match = re.match(r"([A-Z][A-Za-z]+):", reason)
    return match[1] if match else reason[:60]


def spans(m, took):
    """When each side's vCPUs ran, in seconds from the fault's end."""
    zero = time.time() - time.monotonic() + took["fault"]
    at = lambda t: "now" if t is None else round(t - zero, 3)
    return {side: [(at(begin), at(end)) for begin, end in m.side(side).watch.spans[-3:]] for side in cells.SIDES}


def run_cell(stage, phase, name, seed):
    """A row of results."""
    fault, dice = cells.FAULTS[name], cells.dice(seed, phase, name)
    stage.prepare(cells.group(phase))
    mark, took = stage.monitor.mark(), {"begin": time.monotonic()}
    m = moves.Move(stage.site, stage.vm, f"cell-{uuid.uuid4().hex[:8]}")
    try:
        m.configure()
        hold = moves.HOLDS[phase](m, dice)
        time.sleep(dice.uniform(0, 0.3))
        strike.through(m, fault, hold)
        took["fault"] = time.monotonic()
        stage.site.shape(moves.FAST_MBIT)
        seen = look(stage, m, mark, took)
    finally:
        m.close()
    how, wrong = cells.judge(phase, fault, seen)
    if how == cells.LOST and not wrong:  # else all is left for the logs to be looked at
        wrong += [f"left behind: {x}" for x in stage.remove()]
    if wrong:
        wrong.append(f"when vCPUs ran: {spans(m, took)}; states: source {m.source.watch.states}, target {m.target.watch.states}")
    return {"outcome": how, "code": reason_code(seen.reason) if seen.phase == "Failed" else "",
            "reason": seen.reason, "wrong": wrong, "seconds": round(took["end"] - took["begin"], 1),
            "after": round(took["end"] - took["fault"], 1)}


class Runner:
    """Cell after cell, on a new site when the last one is not clean any more."""

    def __init__(self, args):
        self.args, self.stage = args, None

    def drop(self, title=None):
        if self.stage and title:
            directory = os.path.join(os.path.dirname(os.path.abspath(self.args.bin_dir)), "faults-logs")
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, title.replace(" ", "-") + ".txt"), "w") as f, contextlib.redirect_stdout(f):
                self.stage.site.print_logs(400)
        if self.stage:
            self.stage.close()
        self.stage = None

    def cell(self, phase, fault):
        row = {"phase": phase, "fault": fault, "seed": self.args.seed, "outcome": "", "code": "", "reason": "", "seconds": 0, "after": 0}
        for attempt in (1, 2, 3):
            try:
                self.stage = self.stage or Stage(self.args.bin_dir)
                row |= run_cell(self.stage, phase, fault, self.args.seed)
                break
            except (moves.NotReached, strike.NoVictim) as e:
                print(f"       {phase}, {fault}: not reached ({e})", flush=True)
                self.drop(f"{phase} {fault} not-reached")
                row["wrong"] = [f"the phase was not reached in {attempt} attempts"]
            except Exception as e:  # pylint: disable=broad-except
                traceback.print_exc(file=sys.stdout)
                row["wrong"] = [f"could not be run: {e}"]
                break
        if row["wrong"]:
            self.drop(f"{phase} {fault}")
        return row


def chosen(args, rows):
    part, of = map(int, args.part.split("/"))
    if args.short:
        return list(SHORT)[part - 1 :: of]
    wanted = [c for c in cells.all_cells() if (not args.phase or c[0] in args.phase) and (not args.fault or c[1] in args.fault)]
    done = set() if args.again else table.passed(rows)
    return [c for i, c in enumerate(cells.order([c for c in wanted if c not in done], args.seed)) if i % of == part - 1]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("bin_dir", help="directory with the programs, or - to run nothing")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--phase", action="append", choices=cells.PHASES)
    ap.add_argument("--fault", action="append", choices=cells.FAULTS)
    ap.add_argument("--into", help="file to which results are added, and from which the page is made")
    ap.add_argument("--page", help="file to write the page to")
    ap.add_argument("--short", action="store_true", help="only a few cells")
    ap.add_argument("--again", action="store_true", help="also what has passed already")
    ap.add_argument("--part", default="1/1", metavar="I/N", help="the I-th of N shares of the cells, for runs side by side")
    ap.add_argument("--limit", type=float, default=0, metavar="MINUTES", help="begin no cell after that time")
    args = ap.parse_args()
    failed = 0 if args.bin_dir == "-" else run_all(args)
    if args.page:
        with open(args.page, "w") as f:
            f.write(table.page(table.read(args.into)))
    sys.exit(1 if failed else 0)


def run_all(args):
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        sys.exit(77)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the site goes, too
    todo = chosen(args, table.read(args.into))
    runner, failed, begun = Runner(args), 0, time.monotonic()
    try:
        for n, (phase, fault) in enumerate(todo, 1):
            if args.limit and time.monotonic() - begun > args.limit * 60:
                print(f"{len(todo) - n + 1} cells are left for another run")
                break
            row = runner.cell(phase, fault)
            failed += bool(row["wrong"])
            print(f"{'FAILED' if row['wrong'] else 'ok':6} {n}/{len(todo)} {phase}, {fault}: {row['outcome']}"
                  f"{' (' + row['code'] + ')' if row['code'] else ''} in {row['seconds']} s, {row['after']} s after the fault"
                  f"{''.join(chr(10) + '       ' + w for w in row['wrong'])}", flush=True)
            if args.into:
                with open(args.into, "a") as f:
                    f.write(json.dumps(row) + "\n")
    finally:
        runner.drop()
    print(f"{failed} failed")
    return failed


main()
