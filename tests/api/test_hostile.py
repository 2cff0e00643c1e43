"""Bad input and bad circumstances: one clear answer, and the server goes on."""
import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import DEADLINE_S, JSON_PATCH, MERGE_PATCH, PROGRAM, STRATEGIC, Lab, LabCase, configmaps, pods, vmi, vmis  # noqa: E402


class Hostile(LabCase):
    @classmethod
    def tearDownClass(cls):
        cls.api.ok("GET", configmaps())  # still there after all of it
        super().tearDownClass()

    def refused(self, code, words, data, kind="application/json", method="POST", path=configmaps()):
        status, text = self.api.raw(method, path, data, {"Content-Type": kind})
        self.assertEqual(status, code, text[:500])
        answer = json.loads(text)
        self.assertEqual((answer["kind"], answer["status"]), ("Status", "Failure"))
        self.assertIn(words, answer["message"])

    def test_bad_json(self):
        for data, words in (
                (b"", "no body"), (b"{", "invalid JSON at byte"), (b"nonsense", "invalid JSON at byte 0"), (b"[]", "must be a JSON object"),
                (b'"x"', "must be a JSON object"), (b'{"a":1,"a":2}', "duplicate key 'a'"),
                (b'{"metadata":{"name":"x","name":"y"}}', "metadata: duplicate key 'name'"),
                (b'{"metadata":{"name":"x\\u0000"}}', "metadata.name: contains a NUL"), (b'{"a":"\xff"}', "invalid JSON"),
                (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"), (b'{"a":' * 100 + b"1" + b"}" * 100, "nested too deeply"),
                (b'{"metadata":[]}', "metadata: must be an object")):
            self.refused(400, words, data)
        self.refused(422, "metadata.labels[a]: Invalid value: must be a string", b'{"metadata":{"name":"x","labels":{"a":1}}}')
        self.refused(422, "metadata.name: Invalid value", b'{"metadata":{"name":"../x"}}')
        self.refused(422, "metadata.name: Invalid value", json.dumps({"metadata": {"name": "x" * 300}}))

    def test_bad_yaml(self):
        for data, words in ((b"a: [1", "line"), (b"a: &x 1\nb: *x\n", "anchors"), (b"a: 1\n---\nb: 2\n", "more than one"),
                            (b"# nothing\n", "empty"), (b"- 1\n", "must be a JSON object"), (b"a: 1\na: 2\n", "duplicate key")):
            self.refused(400, words, data, "application/yaml")

    def test_unknown_formats(self):
        self.refused(415, "not understood for this kind", b"k8s\0", "application/vnd.kubernetes.protobuf")
        self.refused(400, "malformed protobuf", b"k8s", "application/vnd.kubernetes.protobuf")
        self.refused(415, "unknown format", b"<x/>", "text/xml")

    def test_patch_bomb(self):
        self.api.ok("POST", configmaps(), {"metadata": {"name": "bomb", "finalizers": ["ferry.io/bomb"]}})
        bomb = json.dumps([{"op": "copy", "from": "/metadata/finalizers", "path": "/metadata/finalizers/-"}] * 5000)
        self.refused(400, "copies too much", bomb, JSON_PATCH, "PATCH", configmaps("bomb"))

    def test_many_parts(self):
        """What takes the product of two sizes to work on, while others wait to write: bounded."""
        data = {str(i): "" for i in range(9000)}
        self.refused(400, "data: too many keys", json.dumps({"metadata": {"name": "parts"}, "data": data}))
        self.refused(400, "metadata.finalizers: too many items", json.dumps({"metadata": {"name": "parts", "finalizers": ["x"] * 70_000}}))
        # a list without repetition, as long as it gets
        self.api.ok("POST", vmis(), vmi("parts"))
        conditions = [{"type": str(i), "status": "True"} for i in range(60_000)]
        after = self.api.ok("PATCH", vmis("parts"), {"status": {"conditions": conditions}}, MERGE_PATCH)
        self.assertEqual(len(after["status"]["conditions"]), 60_000)
        conditions[59_999], conditions[40_000] = conditions[7], conditions[3]
        self.refused(422, 'status.conditions[40000]: Duplicate value: {"type":"3"}', json.dumps({"status": {"conditions": conditions}}),
                     MERGE_PATCH, "PATCH", vmis("parts"))
        # a list that is merged item by item
        self.api.ok("POST", "/api/v1/nodes", {"metadata": {"name": "parts"}})
        self.refused(400, "conditions: too many items to merge", json.dumps({"status": {"conditions": conditions}}), STRATEGIC, "PATCH",
                     "/api/v1/nodes/parts/status")
        self.refused(400, "finalizers: too many items to merge", json.dumps({"metadata": {
            "$deleteFromPrimitiveList/finalizers": ["x"] * 60_000}}), STRATEGIC, "PATCH", "/api/v1/nodes/parts")

    def test_answers_are_text(self):
        """Whatever bytes are asked for, the answer is JSON."""
        for path in ("%ff", "%c3%28", "%ed%a0%80", "a%f0%9f", "%00", "%00x", "x%00"):
            status, text = self.api.raw("GET", pods(path))
            self.assertEqual(status, 404, path)
            self.assertEqual(json.loads(text.decode("utf-8"))["kind"], "Status")
        # what ends a text in C is no end of an address: this is not all pods
        self.assertEqual(self.api.raw("DELETE", pods("%00"))[0], 404)
        self.assertEqual(self.api.raw("GET", configmaps() + "?labelSelector=a%00b")[0], 400)
        # one that is cut inside a character
        for kind in ("é" * 120, "a" + "é" * 120):
            self.refused(400, "does not match the kind", json.dumps({"kind": kind}))

    def test_large_body(self):
        self.refused(413, "larger than", b"x" * (4 << 20))
        # announced, never sent
        with contextlib.closing(self.api.connect()) as c:
            c.putrequest("POST", configmaps())
            c.putheader("Content-Length", str(1 << 40))
            c.endheaders()
            self.assertEqual(c.getresponse().status, 413)

    def test_chunks_without_end(self):
        c = self.api.connect()
        c.putrequest("POST", configmaps())
        c.putheader("Transfer-Encoding", "chunked")
        c.endheaders()
        piece = b"x" * 65536
        sent = 0
        try:
            while sent < 256 << 20:
                c.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                sent += len(piece)
        except OSError:
            pass
        c.close()
        self.assertLess(sent, 128 << 20)

    def test_odd_requests(self):
        for path, code in (("/api/v1/namespaces/default/pods/" + "a" * 2000, 404),
                           ("//", 404), ("/api/v1/namespaces/default/pods?watch=true&timeoutSeconds=x", 400),
                           ("/api/v1/namespaces/default/pods?labelSelector=" + "a," * 200, 400), ("/%2e%2e/%2e%2e/etc/passwd", 404)):
            self.assertEqual(self.api.raw("GET", path)[0], code, path)
        self.assertEqual(self.api.raw("BREW", pods())[0], 405)

    def test_not_tls(self):
        with socket.create_connection(("127.0.0.1", self.lab.port), timeout=DEADLINE_S) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                self.assertNotIn(b"200", s.recv(1000))
            except OSError:
                pass

    def test_idle_connections(self):
        """Those that connect and say nothing do not keep others out."""
        idle = [socket.create_connection(("127.0.0.1", self.lab.port), timeout=DEADLINE_S) for _ in range(200)]
        try:
            self.api.ok("GET", configmaps())
        finally:
            for s in idle:
                s.close()


class Doors(unittest.TestCase):
    """The program called wrongly, or where it cannot work."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ferry-api-")

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def fails(self, code, words, *args, **options):
        done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=DEADLINE_S, check=False, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("ferry-apiserver: "), done.stderr)
        self.assertIn(words, done.stderr)

    def test_wrong_calls(self):
        self.fails(2, "unknown option --frob", "--frob")
        self.fails(2, "unexpected argument 'nonsense'", "nonsense")
        self.fails(2, "--log-level", "--log-level", "loud")
        self.fails(2, "expected 'pki node NAME'", "pki", "frob")
        self.fails(2, "--out is required", "pki", "controller", "--server", "https://x")
        self.fails(2, "--server is required", "pki", "node", "n1", "--out", self.dir)
        self.fails(2, "not an https:// URL", "pki", "node", "n1", "--out", self.dir, "--server", "x", "--data", self.dir)
        self.fails(2, "is not a node name", "pki", "node", "N 1", "--out", self.dir, "--server", "https://x", "--data", self.dir)
        self.fails(2, "--relay-owner", "pki", "node", "n1", "--out", self.dir, "--server", "https://x", "--relay-owner", "me")

    def test_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            where = f"127.0.0.1:{s.getsockname()[1]}"
            self.fails(1, f"listening on {where}: Address already in use", "--data", self.dir, "--listen", where)
        self.fails(1, "is not ADDRESS:PORT", "--data", self.dir, "--listen", "here")
        self.fails(1, "is not ADDRESS:PORT", "--data", self.dir, "--listen", "127.0.0.1:99999")

    def test_data_directory(self):
        with open(os.path.join(self.dir, "file"), "w", encoding="utf-8"):
            pass
        self.fails(1, "making directory", "--listen", "127.0.0.1:0", "--data", os.path.join(self.dir, "file/x"))
        self.fails(1, "making directory", "--listen", "127.0.0.1:0", "--data", "/proc/nowhere")

    def test_not_a_database(self):
        with open(os.path.join(self.dir, "api.db"), "w", encoding="utf-8") as f:
            f.write("this is not SQLite " * 100)
        self.fails(1, "api.db", "--listen", "127.0.0.1:0", "--data", self.dir)

    def test_two_at_once(self):
        lab = Lab()
        self.fails(1, "another process has it open", "--listen", "127.0.0.1:0", "--data", lab.data)
        lab.close()

    def test_inherited_socket(self):
        """A socket that was opened elsewhere (in another network namespace, say) is served too."""
        with socket.socket() as s:
            s.bind(("127.0.0.3", 0))
            s.listen()
            port = s.getsockname()[1]
            script = f'exec "$0" --data "$1" --listen 127.0.0.1:0 3<&{s.fileno()}'
            server = subprocess.Popen(["sh", "-c", script, PROGRAM, self.dir], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True, pass_fds=[s.fileno()], env={**os.environ, "LISTEN_FDS": "1"})
        try:
            lines = [server.stdout.readline() for _ in range(2)]
            self.assertEqual(lines[1], f"listening https://127.0.0.3:{port}\n")
            # its address is in the certificate
            context = ssl.create_default_context(cafile=os.path.join(self.dir, "ca/ca.crt"))
            c = http.client.HTTPSConnection("127.0.0.3", port, context=context, timeout=DEADLINE_S)
            c.request("GET", "/readyz")
            self.assertEqual(c.getresponse().read(), b"ok")
            c.close()
        finally:
            server.terminate()
            self.assertEqual(server.wait(DEADLINE_S), 0)
            server.stdout.close()

    def test_help(self):
        for args in (["--help"], ["serve", "--help"], ["pki", "--help"], ["--version"]):
            done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("ferry-apiserver", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
