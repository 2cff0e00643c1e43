#!/usr/bin/env python3
"""CPUs: nodes say what libvirt says, and a guest with the host's model goes where its CPU is.
Numbers of cases are items of docs/conformance.md."""
import contextlib
import json
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for

MODEL, MIGRATION = "cpu-model.node.kubevirt.io/", "cpu-model-migration.node.kubevirt.io/"
FEATURE, VENDOR = "cpu-feature.node.kubevirt.io/", "cpu-vendor.node.kubevirt.io/"
MACHINE = "machine-type.node.kubevirt.io/"
HOST_MODEL, NEEDED = "host-model-cpu.node.kubevirt.io/", "host-model-required-features.node.kubevirt.io/"


def labels(site, node):
    return site.api.get("nodes", node)["metadata"].get("labels", {})


def names(found, prefix):
    return {key[len(prefix):] for key in found if key.startswith(prefix)}


def patch_labels(site, node, changes):
    status, body = site.api.call("PATCH", site.api.path("nodes", node), {"metadata": {"labels": changes}},
                                 "application/merge-patch+json")
    assert status == 200, body


def guest(name):
    boot = {"kernelArgs": "ws=4 rate=16", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"domain": {"cpu": {"model": "host-model"}, "resources": {"requests": {"memory": "64Mi"}},
                                "firmware": {"kernelBoot": boot}, "devices": {}}}}


def movable(site, name):
    conditions = (site.api.vmi(name) or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "LiveMigratable" and c["status"] == "True" for c in conditions)


def cpu_selectors(site):
    """Of the pod that the guest is in: what it asks of a node's CPU."""
    pods = [p for p in site.api.list("pods") if p.get("status", {}).get("phase") == "Running"]
    assert len(pods) == 1, [p["metadata"]["name"] for p in pods]
    return {k: v for k, v in pods[0]["spec"].get("nodeSelector", {}).items() if ".node.kubevirt.io/" in k and not k.startswith(MACHINE)}


def check_machine(site, vm):
    """It has the newest machine type of the nodes' QEMU, by the VMI, by its pod and by the libvirt that runs it."""
    [pod] = [p for p in site.api.list("pods") if p.get("status", {}).get("phase") == "Running"]
    there = names(labels(site, pod["spec"]["nodeName"]), MACHINE)
    newest = max((t for t in there if re.fullmatch(r"pc-i440fx-[0-9.]+", t)), key=lambda t: [int(n) for n in t.split("-")[2].split(".")])
    assert site.api.vmi(vm)["status"]["machine"] == {"type": newest}, (newest, site.api.vmi(vm)["status"].get("machine"))
    assert [k for k in pod["spec"]["nodeSelector"] if k.startswith(MACHINE)] == [MACHINE + newest], pod["spec"]
    [directory] = [d for d in site.running_domains() if pod["metadata"]["uid"] in d]
    wait_for("the launcher to say it, which asks QEMU", lambda: site.launcher_status(directory).get("machine") == newest)


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def check_labels(site):
    for node in ("node1", "node2"):
        wait_for(f"{node} to know its CPU", lambda n=node: names(labels(site, n), HOST_MODEL), 60)
    found = labels(site, "node1")
    host = names(found, HOST_MODEL)
    assert len(host) == 1 and host <= names(found, MIGRATION), host
    assert "qemu64" in names(found, MODEL) and names(found, MODEL) <= names(found, MIGRATION), names(found, MODEL)
    assert names(found, NEEDED) <= names(found, FEATURE) and "sse2" in names(found, FEATURE), names(found, FEATURE)
    assert len(names(found, VENDOR)) == 1, found
    return host.pop(), names(found, NEEDED)


def check_refreshed(site):
    """A label that libvirt does not vouch for goes with the next heartbeat; others' labels stay."""
    patch_labels(site, "node1", {FEATURE + "made-up": "true", MODEL + "qemu64": None, "example.com/rack": "7"})
    wait_for("the labels to be right again", lambda: FEATURE + "made-up" not in (now := labels(site, "node1"))
             and MODEL + "qemu64" in now, 40)
    assert labels(site, "node1")["example.com/rack"] == "7"


def check_kept(site):
    """The answer is kept: a new handler does not ask again."""
    path = os.path.join(site.root, "node2/var/lib/ferry/cpu.json")
    before = os.stat(path)
    patch_labels(site, "node2", {FEATURE + "sse2": None})
    site.wait_restarted("node2-handler", site.kill("node2-handler"))
    wait_for("the label to be back", lambda: FEATURE + "sse2" in labels(site, "node2"), 40)
    after = os.stat(path)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_host_model(bin_dir):
    """609, 612: a guest with the host's model moves where model and features are, and back, asking for the same"""
    with Site(bin_dir) as site:
        host, needed = check_labels(site)
        check_refreshed(site)
        check_kept(site)
        site.api.create("virtualmachineinstances", guest("vm"))
        wait_for("the guest to be movable", lambda: movable(site, "vm"), 90)
        first = site.node_of("vm")
        assert cpu_selectors(site) == {}  # any node may have it first
        check_machine(site, "vm")
        asked = {MIGRATION + host: "true", **{FEATURE + f: "true" for f in needed}}
        for turn in range(2):
            site.ferry("migrate", "vm", "--watch")
            wait_for("the old pod to be gone", lambda: len([p for p in site.api.list("pods") if p["status"]["phase"] == "Running"]) == 1)
            got = cpu_selectors(site)
            assert {k: v for k, v in got.items() if not k.startswith(VENDOR)} == asked, (got, asked)
            assert (site.node_of("vm") == first) == bool(turn)
            check_machine(site, "vm")


def test_other_cpu(bin_dir):
    """610: no other node has the CPU: the move waits and says what is lacking, an event too; it goes on when there is one"""
    with Site(bin_dir) as site:
        host, _ = check_labels(site)
        site.api.create("virtualmachineinstances", guest("vm"))
        wait_for("the guest to be movable", lambda: movable(site, "vm"), 90)
        other = "node2" if site.node_of("vm") == "node1" else "node1"
        with stopped(site.pid(f"{other}-handler")):  # it would set its labels right; a node counts as there for 40 s
            patch_labels(site, other, {MIGRATION + host: None})
            move = site.ferry("migrate", "vm").stdout.split()[1]
            lacks = f"{other} lacks {MIGRATION}{host}"

            def waiting():
                return json.loads(site.api.migration(move)["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))
            wait_for("the move to say why it waits", lambda: lacks in waiting().get("message", ""), 30)
            assert waiting()["reason"] in ("NeverSchedulable", "Unschedulable"), waiting()
            wait_for("the event", lambda: any(e["reason"] == "NoSuitableNodesForHostModelMigration" and lacks in e["message"]
                                              and e["involvedObject"]["kind"] == "VirtualMachineInstance"
                                              for e in site.api.list("events")), 30)
            assert lacks in site.run("why", "vm", timeout=60).stdout
        wait_for("the move to succeed", lambda: site.api.migration(move)["status"]["phase"] == "Succeeded", 120)
        assert site.node_of("vm") == other


scenario.need_root()
scenario.main(globals())
