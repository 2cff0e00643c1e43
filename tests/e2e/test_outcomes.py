#!/usr/bin/env python3
"""What KubeVirt's functional tests ask of moves that fail, are refused or are asked for by an eviction, with real guests.
Numbers of cases are items of docs/conformance.md."""
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for
from moving import PATIENCE, Guest, create, ended, machine, migrate, movable, other, policy, settings, shape

MOVES = "virtualmachineinstancemigrations"
OPEN = ("", "Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running")
IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
MERGE = "application/merge-patch+json"


def phase(obj):
    return (obj or {}).get("status", {}).get("phase", "")


def running(site, name):
    wait_for(f"{name} to run", lambda: phase(site.api.migration(name)) == "Running", PATIENCE)


def state_of(site, vm):
    return site.api.vmi(vm)["status"].get("migrationState", {})


def ask(site, vm, name=None, **annotations):
    """(status, answer) of a request for a move, past the checks of the command line."""
    meta = {"annotations": {"kubevirt.io/" + k: v for k, v in annotations.items()}}
    meta.update({"name": name} if name else {"generateName": vm + "-"})
    return site.api.call("POST", site.api.path(MOVES), {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": meta, "spec": {"vmiName": vm}})


def moves_of(site, vm):
    return [m for m in site.api.list(MOVES) if m["spec"]["vmiName"] == vm]


def pods_of(site, vm, *phases):
    return [p for p in site.api.list("pods") if p["metadata"]["labels"].get("vm.kubevirt.io/name") == vm and
            (not phases or phase(p) in phases)]


def events(site, reason):
    status, body = site.api.call("GET", "/api/v1/namespaces/default/events")
    assert status == 200, body
    return [e for e in body["items"] if e["reason"] == reason]


def kill_target_qemu(site, vm):
    target = state_of(site, vm)["targetNode"]
    pid = wait_for("the target's QEMU", lambda: next((p for p in site.qemus() if site.owns(p, target)), 0), PATIENCE)
    os.kill(pid, 9)


# ---- one at a time ----------------------------------------------------------------------------------------------


def check_in_flight(site):
    """541: ten more moves of a VM that is on its way are refused by the in-flight check; the first succeeds"""
    with Guest(site, "once", 128, 1, 16) as guest:
        shape(site, 40)
        name = migrate(site, "once")
        running(site, name)
        for _ in range(10):
            status, answer = ask(site, "once")
            assert status in (400, 403, 409, 422) and "in-flight migration detected" in answer["message"], (status, answer)
        assert len(moves_of(site, "once")) == 1
        shape(site, 2000)
        ended(site, name)
        guest.whole()


def check_never_two(site):
    """585: moves are asked for all the time, for 30 s: never are two of a VM active"""
    with Guest(site, "busy", 64, 1, 8) as guest:
        shape(site, 2000)
        stop, made, most = time.monotonic() + 30, [0], [0]

        def attempt():
            while time.monotonic() < stop:
                taken = ask(site, "busy")[0] == 201
                made[0] += taken  # in one step: others count meanwhile
        threads = [threading.Thread(target=attempt, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        while time.monotonic() < stop:
            active = [m for m in moves_of(site, "busy") if phase(m) in OPEN]
            most[0] = max(most[0], len(active))
        for thread in threads:
            thread.join()
        print(f"       {made[0]} moves", flush=True)
        assert most[0] == 1 and made[0] >= 2, (most, made)
        wait_for("the last to end", lambda: not [m for m in moves_of(site, "busy") if phase(m) in OPEN], PATIENCE)
        guest.whole()


# ---- failures ---------------------------------------------------------------------------------------------------


def check_failures(site):
    """517, 560, 561: a forced failure says start, end, nodes and address, the VM runs on, the target pod goes within 15 s; of ten, five remain"""
    with Guest(site, "unlucky", 128, 1, 16) as guest:
        source = site.node_of("unlucky")
        shape(site, 40)
        for i in range(10):
            name = migrate(site, "unlucky")
            running(site, name)
            kill_target_qemu(site, "unlucky")
            ended(site, name, "Failed")
            begin = time.monotonic()
            wait_for("the target pod to end", lambda: len(pods_of(site, "unlucky", "Pending", "Running")) == 1, PATIENCE)
            assert time.monotonic() - begin < 15, f"{i}: {time.monotonic() - begin:.1f} s"
            state = state_of(site, "unlucky")
            for field in ("startTimestamp", "endTimestamp", "targetNodeAddress", "failureReason"):
                assert state.get(field), f"{field} is not in {state}"
            assert state["completed"] and state["failed"] and state["sourceNode"] == source, state
            assert phase(site.api.vmi("unlucky")) == "Running" and site.node_of("unlucky") == source
        wait_for("five of them to remain", lambda: len(moves_of(site, "unlucky")) == 5, PATIENCE)
        shape(site, 2000)
        guest.move()


def check_abort(site):
    """518: an abort says what a failure says, that it was asked for, that it succeeded, and why it ended"""
    with Guest(site, "undone", 128, 1, 16) as guest:
        source = site.node_of("undone")
        shape(site, 40)
        name = migrate(site, "undone")
        running(site, name)
        site.ferry("cancel", name, "--wait", timeout=PATIENCE)
        state = state_of(site, "undone")
        for field in ("startTimestamp", "endTimestamp", "targetNodeAddress", "abortRequested", "completed", "failed"):
            assert state.get(field), f"{field} is not in {state}"
        assert state["abortStatus"] == "Succeeded" and "abort" in state["failureReason"].lower(), state
        assert state["sourceNode"] == site.node_of("undone") == source and phase(site.api.vmi("undone")) == "Running", state
        shape(site, 2000)
        guest.whole()


def check_no_progress(site):
    """558: a tiny bandwidth and short time limits: given up, and the reason says by which figures"""
    policy(site, "slow", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=5, allowPostCopy=False, allowWorkloadDisruption=False)
    settings(site, {"progressTimeout": 5})
    shape(site, 2000)
    with Guest(site, "slow", 128, 20, 64) as guest:
        name = migrate(site, "slow")
        state = ended(site, name, "Failed")["migrationState"]
        assert state["failureReason"].startswith(("NotConverging: ", "Stuck: ")), state
        assert any(c.isdigit() for c in state["failureReason"]), state
        print(f"       {state['failureReason']}", flush=True)
        guest.whole()
    settings(site, {})


def check_target_killed_while_preparing(site):
    """562: the target is kept from being prepared and its pod killed: the VMI's state is failed, with its end"""
    with Guest(site, "early", 64, 1, 8) as guest:
        source = site.node_of("early")
        pid = site.pid(f"{other(source)}-handler")
        os.kill(pid, 19)
        try:
            name = migrate(site, "early")
            wait_for("the hand-over", lambda: phase(site.api.migration(name)) == "PreparingTarget", PATIENCE)
            site.kubectl("delete", "pod", state_of(site, "early")["targetPod"], "--grace-period=0", "--force")
            ended(site, name, "Failed")
        finally:
            os.kill(pid, 18)
        state = state_of(site, "early")
        assert state["failed"] and state["completed"] and state["endTimestamp"], state
        shape(site, 2000)
        guest.move()


def check_deleted_on_the_way(site):
    """590: the VMI is deleted while it moves: the VM starts again, and can be moved later"""
    shape(site, 40)
    site.api.create("virtualmachines", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "phoenix"},
                                        "spec": {"runStrategy": "Always", "template": {"spec": machine(128, 1, 16)}}})
    movable(site, "phoenix")
    uid = site.api.vmi("phoenix")["metadata"]["uid"]
    running(site, migrate(site, "phoenix"))
    site.kubectl("delete", "vmi", "phoenix", "--wait=false")
    wait_for("another instance to run", lambda: (v := site.api.vmi("phoenix")) and v["metadata"]["uid"] != uid and
             phase(v) == "Running", PATIENCE)
    shape(site, 2000)
    movable(site, "phoenix")
    wait_for("nothing to be left of the first", lambda: len(site.qemus()) == 1, PATIENCE)
    ended(site, migrate(site, "phoenix"))
    site.ferry("vm", "delete", "phoenix", "--wait", timeout=PATIENCE)


# ---- evictions --------------------------------------------------------------------------------------------------


def evict(site, pod):
    """(status, answer)"""
    name = pod["metadata"]["name"]
    return site.api.call("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}})


def requested(site, vm):
    """The mark and the condition that mirrors it."""
    status = site.api.vmi(vm)["status"]
    return (status.get("evacuationNodeName"),
            [c["status"] for c in status.get("conditions", []) if c["type"] == "EvictionRequested"])


def in_progress(pod):
    return IN_PROGRESS in pod["metadata"].get("annotations", {})


def evictable(strategy="LiveMigrate"):
    return {"evictionStrategy": strategy}


def check_evicted(site):
    """594, 602, 606: while it moves both pods refuse to be evicted; what tells of the eviction is there, and goes with the VM's leaving"""
    with Guest(site, "leaves", 128, 1, 16, spec=evictable()) as guest:
        source = site.node_of("leaves")
        shape(site, 40)
        [pod] = pods_of(site, "leaves", "Running")
        status, answer = evict(site, pod)
        assert status == 429 and "Eviction triggered evacuation of VMI" in answer["message"], (status, answer)
        wait_for("the marks", lambda: requested(site, "leaves") == (source, ["True"]), PATIENCE)
        wait_for("the pod's annotation", lambda: in_progress(site.api.get("pods", pod["metadata"]["name"])), PATIENCE)
        [move] = wait_for("the evacuation", lambda: moves_of(site, "leaves"), PATIENCE)
        running(site, move["metadata"]["name"])
        both = pods_of(site, "leaves", "Running")
        assert len(both) == 2, both
        for each in both:
            assert evict(site, each)[0] == 429, each["metadata"]["name"]
            assert in_progress(each) == (each["spec"]["nodeName"] == source), each["metadata"]
        shape(site, 2000)
        ended(site, move["metadata"]["name"])
        wait_for("it to have left", lambda: site.node_of("leaves") == other(source), PATIENCE)
        wait_for("the marks to go", lambda: requested(site, "leaves") == (None, []), PATIENCE)
        wait_for("one pod, unmarked", lambda: [in_progress(p) for p in pods_of(site, "leaves", "Running")] == [False], PATIENCE)
        guest.whole()


def check_evacuation_fails(site):
    """603, 604, 607, 608: one that fails leaves the marks, the next waits in back-off; cancelled, they go and no other move is made"""
    with Guest(site, "stays", 128, 1, 16, spec=evictable()) as guest:
        source = site.node_of("stays")
        shape(site, 40)
        [pod] = pods_of(site, "stays", "Running")
        assert evict(site, pod)[0] == 429
        [move] = wait_for("the evacuation", lambda: moves_of(site, "stays"), PATIENCE)
        running(site, move["metadata"]["name"])
        kill_target_qemu(site, "stays")
        ended(site, move["metadata"]["name"], "Failed")
        assert requested(site, "stays") == (source, ["True"]), requested(site, "stays")
        for each in pods_of(site, "stays"):
            assert in_progress(each) == (each["metadata"]["name"] == pod["metadata"]["name"]), each["metadata"]
        wait_for("the back-off", lambda: [e for e in events(site, "MigrationBackoff") if e["involvedObject"]["name"] == "stays"],
                 PATIENCE)
        assert requested(site, "stays") == (source, ["True"])
        path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/stays/evacuate/cancel"
        status, answer = site.api.call("PUT", path, {"evacuationNodeName": source})
        assert status == 200, answer
        wait_for("the marks to go", lambda: requested(site, "stays") == (None, []), PATIENCE)
        site.kubectl("delete", "vmim", "--all", "--wait=false")
        wait_for("the moves to go", lambda: not moves_of(site, "stays"), PATIENCE)
        wait_for("the pod's annotation to go", lambda: not in_progress(site.api.get("pods", pod["metadata"]["name"])), PATIENCE)
        # Whoever would make another has looked: a taint that matches nothing wakes the controller, and a move by hand passes.
        shape(site, 2000)
        name, _ = guest.move()
        assert [m["metadata"]["name"] for m in moves_of(site, "stays")] == [name], moves_of(site, "stays")


def check_strategy_none(site):
    """601, 598, 600: the site says LiveMigrate, one VM None: it may be evicted, is not marked, and starts elsewhere; the others move"""
    settings(site, {}, evictionStrategy="LiveMigrate")
    shape(site, 2000)
    spec = machine(64, 1, 8, **evictable("None"))
    spec["domain"]["devices"]["autoattachSerialConsole"] = False  # pet alone is listened to
    site.api.create("virtualmachines", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "cattle"}, "spec": {
        "runStrategy": "Always", "template": {"spec": spec}}})
    movable(site, "cattle")
    uid = site.api.vmi("cattle")["metadata"]["uid"]
    node = site.node_of("cattle")
    with Guest(site, "pet", 64, 1, 8) as guest:
        if site.node_of("pet") != node:
            guest.move()
        [pod] = pods_of(site, "cattle", "Running")
        pet_pod = next(p for p in pods_of(site, "pet", "Running") if p["spec"]["nodeName"] == node)
        site.kubectl("cordon", node)
        assert evict(site, pet_pod)[0] == 429
        status, answer = evict(site, pod)
        assert status == 201, answer
        assert "evacuationNodeName" not in site.api.vmi("cattle")["status"], "marked"
        wait_for("pet to move", lambda: site.node_of("pet") == other(node), PATIENCE)
        wait_for("cattle to start elsewhere", lambda: (v := site.api.vmi("cattle")) and v["metadata"]["uid"] != uid and
                 phase(v) == "Running" and v["status"]["nodeName"] == other(node), PATIENCE)
        assert state_of(site, "cattle") == {} and moves_of(site, "cattle") == [], state_of(site, "cattle")
        wait_for("the move to be over", lambda: state_of(site, "pet").get("completed") and moves_of(site, "pet"), PATIENCE)
        site.kubectl("uncordon", node)
        guest.whole()
    site.ferry("vm", "delete", "cattle", "--wait", timeout=PATIENCE)
    settings(site, {})


def taint(site, node, *keys):
    status, answer = site.api.call("PATCH", site.api.path("nodes", node), {"spec": {"taints": [
        {"key": k, "effect": "NoSchedule"} for k in keys]}}, MERGE)
    assert status == 200, answer


def check_taints(site):
    """596, 597: a node with the drain taint is left by a VM under load; so it is with a key that the site chose"""
    with Guest(site, "hurries", 128, 40, 32, spec=evictable()) as guest:
        for key, config in (("kubevirt.io/drain", {}), ("example.org/leave", {"nodeDrainTaintKey": "example.org/leave"})):
            settings(site, config)
            node = site.node_of("hurries")
            before = {m["metadata"]["name"] for m in moves_of(site, "hurries")}
            taint(site, node, key)
            wait_for(f"it to leave {node}", lambda: site.node_of("hurries") == other(node), PATIENCE)
            taint(site, node)
            [move] = [m for m in moves_of(site, "hurries") if m["metadata"]["name"] not in before]
            ended(site, move["metadata"]["name"])
            guest.whole()
    settings(site, {})


def check_urgent_first(site):
    """614: one move at a time in the cluster: evacuations begin before moves by hand that were queued earlier"""
    settings(site, {"parallelMigrationsPerCluster": 1})
    shape(site, 2000)
    names = ("first", "second", "third")
    for name in names:
        create(site, name, 96, 1, 8, spec=evictable())
    node = site.node_of("first")
    for name in names[1:]:
        if site.node_of(name) != node:
            ended(site, migrate(site, name))
    shape(site, 40)
    holds = migrate(site, "first")
    running(site, holds)
    by_hand = migrate(site, "second")
    wait_for("it to be queued", lambda: "ClusterLimit" in site.api.migration(by_hand)["metadata"].get("annotations", {})
             .get("ferry.io/queue", ""), PATIENCE)
    [pod] = pods_of(site, "third", "Running")
    assert evict(site, pod)[0] == 429
    [urgent] = wait_for("the evacuation", lambda: [m for m in moves_of(site, "third") if phase(m) in OPEN], PATIENCE)
    shape(site, 2000)

    def began(name):
        m = site.api.migration(name)
        return [t["phaseTransitionTimestamp"] for t in m["status"].get("phaseTransitionTimestamps", []) if t["phase"] == "Scheduling"]
    order = []

    def watch():
        for name in (urgent["metadata"]["name"], by_hand):
            if name not in order and began(name):
                order.append(name)
        return len(order) == 2
    wait_for("both to begin", watch, PATIENCE, step=0.01)
    assert order[0] == urgent["metadata"]["name"], order
    for name in (holds, by_hand, urgent["metadata"]["name"]):
        ended(site, name)
    for name in names:
        site.ferry("vm", "delete", name, "--wait", timeout=PATIENCE)
    settings(site, {})


# ---- patience ---------------------------------------------------------------------------------------------------


def check_timeouts(site):
    """535, 536: a target pod that finds no node, or does not start, with 130 s allowed: not failed for a minute, then Failed"""
    shape(site, 2000)
    for name in ("pends", "waits"):
        create(site, name, 64, 1, 8)
    node = site.node_of("pends")
    if site.node_of("waits") != node:
        ended(site, migrate(site, "waits"))
    agent = site.pid(f"{other(node)}-pods")
    os.kill(agent, 19)
    try:
        begin = time.monotonic()
        status, pending = ask(site, "pends", migrationPendingPodTimeoutSeconds="130")
        assert status == 201, pending
        wait_for("its pod to be placed", lambda: [p for p in pods_of(site, "pends", "Pending") if p["spec"].get("nodeName")], PATIENCE)
        site.kubectl("cordon", other(node))
        status, homeless = ask(site, "waits", migrationUnschedulablePodTimeoutSeconds="130")
        assert status == 201, homeless
        names = [m["metadata"]["name"] for m in (pending, homeless)]
        wait_for("the warning", lambda: [e for e in events(site, "migrationTargetPodUnschedulable")
                                         if e["involvedObject"]["name"] == names[1] and e["type"] == "Warning"], PATIENCE)

        def minute():
            assert all(phase(site.api.migration(n)) in OPEN for n in names), [phase(site.api.migration(n)) for n in names]
            return time.monotonic() - begin > 70
        wait_for("a minute to pass", minute, PATIENCE, step=0.5)
        wait_for("both to be given up", lambda: all(phase(site.api.migration(n)) == "Failed" for n in names), PATIENCE, step=0.5)
        assert time.monotonic() - begin >= 129, time.monotonic() - begin
        reasons = [site.api.migration(n)["status"]["migrationState"]["failureReason"].split(":")[0] for n in names]
        assert reasons == ["PendingTimeout", "UnschedulableTimeout"], reasons
    finally:
        os.kill(agent, 18)
    site.kubectl("uncordon", other(node))
    for name in ("pends", "waits"):
        assert site.node_of(name) == node and phase(site.api.vmi(name)) == "Running"
        site.ferry("vm", "delete", name, "--wait", timeout=PATIENCE)


def run(bin_dir, *checks):
    with Site(bin_dir) as site:
        for check in checks:
            check(site)
            print(f"ok     {check.__name__}", flush=True)


def test_failures(bin_dir):
    run(bin_dir, check_in_flight, check_abort, check_no_progress, check_target_killed_while_preparing, check_deleted_on_the_way,
        check_never_two, check_failures)


def test_evictions(bin_dir):
    run(bin_dir, check_evicted, check_evacuation_fails, check_strategy_none, check_taints, check_urgent_first)


def test_patience(bin_dir):
    run(bin_dir, check_timeouts)


scenario.need_root()
scenario.main(globals())
