#!/usr/bin/env python3
"""Guests with the CPU of their host: where they may go, with ferry-apiserver, ferry-controller and its scheduler for real. The nodes,
played by a test agent, say what their CPUs are."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import Plane, equal, phase

HOST_MODEL = {"memory": {"guest": "64Mi"}, "cpu": {"model": "host-model"}}
CPU = ("cpu-model-migration.node.kubevirt.io/", "cpu-feature.node.kubevirt.io/")


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

        def note():
            return json.loads(p.api.migration("m1")["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))
        wait_for("the reason", lambda: note().get("reason") in ("Unschedulable", "NeverSchedulable"))
        assert "node selector" in note()["message"] or "affinity" in note()["message"], note()
        wait_for("the events", lambda: "migrationTargetPodUnschedulable" in p.events("m1") and
                 "NoSuitableNodesForHostModelMigration" in p.events("vm"))
        equal(phase(p.api.migration("m1")), "Scheduling")
        # A node that has it is what was missing.
        describe(p, "b", "Skylake", ["Haswell"], ["pcid"])
        p.wait_move("m1", "Succeeded")


scenario.main(globals())
