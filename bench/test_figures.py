#!/usr/bin/env python3
"""What the tables of benchmarks are made by."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "../tests/lib")]
import figures  # noqa: E402
import migrate_report  # noqa: E402
import scenario  # noqa: E402


def row(way, n=0, part="small", guest="g", **changes):
    made = {"total": 2.0, "data": 1.0, "gap": 100.0, "downtime": 50.0, "bytes": 1 << 20, "cpu": 0.5}
    return {**made, **changes, "part": part, "step": [guest, way], "round": n, "mbit": 500}


def test_fairness(_):
    for shares, index in (([5, 5, 5], 1.0), ([9, 0, 0], 1 / 3), ([3, 4], 0.98), ([], None), ([0, 0], None)):
        got = figures.jain(shares)
        assert got == index or abs(got - index) < 1e-9, (shares, got)


def test_shares(_):
    cases = (
        ([], (0, [])),
        ([{"a": 1}, {"a": 4}], (1, [3])),
        # only what was sent while both were under way counts
        ([{"a": 1}, {"a": 2, "b": 0}, {"a": 5, "b": 4}, {"b": 9}], (2, [3, 4])),
        # of two pairs the one that was seen more often
        ([{"a": 0, "b": 0}, {"a": 3, "b": 1}, {"b": 7, "c": 0}], (2, [3, 1])),
    )
    for looks, (most, shares) in cases:
        got = figures.shares_of(looks)
        assert (got[0], sorted(got[1])) == (most, sorted(shares)), (looks, got)


def test_ratios_are_taken_within_a_round(_):
    rows = [row("plain", 0), row("ferry", 0, data=1.1), row("plain", 1, data=2.0), row("ferry", 1, data=1.8), row("ferry", 2)]
    assert [round(r, 6) for r in figures.ratios(rows, "ferry", "data")] == [1.1, 0.9]


def verdicts(ways, busy=()):
    return [met for _, _, _, met in migrate_report.bars(ways, list(busy))]


def test_bars(_):
    others = [row("plain"), row("tls", data=1.3), row("proxy", data=1.2)]
    assert verdicts(others + [row("ferry", data=1.1, gap=110.0)]) == [True, True, True, True]
    assert verdicts(others + [row("ferry", data=1.25, gap=111.0)]) == [False, True, False, False]
    busy = [row("kubevirt", part="busy", total=100.0, gap=50.0, downtime=9), row("ferry", part="busy", total=50.0, gap=51.0, downtime=9)]
    assert verdicts([], busy) == [True, True, False]
    assert verdicts([row("plain")]) == verdicts([], busy[:1]) == []


def test_tables_go_between_their_marks(_):
    with tempfile.TemporaryDirectory() as d:
        page = pathlib.Path(d) / "page"
        page.write_text("a\n<!-- x begins -->\nold\n<!-- x ends -->\nb\n")
        figures.put_into(page, "x", "new\n")
        assert page.read_text() == "a\n<!-- x begins -->\nnew\n<!-- x ends -->\nb\n", page.read_text()


def test_tables(_):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        migrate_report.show([row("plain"), row("ferry"), {**row("8", part="parallel", guest="parallel"), "together": 8, "jain": None},
                             {**row("ferry", part="busy"), "end": "PostCopy"}])
    text = out.getvalue()
    assert "virsh --tls" not in text and "| 8 | 1 | 2.0 [2.0..2.0] |" in text and "| kubevirt | 0 | - |" in text, text


scenario.main(globals())
