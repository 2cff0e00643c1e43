"""A network for guests of a site: a switch in the fabric, and on each node the bridge br-guests with an uplink."""
import json
import subprocess

from ferrysite import namespace_names

NETWORKS = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
GATEWAY, FIRST = "10.90.0.1", 50


def ip(ns, *words):
    subprocess.run(["ip", "-n", ns, *words], check=True)


def address(number=0):
    """What the guest that asked as number `number` gets."""
    return f"10.90.0.{FIRST + number}"


def connect(site):
    """Lays the cables; the name of the namespace that reaches all guests."""
    fabric = next(n for n in namespace_names(site.root) if n.endswith("-fabric"))
    ip(fabric, "link", "add", "guests", "type", "bridge")
    ip(fabric, "addr", "add", f"{GATEWAY}/24", "dev", "guests")
    ip(fabric, "link", "set", "guests", "up")
    for i in range(1, site.nodes + 1):
        node = next(n for n in namespace_names(site.root) if n.endswith(f"-node{i}"))
        ip(fabric, "link", "add", f"g{i}", "type", "veth", "peer", "name", "eth2", "netns", node)
        ip(fabric, "link", "set", f"g{i}", "master", "guests", "up")
        ip(node, "link", "add", "br-guests", "type", "bridge")
        ip(node, "link", "set", "eth2", "master", "br-guests", "up")
        ip(node, "link", "set", "br-guests", "up")
    return fabric


def describe(site):
    """Makes the NetworkAttachmentDefinition `guests`, with addresses."""
    config = {"type": "bridge", "bridge": "br-guests", "ipam": {
        "type": "whereabouts", "range": "10.90.0.0/24", "range_start": address(), "gateway": GATEWAY}}
    status, body = site.api.call("POST", NETWORKS, {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                                                    "metadata": {"name": "guests"}, "spec": {"config": json.dumps(config)}})
    assert status == 201, body
