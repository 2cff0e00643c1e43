"""Listens to the test guest from outside: arrival times of its heartbeat lines, on whichever node it runs.

The guest's clock stands still while a move has it paused, so only the times at which its lines arrive
show how long it was away. Every pod has a log of the serial line; the move cuts the stream of bytes at
any place, also within a line, and the rest of that line goes to the log of the next pod.
"""
import contextlib
import glob
import os
import re
import socket
import threading
import time

HEARTBEAT = re.compile(r"HB (\d+) t=(\d+) gen=(\d+) pg=(\d+) bad=(\d+)$")
VERIFY = re.compile(r"VERIFY pages=(\d+) bad=(\d+)$")


class Log:
    """One serial log, read as it grows."""

    def __init__(self, path):
        self.path = path
        self.offset = 0
        self.pending = b""

    def read(self):
        try:
            if os.stat(self.path).st_size <= self.offset:
                return b""
            with open(self.path, "rb") as f:
                f.seek(self.offset)
                data = f.read()
        except OSError:
            return b""  # the pod is gone, what it wrote was read
        self.offset += len(data)
        return data


class Beat:
    """One heartbeat: when it arrived, from which log, and what it said."""

    def __init__(self, at, path, fields):
        self.at = at
        self.path = path
        self.sequence, self.ticks, self.generation, self.pages, self.bad = map(int, fields)


class Monitor:
    """Follows all serial logs below the roots of some nodes, from a thread of its own."""

    def __init__(self, site_root, step=0.002, fresh=False):
        """With `fresh`, logs that are there already are of guests that do not matter any more."""
        self.pattern = os.path.join(site_root, "node*/run/ferry/pods/*/console/serial.log")
        self.step = step
        self.lock = threading.Lock()
        self.beats = []
        self.lines = []  # everything else: (time, path, text)
        self.logs = {}  # path -> Log, in the order in which they appeared
        self.past = set(glob.glob(self.pattern)) if fresh else set()
        self.stopping = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping = True
        self.thread.join()

    def _run(self):
        look = 0
        while not self.stopping:
            now = time.monotonic()
            if now >= look:
                self._discover()
                look = now + 0.05
            for log in list(self.logs.values()):
                self._feed(log)
            time.sleep(self.step)

    def _discover(self):
        for path in sorted(glob.glob(self.pattern)):
            if path not in self.logs and path not in self.past:
                self.logs[path] = Log(path)

    def _feed(self, log):
        first = log.offset == 0
        data = log.read()
        if not data:
            return
        now = time.monotonic()
        if first:
            # What the last runner left of a line that it did not finish begins the first line here.
            for other in self.logs.values():
                if other is not log and other.pending:
                    log.pending, other.pending = other.pending, b""
        log.pending += data
        while b"\n" in log.pending:
            line, log.pending = log.pending.split(b"\n", 1)
            self._line(now, log.path, line.decode("latin1").strip())

    def _line(self, now, path, text):
        match = HEARTBEAT.match(text)
        with self.lock:
            if match:
                self.beats.append(Beat(now, path, match.groups()))
            elif text:
                self.lines.append((now, path, text))

    # -- questions ---------------------------------------------------------------------------

    def mark(self):
        """A place in the stream of heartbeats, for `since`."""
        with self.lock:
            return len(self.beats)

    def since(self, mark):
        with self.lock:
            return self.beats[mark:]

    def last(self):
        with self.lock:
            return self.beats[-1] if self.beats else None

    def wait_beats(self, count=1, seconds=30, mark=None):
        """Waits for that many more heartbeats (after `mark`); the beats."""
        mark = self.mark() if mark is None else mark
        deadline = time.monotonic() + seconds
        while len(self.since(mark)) < count:
            if fault := self.fault():
                raise AssertionError(f"the guest says: {fault}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(self.since(mark))} of {count} heartbeats came in {seconds} s")
            time.sleep(0.01)
        return self.since(mark)

    def fault(self):
        """What a guest found missing when it came up, in its own words (tests/guest/linux/init); None when nothing."""
        with self.lock:
            return next((text for _, _, text in self.lines if text.startswith("FAULT ")), None)

    def worst_gap(self, mark):
        """Longest time between two heartbeats since `mark` (the last one before it counts as the first)."""
        beats = self.since(max(0, mark - 1))
        return max((b.at - a.at for a, b in zip(beats, beats[1:])), default=0.0)

    def broken_sequence(self, mark=0):
        """Pairs of neighbours whose numbers do not follow each other."""
        beats = self.since(mark)
        return [(a.sequence, b.sequence) for a, b in zip(beats, beats[1:]) if b.sequence != a.sequence + 1]

    def bad_pages(self):
        with self.lock:
            return max((b.bad for b in self.beats), default=0)

    def current_log(self):
        """The serial log that heartbeats arrive in."""
        beat = self.last()
        return beat.path if beat else None

    def verify(self, seconds=60):
        """Asks the guest to check all of its memory; (pages, bad)."""
        with self.lock:
            start = len(self.lines)
        path = self.current_log()
        if not path:
            raise AssertionError("no heartbeat was seen yet")
        send(os.path.join(os.path.dirname(path), "serial.sock"), b"v")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self.lock:
                for _, _, text in self.lines[start:]:
                    match = VERIFY.match(text)
                    if match:
                        return int(match[1]), int(match[2])
            time.sleep(0.01)
        raise AssertionError(f"the guest did not answer the request to check its memory in {seconds} s")


def connect(path):
    """A connection to a unix socket, however long its path is."""
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
        return s
    finally:
        os.close(directory)


def send(path, data):
    with connect(path) as s:
        s.sendall(data)
        # QEMU reads from the connection as the guest's UART takes the bytes; closing at once could drop them. What
        # the guest says meanwhile must be read: a few hundred unread bytes make QEMU hold the guest up.
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            s.settimeout(max(0.01, deadline - time.monotonic()))
            with contextlib.suppress(TimeoutError):
                if not s.recv(65536):
                    break
