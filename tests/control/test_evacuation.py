#!/usr/bin/env python3
"""Nodes that are emptied, and policies, with ferry-apiserver and ferry-controller for real."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import MOVES, Plane, equal, phase


def on_node(p, node):
    return [v["metadata"]["name"] for v in p.api.list("virtualmachineinstances") if v["status"].get("nodeName") == node]


def patch_node(p, node, merge):
    status, answer = p.api.call("PATCH", f"/api/v1/nodes/{node}", merge, "application/merge-patch+json")
    assert status == 200, answer


def test_drain_taint(bin_dir):
    """Every VM that can be moved leaves; the limits hold; nothing is left to do afterwards."""
    with Plane(bin_dir, nodes=("a", "b", "c")) as p:
        for i in range(6):
            p.run_vm(f"vm{i}", **({"evictionStrategy": "LiveMigrate"} if i % 2 else {}))
        p.run_vm("stays", evictionStrategy="None")
        stays = p.api.vmi("stays")["status"]["nodeName"]
        patch_node(p, stays, {"spec": {"taints": [{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]}})
        wait_for("the node to be empty but for one", lambda: on_node(p, stays) == ["stays"], 60)
        wait_for("all moves to be over", lambda: all(phase(m) == "Succeeded" for m in p.api.list(MOVES)))
        for m in p.api.list(MOVES):
            equal(m["spec"]["priority"], "system-critical")
            equal(m["metadata"]["annotations"]["kubevirt.io/evacuationMigration"], stays)


def test_kubectl_drain(bin_dir):
    with Plane(bin_dir) as p:
        node = p.run_vm("web")["status"]["nodeName"]  # no strategy: LiveMigrate
        p.kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s")
        vmi = p.api.vmi("web")
        assert vmi["status"]["nodeName"] != node, vmi["status"]
        equal(phase(vmi), "Running")
        wait_for("the mark to go", lambda: "evacuationNodeName" not in p.api.vmi("web")["status"])


def test_policy(bin_dir):
    """The KubeVirt object, a policy of the namespace and one of the VM: the last wins, field by field."""
    with Plane(bin_dir) as p:
        p.kubectl("create", "namespace", "kubevirt")
        apply(p, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
                  "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
                  "spec": {"configuration": {"migrations": {"progressTimeout": 77, "completionTimeoutPerGiB": 88}}}})
        p.kubectl("label", "namespace", "default", "team=red")
        for name, selectors, more in (
                ("ns", {"namespaceSelector": {"team": "red"}}, {"allowAutoConverge": True}),
                ("vm", {"virtualMachineInstanceSelector": {"app": "web"}}, {"completionTimeoutPerGiB": 5})):
            apply(p, {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy",
                      "metadata": {"name": name}, "spec": {"selectors": selectors, **more}})
        p.run_vm("plain")
        p.run_vm("web")
        p.kubectl("label", "vmi", "web", "app=web")
        got = {}
        for vm in ("plain", "web"):
            p.create_move("m-" + vm, vm)
            state = p.wait_move("m-" + vm, "Succeeded")["status"]["migrationState"]
            config = state["migrationConfiguration"]
            got[vm] = (state["migrationPolicyName"], config["allowAutoConverge"], config["completionTimeoutPerGiB"],
                       config["progressTimeout"])
        equal(got, {"plain": ("ns", True, 88, 77), "web": ("vm", False, 5, 77)})


def apply(p, manifest):
    env = dict(os.environ, KUBECONFIG=p.kubeconfig, HOME=p.base)
    subprocess.run(["kubectl", "apply", "-f", "-"], input=json.dumps(manifest), env=env, text=True, timeout=60, check=True,
                   stdout=subprocess.DEVNULL)


scenario.main(globals())
