"""What only a node knows, asked through the API server: a real ferry-handler, and nodes that misbehave."""
import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import unittest

import lab
from lab import wait_for

HANDLER = os.path.join(lab.BUILD, "src/programs/ferry-handler")


def proxy(node, rest):
    return f"/api/v1/nodes/{node}/proxy{rest}"


class Rogue:
    """An HTTPS server with the certificate of a node (or another) that does to each call what it is told."""

    def __init__(self, cert, key, behave):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.behave = behave
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.requests = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                raw, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        with contextlib.suppress(OSError), self.context.wrap_socket(raw, server_side=True) as c:
            data = b""
            while b"\r\n\r\n" not in data:
                piece = c.recv(65536)
                if not piece:
                    return
                data += piece
            self.requests.append(data.decode())
            self.behave(c)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Proxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = lab.Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.root = os.path.join(cls.lab.dir, "a")
        cls.pki("a", os.path.join(cls.root, "var/lib/ferry"))
        cls.pki("b", os.path.join(cls.lab.dir, "b"))
        with open(os.path.join(cls.lab.dir, "handler.log"), "w", encoding="utf-8") as log:
            cls.handler = subprocess.Popen([HANDLER, "--root", cls.root, "--node", "a", "--node-address", "127.0.0.1"],
                                           stdout=log, stderr=log)
        cls.addClassCleanup(cls.end_handler)
        wait_for("the node to say where its API is", cls.port, 60)

    @classmethod
    def end_handler(cls):
        cls.handler.terminate()
        cls.handler.wait(60)

    @classmethod
    def pki(cls, node, out):
        lab.run(lab.PROGRAM, "pki", "node", node, "--data", cls.lab.data, "--out", out, "--server",
                f"https://127.0.0.1:{cls.lab.port}")

    @classmethod
    def port(cls):
        status, node = cls.lab.admin.call("GET", "/api/v1/nodes/a")
        if status != 200:
            return 0
        return node.get("status", {}).get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)

    def rogue(self, behave, name="b", pair=None):
        """A node whose Node object leads to a server that does `behave` to its calls."""
        pki = os.path.join(self.lab.dir, "b/pki")
        r = Rogue(*(pair or (f"{pki}/node.crt", f"{pki}/node.key")), behave)
        self.addCleanup(r.close)
        self.node(name, r.port)
        return r

    def node(self, name, port):
        self.lab.admin.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        self.lab.admin.ok("PATCH", f"/api/v1/nodes/{name}/status",
                          {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                                      "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}, lab.MERGE_PATCH)

    def get(self, rest, who=None, node="a"):
        return (who or self.lab.admin).raw("GET", proxy(node, rest))

    # ---- a real handler

    def test_what_a_handler_answers_comes_through(self):
        self.assertEqual(self.get("/healthz"), (200, b"ok"))
        status, text = self.get("/metrics")
        self.assertEqual(status, 200)
        self.assertIn(b"ferry_", text)
        status, text = self.get("/v1/checks/0-0-0")
        self.assertEqual((status, json.loads(text)["message"]), (404, "this node has no part in migration '0-0-0'"))
        status, text = self.get("/v1/console/default/no%20vm?tail=10")
        self.assertEqual(status, 404)
        self.assertIn("'default/no vm'", json.loads(text)["message"])
        status, text = self.get("/nowhere")
        self.assertEqual((status, json.loads(text)["message"]), (404, "/nowhere: no such call"))

    def test_kubectl_gets_it_raw(self):
        self.assertEqual(self.lab.kubectl("get", "--raw", proxy("a", "/healthz")), "ok")
        self.assertIn("NotFound", self.lab.kubectl("get", "--raw", proxy("a", "/nowhere"), code=1))

    def test_the_handler_lets_nobody_else_in(self):
        """Without the proxy the same caller is refused: it is the server's certificate that opens the door."""
        pki = os.path.join(self.root, "var/lib/ferry/pki")
        context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        context.load_cert_chain(f"{pki}/node.crt", f"{pki}/node.key")
        with socket.create_connection(("127.0.0.1", self.port()), 30) as raw:
            c = http.client.HTTPConnection("a")
            c.sock = context.wrap_socket(raw, server_hostname="a")
            c.request("GET", "/healthz")
            self.assertEqual(c.getresponse().status, 403)
            c.close()
        self.assertEqual(self.get("/healthz", self.lab.client_of(os.path.join(self.root, "var/lib/ferry/node.kubeconfig"))),
                         (200, b"ok"))

    def test_a_port_cannot_be_chosen(self):
        for name in ("a:22", "https:a:", "http:a:80"):
            status, text = self.get("/healthz", node=name)
            self.assertEqual(status, 400, text)
            self.assertIn("port", json.loads(text)["message"])

    def test_other_methods(self):
        for method in ("PUT", "PATCH", "DELETE"):
            status, answer = self.lab.admin.call(method, proxy("a", "/healthz"), {})
            self.assertEqual((status, answer["reason"]), (405, "MethodNotAllowed"), method)

    def test_post(self):
        status, answer = self.lab.admin.call("POST", proxy("a", "/v1/plan/default/none"), {})
        self.assertEqual(status, 404, answer)
        self.assertIn("default/none", answer["message"])
        status, answer = self.lab.admin.call("POST", proxy("a", "/healthz"), {})
        self.assertEqual(status, 405, answer)

    def test_paths_that_climb(self):
        for rest in ("/v1/records/../console/default/vm", "/v1/records/%2e%2e/console/default/vm", "//healthz", "/."):
            self.assertEqual(self.get(rest)[0], 400, rest)

    def test_who_may(self):
        viewer = self.lab.client_with(self.lab.certificate("viewer", "/O=ferry:viewers/CN=eve"))
        other, controller = self.lab.node("c"), self.lab.controller()
        for who, rest, code in ((viewer, "/healthz", 200), (viewer, "/v1/console/default/vm", 403),
                                (controller, "/metrics", 200), (controller, "/v1/console/default/vm", 403),
                                (other, "/healthz", 403), (self.lab.anonymous(), "/healthz", 401)):
            self.assertEqual(self.get(rest, who)[0], code, rest)

    def test_every_call_leaves_an_audit_line(self):
        self.get("/v1/checks/find-me")
        line = [s for s in self.lab.log_text().splitlines() if "audit" in s and "proxy" in s][-1]
        for word in ("ferry-admin", "nodes", "proxy", "404"):
            self.assertIn(word, line)

    # ---- nodes that are away, or not what they say

    def test_unknown_and_silent_nodes(self):
        self.assertEqual(self.get("/healthz", node="nobody")[0], 404)
        self.lab.admin.ok("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mute"}})
        status, text = self.get("/healthz", node="mute")
        self.assertEqual(status, 503)
        self.assertIn("does its ferry-handler run?", json.loads(text)["message"])
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        self.node("gone", port)
        status, text = self.get("/healthz", node="gone")
        self.assertEqual(status, 503)
        self.assertIn(f"127.0.0.1:{port}", json.loads(text)["message"])

    def test_the_node_is_known_by_its_name(self):
        """A node that leads its Node object to another's server: nothing is asked of that one."""
        r = self.rogue(lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), "not-b")
        status, text = self.get("/healthz", node="not-b")
        self.assertEqual(status, 502, text)
        self.assertEqual(r.requests, [])
        pair = self.lab.certificate("selfmade", "/CN=b", usage="serverAuth", ca="self")
        r = self.rogue(lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), pair=pair)
        self.assertEqual(self.get("/healthz", node="b")[0], 502)
        self.assertEqual(r.requests, [])

    def test_an_answer_streams(self):
        """What the node sent is here while the node still holds its answer open."""
        go_on = threading.Event()
        self.addCleanup(go_on.set)

        def behave(c):
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"6\r\nfirst\n\r\n")
            go_on.wait(60)
            c.sendall(b"7\r\nsecond\n\r\n0\r\n\r\n")
        r = self.rogue(behave)
        with contextlib.closing(self.lab.admin.connect(60)) as c:
            c.request("GET", proxy("b", "/v1/records/u?follow=a%26b&x"))
            answer = c.getresponse()
            self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, "application/x-ndjson"))
            self.assertEqual(answer.readline(), b"first\n")
            go_on.set()
            self.assertEqual(answer.read(), b"second\n")
        self.assertTrue(r.requests[0].startswith("GET /v1/records/u?follow=a%26b&x HTTP/1.1\r\n"), r.requests[0])
        self.assertIn("Host: b:", r.requests[0])

    def test_an_answer_that_breaks_off_is_not_taken_for_whole(self):
        def behave(c):
            c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        self.rogue(behave)
        with contextlib.closing(self.lab.admin.connect(60)) as c:
            c.request("GET", proxy("b", "/v1/records/u"))
            answer = c.getresponse()
            self.assertEqual(answer.status, 200)
            with self.assertRaises((http.client.IncompleteRead, ConnectionError, ssl.SSLError)):
                answer.read()

    def test_a_caller_that_is_slow_costs_little_and_one_that_leaves_ends_the_call(self):
        ended, sent, before = threading.Event(), [0], self.memory()

        def behave(c):
            c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):
                while True:
                    c.sendall(b"2710\r\n" + b"x" * 10000 + b"\r\n")
                    sent[0] += 10000
            ended.set()
        self.rogue(behave)
        with contextlib.closing(self.lab.admin.connect(60)) as c:
            c.request("GET", proxy("b", "/v1/records/u"))
            answer = c.getresponse()
            self.assertEqual(answer.read(100), b"x" * 100)
            stands = []
            wait_for("the node to be slowed down", lambda: stands.append(sent[0]) or stands[-5:] == [sent[0]] * 5, 60, 0.2)
            self.assertLess(self.memory(), before + (32 << 20))
        self.assertTrue(ended.wait(60))

    def memory(self):
        with open(f"/proc/{self.lab.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096

    def test_nodes_that_talk_nonsense(self):
        for nonsense in (b"", b"\x00" * 100, b"HTTP/1.1 999999 x\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500000):
            self.rogue(lambda c, text=nonsense: c.sendall(text))
            status, text = self.get("/healthz", node="b")
            self.assertIn(status, (502, 503), nonsense[:30])
            self.assertIn("b", json.loads(text)["message"])
        self.rogue(lambda c: c.sendall(b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"))
        self.assertEqual(self.get("/healthz", node="b")[0], 302)  # passed on, not followed

    def test_too_many_calls_are_refused_and_others_served(self):
        hold = threading.Event()
        self.addCleanup(hold.set)

        def behave(c):
            c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
            hold.wait(60)
        self.rogue(behave)
        with contextlib.ExitStack() as stack:
            for _ in range(64):
                c = stack.enter_context(contextlib.closing(self.lab.admin.connect(60)))
                c.request("GET", proxy("b", "/v1/records/u"))
                self.assertEqual(c.getresponse().status, 200)
            self.assertEqual(self.get("/healthz")[0], 429)
            self.assertEqual(self.lab.admin.raw("GET", "/api/v1/nodes")[0], 200)
        hold.set()
        wait_for("a call to be taken again", lambda: self.get("/healthz")[0] == 200, 60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
