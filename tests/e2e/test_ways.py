#!/usr/bin/env python3
"""Every way to steer a move, through the whole system: policies and the KubeVirt object in, a guest that is whole out.
Numbers of cases are items of docs/conformance.md."""
import json
import os
import re
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, processes, wait_for
from moving import MIB, PATIENCE, Guest, create, ended, migrate, other, policy, record, relay, settings, shape


def check_auto_converge(site):
    """537: auto-converge: throttled until it converges, mode PreCopy, the record tells of the throttle"""
    policy(site, "converge", allowAutoConverge=True, completionTimeoutPerGiB=1000)
    with Guest(site, "converge", 128, 60, 48) as guest:
        shape(site, 250)
        name, state = guest.move()
        assert state["mode"] == "PreCopy" and state["migrationPolicyName"] == "converge", state
        assert re.search(r"[1-9][0-9]* %", record(site, name)), record(site, name)


def check_post_copy(site):
    """616: post-copy by policy ends in mode PostCopy"""
    policy(site, "post", allowPostCopy=True, completionTimeoutPerGiB=20)
    with Guest(site, "post", 128, 200, 96) as guest:
        shape(site, 150)
        name, state = guest.move()
        assert state["mode"] == "PostCopy", state
        assert "post-copy" in record(site, name)
        check_no_way_back(site, guest)


def check_no_way_back(site, guest):
    """In post-copy a cancel is answered: it must finish. It does."""
    shape(site, 150)
    name = migrate(site, "post")
    uid = site.api.migration(name)["metadata"]["uid"]

    def in_post_copy():
        state = site.api.vmi("post")["status"].get("migrationState", {})
        return state.get("migrationUid") == uid and state.get("mode") == "PostCopy"
    wait_for("post-copy", in_post_copy, PATIENCE)
    shape(site, 8)
    done = site.run("cancel", "post")
    assert done.returncode == 1 and "must finish" in done.stderr, (done.returncode, done.stdout, done.stderr)
    assert "deletionTimestamp" not in site.api.migration(name)["metadata"]
    shape(site, 2000)
    ended(site, name)
    guest.whole()


def check_pause(site):
    """620: disruption allowed without post-copy: mode Paused, and the guest goes on afterwards"""
    policy(site, "pause", allowWorkloadDisruption=True, allowPostCopy=False, completionTimeoutPerGiB=20)
    with Guest(site, "pause", 128, 200, 64) as guest:
        shape(site, 250)
        name, state = guest.move()
        assert state["mode"] == "Paused", state
        assert "pause" in record(site, name)


def check_multifd_and_compression(site):
    """572: several connections on the memory channel; zstd by policy is in configuration and record"""
    with Guest(site, "multifd", 256, 4, 32, ferry_parallel_connections="4") as guest:
        shape(site, 200)
        source = site.node_of("multifd")
        most = [0]
        over = threading.Event()

        def look():
            while not over.wait(0.05):
                streams = relay(site, source, "/v1/streams")["streams"]
                most[0] = max(most[0], len([s for s in streams if s["channel"] == 49152]))
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        guest.move()
        over.set()
        thread.join()
        assert most[0] >= 4, f"{most[0]} connections at most on the memory channel"
    policy(site, "zstd", experimental={"compression": "zstd"})
    with Guest(site, "zstd", 256, 4, 32) as guest:
        shape(site, 200)
        name, state = guest.move()
        assert state["migrationConfiguration"]["experimental"]["compression"] == "zstd", state
        assert "zstd" in record(site, name), record(site, name)


def check_bandwidth(site):
    """520: bandwidth by policy: a move is not faster than that"""
    policy(site, "narrow", bandwidthPerMigration="16Mi")
    shape(site, 2000)
    with Guest(site, "narrow", 128, 1, 16) as guest:
        name, _ = guest.move()
        result = json.loads(site.api.migration(name)["metadata"]["annotations"]["ferry.io/result"])
        rate = result["transferredBytes"] / (result["totalMs"] / 1000)
        assert rate < 1.3 * 16 * MIB, f"{rate / MIB:.1f} MiB/s"


def sent(site, node):
    """Bytes that the relay of a node has sent on memory channels, by move."""
    by_move = {}
    for s in relay(site, node, "/v1/streams")["streams"]:
        if s["channel"] == 49152:
            by_move[s["move"]] = by_move.get(s["move"], 0) + s["bytesOut"]
    return by_move


def check_three_at_once(site):
    """Three moves share a link's rate fairly: what each sends while all three send is compared, over some seconds."""
    settings(site, {"parallelOutboundMigrationsPerNode": 3})
    names = ("fair-a", "fair-b", "fair-c")
    shape(site, 2000)
    for name in names:
        create(site, name, 192, 1, 16)
    node = site.node_of(names[0])
    for name in names[1:]:
        if site.node_of(name) != node:
            ended(site, migrate(site, name))
    wait_for("all on one node", lambda: {site.node_of(n) for n in names} == {node}, PATIENCE)
    subprocess.run(["curl", "-sS", "-X", "PUT", "--unix-socket", os.path.join(site.root, node, "run/ferry/relay.sock"),
                    "-d", json.dumps({"bytesPerS": 12 * MIB}), "http://relay/v1/rate"], check=True, capture_output=True)
    moves = [migrate(site, name) for name in names]
    wait_for("three moves to send", lambda: len([b for b in sent(site, node).values() if b > MIB]) == 3, PATIENCE)
    before = sent(site, node)
    wait_for("a good part to be sent", lambda: sum((after := sent(site, node)).get(m, 0) - b for m, b in before.items())
             > 60 * MIB or len(after) < 3, PATIENCE)
    after = sent(site, node)
    shares = sorted(after.get(m, 0) - b for m, b in before.items())
    assert len(after) == 3 and shares[0] > 0, (before, after)
    print(f"       shares {[round(s / MIB, 1) for s in shares]} MiB", flush=True)
    assert shares[2] < 2 * shares[0], f"unfair: {shares}"
    subprocess.run(["curl", "-sS", "-X", "PUT", "--unix-socket", os.path.join(site.root, node, "run/ferry/relay.sock"),
                    "-d", json.dumps({"bytesPerS": 0}), "http://relay/v1/rate"], check=True, capture_output=True)
    for move in moves:
        ended(site, move)
    for name in names:
        site.ferry("vm", "delete", name, "--wait", timeout=PATIENCE)


def check_tls_off(site):
    """555: TLS off in the KubeVirt object: warned of, the relays talk plainly, the move succeeds"""
    said = settings(site, {"disableTLS": True})
    assert "Warning" in said and "disableTLS" in said, said
    shape(site, 60)
    with Guest(site, "plain", 128, 1, 16) as guest:
        source = site.node_of("plain")
        name = migrate(site, "plain")
        modes = wait_for("the target's relay to know it",
                         lambda: [t["tls"] for t in relay(site, other(source), "/v1/targets")["targets"]], PATIENCE)
        assert modes == ["plain"], modes
        shape(site, 2000)
        ended(site, name)
        guest.whole()
    settings(site, {"disableTLS": False})


def check_back_and_forth(site):
    """531: ten moves in a row, each with all that a success must say"""
    with Guest(site, "pendulum", 96, 4, 24) as guest:
        shape(site, 2000)
        for _ in range(10):
            guest.move()
        wait_for("one QEMU", lambda: len(site.qemus()) == 1, PATIENCE)


def cancelled(site, name, vm, node):
    done = site.run("cancel", name, "--wait", timeout=PATIENCE)
    assert done.returncode == 0, (done.stdout, done.stderr)

    def clean():
        left = [s for d in site.pod_dirs() for s in os.listdir(os.path.join(d, "m"))]
        pods = [p for p in site.api.list("pods") if p.get("status", {}).get("phase") in ("Pending", "Running")]
        return not left and len(pods) == 1
    wait_for("nothing to be left of the move", clean, PATIENCE)
    assert site.node_of(vm) == node


def check_cancel(site):
    """565, 567, 568: cancelled in every phase that can be held: nothing is left, the guest has noticed nothing"""
    with Guest(site, "undone", 128, 1, 16) as guest:
        node = site.node_of("undone")
        settings(site, {"parallelMigrationsPerCluster": 0})
        name = migrate(site, "undone")
        wait_for("it to be queued", lambda: site.api.migration(name).get("status", {}).get("phase") == "Pending", PATIENCE)
        cancelled(site, name, "undone", node)
        settings(site, {})

        site.kubectl("cordon", other(node))
        name = site.api.create("virtualmachineinstancemigrations", {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
            "metadata": {"generateName": "undone-"}, "spec": {"vmiName": "undone"}})["metadata"]["name"]
        wait_for("it to look for a node", lambda: site.api.migration(name).get("status", {}).get("phase") ==
                 "Scheduling", PATIENCE)
        cancelled(site, name, "undone", node)
        site.kubectl("uncordon", other(node))

        controller = site.pid("controller")
        name = migrate(site, "undone")
        wait_for("a target pod", lambda: site.pod_dirs(other(node)), PATIENCE, step=0.01)
        os.kill(controller, signal.SIGSTOP)
        try:  # the target pod becomes ready, and the nodes are not told
            ready = lambda p: any(c["type"] == "Ready" and c["status"] == "True" for c in p.get("status", {}).get("conditions", []))
            wait_for("the target pod", lambda: all(map(ready, site.api.list("pods"))), PATIENCE)
            assert "migrationState" not in site.api.vmi("undone")["status"], site.api.vmi("undone")["status"]
            site.ferry("cancel", name)
        finally:
            os.kill(controller, signal.SIGCONT)
        wait_for("it to be over", lambda: (m := site.api.migration(name)) is None or
                 m["status"].get("phase") == "Failed", PATIENCE)

        pid = site.pid(f"{other(node)}-relay")
        os.kill(pid, signal.SIGSTOP)
        try:
            name = migrate(site, "undone")
            wait_for("the target to prepare", lambda: site.api.migration(name).get("status", {}).get("phase") ==
                     "PreparingTarget", PATIENCE)
            site.ferry("cancel", name)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_for("it to be over", lambda: (m := site.api.migration(name)) is None or
                 m["status"].get("phase") == "Failed", PATIENCE)

        launcher = next(pid for pid, command in processes()
                        if re.match(r"\S*ferry-launcher ", command) and site.owns(pid, node))
        os.kill(launcher, signal.SIGSTOP)
        try:
            name = migrate(site, "undone")
            wait_for("the target to be ready", lambda: site.api.migration(name).get("status", {}).get("phase") ==
                     "TargetReady", PATIENCE)
            site.ferry("cancel", name)
        finally:
            os.kill(launcher, signal.SIGCONT)
        wait_for("it to be over", lambda: (m := site.api.migration(name)) is None or
                 m["status"].get("phase") == "Failed", PATIENCE)

        shape(site, 20)
        name = migrate(site, "undone")
        wait_for("it to run", lambda: site.api.migration(name).get("status", {}).get("phase") == "Running", PATIENCE)
        cancelled(site, name, "undone", node)
        shape(site, 2000)
        guest.whole()


def check_drains(site):
    """592, 595: two guests without a strategy, one move at a time by the cluster's limit; then `kubectl drain` the other way"""
    settings(site, {"parallelMigrationsPerCluster": 1})
    shape(site, 2000)
    for name in ("one", "two"):
        create(site, name, 64, 1, 8)  # as `ferry vm create` does: without an eviction strategy
    node = site.node_of("one")
    if site.node_of("two") != node:
        ended(site, migrate(site, "two"))
    most = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            moves = site.api.list("virtualmachineinstancemigrations")
            most[0] = max(most[0], len([m for m in moves if m.get("status", {}).get("phase") in
                                        ("Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running")]))
    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        site.ferry("drain", node, timeout=PATIENCE)
    finally:
        stop.set()
        thread.join()
    assert {site.node_of("one"), site.node_of("two")} == {other(node)}
    assert most[0] == 1, f"{most[0]} moves at once"
    site.ferry("undrain", node)
    drain = subprocess.run(["kubectl", "drain", other(node), "--pod-selector=kubevirt.io=virt-launcher",
                            "--delete-emptydir-data", "--force", "--timeout=240s"], env=site.environment(), text=True,
                           capture_output=True, timeout=300)
    assert drain.returncode == 0, drain.stdout + drain.stderr
    wait_for("both to be back", lambda: {site.node_of("one"), site.node_of("two")} == {node}, PATIENCE)
    site.kubectl("uncordon", other(node))
    for name in ("one", "two"):
        site.ferry("vm", "delete", name, "--wait", timeout=PATIENCE)


def run(bin_dir, *checks):
    with Site(bin_dir) as site:
        for check in checks:
            check(site)
            print(f"ok     {check.__name__}", flush=True)


def test_strategies(bin_dir):
    run(bin_dir, check_auto_converge, check_post_copy, check_pause)


def test_transport(bin_dir):
    run(bin_dir, check_multifd_and_compression, check_bandwidth, check_tls_off)


def test_sharing(bin_dir):
    run(bin_dir, check_three_at_once)


def test_operations(bin_dir):
    run(bin_dir, check_cancel, check_drains, check_back_and_forth)


scenario.need_root()
scenario.main(globals())
