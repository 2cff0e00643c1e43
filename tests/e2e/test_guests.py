#!/usr/bin/env python3
"""What KubeVirt's functional tests ask of single moves, with real guests: paused ones, ones with disks of every kind, settings by
policy and by the KubeVirt object. Numbers of cases are items of docs/conformance.md."""
import contextlib
import json
import os
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, namespace_names, processes, wait_for
from moving import MIB, PATIENCE, Guest, ended, machine, migrate, movable, other, policy, record, settings, shape

SIZE = 8 * MIB
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances"


# ---- paused -----------------------------------------------------------------------------------------------------


def domains(site):
    """state and reason of every guest, by node."""
    found = {}
    for node in ("node1", "node2"):
        for directory in site.pod_dirs(node):
            status = site.launcher_status(directory)
            if status and status.get("domain", {}).get("state") in ("running", "paused"):
                found[node] = (status["domain"]["state"], status["domain"]["reason"])
    return found


def paused(site, vm):
    return [c["reason"] for c in site.api.vmi(vm)["status"].get("conditions", []) if c["type"] == "Paused"]


def check_paused(site):
    """534: a paused guest is moved, is paused at its new node, and goes on when it is told to"""
    shape(site, 2000)
    with Guest(site, "still", 128, 4, 16) as guest:
        source = site.node_of("still")
        assert "is paused" in site.ferry("vm", "pause", "still", "--wait").stdout
        assert domains(site) == {source: ("paused", "user")}, domains(site)
        assert paused(site, "still") == ["PausedByUser"]
        assert "Paused" in site.ferry("vm", "list").stdout
        assert "already" in site.ferry("vm", "pause", "still").stdout
        mark = guest.monitor.mark()
        ended(site, migrate(site, "still"))
        wait_for("the VM to be on the other node", lambda: site.node_of("still") == other(source), PATIENCE)
        wait_for("the source to be gone", lambda: list(domains(site)) == [other(source)], PATIENCE)
        assert domains(site) == {other(source): ("paused", "user")}, domains(site)
        wait_for("its status to say so", lambda: paused(site, "still") == ["PausedByUser"], PATIENCE)
        assert guest.monitor.since(mark) == [], "a paused guest wrote something"
        # By KubeVirt's own call, as virtctl makes it.
        assert site.api.call("PUT", f"{SUBRESOURCES}/still/pause")[0] == 409
        status, answer = site.api.call("PUT", f"{SUBRESOURCES}/still/unpause")
        assert status == 202, answer
        assert domains(site)[other(source)] == ("running", "unpaused"), domains(site)
        guest.whole()
        wait_for("the condition to go", lambda: paused(site, "still") == [], PATIENCE)
        assert site.api.call("PUT", f"{SUBRESOURCES}/still/unpause")[0] == 409
        assert site.api.call("PUT", f"{SUBRESOURCES}/nobody/pause")[0] == 404
        guest.move()


def check_not_paused_while_moved(site):
    """A guest on its way is not paused by anyone but the move."""
    with Guest(site, "moving", 128, 1, 16) as guest:
        shape(site, 40)
        name = migrate(site, "moving")
        wait_for("it to run", lambda: site.api.migration(name).get("status", {}).get("phase") == "Running", PATIENCE)
        done = site.run("vm", "pause", "moving")
        assert done.returncode == 1 and "is being moved" in done.stderr, (done.returncode, done.stderr)
        shape(site, 2000)
        ended(site, name)
        guest.whole()


# ---- settings ---------------------------------------------------------------------------------------------------


def check_policy_names(site):
    """570: a policy that forbids auto-converge is recorded by its name; without one there is no name"""
    policy(site, "named", allowAutoConverge=False)
    shape(site, 2000)
    with Guest(site, "named", 64, 1, 8) as guest:
        _, state = guest.move()
        assert state["migrationPolicyName"] == "named", state
        assert state["migrationConfiguration"]["allowAutoConverge"] is False, state
    site.kubectl("delete", "migrationpolicy", "named")
    with Guest(site, "named", 64, 1, 8) as guest:
        _, state = guest.move()
        assert "migrationPolicyName" not in state, state


def check_all_at_once(site):
    """573: compression, auto-converge and post-copy together: it ends in PostCopy, all settings are recorded"""
    policy(site, "all", allowAutoConverge=True, allowPostCopy=True, completionTimeoutPerGiB=10,
           experimental={"compression": "zstd"})
    with Guest(site, "all", 128, 200, 96) as guest:
        shape(site, 100)
        name, state = guest.move()
        config = state["migrationConfiguration"]
        assert state["mode"] == "PostCopy", state
        assert config["allowAutoConverge"] and config["allowPostCopy"], config
        assert config["experimental"]["compression"] == "zstd", config
        assert "post-copy" in record(site, name)


def check_switchover_bandwidth(site):
    """QEMU is told what the relay measures of the move, not what the link could carry an hour ago."""
    with Guest(site, "measured", 128, 1, 80) as guest:
        shape(site, 80)
        name, _ = guest.move()
        told = re.search(r"the relay measures (\d+) MiB/s", record(site, name))
        assert told and 6 <= int(told[1]) <= 10, record(site, name)


def check_pause_by_site(site):
    """621: disruption allowed without post-copy in the KubeVirt object: mode Paused, and the guest goes on afterwards"""
    settings(site, {"allowWorkloadDisruption": True, "allowPostCopy": False, "completionTimeoutPerGiB": 20})
    with Guest(site, "stops", 128, 200, 64) as guest:
        shape(site, 250)
        over, reasons = threading.Event(), set()

        def look():
            while not over.wait(0.05):
                reasons.update(paused(site, "stops"))
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            _, state = guest.move()
        finally:
            over.set()
            thread.join()
        assert reasons == {"PausedByMigrationMonitor"}, reasons
        assert state["mode"] == "Paused" and "migrationPolicyName" not in state, state
        assert domains(site) == {site.node_of("stops"): ("running", "migrated")}, domains(site)
        assert paused(site, "stops") == []
    settings(site, {})


def check_added_selector(site):
    """622: addedNodeSelector moves it to the labelled node, cannot override the VM's own key, and is not kept"""
    shape(site, 2000)
    site.kubectl("label", "nodes", "node1", "node2", "zone=a")
    with Guest(site, "chosen", 64, 1, 8, spec={"nodeSelector": {"zone": "a"}}) as guest:
        source = site.node_of("chosen")
        site.kubectl("label", "node", other(source), "speed=fast")
        made = site.api.create("virtualmachineinstancemigrations", {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": "chosen-1"},
            "spec": {"vmiName": "chosen", "addedNodeSelector": {"speed": "fast", "zone": "b"}}})
        uid = made["metadata"]["uid"]
        ended(site, "chosen-1")
        [pod] = [p for p in site.api.list("pods") if p["metadata"]["labels"].get("kubevirt.io/migrationJobUID") == uid]
        assert pod["spec"]["nodeSelector"]["zone"] == "a" and pod["spec"]["nodeSelector"]["speed"] == "fast", pod["spec"]
        wait_for("the VM to be there", lambda: site.node_of("chosen") == other(source), PATIENCE)
        # The node that it came from has no such label, and takes it back.
        guest.move()
        assert site.node_of("chosen") == source


def check_metrics(site):
    """577: while a slow move runs, its node exposes the metrics of it"""
    with Guest(site, "counted", 128, 1, 16) as guest:
        source = site.node_of("counted")
        shape(site, 40)
        name = migrate(site, "counted")

        def exposed():
            # Text, which Api.call would decode: kubectl passes it on.
            text = site.kubectl("get", "--raw", f"/api/v1/nodes/{source}/proxy/metrics").stdout
            return {m[1]: float(m[2]) for m in re.finditer(r'^(kubevirt_vmi_migration_\w+)\{[^}]*name="counted"[^}]*\} (\S+)$',
                                                            text, re.M)}
        wait_for("figures of it", lambda: exposed().get("kubevirt_vmi_migration_data_processed_bytes", 0) > MIB, PATIENCE)
        seen = exposed()
        for word in ("data_remaining_bytes", "data_processed_bytes", "dirty_memory_rate_bytes", "memory_transfer_rate_bytes"):
            assert f"kubevirt_vmi_migration_{word}" in seen, seen
        assert seen["kubevirt_vmi_migration_data_remaining_bytes"] > 0, seen
        shape(site, 2000)
        ended(site, name)
        guest.whole()


def check_libvirt_killed(site):
    """532: libvirt's daemon is killed and started again; then the guest moves"""
    shape(site, 2000)
    with Guest(site, "orphan", 64, 1, 8) as guest:
        node = site.node_of("orphan")

        def daemon():
            found = [pid for pid, command in processes()
                     if re.match(r"\S*(libvirtd|virtqemud)", command) and site.owns(pid, node)]
            return found[0] if len(found) == 1 else 0
        old = wait_for("libvirt's daemon", daemon, PATIENCE)
        os.kill(old, 9)
        wait_for("it to be started again", lambda: daemon() not in (0, old), PATIENCE)
        guest.move()


# ---- networks ---------------------------------------------------------------------------------------------------


def add_network(site, name):
    """A bridge on every node, and what describes it."""
    for node in ("node1", "node2"):
        namespace = next(n for n in namespace_names(site.root) if n.endswith(f"-{node}"))
        for words in (("add", f"br-{name}", "type", "bridge"), ("set", f"br-{name}", "up")):
            subprocess.run(["ip", "-n", namespace, "link", *words], check=True)
    status, body = site.api.call("POST", "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions", {
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": name},
        "spec": {"config": json.dumps({"cniVersion": "1.0.0", "type": "bridge", "bridge": f"br-{name}"})}})
    assert status == 201, body


def attached(site, node, name):
    """How many guests are on a node's bridge."""
    namespace = next(n for n in namespace_names(site.root) if n.endswith(f"-{node}"))
    shown = subprocess.run(["ip", "-n", namespace, "-o", "link", "show", "master", f"br-{name}"], capture_output=True, text=True, check=True)
    return len(shown.stdout.splitlines())


def check_network_change(site):
    """Another network in the VM's template raises MigrationRequired; the VM is moved, is on it, and the condition goes"""
    for name in ("red", "blue"):
        add_network(site, name)
    status, body = site.api.call("POST", "/apis/kubevirt.io/v1/namespaces/default/kubevirts", {
        "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
        "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}})
    assert status == 201, body
    networks = {"networks": [{"name": "lan", "multus": {"networkName": "red"}}]}
    spec = machine(64, 1, 8, **networks)
    spec["domain"]["devices"] = {"interfaces": [{"name": "lan", "bridge": {}}]}
    monitor = site.monitor(fresh=True)
    site.api.create("virtualmachines", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "wired"},
                                        "spec": {"runStrategy": "Always", "template": {"spec": spec}}})
    movable(site, "wired")
    monitor.wait_beats(5, PATIENCE)
    mark, source = monitor.mark(), site.node_of("wired")
    assert (attached(site, source, "red"), attached(site, source, "blue")) == (1, 0)
    required = []

    def look():
        vmi = site.api.vmi("wired")
        required.extend(c["status"] for c in vmi["status"].get("conditions", []) if c["type"] == "MigrationRequired")
        return vmi["status"]["nodeName"] == other(source)
    status, body = site.api.call("PATCH", site.api.path("virtualmachines", "wired"), {"spec": {"template": {"spec": {
        "networks": [{"name": "lan", "multus": {"networkName": "blue"}}]}}}}, "application/merge-patch+json")
    assert status == 200, body
    wait_for("it to move", look, PATIENCE)
    assert "True" in required, required
    [move] = site.api.list("virtualmachineinstancemigrations")
    ended(site, move["metadata"]["name"])
    assert "kubevirt.io/workloadUpdateMigration" in move["metadata"]["annotations"], move["metadata"]
    wait_for("the condition to go", lambda: not [c for c in site.api.vmi("wired")["status"]["conditions"]
                                                 if c["type"] == "MigrationRequired"], PATIENCE)
    wait_for("the guest to be on the other network", lambda: [attached(site, other(source), n) for n in ("red", "blue")] == [0, 1] and
             [attached(site, source, n) for n in ("red", "blue")] == [0, 0], PATIENCE)
    monitor.wait_beats(10, PATIENCE)
    assert not monitor.broken_sequence(mark) and monitor.verify(PATIENCE)[1] == 0
    monitor.stop()
    assert len(site.api.list("virtualmachineinstancemigrations")) == 1
    conditions = [c["type"] for c in site.api.get("virtualmachines", "wired")["status"]["conditions"]]
    assert "RestartRequired" not in conditions, conditions
    site.ferry("vm", "delete", "wired", "--wait", timeout=PATIENCE)


# ---- disks ------------------------------------------------------------------------------------------------------


def add_claim(site, name, mode, access):
    spec = {"accessModes": [access], "storageClassName": "by-hand", "volumeMode": mode}
    site.api.create("persistentvolumes", {"metadata": {"name": name}, "spec": {
        **spec, "hostPath": {"path": "/data/" + name}, "capacity": {"storage": "8Mi"},
        "claimRef": {"namespace": "default", "name": name}}})
    site.api.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
        **spec, "volumeName": name, "resources": {"requests": {"storage": "8Mi"}}}})


@contextlib.contextmanager
def volumes(site):
    """Claims that both nodes can have: `files` a directory, `device` and `alone` block devices, the latter for one writer."""
    devices = []
    try:
        for node in ("node1", "node2"):
            os.makedirs(os.path.join(site.root, node, "data"), exist_ok=True)
        for name, mode, access in (("files", "Filesystem", "ReadWriteMany"), ("device", "Block", "ReadWriteMany"),
                                   ("alone", "Block", "ReadWriteOnce")):
            where = os.path.join(site.base, name)
            image = where if mode == "Block" else os.path.join(where, "disk.img")
            os.makedirs(os.path.dirname(image), exist_ok=True)
            with open(image, "wb") as f:
                f.truncate(SIZE)
            if mode == "Block":
                done = subprocess.run(["losetup", "--find", "--show", image], text=True, check=True, capture_output=True)
                where = done.stdout.strip()
                devices.append(where)
            for node in ("node1", "node2"):
                os.symlink(where, os.path.join(site.root, node, "data", name))
            add_claim(site, name, mode, access)
        yield
    finally:
        site.down()
        for device in devices:
            subprocess.run(["losetup", "--detach", device], check=False)


def with_disks(*disks, **more):
    """spec of a guest that rewrites its first disk, `disks`: (volume's source, the disk's own fields)."""
    spec = machine(64, 4, 4, more=" disk=1 drate=64", **more)
    spec["domain"]["devices"] = {"disks": [{"name": f"d{i}", "disk": {"bus": "virtio"}, **fields}
                                           for i, (_, fields) in enumerate(disks)]}
    spec["volumes"] = [{"name": f"d{i}", **source} for i, (source, _) in enumerate(disks)]
    return spec


def claim(name):
    return {"persistentVolumeClaim": {"claimName": name}}


@contextlib.contextmanager
def disk_guest(site, spec, method):
    site.api.create("virtualmachineinstances", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                                "metadata": {"name": "disks", "labels": {"way": "disks"}}, "spec": spec})
    try:
        movable(site, "disks")
        assert site.api.vmi("disks")["status"]["migrationMethod"] == method, site.api.vmi("disks")["status"]
        yield
    finally:
        site.ferry("vm", "delete", "disks", "--wait", timeout=PATIENCE)


def disk_move(site):
    """Moves it; the guest then reads its memory and its disk back. The move's state."""
    source = site.node_of("disks")
    status = ended(site, migrate(site, "disks"))
    wait_for("the VM to be on the other node", lambda: site.node_of("disks") == other(source), PATIENCE)
    verify(site)
    return status["migrationState"]


def verify(site):
    def text():
        return site.ferry("vm", "console", "disks", "--once", "--tail", "100000").stdout
    before = text().count("VERIFY ")
    site.ferry("vm", "console", "disks", "--send", "v")
    report = wait_for("the guest's report", lambda: (t := text()).count("VERIFY ") > before and
                      t.rsplit("VERIFY ", 1)[1].count("\n") and t, PATIENCE).rsplit("VERIFY ", 1)[1].split("\n")[0].strip()
    assert report.endswith("bad=0"), report


def caches(site):
    """What QEMU was told of its disks' caches."""
    [qemu] = wait_for("one QEMU", lambda: (q := site.qemus()) and len(q) == 1 and q, PATIENCE)
    with open(f"/proc/{qemu}/cmdline", encoding="utf8") as f:
        words = f.read()
    return (sorted(set(re.findall(r'"cache":(\{[^}]*\})', words))), sorted(set(re.findall(r'"write-cache":"(\w+)"', words))))


def check_cache(site):
    """522: a disk with write-back cache keeps that mode"""
    for mode, direct in (("writeback", "false"), ("none", "true")):
        with disk_guest(site, with_disks((claim("files"), {"cache": mode})), "LiveMigration"):
            before = caches(site)
            assert all(f'"direct":{direct}' in c for c in before[0]) and before[0] and before[1] == ["on"], before
            disk_move(site)
            assert caches(site) == before, (before, caches(site))


def check_block_claim(site):
    """543, 524: a shared block claim moves, as does a VM with eviction strategy LiveMigrateIfPossible"""
    spec = with_disks((claim("device"), {}), evictionStrategy="LiveMigrateIfPossible")
    with disk_guest(site, spec, "LiveMigration"):
        state = disk_move(site)
        addresses = [a["address"] for a in site.api.get("nodes", state["targetNode"])["status"]["addresses"]]
        check_dedicated_network(state, addresses)


def check_dedicated_network(state, addresses):
    """583: the address that a move comes in on is of the migration network, not the node's own"""
    assert state["targetNodeAddress"].startswith("10.78.") and state["targetNodeAddress"] not in addresses, (state, addresses)


def check_data_volume(site):
    """540, 615: a shared block DataVolume moves, also by post-copy"""
    policy(site, "disks", allowPostCopy=True, completionTimeoutPerGiB=1)
    spec = with_disks(({"dataVolume": {"name": "device"}}, {}))
    spec["domain"]["memory"]["guest"] = "128Mi"
    boot = spec["domain"]["firmware"]["kernelBoot"]
    with disk_guest(site, spec, "LiveMigration"):
        disk_move(site)
    boot["kernelArgs"] = boot["kernelArgs"].replace("ws=4 rate=4", "ws=64 rate=200")
    with disk_guest(site, spec, "LiveMigration"):
        shape(site, 100)
        assert disk_move(site)["mode"] == "PostCopy"
        shape(site, 2000)
    site.kubectl("delete", "migrationpolicy", "disks")


def check_cdrom(site):
    """525: a shared block disk and a read-only CD-ROM: nothing is copied, method LiveMigration"""
    cdrom = {"cdrom": {"bus": "sata", "readonly": True}}
    spec = with_disks((claim("device"), {}), (claim("files"), cdrom))
    del spec["domain"]["devices"]["disks"][1]["disk"]
    with disk_guest(site, spec, "LiveMigration"):
        disk_move(site)


def check_mixed(site):
    """542: a shared disk and one that is not: the latter is copied"""
    with disk_guest(site, with_disks(({"emptyDisk": {"capacity": "8Mi"}}, {}), (claim("device"), {})), "BlockMigration"):
        disk_move(site)


def check_cancel_with_block(site):
    """566: cancelled while it runs, with a shared block disk"""
    with disk_guest(site, with_disks((claim("device"), {})), "LiveMigration"):
        node = site.node_of("disks")
        shape(site, 10)
        name = migrate(site, "disks")
        wait_for("it to run", lambda: site.api.migration(name).get("status", {}).get("phase") == "Running", PATIENCE)
        site.ferry("cancel", name, "--wait", timeout=PATIENCE)
        shape(site, 2000)
        state = site.api.vmi("disks")["status"]["migrationState"]
        assert state["abortStatus"] == "Succeeded" and state["failed"] and site.node_of("disks") == node, state
        wait_for("one pod", lambda: len([p for p in site.api.list("pods") if p["status"].get("phase") == "Running"]) == 1,
                 PATIENCE)
        verify(site)


def check_alone(site):
    """564: a block claim for one writer: not migratable, and a move is refused"""
    site.api.create("virtualmachineinstances", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                                "metadata": {"name": "stuck"}, "spec": with_disks((claim("alone"), {}))})

    def verdict():
        return [c for c in site.api.vmi("stuck").get("status", {}).get("conditions", []) if c["type"] == "LiveMigratable"]
    [condition] = wait_for("the verdict", verdict, PATIENCE)
    assert condition["status"] == "False" and condition["reason"] == "DisksNotLiveMigratable", condition
    status, answer = site.api.call("POST", site.api.path("virtualmachineinstancemigrations"), {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"generateName": "no-"},
        "spec": {"vmiName": "stuck"}})
    assert status == 400 and "DisksNotLiveMigratable" in answer["message"], (status, answer)
    done = site.run("why", "stuck", "-o", "json")
    last = json.loads(done.stdout)["links"][-1]
    assert done.returncode == 4 and last["name"] == "migratable" and "ReadWriteMany" in last["text"], last
    site.ferry("vm", "delete", "stuck", "--wait", timeout=PATIENCE)


def run(site, *checks):
    for check in checks:
        check(site)
        print(f"ok     {check.__name__}", flush=True)


def test_paused(bin_dir):
    with Site(bin_dir) as site:
        run(site, check_paused, check_not_paused_while_moved)


def test_settings(bin_dir):
    with Site(bin_dir) as site:
        run(site, check_policy_names, check_added_selector, check_metrics, check_libvirt_killed, check_all_at_once,
            check_switchover_bandwidth, check_pause_by_site)


def test_network(bin_dir):
    with Site(bin_dir) as site:
        run(site, check_network_change)


def test_disks(bin_dir):
    with Site(bin_dir) as site, volumes(site):
        run(site, check_cache, check_block_claim, check_cdrom, check_mixed, check_cancel_with_block, check_alone,
            check_data_volume)


scenario.need_root()
scenario.main(globals())
