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
    # Other addresses of the same network: the kernel takes the new ones away with the old, and they come back.
    add_network(site, "near", {"type": "macvlan", "master": "eth1", "ipam": {"type": "whereabouts", "range": "10.1.1.0/24"}})
    set_network(site, "near")
    for node in site.names:
        wait_address(site, node, lambda a: a.startswith("10.1.1."))
    status, body = site.api.call("PATCH", NETWORKS + "/near", {"spec": {"config": json.dumps(
        {"type": "macvlan", "master": "eth1", "ipam": {"type": "whereabouts", "range": "10.1.1.0/24", "range_start": "10.1.1.100"}})}},
        "application/merge-patch+json")
    assert status == 200, body
    for node in site.names:
        address = wait_address(site, node, lambda a: a.startswith("10.1.1.10"))
        assert addresses(site, node) == [address], addresses(site, node)
    set_network(site, "nowhere")
    for node in site.names:
        wait_for(f"{node} to say what is wrong", lambda n=node: "no NetworkAttachmentDefinition kubevirt/nowhere" in
                 (said(site, n, "migration-network-trouble") or ""), 60)
    add_network(site, "nowhere", {"type": "bridge", "bridge": "br-moves",
                                  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.5.5.0/24", "rangeStart": "10.5.5.50"}]]}})
    for node in site.names:
        wait_address(site, node, lambda a: a.startswith("10.5.5.5"))
        wait_for(f"{node} to be well", lambda n=node: not said(site, n, "migration-network-trouble"), 60)


def check_static(site):
    """Of fixed addresses each node gets one of each family; with one too few, one node says so, and nobody has another's."""
    fixed = [{"address": f"10.8.8.{i + 1}/24"} for i in range(len(site.names))] + \
            [{"address": f"fd00:88::{i + 1}/64"} for i in range(len(site.names))]
    add_network(site, "fixed", {"type": "macvlan", "master": "eth1", "ipam": {"type": "static", "addresses": fixed}})
    set_network(site, "fixed")
    given = {wait_address(site, node, lambda a: a.startswith("10.8.8.")): node for node in site.names}
    assert len(given) == len(site.names), given
    six = [a for node in site.names for a in addresses(site, node) if a.startswith("fd00:88::")]
    assert len(set(six)) == len(site.names), six
    moved(site, "vm", lambda a: a in given)
    few = [{"address": f"10.9.9.{i + 1}/24"} for i in range(len(site.names) - 1)]
    add_network(site, "few", {"type": "macvlan", "master": "eth1", "ipam": {"type": "static", "addresses": few}})
    set_network(site, "few")

    def settled():
        without = [n for n in site.names if said(site, n, "migration-network-trouble")]
        have = [said(site, n) for n in site.names if n not in without]
        return len(without) == 1 and all(a and a.startswith("10.9.9.") for a in have) and (without[0], have)
    without, have = wait_for("all addresses to be taken", settled, 60)
    assert len(set(have)) == len(few), have
    wait_for("it to say why", lambda: "is free" in (said(site, without, "migration-network-trouble") or ""), 60)


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
    # Its owner gives it another address: that is followed, and nothing is done to it.
    sh("ip", "-n", ns, "addr", "del", "10.6.6.6/24", "dev", "migration0")
    sh("ip", "-n", ns, "addr", "add", "10.6.6.7/24", "dev", "migration0")
    wait_address(site, "node1", lambda a: a == "10.6.6.7")
    assert addresses(site, "node1") == ["10.6.6.7"]


def check_of_a_kubelet(site):
    """A node that a kubelet registered, as on Kubernetes: there Multus makes the interface. Until it does, the node says that it is
    missing; nothing is made, and when it is there it is used."""
    node = site.names[-1]
    set_network(site, None)
    wait_for("the interface to go", lambda: addresses(site, node) is None, 60)
    status, body = site.api.call("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"nodeInfo": {"kubeletVersion": "v1.33.0"}}},
                                 "application/merge-patch+json")
    assert status == 200, body
    set_network(site, "migration-network")
    wait_for("it to say what is missing", lambda: "no interface migration0" in (said(site, node, "migration-network-trouble") or ""), 60)
    assert addresses(site, node) is None
    wait_for("its old address not to be said any more", lambda: not said(site, node), 60)
    for words in ("link add link eth1 name migration0 type macvlan mode bridge", "addr add 10.1.1.200/24 dev migration0",
                  "link set migration0 up"):
        sh("ip", "-n", netns(site, node), *words.split())
    wait_address(site, node, lambda a: a == "10.1.1.200")
    wait_for("it to be well", lambda: not said(site, node, "migration-network-trouble"), 60)
    assert site.api.get("nodes", node)["status"]["nodeInfo"]["kubeletVersion"] == "v1.33.0"


def test_migration_network(bin_dir):
    with Site(bin_dir, nodes=3) as site:
        site.names = ["node1", "node2", "node3"]
        site.ferry("vm", "create", "vm", "--memory", "32Mi", "--wait")
        given = check_as_documented(site)
        check_kept(site, given)
        check_roles(site, given)
        check_changed(site)
        check_static(site)
        check_removed(site)
        check_of_a_kubelet(site)


scenario.need_root()
scenario.main(globals())
