#!/usr/bin/env python3
"""What ferry-controller does when nobody answers. Each test waits for a deadline of half a minute."""
import os
import signal
import struct
import sys
import tempfile
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


def test_clock_set_before_a_restart(bin_dir):
    """The clock goes an hour forward in the middle of a move. Neither the controller that sees it nor its successor takes
    that hour for a wait that is over."""
    with tempfile.NamedTemporaryFile() as clock:
        def go_forward(seconds):
            os.pwrite(clock.fileno(), struct.pack("q", seconds), 0)
        go_forward(0)
        env = {"FERRY_TEST_CLOCK": clock.name, "LD_PRELOAD": os.path.abspath(os.path.join(bin_dir, "../../tests/faults/clockstep.so")),
               "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        with Plane(bin_dir, env=env) as p:
            p.run_vm("web")
            p.agent.hold.add("prepare")
            p.create_move("m1", "web")
            p.wait_move("m1", "PreparingTarget")
            go_forward(3600)
            p.run_vm("other")  # there is something to look at the clock for
            lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ferry-controller"
            wait_for("the step to be written down", lambda: "ferry.io/clock-steps" in
                     p.api.call("GET", lease)[1]["metadata"].get("annotations", {}), 30)
            p.kill_controller()
            p.start_controller()
            p.run_vm("third")  # it has looked around
            equal(p.api.migration("m1")["status"]["phase"], "PreparingTarget")
            p.agent.hold.clear()
            p.wait_move("m1", "Succeeded")


scenario.main(globals())
