#!/usr/bin/env python3
"""Guests on a network: each gets an address of its own, which the VMI says; it answers there before a move and after it, at
once, whichever node it is on. Three nodes, joined by a bridge of the hosts' that ferry-pods attaches guests to."""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import guestnet
import scenario
from ferrysite import Site, wait_for

NODES = 3
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVERY = 0.005
PROMISED_MS = 100  # beyond the reported downtime
# QEMU announces five times by itself, in the course of a second; then it is asked for five more.
ANNOUNCEMENTS = 6


def machine(address, network="guests"):
    boot = {"kernelArgs": f"ws=4 rate=1 net={address}", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"domain": {"memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": boot},
                       "devices": {"interfaces": [{"name": "lan", "bridge": {}}]}},
            "networks": [{"name": "lan", "multus": {"networkName": network}}], "terminationGracePeriodSeconds": 0}


def interface(site, name):
    """The VMI's word about its interface, once it runs."""
    vmi = site.api.vmi(name) or {}
    found = vmi.get("status", {}).get("interfaces", [])
    return found[0] if vmi.get("status", {}).get("phase") == "Running" and found else None


def claims(site):
    status, body = site.api.call("GET", LEASES + "?labelSelector=ferry.io/address")
    assert status == 200, body
    return {i["spec"]["holderIdentity"] for i in body["items"]}


class Pings:
    """Pings from the fabric while the block runs, of one process: what holds that up holds all of its addresses up."""

    def __init__(self, fabric, *addresses):
        self.command = ["ip", "netns", "exec", fabric, sys.executable, os.path.join(HERE, "../lib/pinger.py"), ",".join(addresses),
                        str(EVERY)]
        self.answered, self.announced = {}, {}

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *failed):
        said = json.loads(self.process.communicate()[0] or "{}")
        self.answered, self.announced = said.get("answered", {}), said.get("announced", {})

    def silence(self, address, when):
        """(milliseconds from the last answer before that moment to the first after it, from when the one was asked for to when
        the other was): the guest's first packet out, and the first that came in to it, after it stood still."""
        answers = self.answered[address]
        before, after = [a for a in answers if a[1] <= when], [a for a in answers if a[1] > when]
        assert before and after, f"{address}: {len(before)} answers before, {len(after)} after the switch-over"
        return (after[0][1] - before[-1][1]) * 1000, (after[0][0] - before[-1][0]) * 1000

    def longest(self, address):
        """Milliseconds of its longest silence, from answer to answer."""
        answers = self.answered[address]
        return max((b[1] - a[1]) * 1000 for a, b in zip(answers, answers[1:]))


def ping_once(fabric, address):
    """Whether it answers within some seconds."""
    done = subprocess.run(Pings(fabric, address).command + ["5"], stdout=subprocess.PIPE, text=True, timeout=60)
    return any(json.loads(done.stdout)["answered"].values()) if done.stdout else False


def check_move(site, fabric, name, address, witness):
    """First packet out and in after the switch-over. A guest that stays where it is tells what a busy machine adds: with
    FERRY_STRICT=1, on a quiet one, nothing is added."""
    before = site.node_of(name)
    mac = interface(site, name)["mac"]
    with Pings(fabric, address, witness) as pings:
        for each in (address, witness):
            wait_for(f"{each} to be pinged", lambda a=each: ping_once(fabric, a), 60)
        site.ferry("migrate", name, "--watch", timeout=240)
        wait_for("the guest to answer on the other node", lambda: ping_once(fabric, address), 60)
        time.sleep(2)  # the rounds of announcements
    after = site.node_of(name)
    assert after != before, after
    progress = json.loads(site.api.vmi(name)["metadata"]["annotations"]["ferry.io/progress"])
    downtime = progress["downtimeMs"]
    announced = pings.announced.get(mac, [])
    assert len(announced) >= ANNOUNCEMENTS, f"{mac} was announced {len(announced)} times: {pings.announced}"
    out, into = pings.silence(address, announced[0])
    busy = 0 if os.environ.get("FERRY_STRICT") else pings.longest(witness)
    print(f"  {before} to {after}: first packet out after {out:.0f} ms, in after {into:.0f} ms; reported downtime {downtime} ms; "
          f"the witness was silent for {busy:.0f} ms; announced {len(announced)} times in {announced[-1] - announced[0]:.1f} s", flush=True)
    assert out <= downtime + PROMISED_MS + busy and into <= downtime + PROMISED_MS + busy, (out, into, downtime, busy)
    assert interface(site, name)["ipAddress"] == address


def test_guest_network(bin_dir):
    with Site(bin_dir, nodes=NODES) as site:
        fabric = guestnet.connect(site)
        guestnet.describe(site)
        # One as an instance, one by the template of a VirtualMachine.
        site.api.create("virtualmachineinstances", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                                    "metadata": {"name": "one"}, "spec": machine("10.90.0.50")})
        wait_for("the first guest", lambda: interface(site, "one"), 120)
        site.api.create("virtualmachines", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "two"},
                                            "spec": {"runStrategy": "Always", "template": {"spec": machine("10.90.0.51")}}})
        wait_for("the second guest", lambda: interface(site, "two"), 120)
        assert interface(site, "one")["ipAddress"] == "10.90.0.50" and interface(site, "two")["ipAddress"] == "10.90.0.51"
        assert interface(site, "one")["mac"] != interface(site, "two")["mac"]
        assert claims(site) == {"vmi:default/one/lan", "vmi:default/two/lan"}, claims(site)
        for _ in range(2):
            check_move(site, fabric, "one", "10.90.0.50", "10.90.0.51")
        check_move(site, fabric, "two", "10.90.0.51", "10.90.0.50")
        site.ferry("vm", "delete", "one", "--wait")
        wait_for("its address to be free", lambda: claims(site) == {"vmi:default/two/lan"}, 60)
        site.api.call("DELETE", site.api.path("virtualmachines", "two"))
        wait_for("all addresses to be free", lambda: not claims(site), 120)


scenario.need_root()
scenario.main(globals())
