#!/usr/bin/env python3
"""A Linux guest whose redis is written to without a pause, moved in pre-copy and in post-copy: no acknowledged write is lost."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import heartbeat  # noqa: E402
import lab as labs  # noqa: E402
import linuxguest  # noqa: E402
import scenario  # noqa: E402

LINK = 100  # Mbit/s
POST_COPY = {"allowPostCopy": True, "allowWorkloadDisruption": True, "completionTimeoutPerGiBS": 10}


def move(lab, guest, source, node, options=None):
    """To a fresh pod on that node, while redis is written to."""
    target = labs.Pod(lab.nodes[node], "virt-launcher-2", guest)
    mark = lab.monitor.mark()
    m = labs.Move(lab, guest, source, target, options)
    assert m.wait_end(300) == ("succeeded", "succeeded"), (source.migration(), target.migration())
    lab.monitor.wait_beats(3, 120, lab.monitor.mark())
    before, after = lab.monitor.since(mark - 1)[0].pages, lab.monitor.last().pages
    keys = lab.check_guest(target)  # unbroken sequence, none refused, all read back as written
    assert keys >= min(after, 4000), (keys, after)
    print(f"moved to {target.node.name}, {source.migration()['mode']}: {before} writes acknowledged before, {after} after, "
          f"{keys} keys read back; worst gap {lab.monitor.worst_gap(mark) * 1000:.0f} ms")
    m.close()
    return target, m


def test_redis(bin_dir):
    with labs.lab(bin_dir) as lab:
        lab.guest = linuxguest.need()
        guest, first = linuxguest.start(lab)
        second, _ = move(lab, guest, first, 1)
        first.end()
        lab.nodes[1].shape(LINK)
        third, m = move(lab, guest, second, 0, POST_COPY)
        assert "post-copy" in second.decisions(m.uid), second.decisions(m.uid)
        second.end()
        # The witness sees what it is there for: one stale key.
        heartbeat.send(os.path.join(third.dir, "console/serial.sock"), b"x")
        labs.wait_for("a stale key to be found", lambda: lab.monitor.verify()[1] == 1, 30)
        third.end(0)


scenario.need_root()
scenario.main(globals())
