#!/usr/bin/env python3
"""VirtualMachines: run strategies, start, stop and restart, on a real ferry-apiserver and ferry-controller. Numbers of cases are
items of docs/conformance.md."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import VMIS, Plane, equal, phase

VMS = "virtualmachines"
MERGE = "application/merge-patch+json"


def create(p, name, strategy, **spec):
    p.api.create(VMS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": {
        "runStrategy": strategy, "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {
            "terminationGracePeriodSeconds": 0, "domain": {"memory": {"guest": "64Mi"}}}}, **spec}})


def patch(p, plural, name, merge, sub=""):
    status, answer = p.api.call("PATCH", p.api.path(plural, name) + sub, merge, MERGE)
    assert status == 200, answer


def power(p, name, verb, want=202):
    status, answer = p.api.call(
        "PUT", f"/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/{name}/{verb}", {})
    equal(status, want)
    return answer


def wait_status(p, name, want):
    def reached():
        vm = p.api.get(VMS, name)
        return vm.get("status", {}).get("printableStatus") == want and vm
    return wait_for(f"{name} to be {want}; its status: {p.api.get(VMS, name).get('status')}", reached, 60)


def wait_other(p, name, uid):
    """Another instance than `uid` that runs."""
    return wait_for(f"a new instance of {name}", lambda: (v := p.api.vmi(name)) and v["metadata"]["uid"] != uid and
                    phase(v) == "Running" and v, 60)


def end_guest(p, name, how):
    """The guest's own end: its pod is over, and the controller sees it."""
    [pod] = wait_for(f"one pod of {name}", lambda: len(all_ := p.pods_of(name)) == 1 and all_, 60)
    patch(p, "pods", pod["metadata"]["name"], {"status": {"phase": how, "containerStatuses": []}}, "/status")


SIZES = "/apis/instancetype.kubevirt.io/v1beta1"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


def put(p, path, kind, name, **spec):
    status, answer = p.api.call("POST", path, {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind,
                                               "metadata": {"name": name}, "spec": spec})
    assert status == 201, answer


def change(p, path, merge):
    status, answer = p.api.call("PATCH", path, merge, MERGE)
    assert status == 200, answer


def test_instance_type(bin_dir):
    """706, 707, 708, 709, 712: a VM waits for the instance type that it names, keeps what it got, and needs a restart for another one"""
    types, preferences = SIZES + "/virtualmachineclusterinstancetypes", SIZES + "/namespaces/default/virtualmachinepreferences"

    def failure():
        return next((c for c in p.api.get(VMS, "web")["status"].get("conditions", []) if c["type"] == "Failure"), {})
    with Plane(bin_dir) as p:
        create(p, "web", "Always", instancetype={"name": "small"}, preference={"name": "linux", "kind": "VirtualMachinePreference"},
               template={"spec": {"terminationGracePeriodSeconds": 0, "domain": {"devices": {"disks": [{"name": "d"}]}},
                                  "volumes": [{"name": "d", "emptyDisk": {"capacity": "1Mi"}}]}})
        wait_for("the VM to say what it misses", lambda: failure().get("reason") == "FailedFindInstancetype")
        assert 'virtualmachineclusterinstancetypes.instancetype.kubevirt.io "small" not found' in failure()["message"], failure()
        put(p, types, "VirtualMachineClusterInstancetype", "small", cpu={"guest": 2}, memory={"guest": "64Mi"})
        wait_for("the VM to miss the other", lambda: failure().get("reason") == "FailedFindPreference")
        wait_for("the event", lambda: "FailedFindPreference" in p.events("web"))
        put(p, preferences, "VirtualMachinePreference", "linux", devices={"preferredDiskBus": "sata"}, cpu={"preferredCPUTopology": "cores"})
        status = wait_status(p, "web", "Running")["status"]
        vmi = p.api.vmi("web")
        domain, notes = vmi["spec"]["domain"], vmi["metadata"]["annotations"]
        equal((domain["cpu"]["sockets"], domain["cpu"]["cores"], domain["cpu"]["threads"], domain["memory"]["guest"]), (1, 2, 1, "64Mi"))
        equal(domain["devices"]["disks"][0]["disk"]["bus"], "sata")
        equal((notes["kubevirt.io/cluster-instancetype-name"], notes["kubevirt.io/preference-name"]), ("small", "linux"))
        equal(failure(), {})
        kept = [status[k]["controllerRevisionRef"]["name"] for k in ("instancetypeRef", "preferenceRef")]
        equal(sorted(r["metadata"]["name"] for r in p.api.call("GET", REVISIONS)[1]["items"]), sorted(kept))
        # a change of the type is not one of the VM, not even by a restart
        change(p, types + "/small", {"spec": {"cpu": {"guest": 4}}})
        p.delete(VMIS, "web")
        vmi = wait_other(p, "web", vmi["metadata"]["uid"])
        equal(vmi["spec"]["domain"]["cpu"]["cores"], 2)
        # another type is, by a restart
        put(p, types, "VirtualMachineClusterInstancetype", "big", cpu={"guest": 3}, memory={"guest": "128Mi"})
        patch(p, VMS, "web", {"spec": {"instancetype": {"name": "big"}}})
        wait_for("a restart to be due", lambda: any(c["type"] == "RestartRequired" for c in p.api.get(VMS, "web")["status"]["conditions"]))
        p.delete(VMIS, "web")
        vmi = wait_other(p, "web", vmi["metadata"]["uid"])
        equal((vmi["spec"]["domain"]["cpu"]["cores"], vmi["spec"]["domain"]["memory"]["guest"]), (3, "128Mi"))
        wait_for("no restart to be due", lambda: not any(c["type"] == "RestartRequired" for c in p.api.get(VMS, "web")["status"]["conditions"]))
        p.delete(VMS, "web")
        p.wait_gone(VMS, "web")


def test_always(bin_dir):
    """It runs, is moved, comes back when it ends; halted it stops; deleted it goes with all that it made."""
    with Plane(bin_dir) as p:
        create(p, "web", "Always")
        vm = wait_status(p, "web", "Running")
        vmi = p.api.vmi("web")
        equal(vmi["metadata"]["ownerReferences"][0]["uid"], vm["metadata"]["uid"])
        equal(vmi["metadata"]["labels"]["app"], "shop")
        wait_for("ready", lambda: p.api.get(VMS, "web")["status"].get("ready"))
        equal((vm["status"]["created"], vm["status"]["runStrategy"]), (True, "Always"))
        p.create_move("m1", "web")
        p.wait_move("m1", "Succeeded")
        equal(p.api.vmi("web")["metadata"]["uid"], vmi["metadata"]["uid"])
        end_guest(p, "web", "Succeeded")
        vmi = wait_other(p, "web", vmi["metadata"]["uid"])
        power(p, "web", "restart")
        vmi = wait_other(p, "web", vmi["metadata"]["uid"])
        wait_for("the requests to be done", lambda: "stateChangeRequests" not in p.api.get(VMS, "web")["status"])
        power(p, "web", "stop")
        p.wait_gone(VMIS, "web")
        equal(p.api.get(VMS, "web")["spec"]["runStrategy"], "Halted")
        wait_status(p, "web", "Stopped")
        power(p, "web", "stop", 409)
        power(p, "web", "start")
        wait_status(p, "web", "Running")
        power(p, "web", "start", 409)
        p.delete(VMS, "web")
        p.wait_gone(VMS, "web")
        p.wait_gone(VMIS, "web")
        wait_for("no pods", lambda: not p.pods_of("web"))
        assert {"SuccessfulCreate", "SuccessfulDelete"} <= set(p.events("web"))


def test_manual(bin_dir):
    with Plane(bin_dir) as p:
        create(p, "web", "Manual")
        wait_status(p, "web", "Stopped")
        assert not p.api.vmi("web")
        power(p, "web", "start")
        wait_status(p, "web", "Running")
        uid = p.api.vmi("web")["metadata"]["uid"]
        end_guest(p, "web", "Succeeded")
        wait_status(p, "web", "Stopped")
        equal(phase(p.api.vmi("web")), "Succeeded")  # left to be looked at
        power(p, "web", "start")
        wait_other(p, "web", uid)
        power(p, "web", "stop")
        p.wait_gone(VMIS, "web")
        wait_status(p, "web", "Stopped")


def test_rerun_on_failure(bin_dir):
    with Plane(bin_dir) as p:
        create(p, "web", "RerunOnFailure")
        wait_status(p, "web", "Running")
        uid = p.api.vmi("web")["metadata"]["uid"]
        end_guest(p, "web", "Failed")
        wait_other(p, "web", uid)
        wait_status(p, "web", "Running")
        end_guest(p, "web", "Succeeded")
        p.wait_gone(VMIS, "web")
        wait_status(p, "web", "Stopped")
        time.sleep(1)
        assert not p.api.vmi("web")


def test_once_and_legacy(bin_dir):
    with Plane(bin_dir) as p:
        create(p, "one", "Once")
        create(p, "old", None, running=True)
        wait_status(p, "one", "Running")
        wait_status(p, "old", "Running")
        power(p, "one", "start", 409)
        power(p, "one", "restart", 409)
        end_guest(p, "one", "Failed")
        wait_status(p, "one", "Stopped")
        power(p, "old", "stop")
        p.wait_gone(VMIS, "old")
        vm = p.api.get(VMS, "old")
        equal((vm["spec"]["running"], vm["spec"].get("runStrategy")), (False, None))


def test_killed_often(bin_dir):
    """A controller that dies at any moment starts no VM twice and forgets no request."""
    with Plane(bin_dir) as p:
        create(p, "web", "Manual")
        wait_status(p, "web", "Stopped")
        for i in range(3):
            power(p, "web", "start")
            time.sleep(0.03 * i)
            p.kill_controller()
            p.start_controller()
            wait_status(p, "web", "Running")
            wait_for("the request to be done", lambda: "stateChangeRequests" not in p.api.get(VMS, "web")["status"])
            power(p, "web", "stop")
            time.sleep(0.03 * i)
            p.kill_controller()
            p.start_controller()
            p.wait_gone(VMIS, "web", 60)
            wait_for("the request to be done", lambda: "stateChangeRequests" not in p.api.get(VMS, "web")["status"])
            assert not p.api.vmi("web")


def test_refused_instance(bin_dir):
    """A template that the API does not take is said in the VM's status, and the VM starts when it is mended."""
    with Plane(bin_dir) as p:
        p.api.create(VMS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"},
                           "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}}}}})
        def failure():
            conditions = p.api.get(VMS, "web").get("status", {}).get("conditions", [])
            return [c for c in conditions if c["type"] == "Failure"]
        assert "memory" in wait_for("the refusal", failure)[0]["message"]
        patch(p, VMS, "web", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}})
        wait_status(p, "web", "Running")
        assert not failure()


scenario.main(globals())
