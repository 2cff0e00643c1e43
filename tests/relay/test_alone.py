"""ferry-relay source and target without a node agent, on the loopback."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from flow import both_ways  # noqa: E402
from lab import DEADLINE_S, RELAY, Lab, ended, read_all, run, running, wait_for  # noqa: E402

SIZE = 3 * 1024 * 1024 + 77
PROXY = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers" / "kubevirt-proxy"


class Program:
    """A relay, or what stands for one, and what it wrote."""

    def __init__(self, lab, name, *argv):
        self.log_path = os.path.join(lab.dir, f"{name}-{len(lab.relays)}.log")
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log_file, text=True)
        self.pid = self.process.pid  # its successor's, after an upgrade
        lab.relays.append(self)

    def first_line(self):
        line = self.process.stdout.readline().strip()
        if not line.startswith("listening "):
            raise AssertionError(f"'{line}'\n{self.log()}")
        return line[len("listening "):]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_log(self, *words):
        try:
            wait_for(f"{words}", lambda: any(all(w in l for w in words) for l in self.log().splitlines()))
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.log()}") from None

    def upgrade(self):
        """SIGUSR2; its successor says by which pid it goes on."""
        before = self.log().count("the successor has taken over pid=")
        os.kill(self.pid, signal.SIGUSR2)
        wait_for("a successor", lambda: self.log().count("the successor has taken over pid=") > before, 90)
        self.pid = int(self.log().rsplit("the successor has taken over pid=", 1)[1].split()[0])

    def signal(self, sig):
        try:
            os.kill(self.pid, sig)
        except ProcessLookupError:
            pass

    def alive(self):
        return self.process.poll() is None or running(self.pid)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.kill()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()

    def stop(self):
        while self.alive():
            self.signal(signal.SIGTERM)
            time.sleep(0.1)
        self.log_file.close()
        if any(word in self.log() for word in ("Sanitizer", "runtime error:")):
            raise AssertionError(self.log())


class Pairs(unittest.TestCase):
    """Starts sources and targets, and uses them."""

    count = 0

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(namespaces=False)
        for node in "ab":
            cls.lab.pki.good(node)
            run(RELAY, "pki", "node", node, "--dir", cls.lab.pki.dir, "--kubevirt-names")

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def papers(self, me, other, name=None):
        path = self.lab.pki.path
        return ["--ca", path("ca.crt"), "--cert", path(f"{name or me}.crt"), "--key", path(f"{name or me}.key"),
                "--node", me, "--peer-node", other, "--move", "m1"]

    def paths(self):
        Pairs.count += 1
        return (os.path.join(self.lab.dir, f"in-{Pairs.count}.sock"), os.path.join(self.lab.dir, f"out-{Pairs.count}.sock"))

    def target(self, out, *more, listen="127.0.0.1:0", papers=None):
        p = Program(self.lab, "target", RELAY, "target", "--listen", listen, "--connect", f"unix:{out}",
                    *(papers if papers is not None else self.papers("b", "a")), *more)
        return p, p.first_line()

    def source(self, into, where, *more, papers=None):
        p = Program(self.lab, "source", RELAY, "source", "--listen", f"unix:{into}", "--connect", where,
                    *(papers if papers is not None else self.papers("a", "b")), *more)
        self.assertEqual(p.first_line(), f"unix:{into}")
        return p

    def pair(self, source=(), target=(), both=(), listen="127.0.0.1:0"):
        self.into, out = self.paths()
        self.listener = self.lab.listen(out)
        t, self.where = self.target(out, *both, *target, listen=listen)
        return self.source(self.into, self.where, *both, *source), t

    def connect(self):
        near = self.lab.connect(self.into)
        far, _ = self.listener.accept()
        far.settimeout(DEADLINE_S)
        self.lab.sockets.append(far)
        return near, far

    def both_ways(self, near, far):
        data = os.urandom(SIZE)
        t = threading.Thread(target=lambda: (near.sendall(data), near.shutdown(socket.SHUT_WR)))
        t.start()
        self.assertTrue(read_all(far) == data)
        t.join()
        t = threading.Thread(target=lambda: (far.sendall(data), far.shutdown(socket.SHUT_WR)))
        t.start()
        self.assertTrue(read_all(near) == data)
        t.join()


class Alone(Pairs):
    def test_every_way(self):
        plain = ["--plain", "--peer-address", "127.0.0.1"]
        for name, both in (("ferry", []), ("raw", ["--protocol", "raw"]), ("plain", plain)):
            with self.subTest(name):
                source, target = self.pair(both=both)
                self.both_ways(*self.connect())
                for p in (source, target):
                    p.process.send_signal(signal.SIGTERM)
                    self.assertEqual(p.process.wait(DEADLINE_S), 0, p.log())
                self.assertFalse(os.path.exists(self.into))

    def test_ipv6_and_interface(self):
        source, _ = self.pair(listen="[::1]:0")
        self.assertRegex(self.where, r"^\[::1\]:\d+$")
        self.both_ways(*self.connect())
        self.pair(listen="*:0", target=["--bind-interface", "lo"])
        self.assertTrue(self.where.startswith("127.0.0.1:"), self.where)
        self.both_ways(*self.connect())

    def test_plain_and_tls_do_not_mix(self):
        """Each is told by the other's first bytes; none of them get to the hypervisor."""
        plain = ["--plain", "--peer-address", "127.0.0.1"]
        for mode in (["--protocol", "raw"], []):
            with self.subTest(source="plain", target=mode):
                into, out = self.paths()
                listener = self.lab.listen(out)
                target, where = self.target(out, *mode)
                self.source(into, where, "--plain", papers=[])
                near = self.lab.connect(into)
                near.sendall(b"QEVM" + bytes(100))
                self.assertTrue(ended(near))
                target.wait_log("stream not opened", "it does not speak TLS")
                listener.settimeout(0.3)
                self.assertRaises(TimeoutError, listener.accept)
            with self.subTest(source=mode, target="plain"):
                into, out = self.paths()
                listener = self.lab.listen(out)
                target, where = self.target(out, *plain, papers=[])
                source = self.source(into, where, *mode)
                near = self.lab.connect(into)
                far, _ = listener.accept()
                self.lab.sockets.append(far)
                far.settimeout(DEADLINE_S)
                self.assertEqual(read_all(far), b"")
                target.wait_log("stream closed", "it speaks TLS, and this side plain TCP here", " warning ")
                if mode:  # ferry/1 dials again for a while
                    self.assertTrue(ended(near))
                    source.wait_log("stream not opened")

    def test_plain_from_elsewhere(self):
        into, out = self.paths()
        self.lab.listen(out)
        target, where = self.target(out, "--plain", "--peer-address", "127.0.0.9", papers=[])
        target.wait_log("without TLS", " warning ")
        s = socket.create_connection(where.split(":"), timeout=DEADLINE_S)
        self.assertTrue(ended(s))
        s.close()
        target.wait_log("only 127.0.0.9 may connect without TLS")

    def test_other_move(self):
        self.into, out = self.paths()
        self.listener = self.lab.listen(out)
        target, where = self.target(out, "--move", "m2")
        source = self.source(self.into, where)
        self.assertTrue(ended(self.lab.connect(self.into)))
        source.wait_log("stream not opened", "move m1 is not known here")
        target.wait_log("connection refused", "move m1 is not known here")

    def test_target_started_anew(self):
        """What it knew of the stream is gone: both ends are closed, and the reason is told."""
        source, target = self.pair()
        near, far = self.connect()
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        target.kill()
        self.assertTrue(ended(far))
        again, _ = self.target(os.path.join(self.lab.dir, f"out-{Pairs.count}.sock"), listen=self.where)
        self.assertTrue(ended(near))
        source.wait_log("stream closed", "state lost", "stream is not known here")
        again.wait_log("connection refused", "stream is not known here")
        near, far = self.connect()  # and the next stream is a good one
        self.both_ways(near, far)

    def test_rate(self):
        self.pair(source=["--rate", "4M"])
        near, far = self.connect()
        t = threading.Thread(target=lambda: (near.sendall(bytes(6 << 20)), near.shutdown(socket.SHUT_WR)))
        begin = time.monotonic()
        t.start()
        self.assertEqual(len(read_all(far)), 6 << 20)
        took = time.monotonic() - begin
        t.join()
        self.assertGreater(took, 1.0)

    def test_kubevirt_names(self):
        """Raw TLS with the certificates that KubeVirt's proxy checks, by common name."""
        server, client = "kubevirt.io:system:node:virt-handler", "kubevirt.io:system:client:migration"
        path = self.lab.pki.path
        def papers(name, cn):
            return ["--ca", path("ca.crt"), "--cert", path(f"{name}.crt"), "--key", path(f"{name}.key"), "--peer-cn", cn,
                    "--protocol", "raw"]
        into, out = self.paths()
        self.listener, self.into = self.lab.listen(out), into
        _, where = self.target(out, papers=papers("b-server", client))
        self.source(into, where, papers=papers("a-client", server))
        self.both_ways(*self.connect())
        other, _ = self.paths()
        wrong = self.source(other, where, papers=papers("a-client", client))
        self.assertTrue(ended(self.lab.connect(other)))
        wrong.wait_log("stream not opened", f"wrong common name ('{server}', expected '{client}')")

    def proxy(self):
        if not shutil.which("go"):
            self.skipTest("no Go toolchain")
        exe = os.path.join(self.lab.dir, "kubevirt-proxy")
        try:
            built = subprocess.run(["go", "build", "-mod=mod", "-o", exe, "."], cwd=PROXY, capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            self.skipTest("KubeVirt's proxy is not built yet")
        if built.returncode != 0:
            self.skipTest("KubeVirt's proxy cannot be built here")
        return exe

    def test_kubevirt_proxy(self):
        """KubeVirt's own proxy at the other end. It has no half-close: the first end ends all."""
        exe = self.proxy()
        path = self.lab.pki.path
        port = 30000 + os.getpid() % 20000
        into, out = self.paths()
        self.listener, self.into = self.lab.listen(out), into
        p = Program(self.lab, "kubevirt", exe, "target", "127.0.0.1", port, out, path("ca.crt"), path("b.crt"), path("b.key"))
        wait_for(f"KubeVirt's proxy listens\n{p.log()}", lambda: self.listens(port))
        source = self.source(into, f"127.0.0.1:{port}", "--protocol", "raw")
        self.one_way(*self.connect())
        ferry, _ = self.paths()
        wrong = self.source(ferry, f"127.0.0.1:{port}")
        self.assertTrue(ended(self.lab.connect(ferry)))
        wrong.wait_log("stream not opened", "does not speak ferry/1")
        self.into, out = self.paths()
        self.listener = self.lab.listen(out)
        _, where = self.target(out, "--protocol", "raw")
        Program(self.lab, "kubevirt", exe, "source", self.into, where, path("ca.crt"), path("a.crt"), path("a.key"))
        wait_for("its socket is there", lambda: os.path.exists(self.into))
        self.one_way(*self.connect())
        source.process.terminate()

    @staticmethod
    def listens(port):
        """Without connecting: KubeVirt's proxy dials the hypervisor's side for anybody."""
        with open("/proc/net/tcp") as f:
            return any(l.split()[1] == f"0100007F:{port:04X}" and l.split()[3] == "0A" for l in f)

    def one_way(self, near, far):
        data = os.urandom(SIZE)
        t = threading.Thread(target=lambda: near.sendall(data))
        t.start()
        got = b""
        while len(got) < SIZE:
            got += far.recv(1 << 16)
        t.join()
        self.assertTrue(got == data)
        far.sendall(b"thanks")
        self.assertEqual(near.recv(16), b"thanks")

    def test_wrong_calls(self):
        ends = ["--listen", "unix:/tmp/x", "--connect", "127.0.0.1:1"]
        good = [*ends, *self.papers("a", "b")]
        for words, argv in (
                ("--listen is missing", []), ("is not unix:", ["--listen", "x", "--connect", "y:1"]),
                ("is not HOST:PORT", ["--listen", "unix:/tmp/x", "--connect", "::1:99"]),
                ("--ca is missing", ends), ("neither ferry nor raw", [*good, "--protocol", "morse"]),
                ("--rate: 'fast'", [*good, "--rate", "fast"]), ("--resume-window: at most 240", [*good, "--resume-window", "999"]),
                ("unexpected argument 'now'", [*good, "now"])):
            with self.subTest(words):
                done = subprocess.run([RELAY, "source", *argv], capture_output=True, text=True, timeout=DEADLINE_S)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
        done = subprocess.run([RELAY, "target", "--listen", "127.0.0.1:0", "--connect", "unix:/x", "--plain"],
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--plain needs --peer-address", done.stderr)
        for verb in ("source", "target"):
            self.assertIn(f"Usage: ferry-relay {verb}", run(RELAY, verb, "--help"))


@unittest.skipUnless(os.geteuid() == 0, "needs root for network namespaces")
class Interfaces(Pairs):
    """--bind-interface, in two network namespaces that a link `mig` joins; as an ordinary user."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.make_namespaces()
        for node in "ab":
            os.chmod(cls.lab.pki.path(f"{node}.key"), 0o644)  # the relay is another user

    def enter(self, node):
        return ["nsenter", f"--net=/run/netns/{self.lab.names[node]}", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def start(self, node, verb, listen, connect, *more):
        name = {"a": "b", "b": "a"}[node]
        p = Program(self.lab, verb, *self.enter(node), RELAY, verb, "--listen", listen, "--connect", connect, *self.papers(node, name), *more)
        return p, p.first_line()

    def paths(self):
        for p in (into_out := super().paths()):
            os.mkdir(os.path.dirname(p) + f"/{os.path.basename(p)}.d")
            os.chmod(os.path.dirname(p) + f"/{os.path.basename(p)}.d", 0o777)
        return tuple(f"{p}.d/s" for p in into_out)

    def test_both_ends_by_interface(self):
        for listen, expected in (("*:0", "10.91.0.2:"), ("0.0.0.0:0", "10.91.0.2:"), ("[::]:0", "[fd91::2]:")):
            for both in ([], ["--protocol", "raw"]):
                with self.subTest(listen=listen, both=both):
                    self.into, out = self.paths()
                    self.listener = self.lab.listen(out)
                    _, where = self.start("b", "target", listen, f"unix:{out}", "--bind-interface", "mig", *both)
                    self.assertTrue(where.startswith(expected), where)
                    self.start("a", "source", f"unix:{self.into}", where, "--bind-interface", "mig", *both)
                    self.both_ways(*self.connect())

    def test_the_way_is_kept_to(self):
        """A source that may leave by the loopback only does not get to the other node."""
        self.into, out = self.paths()
        self.lab.listen(out)
        _, where = self.start("b", "target", "*:0", f"unix:{out}", "--bind-interface", "mig")
        source, _ = self.start("a", "source", f"unix:{self.into}", where, "--bind-interface", "lo", "--protocol", "raw")
        self.assertTrue(ended(self.lab.connect(self.into)))
        source.wait_log("stream not opened", "connecting to 10.91.0.2")

    def test_no_such_interface(self):
        into, out = self.paths()
        for argv in (["target", "--listen", "*:0", "--connect", f"unix:{out}"], ["source", "--listen", f"unix:{into}", "--connect", "127.0.0.1:1"]):
            done = subprocess.run([RELAY, *argv, *self.papers("a", "b"), "--bind-interface", "mig7"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is no network interface 'mig7'", done.stderr)


class Upgrade(Pairs):
    def test_both_ends_again_and_again(self):
        """SIGUSR2 of each, then of both, while bytes flow; nothing is printed twice."""
        source, target = self.pair()
        near, far = self.connect()
        flows = both_ways(near, far)
        for relays in ((source,), (target,), (source, target), (target, source)):
            for r in relays:
                r.upgrade()
            before = [f.received for f in flows]
            wait_for("bytes flow", lambda: all(f.error or f.received > n + (1 << 18) for f, n in zip(flows, before)), 90)
        other, other_far = self.connect()
        other.sendall(b"new")
        self.assertEqual(other_far.recv(16), b"new")
        other.close()
        for f in flows:
            f.finish()
        for r in (source, target):
            r.signal(signal.SIGTERM)
        near.close()
        far.close()
        wait_for("both end", lambda: not source.alive() and not target.alive(), 90)
        self.assertEqual(source.process.stdout.read() + target.process.stdout.read(), "")
        self.assertFalse(os.path.exists(self.into), "the socket file is left")


unittest.main(verbosity=2)
