#!/usr/bin/env python3
"""Claims, volumes and where pods go, on a real ferry-apiserver and ferry-controller."""
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


scenario.main(globals())
