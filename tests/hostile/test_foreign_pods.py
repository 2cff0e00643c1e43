#!/usr/bin/env python3
"""A VMI whose status names another VMI's pod: the handler of the pod's node lets nobody stop, cancel, withdraw or pause that guest
through it, and a launcher refuses what is meant for another VMI. Real handlers, launchers and guests; the test writes the status as a
node that was taken over could, and calls the launcher as a handler that was misled would."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", d) for d in ("handler", "lib")]
from lab import VMIS, run, starts
from ferrysite import wait_for

JSON_PATCH = "application/json-patch+json"


def sock(lab, pod):
    return os.path.join(lab.root("h1"), "run/ferry/pods", pod, "launcher.sock")


def warnings(lab):
    return open(os.path.join(lab.base, "handler-h1.log"), errors="replace").read().count("names a pod that is not its own")


def evil(lab, name, status, **meta):
    """A VMI of the attacker's, and the wait until the handler has seen what it names."""
    seen = warnings(lab)
    lab.api.create(VMIS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name, **meta},
                          "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}, "status": status})
    wait_for(f"the handler to see {name}", lambda: warnings(lab) > seen)


def unharmed(lab, pod, what):
    domain = lab.launcher("h1", pod)["domain"]
    assert domain["state"] == "running", (what, domain)
    lab.monitor.wait_beats(3, 30)


def move(role, **more):
    nodes = {"sourceNode": "h1", "targetNode": "h2", "sourcePod": "pod1", "targetPod": "none"}
    if role == "target":
        nodes = {"sourceNode": "h2", "targetNode": "h1", "sourcePod": "none", "targetPod": "pod1"}
    return {"migrationUid": "m-evil", **nodes, **more}


def foreign_status(lab, pod):
    label = {"labels": {"kubevirt.io/migrationTargetNodeName": "h1", "kubevirt.io/nodeName": "h1"}}
    here = {"phase": "Running", "nodeName": "h1"}
    at = "2026-01-01T00:00:00Z"

    # As its owner: deleting it stops the guest that the pod has.
    evil(lab, "owner", {**here, "migrationState": move("source", completed=True, endTimestamp=at)},
         finalizers=["foregroundDeleteVirtualMachine"], **label)
    lab.api.call("DELETE", lab.api.path(VMIS, "owner"))
    # As the source: the move is to be given up.
    evil(lab, "source", {**here, "migrationState": move("source", abortRequested=True)}, **label)
    # As the target of a move that failed: the guest is not to run there any more.
    evil(lab, "target", {"phase": "Running", "nodeName": "h2", "migrationState": move("target", failed=True, completed=True,
                                                                                       endTimestamp=at)}, **label)
    # As the target of one that begins: the launcher is to take a guest in.
    evil(lab, "incoming", {"phase": "Running", "nodeName": "h2", "migrationState": move("target")}, **label)
    for name in ("owner", "source", "target", "incoming"):
        unharmed(lab, pod, name)
    assert lab.status()["phase"] == "Running"
    for name in ("owner", "source", "target", "incoming"):
        lab.api.call("PATCH", lab.api.path(VMIS, name), [{"op": "add", "path": "/metadata/finalizers", "value": []}], JSON_PATCH)
        lab.api.call("DELETE", lab.api.path(VMIS, name))


def misled_calls(lab, vmi, pod):
    """Every call that changes something, with another VMI's UID; then one with the right UID, and one of a handler from before."""
    other = "7f6e5d4c-0000-4000-8000-000000000000"
    for method, path, body in (("DELETE", "/v1/vm", {"graceS": 0}), ("PUT", "/v1/vm", {"vmi": vmi}),
                               ("POST", "/v1/vm/pause", None), ("POST", "/v1/vm/unpause", None),
                               ("PUT", "/v1/target/m-1", {"vmi": vmi}), ("PUT", "/v1/migrations/m-1", {"vmi": vmi}),
                               ("POST", "/v1/migrations/m-1/cancel", None), ("POST", "/v1/migrations/m-1/withdraw", None),
                               ("POST", "/v1/migrations/m-1/finalize", None), ("POST", "/v1/migrations/m-1/recover", {"role": "source"}),
                               ("PUT", "/v1/migrations/m-1/target-state", {"state": "gone"}), ("GET", "/v1/status", None),
                               ("PUT", "/v1/migrations/m-1/path", {"state": "away"}), ("GET", "/v1/records/m-1", None)):
        answer = lab.control(sock(lab, pod), f"{path}?vmi={other}", method, body)
        assert answer and vmi["metadata"]["uid"] in json.dumps(answer) and "launcher is that of VMI" in json.dumps(answer), (path, answer)
    unharmed(lab, pod, "calls")
    for query in (f"?vmi={vmi['metadata']['uid']}", ""):
        assert lab.control(sock(lab, pod), "/v1/status" + query)["domain"]["state"] == "running"


def story(lab):
    vmi, pod = starts(lab)
    foreign_status(lab, pod)
    misled_calls(lab, vmi, pod)


run(story)
