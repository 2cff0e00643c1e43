"""What the benchmarks of moves share: two nodes with a shaped link, real guests in real sandboxes, and the ways in which one
of them can be moved: by libvirt alone, through other transports, and by launchers and relays of Ferry."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "tests" / d) for d in ("vm", "lib")]
import lab as labs  # noqa: E402

MIB = 1 << 20
TICK = os.sysconf("SC_CLK_TCK")


class Link:
    """Bytes that a node has sent on an interface, as a series over time. `pid`: of a process of that node."""

    def __init__(self, pid, interface="eth0", step=0.004):
        self.path, self.interface = f"/proc/{pid}/net/dev", interface
        self.step, self.points, self.over = step, [(time.monotonic(), self.sent())], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def sent(self):
        for line in open(self.path):
            if line.strip().startswith(self.interface + ":"):
                return int(line.split(":")[1].split()[8])
        raise RuntimeError(f"no {self.interface}")

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


class Rig:
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

    def reshape(self, mbit):
        self.mbit = mbit
        self.lab.nodes[0].shape(mbit)

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
                    self.lab.monitor.wait_beats(50, 240, mark)
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
        copy = ["socat", "-b", "262144"]
        return self.through(guest, source, target, lambda port, there: copy + [
            f"TCP-LISTEN:{port},bind={target.node.address},reuseaddr,fork", f"UNIX-CONNECT:{there}"], lambda here, port: copy + [
                f"UNIX-LISTEN:{here},fork", f"TCP:{target.node.address}:{port},nodelay"])

    def proxy(self, guest, source, target):
        """KubeVirt's own migration proxy at both ends."""
        exe = os.path.join(self.lab.build, "bench/kubevirt-proxy")
        pki = os.path.join(self.lab.root, "pki")
        papers = lambda node: [f"{pki}/ca.crt", f"{pki}/{node.name}.crt", f"{pki}/{node.name}.key"]
        return self.through(guest, source, target,
                            lambda port, there: [exe, "target", target.node.address, str(port), there, *papers(target.node)],
                            lambda here, port: [exe, "source", here, f"{target.node.address}:{port}", *papers(source.node)])

    def through(self, guest, source, target, at_target, at_source):
        """libvirt, peer to peer, over sockets that processes of others lead to the target."""
        processes = []
        start = lambda node, argv: processes.append(subprocess.Popen(
            ["ip", "netns", "exec", node.netns, *argv], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        channels = (("control", 7001, os.path.join(target.dir, "libvirt/libvirt-sock")),
                    ("memory", 7002, os.path.join(target.dir, "m/memory.sock")))
        inside = "/var/run/kubevirt/migrationproxy"
        try:
            for name, port, there in channels:
                here = os.path.join(source.dir, f"m/{name}.sock")
                start(target.node, at_target(port, there))
                start(source.node, at_source(here, port))
                labs.wait_for(f"the transport's socket {here}", lambda h=here: os.path.exists(h))
                os.chown(here, labs.VM_USER, labs.VM_USER)
            self.wait_listening(target.node, [port for _, port, _ in channels])
            seconds = self.virsh(guest, source, target, "--p2p", "--desturi",
                                 f"qemu+unix:///session?socket={inside}/control.sock", "--migrateuri",
                                 f"unix://{inside}/memory.sock")
            time.sleep(0.1)
            used = sum(cpu(self.session(p.pid)) for p in processes)
        finally:
            for p in processes:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
        return seconds, used

    @staticmethod
    def wait_listening(node, ports):
        def listening():
            lines = [line.split() for line in open(f"/proc/{node.relay.pid}/net/tcp")][1:]
            return {int(f[1].split(":")[1], 16) for f in lines if f[3] == "0A"} >= set(ports)
        labs.wait_for(f"ports {ports}", listening)

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
        pages, bad = self.lab.monitor.verify(240)
        broken = self.lab.monitor.broken_sequence(mark)
        if bad or broken or self.lab.monitor.bad_pages():
            raise RuntimeError(f"{bad} of {pages} pages are bad; heartbeat broken at {broken}")

    def timed(self, way, options):
        """A move of a fresh guest, one way: a row of figures."""
        with self.pods(options, tls=way == "tls") as (guest, source, target):
            mark, link = self.lab.monitor.mark(), Link(source.node.relay.pid)
            seconds, used = getattr(self, way)(guest, source, target)
            sent, data = link.stop()
            self.lab.monitor.wait_beats(3, 60)
            job = self.job(source, guest)
            row = {"total": seconds, "data": data, "gap": self.lab.monitor.worst_gap(mark) * 1000,
                   "downtime": float(source.migration().get("downtimeMs", job.get("downtime", -1))), "bytes": sent,
                   "cpu": used}
            self.check(mark)
            return row

    def steered(self, guest_options, options):
        """A move by launchers with these options: a row of figures."""
        with self.pods(guest_options) as (guest, source, target):
            mark = self.lab.monitor.mark()
            seconds, _ = self.ferry(guest, source, target, options)
            self.lab.monitor.wait_beats(3, 60)
            end = source.migration()
            row = {"total": seconds, "gap": self.lab.monitor.worst_gap(mark) * 1000, "downtime": end.get("downtimeMs", -1),
                   "end": end["mode"] if end["phase"] == "succeeded" else end["reasonCode"]}
            self.check(mark)
            return row
