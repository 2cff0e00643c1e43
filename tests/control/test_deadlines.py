#!/usr/bin/env python3
"""What ferry-controller does when nobody answers. Each test waits for a deadline of half a minute."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import MOVES, VMIS, Plane, check_stayed, equal


def test_handler_away_while_deleting(bin_dir):
    """The pods are deleted although nobody stops the guest: after grace and margin (30 s)."""
    with Plane(bin_dir) as p:
        p.agent.hold.add("stop")
        p.run_vm("web")
        begin = time.monotonic()
        p.delete(VMIS, "web")
        p.wait_gone(VMIS, "web", 60)
        assert time.monotonic() - begin > 25, "the handler had no time to stop the guest"


def test_abort_that_nobody_answers(bin_dir):
    """Before the start, the controller ends it itself (30 s)."""
    with Plane(bin_dir) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        p.agent.hold = {"prepare", "abort"}
        p.create_move("m1", "web")
        p.wait_move("m1", "PreparingTarget")
        p.delete(MOVES, "m1")
        p.wait_gone(MOVES, "m1", 60)
        state = check_stayed(p, "web", source)["status"]["migrationState"]
        assert state["failureReason"].startswith("Aborted: "), state


def test_silent_node(bin_dir):
    with Plane(bin_dir) as p:
        p.agent.beats.discard("b")
        begin = time.monotonic()

        def ready():
            return [c for c in p.api.get("nodes", "b")["status"]["conditions"] if c["type"] == "Ready"][0]
        wait_for("node b to be doubted", lambda: ready()["status"] == "Unknown", 60)
        assert time.monotonic() - begin > 35
        equal([c["status"] for c in p.api.get("nodes", "a")["status"]["conditions"]], ["True"])
        p.run_vm("one")
        p.run_vm("two")
        equal({p.api.vmi(n)["status"]["nodeName"] for n in ("one", "two")}, {"a"})


def test_stopped_leader_is_replaced(bin_dir):
    """One that hangs is replaced after the lease's time, and does not act when it wakes up."""
    with Plane(bin_dir) as p:
        first = p.controller
        p.run_vm("web")
        first.send_signal(signal.SIGSTOP)
        try:
            p.start_controller()
            p.create_move("m1", "web")
            begin = time.monotonic()
            p.wait_move("m1", "Succeeded", 60)
            assert time.monotonic() - begin > 8, "the lease was taken before its time"
        finally:
            first.send_signal(signal.SIGCONT)
        p.create_move("m2", "web")
        p.wait_move("m2", "Succeeded")
        first.send_signal(signal.SIGTERM)
        equal(first.wait(20), 0)


scenario.main(globals())
