#!/usr/bin/env python3
"""bench/control.py BUILD [--nodes N] [--vms N] [--moves N] [--workers N]: ferry-controller on ferry-apiserver with many
migrations queued at once, limits raised, and nodes that take no time (bench/control_nodes.c). Then what a decision costs by
how many wait (bench/control_decide.c). Prints tables against the bars. With --beside DIR the same is done with the programs of
another build (DIR/bin, as tests/compat/get-programs lays them out), right before, and their figures stand beside today's."""
import argparse
import collections
import os
import re
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests/lib"))
import engine  # noqa: E402

KUBEVIRT = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
            "metadata": {"name": "kubevirt", "annotations": {"ferry.io/parallelInboundMigrationsPerNode": "1000"}},
            "spec": {"configuration": {"migrations": {"parallelMigrationsPerCluster": 100000,
                                                      "parallelOutboundMigrationsPerNode": 1000}}}}


def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def controller_writes(e):
    """What the controller wrote, from the server's audit: "verb resource" -> how often. Leases are the elections' own."""
    found = collections.Counter()
    for user, verb, resource, more, code in re.findall(
            r'audit user=(\S+) \S+ verb=(\S+) resource=(\S+) subresource=(\S+) .* code=(\d+)', e.log("apiserver")):
        if user == "system:ferry-controller" and resource != "leases":
            found[f"{verb} {resource}/{more}".replace('/""', "") + ("" if code < "300" else f" refused with {code}")] += 1
    return found


def settled_writes(e, seconds=120):
    """Events are written after the fact: waits until nothing more comes."""
    writes, deadline = controller_writes(e), time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(3)
        before, writes = writes, controller_writes(e)
        if before == writes:
            break
    return writes


def run(args, e, bin_dir):
    admin = e.client()
    admin.create("/apis/kubevirt.io/v1/namespaces/default/kubevirts", KUBEVIRT)
    binary = os.path.join(args.build, "bench/control_nodes")
    load = subprocess.Popen([binary, e.kubeconfig(), str(args.nodes), str(args.vms), str(args.moves), "8"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        begin = time.monotonic()
        assert load.stdout.readline() == "ready\n", "the load ended early"
        print(f"filled in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        e.spawn("ferry-controller", os.path.join(bin_dir, "ferry-controller"), "--kubeconfig",
                e.kubeconfig("controller"), "--embedded", "--workers", str(args.workers), "--log-level", "warning")
        pid = e.processes["ferry-controller"].pid
        last = -1.0
        while (now := cpu_seconds(pid)) - last > 0.15:  # until it has read everything and only hears signs of life
            last = now
            time.sleep(1)
        result = {"idle MiB": status(pid, "VmRSS") / 1024}
        cpu = cpu_seconds(pid)
        server = next(p.pid for n, p in e.processes.items() if "apiserver" in n)
        server_cpu = cpu_seconds(server)
        load.stdin.write("go\n")
        load.stdin.flush()
        for line in load.stdout:
            name, value = line.split()
            result[name] = float(value)
            print(line, end="", file=sys.stderr, flush=True)
        result["cpu"], result["server cpu"] = cpu_seconds(pid) - cpu, cpu_seconds(server) - server_cpu
        result["controller writes"] = settled_writes(e)
        result["peak MiB"] = status(pid, "VmHWM") / 1024
        return result
    finally:
        load.kill()
        load.wait()


def measure(args, bin_dir):
    with engine.start("embedded", bin_dir) as e:
        r = run(args, e, bin_dir)
    r["controller writes, all"] = sum(r["controller writes"].values())
    return r


def rows_of(args, r):
    return [
        ("migrations per second, created to handed off", args.moves / r.get("handed", float("inf")), ">= 100"),
        ("migrations per second, created to final", args.moves / r.get("final", float("inf")), ""),
        ("API writes of the controller per migration, events included", r["controller writes, all"] / args.moves, "<= 12"),
        ("API writes of the nodes per migration", (r["writes"] - args.moves) / args.moves, ""),
        ("controller memory with everything cached, MiB", r["idle MiB"], "<= 200"),
        ("controller memory at its peak, MiB", r["peak MiB"], ""),
        ("controller CPU per migration, ms", 1000 * r["cpu"] / args.moves, ""),
        ("API server CPU per migration, ms", 1000 * r["server cpu"] / args.moves, ""),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--vms", type=int, default=10000)
    parser.add_argument("--moves", type=int, default=10000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--beside", metavar="DIR")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    before = rows_of(args, measure(args, os.path.join(os.path.abspath(args.beside), "bin"))) if args.beside else []
    r = measure(args, os.path.join(args.build, "bin"))
    print(f"{args.nodes} nodes, {args.vms} VMIs, {args.moves} migrations, {args.workers} workers, {os.cpu_count()} cores\n")
    print(f"| | measured | bar |{' beside | ratio |' if before else ''}\n|---|---|---|{'---|---|' if before else ''}")
    for i, (name, value, bar) in enumerate(rows_of(args, r)):
        other = before[i][1] if before else 0
        print(f"| {name} | {value:.1f} | {bar} |" + (f" {other:.1f} | {value / other if other else 0:.2f} |" if before else ""))
    print("\nOf the controller's writes, per migration:",
          ", ".join(f"{k} {n / args.moves:.2f}" for k, n in r["controller writes"].most_common() if n * 100 > args.moves))
    print(f"\n{r['failed']:.0f} failed, {r['finished']:.0f} finished\n")
    print(subprocess.run([os.path.join(args.build, "bench/control_decide")], check=True, stdout=subprocess.PIPE, text=True).stdout)


main()
