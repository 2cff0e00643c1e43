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


class Held:
    """A move whose target's libvirt stands still when the source calls: all is prepared, and nothing flows."""

    def __init__(self, site):
        self.site = site
        self.source = site.node_of("vm")
        self.target = other(self.source)
        self.uid = site.api.vmi("vm")["metadata"]["uid"]

    def __enter__(self):
        with stopped(self.site.pid(f"{self.source}-relay")):  # so that the source waits until all is ready
            self.name = request(self.site)
            in_phase(self.site, self.name, "TargetReady")
            self.stop = stopped(wait_for("the target's libvirt", self.libvirt, PATIENCE))
            self.stop.__enter__()
        wait_for("the source's sockets", lambda: len(self.sockets()) >= 2, PATIENCE)
        in_phase(self.site, self.name, "Running")
        return self

    def __exit__(self, *ignored):
        self.stop.__exit__(None, None, None)
        end(self.site, self.name)

    def libvirt(self):
        """Pid of the libvirt daemon in the target's pod."""
        found = [pid for pid, command in processes()
                 if re.match(r"\S*(libvirtd|virtqemud)", command) and self.site.owns(pid, self.target)]
        return found[0] if len(found) == 1 else None

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


def sign(site, node, names, days):
    """A relay certificate of the site's CA with that name and life, in place of the node's own; (path, the former one)."""
    pki = os.path.join(site.root, node, "var/lib/ferry/pki")
    ca = os.path.join(site.root, "api/var/lib/ferry/ca")
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


def check_running(site):
    """The way is cut while memory flows."""
    source = site.node_of("vm")
    fabric = namespace(site, "-fabric")
    for i in range(1, site.nodes + 1):
        subprocess.run(["tc", "-n", fabric, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", "20mbit",
                        "burst", "64k", "latency", "50ms"], check=True)
    name = request(site)
    in_phase(site, name, "Running")
    named(site, name, "end", "nothing is in the way", waits=True)
    ip(site, other(source), "link", "set", "migration0", "down")
    named(site, name, "reach", source)
    ip(site, other(source), "link", "set", "migration0", "up")
    named(site, name, "end", "nothing is in the way", waits=True)
    end(site, name)


def test_why(bin_dir):
    with Site(bin_dir) as site:
        site.ferry("vm", "create", "vm", "--memory", "96Mi", "--dirty-rate", "1", "--working-set", "16", "--wait")
        wait_for("the VM to be known as migratable",
                 lambda: site.run("migrate", "vm", "--dry-run").returncode == 0, PATIENCE)
        for check in (check_queue, check_agents, check_network, check_sockets, check_certificates,
                      check_running):
            check(site)
            print(f"ok     {check.__name__}", flush=True)


scenario.need_root()
scenario.main(globals())
