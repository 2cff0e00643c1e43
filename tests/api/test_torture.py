"""Writers, watchers and kill -9 of the server at random instants: every watcher's history is whole."""
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import Lab, configmaps, wait_for  # noqa: E402
from test_crash import Writer  # noqa: E402

WRITERS, WATCHERS = 4, 4
ROUNDS = int(os.environ.get("FERRY_TORTURE_ROUNDS", "4"))


class Watcher(threading.Thread):
    """Lists, watches, resumes where it was, lists again when told that it cannot; keeps what it saw."""

    def __init__(self, lab):
        super().__init__()
        self.lab, self.stop = lab, threading.Event()
        self.sessions = []  # [version of the list, [versions of the events that followed]]
        self.wrong = []
        self.relists = 0
        self.start()

    def session(self):
        listing = self.lab.admin.ok("GET", configmaps())
        self.sessions.append([int(listing["metadata"]["resourceVersion"]), []])
        self.relists += 1

    def watch(self):
        first, seen = self.sessions[-1]
        watch = self.lab.admin.watch(configmaps(), resourceVersion=(seen or [first])[-1])
        try:
            if watch.status == 410:
                return self.session()
            while not self.stop.is_set():
                event = watch.next()
                if event is None:
                    return None
                if event[0] == "ERROR":
                    return self.session()
                version = int(event[1]["metadata"]["resourceVersion"])
                if version <= (seen or [first])[-1]:
                    self.wrong.append(f"{version} after {(seen or [first])[-1]}")
                seen.append(version)
        finally:
            watch.close()
        return None

    def run(self):
        while not self.stop.is_set():
            try:
                if not self.sessions:
                    self.session()
                self.watch()
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                time.sleep(0.02)  # the server is gone for a moment


class Torture(unittest.TestCase):
    def test_no_gap_and_no_repeat(self):
        lab = Lab()
        watchers = [Watcher(lab) for _ in range(WATCHERS)]
        acknowledged = []
        for generation in range(ROUNDS):
            writers = [Writer(lab, n, generation) for n in range(WRITERS)]
            time.sleep(random.uniform(0.2, 0.6))  # when it dies is up to chance; what must hold is not
            port = lab.port
            lab.stop(signal.SIGKILL)
            for w in writers:
                w.join(120)
                acknowledged += w.versions
            lab.start(listen=f"127.0.0.1:{port}")
        last = int(lab.admin.ok("POST", configmaps(), {"metadata": {"name": "last"}})["metadata"]["resourceVersion"])
        for w in watchers:
            wait_for("a watcher to see the last write", lambda w=w: w.sessions and (
                w.sessions[-1][0] >= last or (w.sessions[-1][1] and w.sessions[-1][1][-1] >= last)))
            w.stop.set()
        lab.admin.ok("POST", configmaps(), {"metadata": {"name": "wakes-the-watchers"}})
        for w in watchers:
            w.join(120)
        self.assertGreater(len(acknowledged), 0)
        self.assertEqual(len(acknowledged), len(set(acknowledged)))
        for w in watchers:
            self.assertEqual(w.wrong, [])
            for first, seen in w.sessions:
                missed = [v for v in acknowledged if first < v <= (seen or [first])[-1] and v not in set(seen)]
                self.assertEqual(missed, [])
        print(f"{len(acknowledged)} writes, {ROUNDS} kills, {sum(w.relists for w in watchers)} lists by {WATCHERS} watchers")
        lab.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
