"""Bytes that go through a stream until told to stop, and are compared as they arrive."""
import socket
import threading
import time

from lab import DEADLINE_S

PERIOD = 65536 * 3 + 7  # no power of two: a repeated or missing block shows


def pattern(seed):
    """A period of bytes, twice, so that any part of up to a period can be cut out of it."""
    import random
    return random.Random(seed).randbytes(PERIOD) * 2


class Flow:
    """One direction of a stream. Each byte is known by its place, so nothing need be kept."""

    count = 0

    def __init__(self, sender, receiver, pace_s=0.004, piece=65536):
        Flow.count += 1
        self.sender, self.receiver, self.pace_s, self.piece = sender, receiver, pace_s, piece
        self.bytes = pattern(Flow.count)
        self.sent = self.received = 0
        self.error, self.stopped = None, threading.Event()
        sender.settimeout(180)
        receiver.settimeout(180)
        self.threads = [threading.Thread(target=self.guard, args=(f,), daemon=True) for f in (self.write, self.read)]
        for t in self.threads:
            t.start()

    def guard(self, action):
        try:
            action()
        except Exception as e:
            self.error = self.error or e

    def write(self):
        while not self.stopped.is_set():
            at = self.sent % PERIOD
            self.sender.sendall(self.bytes[at:at + self.piece])
            self.sent += self.piece
            time.sleep(self.pace_s)
        self.sender.shutdown(socket.SHUT_WR)

    def read(self):
        while b := self.receiver.recv(1 << 16):
            at = self.received % PERIOD
            if self.bytes[at:at + len(b)] != b:
                raise AssertionError(f"other bytes behind byte {self.received}")
            self.received += len(b)

    def finish(self):
        """All that was sent has come, and its end."""
        self.stopped.set()
        for t in self.threads:
            t.join(3 * DEADLINE_S)
            if t.is_alive():
                raise AssertionError(f"the stream hangs: {self.received} of {self.sent} bytes")
        if self.error:
            raise AssertionError(f"the stream broke: {self.error!r}")
        if self.received != self.sent:
            raise AssertionError(f"{self.received} of {self.sent} bytes")


def both_ways(near, far, **kw):
    return [Flow(near, far, **kw), Flow(far, near, **kw)]
