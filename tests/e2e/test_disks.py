#!/usr/bin/env python3
"""Guests with disks on a site of two nodes: one on a volume that both nodes have, one whose disk is copied with it. The guest
rewrites its disk all the time and finds every block right afterwards."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for

SIZE = 8 << 20


def guest(name, volume):
    boot = {"kernelArgs": "ws=4 rate=16 disk=1 drate=64", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"domain": {"resources": {"requests": {"memory": "64Mi"}}, "firmware": {"kernelBoot": boot},
                                "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}},
                     "volumes": [{"name": "data", **volume}]}}


def verify(site, name):
    site.ferry("vm", "console", name, "--send", "v")
    text = wait_for(f"the report of {name}", lambda: "VERIFY " in (t := site.ferry("vm", "console", name, "--once", "--tail", "4000").stdout)
                    and t, 60)
    return text.rsplit("VERIFY ", 1)[1].split("\n")[0].strip()


def move(site, name, method):
    wait_for(f"{name} to run", lambda: (site.api.vmi(name) or {}).get("status", {}).get("phase") == "Running", 90)
    wait_for(f"{name} to be movable", lambda: site.api.vmi(name)["status"].get("migrationMethod") == method, 60)
    done = site.ferry("migrate", name, "--watch")
    assert "moved from" in done.stdout, done.stdout
    report = verify(site, name)
    assert report.endswith("bad=0") and int(report.split("pages=")[1].split()[0]) > 15000, report


def test_disks(bin_dir):
    with Site(bin_dir) as site:
        shared = os.path.join(os.path.dirname(site.root), "shared")
        os.makedirs(shared)
        os.chmod(os.path.dirname(site.root), 0o711)
        with open(os.path.join(shared, "disk.img"), "wb") as f:
            f.truncate(SIZE)
        for node in ("node1", "node2"):
            os.makedirs(os.path.join(site.root, node, "data"))
            os.symlink(shared, os.path.join(site.root, node, "data/shared"))
        spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "manual"}
        site.api.create("persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "shared"},
                                              "spec": {**spec, "capacity": {"storage": "8Mi"}, "hostPath": {"path": "/data/shared"}}})
        site.api.create("persistentvolumeclaims", {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"},
                                                   "spec": {**spec, "resources": {"requests": {"storage": "8Mi"}}}})
        site.api.create("virtualmachineinstances", guest("shared", {"persistentVolumeClaim": {"claimName": "shared"}}))
        # as in KubeVirt's vmi-host-disk.yaml: what it waits for is told
        site.api.create("virtualmachineinstances", guest("elsewhere", {"hostDisk": {"path": "/var/data/disk.img", "type": "DiskOrCreate", "capacity": "1Gi"}}))
        wait_for("the option to be named", lambda: any("--host-path-roots" in e["message"] for e in site.api.list("events") if e["reason"] == "FailedMount"))
        site.api.create("virtualmachineinstances", guest("empty", {"emptyDisk": {"capacity": "8Mi"}}))
        move(site, "shared", "LiveMigration")
        move(site, "empty", "BlockMigration")
        assert json.loads(site.api.vmi("empty")["metadata"]["annotations"]["ferry.io/target-disks"])["disks"] == [
            {"name": "data", "bytes": SIZE}]
        for name in ("shared", "empty"):
            site.ferry("vm", "delete", name, "--wait")
        assert os.path.getsize(os.path.join(shared, "disk.img")) == SIZE


scenario.need_root()
scenario.main(globals())
