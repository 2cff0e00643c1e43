#!/usr/bin/env python3
"""A Linux guest with redis, through the whole system. Two write to it: one within the guest, and one outside, over a TCP connection that lasts.
After a move in pre-copy and one in post-copy each write that was acknowledged reads back as it was."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import guestnet
import linuxguest
import scenario
from ferrysite import Site
from moving import policy, shape

LINK = 100  # Mbit/s


def create(site):
    site.api.create("virtualmachineinstances", {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "redis", "labels": {"way": "post"}},
        "spec": {"domain": {"memory": {"guest": linuxguest.MEMORY}, "firmware": {"kernelBoot": linuxguest.boot(f"net={guestnet.address()}/24")},
                            "devices": {"interfaces": [{"name": "lan", "bridge": {}}]}},
                 "networks": [{"name": "lan", "multus": {"networkName": "guests"}}], "terminationGracePeriodSeconds": 0}})


class Writer:
    """Writes from outside while the block runs."""

    def __init__(self, fabric):
        command = ["ip", "netns", "exec", fabric, sys.executable, os.path.join(HERE, "../lib/rediswriter.py"), guestnet.address()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait(self, more=1):
        """Until it has said that many times that it got on."""
        for _ in range(more):
            assert self.process.stdout.readline().strip().isdigit(), "the writer has ended"

    def end(self):
        out, _ = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, out
        return json.loads(out.splitlines()[-1])


def test_redis(bin_dir):
    linuxguest.install(bin_dir)
    with Site(bin_dir) as site:
        fabric = guestnet.connect(site)
        guestnet.describe(site)
        create(site)
        monitor = site.monitor()
        monitor.wait_beats(5, linuxguest.BOOT_S, 0)
        writer = Writer(fabric)
        writer.wait(2)
        for mode in ("PreCopy", "PostCopy"):
            if mode == "PostCopy":
                policy(site, "post", allowPostCopy=True, completionTimeoutPerGiB=10)
                shape(site, LINK)
            before, acknowledged = site.node_of("redis"), monitor.last().pages
            site.ferry("migrate", "redis", "--watch", timeout=400)
            writer.wait(2)
            mark = monitor.mark()
            monitor.wait_beats(3, 120, mark)
            state = site.api.vmi("redis")["status"]["migrationState"]
            assert site.node_of("redis") != before and state["mode"] == mode, state
            keys, bad = monitor.verify(120)
            assert bad == 0 and not monitor.bad_pages() and not monitor.broken_sequence(), (keys, bad)
            assert monitor.last().pages > acknowledged and len(site.running_domains()) == 1
            print(f"  {before} to {site.node_of('redis')}, {mode}: {acknowledged} writes acknowledged inside before, {monitor.last().pages} after", flush=True)
        outside = writer.end()
        print(f"  outside, over one connection: {outside}", flush=True)
        assert outside["acknowledged"] > 0 and outside["wrong"] == 0, outside
        monitor.stop()
        site.ferry("vm", "delete", "redis", "--wait", timeout=200)


scenario.need_root()
scenario.main(globals())
