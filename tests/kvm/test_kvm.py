#!/usr/bin/env python3
"""What only hardware that runs guests can show: that it runs them, with a dirty ring and vhost-net; that they move; that what they
write is limited when a move does not converge, and no longer afterwards. Skipped where guests are emulated."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, processes, wait_for

PATIENCE = 120


def vmi(name, args, labels=None):
    boot = {"kernelArgs": args, "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"domain": {"memory": {"guest": "256Mi"}, "firmware": {"kernelBoot": boot}, "devices": {}}}}


def command_of(site, name):
    return next(command for pid, command in processes() if f"-name guest=default_{name}" in command and site.owns(pid))


def runs(site, name):
    wait_for(f"{name} to run", lambda: (site.api.vmi(name) or {}).get("status", {}).get("phase") == "Running", PATIENCE)


def test_kvm(bin_dir):
    with Site(bin_dir) as site:
        for node in ("node1", "node2"):
            offered = site.api.get("nodes", node, ns=None)["status"]["allocatable"].get("devices.kubevirt.io/kvm")
            assert offered, f"{node} offers no KVM"
        site.api.create("virtualmachineinstances", vmi("calm", "ws=16 rate=4"))
        runs(site, "calm")
        assert site.api.vmi("calm")["metadata"]["annotations"]["ferry.io/accelerator"] == "kvm"
        command = command_of(site, "calm")
        print("QEMU:", command[:2000], flush=True)
        assert "accel=kvm" in command or "-accel kvm" in command, command
        assert "dirty-ring-size" in command, command
        assert "by hardware (kvm)" in site.run("why", "calm").stdout
        done = site.ferry("migrate", "calm", "--watch")
        assert "moved from" in done.stdout, done.stdout
        print(done.stdout, flush=True)
        # More than the path carries: only what slows the guest's writes down lets it move.
        site.ferry("policy", "create", "slow", "--bandwidth", "64Mi", "--allow-auto-converge", "--vm-label", "speed=slow")
        site.api.create("virtualmachineinstances", vmi("busy", "ws=192 rate=max", {"speed": "slow"}))
        runs(site, "busy")
        done = site.ferry("migrate", "busy", "--watch", timeout=240)
        print(done.stdout, flush=True)
        assert "moved from" in done.stdout, done.stdout
        shown = site.ferry("show", "busy").stdout
        print(shown, flush=True)
        assert "vCPUs may write" in shown, "nothing was limited"


def need_hardware():
    if os.environ.get("FERRY_ACCELERATOR", "tcg") != "kvm":
        print("skipped: guests are emulated here")
        sys.exit(77)


scenario.need_root()
need_hardware()
scenario.main(globals())
