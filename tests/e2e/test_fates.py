#!/usr/bin/env python3
"""What becomes of guests is told: a QEMU that is killed, one that the kernel kills for its pod's memory, a reset, a disk that is full,
a power-off from inside; as events, conditions and the VM's status. And what a VM keeps when it is started again."""
import contextlib
import glob
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, processes, wait_for

PATIENCE = 120
HOG = "import sys; data = bytearray(192 << 20); print(len(data), flush=True); sys.stdin.read()"


def vm(name, args="ws=4", memory="64Mi", devices=None, volumes=()):
    boot = {"kernelArgs": args, "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {"runStrategy": "Manual", "template": {"spec": {
                "domain": {"memory": {"guest": memory}, "firmware": {"kernelBoot": boot}, "devices": devices or {}},
                "volumes": list(volumes)}}}}


def start(site, name):
    site.ferry("vm", "start", name)
    wait_for(f"{name} to run", lambda: (site.api.vmi(name) or {}).get("status", {}).get("phase") == "Running", PATIENCE)
    return site.api.vmi(name)


def listens(site, name):
    """What is typed before the guest looks at its serial line is lost."""
    wait_for(f"{name} to listen", lambda: "HB " in site.ferry("vm", "console", name, "--once", "--tail", "9999").stdout, PATIENCE)


def events(site, name):
    return {e["reason"]: e for e in site.api.list("events") if e["involvedObject"].get("name") == name}


def event(site, name, reason, kind, *words):
    found = wait_for(f"the event {reason} of {name}", lambda: events(site, name).get(reason), PATIENCE)
    assert found["type"] == kind and all(w in found["message"] for w in words), found


def condition(site, name, kind):
    return next((c for c in site.api.vmi(name)["status"].get("conditions", []) if c["type"] == kind), None)


def printable(site, name, word):
    wait_for(f"{name} to be {word}", lambda: site.api.get("virtualmachines", name)["status"].get("printableStatus") == word, PATIENCE)


def pod_uid(site, name):
    return next(iter(site.api.vmi(name)["status"]["activePods"]))


def qemu(site, name):
    return next(pid for pid, command in processes() if f"-name guest=default_{name}" in command and site.owns(pid))


def is_over(site, name, phase, reason):
    wait_for(f"{name} to be {phase}", lambda: site.api.vmi(name)["status"]["phase"] == phase, PATIENCE)
    status = site.api.vmi(name)["status"]
    assert status.get("reason") == reason, status
    assert condition(site, name, "Ready")["status"] == "False", status
    printable(site, name, "Stopped")


def crashes(site):
    start(site, "crash")
    os.kill(qemu(site, "crash"), signal.SIGKILL)
    is_over(site, "crash", "Failed", "GuestCrashed")
    event(site, "crash", "Started", "Normal")
    event(site, "crash", "Stopped", "Warning", "crashed")


def powers_off(site):
    start(site, "off")
    listens(site, "off")
    site.ferry("vm", "console", "off", "--send", "poweroff\n")
    is_over(site, "off", "Succeeded", None)
    event(site, "off", "Stopped", "Normal", "shut itself down")


def resets(site):
    start(site, "reset")
    listens(site, "reset")
    site.ferry("vm", "console", "reset", "--send", "reset\n")
    event(site, "reset", "Reset", "Normal", "reset at")
    wait_for("the condition", lambda: (c := condition(site, "reset", "GuestReset")) and c["status"] == "True" and c["reason"] == "Reset",
             PATIENCE)
    wait_for("the guest to boot again", lambda: site.ferry("vm", "console", "reset", "--once", "--tail", "9999").stdout.count("BOOT") > 1,
             PATIENCE)
    printable(site, "reset", "Running")
    vm_conditions = {c["type"] for c in site.api.get("virtualmachines", "reset")["status"]["conditions"]}
    assert "GuestReset" in vm_conditions, vm_conditions


def fills_its_disk(site, data):
    """The volume is sparse, on a file system with less room than it has; then somebody makes room."""
    start(site, "full")
    wait_for("the guest to stand still", lambda: (c := condition(site, "full", "Paused")) and c["reason"] == "PausedIOError", PATIENCE)
    assert "no space is left for volume data" in condition(site, "full", "Paused")["message"], condition(site, "full", "Paused")
    event(site, "full", "IOerror", "Warning", "not enough space on volume: data")
    printable(site, "full", "Paused")
    answer = site.run("why", "full")
    assert "no space is left" in answer.stdout, answer.stdout
    subprocess.run(["mount", "-o", "remount,size=64m", data], check=True)
    site.ferry("vm", "unpause", "full")
    wait_for("the guest to go on", lambda: not condition(site, "full", "Paused"), PATIENCE)
    printable(site, "full", "Running")


def memory_group(uid):
    found = [g for mount in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup") for g in glob.glob(f"{mount}/ferry-pods/*/{uid}")
             if os.path.exists(f"{g}/memory.limit_in_bytes") or os.path.exists(f"{g}/memory.max")]
    return found[0] if found else None


def runs_out_of_memory(site):
    """Somebody else in the guest's pod takes its memory; the kernel ends the largest."""
    start(site, "oom")
    listens(site, "oom")
    group = memory_group(pod_uid(site, "oom"))
    if not group:
        print("skipped: this host has no control group for memory that can be written to", flush=True)
        return
    with open(f"/proc/{qemu(site, 'oom')}/oom_score_adj", "w") as f:
        f.write("1000")  # it would be the largest anyway, but for a build with sanitizers
    one = os.path.exists(f"{group}/memory.limit_in_bytes")
    with open(f"{group}/{'memory.usage_in_bytes' if one else 'memory.current'}") as f:
        used = int(f.read())
    with open(f"{group}/{'memory.limit_in_bytes' if one else 'memory.max'}", "w") as f:
        f.write(str(used + (32 << 20)))

    def join():
        with open(f"{group}/cgroup.procs", "w") as f:
            f.write("0")
    with subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=join) as hog:
        try:
            is_over(site, "oom", "Failed", "OutOfMemory")
            event(site, "oom", "Stopped", "Warning", "ran out of memory")
        finally:
            hog.kill()


def keeps_its_card(site):
    """The instance asks for it; this site has no network to attach it to."""
    def mac():
        site.ferry("vm", "start", "card")
        vmi = wait_for("the instance", lambda: site.api.vmi("card"), PATIENCE)
        return vmi["metadata"]["uid"], vmi["spec"]["domain"]["devices"]["interfaces"][0]["macAddress"]
    uid, first = mac()
    site.ferry("vm", "stop", "card", "--wait")
    wait_for("the instance to go", lambda: site.api.vmi("card") is None, PATIENCE)
    again, second = mac()
    assert again != uid and first == second, (uid, first, again, second)


def test_fates(bin_dir):
    with Site(bin_dir, nodes=1) as site:
        data = os.path.join(site.root, "node1", "data")
        os.makedirs(data)
        os.chmod(os.path.dirname(site.root), 0o711)
        try:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0755", "ferry-test", data], check=True)
            os.makedirs(os.path.join(data, "small"))
            with open(os.path.join(data, "small/disk.img"), "wb") as f:
                f.truncate(32 << 20)
            spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}
            site.api.create("persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "small"},
                                                  "spec": {**spec, "capacity": {"storage": "32Mi"}, "hostPath": {"path": "/data/small"}}})
            site.api.create("persistentvolumeclaims", {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "small"},
                                                       "spec": {**spec, "resources": {"requests": {"storage": "32Mi"}}}})
            for made in (vm("crash"), vm("off"), vm("reset"), vm("oom", "ws=4 cover=all", "256Mi"),
                         vm("card", devices={"interfaces": [{"name": "default", "bridge": {}}]}),
                         vm("full", "ws=4 disk=16", devices={"disks": [{"name": "data", "disk": {"bus": "virtio"}}]},
                            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "small"}}])):
                if made["metadata"]["name"] == "card":
                    made["spec"]["template"]["spec"]["networks"] = [{"name": "default", "multus": {"networkName": "none"}}]
                site.api.create("virtualmachines", made)
            crashes(site)
            powers_off(site)
            resets(site)
            fills_its_disk(site, data)
            runs_out_of_memory(site)
            keeps_its_card(site)
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                subprocess.run(["umount", "-l", data], check=True, stderr=subprocess.DEVNULL)


scenario.need_root()
scenario.main(globals())
