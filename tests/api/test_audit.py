"""Audit: events of audit.k8s.io/v1 in a file that is closed to others and rotates, by a policy or without one."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import PROGRAM, Lab, configmaps  # noqa: E402

SECRETS = "/api/v1/namespaces/default/secrets"
HIDDEN = "aGlkZGVuLTlhNzc="
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/api*", /healthz]
- level: RequestResponse
  resources:
  - group: ""
    resources: [secrets]
- level: RequestResponse
  verbs: [create, patch]
  resources:
  - group: ""
    resources: [configmaps]
- level: Request
  verbs: [delete]
- level: Metadata
  users: [ferry-admin]
"""


class Audit(unittest.TestCase):
    def start(self, *options, policy=None):
        self.dir = tempfile.mkdtemp(prefix="ferry-audit-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.path = os.path.join(self.dir, "audit.log")
        options = ["--audit-log-path", self.path, *options]
        if policy:
            with open(os.path.join(self.dir, "policy.yaml"), "w", encoding="utf-8") as f:
                f.write(policy)
            options += ["--audit-policy-file", f.name]
        self.lab = Lab(*options)
        self.addCleanup(self.lab.close)
        return self.lab.admin

    def events(self, path=None):
        """All that is in the file, in words."""
        with open(path or self.path, encoding="utf-8") as f:
            found = [json.loads(line) for line in f]
        for e in found:
            self.assertEqual((e["kind"], e["apiVersion"]), ("Event", "audit.k8s.io/v1"))
            self.assertTrue(e["auditID"] and e["requestReceivedTimestamp"] <= e["stageTimestamp"])
            self.assertEqual(e["sourceIPs"], ["127.0.0.1"])
        return found

    def words(self):
        return [(e["verb"], e.get("objectRef", {}).get("resource", e["requestURI"]), e.get("objectRef", {}).get("name", ""),
                 e["responseStatus"]["code"], e["level"]) for e in self.events()]

    def test_without_a_policy(self):
        api = self.start()
        api.ok("POST", SECRETS, {"metadata": {"name": "s"}, "data": {"p": HIDDEN}})
        api.ok("GET", SECRETS + "/s")
        api.ok("GET", configmaps())
        self.assertEqual(self.lab.anonymous().call("GET", configmaps())[0], 401)
        eve = self.lab.client_with(self.lab.certificate("eve", "/O=team/CN=eve"))
        self.assertEqual(eve.call("GET", configmaps("x") + "?a=b")[0], 403)
        self.assertEqual(self.words(), [("create", "secrets", "s", 201, "Metadata"), ("get", "secrets", "s", 200, "Metadata"),
                                        ("list", "configmaps", "", 401, "Metadata"), ("get", "configmaps", "x", 403, "Metadata")])
        last = self.events()[-1]
        self.assertEqual(last["user"], {"username": "eve", "groups": ["team", "system:authenticated"]})
        self.assertEqual(last["requestURI"], configmaps("x") + "?a=b")
        self.assertEqual(last["annotations"], {"authorization.k8s.io/decision": "forbid"})
        self.assertIn("cannot get", last["responseStatus"]["message"])
        self.assertEqual(last["objectRef"], {"resource": "configmaps", "namespace": "default", "name": "x", "apiVersion": "v1"})
        with open(self.path, encoding="utf-8") as f:
            self.assertNotIn(HIDDEN, f.read())
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)

    def test_a_policy(self):
        api = self.start(policy=POLICY)
        api.ok("GET", "/api")
        api.ok("POST", configmaps(), {"metadata": {"name": "c"}, "data": {"p": "shown"}})
        api.ok("POST", SECRETS, {"metadata": {"name": "s"}, "data": {"p": HIDDEN}})
        api.ok("GET", SECRETS)
        api.ok("DELETE", configmaps("c"), {"gracePeriodSeconds": 0})
        watch = api.watch(configmaps(), timeoutSeconds=1)
        watch.close()
        self.assertEqual(self.words(), [("create", "configmaps", "c", 201, "RequestResponse"), ("create", "secrets", "s", 201, "Metadata"),
                                        ("list", "secrets", "", 200, "Metadata"), ("delete", "configmaps", "c", 200, "Request"),
                                        ("watch", "configmaps", "", 200, "Metadata")])
        made, _, _, gone, watched = self.events()
        self.assertEqual(made["requestObject"]["data"], {"p": "shown"})
        self.assertTrue(made["responseObject"]["metadata"]["uid"])
        self.assertEqual(gone["requestObject"], {"gracePeriodSeconds": 0})
        self.assertNotIn("responseObject", gone)
        self.assertEqual(watched["stage"], "ResponseStarted")
        with open(self.path, encoding="utf-8") as f:
            self.assertNotIn(HIDDEN, f.read())

    def test_rotation(self):
        api = self.start("--audit-log-maxsize", "1", "--audit-log-maxbackup", "2", policy=POLICY)
        big = {"p": "x" * 400000}
        for i in range(6):
            api.ok("POST", configmaps(), {"metadata": {"name": f"c{i}"}, "data": big})
        self.assertEqual(sorted(n for n in os.listdir(self.dir) if n.startswith("audit")), ["audit.log", "audit.log.1", "audit.log.2"])
        for name in ("audit.log", "audit.log.1", "audit.log.2"):
            path = os.path.join(self.dir, name)
            self.assertLess(os.path.getsize(path), (1 << 20) + 1)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            self.events(path)

    def test_what_is_no_policy(self):
        for text, why in (("kind: Pod", "not a Policy"), (POLICY.replace("Metadata", "Everything"), "level"),
                          (POLICY.replace("users:", "user:"), "no such field"), ("", "empty")):
            with tempfile.TemporaryDirectory() as d:
                path = os.path.join(d, "policy")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                done = subprocess.run([PROGRAM, "--data", os.path.join(d, "data"), "--listen", "127.0.0.1:0", "--audit-log-path",
                                       os.path.join(d, "log"), "--audit-policy-file", path], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn(why, done.stderr)
                self.assertIn(path, done.stderr)
        done = subprocess.run([PROGRAM, "--audit-policy-file", "x"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done)


if __name__ == "__main__":
    unittest.main(verbosity=2)
