"""QEMU asked itself, over a monitor that nobody else uses: which of a guest's two QEMUs ran its vCPUs, and when."""
import contextlib
import json
import socket
import threading
import time

import heartbeat


class Qmp:
    """A connection to QEMU's monitor."""

    def __init__(self, path):
        self.sock = heartbeat.connect(path)
        self.file = self.sock.makefile("rb")
        self.file.readline()
        self.execute("qmp_capabilities")

    def send(self, command, **arguments):
        """Does not wait for the answer."""
        self.sock.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")

    def execute(self, command, event=None, **arguments):
        """Its answer; events before it are given to `event`."""
        self.send(command, **arguments)
        while True:
            answer = json.loads(self.file.readline())
            if event and "event" in answer:
                event(answer)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise AssertionError(f"{command}: {answer['error']}")

    def close(self):
        self.file.close()
        self.sock.close()


class Watch:
    """When the vCPUs of a pod's QEMU ran, by its own word and clock. Its start is waited for."""

    def __init__(self, pod):
        self.pod = pod
        self.spans = []  # [begin, end]; end is None while it runs
        self.states = []  # of its migration, as QEMU told them
        self.end = False
        self.monitor = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.end:
            try:
                self.monitor = self.pod.qmp()
            except (OSError, ValueError):
                time.sleep(0.01)
                continue
            with contextlib.suppress(OSError, ValueError):
                self.follow(self.monitor)
            if self.spans and self.spans[-1][1] is None:
                self.spans[-1][1] = time.time()
            self.monitor.close()

    def follow(self, monitor):
        monitor.sock.settimeout(None)
        if monitor.execute("query-status", self.take)["running"]:
            self.note("RESUME", time.time())
        for line in monitor.file:
            self.take(json.loads(line))

    def take(self, event):
        if event.get("event") == "MIGRATION":
            self.states.append(event["data"]["status"])
        if event.get("event") in ("STOP", "RESUME"):
            stamp = event["timestamp"]
            self.note(event["event"], stamp["seconds"] + stamp["microseconds"] / 1e6)

    def note(self, event, when):
        running = bool(self.spans) and self.spans[-1][1] is None
        if event == "RESUME" and not running:
            self.spans.append([when, None])
        elif event == "STOP" and running:
            self.spans[-1][1] = when

    def running(self):
        return bool(self.spans) and self.spans[-1][1] is None

    def stop(self):
        """Lets the monitor go, which takes one connection at a time."""
        self.end = True
        if self.monitor:
            with contextlib.suppress(OSError):
                self.monitor.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()


def overlap(one, other):
    """Seconds for which both ran."""
    now = time.time()
    return sum(max(0, min(b or now, d or now) - max(a, c)) for a, b in one.spans for c, d in other.spans)
