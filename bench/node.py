#!/usr/bin/env python3
"""bench/node.py BUILD [--runs N]: what a node costs while nothing happens, what a launcher costs, how long a virtual machine takes
from `kubectl apply` to its first sign of life, and a cancelled move until nothing of it is left. Prints a table against the bars;
exit code 1 when one is missed."""
import argparse
import datetime
import glob
import json
import os
import re
import statistics
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests/lib"))
import ferrysite  # noqa: E402
from ferrysite import wait_for  # noqa: E402

BARS = {"idle": ("handler, relay and pods of an idle node, MiB", 40), "launcher": ("launcher without libvirtd and QEMU, MiB", 24),
        "start": ("kubectl apply to first heartbeat, s", 2), "cancel": ("cancel in pre-copy to everything clean, s", 2)}
SETTLE_S = 5


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def idle(site):
    """The larger of the two nodes, when all has come to rest."""
    time.sleep(SETTLE_S)
    nodes = [{p: resident_mib(site.pid(f"{node}-{p}")) for p in ("handler", "relay", "pods")} for node in ("node1", "node2")]
    worst = max(nodes, key=lambda n: sum(n.values()))
    print("  " + ", ".join(f"{name} {value:.1f} MiB" for name, value in worst.items()), flush=True)
    return sum(worst.values())


def manifest(name, args="ws=32 rate=2 hb=50 fill=rand"):
    return json.dumps({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "domain": {
            "memory": {"guest": "128Mi"}, "devices": {}, "firmware": {"kernelBoot": {
                "kernelArgs": args, "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}}}}})


def start_one(site, monitor, name, stages=None):
    """Seconds from the call of kubectl to the guest's first sign of life. `stages` gets when the parts of it were over."""
    mark, begin, wall = monitor.mark(), time.monotonic(), time.time()
    site.kubectl("apply", "-f", "-", stdin=manifest(name))
    applied = time.monotonic() - begin
    took = first_beat(monitor, mark) - begin
    if stages is not None:
        stages.append({**stages_of(site, wall), "kubectl is back": applied, "first heartbeat": took})
    return took


# What the programs write into their logs, in the order of a start.
STAGES = (("pod bound", "log/api.log", r"verb=\S*create\S* .*pods/\S*binding"), ("sandbox started", "log/node*-pods.log", "sandbox started"),
          ("pod runs", "log/node*-pods.log", "pod status.*phase=Running"), ("libvirtd started", "node*/run/ferry/pods/*/log", "libvirtd started"),
          ("libvirtd answers", "node*/run/ferry/pods/*/log", "libvirtd answers"), ("guest started", "node*/run/ferry/pods/*/log", "guest started"))


def stages_of(site, since):
    """Seconds after `since` at which a log first says that a stage is over."""
    found = {}
    for stage, files, words in STAGES:
        for path in glob.glob(os.path.join(site.root, files)):
            with open(path, errors="replace", encoding="utf-8") as f:
                for line in f:
                    stamp = re.match(r"(\d{4}-\d\d-\d\dT[\d:.]+)Z ", line)
                    if stamp and re.search(words, line):
                        at = datetime.datetime.fromisoformat(stamp[1] + "+00:00").timestamp() - since
                        if at > 0:
                            found[stage] = min(at, found.get(stage, at))
    return found


def print_stages(stages):
    """The middle one of each stage over all starts."""
    names = [n for n, _, _ in STAGES] + ["kubectl is back", "first heartbeat"]
    middle = {n: statistics.median(s[n] for s in stages if n in s) for n in names if any(n in s for s in stages)}
    print("  a start, in ms: " + ", ".join(f"{n} {1000 * t:.0f}" for n, t in sorted(middle.items(), key=lambda x: x[1])), flush=True)


def first_beat(monitor, mark):
    wait_for("the first heartbeat", lambda: monitor.since(mark), 120, step=0.005)
    return monitor.since(mark)[0].at


def end_one(site, name):
    site.kubectl("delete", "vmi", name)
    wait_for(f"{name} to go", lambda: not site.api.vmi(name) and not site.pod_dirs(), 120)


def launcher(site):
    found = [pid for pid, command in ferrysite.processes() if command.startswith("/run/ferry/bin/ferry-launcher") and site.owns(pid)]
    return max(resident_mib(pid) for pid in found)


def is_clean(site, pods):
    """Nothing of a move is left: its object, the target's pod, streams, sockets."""
    if len(site.pod_dirs()) != pods or glob.glob(os.path.join(site.root, "node*/run/ferry/pods/*/m/*")):
        return False
    if site.api.list("virtualmachineinstancemigrations"):
        return False
    for node in ("node1", "node2"):
        with ferrysite.heartbeat.connect(os.path.join(site.root, node, "run/ferry/relay.sock")) as s:
            s.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            data = b""
            while chunk := s.recv(65536):
                data += chunk
        health = json.loads(data.partition(b"\r\n\r\n")[2])
        if health["targets"] or health["sources"] or health["streams"]:
            return False
    return True


def cancel_one(site, vm, name):
    pods = len(site.pod_dirs())
    body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": name},
            "spec": {"vmiName": vm}}
    site.api.create("virtualmachineinstancemigrations", body)

    def copying():
        text = site.api.vmi(vm)["metadata"].get("annotations", {}).get("ferry.io/progress", "{}")
        sample = json.loads(text)
        move = site.api.vmi(vm)["status"].get("migrationState", {})
        return sample.get("uid") == move.get("migrationUid") and sample.get("processedBytes", 0) > 1 << 20
    wait_for("memory to be on its way", copying, 120)
    begin = time.monotonic()
    site.api.call("DELETE", site.api.path("virtualmachineinstancemigrations", name))
    wait_for("everything to be clean", lambda: is_clean(site, pods), 120, step=0.01)
    return time.monotonic() - begin


def measure(site, runs):
    result = {"idle": idle(site)}
    site.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy", "metadata": {"name": "slow"},
        "spec": {"bandwidthPerMigration": "4Mi", "selectors": {"namespaceSelector": {}, "virtualMachineInstanceSelector": {}}}}))
    monitor = site.monitor()
    try:
        start_one(site, monitor, "warm")
        time.sleep(SETTLE_S)  # until the capabilities of QEMU are kept for the next
        end_one(site, "warm")
        starts, stages = [], []
        for i in range(runs):
            starts.append(start_one(site, monitor, f"vm{i}", stages))
            if i + 1 < runs:
                end_one(site, f"vm{i}")
        print_stages(stages)
        vm = f"vm{runs - 1}"
        time.sleep(SETTLE_S)
        result["launcher"] = launcher(site)
        cancels = [cancel_one(site, vm, f"move{i}") for i in range(runs)]
        end_one(site, vm)
    finally:
        monitor.stop()
    for name, values in (("start", starts), ("cancel", cancels)):
        print(f"  {name}: " + " ".join(f"{v:.2f}" for v in values) + " s", flush=True)
        result[name] = statistics.median(values)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with ferrysite.Site(os.path.join(args.build, "bin")) as site:
        result = measure(site, args.runs)
    print(f"\n{'':52} {'measured':>9} {'bar':>6}")
    missed = False
    for key, (text, bar) in BARS.items():
        met = result[key] <= bar
        missed = missed or not met
        print(f"{text:52} {result[key]:9.2f} {bar:6} {'met' if met else 'MISSED'}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
