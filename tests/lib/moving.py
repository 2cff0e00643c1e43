"""Moves of test guests on a site of two nodes: guests that are listened to, policies and settings, the links' rate.
Numbers of cases are items of docs/conformance.md."""
import json
import os
import subprocess

from ferrysite import namespace_names, wait_for

PATIENCE = 240  # seconds that a busy machine may take for what takes a few
MIB = 1 << 20


def other(node):
    return "node2" if node == "node1" else "node1"


def shape(site, mbit):
    fabric = next(n for n in namespace_names(site.root) if n.endswith("-fabric"))
    for i in range(1, site.nodes + 1):
        subprocess.run(["tc", "-n", fabric, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", f"{mbit}mbit",
                        "burst", "256k", "latency", "50ms"], check=True)


def machine(memory, dirty_rate, working_set, more="", **spec):
    """spec of a VMI with the test guest; `more`: further words to it."""
    args = f"ws={working_set} rate={dirty_rate} hb=20 fill=rand cover=all{more}"
    return {"terminationGracePeriodSeconds": 5, "domain": {
        "memory": {"guest": f"{memory}Mi"}, "devices": {},
        "firmware": {"kernelBoot": {"kernelArgs": args, "container": {
            "image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}}}, **spec}


def create(site, name, memory, dirty_rate, working_set, spec=None, **annotations):
    """A running test guest of which the policies know the name by a label."""
    site.api.create("virtualmachineinstances", {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "labels": {"way": name},
                     "annotations": {k.replace("_", "-").replace("ferry-", "ferry.io/"): v
                                     for k, v in annotations.items()}},
        "spec": machine(memory, dirty_rate, working_set, **(spec or {}))})
    movable(site, name)


def movable(site, name):
    wait_for(f"{name} to be movable", lambda: site.run("migrate", name, "--dry-run").returncode == 0, PATIENCE)


def policy(site, name, **spec):
    site.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy", "metadata": {"name": name},
        "spec": {"selectors": {"virtualMachineInstanceSelector": {"way": name}}, **spec}}))


def settings(site, migrations, **configuration):
    """Settings of the site, in the KubeVirt object; what kubectl said."""
    if site.kubectl("get", "namespace", "kubevirt", check=False).returncode != 0:
        site.kubectl("create", "namespace", "kubevirt")
    done = site.kubectl("apply", "-f", "-", check=False, stdin=json.dumps({
        "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {
            "name": "kubevirt", "namespace": "kubevirt", "annotations": {"ferry.io/parallelInboundMigrationsPerNode": "3"}},
        "spec": {"configuration": {"migrations": migrations, **configuration}}}))
    assert done.returncode == 0, done.stdout
    return done.stdout


def migrate(site, vm):
    return site.ferry("migrate", vm, "-o", "name").stdout.strip().rpartition("/")[2]


def ended(site, name, phase="Succeeded"):
    """Waits for the end; the move's status."""
    def over():
        m = site.api.migration(name)
        return m and m.get("status", {}).get("phase") in ("Succeeded", "Failed") and m
    m = wait_for(f"{name} to end", over, PATIENCE)
    assert m["status"]["phase"] == phase, m["status"]
    return m["status"]


def record(site, name):
    """The flight record of a move, as `ferry show` tells it."""
    return site.ferry("show", name).stdout


class Guest:
    """A guest that is listened to; `whole` says that it is all there."""

    def __init__(self, site, name, *shape_of, **annotations):
        self.site, self.name = site, name
        self.monitor = site.monitor(fresh=True)
        create(site, name, *shape_of, **annotations)
        self.monitor.wait_beats(5, PATIENCE)
        self.mark = self.monitor.mark()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.monitor.stop()
        self.site.ferry("vm", "delete", self.name, "--wait", timeout=PATIENCE)

    def move(self):
        """516, 584: a success says start, end, nodes, address, uid and configuration; (its name, its state)"""
        source = self.site.node_of(self.name)
        name = migrate(self.site, self.name)
        state = ended(self.site, name)["migrationState"]
        wait_for("the VM to be on the other node", lambda: self.site.node_of(self.name) == other(source), PATIENCE)
        for field in ("startTimestamp", "endTimestamp", "targetNodeDomainReadyTimestamp", "targetNodeAddress",
                      "migrationConfiguration"):
            assert state.get(field), f"{field} is not in {state}"
        assert state["sourceNode"] == source and state["targetNode"] == other(source), state
        assert state["completed"] and not state.get("failed"), state
        assert state["migrationUid"] == self.site.api.migration(name)["metadata"]["uid"], state
        self.whole()
        return name, state

    def whole(self):
        self.monitor.wait_beats(10, PATIENCE)
        assert not self.monitor.broken_sequence(self.mark), self.monitor.broken_sequence(self.mark)[:3]
        pages, bad = self.monitor.verify(PATIENCE)
        assert pages > 0 and bad == 0 and self.monitor.bad_pages() == 0, (pages, bad)


def relay(site, node, path):
    done = subprocess.run(["curl", "-sS", "--unix-socket", os.path.join(site.root, node, "run/ferry/relay.sock"),
                           f"http://relay{path}"], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)
