#!/usr/bin/env python3
"""Claims, volumes and where pods go, on a real ferry-apiserver and ferry-controller. Numbers of cases are items of docs/conformance.md."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import Plane, equal, phase

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"


def post(p, path, body):
    status, answer = p.api.call("POST", path, body)
    assert status == 201, answer
    return answer


def storage_class(p, name, mode="Immediate"):
    post(p, "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, "provisioner": "none",
                                                       "volumeBindingMode": mode})


def volume(p, name, node=None, size="1Gi", modes=("ReadWriteMany",), cls="shared"):
    spec = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": cls,
            "hostPath": {"path": "/srv/" + name}}
    if node:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}
    post(p, VOLUMES, {"metadata": {"name": name}, "spec": spec})


def claim(p, name, size="1Gi", modes=("ReadWriteMany",), cls="shared"):
    post(p, CLAIMS, {"metadata": {"name": name}, "spec": {
        "accessModes": list(modes), "storageClassName": cls, "resources": {"requests": {"storage": size}}}})


def disk(name, claim_name):
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": claim_name}}]}


def queue(p, move):
    return json.loads(p.api.migration(move)["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))


def condition(obj, kind):
    return next((c for c in obj.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def test_waits_for_its_claim(bin_dir):
    """A VM waits for a claim that is not there, then for one that is not bound, and says so; then it runs."""
    with Plane(bin_dir) as p:
        storage_class(p, "shared")
        p.create_vm("web", **disk("data", "one"))
        wait_for("the reason", lambda: condition(p.api.vmi("web"), "Synchronized").get("reason") == "FailedPvcNotFound")
        equal(p.pods_of("web"), [])
        claim(p, "one")
        wait_for("the scheduler's reason", lambda: "unbound immediate PersistentVolumeClaims" in condition(
            p.api.vmi("web"), "PodScheduled").get("message", ""))
        volume(p, "v1")
        vmi = wait_for("it to run", lambda: (v := p.api.vmi("web")) and phase(v) == "Running" and v, 60)
        [status] = vmi["status"]["volumeStatus"]
        equal((status["name"], status["persistentVolumeClaimInfo"]["accessModes"]), ("data", ["ReadWriteMany"]))
        [pod] = p.pods_of("web")
        equal(pod["spec"]["volumes"], [{"name": "data", "persistentVolumeClaim": {"claimName": "one"}}])
        p.create_move("m1", "web")
        p.wait_move("m1", "Succeeded")


def test_volume_of_one_node(bin_dir):
    """A claim that is bound with its first pod gets a volume of the node, and the pod goes where it is."""
    with Plane(bin_dir, nodes=("a", "b", "c")) as p:
        storage_class(p, "slow", "WaitForFirstConsumer")
        volume(p, "v-b", node="b", cls="slow")
        claim(p, "one", cls="slow")
        wait_for("the claim to be pending", lambda: phase(p.api.call("GET", CLAIMS + "/one")[1]) == "Pending")
        vmi = p.run_vm("web", **disk("data", "one"))
        equal(vmi["status"]["nodeName"], "b")
        bound = p.api.call("GET", CLAIMS + "/one")[1]
        equal((phase(bound), bound["spec"]["volumeName"]), ("Bound", "v-b"))
        # No other node can have it: the move never finds one, and says that it is the volume.
        p.create_move("m1", "web")
        wait_for("why it waits", lambda: queue(p, "m1").get("reason") == "NeverSchedulable")
        assert "PersistentVolume's node affinity" in queue(p, "m1")["message"], queue(p, "m1")
        p.delete("virtualmachineinstancemigrations", "m1")
        p.wait_gone("virtualmachineinstancemigrations", "m1")


def test_claim_of_one_node_alone(bin_dir):
    """502: A claim that only one node can have ends the move before anything is made, in words."""
    with Plane(bin_dir) as p:
        storage_class(p, "shared")
        volume(p, "v1", modes=("ReadWriteOnce",))
        claim(p, "one", modes=("ReadWriteOnce",))
        p.run_vm("web", **disk("data", "one"))
        p.create_move("m1", "web")
        move = p.wait_move("m1", "Failed")
        assert "DeviceNotMigratable: claim one of volume data is not ReadWriteMany" in \
            move["status"]["migrationState"]["failureReason"], move["status"]
        equal(len(p.pods_of("web")), 1)


def test_why_no_node(bin_dir):
    """The three ways to wait for a node are told apart."""
    with Plane(bin_dir) as p:
        p.run_vm("web")
        p.create_move("never", "web", addedNodeSelector={"disk": "ssd"})
        wait_for("never matching", lambda: queue(p, "never").get("reason") == "NeverSchedulable")
        p.delete("virtualmachineinstancemigrations", "never")
        p.wait_gone("virtualmachineinstancemigrations", "never")
        p.run_vm("fill", domain={"memory": {"guest": "3800Mi"}})  # on the other node
        p.create_move("short", "web")
        wait_for("nodes short for now", lambda: queue(p, "short").get("reason") == "Unschedulable")
        assert "1 Insufficient memory" in queue(p, "short")["message"], queue(p, "short")
        [target] = [o for o in p.pods_of("web") if "nodeName" not in o["spec"]]
        assert "FailedScheduling" in p.events(target["metadata"]["name"])
        p.delete("virtualmachineinstances", "fill")
        p.wait_move("short", "Succeeded")


MERGE = "application/merge-patch+json"
UPDATER = {"metadata": {"name": "kubevirt"}, "spec": {"workloadUpdateStrategy": {
    "workloadUpdateMethods": ["LiveMigrate"]}}}


def vm_with_claim(p, name):
    """A VM on a claim of one node alone, and another claim that it can go to."""
    storage_class(p, "shared")
    for claim_name in ("old", "new"):
        volume(p, "v-" + claim_name, modes=("ReadWriteOnce",))
        claim(p, claim_name, modes=("ReadWriteOnce",))
    post(p, "/apis/kubevirt.io/v1/namespaces/default/kubevirts", UPDATER)
    p.api.create("virtualmachines", {"metadata": {"name": name}, "spec": {
        "runStrategy": "Always", "updateVolumesStrategy": "Migration", "template": {"spec": {
            "terminationGracePeriodSeconds": 0, "domain": {"memory": {"guest": "64Mi"}}, **disk("data", "old")}}}})
    return wait_for("it to run", lambda: (v := p.api.vmi(name)) and phase(v) == "Running" and v, 60)


def set_claim(p, name, claim_name):
    status, answer = p.api.call("PATCH", p.api.path("virtualmachines", name), {"spec": {"template": {"spec": disk(
        "data", claim_name)}}}, MERGE)
    assert status == 200, answer


def claim_of(vmi):
    return vmi["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]


def test_volume_migration(bin_dir):
    """468, 470: A changed claim of a running VM goes with a move, which is made for it."""
    with Plane(bin_dir) as p:
        source = vm_with_claim(p, "web")["status"]["nodeName"]
        set_claim(p, "web", "new")
        vmi = wait_for("the move", lambda: (v := p.api.vmi("web"))["status"]["nodeName"] != source and v)
        equal(claim_of(vmi), "new")
        wait_for("the change to be over", lambda: "migratedVolumes" not in p.api.vmi("web")["status"])
        vmi = p.api.vmi("web")
        equal(condition(vmi, "VolumesChange"), {})
        [pod] = wait_for("one pod", lambda: len(o := p.pods_of("web")) == 1 and o)
        equal(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "new")
        wait_for("the VM to know", lambda: "volumeUpdateState" not in p.api.get("virtualmachines", "web")["status"])


def test_volume_migration_called_off(bin_dir):
    """466: Setting the volumes back ends the move, and the VM stays as it was."""
    with Plane(bin_dir) as p:
        source = vm_with_claim(p, "web")["status"]["nodeName"]
        p.agent.hold = {"finish"}
        set_claim(p, "web", "new")
        wait_for("the move to run", lambda: [m for m in p.api.list("virtualmachineinstancemigrations")
                                             if phase(m) == "Running"])
        equal(p.api.vmi("web")["status"]["migratedVolumes"][0]["sourcePVCInfo"]["claimName"], "old")
        set_claim(p, "web", "old")
        vmi = wait_for("the old claim", lambda: claim_of(v := p.api.vmi("web")) == "old" and v)
        equal((phase(vmi), vmi["status"]["nodeName"]), ("Running", source))
        assert "migratedVolumes" not in vmi["status"], vmi["status"]
        assert vmi["status"]["migrationState"]["failed"]
        wait_for("one pod", lambda: len(p.pods_of("web")) == 1)


def test_volume_change_that_needs_a_restart(bin_dir):
    """465: A claim that does not exist is said in the VM's status; nothing moves."""
    with Plane(bin_dir) as p:
        vm_with_claim(p, "web")
        set_claim(p, "web", "nowhere")
        wait_for("the reason", lambda: "does not exist" in condition(
            p.api.get("virtualmachines", "web"), "RestartRequired").get("message", ""))
        equal(p.api.list("virtualmachineinstancemigrations"), [])
        equal(claim_of(p.api.vmi("web")), "old")


scenario.main(globals())
