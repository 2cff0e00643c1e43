#!/usr/bin/env python3
"""The network goes away, for moments and for minutes: streams that survive their connections bridge it, and nobody above notices."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20
BUSY = {"memory": "96Mi", "args": "ws=32 rate=60 hb=50 fill=rand"}
POST_COPY = {"allowPostCopy": True, "allowWorkloadDisruption": True}


def finish(lab, source, target, m, seconds=120):
    assert m.wait_end(seconds) == ("succeeded", "succeeded"), source.migration()
    assert not source.migration().get("recoveries"), "QEMU noticed"
    pages = lab.check_guest(target)
    print(f"{pages} pages verified")
    m.close()
    source.end()
    target.end()


def in_post_copy(bin_dir, break_it):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab, **BUSY)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        lab.nodes[0].shape(160)
        m = labs.Move(lab, guest, source, target, POST_COPY, tls="ferry")
        labs.wait_for("post-copy", lambda: target.status()["domain"]["reason"] == "postcopy", 60)
        lab.nodes[0].shape(16)
        break_it(lab)
        assert m.phase(source) == m.phase(target) == "running", (source.status(), target.status())
        assert source.status()["domain"]["reason"] == "postcopy", source.status()
        lab.nodes[0].shape(0)
        finish(lab, source, target, m)


def link_down(lab, seconds):
    lab.ip("-n", lab.nodes[0].netns, "link", "set", "eth0", "down")
    time.sleep(seconds)  # the outage itself
    lab.ip("-n", lab.nodes[0].netns, "link", "set", "eth0", "up")


def test_connections_reset_in_post_copy(bin_dir):
    def reset(lab):
        streams = [s for s in lab.nodes[0].relay_ok("GET", "/v1/streams")["streams"] if s["channel"] == 49152]
        for node in lab.nodes:
            subprocess.run(["ip", "netns", "exec", node.netns, "ss", "-K", "state", "established"], check=True,
                           stdout=subprocess.DEVNULL)
        labs.wait_for("the streams to be resumed", lambda: all(
            s["resumes"] > 0 for s in lab.nodes[0].relay_ok("GET", "/v1/streams")["streams"]
            if s["channel"] == 49152) and streams)
    in_post_copy(bin_dir, reset)


def test_link_down_10_s_in_post_copy(bin_dir):
    in_post_copy(bin_dir, lambda lab: link_down(lab, 10))


def test_link_down_90_s_in_post_copy(bin_dir):
    in_post_copy(bin_dir, lambda lab: link_down(lab, 90))


def test_link_down_in_pre_copy_for_longer_than_libvirt_would_wait(bin_dir):
    """libvirt's own keep-alive gives up after 30 s."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        m = labs.Move(lab, guest, source, target, {"bandwidthBytesPerS": 4 * MIB}, tls="ferry")
        m.wait_bytes(MIB)
        source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "away"})
        link_down(lab, 45)
        source.ok("PUT", f"/v1/migrations/{m.uid}/path", {"state": "up"})
        finish(lab, source, target, m)


scenario.need_root()
scenario.main(globals())
