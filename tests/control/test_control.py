#!/usr/bin/env python3
"""ferry-controller against a real ferry-apiserver; the nodes are played by a test agent."""
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import scenario
from ferrysite import wait_for
from nodes import MOVES, VMIS, Plane, check_stayed, equal, phase

PHASES = ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"]
# What the nodes must not do for a move to stay in a phase.
STAY = {"Scheduling": "pods", "PreparingTarget": "prepare", "TargetReady": "start", "Running": "finish"}


def test_vm_is_placed(bin_dir):
    with Plane(bin_dir) as p:
        p.agent.hold.add("run")
        p.create_vm("web")
        vmi = wait_for("the VM to be scheduled", lambda: (v := p.api.vmi("web")) and phase(v) == "Scheduled" and v)
        [pod] = p.pods_of("web")
        node = pod["spec"]["nodeName"]
        equal(vmi["status"]["nodeName"], node)
        equal(vmi["metadata"]["labels"]["kubevirt.io/nodeName"], node)
        equal(vmi["status"]["activePods"], {pod["metadata"]["uid"]: node})
        equal(vmi["metadata"]["finalizers"], ["foregroundDeleteVirtualMachine"])
        equal([t["phase"] for t in vmi["status"]["phaseTransitionTimestamps"]], ["Pending", "Scheduling", "Scheduled"])
        equal(pod["metadata"]["ownerReferences"][0]["uid"], vmi["metadata"]["uid"])
        wait_for("the event", lambda: "SuccessfulCreate" in p.events("web"))
        p.agent.hold.clear()
        wait_for("the VM to run", lambda: phase(p.api.vmi("web")) == "Running")
        assert "web" in p.kubectl("get", "vmis")
        p.delete(VMIS, "web")
        p.wait_gone(VMIS, "web")
        equal(p.pods_of("web"), [])
        equal(p.stop_controller(), 0)


def test_two_vms_spread(bin_dir):
    with Plane(bin_dir) as p:
        p.run_vm("one")
        p.run_vm("two")
        equal({p.api.vmi(n)["status"]["nodeName"] for n in ("one", "two")}, {"a", "b"})


def test_pod_of_a_running_vm_goes(bin_dir):
    with Plane(bin_dir) as p:
        p.run_vm("web")
        p.delete("pods", p.pods_of("web")[0]["metadata"]["name"])
        vmi = wait_for("the VM to fail", lambda: (v := p.api.vmi("web")) and phase(v) == "Failed" and v)
        equal(vmi["status"]["reason"], "PodDeleted")
        p.delete(VMIS, "web")
        p.wait_gone(VMIS, "web")


def test_move(bin_dir):
    with Plane(bin_dir) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        target = "b" if source == "a" else "a"
        [source_pod] = p.pods_of("web")
        p.create_move("m1", "web")
        move = p.wait_move("m1", "Succeeded")
        equal([t["phase"] for t in move["status"]["phaseTransitionTimestamps"]], PHASES)
        vmi = p.api.vmi("web")
        equal(vmi["status"]["nodeName"], target)
        equal(phase(vmi), "Running")
        move = wait_for("clean-up", lambda: (m := p.api.migration("m1")) and not m["metadata"].get("finalizers") and m)
        state = move["status"]["migrationState"]
        equal((state["sourceNode"], state["targetNode"], state["completed"]), (source, target, True))
        equal(state["sourcePod"], source_pod["metadata"]["name"])
        equal(state["migrationConfiguration"]["progressTimeout"], 150)
        result = json.loads(move["metadata"]["annotations"]["ferry.io/result"])
        equal((result["downtimeMs"], result["transferredBytes"]), (12, 4096))
        assert "ferry.io/queue" not in move["metadata"]["annotations"]
        wait_for("the source pod to go", lambda: [x["spec"]["nodeName"] for x in p.pods_of("web")] == [target])
        wait_for("the event", lambda: "SuccessfulMigration" in p.events("m1"))
        for reason in ("SuccessfulCreate", "SuccessfulHandOver"):
            assert reason in p.events("m1"), p.events("m1")
        # And back, then the VM ends with all that belongs to it.
        p.create_move("m2", "web")
        p.wait_move("m2", "Succeeded")
        equal(p.api.vmi("web")["status"]["nodeName"], source)
        assert "Succeeded" in p.kubectl("get", "vmim")
        p.delete(VMIS, "web")
        p.wait_gone(VMIS, "web")
        equal(p.pods_of("web"), [])


def test_move_to_a_named_node(bin_dir):
    with Plane(bin_dir, nodes=("a", "b", "c")) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        target = "c" if source != "c" else "a"
        p.create_move("m1", "web", addedNodeSelector={"kubernetes.io/hostname": target})
        p.wait_move("m1", "Succeeded")
        equal(p.api.vmi("web")["status"]["nodeName"], target)


def test_finished_moves_are_collected(bin_dir):
    with Plane(bin_dir) as p:
        p.run_vm("web")
        for i in range(7):
            p.create_move(f"m{i}", "web")
            p.wait_move(f"m{i}", "Succeeded")
            wait_for("clean-up", lambda: not p.api.migration(f"m{i}")["metadata"].get("finalizers"))
        wait_for("old ones to go", lambda: [m["metadata"]["name"] for m in p.api.list(MOVES)] ==
                 ["m2", "m3", "m4", "m5", "m6"])


def test_cancel_before_hand_off(bin_dir):
    with Plane(bin_dir) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        p.agent.hold.add("pods")
        p.create_move("m1", "web")
        p.wait_move("m1", "Scheduling")
        p.delete(MOVES, "m1")
        p.wait_gone(MOVES, "m1")
        vmi = check_stayed(p, "web", source)
        assert "migrationState" not in vmi["status"], vmi["status"]
        p.agent.hold.clear()
        p.create_move("m2", "web")
        p.wait_move("m2", "Succeeded")


def queue_note(p, name):
    return json.loads(p.api.migration(name)["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))


def test_cancel_while_limits_hold(bin_dir):
    """Pending behind the cluster's limit and Scheduled behind the target node's: both say behind what and until when."""
    rows = (("Pending", "ClusterLimit", "kubevirt", {"parallelMigrationsPerCluster": 0}, {}),
            ("Scheduled", "InboundLimit", None, {}, {"ferry.io/parallelInboundMigrationsPerNode": "0"}))
    with Plane(bin_dir) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        target = next(n for n in p.names if n != source)
        for want, reason, blocker, configuration, annotations in rows:
            p.api.create("kubevirts", {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
                                       "metadata": {"name": "kubevirt", "annotations": annotations},
                                       "spec": {"configuration": {"migrations": configuration}}})
            name = "m-" + want.lower()
            p.create_move(name, "web")
            p.wait_move(name, want)
            note = wait_for("the reason", lambda: (n := queue_note(p, name)).get("reason") == reason and n)
            equal(note["blocker"], blocker or target)
            assert note.get("checkSeconds") or note.get("deadline"), note
            p.delete(MOVES, name)
            p.wait_gone(MOVES, name)
            check_stayed(p, "web", source)
            p.delete("kubevirts", "kubevirt")
        p.create_move("m2", "web")
        p.wait_move("m2", "Succeeded")


def test_cancel_after_hand_off(bin_dir):
    """In every phase after hand-off."""
    with Plane(bin_dir) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        for want in ("PreparingTarget", "TargetReady", "Running"):
            p.agent.hold = {STAY[want]}
            p.create_move("m-" + want.lower(), "web")
            p.wait_move("m-" + want.lower(), want)
            p.delete(MOVES, "m-" + want.lower())
            p.wait_gone(MOVES, "m-" + want.lower())
            state = check_stayed(p, "web", source)["status"]["migrationState"]
            equal((state["abortRequested"], state["abortStatus"], state["failed"]), (True, "Succeeded", True))
            wait_for("the event", lambda: "SuccessfulAbortMigration" in p.events("m-" + want.lower()))


def test_target_pod_lost(bin_dir):
    with Plane(bin_dir) as p:
        source = p.run_vm("web")["status"]["nodeName"]
        for want in ("Scheduling", "PreparingTarget", "Running"):
            name = "m-" + want.lower()
            p.agent.hold = {STAY[want]}
            p.create_move(name, "web")
            p.wait_move(name, want)
            [target] = [x for x in p.pods_of("web") if x["metadata"]["labels"].get("kubevirt.io/migrationJobUID")]
            p.delete("pods", target["metadata"]["name"])
            move = p.wait_move(name, "Failed")
            assert move["status"]["migrationState"]["failureReason"].startswith("TargetLost: "), move["status"]
            p.agent.hold = set()
            check_stayed(p, "web", source)


def test_no_second_node(bin_dir):
    with Plane(bin_dir, nodes=("a",)) as p:
        p.run_vm("web")
        p.create_move("m1", "web")

        def note():
            return json.loads(p.api.migration("m1")["metadata"].get("annotations", {}).get("ferry.io/queue", "{}"))
        wait_for("the reason", lambda: note().get("reason") == "Unschedulable")
        equal(note()["message"], "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.")
        equal(phase(p.api.migration("m1")), "Scheduling")
        [target] = [x for x in p.pods_of("web") if not x["spec"].get("nodeName")]
        [c] = [c for c in target["status"]["conditions"] if c["type"] == "PodScheduled"]
        equal((c["status"], c["reason"], c["message"]), ("False", "Unschedulable", note()["message"]))
        wait_for("the events", lambda: "FailedScheduling" in p.events(target["metadata"]["name"]) and
                 "migrationTargetPodUnschedulable" in p.events("m1"))
        p.agent.join("b")
        move = p.wait_move("m1", "Succeeded")
        equal(move["status"]["migrationState"]["targetNode"], "b")


def test_vm_that_fits_nowhere(bin_dir):
    with Plane(bin_dir) as p:
        p.create_vm("big", domain={"memory": {"guest": "64Gi"}})

        def condition():
            return [c for c in p.api.vmi("big").get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"]
        [c] = wait_for("the reason", condition)
        equal(c["message"], "0/2 nodes are available: 2 Insufficient memory.")
        equal(phase(p.api.vmi("big")), "Scheduling")
        p.delete(VMIS, "big")
        p.wait_gone(VMIS, "big")


def test_controller_killed_in_each_phase(bin_dir):
    with Plane(bin_dir) as p:
        p.run_vm("web")
        for i, (want, hold) in enumerate(STAY.items()):
            before = p.api.vmi("web")["status"]["nodeName"]
            p.agent.hold = {hold}
            p.create_move(f"m{i}", "web")
            p.wait_move(f"m{i}", want)
            p.kill_controller()
            p.agent.hold = set()
            p.start_controller()
            move = p.wait_move(f"m{i}", "Succeeded")
            equal([t["phase"] for t in move["status"]["phaseTransitionTimestamps"]], PHASES)
            assert p.api.vmi("web")["status"]["nodeName"] != before
            wait_for("one pod", lambda: len(p.pods_of("web")) == 1)


def test_controller_killed_at_any_instant(bin_dir):
    """Whenever it dies: never two pods of a kind, and everything ends."""
    with Plane(bin_dir) as p:
        p.create_vm("web")
        for i in range(4):
            time.sleep(0.02 * (i + 1))
            p.kill_controller()
            p.start_controller()
        wait_for("the VM to run", lambda: phase(p.api.vmi("web")) == "Running")
        equal(len(p.pods_of("web")), 1)
        p.create_move("m1", "web")
        for i in range(6):
            time.sleep(0.05 * (i + 1))
            p.kill_controller()
            p.start_controller()
        p.wait_move("m1", "Succeeded")
        wait_for("one pod", lambda: len(p.pods_of("web")) == 1)


def test_apiserver_restarted(bin_dir):
    with Plane(bin_dir) as p:
        p.run_vm("web")
        for sig, want in ((signal.SIGTERM, "PreparingTarget"), (signal.SIGKILL, "Running")):
            name = "m-" + want.lower()
            p.agent.hold = {STAY[want]}
            p.create_move(name, "web")
            p.wait_move(name, want)
            p.apiserver.send_signal(sig)
            p.apiserver.wait(20)
            time.sleep(0.5)  # let everyone run into it
            p.start_apiserver()
            wait_for("the API server to answer", p.answers)
            p.agent.hold = set()
            p.wait_move(name, "Succeeded")
            wait_for("one pod", lambda: len(p.pods_of("web")) == 1)


def test_limits(bin_dir):
    """Eight VMs leave three nodes: at most five at a time, at most two from one node."""
    with Plane(bin_dir, nodes=("a", "b", "c", "d")) as p:
        names = [f"vm{i}" for i in range(8)]
        for name in names:
            p.create_vm(name)
        wait_for("all to run", lambda: all(phase(p.api.vmi(n)) == "Running" for n in names), 60)
        nodes = {n: p.api.vmi(n)["status"]["nodeName"] for n in names}
        p.agent.hold = {"finish"}
        for name in names:
            p.create_move("m-" + name, name)

        def moves():
            return {m["spec"]["vmiName"]: m for m in p.api.list(MOVES)}

        def active():
            return [n for n, m in moves().items() if phase(m) not in ("", "Pending", "Succeeded", "Failed")]
        wait_for("five to run", lambda: len([n for n, m in moves().items() if phase(m) == "Running"]) == 5)
        waiting = [m for m in moves().values() if phase(m) == "Pending"]
        equal(len(waiting), 3)
        for m in waiting:
            wait_for("the reason", lambda: "ClusterLimit" in p.api.migration(m["metadata"]["name"])["metadata"]
                     .get("annotations", {}).get("ferry.io/queue", ""))
        p.agent.hold = set()
        deadline = time.monotonic() + 60
        while any(phase(m) != "Succeeded" for m in moves().values()):
            running = active()
            assert len(running) <= 5, running
            leaving = [nodes[n] for n in running]
            assert all(leaving.count(n) <= 2 for n in leaving), leaving
            assert time.monotonic() < deadline, {n: phase(m) for n, m in moves().items()}
            time.sleep(0.02)


def holder(p):
    status, lease = p.api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ferry-controller")
    return lease["spec"]["holderIdentity"] if status == 200 else ""


def test_standby_takes_over(bin_dir):
    """The second one waits; it goes on at once when the first ends or dies."""
    with Plane(bin_dir) as p:
        first = p.controller
        wait_for("the first to hold the lease", lambda: f"_{first.pid}_" in holder(p))
        p.start_controller()
        p.run_vm("web")
        assert f"_{first.pid}_" in holder(p)
        first.kill()
        first.wait()
        p.create_move("m1", "web")
        p.wait_move("m1", "Succeeded", 10)
        second = p.controller
        assert f"_{second.pid}_" in holder(p)
        p.start_controller()
        second.send_signal(signal.SIGTERM)
        equal(second.wait(20), 0)
        wait_for("the third to hold the lease", lambda: f"_{p.controller.pid}_" in holder(p), 5)


def test_bad_calls(bin_dir):
    program = os.path.join(bin_dir, "ferry-controller")
    for args, code, text in (
            (["--kubeconfig", "/nowhere/config"], 1, "/nowhere/config"),
            (["--workers", "0"], 2, "--workers"),
            (["surplus"], 2, "unexpected argument 'surplus'"),
            (["--no-such"], 2, "--no-such")):
        done = subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
        equal(done.returncode, code)
        assert text in done.stdout and len(done.stdout.splitlines()) == 1, done.stdout


def test_apiserver_away(bin_dir):
    """It waits for the API server, says so, and can be stopped meanwhile."""
    with Plane(bin_dir) as p:
        p.kill_controller()
        p.apiserver.kill()
        p.apiserver.wait()
        p.start_controller()
        time.sleep(1)
        assert p.controller.poll() is None
        begin = time.monotonic()
        equal(p.stop_controller(), 0)
        assert time.monotonic() - begin < 10


scenario.main(globals())
