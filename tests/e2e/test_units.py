#!/usr/bin/env python3
"""A site whose programs are confined as their units say: they do all of their work, guests start and move, and what is started again
finds what it left."""
import json
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import guestnet
import scenario
import unitbox
from boxedsite import BoxedSite
from ferrysite import wait_for

GUEST = {
    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"},
    "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {"interfaces": [{"name": "lan", "bridge": {}}]}, "firmware": {"kernelBoot": {
        "kernelArgs": "ws=4 rate=1", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}}},
        "networks": [{"name": "lan", "multus": {"networkName": "guests"}}], "terminationGracePeriodSeconds": 0}}
PROGRAMS = {"api": 61202, "controller": 61203, "node1-relay": 61200, "node1-pods": 0, "node1-handler": 0}


def test_confined(bin_dir):
    with BoxedSite(bin_dir) as site:
        for name, uid in PROGRAMS.items():
            status = site.status(name)
            assert status["Uid"] == [str(uid)] * 4, (name, status["Uid"])
            assert status["Seccomp"] == ["2"] and status["NoNewPrivs"] == ["1"], (name, status)
            own_mounts = os.stat(f"/proc/{site.pid(name)}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino
            assert own_mounts == (name != "node1-pods"), name
        guestnet.describe(site)
        site.ferry("vm", "create", "-f", "-", "--wait", stdin=json.dumps(GUEST))
        [qemu] = site.qemus()
        assert os.stat(f"/proc/{qemu}").st_uid >= 1879048192
        if unitbox.devices_mount():
            assert "devices:/ferry-unitbox-" in open(f"/proc/{qemu}/cgroup").read(), "the unit's devices are the guest's, too"
        assert any("guest network attached" in open(path, errors="replace").read() for path in site.logs()), "taps are made"
        assert "moved from" in site.ferry("migrate", "web", "--watch").stdout
        here = site.node_of("web")
        controllers = os.path.join(os.path.dirname(site.kubeconfig), "controller.kubeconfig")
        before = open(controllers).read()
        for node in ("node1", "node2"):  # a relay hands over to another one, which is as confined
            site.wait_restarted(f"{node}-relay", site.kill(f"{node}-relay", signal.SIGUSR2))
            status = site.status(f"{node}-relay")
            assert status["Uid"] == ["61200"] * 4 and status["Seccomp"] == ["2"], status
        for name in (f"{here}-pods", f"{here}-handler", f"{here}-relay", "api", "controller"):
            site.wait_restarted(name, site.kill(name, signal.SIGTERM))
        assert "moved from" in site.ferry("migrate", "web", "--watch", timeout=200).stdout
        assert site.node_of("web") != here
        st = os.stat(controllers)
        assert open(controllers).read() != before and (st.st_uid, st.st_gid, st.st_mode & 0o777) == (61202, 61203, 0o640), st
        [qemu] = site.qemus()
        # By host, boot and process: so it is known at once, and for sure, whether a controller is gone.
        status, lease = site.api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ferry-controller")
        boot = open("/proc/sys/kernel/random/boot_id").read()[:8]
        assert status == 200 and f"_{boot}_" in lease["spec"]["holderIdentity"], lease
        assert f"_{site.pid('controller')}_" in lease["spec"]["holderIdentity"], lease
        audit = os.path.join(site.root, "api/var/log/ferry/audit.log")
        assert (os.stat(audit).st_uid, os.stat(audit).st_mode & 0o777) == (61202, 0o600) and '"web"' in open(audit).read()
        site.ferry("vm", "delete", "web", "--wait")
        wait_for("QEMU to be gone", lambda: not site.qemus())
        for path in site.logs():
            with open(path, errors="replace") as f:
                refused = [line for line in f if "Operation not permitted" in line or "Read-only file system" in line]
            assert not refused, (path, refused)


scenario.need_root()
unitbox.need_systemd_analyze()
scenario.main(globals())
