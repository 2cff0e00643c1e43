#!/usr/bin/env python3
"""The instant at which a guest changes hosts, with everything that can break there broken.

A target libvirtd that stands still holds the move between the last byte and the target's answer: the guest is
stopped on the source, complete on the target, and runs nowhere. Numbers of cases are items of docs/conformance.md."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20
SLOW = {"bandwidthBytesPerS": 8 * MIB}


def hold_at_switchover(lab, guest, source):
    """(target, move, pid of the target's libvirtd, which is stopped)."""
    target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    m = labs.Move(lab, guest, source, target, SLOW)
    m.wait_bytes(MIB)
    daemon = target.children("libvirtd")[0]
    os.kill(daemon, signal.SIGSTOP)
    labs.wait_for("the switch-over", lambda: source.status()["domain"] == {"state": "paused", "reason": "migration"})
    labs.wait_for("the last byte", lambda: not [
        s for s in source.node.relay_ok("GET", "/v1/streams")["streams"] if s["channel"] == 49152])
    time.sleep(0.5)  # for the source's libvirtd to ask the target's to start the guest
    return target, m, daemon


def test_source_libvirtd_dies_there_and_the_target_is_lost(bin_dir):
    """Nobody can have the guest but the source; it runs again there, once somebody who knows says so."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m, _ = hold_at_switchover(lab, guest, source)
        mark = lab.monitor.mark()
        source.kill("libvirtd")
        os.kill(target.pid1, signal.SIGKILL)  # all of the target: libvirtd, QEMU, launcher
        labs.wait_for("the end of the target", lambda: not target.alive())
        source.wait_ready()
        assert source.status()["domain"] == {"state": "paused", "reason": "migration"}, source.status()
        assert m.phase(source) == "running" and not lab.monitor.since(mark), "it runs, and nobody said that it may"
        target.remove()
        source.ok("PUT", f"/v1/migrations/{m.uid}/target-state", {"state": "gone"})
        labs.wait_for("the end of the move", lambda: m.phase(source) == "failed", 20)
        lab.check_guest(source)
        m.close()
        second, _ = labs.move(lab, guest, source, 1)
        source.end()
        second.end()


def test_source_libvirtd_dies_there_and_the_target_runs(bin_dir):
    """The target's libvirtd has the word to start the guest, and does; the source must stay stopped."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m, daemon = hold_at_switchover(lab, guest, source)
        source.kill("libvirtd")
        source.wait_ready()
        os.kill(daemon, signal.SIGCONT)
        where = labs.wait_for("the target to decide", lambda: {
            "running": "active", "none": "gone", "shutoff": "gone"}.get(target.domain()), 30)
        print(f"the target is {where}")
        source.ok("PUT", f"/v1/migrations/{m.uid}/target-state", {"state": where})
        if where == "active":
            assert m.wait_end(30) == ("succeeded", "succeeded"), source.migration()
        else:
            assert m.wait_end(30) == ("failed", "failed"), source.migration()
        lab.check_guest(target if where == "active" else source)
        m.close()
        source.end()
        target.end()


def test_control_stream_dies_there(bin_dir):
    """The target's answer is lost. libvirt would let the source run although the target may: it is not let.
    The guest goes on where it is known that it can, and nowhere else."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m, daemon = hold_at_switchover(lab, guest, source)
        watches = [labs.Watch(pod) for pod in (source, target)]
        m.close()
        labs.wait_for("libvirt to be refused", lambda: source.status()["domain"] == {"state": "paused", "reason": "held"}, 30)
        assert m.phase(source) == "running", source.migration()
        source.kill("ferry-launcher")  # the gate is closed whoever is there
        source.wait_ready()
        os.kill(daemon, signal.SIGCONT)
        labs.wait_for("the target to decide", lambda: m.phase(target) in ("failed", "succeeded"), 60)
        print(f"source {source.status()['domain']}, target {target.status()}")
        assert not watches[0].running(), "the source runs, and nobody said that it may"
        survivor = check_one(lab, source, target, m, watches)
        print(f"one guest, on {survivor.node.name}")
        source.end()
        target.end()


def check_one(lab, source, target, m, watches):
    """The move comes to an end, with one runner that has all of the guest's memory, and there were never two."""
    phases = m.settle()
    survivor = target if phases[0] == "succeeded" else source
    lab.check_guest(survivor)
    assert labs.overlap(*watches) == 0, [w.spans for w in watches]
    assert [w.running() for w in watches] == [survivor is source, survivor is target], [w.spans for w in watches]
    for w in watches:
        w.stop()
    return survivor


def test_given_up_there(bin_dir):
    """The target's libvirtd has the word to start the guest and stands still. Whoever gives the move up asks the target's launcher
    first, which needs no libvirtd to see to it that the guest will not run there: only then may it run on the source."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m, daemon = hold_at_switchover(lab, guest, source)
        watches = [labs.Watch(pod) for pod in (source, target)]
        for _ in range(2):
            assert target.ok("POST", f"/v1/migrations/{m.uid}/withdraw") == {}
        source.ok("PUT", f"/v1/migrations/{m.uid}/target-state", {"state": "never-ran"})
        os.kill(daemon, signal.SIGCONT)
        labs.wait_for("the end of the move", lambda: m.phase(source) == "failed", 60)
        assert m.phase(target) == "failed" and target.migration()["neverRan"], target.migration()
        assert check_one(lab, source, target, m, watches) is source and not watches[1].spans, watches[1].spans
        m.close()
        second, m = labs.move(lab, guest, source, 1)
        status, answer = second.call("POST", f"/v1/migrations/{m.uid}/withdraw")
        assert status == 409, (status, answer)
        assert second.call("POST", f"/v1/migrations/{guest['metadata']['uid']}/withdraw")[0] == 404
        lab.check_guest(second)
        for pod in (source, target, second):
            pod.end()


def test_libvirtd_hangs(bin_dir):
    """260, 314: a libvirtd that stands still does not keep the launcher from answering and from being told to go."""
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        pod.kill("ferry-launcher")
        daemon = pod.children("libvirtd")[0]
        os.kill(daemon, signal.SIGSTOP)
        try:
            labs.wait_for("an answer", lambda: pod.call("GET", "/v1/status")[0] == 503, 20)
            assert pod.call("GET", "/v1/records/none")[0] == 404
        finally:
            os.kill(daemon, signal.SIGCONT)
        pod.wait_ready()
        lab.check_guest(pod)
        pod.end()


scenario.need_root()
scenario.main(globals())
