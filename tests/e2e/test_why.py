#!/usr/bin/env python3
"""Each link of the chain is broken on purpose, on real nodes, and `ferry why` names exactly it; mended, it does not."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, namespace_names, processes, wait_for

PATIENCE = 120  # seconds that a busy machine may take for what takes one


def why(site, what):
    """(exit code, the answer); the move must be there, but may be in any state."""
    done = site.run("why", what, "-o", "json")
    assert done.returncode in (0, 4), (done.returncode, done.stderr)
    return done.returncode, json.loads(done.stdout)


def named(site, what, link, *words, waits=False):
    """Waits until `why` names `link`, and nothing before it; its text has these words."""
    last = [None]

    def says():
        code, answer = why(site, what)
        last[0] = answer
        end = answer["links"][-1]
        return (end["name"] == link and code == (0 if waits else 4) and
                all(word in end["text"] for word in words) and answer)
    try:
        answer = wait_for(f"why to name {link}", says, PATIENCE, step=0.5)
    except AssertionError:
        raise AssertionError(f"why does not name {link} with {words}, but: {json.dumps(last[0], indent=1)}") from None
    assert all(l["state"] == "ok" for l in answer["links"][:-1]), answer
    assert waits or answer["links"][-1]["remedy"], f"no remedy: {answer['links'][-1]}"
    print(f"ok     {link}: {answer['links'][-1]['text']}", flush=True)


def request(site, vm="vm", **spec):
    """A move, asked for past all checks beforehand; its name."""
    return site.api.create("virtualmachineinstancemigrations",
                           {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                            "metadata": {"generateName": "why-"}, "spec": {"vmiName": vm, **spec}})["metadata"]["name"]


def end(site, name):
    """Cancels the move, whatever became of it, and waits until nothing of it is in the way of the next."""
    site.run("cancel", name)

    def over():
        m = site.api.migration(name)
        return m is None or m.get("status", {}).get("phase") in ("Succeeded", "Failed")
    wait_for(f"{name} to be over", over, PATIENCE)


def in_phase(site, name, *phases):
    return wait_for(f"{name} to be {phases}",
                    lambda: (site.api.migration(name) or {}).get("status", {}).get("phase") in phases, PATIENCE)


def other(node):
    return "node2" if node == "node1" else "node1"


def namespace(site, end_of_name):
    return next(n for n in namespace_names(site.root) if n.endswith(end_of_name))


def ip(site, node, *args):
    subprocess.run(["ip", "-n", namespace(site, f"-{node}"), *args], check=True)


@contextlib.contextmanager
def stopped(pid):
    """A program stands still, but is there."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


# ---- before a node is asked -------------------------------------------------------------------------------------


def check_queue(site):
    """No node takes it now, or ever; quota."""
    source = site.node_of("vm")
    site.kubectl("cordon", other(source))
    first = request(site)
    named(site, first, "target-pod", "no node for")
    end(site, first)
    site.kubectl("uncordon", other(source))

    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight"}, "spec": {"hard": {"pods": "1"}}}
    site.kubectl("create", "-f", "-", stdin=json.dumps(quota))
    name = request(site)
    named(site, name, "quota", "Quota")
    end(site, name)
    site.kubectl("delete", "resourcequota", "tight")

    never = request(site, addedNodeSelector={"disk": "there-is-none-such"})
    named(site, never, "target-pod")
    end(site, never)


def settings(site, migrations):
    """Settings of the site, in the KubeVirt object."""
    if site.kubectl("get", "namespace", "kubevirt", check=False).returncode != 0:
        site.kubectl("create", "namespace", "kubevirt")
    done = site.kubectl("apply", "-f", "-", check=False, stdin=json.dumps({
        "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
        "spec": {"configuration": {"migrations": migrations}}}))
    assert done.returncode == 0, done.stdout


def shape(site, mbit):
    for i in range(1, site.nodes + 1):
        subprocess.run(["tc", "-n", namespace(site, "-fabric"), "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate",
                        f"{mbit}mbit", "burst", "64k", "latency", "50ms"], check=True)


def check_vm(site):
    """A virtual machine that does not run yet, and one that cannot be moved."""
    done = site.run("vm", "create", "huge", "--memory", "512Gi", "--wait", "--timeout", "5")
    assert done.returncode == 1 and "huge waits: " in done.stderr and "waited too long" in done.stderr, (done.returncode, done.stderr)
    assert done.stderr.count("huge waits: ") == len(set(re.findall("huge waits: .*", done.stderr))), done.stderr
    named(site, "huge", "pod", "no node for", "Insufficient memory")
    site.ferry("vm", "delete", "huge", "--wait")


def check_limits(site):
    """Its place in the queue: the cluster takes one move at a time."""
    site.ferry("vm", "create", "second", "--memory", "64Mi", "--wait")
    wait_for("it to be movable", lambda: site.run("migrate", "second", "--dry-run").returncode == 0, PATIENCE)
    settings(site, {"parallelMigrationsPerCluster": 1})
    shape(site, 20)
    first = request(site)
    in_phase(site, first, "Running")
    second = request(site, "second")
    named(site, second, "limits", "ClusterLimit", "place 1 in the queue", waits=True)
    end(site, second)
    settings(site, {"parallelOutboundMigrationsPerNode": 1})
    if site.node_of("second") == site.node_of("vm"):
        second = request(site, "second")
        named(site, second, "limits", "OutboundLimit", waits=True)
        end(site, second)
    end(site, first)
    settings(site, {})
    shape(site, 2000)
    site.ferry("vm", "delete", "second", "--wait")


def check_policy(site):
    """A setting that no move can follow; mended, the move goes on."""
    settings(site, {"bandwidthPerMigration": "-5"})
    name = request(site)
    named(site, name, "policy", "PolicyInvalid", "bandwidthPerMigration")
    settings(site, {})
    wait_for("it to go on", lambda: (site.api.migration(name) or {}).get("status", {}).get("phase") == "Succeeded", PATIENCE)


def volume_guest(site, name):
    """A guest with a disk in a directory that both nodes see; the directory's name on each node."""
    directory = os.path.join(site.base, name)
    os.makedirs(directory)
    with open(os.path.join(directory, "disk.img"), "wb") as f:
        f.truncate(8 << 20)
    links = {}
    for node in ("node1", "node2"):
        os.makedirs(os.path.join(site.root, node, "data"), exist_ok=True)
        links[node] = os.path.join(site.root, node, "data", name)
        os.symlink(directory, links[node])
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": "by-hand"}
    site.api.create("persistentvolumes", {"metadata": {"name": name}, "spec": {
        **shared, "hostPath": {"path": f"/data/{name}"}, "capacity": {"storage": "8Mi"}, "claimRef": {"namespace": "default", "name": name}}})
    site.api.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
        **shared, "volumeName": name, "resources": {"requests": {"storage": "8Mi"}}}})
    site.api.create("virtualmachineinstances", {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 0, "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": name}}],
                 "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "d", "disk": {"bus": "virtio"}}]},
                            "firmware": {"kernelBoot": {"kernelArgs": "ws=4 rate=1", "container": {
                                "image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}}}}})
    wait_for("it to be movable", lambda: site.run("migrate", name, "--dry-run").returncode == 0, PATIENCE)
    return links


def check_volumes(site):
    """The claim of a disk is gone."""
    volume_guest(site, "volume")
    site.kubectl("delete", "pvc", "volume", "--wait=false")
    wait_for("the claim to go", lambda: not site.api.get("persistentvolumeclaims", "volume"), PATIENCE)
    name = request(site, "volume")
    named(site, name, "volumes", "VolumeNotReady", "volume")
    end(site, name)
    site.ferry("vm", "delete", "volume", "--wait")


def check_unseen_volume(site):
    """The target node does not see the directory of a disk; when it does, the move goes on."""
    links = volume_guest(site, "unseen")
    target = links[other(site.node_of("unseen"))]
    directory = os.readlink(target)
    os.unlink(target)
    name = request(site, "unseen")
    named(site, name, "target-pod", "/data/unseen")
    os.symlink(directory, target)
    wait_for("it to go on", lambda: (site.api.migration(name) or {}).get("status", {}).get("phase") == "Succeeded", PATIENCE)
    site.ferry("vm", "delete", "unseen", "--wait")


def check_controller(site):
    """The controller holds its lease and does nothing: before the target pod, and when it runs."""
    target = other(site.node_of("vm"))
    with stopped(site.pid("controller")):
        name = request(site)
        named(site, name, "admitted", "has not looked at it")
    in_phase(site, name, "Succeeded")
    target = other(target)
    with stopped(site.pid(f"{target}-pods")):
        name = request(site)
        in_phase(site, name, "Scheduling")
        wait_for("its pod to be placed", lambda: [p for p in site.api.list("pods") if p["spec"].get("nodeName") == target], PATIENCE)
        controller = stopped(site.pid("controller"))
        controller.__enter__()
    try:
        wait_for("its pod to run", lambda: [p for p in site.api.list("pods") if p["spec"].get("nodeName") == target and
                                            p.get("status", {}).get("phase") == "Running"], PATIENCE)
        named(site, name, "hand-over", "was not handed over")
    finally:
        controller.__exit__(None, None, None)
    in_phase(site, name, "Succeeded")


def check_turn(site):
    """An earlier move was given up, and its target has not let go of it: the next waits for its turn."""
    with Held(site) as move:
        with stopped(site.pid(f"{move.target}-handler")):
            end(site, move.name)
            status, answer = site.api.call("GET", site.api.path("virtualmachineinstances", "vm"))
            assert status == 200, answer
            name = request(site)
            named(site, name, "turn", "SourceBusy", waits=True)
            end(site, name)


def check_agents(site):
    """Relays and handlers that stand still."""
    source = site.node_of("vm")
    target = other(source)
    with stopped(site.pid(f"{target}-relay")):
        name = request(site)
        named(site, name, "target-prepared", "relay")
    end(site, name)
    with stopped(site.pid(f"{source}-relay")):
        name = request(site)
        in_phase(site, name, "TargetReady")
        named(site, name, "sockets", source)
    end(site, name)


# ---- a move that is held at its beginning -------------------------------------------------------------------------


def libvirt_of(site, node):
    """Pid of the libvirt daemon in the node's pod."""
    found = [pid for pid, command in processes() if re.match(r"\S*(libvirtd|virtqemud)", command) and site.owns(pid, node)]
    return found[0] if len(found) == 1 else None


class Held:
    """A move whose target's libvirt stands still when the source calls: all is prepared, and nothing flows. `blind`: the source's
    libvirt stands still from then on, too, and does not notice that its connection is gone, which would be the end of the move."""

    def __init__(self, site, vm="vm", channels=2, blind=False):
        self.site, self.vm, self.channels, self.blind = site, vm, channels, blind
        self.source = site.node_of(vm)
        self.target = other(self.source)
        self.uid = site.api.vmi(vm)["metadata"]["uid"]

    def __enter__(self):
        with stopped(self.site.pid(f"{self.source}-relay")):  # so that the source waits until all is ready
            self.name = request(self.site, self.vm)
            in_phase(self.site, self.name, "TargetReady")
            self.stop = contextlib.ExitStack()
            self.stop.enter_context(stopped(wait_for("the target's libvirt", lambda: libvirt_of(self.site, self.target), PATIENCE)))
        wait_for("the source's sockets", lambda: len(self.sockets()) >= self.channels, PATIENCE)
        in_phase(self.site, self.name, "Running")
        if self.blind:
            self.stop.enter_context(stopped(libvirt_of(self.site, self.source)))
        return self

    def __exit__(self, *ignored):
        self.stop.close()
        end(self.site, self.name)

    def sockets(self):
        return [os.path.join(d, "m", f) for d in self.site.pod_dirs(self.source)
                for f in os.listdir(os.path.join(d, "m")) if f.endswith("-source.sock")]

    def names(self, link, *words):
        named(self.site, self.name, link, *words)

    def mended(self):
        """Nothing is wrong between the nodes; only that no figures come."""
        def fine():
            return why(self.site, self.name)[1]["links"][-1]["name"] == "transfer"
        wait_for("why to find all well again", fine, PATIENCE, step=0.5)


def check_network(site):
    with Held(site) as move:
        move.mended()
        ip(site, move.target, "link", "set", "migration0", "down")
        move.names("reach", move.source, "channel")
        ip(site, move.target, "link", "set", "migration0", "up")
        move.mended()

        # A bridge port with a smaller MTU than the interfaces: long packets vanish without a word.
        port = "m" + move.target[-1]
        mtu = ["ip", "-n", namespace(site, "-fabric"), "link", "set", port, "mtu"]
        subprocess.run([*mtu, "576"], check=True)
        move.names("mtu", "full size")
        subprocess.run([*mtu, "1500"], check=True)
        move.mended()

    with Held(site) as move:
        shown = subprocess.run(["ip", "-n", namespace(site, f"-{move.target}"), "-4", "-o", "address", "show", "dev",
                                "migration0"], capture_output=True, text=True, check=True).stdout
        address = re.search(r"inet (\S+)", shown)[1]
        ip(site, move.target, "address", "del", address, "dev", "migration0")
        move.names("network", move.target, "migration0")
        ip(site, move.target, "address", "add", address, "dev", "migration0")
        move.mended()


def check_sockets(site):
    with Held(site) as move:
        os.unlink(next(s for s in move.sockets() if "-49152-" in s))
        move.names("sockets", "memory channel", "missing")


def check_disk_channel(site):
    """A guest whose disk is copied has a channel more, which can be broken like the others."""
    site.api.create("virtualmachineinstances", {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "copied"},
        "spec": {"terminationGracePeriodSeconds": 0, "volumes": [{"name": "d", "emptyDisk": {"capacity": "8Mi"}}],
                 "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "d", "disk": {"bus": "virtio"}}]},
                            "firmware": {"kernelBoot": {"kernelArgs": "ws=4 rate=1", "container": {
                                "image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}}}}})
    wait_for("it to be movable", lambda: site.run("migrate", "copied", "--dry-run").returncode == 0, PATIENCE)
    with Held(site, "copied", 3) as move:
        move.mended()
        os.unlink(next(s for s in move.sockets() if "-49153-" in s))
        move.names("sockets", "disk channel", "missing")
    site.ferry("vm", "delete", "copied", "--wait")


def sign(site, node, names, days, ca=None):
    """A relay certificate of the site's CA with that name and life, in place of the node's own; (path, the former one)."""
    pki = os.path.join(site.root, node, "var/lib/ferry/pki")
    ca = ca or os.path.join(site.root, "api/var/lib/ferry/ca")
    crt = os.path.join(pki, "relay.crt")
    csr, extensions = os.path.join(site.base, "csr"), os.path.join(site.base, "extensions")
    with open(crt) as f:
        former = f.read()
    with open(extensions, "w") as f:
        f.write(f"subjectAltName=URI:ferry://node/{names}\nextendedKeyUsage=serverAuth,clientAuth\n")
    for args in (("req", "-new", "-key", os.path.join(pki, "relay.key"), "-subj", f"/CN={names}", "-out", csr),
                 ("x509", "-req", "-in", csr, "-CA", os.path.join(ca, "ca.crt"), "-CAkey", os.path.join(ca, "ca.key"),
                  "-CAcreateserial", "-CAserial", os.path.join(site.base, "serial"), "-days", str(days), "-extfile",
                  extensions, "-out", crt + ".new")):
        done = subprocess.run(["openssl", *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    os.chmod(crt + ".new", os.stat(crt).st_mode & 0o777)
    os.chown(crt + ".new", os.stat(crt).st_uid, os.stat(crt).st_gid)
    os.rename(crt + ".new", crt)
    return crt, former


def restore(crt, former):
    with open(crt, "w") as f:
        f.write(former)


def check_certificates(site):
    with Held(site) as move:
        crt, former = sign(site, move.target, "node7", 30)
        move.names("certificates", move.target, "node7")
        restore(crt, former)
        move.mended()
        crt, former = sign(site, move.source, move.source, -1)
        move.names("certificates", move.source, "expired")
        restore(crt, former)
        move.mended()


def relay_call(site, node, method, path, body=None):
    """A call to a relay's control socket, as its handler makes it."""
    done = subprocess.run(["curl", "-sS", "-X", method, "--unix-socket", os.path.join(site.root, node, "run/ferry/relay.sock"),
                           *(["-d", json.dumps(body)] if body else []), f"http://relay{path}"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout or "{}")


def check_listeners(site):
    """The target's relay stands still when all was prepared; then it has forgotten the move."""
    with Held(site) as move:
        with stopped(site.pid(f"{move.target}-relay")):
            move.names("listeners", move.target, "relay")
        move.mended()
    with Held(site, blind=True) as move:
        relay_call(site, move.target, "DELETE", f"/v1/targets/{move.uid}")
        move.names("listeners", move.target)


def check_port_map(site):
    """The ports in the VM's status are not those that the relays have; then one is missing."""
    with Held(site, blind=True) as move:
        ports = site.api.vmi("vm")["status"]["migrationState"]["targetDirectMigrationNodePorts"]
        control, memory = (next(p for p, channel in ports.items() if channel == c) for c in (0, 49152))
        write_ports(site, {control: None, memory: None, str(int(control) + 1): 0, str(int(memory) - 1): 49152})
        move.names("port-map", move.target)
    with Held(site, blind=True) as move:
        ports = site.api.vmi("vm")["status"]["migrationState"]["targetDirectMigrationNodePorts"]
        write_ports(site, {next(p for p, channel in ports.items() if channel == 49152): None})
        move.names("ports", "memory channel")


def write_ports(site, ports):
    status, answer = site.api.call("PATCH", site.api.path("virtualmachineinstances", "vm"), {"status": {"migrationState": {
        "targetDirectMigrationNodePorts": ports}}}, "application/merge-patch+json")
    assert status == 200, answer


def check_handshake(site):
    """The target shows a certificate of another CA, with the right name and dates."""
    with Held(site) as move:
        other_ca = os.path.join(site.base, "other-ca")
        os.makedirs(other_ca, exist_ok=True)
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9",
                               "-subj", "/CN=another", "-keyout", os.path.join(other_ca, "ca.key"), "-out",
                               os.path.join(other_ca, "ca.crt")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        crt, former = sign(site, move.target, move.target, 30, other_ca)
        move.names("tls", move.source)
        restore(crt, former)
        move.mended()


def check_begin(site):
    """The source's libvirt stands still: all is prepared, and it does not begin."""
    with stopped(libvirt_of(site, site.node_of("vm"))):
        name = request(site)
        in_phase(site, name, "TargetReady")
        named(site, name, "connected", "the source node", "beg")
    end(site, name)


def check_transfer(site):
    """A transfer that is stuck, and one that does not converge: which of the two, with figures."""
    source = site.node_of("vm")
    shape(site, 20)
    name = request(site)
    in_phase(site, name, "Running")
    wait_for("figures", lambda: "remaining" in site.ferry("watch", "--once").stdout, PATIENCE)
    qemu = next(p for p in site.qemus() if site.owns(p, source))
    with stopped(qemu):
        named(site, name, "transfer", "remaining")
    named(site, name, "end", "nothing is in the way", waits=True)
    end(site, name)
    site.ferry("vm", "create", "writer", "--memory", "96Mi", "--dirty-rate", "150", "--working-set", "48", "--wait")
    wait_for("it to be movable", lambda: site.run("migrate", "writer", "--dry-run").returncode == 0, PATIENCE)
    shape(site, 80)  # a guest that gets little of a busy machine still dirties more
    name = request(site, "writer")
    named(site, name, "transfer", "not converging", "/s sent", "rewritten")
    end(site, name)


def check_post_copy(site):
    """In post-copy the way between the nodes is cut: the guest waits for what is on the other side."""
    site.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy", "metadata": {"name": "post"},
        "spec": {"selectors": {"namespaceSelector": {}, "virtualMachineInstanceSelector": {"way": "post"}}, "allowPostCopy": True,
                 "completionTimeoutPerGiB": 10}}))
    site.kubectl("label", "vmi", "writer", "way=post")
    source = site.node_of("writer")
    shape(site, 60)
    name = request(site, "writer")
    wait_for("post-copy", lambda: (site.api.vmi("writer")["status"].get("migrationState") or {}).get("mode") == "PostCopy", PATIENCE)
    ip(site, other(source), "link", "set", "migration0", "down")
    try:
        named(site, name, "post-copy", "the guest waits on", "still on")
    finally:
        ip(site, other(source), "link", "set", "migration0", "up")
    shape(site, 2000)
    in_phase(site, name, "Succeeded")
    named(site, name, "end", "has moved", waits=True)
    site.kubectl("delete", "migrationpolicy", "post")
    site.ferry("vm", "delete", "writer", "--wait")


def check_cancel(site):
    """A cancel that has not come through: the source's launcher stands still."""
    shape(site, 20)
    source = site.node_of("vm")
    name = request(site)
    in_phase(site, name, "Running")
    launcher = next(pid for pid, command in processes() if re.match(r"\S*ferry-launcher ", command) and site.owns(pid, source))
    with stopped(launcher):
        site.ferry("cancel", name)
        named(site, name, "cancel", "being cancelled", waits=True)
    wait_for("it to be over", lambda: site.api.migration(name) is None, PATIENCE)
    shape(site, 2000)


def check_running(site):
    """The way is cut while memory flows."""
    source = site.node_of("vm")
    shape(site, 20)
    name = request(site)
    in_phase(site, name, "Running")
    named(site, name, "end", "nothing is in the way", waits=True)
    ip(site, other(source), "link", "set", "migration0", "down")
    named(site, name, "reach", source)
    ip(site, other(source), "link", "set", "migration0", "up")
    named(site, name, "end", "nothing is in the way", waits=True)
    end(site, name)


def check_path(site):
    """The target node is removed from the site while memory flows. It would have to join again: the last of these checks."""
    source = site.node_of("vm")
    target = other(source)
    shape(site, 20)
    name = request(site)
    in_phase(site, name, "Running")
    with stopped(site.pid(f"{target}-handler")):  # it would say at once that it is there
        site.kubectl("delete", "node", target, "--wait=false")
        named(site, name, "path", "TargetLost", target, "was removed")
    assert site.node_of("vm") == source


def run(bin_dir, *checks):
    with Site(bin_dir) as site:
        site.ferry("vm", "create", "vm", "--memory", "96Mi", "--dirty-rate", "1", "--working-set", "16", "--wait")
        wait_for("the VM to be known as migratable",
                 lambda: site.run("migrate", "vm", "--dry-run").returncode == 0, PATIENCE)
        for check in checks:
            check(site)
            print(f"ok     {check.__name__}", flush=True)


def test_queue(bin_dir):
    run(bin_dir, check_vm, check_queue, check_limits, check_policy, check_volumes, check_unseen_volume, check_controller, check_turn)


def test_nodes(bin_dir):
    run(bin_dir, check_agents, check_network, check_sockets, check_disk_channel, check_listeners, check_port_map, check_certificates, check_handshake,
        check_begin)


def test_transfer(bin_dir):
    run(bin_dir, check_running, check_cancel, check_transfer, check_post_copy, check_path)


scenario.need_root()
scenario.main(globals())
