#!/usr/bin/env python3
"""Guests with the CPU of their host: where they may go, with ferry-apiserver, ferry-controller and its scheduler for real. The nodes,
played by a test agent, say what their CPUs are. Numbers of cases are items of docs/conformance.md."""
import itertools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import Plane, equal, phase

HOST_MODEL = {"memory": {"guest": "64Mi"}, "cpu": {"model": "host-model"}}
CPU = ("cpu-model-migration.node.kubevirt.io/", "cpu-feature.node.kubevirt.io/")
MACHINE = "machine-type.node.kubevirt.io/"


def describe(p, node, own, supports, features):
    """The labels of a node: its own model, models that a guest can have moved in with, features."""
    labels = {f"host-model-cpu.node.kubevirt.io/{own}": "true", **{CPU[0] + m: "true" for m in supports},
              **{f"host-model-required-features.node.kubevirt.io/{f}": "true" for f in features},
              **{CPU[1] + f: "true" for f in features}}
    patch_node(p, node, {"metadata": {"labels": labels}})


def patch_node(p, node, merge):
    status, answer = p.api.call("PATCH", f"/api/v1/nodes/{node}", merge, "application/merge-patch+json")
    assert status == 200, answer


def start_on_a(p):
    """A VM with its host's CPU, on node a."""
    others = [n for n in p.names if n != "a"]
    for node in others:
        patch_node(p, node, {"spec": {"unschedulable": True}})
    equal(p.run_vm("vm", domain=HOST_MODEL)["status"]["nodeName"], "a")
    for node in others:
        patch_node(p, node, {"spec": {"unschedulable": None}})


def selectors(p, vm, node):
    [pod] = [x for x in p.pods_of(vm) if x["spec"].get("nodeName") == node]
    return {k for k in pod["spec"]["nodeSelector"] if k.startswith(CPU)}


def move(p, name, vm="vm"):
    source = p.api.vmi(vm)["status"]["nodeName"]
    p.create_move(name, vm)
    p.wait_move(name, "Succeeded")
    wait_for("the source pod to go", lambda: [x["spec"]["nodeName"] for x in p.pods_of(vm)] != [source] and len(p.pods_of(vm)) == 1)
    return p.api.vmi(vm)["status"]["nodeName"]


def test_goes_where_its_cpu_is(bin_dir):
    """609, 613: the target pod asks for the source's model and features; it goes to a node that has them, though its own model is another"""
    with Plane(bin_dir, nodes=("a", "b", "c")) as p:
        describe(p, "a", "Haswell", ["Haswell"], ["pcid"])
        describe(p, "b", "Skylake", ["Skylake", "Haswell"], ["pcid", "avx512f"])
        describe(p, "c", "Penryn", ["Penryn"], [])
        start_on_a(p)
        equal(move(p, "m1"), "b")
        equal(selectors(p, "vm", "b"), {CPU[0] + "Haswell", CPU[1] + "pcid"})
        labels = p.api.get("nodes", "b")["metadata"]["labels"]
        assert all(labels.get(key) == "true" for key in selectors(p, "vm", "b")), labels


def test_way_back(bin_dir):
    """612: it goes back to the older node, because it still has the CPU that it began with: its selectors do not change"""
    with Plane(bin_dir) as p:
        describe(p, "a", "Haswell", ["Haswell"], ["pcid"])
        describe(p, "b", "Skylake", ["Skylake", "Haswell"], ["pcid", "avx512f"])
        start_on_a(p)
        equal(move(p, "m1"), "b")
        first = selectors(p, "vm", "b")
        equal(move(p, "m2"), "a")
        equal(selectors(p, "vm", "a"), first)


def test_nowhere_else(bin_dir):
    """610: no other node has its CPU: said as a reason of the closed set, as an event of the move and of the VM"""
    with Plane(bin_dir) as p:
        describe(p, "a", "Haswell", ["Haswell"], ["pcid"])
        describe(p, "b", "Penryn", ["Penryn"], [])
        start_on_a(p)
        p.create_move("m1", "vm")
        wait_for("the reason", lambda: note(p, "m1").get("reason") in ("Unschedulable", "NeverSchedulable"))
        assert "node selector" in note(p, "m1")["message"] or "affinity" in note(p, "m1")["message"], note(p, "m1")
        wait_for("the events", lambda: "migrationTargetPodUnschedulable" in p.events("m1") and
                 "NoSuitableNodesForHostModelMigration" in p.events("vm"))
        equal(phase(p.api.migration("m1")), "Scheduling")
        # A node that has it is what was missing.
        describe(p, "b", "Skylake", ["Haswell"], ["pcid"])
        p.wait_move("m1", "Succeeded")


def note(p, name):
    return json.loads(p.api.migration(name)["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))


def test_machine_type(bin_dir):
    """A VM gets the newest machine type that all nodes have, and keeps it; a node whose QEMU has not got it is none for it, and is named."""
    with Plane(bin_dir, nodes=("a", "b")) as p:
        early = p.run_vm("early")  # nobody has said yet what there is
        equal(early["status"].get("machine"), None)
        for node, versions in (("a", ("9.2", "10.0", "10.1")), ("b", ("9.2", "10.0"))):
            patch_node(p, node, {"metadata": {"labels": {f"{MACHINE}pc-{kind}-{v}": "true" for kind in ("i440fx", "q35") for v in versions}}})
        tries = itertools.count()
        wait_for("the controller to have heard", lambda: p.run_vm(f"try-{next(tries)}")["status"].get("machine"))
        for vm, asked, gets in (("plain", None, "pc-i440fx-10.0"), ("alias", "q35", "pc-q35-10.0"), ("named", "pc-q35-10.1", "pc-q35-10.1")):
            domain = {"memory": {"guest": "64Mi"}, **({"machine": {"type": asked}} if asked else {})}
            equal(p.run_vm(vm, domain=domain)["status"]["machine"], {"type": gets})
            [pod] = p.pods_of(vm)
            equal([k for k in pod["spec"]["nodeSelector"] if k.startswith(MACHINE)], [MACHINE + gets])
        equal(p.api.vmi("named")["status"]["nodeName"], "a")
        p.create_move("m1", "named")
        wait_for("the reason", lambda: f"no other node has its machine type: b lacks {MACHINE}pc-q35-10.1" in note(p, "m1").get("message", ""))
        equal(note(p, "m1")["reason"], "NeverSchedulable")
        for vm in ("plain", "alias", "early"):
            move(p, "go-" + vm, vm)
        equal(p.api.vmi("plain")["status"]["machine"], {"type": "pc-i440fx-10.0"})
        # Another QEMU is installed there.
        patch_node(p, "b", {"metadata": {"labels": {MACHINE + "pc-q35-10.1": "true"}}})
        p.wait_move("m1", "Succeeded")
        equal(p.api.vmi("named")["status"]["nodeName"], "b")


scenario.main(globals())
