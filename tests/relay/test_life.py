"""Starting, draining, stopping; what happens when the network, the peer or descriptors go away."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import ADDRESSES, DEADLINE_S, RELAY, Lab, Move, ended, need_root, read_all, read_exactly, run, wait_for  # noqa: E402

MAN = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "man"


class Starting(unittest.TestCase):
    """Wrong calls get one clear sentence and a code."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(namespaces=False)
        cls.crt, cls.key = cls.lab.pki.good("a")

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def refused(self, code, words, *argv):
        done = subprocess.run([RELAY, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def serve(self, **kw):
        given = {"root": os.path.join(self.lab.dir, "r"), "node": "a", "ca": self.lab.pki.path("ca.crt"),
                 "cert": self.crt, "key": self.key}
        given.update(kw)
        return ["serve", *(f"--{k}={v}" for k, v in given.items() if v is not None)]

    def test_wrong_calls(self):
        self.refused(2, "a verb is missing")
        self.refused(2, "unknown verb 'dance'", "dance")
        self.refused(2, "--node is missing", *self.serve(node=None))
        self.refused(2, "unknown option", "serve", "--nonsense")
        self.refused(2, "unexpected argument 'now'", *self.serve(), "now")
        self.refused(2, "--control: 'tcp:80'", *self.serve(control="tcp:80"))
        self.refused(2, "--user: 'nobody-here'", *self.serve(user="nobody-here"))
        self.refused(2, "usage: ferry-relay pki", "pki", "node", "--dir", self.lab.dir)
        self.refused(1, "no CA in", "pki", "node", "x", "--dir", self.lab.dir)

    def test_bad_credentials(self):
        self.refused(1, "missing.key: No such file", *self.serve(key=self.lab.pki.path("missing.key")))
        self.refused(1, "holds no private key", *self.serve(key=self.crt))
        self.refused(1, "node 'a', expected 'z'", *self.serve(node="z"))
        os.chmod(self.key, 0o600)
        self.refused(1, "a.key: Permission denied", *self.serve())
        os.chmod(self.key, 0o644)

    def test_socket_taken(self):
        relay = self.lab.relay("a").ready()
        self.refused(1, "another process serves it", *self.serve(root=relay.root))
        relay.must("GET", "/healthz")
        # A socket that a dead relay left is no obstacle.
        relay.kill()
        self.assertTrue(os.path.exists(relay.control))
        again = subprocess.Popen([RELAY, *self.serve(root=relay.root)], stderr=subprocess.DEVNULL)
        try:
            wait_for("the next relay answers", lambda: self.health(relay))
        finally:
            again.terminate()
            self.assertEqual(again.wait(DEADLINE_S), 0)

    @staticmethod
    def health(relay):
        try:
            return relay.call("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def test_help(self):
        self.assertIn("Usage: ferry-relay", run(RELAY, "--help"))
        for verb in ("serve", "source", "target", "pki"):
            page = (MAN / f"ferry-relay-{verb}.8.rst").read_text().replace(
                ".. include:: ferry-relay-side.inc", (MAN / "ferry-relay-side.inc").read_text())
            text = run(RELAY, verb, "--help")
            self.assertIn(f"Usage: ferry-relay {verb}", text)
            options = set(re.findall(r"--[a-z-]+", text))
            self.assertIn("--help", options)
            self.assertEqual([o for o in options if not re.search(rf"{o}(?![a-z-])", page)], [], f"not in the page of {verb}")


class Draining(unittest.TestCase):
    def setUp(self):
        self.lab = Lab()
        self.a = self.lab.relay("a").ready()
        self.b = self.lab.relay("b").ready()
        self.addCleanup(self.lab.close)

    def refuses_new(self, relay, move):
        status, reply = relay.call("PUT", "/v1/targets/new-key", move.target_body)
        return (status, reply["retry"]) == (503, True)

    def test_sigterm_waits_for_streams(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect(0)
        self.b.process.send_signal(signal.SIGTERM)
        self.b.wait_log("draining")
        self.assertTrue(self.refuses_new(self.b, move))
        self.b.must("PUT", f"/v1/targets/{move.key}", move.target_body)  # a known one is not new
        memory, far_memory = move.connect(49152)  # and goes on to its end
        memory.sendall(b"guest")
        self.assertEqual(far_memory.recv(16), b"guest")
        self.assertIsNone(self.b.process.poll())
        memory.close()
        near.sendall(b"bye")
        self.assertEqual(far.recv(16), b"bye")
        self.assertIsNone(self.b.process.poll())
        near.close()
        self.assertEqual(self.b.process.wait(DEADLINE_S), 0)

    def test_second_signal_stops(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        self.a.process.send_signal(signal.SIGTERM)
        self.a.wait_log("draining")
        self.a.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.a.process.wait(DEADLINE_S), 0, self.a.log())
        self.assertTrue(ended(near) and ended(far))
        self.assertEqual(os.listdir(move.src_dir), [], "socket files are left")

    def test_idle_relay_stops_at_once(self):
        self.a.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.a.process.wait(DEADLINE_S), 0)

    def test_drain_by_call(self):
        move = Move(self.lab, self.a, self.b)
        self.assertEqual(self.b.must("POST", "/v1/drain")["status"], "draining")
        self.assertTrue(self.refuses_new(self.b, move))
        self.assertIsNone(self.b.process.poll())

    def test_killed_peer_ends_both_sides(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        self.b.process.kill()
        self.assertTrue(ended(near) and ended(far))
        self.a.wait_log("stream closed", f"key={move.key}", " warning ")


class Paths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.a = cls.lab.relay("a").ready()
        cls.b = cls.lab.relay("b").ready()

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def test_slow_reader_is_not_a_dead_path(self):
        """Longer than the limit for a dead path: the peer's kernel answers, only nobody reads."""
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        data = os.urandom(8 * 1024 * 1024)
        w = threading.Thread(target=lambda: (near.sendall(data), near.shutdown(socket.SHUT_WR)))
        w.start()
        near.settimeout(60)
        time.sleep(14)
        self.assertEqual(len(self.a.streams(key=move.key)), 1, self.a.log())
        self.assertTrue(read_all(far) == data)
        w.join(DEADLINE_S)

    def test_black_hole_is_noticed(self):
        """Raw TLS, the cable is pulled: an idle and a busy stream both end, on both sides."""
        move = Move(self.lab, self.a, self.b, tls="raw")
        idle, busy = move.connect(0), move.connect(49152)
        stop = threading.Event()

        def chatter():
            try:
                while not stop.is_set():
                    busy[0].send(b"x" * 65536)
            except OSError:
                pass
        w = threading.Thread(target=chatter)
        sink = threading.Thread(target=lambda: self.swallow(busy[1]))
        w.start()
        sink.start()
        wait_for("bytes flow", lambda: self.bytes_of(move) > 1 << 20)
        run("ip", "-n", self.lab.names["b"], "link", "set", "mig", "down")
        cut = time.monotonic()
        try:
            for name, s in (("busy source", busy[0]), ("idle source", idle[0]), ("idle target", idle[1])):
                s.settimeout(25)
                try:
                    self.assertTrue(ended(s), name)
                except TimeoutError:
                    self.fail(f"{name} is still open\n{self.a.log()}\n{self.b.log()}")
            for t in (w, sink):
                t.join(25)
                self.assertFalse(t.is_alive())
            self.assertLess(time.monotonic() - cut, 20)
            self.a.streams(0, key=move.key)
            self.b.streams(0, key=move.key)
            self.a.wait_log("stream closed", f"key={move.key}", "channel=49152", "nothing heard from the peer")
        finally:
            stop.set()
            run("ip", "-n", self.lab.names["b"], "link", "set", "mig", "up")
            run("ip", "-n", self.lab.names["b"], "addr", "replace", f"{ADDRESSES['b'][1]}/64", "dev", "mig", "nodad")

    def bytes_of(self, move):
        return sum(s["bytesOut"] for s in self.a.streams(key=move.key))

    @staticmethod
    def swallow(s):
        try:
            while s.recv(1 << 16):
                pass
        except OSError:
            pass

    def test_certificates_change_under_way(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        crt, key = self.lab.pki.path("b.crt"), self.lab.pki.path("b.key")
        for f in (crt, key):
            shutil.copy(f, f + ".old")
        strange = self.lab.other_pki.bad("b-strange", "b")
        for new, old in zip(strange, (crt, key)):
            os.replace(new, old)
        refused = self.lab.connect(move.file(49152))
        self.assertTrue(ended(refused))
        self.a.wait_log("stream not opened", f"key={move.key}", "does not come from this site's CA")
        near.sendall(b"goes on")  # what runs is not touched
        self.assertEqual(far.recv(16), b"goes on")
        for f in (crt, key):
            os.replace(f + ".old", f)
        near, far = move.connect()
        near.sendall(b"back")
        self.assertEqual(far.recv(16), b"back")


class Memory(unittest.TestCase):
    """What all streams hold together has a ceiling, and who does not read gets no more than his part."""
    CEILING = 4 << 20

    def setUp(self):
        self.lab = Lab()
        self.addCleanup(self.lab.close)
        self.a = self.lab.relay("a", extra=["--memory", "4M"]).ready()
        self.b = self.lab.relay("b", extra=["--memory", "4M"]).ready()
        self.move = Move(self.lab, self.a, self.b)

    @staticmethod
    def stuff(near):
        """As many bytes as go in while nobody reads."""
        near.setblocking(False)
        sent, quiet = 0, 0
        while quiet < 10:
            try:
                sent += near.send(b"z" * 65536)
                quiet = 0
            except BlockingIOError:
                quiet += 1
                time.sleep(0.02)
        return sent

    def held(self, relay):
        return [s["heldBytes"] for s in relay.streams(key=self.move.key)]

    def test_streams_share_it(self):
        ends = [self.move.connect() for _ in range(2)]
        sent = [self.stuff(near) for near, _ in ends]
        part = self.CEILING // 2 // 2
        for r in (self.a, self.b):
            self.assertLessEqual(max(self.held(r)), part)
        self.assertGreater(max(self.held(self.a)), 256 << 10)  # two alone have much
        ends += [self.move.connect() for _ in range(14)]
        sent += [self.stuff(near) for near, _ in ends[2:]]
        part = self.CEILING // 2 // 16
        for r in (self.a, self.b):
            self.assertLessEqual(max(sorted(self.held(r))[:14]), part)
        # The first two give way as they are read.
        got = [len(read_exactly(far, 17 << 16)) if i < 2 else 0 for i, (_, far) in enumerate(ends)]
        sent = [n + (self.stuff(near) if i < 2 else 0) for i, ((near, _), n) in enumerate(zip(ends, sent))]
        for r in (self.a, self.b):
            wait_for(f"within the ceiling: {self.held(r)}", lambda: sum(self.held(r)) <= self.CEILING)
            wait_for(f"each has its part: {self.held(r)}", lambda: max(self.held(r)) <= part)
        # And every byte of every one arrives.
        for (near, far), n, before in zip(ends, sent, got):
            near.setblocking(True)
            near.shutdown(socket.SHUT_WR)
            self.assertEqual(len(read_all(far)), n - before)

    def test_one_that_stalls_is_no_matter_to_others(self):
        stalled, flowing = self.move.connect(), self.move.connect()
        self.stuff(stalled[0])
        data = os.urandom(8 << 20)
        begun = time.monotonic()
        w = threading.Thread(target=lambda: (flowing[0].sendall(data), flowing[0].shutdown(socket.SHUT_WR)))
        w.start()
        self.assertTrue(read_all(flowing[1]) == data)
        w.join(DEADLINE_S)
        self.assertLess(time.monotonic() - begun, DEADLINE_S)
        for r in (self.a, self.b):
            self.assertLessEqual(sum(self.held(r)), self.CEILING)


class Exhaustion(unittest.TestCase):
    def test_accepting_pauses_and_goes_on(self):
        lab = Lab()
        self.addCleanup(lab.close)
        a = lab.relay("a", prefix=["prlimit", "--nofile=32:32"]).ready()
        b = lab.relay("b").ready()
        move = Move(lab, a, b)
        nears = [lab.connect(move.file(49152)) for _ in range(20)]
        a.wait_log("accepting pauses")
        for s in nears:
            s.close()
        a.wait_log("accepting goes on")
        wait_for("old connections are gone", lambda: self.drained(move))
        near = lab.connect(move.file(49152))
        near.sendall(b"after")
        far = self.one_that_says(move, b"after")
        self.assertIsNotNone(far)

    @staticmethod
    def drained(move):
        return move.nothing_arrives(seconds=0.2)

    @staticmethod
    def one_that_says(move, text):
        while True:
            far, _ = move.listeners[49152].accept()
            far.settimeout(DEADLINE_S)
            move.lab.sockets.append(far)
            if far.recv(16) == text:
                return far


need_root()
unittest.main(verbosity=2)
