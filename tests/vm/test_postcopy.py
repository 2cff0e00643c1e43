#!/usr/bin/env python3
"""Guests that dirty memory faster than the link carries it: post-copy, its loss of streams, its recovery.
Numbers of cases are items of docs/conformance.md."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

BUSY = {"memory": "96Mi", "args": "ws=32 rate=60 hb=50 fill=rand"}
LINK = 160  # Mbit/s: a third of what the guest dirties
POST_COPY = {"allowPostCopy": True, "allowWorkloadDisruption": True}


def begin(lab, options=None):
    """A busy guest and a slow link, and a move that is under way: (source, target, move)."""
    guest, source = labs.start(lab, **BUSY)
    target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    lab.nodes[0].shape(LINK)
    return source, target, labs.Move(lab, guest, source, target, POST_COPY if options is None else options)


def wait_post_copy(source, target):
    """Waits until the guest runs on the target while memory still comes."""
    labs.wait_for("post-copy", lambda: source.migration()["mode"] == "PostCopy", 60)
    labs.wait_for("the guest to run on the target", lambda: target.status()["domain"]["reason"].startswith("postcopy"), 20)


def finish(lab, source, target, m):
    """The move ends well, and all memory is on the target."""
    phases = m.wait_end(90)
    assert phases == ("succeeded", "succeeded"), (phases, source.migration())
    pages = lab.check_guest(target)
    assert source.status()["domain"] == {"state": "shutoff", "reason": "migrated"}, source.status()
    print(f"{pages} pages verified; {source.decisions(m.uid)}, {source.migration()}")
    m.close()
    source.end()
    target.end()


def memory_streams(pod):
    return [s for s in pod.node.relay_ok("GET", "/v1/streams")["streams"] if s["channel"] == 49152]


def recover(source, target, m, generation):
    """What the handlers do when the streams are dead: fresh ones, the target first."""
    target.ok("POST", f"/v1/migrations/{m.uid}/recover", {"role": "target"})
    m.connect(generation)
    source.ok("POST", f"/v1/migrations/{m.uid}/recover", {"role": "source"})
    # both streams carry data: QEMU 10.0 may crash when they die while it makes them (docs/data-plane.md, Limits)
    labs.wait_for("memory to flow again", lambda: m.phase(source) == "succeeded" or
                  len([s for s in memory_streams(target) if s["state"] == "open"]) >= 2 and
                  sum(s["bytesIn"] for s in memory_streams(target)) > 1 << 17, 60)


def test_streams_die_in_post_copy(bin_dir):
    """252: twice: both ends of all streams close; each time the move goes on over fresh ones."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab)
        wait_post_copy(source, target)
        lab.nodes[0].shape(4)  # so that it is not over before the next cut
        status, answer = source.call("POST", f"/v1/migrations/{m.uid}/cancel")
        assert status == 409 and "must finish" in answer["message"], (status, answer)
        for generation in (2, 3):
            m.close()
            labs.wait_for("the source to notice", lambda: source.status()["domain"]["reason"] == "postcopy-failed", 20)
            assert m.phase(source) == "running" and m.phase(target) == "running"
            recover(source, target, m, generation)
            labs.wait_for("post-copy to go on", lambda: target.status()["domain"]["reason"] == "postcopy", 20)
        assert source.migration()["recoveries"] == 2, source.migration()
        lab.nodes[0].shape(0)
        finish(lab, source, target, m)


def test_recovery_while_qemu_waits_for_a_page(bin_dir):
    """The target's main loop itself waits for memory that is not there, and its launcher is a new one. Only a
    connection to its monitor that was made before can tell it to go on."""
    with labs.lab(bin_dir) as lab:
        source, target, m = begin(lab)
        wait_post_copy(source, target)
        lab.nodes[0].shape(4)
        m.close()
        labs.wait_for("the source to notice", lambda: source.status()["domain"]["reason"] == "postcopy-failed", 20)
        monitor = target.qmp()
        monitor.send("pmemsave", val=0, size=96 << 20, filename="/dev/null")  # reads all of the guest's memory
        for pod in (source, target):
            pod.kill("ferry-launcher")
        for pod in (source, target):
            pod.wait_ready()
        recover(source, target, m, 2)
        lab.nodes[0].shape(0)
        finish(lab, source, target, m)
        monitor.close()


scenario.need_root()
scenario.main(globals())
