#!/usr/bin/env python3
"""Volumes that belong to one node go with a guest to another: the image is made there, one that is too small is refused
before a byte is copied, and what was made for a move that does not happen is removed. A claim of a block device moves, too,
and a file system and a block device may take each other's place. Numbers of cases are items of docs/conformance.md."""
import contextlib
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for

MIB = 1 << 20
SIZE = 8 * MIB
MERGE = "application/merge-patch+json"
KUBEVIRTS = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
BOOT = {"kernelArgs": "ws=4 rate=1 disk=1 drate=64", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}


def machine(claim):
    return {"terminationGracePeriodSeconds": 0,
            "domain": {"memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": BOOT},
                       "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}}, **volumes(claim)}


def volumes(claim):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def post(site, path, body):
    status, answer = site.api.call("POST", path, body)
    assert status == 201, answer


def add_claim(site, name, node=None, modes=("ReadWriteOnce",), mode="Filesystem"):
    """A claim, bound to a volume of one node, or of both."""
    spec = {"accessModes": list(modes), "storageClassName": "by-hand", "volumeMode": mode}
    where = {"local": {"path": "/data/" + name}} if node else {"hostPath": {"path": "/data/" + name}}
    if node:
        where["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}
    site.api.create("persistentvolumes", {"metadata": {"name": name}, "spec": {
        **spec, **where, "capacity": {"storage": "8Mi"}, "claimRef": {"namespace": "default", "name": name}}})
    site.api.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
        **spec, "volumeName": name, "resources": {"requests": {"storage": "8Mi"}}}})


def directory(site, node, name, image=None):
    """The directory of a volume on a node, with an image of that size."""
    path = os.path.join(site.root, node, "data", name)
    os.makedirs(path)
    if image:
        with open(os.path.join(path, "disk.img"), "wb") as f:
            f.truncate(image)
    return path


def set_claim(site, claim):
    status, answer = site.api.call("PATCH", site.api.path("virtualmachines", "vm"),
                                   {"spec": {"template": {"spec": volumes(claim)}}}, MERGE)
    assert status == 200, answer


def status(site, name="vm"):
    return (site.api.vmi(name) or {}).get("status", {})


def wait_running(site, name, node=None):
    wait_for(f"{name} to run", lambda: status(site, name).get("phase") == "Running" and
             status(site, name).get("nodeName") == (node or status(site, name).get("nodeName")), 120)


def verify(site, name):
    """The guest has read all of its memory and its disk back, and found it right."""
    reports = site.ferry("vm", "console", name, "--once", "--tail", "100000").stdout.count("VERIFY ")
    site.ferry("vm", "console", name, "--send", "v")

    def look():
        text = site.ferry("vm", "console", name, "--once", "--tail", "100000").stdout
        return text if text.count("VERIFY ") > reports and text.rsplit("VERIFY ", 1)[1].count("\n") else None
    report = wait_for(f"the report of {name}", look, 120).rsplit("VERIFY ", 1)[1].split("\n")[0].strip()
    assert report.endswith("bad=0"), report


def last_failure(site):
    state = status(site).get("migrationState", {})
    return state.get("failureReason", "") if state.get("failed") else ""


def volume_mode(site):
    return status(site)["volumeStatus"][0]["persistentVolumeClaimInfo"]["volumeMode"]


def wait_exchanged(site, node):
    wait_running(site, "vm", node)
    wait_for("the change to be over", lambda: "migratedVolumes" not in status(site), 120)


def check_made(site):
    """The image is made on the other node, as large as the first, and the guest goes there with its disk."""
    there = directory(site, "node2", "two")
    add_claim(site, "two", "node2")
    set_claim(site, "two")
    wait_exchanged(site, "node2")
    assert os.listdir(there) == ["disk.img"], os.listdir(there)
    assert os.path.getsize(os.path.join(there, "disk.img")) == SIZE
    verify(site, "vm")


def check_too_small(site):
    there = directory(site, "node1", "small", 4 * MIB)
    add_claim(site, "small", "node1")
    set_claim(site, "small")
    wait_for("the refusal", lambda: "DestinationTooSmall" in last_failure(site), 120)
    assert f"{SIZE} bytes" in last_failure(site) and f"{4 * MIB}" in last_failure(site), last_failure(site)
    with open(os.path.join(there, "disk.img"), "rb") as f:
        assert not any(f.read()), "something was copied"
    set_claim(site, "two")
    wait_for("the change to be called off", lambda: "migratedVolumes" not in status(site), 120)
    wait_running(site, "vm", "node2")
    verify(site, "vm")


def check_removed(site):
    """A move that is called off takes the image that was made for it with it."""
    there = directory(site, "node1", "three")
    add_claim(site, "three", "node1")
    code, answer = site.api.call("PATCH", KUBEVIRTS + "/kubevirt",
                                 {"spec": {"configuration": {"migrations": {"bandwidthPerMigration": "1Mi"}}}}, MERGE)
    assert code == 200, answer
    set_claim(site, "three")
    wait_for("the image to be made", lambda: "disk.img" in os.listdir(there), 180)
    set_claim(site, "two")
    wait_for("the image to be removed", lambda: not os.listdir(there), 180)
    wait_running(site, "vm", "node2")
    verify(site, "vm")


def start_vm(site):
    """A VM on the first node whose volumes may be exchanged while it runs."""
    post(site, KUBEVIRTS, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
                           "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}})
    directory(site, "node1", "one", SIZE)
    add_claim(site, "one", "node1")
    site.api.create("virtualmachines", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "vm"}, "spec": {
        "runStrategy": "Always", "updateVolumesStrategy": "Migration", "template": {"spec": machine("one")}}})
    wait_running(site, "vm", "node1")


def test_local_volumes(bin_dir):
    with Site(bin_dir) as site:
        start_vm(site)
        check_made(site)
        check_too_small(site)
        check_removed(site)
        site.ferry("vm", "delete", "vm", "--wait")


def loop_device(path):
    done = subprocess.run(["losetup", "--find", "--show", path], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.stdout.strip() if done.returncode == 0 else None


@contextlib.contextmanager
def device_of(site, name, size, nodes):
    """A block device as volume `name` of these nodes; None when this machine has none."""
    image = os.path.join(site.base, name + ".img")
    with open(image, "wb") as f:
        f.truncate(size)
    device = loop_device(image)
    try:
        for node in nodes if device else ():
            os.makedirs(os.path.join(site.root, node, "data"), exist_ok=True)
            os.symlink(device, os.path.join(site.root, node, "data", name))
        yield device
    finally:
        if device:  # it goes when the site, which has it open, is down
            subprocess.run(["losetup", "--detach", device])


def check_to_device(site, device):
    """The image goes to a device that is larger, and the guest moves on with that."""
    add_claim(site, "dev", modes=("ReadWriteMany",), mode="Block")
    set_claim(site, "dev")
    wait_exchanged(site, "node2")
    verify(site, "vm")
    assert volume_mode(site) == "Block"
    with open(device, "rb") as f:
        assert any(f.read(SIZE)), "the guest's disk is not on the device"
        assert not any(f.read()), "more than the guest's disk was written"
    wait_for("vm to be movable", lambda: status(site).get("migrationMethod") == "LiveMigration", 60)
    site.ferry("migrate", "vm", "--watch", timeout=240)
    wait_running(site, "vm", "node1")
    verify(site, "vm")


def check_small_device(site, small):
    add_claim(site, "small", "node2", mode="Block")
    set_claim(site, "small")
    wait_for("the refusal", lambda: "DestinationTooSmall" in last_failure(site), 120)
    with open(small, "rb") as f:
        assert not any(f.read()), "something was copied"
    set_claim(site, "one")
    wait_for("the change to be called off", lambda: "migratedVolumes" not in status(site), 120)
    verify(site, "vm")


def check_to_image(site):
    """The device's content goes to an image that is made for it."""
    there = directory(site, "node2", "three")
    add_claim(site, "three", "node2")
    set_claim(site, "three")
    wait_exchanged(site, "node2")
    verify(site, "vm")
    assert volume_mode(site) == "Filesystem" and os.listdir(there) == ["disk.img"], os.listdir(there)
    with open(os.path.join(there, "disk.img"), "rb") as f:
        assert any(f.read(SIZE)), "the guest's disk is not in the image"


def test_other_mode(bin_dir):
    """189, 190: a file system goes to a block device, and back, on a real libvirt"""
    with Site(bin_dir) as site, device_of(site, "dev", 2 * SIZE, ("node1", "node2")) as device, \
            device_of(site, "small", SIZE // 2, ("node2",)) as small:
        if not device or not small:
            print("skipped: this machine has no loop devices")
            return
        start_vm(site)
        check_small_device(site, small)
        check_to_device(site, device)
        check_to_image(site)
        site.ferry("vm", "delete", "vm", "--wait")


def test_block_device(bin_dir):
    with Site(bin_dir) as site, device_of(site, "dev", SIZE, ("node1", "node2")) as device:
        if not device:
            print("skipped: this machine has no loop devices")
            return
        add_claim(site, "dev", modes=("ReadWriteMany",), mode="Block")
        site.api.create("virtualmachineinstances", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                                    "metadata": {"name": "vm"}, "spec": machine("dev")})
        wait_running(site, "vm")
        wait_for("vm to be movable", lambda: status(site).get("migrationMethod") == "LiveMigration", 60)
        site.ferry("migrate", "vm", "--watch", timeout=240)
        verify(site, "vm")
        site.ferry("vm", "delete", "vm", "--wait")
        with open(device, "rb") as f:
            assert any(f.read(MIB)), "the guest did not write to the device"


scenario.need_root()
scenario.main(globals())
