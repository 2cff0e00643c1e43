"""Hostile HTTP: a clear answer where HTTP still allows one, bounded memory, and others are served meanwhile."""
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import DEADLINE_S, LabCase, configmaps, wait_for  # noqa: E402

MORE_THAN_FIT = 2200  # the server takes 2048
IDLE = int(os.environ.get("FERRY_IDLE_CONNECTIONS", "1000"))
MEMORY_MIB = 600  # with sanitizers and a thread per connection


class Abuse(LabCase):
    def tearDown(self):
        self.api.ok("GET", configmaps())
        with open(f"/proc/{self.lab.process.pid}/status", encoding="ascii") as f:
            mib = next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024
        self.assertLess(mib, MEMORY_MIB)

    def tls(self):
        s = socket.create_connection(("127.0.0.1", self.lab.port), timeout=DEADLINE_S)
        return self.api.context.wrap_socket(s, server_hostname="127.0.0.1")

    def send(self, *pieces):
        """What the server says to these bytes; b"" when it just closes."""
        with self.tls() as s:
            try:
                for p in pieces:
                    s.sendall(p)
                return s.recv(4096)
            except OSError:
                return b""

    def test_huge_headers(self):
        line = b"X-Long: " + b"a" * 1000 + b"\r\n"
        answer = self.send(b"GET /api HTTP/1.1\r\nHost: x\r\n", line * 2000, b"\r\n")
        self.assertTrue(answer == b"" or answer.split(b" ")[1] in (b"400", b"413", b"431"), answer[:100])
        answer = self.send(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(answer == b"" or answer.split(b" ")[1] in (b"400", b"404", b"414", b"431"), answer[:100])

    def test_bad_chunks(self):
        head = f"POST {configmaps()} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
        for body in (b"zz\r\nxx\r\n", b"ffffffffffffffffff\r\n", b"-1\r\nx\r\n", b"5\r\nabc\r\n0\r\n\r\n"):
            answer = self.send(head, b"Transfer-Encoding: chunked\r\n\r\n", body, b"\r\n\r\n")
            self.assertTrue(answer == b"" or answer.split(b" ")[1].startswith(b"4"), (body, answer[:100]))
        answer = self.send(head, b"Content-Length: -5\r\n\r\n")
        self.assertTrue(answer == b"" or answer.split(b" ")[1].startswith(b"4"), answer[:100])

    def test_slow_bodies(self):
        """They hold their own connection, nothing else."""
        slow = [self.tls() for _ in range(20)]
        for s in slow:
            s.sendall(f"POST {configmaps()} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{".encode())
        begin = time.monotonic()
        for i in range(20):
            self.api.ok("POST", configmaps(), {"metadata": {"name": f"beside-{i}"}})
        self.assertLess(time.monotonic() - begin, DEADLINE_S)
        for s in slow:
            s.close()

    def test_idle_connections(self):
        idle = [socket.create_connection(("127.0.0.1", self.lab.port), timeout=DEADLINE_S) for _ in range(IDLE)]
        try:
            self.api.ok("POST", configmaps(), {"metadata": {"name": "beside-the-idle"}})
        finally:
            for s in idle:
                s.close()

    def test_no_room(self):
        """More than there is room for, who say nothing: they do not stay, and others get in."""
        idle = [socket.create_connection(("127.0.0.1", self.lab.port), timeout=DEADLINE_S) for _ in range(MORE_THAN_FIT)]
        try:
            def served():
                try:
                    return self.api.call("GET", configmaps())[0] == 200
                except OSError:
                    return False
            wait_for("somebody with a certificate to be served", served, step=1)
        finally:
            for s in idle:
                s.close()

    def test_metrics(self):
        status, text = self.api.raw("GET", "/metrics")
        self.assertEqual(status, 200)
        for line in (b'ferry_apiserver_objects{group="",resource="namespaces"} 3', b"ferry_apiserver_resource_version ",
                     b'ferry_apiserver_requests_total{kind="read",code="2xx"}'):
            self.assertIn(line, text)
        self.assertEqual(self.lab.anonymous().raw("GET", "/metrics")[0], 401)


if __name__ == "__main__":
    unittest.main(verbosity=2)
