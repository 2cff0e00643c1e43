"""Bytes through two relays: identical, in both directions, with half-closes kept."""
import os
import socket
import struct
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import DEADLINE_S, Lab, Move, need_root, read_all, wait_for  # noqa: E402

SIZE = 5 * 1024 * 1024 + 12345


class Writer(threading.Thread):
    def __init__(self, sock, data, then_shut=True, then_close=False):
        super().__init__()
        self.sock, self.data, self.error = sock, data, None
        self.then_shut, self.then_close = then_shut, then_close
        self.start()

    def run(self):
        try:
            self.sock.sendall(self.data)
            if self.then_shut:
                self.sock.shutdown(socket.SHUT_WR)
            if self.then_close:
                self.sock.close()
        except OSError as e:
            self.error = e

    def done(self):
        self.join(DEADLINE_S)
        if self.is_alive() or self.error:
            raise AssertionError(f"writer: {self.error or 'did not finish'}")


class Bytes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.a = cls.lab.relay("a")
        cls.b = cls.lab.relay("b")
        cls.a.ready()
        cls.b.ready()
        cls.there, cls.back = os.urandom(SIZE), os.urandom(SIZE)

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def both_ways(self, move, channel=49152):
        near, far = move.connect(channel)
        writers = Writer(near, self.there), Writer(far, self.back)
        got = []
        reader = threading.Thread(target=lambda: got.append(read_all(near)))
        reader.start()
        arrived = read_all(far)
        reader.join(DEADLINE_S)
        for w in writers:
            w.done()
        self.assertTrue(arrived == self.there, f"{len(arrived)} of {SIZE} bytes, or others")
        self.assertTrue(got and got[0] == self.back, "the way back")

    def test_both_ways_at_once(self):
        for family in (0, 1):
            move = Move(self.lab, self.a, self.b, channels=(0, 49152, 49153), family=family)
            for channel in (0, 49152, 49153):
                with self.subTest(family=family, channel=channel):
                    self.both_ways(move, channel)
            line = self.a.wait_log("stream closed", f"key={move.key}", "channel=49153")
            self.assertIn(f"bytesIn={SIZE} bytesOut={SIZE}", line)
            self.assertIn(" info ", line)
            self.b.wait_log("stream closed", f"key={move.key}", "channel=49153", f"bytesIn={SIZE} bytesOut={SIZE}")
            self.a.streams(0, key=move.key)
            self.b.streams(0, key=move.key)

    def test_half_close_source_first(self):
        near, far = Move(self.lab, self.a, self.b).connect()
        near.sendall(b"question")
        near.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(far), b"question")
        w = Writer(far, self.back)  # the other direction is still open
        self.assertTrue(read_all(near) == self.back)
        w.done()

    def test_half_close_target_first(self):
        near, far = Move(self.lab, self.a, self.b).connect()
        far.sendall(b"hello")
        far.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(near), b"hello")
        w = Writer(near, self.there)
        self.assertTrue(read_all(far) == self.there)
        w.done()

    def test_last_bytes_before_a_close_arrive(self):
        """A process that writes its last bytes and closes, while bytes for it are under way."""
        for first in ("near", "far"):
            with self.subTest(closes=first):
                near, far = Move(self.lab, self.a, self.b).connect()
                leaver, stayer = (near, far) if first == "near" else (far, near)
                stop = threading.Event()

                def chatter():
                    try:
                        while not stop.is_set():
                            stayer.sendall(b"x" * 4096)
                    except OSError:
                        pass  # it is told that the other is gone
                t = threading.Thread(target=chatter)
                t.start()
                self.assertTrue(leaver.recv(1))
                w = Writer(leaver, self.there, then_shut=False, then_close=True)
                got = self.read_to_any_end(stayer)
                w.done()
                stop.set()
                t.join(DEADLINE_S)
                self.assertFalse(t.is_alive())
                self.assertTrue(got == self.there, f"{len(got)} of {SIZE} bytes")

    @staticmethod
    def read_to_any_end(sock):
        """As on a unix socket without relays: who closes with bytes unread resets, after what it sent."""
        got = bytearray()
        try:
            while b := sock.recv(1 << 16):
                got += b
        except ConnectionResetError:
            pass
        return bytes(got)

    def test_close_reaches_a_silent_end(self):
        """Closing for good is passed on even when nobody sends: both relays let go."""
        for first in ("near", "far"):
            with self.subTest(closes=first):
                move = Move(self.lab, self.a, self.b)
                near, far = move.connect()
                leaver, stayer = (near, far) if first == "near" else (far, near)
                leaver.close()
                self.assertEqual(stayer.recv(1), b"")
                self.a.streams(0, key=move.key)
                self.b.streams(0, key=move.key)
                self.assertTrue(self.broken(stayer))

    @staticmethod
    def broken(sock):
        try:
            sock.send(b"x")
            return False
        except BrokenPipeError:
            return True

    def test_one_byte_messages(self):
        near, far = Move(self.lab, self.a, self.b).connect()
        for i in range(200):
            near.sendall(struct.pack("B", i % 256))
            self.assertEqual(far.recv(16), struct.pack("B", i % 256))
            far.sendall(b"k")
            self.assertEqual(near.recv(16), b"k")

    def test_reader_that_stalls_gets_all(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        w = Writer(near, self.there * 4)
        # Until everything in between is full: then bytesOut stands still.
        seen = []

        def full():
            seen.append(self.a.streams(key=move.key)[0]["bytesOut"])
            return len(seen) > 20 and len(set(seen[-20:])) == 1
        wait_for("the path is full", full)
        self.assertLess(seen[-1], 4 * SIZE, "buffers are not bounded")
        self.assertTrue(read_all(far) == self.there * 4)
        w.done()

    def test_many_at_once(self):
        move = Move(self.lab, self.a, self.b)
        pairs = [move.connect() for _ in range(12)]
        self.a.streams(12, key=move.key)
        data = [os.urandom(300000) for _ in pairs]
        writers = [Writer(near, d) for (near, _), d in zip(pairs, data)]
        for (_, far), d in zip(pairs, data):
            self.assertTrue(read_all(far) == d)
        for w in writers:
            w.done()

    def test_statistics(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"12345")
        self.assertEqual(far.recv(16), b"12345")
        far.sendall(b"123")
        self.assertEqual(near.recv(16), b"123")


        def of(relay):
            """A byte is counted just after it can be read."""
            return wait_for("8 bytes are counted", lambda: next(
                (s for s in relay.streams(key=move.key) if s["bytesIn"] + s["bytesOut"] == 8), None))
        s, t = of(self.a), of(self.b)
        self.assertEqual((s["role"], s["channel"], s["move"], s["bytesOut"], s["bytesIn"]),
                         ("source", 49152, move.source_body["move"], 5, 3))
        self.assertEqual((t["role"], t["bytesOut"], t["bytesIn"], t["state"]), ("target", 3, 5, "open"))
        self.assertTrue(t["peer"].startswith("10.91.0.1:"))
        self.assertGreater(s["sinceMs"], 1.6e12)


need_root()
unittest.main(verbosity=2)
