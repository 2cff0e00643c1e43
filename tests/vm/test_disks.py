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


def guest_with(*volumes, qcow2="", **kwargs):
    guest = labs.new_guest(**kwargs)
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


WRITES = {"args": "ws=8 rate=4 hb=50 fill=rand disk=2 drate=200"}


def test_guest_writes_its_disks(bin_dir):
    """The guest rewrites a pattern on both disks while they are copied, and checks it afterwards. The images are made for
    the move."""
    with labs.lab(bin_dir) as lab:
        empty = qcow2(os.path.join(lab.root, "empty.qcow2"), 8 * MIB)
        guest = guest_with("root", "data", qcow2="data", **WRITES)
        _, source = labs.start_guest(lab, guest, {"root": 6 * MIB, "data": empty})
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        lab.nodes[0].shape(160)
        m = labs.Move(lab, guest, source, target, make_disks=True)
        assert sorted(m.sockets["disks"], key=str) == [{"name": "data", "bytes": 8 * MIB}, {"name": "root", "bytes": 6 * MIB}]
        assert m.wait_end() == ("succeeded", "succeeded"), source.migration()
        assert lab.check_guest(target) > 1024, "the disks were not checked"
        labs.wait_for("the mark to go", lambda: os.listdir(os.path.dirname(target.image("root"))) == ["disk.img"])
        with open(target.image("root"), "r+b") as f:  # and it would have noticed
            f.seek(MIB)
            f.write(b"x" * 4096)
        assert lab.monitor.verify()[1] + lab.monitor.bad_pages() > 0, "a changed block was not noticed"
        m.close()
        source.end()
        target.end(0)


def test_made_images_go(bin_dir):
    """A move that is cancelled, one that never comes: nothing stays. An image that was there does."""
    with labs.lab(bin_dir) as lab:
        guest = guest_with("root", "data", **WRITES)
        _, source = labs.start_guest(lab, guest, {"root": 6 * MIB, "data": 4 * MIB})
        lab.nodes[0].shape(16)
        for reached in (True, False):
            target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest, {"root": 6 * MIB})
            if reached:
                m = labs.Move(lab, guest, source, target, make_disks=True)
                labs.wait_for("disks to be copied", lambda: m.phase(target) == "running")
                source.ok("POST", f"/v1/migrations/{m.uid}/cancel")
                assert m.wait_end(60) == ("failed", "failed"), source.migration()
                m.close()
                assert os.path.exists(target.image("root")) and not os.path.exists(target.image("data"))
            else:
                sizes = source.ok("POST", "/v1/disks", {"vmi": guest})["disks"]
                target.ok("PUT", "/v1/target/u7", {"vmi": guest, "sourceDisks": sizes})
                assert os.path.getsize(target.image("data")) == 4 * MIB
            disks = os.path.dirname(os.path.dirname(target.image("root")))
            target.ok("DELETE", "/v1/vm", {"graceS": 0})
            labs.wait_for("the end of the sandbox", lambda t=target: not t.alive())
            assert os.listdir(disks) == ["root"], os.listdir(disks)
            target.remove()
        lab.check_guest(source)
        source.end(0)


def test_larger_qcow2(bin_dir):
    """Of a qcow2 no part can be used: refused before anything is sent, in words that fit."""
    with labs.lab(bin_dir) as lab:
        guest = guest_with("root", qcow2="root")
        _, source = labs.start_guest(lab, guest, {"root": qcow2(os.path.join(lab.root, "small.qcow2"), 8 * MIB)})
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest, {"root": qcow2(os.path.join(lab.root, "large.qcow2"), 12 * MIB)})
        m = labs.Move(lab, guest, source, target)
        labs.wait_for("the end", lambda: m.phase(source) == "failed", 30)
        status = source.migration()
        assert status["reasonCode"] == "Refused" and "must have the same size" in status["failureReason"], status
        assert m.phase(target) == "prepared", "something was sent"
        lab.check_guest(source)
        m.close()
        target.end()
        source.end()


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
