#!/usr/bin/env python3
"""bench/api.py BUILD [--vmis N] [--seconds S] [--watchers N]: ferry-apiserver, and kube-apiserver + etcd beside it where
the binaries are (KUBEBUILDER_ASSETS or .cache/kubernetes), in one run on the same disk. Prints a table with ratios.

With --beside DIR it is the programs of another build (DIR/bin, as tests/compat/get-programs lays them out) instead of Kubernetes, in turns
with today's, --rounds times each; the load generator is today's for both."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests/lib"))
import engine  # noqa: E402

VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
ROUNDS = 5


def fsync_ms():
    with tempfile.NamedTemporaryFile() as f:
        times = []
        for _ in range(50):
            f.write(b"x" * 4096)
            f.flush()
            begin = time.monotonic()
            os.fdatasync(f.fileno())
            times.append(time.monotonic() - begin)
    return 1000 * statistics.median(times)


def memory_mib(e):
    """Resident memory of the engine's processes."""
    total = 0
    for process in e.processes.values():
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            total += next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    return total / 1024


class Watcher(threading.Thread):
    def __init__(self, e, version):
        super().__init__(daemon=True)
        self.e, self.version, self.seen, self.ready = e, version, {}, threading.Event()
        self.start()

    def run(self):
        connection = self.e.client().connect(120)
        connection.request("GET", f"{VMIS}?watch=1&resourceVersion={self.version}", headers=self.e.client().headers)
        answer = connection.getresponse()
        self.ready.set()
        while line := answer.readline():
            mark = line.find(b'"bench-mark":"')
            if mark >= 0:
                self.seen[line[mark + 14:].split(b'"')[0].decode()] = time.monotonic()


def fan_out_ms(e, watchers):
    """From sending a write to the last watcher having it; the median of some rounds."""
    admin = e.client()
    version = admin.must("GET", VMIS + "?limit=1")["metadata"]["resourceVersion"]
    crowd = [Watcher(e, version) for _ in range(watchers)]
    for w in crowd:
        w.ready.wait(60)
    times = []
    for i in range(ROUNDS):
        begin = time.monotonic()
        admin.patch(f"{VMIS}/one-0-0", {"metadata": {"labels": {"bench-mark": f"m{i}"}}})
        engine.wait_for("all watchers to have it", lambda i=i: all(f"m{i}" in w.seen for w in crowd), 60, 0.002)
        times.append(max(w.seen[f"m{i}"] for w in crowd) - begin)
    return 1000 * statistics.median(times)


def measure(kind, build, bin_dir, options):
    load = os.path.join(build, "bench/api_load")
    rows = {}
    begin = time.monotonic()
    with engine.start(kind, bin_dir) as e:
        rows["start to ready, s"] = time.monotonic() - begin

        def run(verb, clients, prefix, seconds=options.seconds, count=10 ** 9):
            done = subprocess.run([load, e.kubeconfig(), verb, str(clients), str(seconds), str(count), prefix],
                                  stdout=subprocess.PIPE, text=True, check=True)
            n, took = done.stdout.split()
            return int(n) / float(took)

        for clients, prefix in ((1, "one"), (16, "many")):
            for verb, name in (("create", "creates/s"), ("patch", "status patches/s"), ("get", "gets/s")):
                rows[f"{name}, {clients} client{'s' * (clients > 1)}"] = run(verb, clients, prefix)
        rows[f"write to the last of {options.watchers} watchers, ms"] = fan_out_ms(e, options.watchers)
        have = len(e.client().list(VMIS))
        if have < options.vmis:
            run("create", 16, "fill", 900, options.vmis - have)
        begin = time.monotonic()
        status, _, text = e.client().raw("GET", VMIS)
        took = time.monotonic() - begin
        assert status == 200
        rows[f"list of {options.vmis} VMIs or more, ms per 10,000"] = 1000 * took * 10000 / max(have, options.vmis)
        rows["... its size, MB"] = len(text) / 1e6
        rows["memory after that, MiB"] = memory_mib(e)
        rows["... VMIs by then"] = max(have, options.vmis)
    return rows


def decode(build, options):
    """The client's side: a list of VMIs as text into an informer's cache."""
    return subprocess.run([os.path.join(build, "bench/api_decode"), str(options.vmis)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def in_turns(build, options):
    """Medians of today's programs and of those beside them; who begins changes, so that what the machine does meanwhile falls on both."""
    ours, theirs = [], []
    for i in range(options.rounds):
        sides = [(ours, build), (theirs, os.path.abspath(options.beside))]
        for rows, side in sides if i % 2 == 0 else reversed(sides):
            rows.append(measure("embedded", build, os.path.join(side, "bin"), options))
    return [{name: statistics.median(r[name] for r in rows) for name in rows[0]} for rows in (ours, theirs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--vmis", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--beside", metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    print(f"fdatasync of 4 KiB in {tempfile.gettempdir()}: {fsync_ms():.2f} ms")
    print(f"decoding a list into the client's cache: {decode(build, options)}")
    theirs, other_name = None, f"beside, {options.rounds} rounds" if options.beside else "kube-apiserver+etcd"
    if options.beside:
        ours, theirs = in_turns(build, options)
    else:
        ours = measure("embedded", build, os.path.join(build, "bin"), options)
        missing = engine.missing_assets()
        if missing:
            print(f"no {', '.join(missing)} in {engine.assets()}: ferry-apiserver alone")
        else:
            theirs = measure("kubernetes", build, None, options)
    print(f"{'':50} {'ferry-apiserver':>16}" + (f" {other_name:>20} {'ratio':>8}" if theirs else ""))
    for name, value in ours.items():
        line = f"{name:50} {value:16.2f}"
        if theirs:
            other = theirs.get(name, 0)
            line += f" {other:20.2f} {value / other if other else 0:8.2f}"
        print(line)


if __name__ == "__main__":
    main()
