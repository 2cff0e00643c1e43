#!/usr/bin/env python3
"""Disks that are copied with their guest: raw and qcow2, sizes that fit and sizes that do not."""
import hashlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20


def guest_with(*volumes, qcow2=""):
    guest = labs.new_guest()
    guest["spec"]["domain"]["devices"]["disks"] = [{"name": name} for name in volumes]
    guest["spec"]["volumes"] = [{"name": name, "hostDisk": {"path": f"/srv/{name}.img", "type": "Disk"}}
                                for name in volumes]
    guest["metadata"]["annotations"] = {"ferry.io/qcow2": qcow2}
    return guest


def qcow2(path, size):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", path, str(size)], check=True)
    with open(path, "rb") as f:
        return f.read()


def digest(path, fmt="raw", size=None):
    """Of what the guest sees."""
    raw = subprocess.run(["qemu-img", "dd", "-U", "-f", fmt, "-O", "raw", f"if={path}", f"of={path}.dd", "bs=1M"],
                         check=False, stderr=subprocess.PIPE, text=True)
    assert raw.returncode == 0, raw.stderr
    with open(f"{path}.dd", "rb") as f:
        data = f.read()[:size]
    os.unlink(f"{path}.dd")
    return hashlib.sha256(data).hexdigest()


def test_raw_disks(bin_dir):
    """Two disks; one has a larger image at the destination."""
    with labs.lab(bin_dir) as lab:
        content = os.urandom(12 * MIB)
        guest = guest_with("root", "data")
        _, source = labs.start_guest(lab, guest, {"root": content, "data": content[:4 * MIB]})
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest, {"root": 12 * MIB, "data": 6 * MIB})
        m = labs.Move(lab, guest, source, target)
        assert m.wait_end() == ("succeeded", "succeeded"), source.migration()
        lab.check_guest(target)
        assert digest(target.image("root")) == hashlib.sha256(content).hexdigest()
        assert digest(target.image("data"), size=4 * MIB) == hashlib.sha256(content[:4 * MIB]).hexdigest()
        target.ok("POST", f"/v1/migrations/{m.uid}/finalize")
        m.close()
        source.end()
        # and back, with the part of the larger image that is in use
        third = labs.Pod(lab.nodes[0], "virt-launcher-3", guest, {"root": 12 * MIB, "data": 4 * MIB})
        m = labs.Move(lab, guest, target, third)
        assert m.wait_end() == ("succeeded", "succeeded"), target.migration()
        lab.check_guest(third)
        assert digest(third.image("data")) == hashlib.sha256(content[:4 * MIB]).hexdigest()
        m.close()
        target.end()
        third.end()


def test_qcow2_disk(bin_dir):
    with labs.lab(bin_dir) as lab:
        empty = qcow2(os.path.join(lab.root, "empty.qcow2"), 8 * MIB)
        filled = os.path.join(lab.root, "filled.qcow2")
        with open(f"{filled}.raw", "wb") as f:
            f.write(os.urandom(8 * MIB))
        subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", f"{filled}.raw", filled], check=True)
        guest = guest_with("root", qcow2="root")
        _, source = labs.start_guest(lab, guest, {"root": open(filled, "rb").read()})
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest, {"root": empty})
        m = labs.Move(lab, guest, source, target, {"parallelConnections": 2})
        assert m.wait_end() == ("succeeded", "succeeded"), source.migration()
        lab.check_guest(target)
        assert digest(target.image("root"), "qcow2") == digest(f"{filled}.raw")
        m.close()
        source.end()
        target.end()


def test_wrong_sizes(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest = guest_with("root")
        _, source = labs.start_guest(lab, guest, {"root": 8 * MIB})
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest, {"root": 4 * MIB})
        m = labs.Move(lab, guest, source, target)
        labs.wait_for("the end", lambda: m.phase(source) == "failed", 30)
        status = source.migration()
        assert status["reasonCode"] == "DestinationTooSmall", status
        assert "the destination volume is smaller than the source volume" in status["failureReason"], status
        assert m.phase(target) == "prepared", "something was sent"
        lab.check_guest(source)
        m.close()
        target.end()
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        status, answer = target.call("PUT", "/v1/target/u1", {"vmi": guest})
        assert status == 400 and "spec.volumes[root]" in answer["message"] and "No such file" in answer["message"], answer
        target.end()
        source.end()


scenario.need_root()
scenario.main(globals())
