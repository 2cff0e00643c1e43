#!/usr/bin/env python3
"""A virtual machine moves, by itself and while its keepers die. Numbers of cases are items of docs/conformance.md."""
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, leftovers, namespace_names, processes, wait_for

BEATS = 20  # per second


def other_node(node):
    return "node2" if node == "node1" else "node1"


def create(site, name, memory=128, dirty_rate=4, working_set=32):
    """A running VM whose heartbeat is heard; (monitor, its node)."""
    site.ferry("vm", "create", name, "--memory", f"{memory}Mi", "--dirty-rate", str(dirty_rate), "--working-set",
               str(working_set), "--heartbeat", str(BEATS), "--wait")
    monitor = site.monitor()
    monitor.wait_beats(5, 60)
    return monitor, site.node_of(name)


def shape(site, mbit):
    """Limits what every node receives on the migration network, so that a move takes long enough to disturb."""
    fabric = next(n for n in namespace_names(site.root) if n.endswith("-fabric"))
    for i in range(1, site.nodes + 1):
        subprocess.run(["tc", "-n", fabric, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", f"{mbit}mbit",
                        "burst", "256k", "latency", "50ms"], check=True)


def migrate(site, vm, to=None):
    """Asks for a move; the name of its object."""
    out = site.ferry("migrate", vm, *(["--to", to] if to else [])).stdout
    return out.split()[1]


def wait_phase(site, name, *phases, seconds=60):
    def reached():
        m = site.api.migration(name)
        return m and m.get("status", {}).get("phase") in phases and m
    return wait_for(f"move {name} to be {' or '.join(phases)}", reached, seconds)


def wait_copying(site, vm, seconds=60):
    """Until the move is in the middle of its work: some memory was sent, some remains."""
    def copying():
        sample = json.loads(site.api.vmi(vm)["metadata"].get("annotations", {}).get("ferry.io/progress", "{}"))
        running = [m["metadata"]["uid"] for m in site.api.list("virtualmachineinstancemigrations")
                   if m.get("status", {}).get("phase") == "Running"]
        return (sample.get("uid") in running  # the words of an earlier move stay until the next one speaks
                and min(sample.get("processedBytes", 0), sample.get("remainingBytes", 0)) > 8 << 20)
    wait_for("memory to be on its way", copying, seconds)


def check_whole(site, monitor, mark, vm, node):
    """The guest lives on `node`, once, has lost no heartbeat and no page."""
    monitor.wait_beats(BEATS, 30)
    assert f"/{node}/" in monitor.current_log(), f"heartbeats come from {monitor.current_log()}, not {node}"
    assert site.node_of(vm) == node, f"the object names {site.node_of(vm)}, not {node}"
    assert monitor.broken_sequence(mark) == [], monitor.broken_sequence(mark)
    pages, bad = monitor.verify()
    assert pages > 0 and bad == 0, (pages, bad)
    assert monitor.bad_pages() == 0
    wait_for("exactly one running guest", lambda: len(site.running_domains()) == 1, 30)
    assert f"/{node}/" in site.running_domains()[0]
    wait_for("one QEMU", lambda: len(site.qemus()) == 1, 30)


def check_cleaned(site, vm):
    """One pod of the VM runs, no sockets of a move are left in any pod."""
    def clean():
        running = [p for p in site.api.list("pods") if p.get("status", {}).get("phase") in ("Pending", "Running")]
        sockets = [s for d in site.pod_dirs() for s in os.listdir(os.path.join(d, "m"))]
        return len(running) == 1 and not sockets
    wait_for(f"the move of {vm} to be cleaned up", clean, 60)


def test_there_and_back(bin_dir):
    with Site(bin_dir) as site:
        monitor, start = create(site, "vm")
        try:
            mark = monitor.mark()
            pages, bad = monitor.verify()
            assert pages >= 100 * 256 and bad == 0, (pages, bad)

            done = site.ferry("migrate", "vm", "--watch")
            assert "Running" in done.stdout and "remaining" in done.stdout, done.stdout
            assert f"vm moved from {start} to {other_node(start)}" in done.stdout, done.stdout
            check_whole(site, monitor, mark, "vm", other_node(start))
            check_cleaned(site, "vm")

            # The same by kubectl.
            made = site.kubectl("create", "-o", "name", "-f", "-", stdin="""
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {name: back}
spec: {vmiName: vm}
""").stdout
            assert "back" in made, made
            wait_phase(site, "back", "Succeeded")
            check_whole(site, monitor, mark, "vm", start)
            check_cleaned(site, "vm")
            assert "Succeeded" in site.ferry("list", "-o", "wide").stdout
            gap = monitor.worst_gap(mark)
            print(f"worst heartbeat gap {gap * 1000:.0f} ms")
            site.ferry("vm", "delete", "vm", "--wait")
        finally:
            monitor.stop()
        wait_for("the pods to go", lambda: not site.api.list("pods"), 60)
        assert site.down().returncode == 0
        assert leftovers(site.root) == [], leftovers(site.root)


def test_cancel(bin_dir):
    with Site(bin_dir) as site:
        monitor, start = create(site, "vm", memory=256, dirty_rate=2)
        try:
            mark = monitor.mark()
            shape(site, 100)
            watch = subprocess.Popen([os.path.join(site.bin, "ferry"), "migrate", "vm", "--watch"],
                                     env=site.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_copying(site, "vm")
            cancel = site.ferry("cancel", "vm", "--wait")
            assert "was cancelled" in cancel.stdout and f"runs on {start}" in cancel.stdout, cancel.stdout
            out, err = watch.communicate(timeout=30)
            assert watch.returncode == 3 and "was cancelled" in out, (watch.returncode, out, err)
            check_whole(site, monitor, mark, "vm", start)
            check_cleaned(site, "vm")

            # Afterwards it can move.
            shape(site, 1000)
            site.ferry("migrate", "vm", "--watch")
            check_whole(site, monitor, mark, "vm", other_node(start))
        finally:
            monitor.stop()


def test_controller_and_all_die(bin_dir):
    """559: whoever dies in the middle of a move is started again, and the move goes on or fails; the next one succeeds"""
    check_deaths(bin_dir, lambda start: (["controller"], ["controller", "node1-handler", "node2-handler", "api"]))


def test_handlers_die(bin_dir):
    check_deaths(bin_dir, lambda start: ([f"{start}-handler"], [f"{other_node(start)}-handler"]))


def check_deaths(bin_dir, victims_of):
    with Site(bin_dir) as site:
        monitor, start = create(site, "vm", memory=256, dirty_rate=2)
        try:
            mark = monitor.mark()
            shape(site, 200)
            for victims in victims_of(start):
                source = site.node_of("vm")
                name = migrate(site, "vm")
                wait_copying(site, "vm")
                for victim in victims:
                    site.kill(victim)
                final = wait_phase(site, name, "Succeeded", "Failed", seconds=180)["status"]["phase"]
                target = other_node(source) if final == "Succeeded" else source
                print(f"killed {' '.join(victims)}: {final}", flush=True)
                check_whole(site, monitor, mark, "vm", target)
                check_cleaned(site, "vm")
        finally:
            monitor.stop()


def test_transport_and_target_die(bin_dir):
    """What the move itself needs dies: it fails, the guest stays, the next move works."""
    with Site(bin_dir) as site:
        monitor, start = create(site, "vm", memory=256, dirty_rate=2)
        try:
            mark = monitor.mark()
            shape(site, 200)
            for victim in (f"{start}-relay", f"{other_node(start)}-relay", "qemu"):
                name = migrate(site, "vm")
                wait_copying(site, "vm")
                if victim == "qemu":
                    os.kill(next(p for p in site.qemus() if site.owns(p, other_node(start))), 9)
                else:
                    site.kill(victim)
                final = wait_phase(site, name, "Succeeded", "Failed", seconds=180)["status"]
                assert final["phase"] == "Failed", final
                print(f"killed {victim}: {final['migrationState']['failureReason']}", flush=True)
                check_whole(site, monitor, mark, "vm", start)
                check_cleaned(site, "vm")
            shape(site, 1000)
            site.ferry("migrate", "vm", "--watch")
            check_whole(site, monitor, mark, "vm", other_node(start))
            check_cleaned(site, "vm")

            # Down in the middle of a move leaves nothing of either side.
            shape(site, 100)
            migrate(site, "vm")
            wait_copying(site, "vm")
            assert site.down().returncode == 0
            assert leftovers(site.root) == [], leftovers(site.root)
        finally:
            monitor.stop()


def test_launcher_and_pods_agent_die(bin_dir):
    with Site(bin_dir) as site:
        monitor, start = create(site, "vm")
        try:
            mark = monitor.mark()
            site.wait_restarted(f"{start}-pods", site.kill(f"{start}-pods"))
            monitor.wait_beats(BEATS)

            old = launcher_pid(site)
            os.kill(old, 9)
            wait_for("the launcher to be started again", lambda: launcher_pid(site) not in (0, old), 30)
            check_whole(site, monitor, mark, "vm", start)
            assert site.api.vmi("vm")["status"]["phase"] == "Running"

            # And it can still move, which needs both.
            site.ferry("migrate", "vm", "--watch")
            check_whole(site, monitor, mark, "vm", other_node(start))
            check_cleaned(site, "vm")
        finally:
            monitor.stop()


def test_round_three_nodes(bin_dir):
    """From node to node until it is home again. On each leg something dies, or is replaced, that the move must not need: the agents of
    the pods on both sides, all of the node that has no part in it, and both relays are upgraded."""
    with Site(bin_dir, nodes=3) as site:
        monitor, start = create(site, "vm", memory=256, dirty_rate=2)
        try:
            mark = monitor.mark()
            shape(site, 200)
            names = [f"node{i + 1}" for i in range(3)]
            legs = names[names.index(start):] + names[:names.index(start)] + [start]
            for leg, (source, target) in enumerate(zip(legs, legs[1:])):
                [third] = set(names) - {source, target}
                name = migrate(site, "vm", to=target)
                wait_copying(site, "vm")
                if leg == 0:
                    old = {n: site.kill(f"{n}-pods") for n in (source, target)}
                    for n, pid in old.items():
                        site.wait_restarted(f"{n}-pods", pid)
                elif leg == 1:
                    for program in ("relay", "pods", "handler"):
                        site.kill(f"{third}-{program}")
                else:
                    for n in (source, target):
                        site.kill(f"{n}-relay", signal.SIGUSR2)
                final = wait_phase(site, name, "Succeeded", "Failed", seconds=180)["status"]
                assert final["phase"] == "Succeeded", final
                check_whole(site, monitor, mark, "vm", target)
                check_cleaned(site, "vm")
            print(f"worst heartbeat gap {monitor.worst_gap(mark) * 1000:.0f} ms")
        finally:
            monitor.stop()


def launcher_pid(site):
    found = [pid for pid, command in processes() if command.split()[0].endswith("ferry-launcher") and site.owns(pid)]
    return found[0] if found else 0


scenario.need_root()
scenario.main(globals())
