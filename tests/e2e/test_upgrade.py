#!/usr/bin/env python3
"""A site of the version before (tests/compat/version), made by its own `ferry up`, is upgraded program by program in the order of
docs/upgrading.md while its VM runs: the guest does not notice, keeps the user that all guests had, and moves; what starts afterwards
has a user of its own and is given its image. API server and controller stop being root, with all objects."""
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import wait_for
from versions import Mixed, move, old_programs

NODES = ("node1", "node2")
COMMON, FIRST = 61201, 1879048192
ORDER = (("ferry-relay", [n + "-relay" for n in NODES]), ("ferry-apiserver", ["api"]), ("ferry-controller", ["controller"]),
         ("ferry-pods", [n + "-pods" for n in NODES]), ("ferry-handler", [n + "-handler" for n in NODES]))
VMIS = "virtualmachineinstances"


def guest(name):
    """With a disk that both nodes have."""
    boot = {"kernelArgs": "ws=4 rate=2 static=16 hb=20 fill=rand", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 0, "domain": {
                "memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": boot},
                "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}},
                "volumes": [{"name": "data", "hostDisk": {"path": "/data/vm/disk.img", "type": "Disk", "shared": True}}]}}


def make_image(site):
    paths = [os.path.join(site.root, node, "data/vm/disk.img") for node in NODES]
    for path in paths:
        os.makedirs(os.path.dirname(path))
    with open(paths[0], "wb") as f:
        f.truncate(1 << 20)
    os.link(paths[0], paths[1])
    return paths[0]


def user_of(pid):
    return os.stat(f"/proc/{pid}").st_uid


def user_of_file(path):
    return os.stat(path).st_uid


def start(site):
    site.api.create(VMIS, guest("vm"))
    wait_for("the guest to run", lambda: (site.api.vmi("vm") or {}).get("status", {}).get("phase") == "Running", 120)
    return wait_for("QEMU", lambda: (site.qemus() or [0])[0])


def stop_being_root(site, monitor, to):
    """Once a `ferry` of today looks after the site: what was root's is the server's then, and nothing of it is lost."""
    mark = monitor.mark()
    data = os.path.dirname(site.kubeconfig)
    files = [os.path.join(at, name) for at, _, names in os.walk(data) for name in names]
    assert len(files) > 4 and {user_of_file(f) for f in files} == {0}, files
    site.kill("supervisor")
    site.up()
    for name, uid in (("api", 61202), ("controller", 61203)):
        old = site.kill(name, signal.SIGTERM)
        site.wait_restarted(name, old)
        wait_for(f"{name} not to be root", lambda name=name, uid=uid: user_of(site.pid(name)) == uid, 30)
    wait_for("the objects", lambda: site.run("vm", "list").returncode == 0 and site.api.get("configmaps", "kept"), 60)
    assert site.api.get("configmaps", "kept")["data"] == {"a": "b"}
    files = [os.path.join(at, name) for at, _, names in os.walk(data) for name in names]
    assert {user_of_file(f) for f in files} == {61202}, files
    move(site, monitor, to)
    assert monitor.broken_sequence(mark) == [], monitor.broken_sequence(mark)


def test_a_running_site_is_upgraded(bin_dir):
    with Mixed(bin_dir, old_programs()) as site:
        for program, names in ORDER:
            assert all(site.program(name).startswith(site.old) for name in names), program
        image = make_image(site)
        site.api.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}})
        qemu = start(site)
        monitor = site.monitor()
        try:
            monitor.wait_beats(10, 60)
            assert user_of(qemu) == os.stat(image).st_uid == COMMON
            here = site.node_of("vm")
            there = NODES[1 - NODES.index(here)]
            mark = monitor.mark()
            for program, names in ORDER:
                site.upgrade(program, *names)
                monitor.wait_beats(5, 30)
            site.upgrade_command()
            assert monitor.broken_sequence(mark) == [], monitor.broken_sequence(mark)
            assert site.qemus() == [qemu] and site.launchers_are_old(here)
            wait_for("the nodes to be ready", lambda: site.run("migrate", "vm", "--to", there, "--dry-run").returncode == 0, 60)
            move(site, monitor, there)
            assert not site.launchers_are_old(there)
            assert user_of(site.qemus()[0]) == os.stat(image).st_uid == COMMON, "it keeps its user until it ends"
            move(site, monitor, here)
            stop_being_root(site, monitor, there)
        finally:
            monitor.stop()
        site.api.call("DELETE", site.api.path(VMIS, "vm"))
        wait_for("the guest to end", lambda: site.api.vmi("vm") is None and not site.qemus(), 60)
        qemu = start(site)
        user = site.api.vmi("vm")["status"]["runtimeUser"]
        assert user >= FIRST and user_of(qemu) == os.stat(image).st_uid == user, (user, user_of(qemu))


scenario.need_root()
scenario.main(globals())
