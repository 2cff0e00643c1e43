#!/usr/bin/env python3
"""Ferry's relay beside other TLS relays, in one run on one machine.

    bench/relay.py BUILD_DIR [--gib N] [--runs N] [--only PEER,...] [--parts PART,...] [--save FILE] [--into FILE] [--also NAME=RELAY]

Parts: 1m, 32k (one connection, writes of that size), 4x (four connections, 1 MiB writes), idle, beside (round trips of 64
bytes alone and beside a saturating stream), memory. With --save the rounds are added to those that FILE has, and the tables
are of all of them: so a long run can be made in pieces. --runs 0 only prints what FILE has. --into puts what is
printed into a document, between the comments that say so there. --also puts another ferry-relay
beside, for changes to be judged in the same rounds.

Path: load -> unix socket -> source relay -> TLS 1.3 over loopback TCP -> target relay -> unix socket -> sink, source and
target as separate processes. Rounds are shuffled, every peer once a round; a ratio to KubeVirt's proxy (or, without
a Go toolchain, to haproxy) is taken within a round, then the median over the rounds. All TLS peers use AES-128-GCM.
Prints Markdown tables. CPU = user and system time of both relays.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import relay_report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from figures import put_into  # noqa: E402
from peers import build_kubevirt_proxy  # noqa: E402

CIPHER = "TLS_AES_128_GCM_SHA256"
MOVE = "6f2c0d5e-7a53-4f0e-9a55-5f1f2a3b4c5d"


class Pair:
    """A running relay pair."""

    def __init__(self, work, source_socket):
        self.work, self.socket, self.processes = work, source_socket, {"source": [], "target": []}

    def start(self, side, argv, ready=None):
        log = open(self.work / f"{side}.log", "ab")
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.processes[side].append(p)
        deadline = time.monotonic() + 15
        while ready and not ready():
            if p.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{argv[0]} ({side}) did not start: {(self.work / (side + '.log')).read_text()[-800:]}")
            time.sleep(0.02)

    def sessions(self, side):
        return {p.pid for p in self.processes[side]}

    def usage(self, side):
        """CPU seconds, resident MiB and their peak, of all processes of a side."""
        ticks, kib = 0, {"VmRSS": 0, "VmHWM": 0}
        sessions = self.sessions(side)
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) not in sessions:
                    continue
                ticks += sum(int(f) for f in fields[11:15])
                for line in (entry / "status").read_text().splitlines():
                    if line.split(":")[0] in kib:
                        kib[line.split(":")[0]] += int(line.split()[1])
            except (OSError, IndexError):
                continue
        return ticks / os.sysconf("SC_CLK_TCK"), kib["VmRSS"] / 1024, kib["VmHWM"] / 1024

    def stop(self):
        for side in self.processes.values():
            for p in side:
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()


def tcp_listening(port):
    wanted = f"0100007F:{port:04X}"
    return any(l.split()[1] == wanted and l.split()[3] == "0A" for l in open("/proc/net/tcp") if ":" in l)


def tcp_free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Bench:
    def __init__(self, build, work):
        self.build, self.work = build, work
        self.pki = work / "pki"
        relay = build / "bin" / "ferry-relay"
        subprocess.run([relay, "pki", "init", "--dir", self.pki], check=True, stdout=subprocess.DEVNULL)
        for node in ("a", "b"):
            subprocess.run([relay, "pki", "node", node, "--dir", self.pki], check=True, stdout=subprocess.DEVNULL)
            (self.pki / f"{node}.pem").write_text((self.pki / f"{node}.crt").read_text() + (self.pki / f"{node}.key").read_text())
        self.sink_path = work / "sink.sock"
        self.sink = subprocess.Popen([build / "bench" / "relay_load", "sink", self.sink_path], stdout=subprocess.PIPE)
        self.sink.stdout.readline()
        self.port = 20000 + os.getpid() % 20000

    def load(self, *args):
        out = subprocess.run([self.build / "bench" / "relay_load", *map(str, args)], capture_output=True, text=True, timeout=600)
        if out.returncode != 0:
            raise RuntimeError(f"{out.stderr.strip()}: {self.logs()}")
        return json.loads(out.stdout)

    def logs(self):
        """The last words of the pair that runs."""
        last = max(self.work.glob("*/source.log"), key=lambda p: p.stat().st_mtime).parent
        return {p.name: p.read_text()[-800:] for p in last.glob("*.log")}

    # ---- the peers: each starts a pair ----------------------------------------------------------

    def pair(self, name):
        self.port += 1
        while not tcp_free(self.port):
            self.port += 1
        work = self.work / f"{name}-{self.port}"
        work.mkdir()
        return Pair(work, work / "in.sock"), self.port

    def ferry(self, name, *mode, relay=None):
        pair, port = self.pair(name)
        relay, pki = relay or self.build / "bin" / "ferry-relay", self.pki
        identity = lambda me, other: ["--ca", pki / "ca.crt", "--cert", pki / f"{me}.crt", "--key", pki / f"{me}.key",
                                      "--node", me, "--peer-node", other, "--move", MOVE, "--channel", "49152"]
        target = [relay, "target", "--listen", f"127.0.0.1:{port}", "--connect", f"unix:{self.sink_path}"]
        source = [relay, "source", "--listen", f"unix:{pair.socket}", "--connect", f"127.0.0.1:{port}"]
        if "--plain" in mode:
            target += ["--plain", "--peer-address", "127.0.0.1", "--move", MOVE, "--channel", "49152"]
            source += ["--plain", "--move", MOVE, "--channel", "49152"]
        else:
            target += identity("b", "a") + list(mode)
            source += identity("a", "b") + list(mode)
        pair.start("target", target, lambda: tcp_listening(port))
        pair.start("source", source, pair.socket.exists)
        return pair

    def kubevirt(self):
        pair, port = self.pair("kubevirt")
        exe, pki = self.build / "bench" / "kubevirt-proxy", self.pki
        pair.start("target", [exe, "target", "127.0.0.1", str(port), self.sink_path, pki / "ca.crt", pki / "b.crt", pki / "b.key"],
                   lambda: tcp_listening(port))
        pair.start("source", [exe, "source", pair.socket, f"127.0.0.1:{port}", pki / "ca.crt", pki / "a.crt", pki / "a.key"],
                   pair.socket.exists)
        return pair

    def haproxy(self):
        pair, port = self.pair("haproxy")
        head = ("global\n nbthread 1\n maxconn 200\n tune.bufsize 131072\n"
                f" ssl-default-bind-ciphersuites {CIPHER}\n ssl-default-server-ciphersuites {CIPHER}\n"
                "defaults\n mode tcp\n timeout connect 5s\n timeout client 10m\n timeout server 10m\n")
        tls = lambda node: f"crt {self.pki}/{node}.pem ca-file {self.pki}/ca.crt verify required ssl-min-ver TLSv1.3"
        (pair.work / "target.cfg").write_text(head + f"listen t\n bind 127.0.0.1:{port} ssl {tls('b')}\n server s unix@{self.sink_path}\n")
        (pair.work / "source.cfg").write_text(head + f"listen s\n bind unix@{pair.socket}\n server t 127.0.0.1:{port} ssl {tls('a')}\n")
        pair.start("target", ["haproxy", "-db", "-f", pair.work / "target.cfg"], lambda: tcp_listening(port))
        pair.start("source", ["haproxy", "-db", "-f", pair.work / "source.cfg"], pair.socket.exists)
        return pair

    def stunnel(self):
        pair, port = self.pair("stunnel")
        head = f"foreground = yes\nsyslog = no\ndebug = 3\npid =\nciphersuites = {CIPHER}\nsslVersionMin = TLSv1.3\n"
        tls = lambda node: f"cert = {self.pki}/{node}.pem\nCAfile = {self.pki}/ca.crt\nverifyChain = yes\n"
        (pair.work / "target.cfg").write_text(head + f"[t]\naccept = 127.0.0.1:{port}\nconnect = {self.sink_path}\n" + tls("b"))
        (pair.work / "source.cfg").write_text(head + f"[s]\nclient = yes\naccept = {pair.socket}\nconnect = 127.0.0.1:{port}\n" + tls("a"))
        pair.start("target", ["stunnel4", pair.work / "target.cfg"], lambda: tcp_listening(port))
        pair.start("source", ["stunnel4", pair.work / "source.cfg"], pair.socket.exists)
        return pair

    def socat(self):
        pair, port = self.pair("socat")
        tls = lambda node: f"cert={self.pki}/{node}.pem,cafile={self.pki}/ca.crt,verify=1,openssl-min-proto-version=TLS1.3"
        pair.start("target", ["socat", "-b", "262144", f"OPENSSL-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,{tls('b')}",
                              f"UNIX-CONNECT:{self.sink_path}"], lambda: tcp_listening(port))
        pair.start("source", ["socat", "-b", "262144", f"UNIX-LISTEN:{pair.socket},fork",
                              f"OPENSSL:127.0.0.1:{port},commonname=,no-sni=1,{tls('a')}"], pair.socket.exists)
        return pair

    def peers(self):
        peers = {"ferry/1": lambda: self.ferry("ferry"), "ferry raw TLS": lambda: self.ferry("raw", "--protocol", "raw"),
                 "ferry plain": lambda: self.ferry("plain", "--plain")}
        try:
            build_kubevirt_proxy(self.build)
            peers["kubevirt"] = self.kubevirt
        except RuntimeError as e:
            print(f"left out: {e}", file=sys.stderr)
        for name, program in (("haproxy", "haproxy"), ("stunnel", "stunnel4"), ("socat", "socat")):
            if shutil.which(program):
                peers[name] = getattr(self, name)
            else:
                print(f"{name} is not installed, left out", file=sys.stderr)
        return peers

    # ---- measurements ------------------------------------------------------------------------------

    def bulk(self, start, size, write, connections):
        pair = start()
        try:
            before = [pair.usage(s)[0] for s in ("source", "target")]
            seconds = self.load("send", pair.socket, size, write, connections)["seconds"]
            time.sleep(0.05)
            after = [pair.usage(s) for s in ("source", "target")]
            gib = size / (1 << 30)
            cpu = [(a[0] - b) / gib for a, b in zip(after, before)]
            return {"MiB/s": size / (1 << 20) / seconds, "cpu_source": cpu[0], "cpu_target": cpu[1], "cpu": sum(cpu),
                    "rss_source": after[0][2], "rss_target": after[1][2]}
        finally:
            pair.stop()

    def idle_memory(self, start):
        pair = start()
        try:
            time.sleep(0.2)
            return {f"rss_{s}": pair.usage(s)[1] for s in ("source", "target")}
        finally:
            pair.stop()

    def pings(self, start, beside_bulk):
        pair = start()
        bulk = None
        try:
            if beside_bulk:
                bulk = subprocess.Popen([self.build / "bench" / "relay_load", "send", str(pair.socket), str(1 << 50), str(1 << 20), "1"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                time.sleep(0.3)
            row = self.load("ping", pair.socket, 2000)
            if bulk:
                bulk.terminate()
                sent = json.loads(bulk.communicate(timeout=60)[0])
                row["bulk"] = sent["bytes"] / (1 << 20) / sent["seconds"]
            return row
        finally:
            if bulk:
                bulk.kill()
                bulk.wait()
            pair.stop()


def rounds(peers, runs, label, measure):
    """One row a peer and round; peers in another order each round."""
    results = {name: [] for name in peers}
    for n in range(runs):
        order = list(peers)
        random.shuffle(order)
        for name in order:
            print(f"\r{label}: round {n + 1}/{runs} {name:<16}", end="", file=sys.stderr)
            results[name].append(measure(peers[name]))
    print(file=sys.stderr)
    return results


def floor(build):
    """Bytes a second of AES-128-GCM on this machine, by OpenSSL and by what ferry uses."""
    return json.loads(subprocess.run([build / "bench" / "gcm_speed"], check=True, capture_output=True, text=True).stdout)


def machine(gib):
    """What a reader of the tables must know."""
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown CPU")
    return {"gib": gib, "load": os.getloadavg()[0], "cpu": model, "cores": os.cpu_count(), "kernel": os.uname().release.split("-")[0],
            "openssl": subprocess.run(["openssl", "version"], capture_output=True, text=True).stdout.split(" (")[0].strip()}


def measure(args, parts):
    """Rows by part and peer."""
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as tmp:
        bench = Bench(args.build.resolve(), pathlib.Path(tmp))
        try:
            peers = bench.peers()
            for name, relay in (also.split("=", 1) for also in args.also):
                peers[name] = lambda name=name, relay=relay: bench.ferry(name, relay=relay)
            if args.only:
                peers = {k: v for k, v in peers.items() if k in args.only.split(",") or any(a.startswith(k + "=") for a in args.also)}
            size = int(args.gib * (1 << 30))
            how = {
                "1m": lambda s: bench.bulk(s, size, 1 << 20, 1), "32k": lambda s: bench.bulk(s, size, 32 << 10, 1),
                "4x": lambda s: bench.bulk(s, size, 1 << 20, 4), "idle": lambda s: bench.pings(s, False),
                "beside": lambda s: bench.pings(s, True), "memory": bench.idle_memory,
            }
            return {part: rounds(peers, args.runs, part, how[part]) for part in parts}
        finally:
            bench.sink.kill()
            bench.sink.wait()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--gib", type=float, default=2)
    ap.add_argument("--runs", type=int, default=5)
    ap.add_argument("--only", help="comma-separated names of peers")
    ap.add_argument("--parts", default=",".join(relay_report.TITLES), help="comma-separated, see above")
    ap.add_argument("--also", action="append", default=[], metavar="NAME=RELAY")
    ap.add_argument("--save", type=pathlib.Path, help="JSON file that results are added to")
    ap.add_argument("--into", type=pathlib.Path, help="document to put the tables into")
    args = ap.parse_args()
    parts = args.parts.split(",")
    if set(parts) - set(relay_report.TITLES):
        ap.error(f"parts are {', '.join(relay_report.TITLES)}")
    kept = json.loads(args.save.read_text()) if args.save and args.save.exists() else {}
    if args.runs > 0:
        kept["floor"] = kept.get("floor") or floor(args.build)
        kept["machine"] = kept.get("machine") or machine(args.gib)
        for part, rows in measure(args, parts).items():
            for name, more in rows.items():
                kept.setdefault(part, {}).setdefault(name, []).extend(more)
        if args.save:
            args.save.write_text(json.dumps(kept))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        relay_report.show(kept)
    print(text.getvalue(), end="")
    if args.into:
        put_into(args.into, "bench-relay", text.getvalue())


main()
