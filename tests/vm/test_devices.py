#!/usr/bin/env python3
"""Devices of the host that cannot move are taken out of the guest before a move, and are in it again wherever it then runs.

No machine that runs this has SR-IOV functions to give away. What stands in for one is a device that libvirt plugs and unplugs in the same
way (PCI, by ACPI: the guest has to let go), under the alias by which such functions are known. Of the real thing this leaves out VFIO itself."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import linuxguest  # noqa: E402
import scenario  # noqa: E402

ALIAS = "ua-sriov-fast"
DEVICE = f"<rng model='virtio'><backend model='random'>/dev/urandom</backend><alias name='{ALIAS}'/></rng>"


def virsh(pod, *words):
    command = ["virsh", "-q", "-c", f"qemu+unix:///session?socket={pod.dir}/libvirt/libvirt-sock", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def domain(pod, guest):
    meta = guest["metadata"]
    return f"{meta['namespace']}_{meta['name']}"


def has_device(pod, guest):
    return ALIAS in virsh(pod, "dumpxml", domain(pod, guest))


def plug(pod, guest):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as f:
        f.write(DEVICE)
        f.flush()
        virsh(pod, "attach-device", domain(pod, guest), f.name, "--live")
    assert has_device(pod, guest)


def listed(pod):
    return os.path.exists(os.path.join(pod.dir, "state/devices.json"))


class BrokenMove(labs.Move):
    """Nothing leads to the target's QEMU: both libvirts agree to the move before it fails."""

    def connect(self, generation):
        super().connect(generation)
        os.unlink(os.path.join(self.source.dir, "m", f"{self.key}-49152-source.sock"))


def types(pod, m):
    return [r["type"] for r in pod.record(m.uid)]


def check_back(pod, guest, m):
    """The move failed, and the device is in the guest again."""
    assert m.phase(pod) == "failed", pod.migration()
    labs.wait_for("the device to be back", lambda: has_device(pod, guest) and not listed(pod), 30)


def test_the_guest_lets_go(bin_dir):
    with labs.lab(bin_dir) as lab:
        lab.guest = linuxguest.need()
        guest, source = linuxguest.start(lab)
        plug(source, guest)
        # A move that fails, and the launcher is killed in the midst of it.
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        m = BrokenMove(lab, guest, source, target)
        labs.wait_for("the device to be gone", lambda: "call" in types(source, m) or not has_device(source, guest), 60)
        with contextlib.suppress(AssertionError):
            source.kill("ferry-launcher")
        source.wait_ready()
        labs.wait_for("the end of the move", lambda: m.phase(source) == "failed", 60)
        assert "unplug" in types(source, m), types(source, m)
        check_back(source, guest, m)
        m.close()
        target.end()
        # One that works. The target has a device of its own to give.
        target = labs.Pod(lab.nodes[1], "virt-launcher-3", guest)
        m = labs.Move(lab, guest, source, target)
        with open(os.path.join(target.dir, "state/devices.json"), "w", encoding="utf-8") as f:
            json.dump([{"alias": ALIAS, "xml": DEVICE}], f)
        assert m.wait_end(240) == ("succeeded", "succeeded"), (source.migration(), target.migration())
        assert "unplug" in types(source, m), types(source, m)
        labs.wait_for("the device of the target", lambda: has_device(target, guest) and not listed(target), 30)
        labs.wait_for("the list to be gone", lambda: not listed(source), 10)
        lab.check_guest(target)
        m.close()
        source.end()
        target.end(0)


def test_the_guest_does_not_let_go(bin_dir):
    """Our own guest knows no ACPI. A cancel is heard while it is waited for; then the move fails, with a reason, and nothing has changed."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        plug(source, guest)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        m = labs.Move(lab, guest, source, target)
        labs.wait_for("the device to be asked for", lambda: "unplug" in types(source, m), 30)
        source.ok("POST", f"/v1/migrations/{m.uid}/cancel")
        labs.wait_for("the end of the move", lambda: m.phase(source) == "failed", 15)
        assert source.migration()["reasonCode"] == "Aborted", source.migration()
        check_back(source, guest, m)
        m.close()
        target.end()
        target = labs.Pod(lab.nodes[1], "virt-launcher-3", guest)
        m = labs.Move(lab, guest, source, target)
        labs.wait_for("the end of the move", lambda: m.phase(source) == "failed", 90)
        state = source.migration()
        assert state["reasonCode"] == "DeviceNotMigratable" and ALIAS in state["failureReason"], state
        check_back(source, guest, m)
        lab.check_guest(source)
        m.close()
        target.end()
        source.end()


def same_host(lab, guest, source, name):
    """A target whose launcher and libvirtd have started anew with the UUID of the source's host."""
    target = labs.Pod(lab.nodes[1], name, guest)
    files = [os.path.join(pod.dir, "state/state.json") for pod in (source, target)]
    uuids = [json.load(open(path, encoding="utf-8"))["hostUUID"] for path in files]
    with open(files[1], encoding="utf-8") as f:
        text = f.read()
    with open(files[1], "w", encoding="utf-8") as f:
        f.write(text.replace(uuids[1], uuids[0]))
    target.kill("ferry-launcher")
    target.kill("libvirtd")
    target.wait_ready(60)
    return target


def refused(lab, guest, source, target):
    """A move that is refused: how it ended, after nothing was touched."""
    m = labs.Move(lab, guest, source, target)
    labs.wait_for("the end of the move", lambda: m.phase(source) == "failed", 60)
    m.close()
    assert "unplug" not in types(source, m) and has_device(source, guest), types(source, m)
    target.end()
    return source.migration()


def test_refused_before_a_device_is_touched(bin_dir):
    """The target's libvirt says that it is the source's host. (It is asked about the guest's CPU, too; all hosts of a test have the same.)"""
    with labs.lab(bin_dir) as lab:
        guest = labs.new_guest()
        guest["spec"]["domain"]["cpu"] = {"model": "Nehalem"}
        _, source = labs.start_guest(lab, guest)
        target = same_host(lab, guest, source, "virt-launcher-2")
        m = labs.Move(lab, guest, source, target)
        labs.wait_for("libvirt's own refusal", lambda: m.phase(source) == "failed", 60)
        assert "same host" in source.migration()["failureReason"], source.migration()
        m.close()
        target.end()
        plug(source, guest)
        target = same_host(lab, guest, source, "virt-launcher-3")
        state = refused(lab, guest, source, target)
        assert state["reasonCode"] == "LibvirtError" and "the same host" in state["failureReason"], state
        lab.check_guest(source)
        source.end()


scenario.need_root()
scenario.main(globals())
