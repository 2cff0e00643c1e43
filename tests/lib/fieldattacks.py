"""What a node that was taken over writes into VMIs, on either engine: each attack is refused with a word on the field, and changes nothing;
what handlers write in a move is taken. One row in docs/security.md for each attack.

`client(who)` has call(method, path, body, content_type) -> (status, answer); `who` is "admin", "controller" or a node."""
import json
import os
import subprocess

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TARGET_LABEL, NODE_LABEL = "kubevirt.io/migrationTargetNodeName", "kubevirt.io/nodeName"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
SPEC = {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}
AT = "2026-01-01T00:00:0%dZ"
PORTS = {"targetNodeAddress": "10.0.0.2", "targetDirectMigrationNodePorts": {"4000": 0}}
ENDED = {"completed": True, "failed": True, "startTimestamp": AT % 1, "endTimestamp": AT % 2}


def state(**more):
    return {"migrationUid": "m", "sourceNode": "n1", "sourcePod": "p1", "targetNode": "n2", "targetPod": "p2",
            "migrationConfiguration": {"allowPostCopy": False}, **more}


def shape(node, move=None, label=None, notes=None):
    """(status, labels, annotations)"""
    status = {"phase": "Running", "nodeName": node, "runtimeUser": 1879048200, "activePods": {"p": node},
              "conditions": [{"type": "EvictionRequested", "status": "True"}, {"type": "Ready", "status": "True"}],
              **({"migrationState": move} if move else {})}
    return status, {NODE_LABEL: node, **({TARGET_LABEL: label} if label else {})}, notes or {}


SHAPES = {
    "running": shape("n1"),
    "moving": shape("n1", state(**PORTS, startTimestamp=AT % 1), "n2"),
    "arrived": shape("n2", state(**PORTS, startTimestamp=AT % 1, endTimestamp=AT % 2), "n2"),
    "moved": shape("n2", state(**PORTS, startTimestamp=AT % 1, endTimestamp=AT % 2, completed=True)),
    "failed": shape("n1", state(**PORTS, **ENDED), "n2"),
    "let-go": shape("n1", state(**PORTS, **ENDED), None, {"ferry.io/unconfirmed": "m"}),
    "unconfirmed": shape("n1", state(**PORTS, **ENDED), "n2", {"ferry.io/unconfirmed": "m"}),
}


def move(**fields):
    return {"status": {"migrationState": fields}}


def status(**fields):
    return {"status": fields}


def note(key, value):
    return {"metadata": {"annotations": {key: value}}}


def label(key, value):
    return {"metadata": {"labels": {key: value}}}


TAKE = {**label(NODE_LABEL, "n2"), **status(nodeName="n2")}
FAIL = {"failed": True, "completed": True, "failureReason": "x", "endTimestamp": AT % 9}
# (what, who, shape, merge patch, a word of the answer)
ATTACKS = [
    ("a former target opens its move again", "n2", "failed", move(completed=False, failed=False), "status.migrationState."),
    ("a former target makes up a move to itself", "n2", "failed", status(migrationState=state(migrationUid="x", completed=None, failed=None)),
     "status.migrationState."),
    ("a former target takes the guest", "n2", "failed", TAKE, "nodeName"),
    ("a former target takes a guest that it had let go of", "n2", "let-go", TAKE, "only"),
    ("a former source takes its guest back", "n1", "moved", {**label(NODE_LABEL, "n1"), **status(nodeName="n1")}, "only"),
    ("a former source ends the guest that left", "n1", "moved", status(phase="Failed"), "only"),
    ("a node takes a guest that nobody moves to it", "n2", "running", TAKE, "only"),
    ("the source of a live move gives the guest to a third node", "n1", "moving", status(nodeName="n3"), "status.nodeName"),
    ("the source says that the guest has arrived", "n1", "moving", status(nodeName="n2"), "status.nodeName"),
    ("the target takes the guest in another's name", "n2", "moving", {**label(NODE_LABEL, "n3"), **status(nodeName="n3")}, "nodeName"),
    ("the source leads the move to another target", "n1", "moving", move(targetNode="n3"), "status.migrationState.targetNode"),
    ("the source names another target pod", "n1", "moving", move(targetPod="p3"), "status.migrationState.targetPod"),
    ("the source writes the target's address", "n1", "moving", move(targetNodeAddress="10.0.0.9"),
     "status.migrationState.targetNodeAddress"),
    ("the target names another source", "n2", "moving", move(sourceNode="n3"), "status.migrationState.sourceNode"),
    ("the target rewrites the configuration of the move", "n2", "moving", move(migrationConfiguration={"disableTLS": True}),
     "status.migrationState.migrationConfiguration"),
    ("a node rewrites the uid of the move", "n1", "moving", move(migrationUid="x"), "status.migrationState.migrationUid"),
    ("a node asks for an abort", "n2", "moving", move(abortRequested=True), "status.migrationState.abortRequested"),
    ("the target completes a move without having the guest", "n2", "moving", move(completed=True), "status.migrationState.completed"),
    ("the target completes as failed what it has", "n2", "arrived", move(completed=True, failed=True), "status.migrationState."),
    ("the source fails a move whose guest has arrived", "n1", "arrived", move(**{**FAIL, "endTimestamp": None}), "status.migrationState."),
    ("the source completes the move", "n1", "arrived", move(completed=True), "status.migrationState.completed"),
    ("a time of the move is written again", "n1", "moving", move(startTimestamp=AT % 9), "status.migrationState.startTimestamp"),
    ("a third node writes progress", "n3", "moving", note("ferry.io/progress", "{}"), "only"),
    ("a third node ends another's guest", "n3", "running", status(phase="Failed"), "only"),
    ("the target of a live move ends the guest of its source", "n2", "moving", status(phase="Failed"), "status.phase"),
    ("the source writes the target's words", "n1", "moving", note("ferry.io/target-state", "m/never-ran"), "ferry.io/target-state"),
    ("a target gives itself the right to a guest after the end", "n2", "moving",
     {**note("ferry.io/unconfirmed", "m"), **move(**FAIL)}, "ferry.io/unconfirmed"),
    ("a node has its guest moved away", "n1", "running", status(evacuationNodeName="n1"), "status.evacuationNodeName"),
    ("a node gives its guest another's user", "n1", "running", status(runtimeUser=1879048201), "status.runtimeUser"),
    ("a node has volumes exchanged", "n1", "running",
     status(migratedVolumes=[{"volumeName": "a", "destinationPVCInfo": {"claimName": "b"}}]), "status.migratedVolumes"),
    ("a node claims pods", "n1", "running", status(activePods={"other": "n1"}), "status.activePods"),
    ("a node writes a condition of the controller", "n1", "running",
     status(conditions=[{"type": "EvictionRequested", "status": "False"}, {"type": "Ready", "status": "True"}]), "EvictionRequested"),
    ("a node takes conditions away", "n1", "running", status(conditions=[]), "EvictionRequested"),
    ("a node gives its guest to another by the label", "n1", "running", label(NODE_LABEL, "n2"), NODE_LABEL),
    ("a node makes another the target by the label", "n1", "moving", label(TARGET_LABEL, "n3"), TARGET_LABEL),
    ("a node writes a label", "n1", "running", label("app", "other"), "app"),
    ("a node takes annotations away", "n1", "running", {"metadata": {"annotations": None}}, "kept"),
    ("a node writes an annotation of people", "n1", "running", note("ferry.io/qcow2", "root"), "ferry.io/qcow2"),
    ("a node takes the finalizers away", "n1", "running", {"metadata": {"finalizers": None}}, "finalizers"),
]
# What handlers write in a move that works, step by step, and in one that nobody can tell of.
HONEST = [
    ("n1", {**note("ferry.io/source-disks", "{}"), **move(mode="PreCopy")}),
    ("n2", {**note("ferry.io/target-disks", "{}"), **move(targetNodeDomainDetected=True, targetDirectMigrationNodePorts={"4001": 0})}),
    ("n1", note("ferry.io/progress", '{"uid":"m"}')),
    ("n1", status(conditions=[{"type": "EvictionRequested", "status": "True"}, {"type": "Ready", "status": "True"},
                              {"type": "Paused", "status": "True", "reason": "PausedByMigrationMonitor"}])),
    ("n2", {**label(NODE_LABEL, "n2"), **status(
        nodeName="n2", activePods={"p": None, "q": "n2"}, migrationTransport="Unix", conditions=SHAPES["running"][0]["conditions"],
        migrationState={"targetNodeDomainReadyTimestamp": AT % 3, "endTimestamp": AT % 3})}),
    ("n1", note("ferry.io/progress", '{"uid":"m","phase":"succeeded"}')),
    ("n2", move(completed=True)),
    ("n2", label(TARGET_LABEL, None)),
    ("n2", status(phase="Succeeded", interfaces=[{"name": "default"}], machine={"type": "q35"})),
]
GIVEN_UP = [("n2", TAKE), ("n2", label(TARGET_LABEL, None))]


class Fields:
    def __init__(self, client):
        self.client = client
        self.names = 0

    def ok(self, who, method, path, body=None, kind="application/json"):
        code, answer = self.client(who).call(method, path, body, kind)
        assert code < 300, f"{who} {method} {path}: {code} {answer}"
        return answer

    def make(self, name):
        """A VMI of that shape; its path."""
        state_of, labels, notes = SHAPES[name]
        self.names += 1
        vmi = f"field-{self.names}"
        self.ok("admin", "POST", VMIS, {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {
                "name": vmi, "labels": {"app": "web", **labels}, "annotations": {"kept": "yes", **notes},
                "finalizers": ["foregroundDeleteVirtualMachine"]},
            "spec": SPEC, "status": state_of})
        return f"{VMIS}/{vmi}"

    def refused(self, what, who, path, word, method, body, kind):
        before = self.ok("admin", "GET", path.removesuffix("/status"))
        code, answer = self.client(who).call(method, path, body, kind)
        message = answer.get("message", "") if isinstance(answer, dict) else str(answer)
        assert code in (403, 404) if word is None else code == 403 and word in message, f"{what}: {code} {message}"
        assert self.ok("admin", "GET", path.removesuffix("/status")) == before, f"{what}: the object has changed"

    def attacks(self):
        for what, who, shape_of, patch, word in ATTACKS:
            self.refused(what, who, self.make(shape_of), word, "PATCH", patch, MERGE_PATCH)
        return len(ATTACKS)

    def rows(self, bin_dir):
        """The rows of the table's unit test, judged by the server: what is refused there is not written here, what is allowed is."""
        program = os.path.join(os.path.abspath(bin_dir), "../tests/unit/test_api_field_rules")
        found = [json.loads(line) for line in subprocess.run([program, "--rows"], check=True, capture_output=True, text=True).stdout.splitlines()]
        for row in found:
            if row["node"] and isinstance(row["after"].get("status", {}), dict):
                self.row(row["name"], row["node"], row["allowed"], row["before"], row["after"])
        return len(found)

    def row(self, name, node, allowed, before, after):
        self.names += 1
        path = f"{VMIS}/row-{self.names}"
        meta = {k: before["metadata"][k] for k in ("labels", "annotations")}
        self.ok("admin", "POST", VMIS, {**before, "metadata": {"name": f"row-{self.names}", **meta}, "spec": SPEC})
        old = self.ok("admin", "GET", path)
        ops = [{"op": "add", "path": f"/metadata/{k}", "value": after["metadata"].get(k, {})} for k in meta]
        ops.append({"op": "add", "path": "/status", "value": after.get("status", {})})
        code, answer = self.client(node).call("PATCH", path, ops, JSON_PATCH)
        new = self.ok("admin", "GET", path)
        # A field that the kind does not have is dropped, and nothing is left to be refused.
        assert code < 300 if allowed else new == old, f"{name}, by {node}: {code} {answer}"

    def every_way_to_write(self):
        """One attack, by each verb and kind of patch."""
        path = self.make("failed")
        what, who, word = "a former target takes the guest", "n2", "nodeName"
        whole = self.ok(who, "GET", path)
        whole["status"].update(nodeName="n2")
        ops = [{"op": "test", "path": "/status/nodeName", "value": "n1"}, {"op": "replace", "path": "/status/nodeName", "value": "n2"}]
        copied = [{"op": "copy", "from": "/status/migrationState/targetNode", "path": "/status/nodeName"}]
        moved = [{"op": "move", "from": "/status/migrationState/targetNode", "path": "/status/nodeName"}]
        applied = json.dumps({"apiVersion": whole["apiVersion"], "kind": whole["kind"],
                              "metadata": {"name": whole["metadata"]["name"]}, "status": {"nodeName": "n2"}})
        for method, body, kind, query in (
                ("PUT", whole, "application/json", ""), ("PATCH", ops, JSON_PATCH, ""), ("PATCH", copied, JSON_PATCH, ""),
                ("PATCH", TAKE, MERGE_PATCH, ""), ("PATCH", applied, APPLY, "?fieldManager=x&force=true")):
            before = self.ok("admin", "GET", path)
            code, answer = self.client(who).call(method, path + query, body, kind)
            said = answer["message"]  # on Kubernetes a node has no right to PUT one at all
            assert code == 403 and (word in said or method == "PUT" and "cannot update" in said), f"{what} by {method} {kind}: {code} {answer}"
            assert self.ok("admin", "GET", path) == before
        self.refused(what, who, path, "status.", "PATCH", moved, JSON_PATCH)
        self.refused(what, who, path + "/status", None, "PATCH", status(nodeName="n2"), MERGE_PATCH)

    def honest(self):
        for shape_of, steps in (("moving", HONEST), ("unconfirmed", GIVEN_UP)):
            path = self.make(shape_of)
            for who, patch in steps:
                self.ok(who, "PATCH", path, patch, MERGE_PATCH)
        path = self.make("moving")
        self.ok("n1", "PATCH", path, {**note("ferry.io/failure", "m/Aborted"), **move(**FAIL, abortStatus="Succeeded")}, MERGE_PATCH)
        path = self.make("moving")
        self.ok("n2", "PATCH", path, {**note("ferry.io/failure", "m/Refused"), **move(**FAIL)}, MERGE_PATCH)
        self.ok("n2", "PATCH", path, {**note("ferry.io/target-state", "m/never-ran"), **label(TARGET_LABEL, None)}, MERGE_PATCH)
        path = self.make("moving")
        self.ok("controller", "PATCH", path, move(abortRequested=True, targetPod="p9"), MERGE_PATCH)
