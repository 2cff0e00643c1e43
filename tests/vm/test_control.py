#!/usr/bin/env python3
"""Kinds of guests and moves that no other test here has, so that all that two libvirts say to each other comes through the control channel's
filter: paused guests, q35, CD-ROMs and SATA, every option at once. FERRY_RECORD=DIR records it (recorder.py)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20


def finish(lab, source, target, m):
    assert m.wait_end() == ("succeeded", "succeeded"), source.migration()
    target.ok("POST", f"/v1/migrations/{m.uid}/finalize")
    m.close()
    source.end()


def test_paused_guest(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        source.ok("POST", "/v1/vm/pause")
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        finish(lab, source, target, labs.Move(lab, guest, source, target))
        assert target.status()["domain"] == {"state": "paused", "reason": "user"}, target.status()
        target.ok("POST", "/v1/vm/unpause")
        lab.check_guest(target)


def test_another_machine(bin_dir):
    """q35 with CPUs in sockets and a feature; a disk and a CD-ROM on SATA, one of virtio that is read-only."""
    with labs.lab(bin_dir) as lab:
        guest = labs.new_guest()
        domain = guest["spec"]["domain"]
        domain["machine"] = {"type": "q35"}
        domain["cpu"] = {"sockets": 2, "cores": 1, "threads": 1, "features": [{"name": "popcnt", "policy": "optional"}]}
        domain["devices"]["disks"] = [{"name": "root", "disk": {"bus": "sata"}, "bootOrder": 2, "cache": "writeback", "io": "threads"},
                                      {"name": "cd", "cdrom": {"bus": "sata"}}, {"name": "fixed", "disk": {"bus": "virtio", "readonly": True}}]
        guest["spec"]["volumes"] = [{"name": n, "hostDisk": {"path": f"/srv/{n}.img", "type": "Disk"}} for n in ("root", "cd", "fixed")]
        images = {"root": os.urandom(2 * MIB), "cd": 1 * MIB, "fixed": 1 * MIB}
        _, source = labs.start_guest(lab, guest, images)
        for number in (1, 0):  # there and back: what came in goes out again
            target = labs.Pod(lab.nodes[number], "virt-launcher-2", guest, {**images, "root": 2 * MIB})
            finish(lab, source, target, labs.Move(lab, guest, source, target))
            lab.check_guest(target)
            source = target


def test_all_options(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        finish(lab, source, target, labs.Move(lab, guest, source, target, {
            "unsafe": True, "allowAutoConverge": True, "bandwidthBytesPerS": 64 * MIB, "pathBytesPerS": 100 * MIB,
            "parallelConnections": 3, "compression": "zstd"}))
        lab.check_guest(target)


scenario.need_root()
scenario.main(globals())
