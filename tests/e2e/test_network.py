#!/usr/bin/env python3
"""The migration network: what docs/migration-network.md has works as it is written there; addresses are each node's own and
stay; without a network the node address serves; IPv6; an interface that was there is left alone."""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import scenario
from ferrysite import Site, namespace_names, wait_for

DOC = os.path.join(HERE, "../../docs/migration-network.md")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
NETWORKS = "/apis/k8s.cni.cncf.io/v1/namespaces/kubevirt/network-attachment-definitions"


def sh(*words):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout


def netns(site, node):
    return next(n for n in namespace_names(site.root) if n.endswith("-" + node))


def addresses(site, node, link="migration0"):
    """The global addresses of an interface in the node; None without the interface."""
    done = subprocess.run(["ip", "-n", netns(site, node), "-json", "addr", "show", "dev", link], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    return [a["local"] for a in json.loads(done.stdout)[0]["addr_info"] if a["scope"] == "global"]


def said(site, node, what="migration-address"):
    return site.api.get("nodes", node)["metadata"].get("annotations", {}).get("ferry.io/" + what)


def holders(site):
    """Node by address, as the API has it."""
    status, body = site.api.call("GET", LEASES + "?labelSelector=ferry.io/address")
    assert status == 200, body
    return {i["metadata"]["name"][len("ferry-address-"):]: i["spec"]["holderIdentity"] for i in body["items"]}


def set_network(site, name):
    status, body = site.api.call("PATCH", KUBEVIRT, {"spec": {"configuration": {"migrations": {"network": name}}}},
                                 "application/merge-patch+json")
    assert status == 200, body


def add_network(site, name, config):
    status, body = site.api.call("POST", NETWORKS, {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                                                    "metadata": {"name": name}, "spec": {"config": json.dumps(config)}})
    assert status == 201, body


def wait_address(site, node, fits):
    def look():
        address = said(site, node)
        return address if address and fits(address) else None
    return wait_for(f"the address of {node}", look, 120)


def moved(site, vm, fits):
    """Moves the VM; the address that it went to, which must fit."""
    site.ferry("migrate", vm, "--watch", timeout=240)
    state = site.api.vmi(vm)["status"]["migrationState"]
    assert fits(state["targetNodeAddress"]), state["targetNodeAddress"]
    return state["targetNodeAddress"]


def rename_to_eth1(site):
    """As on hosts with a second card: eth1, without an address."""
    for node in site.names:
        ns = netns(site, node)
        for words in ("link set migration0 down", "link set migration0 name eth1", "addr flush dev eth1", "link set eth1 up"):
            sh("ip", "-n", ns, *words.split())


def check_as_documented(site):
    rename_to_eth1(site)
    for node in site.names:
        wait_address(site, node, lambda a: a.startswith("10.77.0."))  # without one the node address serves
    moved(site, "vm", lambda a: a.startswith("10.77.0."))
    manifests = re.search(r"```yaml\n(.*?)```", open(DOC).read(), re.S)[1]
    done = site.kubectl("apply", "-f", "-", stdin=manifests, check=False)
    assert done.returncode == 0, done.stdout
    given = {wait_address(site, node, lambda a: a.startswith("10.1.1.")): node for node in site.names}
    assert len(given) == len(site.names), given
    assert holders(site) == given
    for address, node in given.items():
        assert addresses(site, node) == [address]
    moved(site, "vm", lambda a: a in given)
    return given


def check_kept(site, given):
    """Over a restart of the agent, and when the interface is lost, as after a restart of the host."""
    address, node = sorted(given.items())[0]
    sh("ip", "-n", netns(site, node), "link", "del", "migration0")
    old = site.kill(f"{node}-handler")
    site.wait_restarted(f"{node}-handler", old, 60)
    wait_for(f"{address} on {node} again", lambda: addresses(site, node) == [address], 60)
    assert holders(site) == given


def check_roles(site, given):
    """A node can neither free nor take over what another one has, nor take an address in its name."""
    (mine, node), (theirs, other) = sorted(given.items())[:2]
    config = os.path.join(site.root, node, "var/lib/ferry/node.kubeconfig")

    def kubectl(*args, stdin=None):
        return subprocess.run(["ip", "netns", "exec", netns(site, node), "kubectl", "--kubeconfig", config, "-n", "kube-system", *args],
                              text=True, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)

    def claim(address, holder):
        return kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": holder},
            "metadata": {"name": "ferry-address-" + address, "labels": {"ferry.io/address": ""}}}))

    for done in (kubectl("delete", "lease", "ferry-address-" + theirs),
                 kubectl("patch", "lease", "ferry-address-" + theirs, "--type=merge", "-p", json.dumps({"spec": {"holderIdentity": node}})),
                 kubectl("patch", "lease", "ferry-address-" + mine, "--type=merge", "-p", json.dumps({"spec": {"holderIdentity": other}})),
                 claim("10.1.1.77", other)):
        assert done.returncode != 0 and "orbidden" in done.stdout, done.stdout
    assert claim(theirs, node).returncode != 0
    assert holders(site) == given


def check_changed(site):
    """Another definition: the interface follows; IPv6; one that cannot be used is said, and nothing falls back."""
    add_network(site, "six", {"type": "macvlan", "master": "eth1", "ipam": {"type": "whereabouts", "range": "fd00:77::/64"}})
    set_network(site, "six")
    for node in site.names:
        wait_address(site, node, lambda a: a.startswith("fd00:77::"))
    wait_for("the old addresses to be free", lambda: all(a.startswith("fd00-77--") for a in holders(site)), 60)
    moved(site, "vm", lambda a: a.startswith("fd00:77::"))
    set_network(site, "nowhere")
    for node in site.names:
        wait_for(f"{node} to say what is wrong", lambda n=node: "no NetworkAttachmentDefinition kubevirt/nowhere" in
                 (said(site, n, "migration-network-trouble") or ""), 60)
    add_network(site, "nowhere", {"type": "bridge", "bridge": "br-moves",
                                  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.5.5.0/24", "rangeStart": "10.5.5.50"}]]}})
    for node in site.names:
        wait_address(site, node, lambda a: a.startswith("10.5.5.5"))
        wait_for(f"{node} to be well", lambda n=node: not said(site, n, "migration-network-trouble"), 60)


def check_removed(site):
    set_network(site, None)
    for node in site.names:
        wait_address(site, node, lambda a: a.startswith("10.77.0."))
        wait_for("the interface to go", lambda n=node: addresses(site, n) is None, 60)
    wait_for("the addresses to be free", lambda: not holders(site), 60)
    ns = netns(site, "node1")
    sh("ip", "-n", ns, "link", "add", "migration0", "type", "veth", "peer", "name", "far")
    sh("ip", "-n", ns, "addr", "add", "10.6.6.6/24", "dev", "migration0")
    sh("ip", "-n", ns, "link", "set", "migration0", "up")
    set_network(site, "migration-network")
    wait_address(site, "node2", lambda a: a.startswith("10.1.1."))
    wait_address(site, "node1", lambda a: a == "10.6.6.6")
    assert addresses(site, "node1") == ["10.6.6.6"]


def test_migration_network(bin_dir):
    with Site(bin_dir) as site:
        site.names = ["node1", "node2"]
        site.ferry("vm", "create", "vm", "--memory", "32Mi", "--wait")
        given = check_as_documented(site)
        check_kept(site, given)
        check_roles(site, given)
        check_changed(site)
        check_removed(site)


scenario.need_root()
scenario.main(globals())
