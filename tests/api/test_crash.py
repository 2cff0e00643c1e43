"""kill -9 in the middle of writing: what was answered is there, what comes back is whole."""
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
from lab import MERGE_PATCH, Lab, configmaps, wait_for  # noqa: E402

WRITERS, ROUNDS = 4, 5


class Writer(threading.Thread):
    """Creates and changes objects as fast as it can; remembers what was acknowledged."""

    def __init__(self, lab, number, generation):
        super().__init__()
        self.client, self.prefix = lab.admin, f"c-{generation}-{number}"
        self.acknowledged = {}  # name -> number of the last change that was answered
        self.maybe = {}         # name -> number of a change that was under way
        self.versions = []
        self.start()

    def write(self, connection, method, path, body, kind):
        connection.request(method, path, json.dumps(body), {"Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)

    def run(self):
        try:
            connection = self.client.connect()
            for i in range(100_000):
                name = f"{self.prefix}-{i // 5}"
                self.maybe = {name: i}
                body = {"metadata": {"name": name}, "data": {"n": str(i)}}
                if i % 5 == 0:
                    made = self.write(connection, "POST", configmaps(), body, "application/json")
                else:
                    made = self.write(connection, "PATCH", configmaps(name), {"data": {"n": str(i)}}, MERGE_PATCH)
                self.acknowledged[name] = i
                self.versions.append(int(made["metadata"]["resourceVersion"]))
        except (OSError, http.client.HTTPException):
            pass  # the server is gone


class Crash(unittest.TestCase):
    def test_acknowledged_writes_stay(self):
        lab = Lab()
        newest = 0
        total = 0
        for generation in range(ROUNDS):
            writers = [Writer(lab, n, generation) for n in range(WRITERS)]
            wait_for("all to write", lambda ws=writers: all(w.acknowledged or not w.is_alive() for w in ws))
            time.sleep(random.uniform(0, 0.6))  # when it dies is up to chance; what must hold is not
            lab.stop(signal.SIGKILL)
            for w in writers:
                w.join(120)
            lab.start()
            listing = lab.admin.ok("GET", configmaps())
            found = {i["metadata"]["name"]: i for i in listing["items"]}
            for w in writers:
                self.assertGreater(len(w.acknowledged), 0, lab.log_text())
                for name, n in w.acknowledged.items():
                    self.assertIn(name, found)
                    self.assertIn(int(found[name]["data"]["n"]), {n, w.maybe.get(name, n)})
                newest = max([newest, *w.versions])
                total += len(w.versions)
            self.assertGreaterEqual(int(listing["metadata"]["resourceVersion"]), newest)
            after = lab.admin.ok("POST", configmaps(), {"metadata": {"name": f"after-{generation}"}})
            self.assertGreater(int(after["metadata"]["resourceVersion"]), newest)
        print(f"{total} acknowledged writes over {ROUNDS} kills, all there")
        lab.close()

    def test_same_site_after_restart(self):
        lab = Lab()
        made = lab.admin.ok("POST", configmaps(), {"metadata": {"name": "kept"}})
        old = lab.admin
        lab.stop(signal.SIGKILL)
        lab.start(listen=f"127.0.0.1:{lab.port}")
        self.assertEqual(old.ok("GET", configmaps("kept")), made)  # the old certificate and CA still hold
        lab.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
