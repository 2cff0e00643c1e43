#!/usr/bin/env python3
"""A VMI whose status says that its guest moves, without a migration that asks for it: the source's handler sends nothing and ends the
move. Real handlers, relays, launchers and a guest; the test writes the status as somebody who could."""
import os
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", d) for d in ("handler", "lib")]
from lab import MERGE_PATCH, MIGRATIONS, VMIS, check_alive, ends, run, starts

NOBODY = "7f6e5d4c-0000-4000-8000-000000000000"
LABEL = "kubevirt.io~1migrationTargetNodeName"


def patch(lab, plural, name, body, subresource=""):
    status, answer = lab.api.call("PATCH", lab.api.path(plural, name) + subresource, body, MERGE_PATCH)
    assert status == 200, answer


def attack(lab, pod, uid, why):
    """Hands off a move that is not as it should be; the guest stays, and not a byte leaves."""
    lab.patch({"op": "add", "path": "/status/migrationState", "value": {
        "migrationUid": uid, "sourceNode": "h1", "sourcePod": "pod1", "targetNode": "h2", "targetPod": "pod2",
        "migrationConfiguration": {}}},
        {"op": "add", "path": "/metadata/labels/" + LABEL, "value": "h2"})
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    assert move["failed"] and move["failureReason"] == f"Refused: by the source: {why}", move
    assert "startTimestamp" not in move and "mode" not in move, move
    assert lab.api.vmi("vm")["metadata"]["annotations"]["ferry.io/failure"] == uid + "/Refused"
    assert "migration" not in lab.launcher("h1", pod) or lab.launcher("h1", pod)["migration"].get("uid") != uid
    assert lab.relay("h1", "/v1/sources")["sources"] == [], "the relay was told to connect"
    assert lab.status()["nodeName"] == "h1"
    lab.wait_clean()
    check_alive(lab)


def story(lab):
    vmi, pod = starts(lab)
    lab.create_pod("pod2", "h2", vmi)
    good = lab.create_migration("m1", "pod2")
    attack(lab, pod, NOBODY, "the target pod was not made for this move")
    # The pod says what the status does; the migration of that name is another one.
    patch(lab, "pods", "pod2", {"metadata": {"labels": {"kubevirt.io/migrationJobUID": NOBODY}}})
    attack(lab, pod, NOBODY, "there is no migration of its uid")
    patch(lab, "pods", "pod2", {"metadata": {"annotations": {"kubevirt.io/migrationJobName": "none-such"}}})
    attack(lab, pod, NOBODY, "there is no migration of its uid")
    # One that was, and is over.
    patch(lab, "pods", "pod2", {"metadata": {"labels": {"kubevirt.io/migrationJobUID": good},
                                             "annotations": {"kubevirt.io/migrationJobName": "m1"}}})
    patch(lab, MIGRATIONS, "m1", {"status": {"phase": "Failed"}}, "/status")
    attack(lab, pod, good, "its migration is over")
    # One that is about another guest.
    lab.api.create(VMIS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "other"},
                          "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}},
                          "status": {"phase": "Running", "nodeName": "h9",
                                     "conditions": [{"type": "LiveMigratable", "status": "True"}]}})
    other = lab.api.create(MIGRATIONS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                                        "metadata": {"name": "m2"}, "spec": {"vmiName": "other"}})["metadata"]["uid"]
    patch(lab, "pods", "pod2", {"metadata": {"labels": {"kubevirt.io/migrationJobUID": other},
                                             "annotations": {"kubevirt.io/migrationJobName": "m2"}}})
    attack(lab, pod, other, "its migration is about another VMI")
    # And one that is as it should be.
    lab.delete_pod("pod2")
    lab.create_pod("pod3", "h2", vmi)
    lab.hand_off("m3", "h1", "pod1", "h2", "pod3")
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed") and lab.status()["nodeName"] == "h2", move
    lab.wait_clean()
    ends(lab)


run(story)
