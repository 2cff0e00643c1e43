#!/usr/bin/env python3
"""Many moves, aborts at any instant, deaths in post-copy: each ends with one runner and all of its memory."""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20
BUSY = {"memory": "96Mi", "args": "ws=32 rate=60 hb=50 fill=rand"}
POST_COPY = {"allowPostCopy": True, "allowWorkloadDisruption": True}
ABORTS = int(os.environ.get("FERRY_TEST_ABORTS", "50"))
BEGINNINGS = int(os.environ.get("FERRY_TEST_BEGINNINGS", "20"))
CUTS = int(os.environ.get("FERRY_TEST_CUTS", "30"))


def test_ten_moves(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        for i in range(10):
            target, _ = labs.move(lab, guest, pod, 1 - i % 2, POST_COPY if i % 3 == 2 else {})
            pod.end()
            pod = target
        pod.end()


def test_abort_at_any_instant(bin_dir):
    """An abort that comes too late loses against success; then the guest is on the target, and goes on from there."""
    with labs.lab(bin_dir) as lab:
        seed = random.randrange(1 << 30)
        dice = random.Random(seed)
        print(f"seed {seed}")
        guest, pod = labs.start(lab)
        ends = {"succeeded": 0, "failed": 0}
        for i in range(ABORTS):
            target = labs.Pod(lab.nodes[1 if pod.node is lab.nodes[0] else 0], "virt-launcher-2", guest)
            watches = [labs.Watch(p) for p in (pod, target)]
            m = labs.Move(lab, guest, pod, target, dice.choice([{}, {"bandwidthBytesPerS": 24 * MIB},
                                                                {"allowPostCopy": True}, {"parallelConnections": 2}]))
            time.sleep(dice.uniform(0, 1.6))
            status, answer = pod.call("POST", f"/v1/migrations/{m.uid}/cancel")
            assert status in (200, 409), (status, answer)
            source_end, target_end = m.wait_end_at_source(30)
            ends[source_end] += 1
            lab.check_guest(target if source_end == "succeeded" else pod)
            assert labs.overlap(*watches) == 0, [w.spans for w in watches]
            for w in watches:
                w.stop()
            m.close()
            if source_end == "succeeded":
                pod, target = target, pod
            check_nothing_left(lab, pod, target)
            target.end()
        print(ends)
        pod.end()


def test_streams_die_around_the_switch_over(bin_dir):
    """All streams are cut, or both relays killed, at a random instant around the switch-over."""
    with labs.lab(bin_dir) as lab:
        seed = random.randrange(1 << 30)
        dice = random.Random(seed)
        print(f"seed {seed}")
        guest, pod = labs.start(lab)
        ends = {"succeeded": 0, "failed": 0, "held": 0}
        for _ in range(CUTS):
            target = labs.Pod(lab.nodes[1 if pod.node is lab.nodes[0] else 0], "virt-launcher-2", guest)
            watches = [labs.Watch(p) for p in (pod, target)]
            labs.wait_for("the source's monitor", watches[0].running)
            m = labs.Move(lab, guest, pod, target, dice.choice([{}, {"allowPostCopy": True}]))
            labs.wait_for("the switch-over", lambda: not watches[0].running() or m.phase(pod) != "running", 60, 0.001)
            time.sleep(dice.choice([0, dice.uniform(0, 0.02), dice.uniform(0, 0.15)]))
            if dice.random() < 0.5:
                m.close()
            else:
                for node in lab.nodes:
                    node.relay.kill()
            ends["held"] += bool(labs.wait_some(lambda: pod.status()["domain"]["reason"] == "held", 0.5))
            phases = m.settle()
            survivor = target if phases[0] == "succeeded" else pod
            lab.check_guest(survivor)
            assert labs.overlap(*watches) == 0, [w.spans for w in watches]
            ends[phases[0]] += 1
            for w in watches:
                w.stop()
            for node in lab.nodes:
                if node.relay.poll() is not None:
                    node.relay.wait()
                    node.run_relay()
            m.close()
            (pod if survivor is target else target).end()
            pod = survivor
        print(ends)
        pod.end()


def test_relays_die_as_post_copy_begins(bin_dir):
    """Between the instant at which the source enters post-copy and the one at which the target runs."""
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    print(f"seed {seed}")
    ends = {}
    for _ in range(BEGINNINGS):
        with labs.lab(bin_dir) as lab:
            guest, source = labs.start(lab, **BUSY)
            target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
            lab.nodes[0].shape(160)
            watches = [labs.Watch(p) for p in (source, target)]
            labs.wait_for("the source's monitor", watches[0].running)
            m = labs.Move(lab, guest, source, target, POST_COPY)
            labs.wait_for("the source to stop", lambda: not watches[0].running(), 60, 0.0005)
            time.sleep(dice.choice([0, 0, dice.uniform(0, 0.02), dice.uniform(0, 0.1)]))
            for node in lab.nodes:
                node.restart_relay()
            lab.nodes[0].shape(0)
            phases = settle_post_copy(source, target, m)
            survivor = target if phases[0] == "succeeded" else source
            end = phases[0] + (", recovered" if source.migration().get("recoveries") else "") + \
                (", taken back" if "taken back" in source.migration()["failureReason"] else "")
            ends[end] = ends.get(end, 0) + 1
            lab.check_guest(survivor)
            assert labs.overlap(*watches) == 0, [w.spans for w in watches]
            for w in watches:
                w.stop()
            if "taken back" in end:
                check_taken_back(lab, guest, source, m)
            m.close()
            source.end()
            target.end()
    print(ends)


def settle_post_copy(source, target, m):
    """What the handlers do when streams die about the begin of post-copy."""
    generation = 2
    deadline = time.monotonic() + 120
    while m.phase(source) not in ("succeeded", "failed"):
        assert time.monotonic() < deadline, (source.status(), target.status())
        m.tell()
        if source.status()["domain"]["reason"] == "postcopy-failed" and m.phase(target) == "running":
            status, _ = target.call("POST", f"/v1/migrations/{m.uid}/recover", {"role": "target"})
            if status == 200:
                m.connect(generation)
                source.call("POST", f"/v1/migrations/{m.uid}/recover", {"role": "source"})
                generation += 1
        time.sleep(0.1)
    return m.wait_end_at_source(60)


def check_taken_back(lab, guest, pod, old):
    """It runs, says that it cannot be moved, and can be ended."""
    old.close()
    other = labs.Pod(lab.nodes[1], "virt-launcher-3", guest)
    m = labs.Move(lab, guest, pod, other)
    assert m.wait_end_at_source(30)[0] == "failed" and "cannot be moved" in pod.migration()["failureReason"], pod.migration()
    lab.check_guest(pod)
    m.close()
    other.end()


def check_nothing_left(lab, pod, other):
    """Of a move that is over, but the guest on `pod`."""
    assert other.domain() in ("none", "shutoff"), other.status()
    assert other.left_in_m() == [] and pod.left_in_m() == [], (pod.left_in_m(), other.left_in_m())
    assert not other.children("qemu-system"), "a hypervisor stays behind"
    for node in lab.nodes:
        kinds, streams = node.listeners()
        assert not streams and not kinds[0]["targets"] and not kinds[1]["sources"], (kinds, streams)


def test_auto_converge(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab, **BUSY)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        lab.nodes[0].shape(200)
        m = labs.Move(lab, guest, source, target, {"allowAutoConverge": True})
        throttle = 0
        while m.phase(source) == "running":
            throttle = max(throttle, source.migration().get("sample", {}).get("throttlePercent", 0))
            time.sleep(0.2)
        assert m.wait_end() == ("succeeded", "succeeded"), source.migration()
        assert throttle > 0, "the guest was never slowed down"
        lab.check_guest(target)
        print(f"throttled to {throttle} %, downtime {source.migration()['downtimeMs']} ms")
        m.close()
        source.end()
        target.end()


def in_post_copy(bin_dir, break_it, recover=False):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab, **BUSY)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        lab.nodes[0].shape(160)
        m = labs.Move(lab, guest, source, target, POST_COPY)
        labs.wait_for("post-copy", lambda: target.status()["domain"]["reason"].startswith("postcopy"), 60)
        lab.nodes[0].shape(40)
        break_it(lab, source, target, m)
        if recover:
            target.ok("POST", f"/v1/migrations/{m.uid}/recover", {"role": "target"})
            m.connect(2)
            source.ok("POST", f"/v1/migrations/{m.uid}/recover", {"role": "source"})
        assert m.wait_end(120) == ("succeeded", "succeeded"), source.migration()
        lab.check_guest(target)
        m.close()
        source.end()
        target.end()


def test_source_libvirtd_dies_in_post_copy(bin_dir):
    in_post_copy(bin_dir, lambda lab, source, target, m: source.kill("libvirtd"))


def test_target_libvirtd_dies_in_post_copy(bin_dir):
    in_post_copy(bin_dir, lambda lab, source, target, m: target.kill("libvirtd"))


def test_launchers_die_in_post_copy(bin_dir):
    def both(lab, source, target, m):
        source.kill("ferry-launcher")
        target.kill("ferry-launcher")
        source.wait_ready()
        assert source.migration()["mode"] == "PostCopy", source.migration()
    in_post_copy(bin_dir, both)


def test_relays_die_in_post_copy(bin_dir):
    def relays(lab, source, target, m):
        for node in lab.nodes:
            node.restart_relay()
        labs.wait_for("the source to notice", lambda: source.status()["domain"]["reason"] == "postcopy-failed", 20)
    in_post_copy(bin_dir, relays, recover=True)


def test_target_dies_in_post_copy(bin_dir):
    """The guest is lost, which is said; the source is not resumed from stale memory."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab, **BUSY)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        lab.nodes[0].shape(160)
        m = labs.Move(lab, guest, source, target, POST_COPY)
        labs.wait_for("post-copy", lambda: target.status()["domain"]["reason"].startswith("postcopy"), 60)
        lab.nodes[0].shape(8)
        target.kill("qemu-system")
        labs.wait_for("the target to notice", lambda: m.phase(target) == "failed", 30)
        assert m.phase(source) == "running", source.migration()
        mark = lab.monitor.mark()
        source.ok("PUT", f"/v1/migrations/{m.uid}/target-state", {"state": "gone"})
        labs.wait_for("the end", lambda: m.phase(source) == "failed", 20)
        status = source.status()
        assert status["migration"]["reasonCode"] == "TargetLost" and "lost" in status["migration"]["failureReason"], status
        assert status["domain"]["state"] == "paused" and not lab.monitor.since(mark), status


scenario.need_root()
scenario.main(globals())
