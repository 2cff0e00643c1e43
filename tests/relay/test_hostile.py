"""Peers with the right papers that break the rules of ferry/1 afterwards: each gets a REFUSED or a RESET with its code, the log one line,
and streams that are there go on untouched."""
import os
import socket
import ssl
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from frames import (ACK, DATA, FIN, HELLO, HELLO_OK, NEW, PING, PONG, REFUSALS, REFUSED, RESET, RESETS, RESUME, WINDOW,  # noqa: E402
                    ack, frame, hello, note, read_exactly, read_frame, read_until)
from lab import ADDRESSES, DEADLINE_S, Lab, Move, ended, need_root, wait_for  # noqa: E402

CHANNEL = 49152
FLOOD = 200  # connections that are refused one after the other
GROWTH_KIB = 64 << 10
# A sanitizer keeps freed memory for a while, which is not what is looked for here.
SANITIZER = "ASAN_OPTIONS=" + os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4"


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(l.split()[1]) for l in f if l.startswith("VmRSS:"))


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.a = cls.lab.relay("a").ready()
        cls.b = cls.lab.relay("b", prefix=("env", SANITIZER)).ready()
        cls.papers = {n: cls.lab.pki.good(n) for n in "ac"}
        cls.bystander = Move(cls.lab, cls.a, cls.b).connect()

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def tearDown(self):
        """Whatever a test did: the stream of another move carries on."""
        near, far = self.bystander
        for one, other in ((near, far), (far, near)):
            text = os.urandom(16)
            one.sendall(text)
            self.assertEqual(read_exactly(other, 16), text, "the bystander's stream was touched")

    def move(self, **more):
        return Move(self.lab, None, self.b, channels=(CHANNEL,), **more)

    def dial(self, move, node="a"):
        s = self.lab.dial_tls("a", ADDRESSES["b"][0], move.port_of[CHANNEL], *self.papers[node])
        s.settimeout(DEADLINE_S)
        self.addCleanup(s.close)
        return s

    def open(self, move, **more):
        """A stream as its source would open it: (the connection, its id, the hypervisor's end)."""
        stream = os.urandom(16)
        s = self.dial(move)
        s.sendall(hello(move.target_body["move"], CHANNEL, stream, **more))
        far, _ = move.listeners[CHANNEL].accept()
        far.settimeout(DEADLINE_S)
        self.addCleanup(far.close)
        self.assertEqual(read_frame(s)[0], HELLO_OK)
        return s, stream, far

    def lines(self, move, *words):
        return [l for l in self.b.log().splitlines() if f"key={move.key} " in l + " " and all(w in l for w in words)]

    def refused(self, move, first, code, node="a"):
        """`first` on a connection of its own gets REFUSED with this code, then the end; and one line in the log."""
        before = len(self.lines(move, "connection refused"))
        s = self.dial(move, node)
        s.sendall(first)
        kind, _, _, payload = read_frame(s)
        self.assertEqual((kind, note(payload, REFUSALS)[0]), (REFUSED, code))
        self.assertTrue(ended(s))
        self.b.wait_log("connection refused", f"key={move.key}", f"code={code}" if " " not in code else f'code="{code}"', " warning ")
        self.assertEqual(len(self.lines(move, "connection refused")), before + 1)

    # ---- the first frame -------------------------------------------------------------------------

    def test_first_frames(self):
        move = self.move()
        name = move.target_body["move"]
        for what, first, code in (
                ("garbage", b"\xff" * 64, "malformed"),
                ("text", b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n", "malformed"),
                ("another type", frame(DATA, b"guest memory"), "malformed"),
                ("a type that is none", frame(77, b"x"), "malformed"),
                ("reserved bits", frame(HELLO, b"\0\1" + bytes(50), reserved=1, flags=NEW), "malformed"),
                ("NEW and RESUME", hello(name, CHANNEL, flags=NEW | RESUME), "malformed"),
                ("neither", hello(name, CHANNEL, flags=0), "malformed"),
                ("oversized", frame(HELLO, b"\0\1", flags=NEW, length=0xffffffff), "malformed"),
                ("version 0", hello(name, CHANNEL, version=0), "version"),
                ("version 2", hello(name, CHANNEL, version=2), "version"),
                ("version 2, oversized", frame(HELLO, b"\0\2", flags=NEW, length=0xffffffff), "version"),
                ("epoch 0", hello(name, CHANNEL, epoch=0), "malformed"),
                ("epoch beyond all", hello(name, CHANNEL, epoch=1 << 62), "malformed"),
                ("id of zeros", hello(name, CHANNEL, stream=bytes(16)), "malformed"),
                ("window above the limit", hello(name, CHANNEL, window=(64 << 20) + 1), "malformed"),
                ("new, but something delivered", hello(name, CHANNEL, delivered=1), "malformed"),
                ("uid shorter than said", hello(name, CHANNEL, move_length=64), "malformed"),
                ("uid that is none", hello("../../etc", CHANNEL), "malformed"),
                ("another move", hello("no-such-move", CHANNEL), "unknown move"),
                ("another channel", hello(name, 49153), "channel"),
                ("guessed id", hello(name, CHANNEL, flags=RESUME), "unknown stream")):
            with self.subTest(what):
                self.refused(move, first, code)
        self.assertTrue(move.nothing_arrives(CHANNEL), "the hypervisor's socket was dialled")
        self.b.streams(0, key=move.key)

    def test_half_a_hello(self):
        move = self.move()
        for first in (b"", hello(move.target_body["move"], CHANNEL)[:30]):
            s = self.dial(move)
            s.sendall(first)
            try:
                s.unwrap()
            except (ssl.SSLError, OSError):
                pass  # the relay does not answer our close_notify
            s.close()
            self.b.wait_log("stream not opened", f"key={move.key}", "before its HELLO")
        self.assertTrue(move.nothing_arrives(CHANNEL))

    def test_flood_is_bounded(self):
        move = self.move()
        self.refused(move, b"\xff" * 16, "malformed")
        before = resident_kib(self.b.process.pid)
        for _ in range(FLOOD):
            s = self.dial(move)
            s.sendall(b"\xff" * 16)
            self.assertEqual(read_frame(s)[0], REFUSED)
            s.close()
        self.b.streams(0, key=move.key)
        self.assertLess(resident_kib(self.b.process.pid) - before, GROWTH_KIB)

    # ---- ids and epochs of a stream that is there ----------------------------------------------------

    def test_others_do_not_get_at_a_stream(self):
        move = self.move()
        name = move.target_body["move"]
        s, stream, far = self.open(move, epoch=5)
        s.sendall(frame(DATA, b"first"))
        self.assertEqual(far.recv(16), b"first")
        for what, first, code in (
                ("the id once more", hello(name, CHANNEL, stream, epoch=6), "known stream"),
                ("the HELLO replayed", hello(name, CHANNEL, stream, epoch=5), "known stream"),
                ("resume with the same epoch", hello(name, CHANNEL, stream, flags=RESUME, epoch=5), "stale epoch"),
                ("resume with an older epoch", hello(name, CHANNEL, stream, flags=RESUME, epoch=1), "stale epoch"),
                ("more delivered than was sent", hello(name, CHANNEL, stream, flags=RESUME, epoch=6, delivered=1000), "offset")):
            with self.subTest(what):
                self.refused(move, first, code)
        s.sendall(frame(DATA, b" second", offset=5))
        self.assertEqual(far.recv(16), b" second")
        far.sendall(b"back")
        self.assertEqual(read_until(s, DATA)[2:], (0, b"back"))
        # Only now something was sent; less than was acknowledged cannot be resumed from, either.
        s.sendall(ack(4))
        s.sendall(frame(PING, offset=9))
        self.assertEqual(read_until(s, PONG)[2], 9)
        self.refused(move, hello(name, CHANNEL, stream, flags=RESUME, epoch=6, delivered=1), "offset")
        s.sendall(frame(DATA, b" third", offset=12))
        self.assertEqual(far.recv(16), b" third")

    def test_another_identity(self):
        """Node c has good papers, and moves of its own: a stream of node a is nothing to it."""
        move, other = self.move(), self.move(source_node="c")
        s, stream, far = self.open(move)
        try:
            c = self.dial(move, "c")
            c.sendall(hello(move.target_body["move"], CHANNEL, stream, flags=RESUME, epoch=9))
            self.assertTrue(ended(c))
        except (ssl.SSLError, ConnectionError):
            pass  # refused while it still shook hands
        self.b.wait_log("stream not opened", f"key={move.key}", "node 'c', expected 'a'")
        self.refused(other, hello(move.target_body["move"], CHANNEL, stream, flags=RESUME, epoch=9), "unknown move", node="c")
        self.refused(other, hello(other.target_body["move"], CHANNEL, stream, flags=RESUME, epoch=9), "unknown stream", node="c")
        s.sendall(frame(DATA, b"untouched"))
        self.assertEqual(far.recv(16), b"untouched")

    def test_after_its_end(self):
        """What is left of a stream refuses to be opened again, and says what became of it."""
        move = self.move()
        name = move.target_body["move"]
        s, stream, _ = self.open(move)
        s.sendall(frame(99))
        self.assertEqual(read_until(s, RESET)[0], RESET)
        s.close()
        self.b.wait_log("stream closed", f"key={move.key}")
        self.refused(move, hello(name, CHANNEL, stream), "known stream")
        self.refused(move, hello(name, CHANNEL, stream, flags=RESUME, epoch=2), "ended")
        self.assertTrue(move.nothing_arrives(CHANNEL))

    # ---- frames on an open stream --------------------------------------------------------------------

    def test_frames_that_end_a_stream(self):
        move = self.move()
        for what, bad, reason in (
                ("garbage", b"\xff" * 64, "type"),
                ("unknown type", frame(10), "type"),
                ("unknown flag", frame(DATA, b"x", flags=4), "flags"),
                ("reserved bits", frame(DATA, b"x", reserved=7), "reserved"),
                ("empty DATA", frame(DATA), "DATA of 0 bytes"),
                ("oversized DATA", frame(DATA, length=(256 << 10) + 1), "DATA of 262145 bytes"),
                ("oversized RESET", frame(RESET, length=0xffffffff), "RESET of 4294967295 bytes"),
                ("a gap", frame(DATA, b"x", offset=10), "gap"),
                ("offset beyond all numbers", frame(DATA, b"x", offset=1 << 63), "offset"),
                ("ACK of what was not sent", ack(1), "never sent"),
                ("window taken back", ack(0, window=0), "takes back a window"),
                ("window above the limit", ack(0, window=(64 << 20) + 1), "window"),
                ("PONG without PING", frame(PONG, offset=12345), "PONG"),
                ("HELLO once more", hello("again", CHANNEL), "out of order"),
                ("HELLO-OK from a source", frame(HELLO_OK, bytes(20)), "out of order"),
                ("FIN at another place", frame(FIN, offset=3), "FIN at 3"),
                ("DATA behind FIN", frame(FIN) + frame(DATA, b"x"), "behind FIN"),
                ("finished by a source", frame(ACK, bytes(4), flags=1), "finished")):
            with self.subTest(what):
                before = len(self.lines(move, "stream closed"))
                s, _, far = self.open(move)
                s.sendall(bad)
                _, _, _, payload = read_until(s, RESET)
                code, text = note(payload, RESETS)
                s.close()
                self.assertEqual(code, "protocol")
                self.assertIn(reason, text)
                self.assertTrue(ended(far), "the hypervisor's end is still open")
                wait_for("the end in the log", lambda: len(self.lines(move, "stream closed")) > before)
                line = self.lines(move, "stream closed", " warning ")[-1]
                self.assertIn(reason, line)
                self.assertEqual(len(self.lines(move, "stream closed")), before + 1)

    def test_window_is_kept_to(self):
        """A peer that sends past the window, to a hypervisor that does not read."""
        move = self.move()
        s, _, far = self.open(move)
        before = resident_kib(self.b.process.pid)
        piece, sent = os.urandom(256 << 10), 0
        try:
            while sent < 64 << 20:
                s.sendall(frame(DATA, piece, offset=sent))
                sent += len(piece)
        except (ssl.SSLError, OSError):
            pass  # it was ended while we still sent
        s.close()
        self.b.wait_log("stream closed", f"key={move.key}", " warning ", "the window ends at")
        self.assertLess(resident_kib(self.b.process.pid) - before, GROWTH_KIB)
        # What came in order before that, up to what the socket held, is all that the hypervisor got.
        got = b""
        while b := far.recv(1 << 20):
            got += b
        self.assertTrue((piece * (len(got) // len(piece) + 1)).startswith(got))

    # ---- connections lost at the worst moment ---------------------------------------------------------

    def resume(self, move, stream, **more):
        s = self.dial(move)
        s.sendall(hello(move.target_body["move"], CHANNEL, stream, flags=RESUME, **more))
        return s, read_frame(s)

    def test_lost_hello_ok(self):
        """The answer to a HELLO never arrived: the stream is there once, and goes on."""
        move, stream = self.move(), os.urandom(16)
        s = self.dial(move)
        s.sendall(hello(move.target_body["move"], CHANNEL, stream))
        far, _ = move.listeners[CHANNEL].accept()
        far.settimeout(DEADLINE_S)
        self.addCleanup(far.close)
        s.close()  # without having read
        self.refused(move, hello(move.target_body["move"], CHANNEL, stream, epoch=2), "known stream")
        s, (kind, _, delivered, _) = self.resume(move, stream, epoch=3)
        self.assertEqual((kind, delivered), (HELLO_OK, 0))
        s.sendall(frame(DATA, b"at last"))
        self.assertEqual(read_exactly(far, 7), b"at last")
        self.assertTrue(move.nothing_arrives(CHANNEL), "the hypervisor's socket was dialled twice")

    def test_lost_last_ack(self):
        """All was delivered, but the source did not hear so: it is told when it asks again, as often as it does."""
        move = self.move()
        s, stream, far = self.open(move)
        s.sendall(frame(DATA, b"all") + frame(FIN, offset=3))
        self.assertEqual(read_exactly(far, 3) + far.recv(1), b"all")
        far.sendall(b"too")
        far.shutdown(socket.SHUT_WR)
        self.assertEqual(read_until(s, FIN)[2], 3)
        s.sendall(ack(4))
        s.close()  # without having read the last ACK
        self.b.wait_log("stream closed", f"key={move.key}", "both sides ended", " info ")
        for epoch in (2, 3):
            s, (kind, flags, delivered, _) = self.resume(move, stream, epoch=epoch, delivered=4)
            self.assertEqual((kind, flags, delivered), (HELLO_OK, 1, 4))
            self.assertTrue(ended(s))
        self.refused(move, hello(move.target_body["move"], CHANNEL, stream, flags=RESUME, epoch=4, delivered=3), "offset")

    def test_late_redial(self):
        """Past the resume window the stream is over, and whoever comes late is told so."""
        move = self.move(resumeWindowS=1)
        s, stream, far = self.open(move)
        s.close()
        self.assertTrue(ended(far))
        self.b.wait_log("stream closed", f"key={move.key}", "expired", " warning ")
        self.refused(move, hello(move.target_body["move"], CHANNEL, stream, flags=RESUME, epoch=2), "expired")

    def test_socket_of_another_pod(self):
        """Whoever owns a hypervisor may put a link where its socket was: the relay does not go to where that leads."""
        victim, move = Move(self.lab, None, self.b, channels=(CHANNEL,)), Move(self.lab, self.a, self.b, channels=(CHANNEL,))
        os.unlink(move.paths[CHANNEL])
        os.symlink(victim.paths[CHANNEL], move.paths[CHANNEL])
        near = self.lab.connect(move.file(CHANNEL))
        self.assertTrue(victim.nothing_arrives(CHANNEL))
        self.assertTrue(ended(near))
        self.b.wait_log(f"key={move.key}", "it is a link")

    def test_socket_of_another_user(self):
        """Nor to a socket that is not of the user whose pod it is."""
        move = Move(self.lab, self.a, self.b, channels=(CHANNEL,), owner=0)
        owner = os.stat(move.paths[CHANNEL]).st_uid
        answer = self.b.must("PUT", f"/v1/targets/{move.key}", dict(move.target_body, owner=owner + 1, generation=2))
        self.a.must("PUT", f"/v1/sources/{move.key}", dict(move.source_body, ports=answer["ports"], generation=2))
        near = self.lab.connect(move.file(CHANNEL))
        self.assertTrue(move.nothing_arrives(CHANNEL))
        self.assertTrue(ended(near))
        self.b.wait_log(f"key={move.key}", "belongs to uid")

    def test_refused_by_a_target(self):
        """A source that is answered with nonsense ends its stream, and says why."""
        for what, answer, reason in (
                ("garbage", b"\xff" * 64, "type"),
                ("DATA first", frame(DATA, b"x"), "out of order"),
                ("more delivered than was sent", frame(HELLO_OK, bytes(20), offset=100), "never sent"),
                ("REFUSED", frame(REFUSED, b"\0\5no such channel\x1b[2J"), "no such channel?[2J")):
            with self.subTest(what):
                move = Move(self.lab, None, self.b, channels=(CHANNEL,))
                near = self.answered(move, answer)
                self.assertTrue(ended(near))
                self.a.wait_log(f"key={move.key}", reason)

    def answered(self, move, answer):
        """A unix connection whose stream meets a target that says `answer`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.lab.pki.good("b"))
        context.set_alpn_protocols(["ferry/1"])
        listener = self.lab.in_netns("b", lambda: socket.create_server((ADDRESSES["b"][0], 0)))
        listener.settimeout(DEADLINE_S)
        self.addCleanup(listener.close)
        self.a.must("PUT", f"/v1/sources/{move.key}", dict(move.source_body, ports={str(listener.getsockname()[1]): CHANNEL}))
        near = self.lab.connect(move.file(CHANNEL))
        raw, _ = listener.accept()
        raw.settimeout(DEADLINE_S)
        s = context.wrap_socket(raw, server_side=True)
        self.addCleanup(s.close)
        self.assertEqual(read_frame(s)[0], HELLO)
        s.sendall(answer)
        return near


need_root()
unittest.main(verbosity=2)
