#!/usr/bin/env python3
"""Moves of a real guest over a shaped link: libvirt by itself, through socat, and through Ferry.

    bench/dataplane.py BUILD_DIR [--part NAME]... [--runs N] [--mbit N] [--delay MS] [--into FILE]

Parts (all of them unless told otherwise):
  transport   the same guest, in the same sandboxes, by `virsh migrate` over TCP, by `virsh migrate --tls`, by libvirt
              through socat, and by ferry-launchers through ferry-relays; interleaved, every way once a round
  queue       what a relay pair holds while it is saturated, beside the link's bandwidth-delay product
  converge    a guest that dirties memory faster than the link carries it: strategy `kubevirt` against `ferry`; takes
              two to five minutes for each run of the former
  plan        what was planned for an idle, a steady and a heavy guest, and what then happened

Results are added to FILE (JSON lines), and the tables are made from all that FILE holds: long measurements can be made in
several short runs. Two network namespaces are the nodes; `tc` shapes what the source sends. Needs root.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / d) for d in ("vm", "lib")]
import lab as labs  # noqa: E402

MIB = 1 << 20
TICK = os.sysconf("SC_CLK_TCK")
# 64 MiB of noise, of which 4 MiB are rewritten all the time: one long round, then a rest of 4 MiB. So the downtime is
# made of the same bytes in each run.
GUEST = {"memory": "128Mi", "args": "ws=4 rate=24 static=60 hb=100 fill=rand"}
BUSY = {"memory": "128Mi", "args": "ws=48 rate=60 static=8 hb=100 fill=rand"}
PLANNED = {
    "idle": {"memory": "128Mi", "args": "ws=4 rate=0 static=60 hb=100 fill=rand"},
    "steady": {"memory": "128Mi", "args": "ws=48 rate=8 static=16 hb=100 fill=rand"},
    "heavy": BUSY,
}


class Link:
    """Bytes that a node has sent, as a series over time."""

    def __init__(self, node, step=0.004):
        self.path = f"/proc/{node.relay.pid}/net/dev"
        self.step, self.points, self.over = step, [(time.monotonic(), self.sent())], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def sent(self):
        for line in open(self.path):
            if line.strip().startswith("eth0:"):
                return int(line.split(":")[1].split()[8])
        raise RuntimeError("no eth0")

    def run(self):
        while not self.over:
            self.points.append((time.monotonic(), self.sent()))
            time.sleep(self.step)

    def stop(self):
        """(bytes, seconds from the first 256 KiB to all but the last 64 KiB)"""
        self.over = True
        self.thread.join()
        base, last = self.points[0][1], self.points[-1][1]
        first = next((t for t, n in self.points if n - base >= 256 << 10), self.points[0][0])
        end = next(t for t, n in self.points if n >= last - (64 << 10))
        return last - base, end - first


def cpu(pids):
    """CPU seconds of processes, with those of children that have ended."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += sum(int(f) for f in open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:15])
    return total / TICK


class DelayedLab(labs.Lab):
    """Nodes whose cable has a length."""

    def __init__(self, build, delay_ms):
        super().__init__(str(build / "bin"))
        self.program, self.delay_ms, self.cable = str(build / "bench" / "delay_link"), delay_ms, None

    def lay_cable(self):
        if not self.delay_ms:
            return super().lay_cable()
        self.cable = subprocess.Popen([self.program, *(f"/run/netns/{n.netns}" for n in self.nodes), str(int(self.delay_ms * 1000))],
                                      stdout=subprocess.PIPE)
        return self.cable.stdout.readline()

    def close(self, failed):
        super().close(failed)
        if self.cable:
            self.cable.kill()
            self.cable.wait()


class Bench:
    def __init__(self, build, mbit, delay_ms=0):
        self.mbit = mbit
        self.lab = DelayedLab(build, delay_ms)

    def __enter__(self):
        self.lab.set_up()
        for node, other in zip(self.lab.nodes, reversed(self.lab.nodes)):
            self.run("ip", "netns", "exec", node.netns, "sysctl", "-qw", "net.ipv4.ip_forward=1")
            self.run("ip", "-n", node.netns, "route", "add", self.subnet(other, 0) + "/24", "via", other.address)
        self.lab.nodes[0].shape(self.mbit)
        self.make_certificates()
        return self

    def __exit__(self, kind, *_):
        self.lab.close(kind is not None)

    @staticmethod
    def run(*argv, **kwargs):
        return subprocess.run(argv, **{"check": True, **kwargs})

    @staticmethod
    def subnet(node, host):
        return f"10.98.{node.address.rsplit('.', 1)[1]}.{host}"

    def make_certificates(self):
        """What QEMU's own TLS wants: a CA, and a certificate that is good for both ends."""
        self.tls_dir = os.path.join(self.lab.root, "tls")
        os.mkdir(self.tls_dir)
        at = lambda name: os.path.join(self.tls_dir, name)
        ca = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.run(*ca, "-subj", "/CN=bench", "-keyout", at("ca-key.pem"), "-out", at("ca-cert.pem"), **quiet)
        self.run(*ca, "-subj", "/CN=node", "-CA", at("ca-cert.pem"), "-CAkey", at("ca-key.pem"), "-keyout",
                 at("server-key.pem"), "-out", at("server-cert.pem"), "-addext", "basicConstraints=critical,CA:FALSE",
                 "-addext", "extendedKeyUsage=serverAuth,clientAuth", "-addext",
                 "subjectAltName=" + ",".join(f"IP:{self.subnet(n, 2)}" for n in self.lab.nodes), **quiet)
        for kind in ("key", "cert"):
            os.link(at(f"server-{kind}.pem"), at(f"client-{kind}.pem"))
        for name in os.listdir(self.tls_dir):
            os.chown(at(name), labs.VM_USER, labs.VM_USER)

    # ---- pods ----------------------------------------------------------------------------------

    def wire(self, pod):
        """Gives a sandbox a way to the link: plain libvirt connects from inside."""
        node, name = pod.node, "p" + pod.uid[:8]
        ip = self.lab.ip
        ip("-n", node.netns, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pod.pid1))
        ip("-n", node.netns, "addr", "add", self.subnet(node, 1) + "/24", "dev", name)
        ip("-n", node.netns, "link", "set", name, "up")
        inside = ("nsenter", "-t", str(pod.pid1), "-n", "ip")
        self.run(*inside, "addr", "add", self.subnet(node, 2) + "/24", "dev", "eth0")
        self.run(*inside, "link", "set", "eth0", "up")
        self.run(*inside, "route", "add", "default", "via", self.subnet(node, 1))

    def use_tls(self, pod):
        """libvirtd started anew, with certificates for QEMU."""
        inside = "/var/run/ferry-state/tls"
        self.run("cp", "-r", self.tls_dir, os.path.join(pod.dir, "state/tls"))
        self.run("chown", "-R", str(labs.VM_USER), os.path.join(pod.dir, "state/tls"))
        conf = f"/proc/{pod.pid1}/root/var/run/ferry-home/config/libvirt/qemu.conf"
        with open(conf, "a") as f:
            f.write(f'migrate_tls_x509_cert_dir = "{inside}"\nmigrate_tls_x509_verify = 1\n')
        pod.kill("libvirtd")
        labs.wait_for("libvirtd", lambda: pod.call("GET", "/v1/status")[0] == 200)

    @contextlib.contextmanager
    def pods(self, guest_options, tls=False):
        """(VMI, source with a running guest, target)"""
        guest = labs.new_guest(**guest_options)
        made = []
        try:
            for n, node in enumerate(self.lab.nodes):
                pod = labs.Pod(node, f"virt-launcher-{n}", guest)
                made.append(pod)
                self.wire(pod)
                if tls:
                    self.use_tls(pod)
                if n == 0:
                    mark = self.lab.monitor.mark()
                    pod.ok("PUT", "/v1/vm", {"vmi": guest})
                    self.lab.share_cache(pod)
                    self.lab.monitor.wait_beats(50, 60, mark)
            yield guest, *made
        finally:
            for pod in made:
                pod.end(0)

    @staticmethod
    def uri(pod):
        return f"qemu+unix:///session?socket={pod.dir}/libvirt/libvirt-sock"

    # ---- the ways ------------------------------------------------------------------------------

    def virsh(self, guest, source, target, *extra):
        meta = guest["metadata"]
        begin = time.monotonic()
        self.run("virsh", "-q", "-c", self.uri(source), "migrate", "--live", "--persistent", *extra, "--domain",
                 f"{meta['namespace']}_{meta['name']}", timeout=300)
        return time.monotonic() - begin

    def plain(self, guest, source, target):
        return self.virsh(guest, source, target, "--desturi", self.uri(target), "--migrateuri",
                          f"tcp://{self.subnet(target.node, 2)}:49152"), 0.0

    def tls(self, guest, source, target):
        return self.virsh(guest, source, target, "--tls", "--desturi", self.uri(target), "--migrateuri",
                          f"tcp://{self.subnet(target.node, 2)}:49152"), 0.0

    def socat(self, guest, source, target):
        """As a careful operator would: large copies, and the kernel's own buffers."""
        processes = []
        channels = (("control", 7001, os.path.join(target.dir, "libvirt/libvirt-sock")),
                    ("memory", 7002, os.path.join(target.dir, "m/memory.sock")))
        for name, port, there in channels:
            here = os.path.join(source.dir, f"m/{name}.sock")
            for node, listen, connect in (
                    (target.node, f"TCP-LISTEN:{port},bind={target.node.address},reuseaddr,fork", f"UNIX-CONNECT:{there}"),
                    (source.node, f"UNIX-LISTEN:{here},fork,user={labs.VM_USER}",
                     f"TCP:{target.node.address}:{port},nodelay")):
                processes.append(subprocess.Popen(["ip", "netns", "exec", node.netns, "socat", "-b", "262144", listen, connect],
                                                  start_new_session=True))
            labs.wait_for("socat", lambda h=here: os.path.exists(h))
        inside = "/var/run/kubevirt/migrationproxy"
        try:
            seconds = self.virsh(guest, source, target, "--p2p", "--desturi",
                                 f"qemu+unix:///session?socket={inside}/control.sock", "--migrateuri",
                                 f"unix://{inside}/memory.sock")
        finally:
            time.sleep(0.1)
            used = sum(cpu(self.session(p.pid)) for p in processes)
            for p in processes:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
        return seconds, used

    @staticmethod
    def session(pid):
        """Processes of a session."""
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError, IndexError, ValueError):
                if entry.isdigit() and int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[3]) == pid:
                    found.append(int(entry))
        return found

    def ferry(self, guest, source, target, options=None, meanwhile=lambda: time.sleep(0.01)):
        """As the handlers do it; the path's throughput is what the relay saw last time."""
        options = {"pathBytesPerS": self.path_rate(), **(options or {})}
        relays = [n.relay.pid for n in self.lab.nodes]
        before = cpu(relays)
        begin = time.monotonic()
        m = labs.Move(self.lab, guest, source, target, options, tls="ferry")
        while m.phase(source) not in ("succeeded", "failed"):
            meanwhile()
        seconds = time.monotonic() - begin
        used = cpu(relays) - before
        if m.wait_end_at_source(60)[0] == "succeeded" and m.wait_end(60) != ("succeeded", "succeeded"):
            raise RuntimeError(f"the move failed: {source.migration()}")
        self.last = m
        m.close()
        return seconds, used

    def path_rate(self):
        a, b = self.lab.nodes
        return a.relay_ok("GET", f"/v1/paths/{b.name}").get("lastBytesPerS", 0) or self.mbit * 1000000 // 8 * 95 // 100

    # ---- measuring -----------------------------------------------------------------------------

    def job(self, pod, guest):
        """libvirt's figures of the completed move, from the source."""
        meta = guest["metadata"]
        text = self.run("virsh", "-q", "-c", self.uri(pod), "domjobinfo", "--completed", "--keep-completed", "--rawstats",
                        f"{meta['namespace']}_{meta['name']}", capture_output=True, text=True, check=False).stdout
        return {k.strip(): v.strip() for k, v in (line.split(":", 1) for line in text.splitlines() if ":" in line)}

    def check(self, mark):
        """The guest lost nothing."""
        pages, bad = self.lab.monitor.verify()
        broken = self.lab.monitor.broken_sequence(mark)
        if bad or broken or self.lab.monitor.bad_pages():
            raise RuntimeError(f"{bad} of {pages} pages are bad; heartbeat broken at {broken}")

    def transport(self, way):
        with self.pods(GUEST, tls=way == "tls") as (guest, source, target):
            mark, link = self.lab.monitor.mark(), Link(source.node)
            before = cpu(source.children("qemu"))
            seconds, used = getattr(self, way)(guest, source, target)
            sent, data = link.stop()
            self.lab.monitor.wait_beats(3, 60)
            job = self.job(source, guest)
            row = {"total": seconds, "data": data, "gap": self.lab.monitor.worst_gap(mark) * 1000,
                   "downtime": float(source.migration().get("downtimeMs", job.get("downtime", -1))), "bytes": sent,
                   "cpu": used}
            self.check(mark)
            return row

    def queue(self):
        """Bytes that QEMU has handed over and that have not come out yet, while a guest is moved."""
        held, windows, rtts = [], [], []

        def look():
            # the target first: what passes between the two looks makes the figure larger, not smaller
            out = {s["move"]: s for s in self.lab.nodes[1].relay_ok("GET", "/v1/streams")["streams"] if s["channel"] == 49152}
            for s in self.lab.nodes[0].relay_ok("GET", "/v1/streams")["streams"]:
                if s["channel"] == 49152 and s["move"] in out and s["bytesOut"] > 4 * MIB:
                    held.append(s["bytesOut"] - out[s["move"]]["bytesIn"])
                    windows.append(out[s["move"]]["windowBytes"])
                    rtts.append(s["rttUs"])
            time.sleep(0.02)

        with self.pods(GUEST) as (guest, source, target):
            mark, link = self.lab.monitor.mark(), Link(source.node)
            self.ferry(guest, source, target, meanwhile=look)
            sent, data = link.stop()
            self.lab.monitor.wait_beats(3, 60)
            rate = sent / data
            row = {"held": statistics.median(held), "held_max": max(held), "window": statistics.median(windows),
                   "rtt_loaded_ms": statistics.median(rtts) / 1000, "rate": rate, "looks": len(held),
                   "gap": self.lab.monitor.worst_gap(mark) * 1000}
            self.check(mark)
            return row

    def converge(self, strategy, allowed):
        options = {"strategy": strategy, **ALLOWED[allowed]}
        with self.pods(BUSY) as (guest, source, target):
            mark = self.lab.monitor.mark()
            seconds, _ = self.ferry(guest, source, target, options)
            self.lab.monitor.wait_beats(3, 60)
            end = source.migration()
            row = {"total": seconds, "gap": self.lab.monitor.worst_gap(mark) * 1000, "downtime": end.get("downtimeMs", -1),
                   "end": end["mode"] if end["phase"] == "succeeded" else end["reasonCode"]}
            self.check(mark)
            return row

    def plan(self, kind):
        options = {"allowPostCopy": True, "allowWorkloadDisruption": True, "pathBytesPerS": self.path_rate()}
        with self.pods(PLANNED[kind]) as (guest, source, target):
            plan = source.ok("POST", "/v1/plan", {"options": options})
            mark = self.lab.monitor.mark()
            seconds, _ = self.ferry(guest, source, target, options)
            self.lab.monitor.wait_beats(3, 60)
            end = source.migration()
            samples = [r for r in source.record(self.last.uid) if r["type"] == "sample"]
            row = {"plan": plan, "total": seconds, "gap": self.lab.monitor.worst_gap(mark) * 1000, "mode": end["mode"],
                   "downtime": end.get("downtimeMs", -1), "rounds": max(s["iteration"] for s in samples),
                   "path": options["pathBytesPerS"]}
            self.check(mark)
            return row


# ---- what is done, and the tables -------------------------------------------------------------------

WAYS = ("plain", "tls", "socat", "ferry")
ALLOWED = {
    "post-copy": {"allowPostCopy": True, "allowWorkloadDisruption": True},
    "pause": {"allowWorkloadDisruption": True},
    "nothing": {},
}


def steps(part, args):
    """What one round of a part consists of."""
    if part == "transport":
        order = [("transport", way) for way in WAYS]
        random.shuffle(order)
        return order
    if part == "queue":
        return [("queue",)]
    if part == "converge":
        return [("converge", strategy, allowed) for allowed in args.allow.split(",") for strategy in args.strategies.split(",")]
    return [("plan", kind) for kind in PLANNED]


def spread(values, digits=0):
    if not values:
        return "-"
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def ratios(rows, way, key):
    """To `plain`, within a round."""
    by_round = {(r["round"], r["step"][1]): r for r in rows}
    return [r[key] / by_round[(r["round"], "plain")][key] for r in rows
            if r["step"][1] == way and (r["round"], "plain") in by_round]


def print_transport(rows):
    rounds = len({r["round"] for r in rows})
    print(f"\n### The same guest four ways, {rows[0]['mbit']} Mbit/s, {rounds} interleaved runs\n")
    print("| | total s | data phase s | ratio | reported downtime ms | heartbeat gap ms | ratio | MiB on the link | CPU of the transport s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for way in WAYS:
        mine = [r for r in rows if r["step"][1] == way]
        col = lambda key: [r[key] for r in mine]
        print(f"| {way} | {spread(col('total'), 2)} | {spread(col('data'), 2)} | {spread(ratios(rows, way, 'data'), 2)} "
              f"| {spread(col('downtime'))} | {spread(col('gap'))} | {spread(ratios(rows, way, 'gap'), 2)} "
              f"| {spread([b / MIB for b in col('bytes')], 1)} | {spread(col('cpu'), 2)} |")


def print_queue(rows):
    print("\n### Bytes held by a relay pair while the link is full\n")
    print("| link | delay, both ways ms | bandwidth-delay product KiB | window KiB | held KiB, median | most | the most, as time on the link ms |\n|---|---|---|---|---|---|---|")
    for key in sorted({(r["mbit"], r["delay"]) for r in rows}):
        mine = [r for r in rows if (r["mbit"], r["delay"]) == key]
        product = statistics.median(r["rate"] for r in mine) * key[1] * 2 / 1000
        most = [r["held_max"] / 1024 for r in mine]
        print(f"| {key[0]} Mbit/s | {key[1] * 2:g} | {product / 1024:.0f} | {spread([r['window'] / 1024 for r in mine])} "
              f"| {spread([r['held'] / 1024 for r in mine])} | {spread(most)} | {spread([r['held_max'] / r['rate'] * 1000 for r in mine])} |")


def print_converge(rows):
    print(f"\n### A guest that dirties 60 MiB/s, on {rows[0]['mbit']} Mbit/s\n")
    print("| allowed | strategy | runs | total s | end | heartbeat gap ms | time, of kubevirt's |\n|---|---|---|---|---|---|---|")
    for allowed in ALLOWED:
        of = {s: [r for r in rows if r["step"][1:] == [s, allowed]] for s in ("kubevirt", "ferry")}
        for strategy, mine in of.items():
            if not mine:
                continue
            base = statistics.median(r["total"] for r in of["kubevirt"]) if of["kubevirt"] else 0
            ratio = f"{statistics.median(r['total'] for r in mine) / base:.2f}" if base else "-"
            print(f"| {allowed} | {strategy} | {len(mine)} | {spread([r['total'] for r in mine], 1)} | {', '.join(sorted({r['end'] for r in mine}))} "
                  f"| {spread([r['gap'] for r in mine])} | {ratio} |")


def print_plan(rows):
    print("\n### Planned, and what then happened\n")
    print("| guest | sampled dirty rate MiB/s | planned s | took s | off by | planned rounds | rounds | planned downtime ms | heartbeat gap ms |\n|---|---|---|---|---|---|---|---|---|")
    for kind in PLANNED:
        mine = [r for r in rows if r["step"][1] == kind]
        if not mine:
            continue
        of = lambda field: [r["plan"].get("expected", r["plan"]["low"])[field] for r in mine]
        off = [r["plan"].get("expected", r["plan"]["low"])["totalMs"] / 1000 / r["total"] * 100 - 100 for r in mine]
        print(f"| {kind} | {spread([r['plan']['dirtyBytesPerS'] / MIB for r in mine])} | {spread([ms / 1000 for ms in of('totalMs')], 1)} "
              f"| {spread([r['total'] for r in mine], 1)} | {statistics.median(off):+.0f} % [{min(off):+.0f}..{max(off):+.0f}] "
              f"| {spread(of('rounds'))} | {spread([r['rounds'] for r in mine])} | {spread(of('downtimeMs'))} | {spread([r['gap'] for r in mine])} |")


PARTS = {"transport": print_transport, "queue": print_queue, "converge": print_converge, "plan": print_plan}


def measure(args, out):
    with Bench(args.build.resolve(), args.mbit, args.delay) as bench:
        for part in args.part:
            for n in range(args.converge_runs if part == "converge" else args.runs):
                for step in steps(part, args):
                    print(f"\r{part}: round {n + 1} {' '.join(step[1:]):<20}", end="", file=sys.stderr)
                    row = getattr(bench, step[0])(*step[1:])
                    row |= {"part": part, "step": step, "round": f"{os.getpid()}.{n}", "mbit": args.mbit, "delay": args.delay}
                    print(json.dumps(row), file=out, flush=True)
            print(file=sys.stderr)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--part", action="append", choices=PARTS)
    ap.add_argument("--runs", type=int, default=10, help="rounds of each part")
    ap.add_argument("--converge-runs", type=int, default=1, help="rounds of part converge, which takes long")
    ap.add_argument("--mbit", type=int, default=200, help="what the link carries")
    ap.add_argument("--delay", type=float, default=0, help="milliseconds that the link takes, one way")
    ap.add_argument("--allow", default="post-copy,pause", help="of part converge: post-copy, pause, nothing")
    ap.add_argument("--strategies", default="kubevirt,ferry", help="of part converge")
    ap.add_argument("--into", type=pathlib.Path, help="file of results")
    ap.add_argument("--report", action="store_true", help="only print the tables of FILE")
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as tmp:
        path = args.into or pathlib.Path(tmp) / "results"
        if not args.report:
            args.part = args.part or list(PARTS)
            with open(path, "a") as out:
                measure(args, out)
        rows = [json.loads(line) for line in open(path)]
    for part, show in PARTS.items():
        mine = [r for r in rows if r["part"] == part]
        if mine:
            show(mine)


main()
