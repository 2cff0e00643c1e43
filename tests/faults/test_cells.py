#!/usr/bin/env python3
"""The table's own rules: which cells there are, what is right in them, and what the page says."""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../lib")]
import cells  # noqa: E402
import scenario  # noqa: E402
import table  # noqa: E402


def seen(**fields):
    """A guest that has moved, as it should be seen."""
    good = {"phase": "Succeeded", "vmi_phase": "Running", "object_node": "target", "runs_on": ("target",)}
    return cells.Seen(**{**good, **fields})


STAYED = {"phase": "Failed", "reason": "LibvirtError: x", "object_node": "source", "runs_on": ("source",)}
LOST = {"phase": "Failed", "reason": "SourceLost: x", "vmi_phase": "Failed", "runs_on": ()}

# phase, fault, what was seen, outcome, how many things are wrong
JUDGED = (
    ("Running", "kill controller", {}, "moved", 0),
    ("Running", "kill target-relay", STAYED, "stayed", 0),
    ("Running", "kill target-filter", STAYED, "stayed", 0),
    ("Post-copy", "kill target-filter", STAYED, "stayed", 1),
    ("Running", "kill source-qemu", LOST, "lost", 0),
    ("Switch-over", "kill source-qemu", {}, "moved", 0),
    ("Switch-over", "kill source-qemu", LOST, "lost", 0),
    ("Switch-over", "kill source-qemu", STAYED, "stayed", 1),
    ("Switch-over", "kill target-qemu", LOST, "lost", 1),
    ("Confirmation", "kill source-qemu", {}, "moved", 0),
    ("Confirmation", "kill source-qemu", LOST, "lost", 1),
    ("Confirmation", "kill target-qemu", LOST, "lost", 0),
    ("Confirmation", "kill target-qemu", STAYED, "stayed", 1),
    ("Confirmation", "link beyond", STAYED, "stayed", 1),
    ("Confirmation", "kill source-libvirtd", {"runs_on": ("source", "target"), "both_s": 0.01}, "moved", 2),
    ("Running", "kill target-qemu", STAYED, "stayed", 0),
    ("Running", "kill target-qemu", LOST, "lost", 1),
    ("Post-copy", "kill target-qemu", LOST, "lost", 0),
    ("Post-copy", "kill source-relay", STAYED, "stayed", 1),
    ("Post-copy", "kill source-relay", LOST, "lost", 1),
    ("Running", "kill source-qemu", {**LOST, "vmi_phase": "Running"}, "lost", 1),
    ("Running", "kill controller", STAYED, "stayed", 1),
    ("Pending", "stop source-handler", STAYED, "stayed", 1),
    ("Running", "kill source-launcher", STAYED, "stayed", 0),
    ("Running", "link 30 s", STAYED, "stayed", 1),
    ("Running", "link beyond", STAYED, "stayed", 0),
    ("PreparingTarget", "link 30 s", STAYED, "stayed", 0),
    ("Running", "clock forward", STAYED, "stayed", 1),
    ("Running", "link 2 s", {"both_s": 0.001}, "moved", 1),
    ("Running", "link 2 s", {"runs_on": ("source", "target"), "both_s": 1.0}, "moved", 2),
    ("Running", "disk full", {**STAYED, "reason": ""}, "stayed", 1),
    ("Running", "link 2 s", {"phase": "Running"}, "moved", 2),
    ("Running", "link 2 s", {"phase": ""}, "moved", 2),
    ("Running", "disk full", {**STAYED, "phase": "Succeeded"}, "stayed", 1),
    ("Running", "link 2 s", {"object_node": "source"}, "moved", 1),
    ("Running", "link 2 s", {"silent": True}, "moved", 1),
    ("Running", "link 2 s", {"broken": [(1, 3)]}, "moved", 1),
    ("Running", "disk full", {"broken": [(1, 3)]}, "moved", 0),
    ("Running", "disk full", {"broken": [(1, 3), (3, 3)]}, "moved", 1),
    ("Running", "link 2 s", {"bad_pages": 1}, "moved", 1),
    ("Running", "link 2 s", {"leftovers": ["a", "b"]}, "moved", 2),
    ("Running", "link 2 s", {"complaints": ["a"]}, "moved", 1),
)


def test_judge(_):
    for phase, fault, fields, how, wrong in JUDGED:
        got = cells.judge(phase, cells.FAULTS[fault], seen(**fields))
        assert (got[0], len(got[1])) == (how, wrong), (phase, fault, fields, got)


def test_every_phase_meets_every_fault(_):
    there = set(cells.all_cells())
    assert len(cells.PHASES) * len(cells.FAULTS) == 370
    for phase in cells.PHASES:
        for name, fault in cells.FAULTS.items():
            assert ((phase, name) in there) == (cells.missing(phase, fault) is None), (phase, name)
            assert cells.may_end(phase, fault), (phase, name)
    assert ("Pending", "kill target-qemu") not in there and ("Running", "kill target-qemu") in there


def test_order(_):
    everything = cells.all_cells()
    first = cells.order(everything, 1)
    assert first == cells.order(everything, 1) != cells.order(everything, 2) and sorted(first) == sorted(everything)
    groups = [cells.group(p) for p, _ in first]
    assert sum(a != b for a, b in zip(groups, groups[1:])) == 1, "guests change more often than needed"
    assert cells.dice(1, "Running", "x").random() == cells.dice(1, "Running", "x").random() != cells.dice(2, "Running", "x").random()


def result(phase, fault, how="moved", code="", wrong=()):
    return {"phase": phase, "fault": fault, "outcome": how, "code": code, "wrong": list(wrong)}


def test_page(_):
    rows = [result("Running", "link 2 s"), result("Running", "link 2 s"),
            result("Running", "kill target-relay", "stayed", "LibvirtError"),
            result("Running", "kill api"), result("Running", "kill api", wrong=["two | guests"]),
            result("Running", "stop api", wrong=["bad"]), result("Running", "stop api")]
    assert table.passed(rows) == {("Running", "link 2 s"), ("Running", "kill target-relay"), ("Running", "stop api")}
    text = table.page(rows)
    column = 2 + list(cells.PHASES).index("Running")
    row = lambda name: next(l for l in text.splitlines() if l.startswith(f"| {name} |")).split("|")[column].strip()
    assert row("link 2 s") == "moved ×2" and row("kill target-relay") == "stayed (LibvirtError)"
    assert row("kill api") == "**two / guests**" and row("stop api") == "moved" and row("link 30 s") == ""
    assert "3 of 340 cells" in text and "has not been run" in text
    assert next(l for l in text.splitlines() if l.startswith("| kill target-qemu |")).split("|")[2].strip() == "–"


scenario.main(globals())
