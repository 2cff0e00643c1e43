#!/usr/bin/env python3
"""What the options of a move do, on real guests: each ends with one runner and all of its memory."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20
BUSY = {"memory": "96Mi", "args": "ws=32 rate=60 hb=50 fill=rand"}
LINK = 160  # Mbit/s: a third of what the busy guest dirties


def begin(lab, options, link=LINK, tls="raw", **guest_options):
    guest, source = labs.start(lab, **(guest_options or BUSY))
    target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    lab.nodes[0].shape(link)
    return source, target, labs.Move(lab, guest, source, target, options, tls)


def finish(lab, source, target, m, seconds=90):
    phases = m.wait_end(seconds)
    assert phases == ("succeeded", "succeeded"), (phases, source.migration())
    lab.check_guest(target)
    status = source.migration()
    print(f"{source.decisions(m.uid)} mode {status['mode']} downtime {status.get('downtimeMs')} ms")
    m.close()
    source.end()
    target.end()
    return status


def stays(lab, source, target, m, code, seconds=90):
    phases = m.wait_end(seconds)
    assert phases == ("failed", "failed"), phases
    status = source.migration()
    assert status["reasonCode"] == code, status
    lab.check_guest(source)
    print(f"{source.decisions(m.uid)} {status['failureReason']}")
    m.close()
    source.end()
    target.end()
    return status


def test_parallel_connections(bin_dir):
    for options in ({"parallelConnections": 4}, {"parallelConnections": 2, "compression": "zstd"}):
        with labs.lab(bin_dir) as lab:
            source, target, m = begin(lab, options, link=0)
            most = 0
            while m.phase(source) == "running":
                streams = source.node.relay_ok("GET", "/v1/streams")["streams"]
                most = max(most, len([s for s in streams if s["channel"] == 49152]))
            assert most == options["parallelConnections"] + 1, most
            finish(lab, source, target, m)


def test_parallel_gives_way_to_post_copy(bin_dir):
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"parallelConnections": 4, "allowPostCopy": True}, link=0,
                                  args="ws=16 rate=4 hb=50 fill=rand")
        notes = labs.wait_for("the note", lambda: [r for r in source.record(m.uid) if r["type"] == "note"])
        assert "left out" in notes[0]["text"], notes
        finish(lab, source, target, m)


def test_pause(bin_dir):
    """Disruption is allowed, post-copy is not: QEMU stops the guest as soon as it is clear that it must."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"allowWorkloadDisruption": True})
        assert finish(lab, source, target, m)["mode"] == "Paused"


def test_pause_as_kubevirt_does(bin_dir):
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"strategy": "kubevirt", "allowWorkloadDisruption": True,
                                        "completionTimeoutPerGiBS": 5})
        assert finish(lab, source, target, m)["mode"] == "Paused"


def test_paused_by_us_and_aborted(bin_dir):
    """A guest that was paused for the move runs on when the move fails."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"strategy": "kubevirt", "allowWorkloadDisruption": True,
                                        "completionTimeoutPerGiBS": 4, "bandwidthBytesPerS": MIB})
        labs.wait_for("the pause", lambda: source.migration()["mode"] == "Paused", 30)
        source.call("POST", f"/v1/migrations/{m.uid}/cancel")
        stays(lab, source, target, m, "Aborted")


def test_not_converging(bin_dir):
    """Nothing is allowed: aborted long before the granted 60 s, with figures."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"completionTimeoutPerGiBS": 60})
        status = stays(lab, source, target, m, "NotConverging")
        assert "MiB/s dirtied" in status["failureReason"], status


def test_stuck(bin_dir):
    """Nothing moves: not while the transport says that it bridges an outage, and stuck when it does not."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"progressTimeoutS": 4, "bandwidthBytesPerS": 4 * MIB})
        m.wait_bytes(MIB)
        source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "away"})
        relay = [int(p) for p in open(f"/proc/{lab.nodes[0].relay.pid}/task/{lab.nodes[0].relay.pid}/children").read().split()]
        relay = relay or [lab.nodes[0].relay.pid]
        for pid in relay:
            os.kill(pid, signal.SIGSTOP)
        try:
            before = len(source.record(m.uid))
            labs.wait_for("some looks", lambda: len(source.record(m.uid)) > before + 20, 60)
            assert source.migration()["abortRequested"] is False, source.migration()
            source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "up"})
            labs.wait_for("the abort", lambda: source.migration()["abortRequested"], 30)
        finally:
            for pid in relay:
                os.kill(pid, signal.SIGCONT)
        stays(lab, source, target, m, "Stuck")


def switchover_bandwidth(pod):
    monitor = pod.qmp()
    try:
        return monitor.execute("query-migrate-parameters")["avail-switchover-bandwidth"]
    finally:
        monitor.close()


def test_switchover_bandwidth(bin_dir):
    """QEMU reckons with what the relay measures of this move, no longer when the path is away, and not in the next one."""
    link = 80
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"completionTimeoutPerGiBS": 0}, link, "ferry")

        def told():
            rate = source.node.relay_ok("GET", f"/v1/sources/{m.key}").get("bytesPerS", 0)
            if rate:
                source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "up", "bytesPerS": rate})
            return switchover_bandwidth(source)

        rate = labs.wait_for("QEMU to be told", told, 60, 1)
        assert 0.6 < rate / (link * 125000) < 1.1, rate
        source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "away"})
        labs.wait_for("QEMU to be left to its own estimate", lambda: switchover_bandwidth(source) == 0)
        source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "up"})
        labs.wait_for("QEMU to be told again", told, 60, 1)
        source.call("POST", f"/v1/migrations/{m.uid}/cancel")
        assert m.wait_end(60) == ("failed", "failed")
        labs.wait_for("the next move to begin without", lambda: switchover_bandwidth(source) == 0)
        lab.check_guest(source)
        print(source.decisions(m.uid))
        m.close()
        source.end()
        target.end()


def test_downtime(bin_dir):
    """A working set that 300 ms do not suffice for: as much downtime as it needs is granted."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {}, memory="64Mi", args="ws=9 rate=200 hb=50 fill=rand")
        m.wait_end(90)
        asked = [r["downtimeMs"] for r in source.record(m.uid) if r["type"] == "decision"]
        assert asked and all(300 < ms <= 900 for ms in asked), asked
        assert finish(lab, source, target, m)["downtimeMs"] < 1800


def test_downtime_below_the_default(bin_dir):
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"maxDowntimeMs": 100}, memory="64Mi", args="ws=16 rate=4 hb=50 fill=rand")
        m.wait_end(90)
        assert source.decisions(m.uid)[0] == "set-downtime", source.record(m.uid)
        finish(lab, source, target, m)


def test_bandwidth(bin_dir):
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab, {"bandwidthBytesPerS": 8 * MIB}, link=0, memory="64Mi",
                                  args="ws=24 rate=1 hb=50 fill=rand")
        m.wait_end(90)
        rates = [r["bytesPerS"] for r in source.record(m.uid) if r["type"] == "sample" and r["bytesPerS"]]
        assert rates and sorted(rates)[len(rates) // 2] < 10 * MIB, rates
        finish(lab, source, target, m)


scenario.need_root()
scenario.main(globals())
