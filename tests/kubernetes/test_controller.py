"""ferry-controller on Kubernetes: what tests/control asks of it on the embedded engine, and what is Kubernetes' own."""
import json
import os
import runpy
import sys

import plane
from cases import engine
from engine import wait_for
from nodes import MOVES, VMIS, equal, phase

# Of tests/control: all but those that read the words of Ferry's own scheduler and those without an API server.
SHARED = {"test_control.py": ["test_vm_is_placed", "test_pod_of_a_running_vm_goes", "test_move", "test_move_to_a_named_node",
          "test_finished_moves_are_collected", "test_cancel_before_hand_off", "test_cancel_while_limits_hold", "test_cancel_after_hand_off",
          "test_target_pod_lost", "test_controller_killed_in_each_phase", "test_controller_killed_at_any_instant",
          "test_limits", "test_standby_takes_over"],
          "test_evacuation.py": ["test_drain_taint", "test_policy"], "test_vm.py": ["test_instance_type"],
          "test_site.py": ["test_fifty_vms_drained", "test_quota_hit_and_released", "test_figures",
                           "test_outdated_launchers"]}
# Those that need the webhook.
REVIEWED = {"test_evacuation.py": ["test_kubectl_drain"]}


def shared_tests(files, of_plane):
    """Functions of tests/control, on Kubernetes' plane."""
    import nodes
    import scenario
    original, run = nodes.Plane, scenario.main
    nodes.Plane, scenario.main = of_plane, lambda names: None
    try:
        found = {}
        for file, wanted in files.items():
            names = runpy.run_path(os.path.join(os.path.dirname(nodes.__file__), file), run_name="control")
            found.update({n: names[n] for n in wanted})
    finally:
        nodes.Plane, scenario.main = original, run
    return found


def queue_note(p, name):
    return json.loads(p.api.migration(name)["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))


def test_no_second_node(bin_dir):
    """kube-scheduler's words reach the migration; it goes on when a node comes."""
    with plane.Plane(bin_dir, nodes=("a",)) as p:
        p.run_vm("web")
        p.create_move("m1", "web")
        wait_for("the reason", lambda: queue_note(p, "m1").get("reason") == "Unschedulable")
        message = queue_note(p, "m1")["message"]
        assert message.startswith("0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."), message
        equal(phase(p.api.migration("m1")), "Scheduling")
        wait_for("the event", lambda: "migrationTargetPodUnschedulable" in p.events("m1"))
        p.agent.join("b")
        move = p.wait_move("m1", "Succeeded")
        equal(move["status"]["migrationState"]["targetNode"], "b")


def test_vm_that_fits_nowhere(bin_dir):
    with plane.Plane(bin_dir) as p:
        p.create_vm("big", domain={"memory": {"guest": "64Gi"}})

        def condition():
            return [c for c in p.api.vmi("big").get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"]
        [c] = wait_for("the reason", condition)
        assert c["message"].startswith("0/2 nodes are available: 2 Insufficient memory."), c
        equal(phase(p.api.vmi("big")), "Scheduling")
        p.delete(VMIS, "big")
        p.wait_gone(VMIS, "big")


def test_cordoned_node_takes_nothing(bin_dir):
    with plane.Plane(bin_dir, nodes=("a", "b", "c")) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        closed, target = [n for n in "abc" if n != source]
        p.kubectl("cordon", closed)
        p.create_move("m1", "web")
        p.wait_move("m1", "Succeeded")
        equal(p.api.vmi("web")["status"]["nodeName"], target)


def test_kubectl_alone(bin_dir):
    """A person with kubectl: make a VM and a migration, wait for the end, read what happened."""
    with plane.Plane(bin_dir) as p:
        kubectl = p.engine.kubectl
        kubectl("apply", "-f", "-", stdin="""
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: web}
spec: {domain: {memory: {guest: 64Mi}, devices: {}}}
""")
        kubectl("wait", "vmi/web", "--for=jsonpath={.status.phase}=Running", "--timeout=40s")
        kubectl("create", "-f", "-", stdin="""
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {name: go}
spec: {vmiName: web}
""")
        kubectl("wait", "vmim/go", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=40s")
        row = kubectl("get", "vmim", "go", "--no-headers").stdout.split()
        equal(row[1:3], ["Succeeded", "web"])
        equal(sorted(row[3:5]), ["a", "b"])
        wait_for("the event", lambda: "SuccessfulMigration" in kubectl("describe", "vmim", "go").stdout)
        kubectl("delete", "vmi", "web", "--timeout=40s")
        equal(p.api.list(VMIS), [])


def test_apiserver_killed(bin_dir):
    with plane.Plane(bin_dir) as p:
        p.run_vm("web")
        for name, want, hold in (("m1", "PreparingTarget", "prepare"), ("m2", "Running", "finish")):
            p.agent.hold = {hold}
            p.create_move(name, "web")
            p.wait_move(name, want)
            p.kill_apiserver()
            p.agent.hold = set()
            p.wait_move(name, "Succeeded")
            wait_for("one pod", lambda: len(p.pods_of("web")) == 1)


def test_deleted_vm_takes_its_migration_along(bin_dir):
    with plane.Plane(bin_dir) as p:
        p.run_vm("web")
        p.agent.hold = {"finish"}
        p.create_move("m1", "web")
        p.wait_move("m1", "Running")
        p.agent.hold = set()
        p.delete(VMIS, "web")
        p.wait_gone(VMIS, "web", 60)
        wait_for("the migration to end", lambda: not (m := p.api.migration("m1")) or phase(m) in ("Succeeded", "Failed"))
        equal(p.pods_of("web"), [])
        assert len(p.api.list(MOVES)) <= 1


if __name__ == "__main__":
    engine.need("kubernetes", scheduler=True)
    import scenario as runner
    runner.main({**shared_tests(SHARED, plane.Plane), **shared_tests(REVIEWED, plane.WebhookPlane), **{n: f for n, f in globals().items() if n.startswith("test_")}})
