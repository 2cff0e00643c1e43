#!/usr/bin/env python3
"""A Linux guest with a seed of cloud-init whose user data is in a Secret. The guest mounts it and reads the same bytes before and after a
move; each node makes the disk itself, nothing of it is copied, and the Secret is nowhere but in the pods' own directories."""
import glob
import hashlib
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import linuxguest
import scenario
from ferrysite import Site, wait_for

USER_DATA = "#cloud-config\npassword: hidden-5e1f\n" + "# filler\n" * 500


def create(site):
    site.api.create("virtualmachineinstances", {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "seeded"},
        "spec": {"domain": {"memory": {"guest": linuxguest.MEMORY}, "firmware": {"kernelBoot": linuxguest.boot("disk=vda")},
                            "devices": {"disks": [{"name": "init", "disk": {"bus": "virtio"}}]}},
                 "volumes": [{"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "seed"}, "networkData": "version: 2\n"}}],
                 "terminationGracePeriodSeconds": 0}})


def seed_seen(site):
    """What the guest reads from its disk now."""
    def reports():
        text = site.ferry("vm", "console", "seeded", "--once", "--tail", "200000").stdout
        return [line.split() for line in text.splitlines() if line.startswith("SEED ")]
    count = len(reports())
    site.ferry("vm", "console", "seeded", "--send", "d")
    words = wait_for("the guest to read its seed", lambda: len(r := reports()) > count and r[-1], 120)
    return dict(w.split("=", 1) for w in words[1:])


def image(site):
    """The disk on the host, of the only pod."""
    (path,) = [p for d in site.pod_dirs() for p in glob.glob(d + "/disks/init/disk.img")]
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest(), path


def check(site):
    seen, (disk, path) = seed_seen(site), image(site)
    assert seen == {"label": "cidata", "disk": disk, "user-data": hashlib.sha256(USER_DATA.encode()).hexdigest()}, (seen, disk)
    label = subprocess.run(["blkid", "-p", "-o", "value", "-s", "LABEL", path], capture_output=True, text=True, check=True).stdout
    assert label.strip() == "cidata" and os.stat(path).st_mode & 0o7777 == 0o600, label
    return disk


def test_seed(bin_dir):
    linuxguest.install(bin_dir)
    with Site(bin_dir) as site:
        create(site)
        wait_for("the missing secret to be told", lambda: any(
            e["reason"] == "FailedMount" and "secret 'seed' not found" in e["message"] for e in site.api.list("events")), 90)
        site.api.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "seed"}, "stringData": {"userdata": USER_DATA}})
        monitor = site.monitor()
        monitor.wait_beats(5, linuxguest.BOOT_S, 0)
        first, node = check(site), site.node_of("seeded")
        vmi = site.api.vmi("seeded")
        assert any(c["type"] == "LiveMigratable" and c["status"] == "True" for c in vmi["status"]["conditions"]), vmi["status"]
        site.ferry("migrate", "seeded", "--watch", timeout=400)
        monitor.wait_beats(3, 120, monitor.mark())
        wait_for("the source's pod to go", lambda: len(site.pod_dirs()) == 1, 60)
        assert site.node_of("seeded") != node and check(site) == first
        annotations = site.api.vmi("seeded")["metadata"].get("annotations", {})
        assert "ferry.io/target-disks" not in annotations, annotations  # nothing was copied
        found = subprocess.run(["grep", "-rls", "hidden-5e1f", site.root], capture_output=True, text=True, check=False).stdout.split()
        assert found and all("/run/ferry/pods/" in p and ("/files/" in p or "/disks/" in p) or "/api.db" in p for p in found), found
        monitor.stop()
        site.ferry("vm", "delete", "seeded", "--wait", timeout=200)


scenario.need_root()
scenario.main(globals())
