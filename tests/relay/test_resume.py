"""ferry/1: streams that outlive their connections, and those that cannot."""
import os
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import ADDRESSES, DEADLINE_S, Lab, Move, ended, need_root, run, wait_for  # noqa: E402


class Flow(threading.Thread):
    """Bytes that go through a stream at a steady pace until told to stop; each knows what it sent and got."""

    def __init__(self, sender, receiver, pace_s=0.004, piece=65536):
        super().__init__()
        self.sender, self.receiver, self.pace_s = sender, receiver, pace_s
        self.piece = os.urandom(piece)
        self.sent, self.error, self.stopped = 0, None, threading.Event()
        self.got = bytearray()
        sender.settimeout(120)
        receiver.settimeout(120)
        self.reader = threading.Thread(target=self.read)
        self.start()
        self.reader.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                self.sender.sendall(self.piece)
                self.sent += len(self.piece)
                time.sleep(self.pace_s)
            self.sender.shutdown(socket.SHUT_WR)
        except OSError as e:
            self.error = e

    def read(self):
        try:
            while b := self.receiver.recv(1 << 16):
                self.got += b
        except OSError as e:
            self.error = self.error or e

    def finish(self):
        self.stopped.set()
        for t in (self, self.reader):
            t.join(DEADLINE_S)
            if t.is_alive():
                raise AssertionError("the stream hangs")
        if self.error:
            raise AssertionError(f"the stream broke: {self.error}")
        n = len(self.piece)
        if len(self.got) != self.sent or any(self.got[i:i + n] != self.piece for i in range(0, self.sent, n)):
            raise AssertionError(f"{len(self.got)} of {self.sent} bytes, or others")


class Pair(unittest.TestCase):
    """Two relays and a link between them that can be cut."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.a = cls.lab.relay("a").ready()
        cls.b = cls.lab.relay("b").ready()

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def flows(self, move, channel=49152):
        near, far = move.connect(channel)
        return Flow(near, far), Flow(far, near)

    def link(self, way):
        run("ip", "-n", self.lab.names["b"], "link", "set", "mig", way)
        if way == "up":
            run("ip", "-n", self.lab.names["b"], "addr", "replace", f"{ADDRESSES['b'][1]}/64", "dev", "mig", "nodad")

    def stream(self, relay, move, channel=49152):
        return next((s for s in relay.streams(key=move.key) if s["channel"] == channel), {"state": "not there"})

    def carries(self, move, flows):
        before = [len(f.got) for f in flows]
        wait_for("bytes flow both ways", lambda: all(len(f.got) > n + (1 << 20) for f, n in zip(flows, before)))


class Resume(Pair):
    def test_link_down_for_five_seconds(self):
        for family in (0, 1):
            with self.subTest(family=family):
                move = Move(self.lab, self.a, self.b, family=family)
                flows = self.flows(move)
                control = move.connect(0)  # says nothing all the time
                self.carries(move, flows)
                self.link("down")
                time.sleep(5)
                self.link("up")
                self.carries(move, flows)
                for f in flows:
                    f.finish()
                control[0].sendall(b"still")
                self.assertEqual(control[1].recv(16), b"still")
                self.a.wait_log("stream closed", f"key={move.key}", "channel=49152", " info ", "both sides ended")

    def test_link_down_until_the_connection_is_given_up(self):
        move = Move(self.lab, self.a, self.b)
        flows = self.flows(move)
        self.carries(move, flows)
        self.link("down")
        try:
            wait_for("away", lambda: self.stream(self.a, move)["state"] == "away")
            wait_for("away at the target too", lambda: self.stream(self.b, move)["state"] == "away")
            path = self.a.must("GET", "/v1/paths/b")
            self.assertEqual(path["state"], "away")
        finally:
            self.link("up")
        self.carries(move, flows)
        for r in (self.a, self.b):
            r.wait_log("stream away", f"key={move.key}", " warning ", "no sign of life")
            r.wait_log("stream resumed", f"key={move.key}", "resumes=1")
            s = self.stream(r, move)
            self.assertEqual((s["state"], s["resumes"]), ("open", 1))
            self.assertGreater(s["rttUs"], 0)
        wait_for("a rate is known", lambda: self.a.must("GET", "/v1/paths/b")["bytesPerS"] > 0)
        wait_for("the move's own is, too", lambda: self.a.must("GET", f"/v1/sources/{move.key}")["bytesPerS"] > 0)
        wait_for("the path to be up", lambda: self.a.must("GET", "/v1/paths/b")["state"] == "up")  # all of its streams
        self.assertEqual(self.a.must("GET", "/v1/paths/nobody")["state"], "none")
        for f in flows:
            f.finish()
        self.a.wait_log("stream closed", f"key={move.key}", "resumes=1", " info ")

    def test_packets_dropped(self):
        move = Move(self.lab, self.a, self.b)
        flows = self.flows(move)
        self.carries(move, flows)
        ns = self.lab.names["a"]
        run("ip", "netns", "exec", ns, "nft", "add table inet cut; add chain inet cut in "
            "{ type filter hook input priority 0; policy drop; }")
        try:
            wait_for("away", lambda: self.stream(self.b, move)["state"] == "away")
        finally:
            run("ip", "netns", "exec", ns, "nft", "delete table inet cut")
        self.carries(move, flows)
        for f in flows:
            f.finish()

    def test_connection_killed(self):
        """A reset of TCP, again and again: the stream goes on each time."""
        move = Move(self.lab, self.a, self.b)
        flows = self.flows(move)
        for n in range(1, 6):
            self.carries(move, flows)
            run("ip", "netns", "exec", self.lab.names["a"], "ss", "-K", "dst", ADDRESSES["b"][0], "dport",
                str(move.port_of[49152]))
            wait_for(f"resumed {n} times", lambda: self.stream(self.a, move)["resumes"] >= n)
        for f in flows:
            f.finish()

    def test_peer_stopped(self):
        """A relay that stands still for longer than a connection lives."""
        for relay in (self.a, self.b):
            with self.subTest(relay.node):
                move = Move(self.lab, self.a, self.b)
                flows = self.flows(move)
                self.carries(move, flows)
                relay.process.send_signal(signal.SIGSTOP)
                try:
                    time.sleep(9)
                finally:
                    relay.process.send_signal(signal.SIGCONT)
                self.carries(move, flows)
                for f in flows:
                    f.finish()

    def test_sixty_four_streams(self):
        move = Move(self.lab, self.a, self.b)
        ends = [move.connect() for _ in range(64)]
        flows = [Flow(near, far, pace_s=0.1, piece=20000) for near, far in ends]
        self.a.streams(64, key=move.key)
        wait_for("all carry", lambda: all(len(f.got) > 20000 for f in flows))
        run("ip", "netns", "exec", self.lab.names["a"], "ss", "-K", "dst", ADDRESSES["b"][0], "dport",
            str(move.port_of[49152]))
        wait_for("all are back", lambda: [s["resumes"] for s in self.a.streams(key=move.key)] == [1] * 64)
        for f in flows:
            f.finish()
            f.receiver.close()
        self.a.streams(0, key=move.key)
        self.b.streams(0, key=move.key)

    def test_away_too_long(self):
        move = Move(self.lab, self.a, self.b, resumeWindowS=2)
        near, far = move.connect()
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        self.link("down")
        try:
            self.assertTrue(ended(near) and ended(far))
            self.a.wait_log("stream closed", f"key={move.key}", " warning ", "expired: connection away for 2 s")
            self.b.wait_log("stream closed", f"key={move.key}", " warning ", "expired")
        finally:
            self.link("up")

    def test_removed_while_open(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        far.sendall(b"x")
        self.assertEqual(near.recv(1), b"x")  # open at both ends
        self.b.must("DELETE", f"/v1/targets/{move.key}")
        self.assertTrue(ended(near) and ended(far))
        self.a.wait_log("stream closed", f"key={move.key}", " info ", "by the peer: reset: ended by its node agent")

    def test_raw_and_ferry_do_not_mix(self):
        for source, target, at_source, at_target in (
                ("raw", "ferry", "it speaks ferry/1, not raw TLS", "it does not offer ferry/1"),
                ("ferry", "raw", "it does not speak ferry/1", "it wants ferry/1")):
            with self.subTest(source=source, target=target):
                move = Move(self.lab, None, self.b, tls=target)
                body = dict(move.source_body, tls=source)
                self.a.must("PUT", f"/v1/sources/{move.key}", body)
                near = self.lab.connect(move.file(49152))
                self.assertTrue(ended(near))
                self.a.wait_log("stream not opened", f"key={move.key}", at_source)
                self.b.wait_log("stream not opened", f"key={move.key}", at_target)
                self.assertTrue(move.nothing_arrives())


class Leaving(Pair):
    """A process closes its socket while its stream opens or is away: that is seen at once, not at some deadline."""

    def away(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        far.sendall(b"y")  # and with it the acknowledgement of what came
        self.assertEqual(near.recv(1), b"y")
        time.sleep(0.2)  # and of this
        self.link("down")
        self.addCleanup(self.link, "up")
        wait_for("away", lambda: self.stream(self.a, move)["state"] == "away", 60)
        wait_for("away at the target too", lambda: self.stream(self.b, move)["state"] == "away", 60)
        return move, near, far

    def test_while_opening(self):
        move = Move(self.lab, self.a, self.b)
        self.link("down")
        self.addCleanup(self.link, "up")
        near = self.lab.connect(move.file(49152))
        wait_for("connecting", lambda: self.stream(self.a, move)["state"] == "connecting")
        begun = time.monotonic()
        near.close()
        self.a.streams(0, key=move.key)
        self.assertLess(time.monotonic() - begun, 10)  # opening alone takes 30 s to give up
        self.a.wait_log("stream not opened", f"key={move.key}", " info ", "local side closed")

    def test_while_opening_with_bytes(self):
        """What it wrote before it left still arrives."""
        move = Move(self.lab, self.a, self.b)
        self.link("down")
        self.addCleanup(self.link, "up")
        near = self.lab.connect(move.file(49152))
        wait_for("connecting", lambda: self.stream(self.a, move)["state"] == "connecting")
        near.sendall(b"last words")
        near.close()
        self.a.wait_log("has left before its stream opened", f"key={move.key}")
        self.link("up")
        far, _ = move.listeners[49152].accept()
        far.settimeout(DEADLINE_S)
        self.lab.sockets.append(far)
        self.assertEqual(far.recv(64), b"last words")
        self.assertTrue(ended(far))
        self.a.streams(0, key=move.key)

    def test_source_while_away(self):
        move, near, far = self.away()
        near.close()
        wait_for("closing", lambda: self.stream(self.a, move)["state"] == "closing")
        self.link("up")
        self.assertTrue(ended(far))
        self.b.wait_log("stream closed", f"key={move.key}", " info ", "peer closed")

    def test_source_while_away_with_a_full_window(self):
        """It is not read any more, and seen to leave all the same; every byte arrives."""
        move, near, far = self.away()
        near.setblocking(False)
        sent, quiet = 0, 0
        while quiet < 20:  # until neither the window nor the socket takes more
            try:
                sent += near.send(b"y" * 65536)
                quiet = 0
            except BlockingIOError:
                quiet += 1
                time.sleep(0.05)
        near.close()
        self.a.wait_log("has left while its stream is away", f"key={move.key}")
        self.link("up")
        got = 0
        while b := far.recv(1 << 16):
            got += len(b)
        self.assertEqual(got, sent)

    def test_to_end_both_ways_is_not_to_leave(self):
        """One has ended its side, the other writes its last and ends its own: finished, not broken off."""
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.shutdown(socket.SHUT_WR)
        self.assertEqual(far.recv(1), b"")
        far.sendall(b"answer")
        self.assertEqual(near.recv(16), b"answer")
        time.sleep(0.2)  # until that is acknowledged: a hang-up and the end then show at once
        far.shutdown(socket.SHUT_WR)
        self.assertEqual(near.recv(1), b"")
        for r in (self.a, self.b):
            r.wait_log("stream closed", f"key={move.key}", " info ", "both sides ended")

    def test_target_while_away(self):
        move, near, far = self.away()
        far.close()
        wait_for("closing", lambda: self.stream(self.b, move)["state"] == "closing")
        self.link("up")
        self.assertTrue(ended(near))
        self.a.wait_log("stream closed", f"key={move.key}", " info ", "peer closed")


class TargetGone(unittest.TestCase):
    def test_relay_killed(self):
        lab = Lab()
        self.addCleanup(lab.close)
        a, b = lab.relay("a").ready(), lab.relay("b").ready()
        move = Move(lab, a, b)
        near, far = move.connect()
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        b.kill()
        self.assertTrue(ended(near) and ended(far))
        a.wait_log("stream closed", f"key={move.key}", " warning ", "state lost", "Connection refused")


need_root()
unittest.main(verbosity=2)
