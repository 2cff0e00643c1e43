#!/usr/bin/env python3
"""A whole site at work: nodes with many VMs drained, quotas, launchers of another image, figures. ferry-apiserver and
ferry-controller for real, the nodes played by a test agent; tests/kubernetes runs the same on Kubernetes."""
import http.client
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import MOVES, VMIS, Plane, equal, phase


def apply(p, manifest):
    env = dict(os.environ, KUBECONFIG=p.kubeconfig, HOME=p.base)
    subprocess.run(["kubectl", "apply", "-f", "-"], input=json.dumps(manifest), env=env, text=True, timeout=60, check=True,
                   stdout=subprocess.DEVNULL)


def note(p, name):
    return json.loads(p.api.migration(name)["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))


def test_fifty_vms_drained(bin_dir):
    """One of five nodes is emptied by its taint: every VM leaves, never more than the limits allow, and each ends."""
    with Plane(bin_dir, nodes=tuple("abcde")) as p:
        names = [f"vm{i}" for i in range(50)]
        for name in names:
            p.create_vm(name, evictionStrategy="LiveMigrate")
        wait_for("all to run", lambda: len([v for v in p.api.list(VMIS) if phase(v) == "Running"]) == 50, 120)
        homes = {v["metadata"]["name"]: v["status"]["nodeName"] for v in p.api.list(VMIS)}
        drained = max(set(homes.values()), key=list(homes.values()).count)
        leaving = {n for n, node in homes.items() if node == drained}
        assert len(leaving) >= 10, homes
        status, answer = p.api.call("PATCH", f"/api/v1/nodes/{drained}", {"spec": {"taints": [
            {"key": "kubevirt.io/drain", "effect": "NoSchedule"}]}}, "application/merge-patch+json")
        assert status == 200, answer

        def empty():
            moves = p.api.list(MOVES)
            active = [m for m in moves if phase(m) not in ("", "Pending", "Succeeded", "Failed")]
            assert len(active) <= 2, [m["metadata"]["name"] for m in active]  # all of them leave one node
            return not [v for v in p.api.list(VMIS) if v["status"].get("nodeName") == drained]
        wait_for("the node to be empty", empty, 180)
        wait_for("the moves to be over", lambda: all(phase(m) == "Succeeded" for m in p.api.list(MOVES)))
        equal({m["spec"]["vmiName"] for m in p.api.list(MOVES)}, leaving)
        wait_for("one pod for each", lambda: len(p.api.list("pods")) == 50)
        equal(len([v for v in p.api.list(VMIS) if phase(v) == "Running"]), 50)


def set_quota(p, pods):
    """Kubernetes' quota controller, which the test does not run, would copy this."""
    used = len(p.api.list("pods"))
    apply(p, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"},
              "spec": {"hard": {"pods": str(pods)}}})
    p.api.call("PATCH", "/api/v1/namespaces/default/resourcequotas/few/status",
               {"status": {"hard": {"pods": str(pods)}, "used": {"pods": str(used)}}}, "application/merge-patch+json")


def test_quota_hit_and_released(bin_dir):
    with Plane(bin_dir) as p:
        p.run_vm("web")
        set_quota(p, 1)
        p.create_move("m1", "web")
        wait_for("the reason", lambda: note(p, "m1").get("reason") == "Quota", 60)
        move = p.api.migration("m1")
        [c] = [c for c in move["status"]["conditions"] if c["type"] == "migrationRejectedByResourceQuota"]
        equal(c["status"], "True")
        assert "exceeded quota" in note(p, "m1")["message"], note(p, "m1")
        assert note(p, "m1")["checkSeconds"] > 0
        wait_for("the event", lambda: "FailedCreate" in p.events("web"))
        equal(len(p.pods_of("web")), 1)
        set_quota(p, 3)
        move = p.wait_move("m1", "Succeeded")
        assert not [c for c in move["status"].get("conditions", []) if c["type"] == "migrationRejectedByResourceQuota"]


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def figures(path):
    connection = Unix(path)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    equal(answer.status, 200)
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def leads(path):
    """The socket is there a moment before anybody listens."""
    try:
        return figures(path).get("ferry_controller_leading") == "1"
    except (FileNotFoundError, ConnectionRefusedError):
        return False


def test_figures(bin_dir):
    with Plane(bin_dir) as p:
        path = os.path.join(p.base, "metrics.sock")
        p.stop_controller()
        p.start_controller("--metrics", path)
        wait_for("the figures", lambda: leads(path))
        equal(figures(path)["kubevirt_vmi_migrations_in_running_phase"], "0")
        p.run_vm("web")
        p.agent.hold = {"finish"}
        p.create_move("m1", "web")
        p.wait_move("m1", "Running")
        wait_for("the figure", lambda: figures(path)["kubevirt_vmi_migrations_in_running_phase"] == "1")
        p.agent.hold = set()
        p.wait_move("m1", "Succeeded")
        wait_for("the figures", lambda: figures(path).get(
            'kubevirt_vmi_migration_succeeded{vmi="web",vmim="m1",namespace="default"}') == "1")
        got = figures(path)
        equal(got["kubevirt_vmi_migrations_in_running_phase"], "0")
        for want in ("Scheduling", "Running", "Succeeded"):
            equal(got['kubevirt_vmi_migration_phase_transition_time_from_creation_seconds_count{phase="%s"}' % want], "1")
        equal(got['ferry_migrations_waiting{reason="ClusterLimit"}'], "0")


def test_outdated_launchers(bin_dir):
    """Another image: VMs that can move are moved, and nothing more happens once they are."""
    with Plane(bin_dir) as p:
        p.run_vm("web")
        apply(p, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt", "namespace": "default"},
                  "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}})
        p.stop_controller()
        p.start_controller("--launcher-image", "ferry.io/ferry-launcher:next")
        [move] = wait_for("a move", lambda: [m for m in p.api.list(MOVES) if phase(m) == "Succeeded"], 60)
        equal(move["spec"]["priority"], "system-critical")
        assert "kubevirt.io/workloadUpdateMigration" in move["metadata"]["annotations"]

        def outdated():
            status, kubevirt = p.api.call("GET", "/apis/kubevirt.io/v1/namespaces/default/kubevirts/kubevirt")
            equal(status, 200)
            return kubevirt.get("status", {}).get("outdatedVirtualMachineInstanceWorkloads")
        wait_for("none to be outdated", lambda: outdated() == 0, 60)
        [pod] = wait_for("one pod", lambda: (pods := p.pods_of("web")) and len(pods) == 1 and pods)
        equal(pod["spec"]["containers"][0]["image"], "ferry.io/ferry-launcher:next")
        equal(len(p.api.list(MOVES)), 1)


if __name__ in ("__main__", "control"):
    scenario.main(globals())
