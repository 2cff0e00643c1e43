#!/usr/bin/env python3
"""A running guest changes its volume: the claim of its VM is exchanged for another one, on the other node, and the data goes there
with a move while the guest goes on writing. Real launchers, QEMU's own copy of the disk.
Numbers of cases are items of docs/conformance.md."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for

SIZE = 8 << 20
MERGE = "application/merge-patch+json"


def volume(site, name, node):
    """A claim on a directory that one node alone has, with an image of zeroes."""
    directory = os.path.join(site.root, node, "data", name)
    os.makedirs(directory)
    image = os.path.join(directory, "disk.img")
    with open(image, "wb") as f:
        f.truncate(SIZE)
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local-" + name}
    here = {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}
    site.api.create("persistentvolumes", {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {**spec, "capacity": {"storage": "8Mi"}, "local": {"path": "/data/" + name}, "nodeAffinity": here}})
    site.api.create("persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {**spec, "resources": {"requests": {"storage": "8Mi"}}}})
    return image


def machine(name, claim):
    boot = {"kernelArgs": "ws=4 rate=16 disk=1 drate=64", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": {
        "runStrategy": "Always", "updateVolumesStrategy": "Migration", "template": {"spec": {
            "domain": {"resources": {"requests": {"memory": "64Mi"}}, "firmware": {"kernelBoot": boot},
                       "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}}, **claims(claim)}}}}


def claims(claim):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def set_claim(site, name, claim):
    status, answer = site.api.call("PATCH", site.api.path("virtualmachines", name),
                                   {"spec": {"template": {"spec": claims(claim)}}}, MERGE)
    assert status == 200, answer


def status(site, name):
    return (site.api.vmi(name) or {}).get("status", {})


def verify(site, name):
    """The guest reads all of its memory and its disk back."""
    site.ferry("vm", "console", name, "--send", "v")
    text = wait_for(f"the report of {name}", lambda: "VERIFY " in (
        t := site.ferry("vm", "console", name, "--once", "--tail", "4000").stdout) and t, 120)
    return text.rsplit("VERIFY ", 1)[1].split("\n")[0].strip()


def written(image):
    with open(image, "rb") as f:
        return any(f.read())


def test_volume_migration(bin_dir):
    """468, 470: the claim of a running VM is exchanged, and its data is there"""
    with Site(bin_dir) as site:
        os.chmod(os.path.dirname(site.root), 0o711)
        old, new = volume(site, "old", "node1"), volume(site, "new", "node2")
        code, answer = site.api.call("POST", "/apis/kubevirt.io/v1/namespaces/default/kubevirts", {
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
            "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}})
        assert code in (200, 201, 409), answer
        site.api.create("virtualmachines", machine("web", "old"))
        wait_for("it to run", lambda: status(site, "web").get("phase") == "Running", 120)
        assert status(site, "web")["nodeName"] == "node1", status(site, "web")
        wait_for("the guest to write", lambda: written(old), 60)
        set_claim(site, "web", "new")
        wait_for("the guest on its new volume", lambda: status(site, "web").get("nodeName") == "node2", 240)
        wait_for("the change to be over", lambda: "migratedVolumes" not in status(site, "web"), 120)
        vmi = site.api.vmi("web")
        assert vmi["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "new", vmi["spec"]
        assert written(new), "nothing was copied"
        report = verify(site, "web")
        assert report.endswith("bad=0") and int(report.split("pages=")[1].split()[0]) > 15000, report
        wait_for("one pod", lambda: len([p for p in site.api.list("pods") if not p["metadata"].get("deletionTimestamp")]) == 1, 60)


scenario.need_root()
scenario.main(globals())
