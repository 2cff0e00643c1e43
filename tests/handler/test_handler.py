#!/usr/bin/env python3
"""What two handlers make of moves: done, restarted in the middle, cancelled, lost, recovered.
Numbers of cases are items of docs/conformance.md."""
import datetime
import glob
import json
import os
import signal
import sys

sys.dont_write_bytecode = True
from lab import NODES, VMIS, check_alive, ends, run, starts, wait_for


def registers(lab):
    for node in NODES:
        found = wait_for(f"node {node}", lambda: (n := lab.api.get("nodes", node)) and n.get("status", {}).get("conditions")
                         and n)
        [ready] = [c for c in found["status"]["conditions"] if c["type"] == "Ready"]
        assert ready["status"] == "True", ready
        assert found["metadata"]["labels"]["kubernetes.io/hostname"] == node
        assert found["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"
        assert found["metadata"]["annotations"]["kubevirt.io/heartbeat"]
        assert found["status"]["addresses"][0] == {"type": "InternalIP", "address": "127.0.0.1"}
        assert {"cpu", "memory", "pods"} <= set(found["status"]["allocatable"])


def cannot_start(lab):
    """A guest that cannot be started: an event of its VMI says why."""
    vmi = lab.create_vmi("/nonesuch.elf")
    lab.create_pod("pod0", "h1", vmi)
    lab.patch({"op": "add", "path": "/metadata/labels/kubevirt.io~1nodeName", "value": "h1"},
              {"op": "add", "path": "/status", "value": {"phase": "Scheduled", "nodeName": "h1"}})
    event = wait_for("the event", lambda: next((e for e in lab.api.list("events") if e["reason"] == "SyncFailed"), None))
    assert event["type"] == "Warning" and event["involvedObject"]["uid"] == vmi["metadata"]["uid"], event
    assert "nonesuch" in event["message"], event
    assert lab.status()["phase"] != "Running", lab.status()
    status, _ = lab.api.call("DELETE", lab.api.path(VMIS, "vm"))
    assert status in (200, 202)
    lab.patch({"op": "remove", "path": "/metadata/finalizers"})
    wait_for("the VMI and its pod to go", lambda: lab.api.vmi("vm") is None and lab.api.get("pods", "pod0") is None)


CONTROLLERS = {"migrationUid", "sourceNode", "sourcePod", "targetNode", "targetPod", "migrationConfiguration"}
COMMON = {"targetNodeAddress", "targetDirectMigrationNodePorts", "targetNodeDomainDetected", "startTimestamp", "endTimestamp",
          "completed", "mode"}
ENDINGS = {"success": {"targetNodeDomainReadyTimestamp"}, "failure": {"failed", "failureReason"},
           "given up": {"failed", "failureReason", "abortStatus"},
           "abort": {"failed", "failureReason", "abortRequested", "abortStatus"}}


def check_state(lab, move, ending, source, target, ports=(0, 49152)):
    """What a reader of status.migrationState finds: KubeVirt's names, each with what KubeVirt's handlers write, and nothing else."""
    assert set(move) == CONTROLLERS | COMMON | ENDINGS[ending], (ending, set(move) ^ (CONTROLLERS | COMMON | ENDINGS[ending]))
    assert (move["sourceNode"], move["targetNode"]) == (source, target), move
    assert move["targetNodeAddress"] == "127.0.0.1" and move["mode"] == "PreCopy", move
    assert sorted(move["targetDirectMigrationNodePorts"].values()) == list(ports), move
    assert all(1024 <= int(port) <= 65535 for port in move["targetDirectMigrationNodePorts"]), move
    assert move["completed"] is move["targetNodeDomainDetected"] is True and move.get("failed", False) is (ending != "success"), move
    times = [datetime.datetime.fromisoformat(move[f].replace("Z", "+00:00")) for f in
             ("startTimestamp", "targetNodeDomainReadyTimestamp", "endTimestamp") if f in move]
    assert times == sorted(times) and times[-1] <= datetime.datetime.now(datetime.timezone.utc), move
    status = lab.status()
    assert status["nodeName"] == (target if ending == "success" else source) and status["phase"] == "Running", status
    assert lab.api.vmi("vm")["metadata"]["labels"]["kubevirt.io/nodeName"] == status["nodeName"]
    assert status["migrationTransport"] == "Unix" and status["migrationMethod"] == "LiveMigration", status


def moves(lab, vmi):
    uid = lab.create_pod("pod2", "h2", vmi)
    lab.hand_off("move-1", "h1", "pod1", "h2", "pod2")
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed"), move
    check_state(lab, move, "success", "h1", "h2")
    status = lab.status()
    assert status["activePods"] == {uid: "h2"}, status
    lab.wait_clean()
    check_alive(lab)
    assert lab.launcher("h2", uid)["domain"]["state"] == "running"
    result = json.loads(lab.api.vmi("vm")["metadata"]["annotations"]["ferry.io/progress"])
    assert result["uid"] == lab.uids["move-1"] and result["downtimeMs"] >= 0, result
    lab.delete_pod("pod1")


def answers(lab):
    """The node API: who may call it, figures, the record of a move whose pod is gone, the console."""
    status, text = lab.node_api("h1", "/v1/records/" + lab.uids["move-1"])
    assert status == 200 and all(json.loads(line) for line in text.splitlines()) and text, (status, text)
    assert lab.node_api("h1", "/v1/records/nonesuch")[0] == 404
    assert lab.node_api("h1", "/v1/records/..%2f..%2fpki%2fnode")[0] == 404
    status, text = lab.node_api("h2", "/metrics")
    assert status == 200 and 'ferry_handler_vmis{node="h2",role="owner"} 1' in text and "ferry_relay" in text, text
    status, text = lab.node_api("h2", "/v1/paths")
    assert status == 200 and set(json.loads(text)["paths"]) == {"h1"}, text
    status, text = lab.node_api("h2", "/v1/console/default/vm?tail=2000")
    assert status == 200 and 0 < len(text) <= 2000, (status, text)
    assert lab.node_api("h2", "/healthz", lab.node_context(None))[0] == 401
    assert lab.node_api("h2", "/healthz", lab.node_context("node"))[0] == 403
    assert lab.local_api("h2", "/v1/paths")["paths"].keys() == {"h1"}


def checks(lab, uid):
    """382: both ends know a move by the UID of its VMI, and find nothing wrong with it, handshakes included."""
    key = lab.api.vmi("vm")["metadata"]["uid"]
    assert [s["key"] for s in lab.relay("h1", "/v1/sources")["sources"]] == [key]
    assert [t["key"] for t in lab.relay("h2", "/v1/targets")["targets"]] == [key]
    for node, role in zip(NODES, ("source", "target")):
        report = lab.local_api(node, "/v1/checks/" + uid)
        assert report["role"] == role and report["ok"], report
        names = {(c["name"], c.get("channel")) for c in report["checks"]}
        ends = ("socket", "reach", "mtu", "handshake") if role == "source" else ("listener",)
        assert {(end, channel) for end in ends for channel in (0, 49152)} <= names, report
        assert {("port map", None), ("certificate", None)} <= names, report
        assert (("network", None) in names) == (role == "target"), report
    assert lab.local_api("h1", "/v1/checks/nonesuch")["code"] == 404


def republishes(lab, vmi):
    """The target's relay is restarted before the source begins: the new ports are in the VMI, and the move works."""
    lab.kill("handler-h2")  # the source: nothing begins
    lab.create_pod("pod3", "h1", vmi)
    lab.hand_off("move-2", "h2", "pod2", "h1", "pod3", {"bandwidthPerMigration": "4Mi"})
    ports = lab.wait_move("ports", lambda m: m.get("targetDirectMigrationNodePorts"))["targetDirectMigrationNodePorts"]
    lab.kill("relay-h1")
    lab.start_relay("h1")
    lab.wait_move("new ports", lambda m: m["targetDirectMigrationNodePorts"] != ports)
    lab.start_handler("h2")


def goes_on_without_handlers(lab):
    """kill -9 of both handlers in the middle changes nothing."""
    lab.wait_copying()
    for node in NODES:
        lab.kill("handler-" + node)
    assert not lab.move().get("completed")
    for node in NODES:
        lab.start_handler(node)
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"), 120)
    assert not move.get("failed"), move
    assert lab.status()["nodeName"] == "h1"
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod2")


def cancels(lab, vmi):
    """518: a move that was aborted, as it is told: all that a failure tells, that it was asked for, and that the abort succeeded."""
    uid = lab.create_pod("pod4", "h2", vmi)
    lab.hand_off("move-3", "h1", "pod3", "h2", "pod4", {"bandwidthPerMigration": "1Mi"})
    lab.wait_copying()
    checks(lab, lab.uids["move-3"])
    lab.patch({"op": "add", "path": "/status/migrationState/abortRequested", "value": True})
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    check_state(lab, move, "abort", "h1", "h2")
    assert move["abortRequested"] is True and move["abortStatus"] == "Succeeded", move
    assert move["failureReason"].startswith("Aborted: ") and "abort" in move["failureReason"][9:], move
    lab.wait_clean()
    check_alive(lab)
    assert lab.launcher("h2", uid)["domain"]["state"] == "none"
    lab.delete_pod("pod4")


def fails(lab, vmi):
    """517: a move that failed, as it is told: when it began and ended, where to, why, and that the guest stayed."""
    uid = lab.create_pod("pod8", "h2", vmi)
    lab.hand_off("move-8", "h1", "pod3", "h2", "pod8", {"bandwidthPerMigration": "1Mi"})
    lab.wait_copying()
    lab.wait_move("the target's domain to be seen", lambda m: m.get("targetNodeDomainDetected"))
    os.kill(lab.qemu("h2", uid), signal.SIGKILL)
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    check_state(lab, move, "failure", "h1", "h2")
    assert move["failureReason"].startswith("LibvirtError: "), move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod8")


def is_given_up(lab, vmi):
    """558: a move that gets nowhere in its time is aborted by its launcher, and says so as an abort that nobody asked for."""
    lab.create_pod("pod10", "h2", vmi)
    lab.hand_off("move-10", "h1", "pod3", "h2", "pod10", {"bandwidthPerMigration": "1Mi", "completionTimeoutPerGiB": 1})
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    check_state(lab, move, "given up", "h1", "h2")
    assert move["abortStatus"] == "Succeeded" and move["failureReason"].startswith("NotConverging: "), move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod10")


def refuses(lab, vmi):
    """A target that can never take the guest says so at once: here its image is missing on that node."""
    lab.kill("pods-h2", signal.SIGTERM)
    empty = os.path.join(lab.base, "no-guests")
    os.mkdir(empty)
    lab.start_pods("h2", empty)
    lab.create_pod("pod9", "h2", vmi)
    lab.hand_off("move-9", "h1", "pod3", "h2", "pod9")
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    assert move["failed"] and move["failureReason"].startswith("Refused: by the target: "), move
    assert "kernelPath" in move["failureReason"] and "heartbeat.elf" in move["failureReason"], move
    assert move["endTimestamp"] and "startTimestamp" not in move and "abortStatus" not in move, move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod9")
    lab.kill("pods-h2", signal.SIGTERM)
    lab.start_pods("h2")


def cancels_before_the_start(lab, vmi):
    lab.create_pod("pod5", "h2", vmi)
    lab.kill("handler-h2")  # the target: nothing is published
    lab.hand_off("move-4", "h1", "pod3", "h2", "pod5")
    lab.patch({"op": "add", "path": "/status/migrationState/abortRequested", "value": True})
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    assert move["failed"] and move["abortStatus"] == "Succeeded", move
    lab.start_handler("h2")
    lab.wait_clean()
    lab.delete_pod("pod5")


def gives_up_a_lost_move(lab, vmi):
    """Somebody else declares the move failed: the source stops it and the guest stays."""
    lab.create_pod("pod6", "h2", vmi)
    lab.hand_off("move-5", "h1", "pod3", "h2", "pod6", {"bandwidthPerMigration": "1Mi"})
    lab.wait_copying()
    lab.patch({"op": "add", "path": "/status/migrationState/completed", "value": True},
              {"op": "add", "path": "/status/migrationState/failed", "value": True})
    pod = lab.api.get("pods", "pod3")["metadata"]["uid"]
    wait_for("the launcher to stop it", lambda: (s := lab.launcher("h1", pod)) and s["migration"]["phase"] == "failed")
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod6")


def recovers(lab, vmi):
    """Both relays die in post-copy, twice; each time it goes on over fresh streams. Then a move without encryption back."""
    target = lab.create_pod("pod7", "h2", vmi)
    lab.relay("h1", "/v1/rate", "PUT", {"bytesPerS": 4 << 20})
    lab.hand_off("move-6", "h1", "pod3", "h2", "pod7", {"allowPostCopy": True, "bandwidthPerMigration": "4Mi",
                                                        "completionTimeoutPerGiB": 6})
    source = lab.api.get("pods", "pod3")["metadata"]["uid"]
    for node, generation in (("h2", 1), ("h1", 2)):
        wait_for("post-copy", lambda: (s := lab.launcher("h1", source)) and s["domain"]["reason"] == "postcopy" and
                 (t := lab.launcher("h2", target)) and t["domain"] == {"state": "running", "reason": "postcopy"})
        lab.kill("relay-" + node)
        lab.start_relay(node)
        lab.relay("h1", "/v1/rate", "PUT", {"bytesPerS": 1 << 20})
        wait_for("fresh ports", lambda: lab.api.vmi("vm")["metadata"]["annotations"].get("ferry.io/ports-generation", "")
                 .startswith(lab.uids["move-6"] + "/"))
        wait_for("the move to go on", lambda: (s := lab.launcher("h1", source)) and
                 s["migration"].get("recoveries", 0) >= generation)
    lab.relay("h1", "/v1/rate", "PUT", {"bytesPerS": 0})
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed") and move["mode"] == "PostCopy", move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod3")
    lab.create_pod("pod3", "h1", vmi)
    lab.hand_off("move-7", "h2", "pod7", "h1", "pod3", {"disableTLS": True})
    tls = wait_for("the relay to know it", lambda: (t := lab.relay("h1", "/v1/targets")["targets"]) and t[0])["tls"]
    assert tls == "plain", tls
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed"), move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod7")


def story(lab):
    registers(lab)
    cannot_start(lab)
    vmi, _ = starts(lab)
    moves(lab, vmi)
    answers(lab)
    republishes(lab, vmi)
    goes_on_without_handlers(lab)
    cancels(lab, vmi)
    fails(lab, vmi)
    is_given_up(lab, vmi)
    refuses(lab, vmi)
    cancels_before_the_start(lab, vmi)
    gives_up_a_lost_move(lab, vmi)
    if "--recovery" in sys.argv:
        recovers(lab, vmi)
    ends(lab)


run(story)
