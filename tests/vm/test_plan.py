#!/usr/bin/env python3
"""A plan of a move by the launcher, held against the clock of the move that follows: it runs alone."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20


def test_plan_and_metrics(bin_dir):
    """What was planned, and what then happened."""
    with labs.lab(bin_dir) as lab:
        guest, first = labs.start(lab, memory="96Mi", args="ws=48 rate=4 hb=50 fill=rand")
        options = {"pathBytesPerS": 20 * MIB}
        plan = first.ok("POST", "/v1/plan", {"options": options})
        print(plan)
        assert plan["low"]["end"] == "switch-over" and plan["dirtyBytesPerS"] < 32 * MIB, plan
        assert first.call("POST", "/v1/plan", {})[0] == 400
        labs.wait_for("the dirty rate", lambda: "kubevirt_vmi_dirty_rate_bytes_per_second{" in first.ok("GET", "/metrics"))
        first.ok("POST", "/v1/plan", {"options": options})  # beside a sample that the metrics began
        lab.nodes[0].shape(176)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        m = labs.Move(lab, guest, first, target, options)
        m.wait_bytes(MIB)
        text = first.ok("GET", "/metrics")
        assert "kubevirt_vmi_migration_data_remaining_bytes{" in text, text
        assert m.wait_end() == ("succeeded", "succeeded"), first.migration()
        assert 'status="succeeded"' in first.ok("GET", "/metrics")
        # A line in the log for each round and every four seconds, with the figures of the job; the real downtime at the end.
        lines = [line for line in first.log(1000).splitlines() if " migration mode=" in line]
        words = ("elapsedMs=", "processedBytes=", "remainingBytes=", "totalBytes=", "bytesPerS=", "dirtyBytesPerS=",
                 "postCopyRequests=", "expectedDowntimeMs=")
        assert lines and all(word in line for line in lines for word in words), lines
        rounds = {int(re.search(r"iteration=(\d+)", line)[1]) for line in lines}
        assert len(rounds) >= 2, lines
        assert re.search(r"migration is over .* downtimeMs=\d+", first.log(1000)), first.log(10)
        record = first.record(m.uid)
        took = next(r["elapsedMs"] for r in reversed(record) if r["type"] == "sample")
        assert [r for r in record if r["type"] == "plan"], record
        print(f"planned {plan['low']['totalMs']} to {plan['high']['totalMs']} ms, took {took} ms")
        assert plan["low"]["totalMs"] / 3 < took < plan["high"]["totalMs"] * 3, (plan, took)
        lab.check_guest(target)
        m.close()
        first.end()
        target.end()


scenario.need_root()
scenario.main(globals())
