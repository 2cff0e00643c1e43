"""Peers without the right identity: refused before a byte reaches a hypervisor, with the reason in the log.
Numbers of cases are items of docs/conformance.md."""
import os
import socket
import ssl
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import TLS, ADDRESSES, DEADLINE_S, Lab, Move, ended, need_root, wait_for  # noqa: E402


class AtTheTarget(unittest.TestCase):
    """Hostile clients at a target's listener."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.b = cls.lab.relay("b").ready()
        pki, other = cls.lab.pki, cls.lab.other_pki
        cls.papers = {
            "none": (None, "no certificate was shown"),
            "self-signed": (pki.bad("self", "a", self_signed=True), "the certificate is self-signed"),
            "wrong CA": (other.bad("stranger", "a"), "does not come from this site's CA"),
            "wrong usage": (pki.bad("usage", "a", usage="serverAuth"), "may not be used as a client"),
            "no usage": (pki.bad("nousage", "a", usage=""), "may not be used as a client"),
            "wrong node": (pki.good("c"), "node 'c', expected 'a'"),
            "no node": (pki.bad("nonode", ""), "expected 'a'"),
            "expired": (pki.bad("expired", "a", expired=True), "has expired"),
        }

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def test_a_scanner_does_not_fill_the_log(self):
        """Connections that never prove themselves: some lines, then silence."""
        move = Move(self.lab, None, self.b)
        before = len(self.b.log().splitlines())

        def knock():
            s = socket.create_connection((ADDRESSES["b"][0], move.port_of[49152]), timeout=DEADLINE_S)
            s.sendall(b"SSH-2.0-scanner\r\n")
            while s.recv(1000):
                pass
            s.close()

        def many():
            for _ in range(60):
                try:
                    knock()
                except ConnectionResetError:
                    pass
        self.lab.in_netns("a", many)
        self.b.streams(0, key=move.key)
        lines = [l for l in self.b.log().splitlines()[before:] if "stream not opened" in l]
        self.assertGreater(len(lines), 0)
        self.assertLessEqual(len(lines), 10, lines[:12])

    def test_each(self):
        for name, (papers, reason) in self.papers.items():
            with self.subTest(name):
                move = Move(self.lab, None, self.b)
                port = move.port_of[49152]
                try:
                    s = self.lab.dial_tls("a", ADDRESSES["b"][0], port, *(papers or ()))
                    s.sendall(b"let me in")
                    self.assertTrue(ended(s))
                    s.close()
                except (ssl.SSLError, OSError):
                    pass  # refused while it still shook hands
                line = self.b.wait_log("stream not opened", f"key={move.key}", reason)
                self.assertIn(" warning ", line)
                self.assertTrue(move.nothing_arrives(), "the hypervisor's socket was dialled")
                self.b.streams(0, key=move.key)

    def test_the_right_one_gets_through(self):
        """The same client with good papers: so the refusals above are about the papers."""
        move = Move(self.lab, None, self.b, tls="raw")
        s = self.lab.dial_tls("a", ADDRESSES["b"][0], move.port_of[49152], *self.lab.pki.good("a"), tls="raw")
        s.sendall(b"hello")
        far, _ = move.listeners[49152].accept()
        far.settimeout(DEADLINE_S)
        self.assertEqual(far.recv(16), b"hello")
        far.close()
        s.close()

    def test_no_tls_at_all(self):
        move = Move(self.lab, None, self.b)
        address = (ADDRESSES["b"][0], move.port_of[49152])
        s = self.lab.in_netns("a", lambda: socket.create_connection(address, timeout=DEADLINE_S))
        s.sendall(b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n")
        while not ended(s):
            pass  # an alert may come first
        # Not by its key: another test lets a host knock so often that the log has enough of it.
        self.b.wait_log("stream not opened", "it does not speak TLS, and this side does")
        self.assertTrue(move.nothing_arrives())
        s.close()

    def test_old_tls(self):
        """498: a peer that speaks TLS 1.2 at most is refused in its handshake."""
        move = Move(self.lab, None, self.b)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        if TLS == "ferry":
            context.set_alpn_protocols(["ferry/1"])
        context.load_cert_chain(*self.lab.pki.good("a"))
        address = (ADDRESSES["b"][0], move.port_of[49152])
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.lab.in_netns("a", lambda: context.wrap_socket(socket.create_connection(address, DEADLINE_S)))
        self.b.wait_log("stream not opened", f"key={move.key}", "unsupported protocol")
        self.assertTrue(move.nothing_arrives())

    def test_silence_has_a_deadline(self):
        move = Move(self.lab, None, self.b)
        address = (ADDRESSES["b"][0], move.port_of[49152])
        s = self.lab.in_netns("a", lambda: socket.create_connection(address, timeout=DEADLINE_S))
        self.assertTrue(ended(s))
        self.b.wait_log("stream not opened", f"key={move.key}", "TLS handshake: no answer in time")
        s.close()

    def test_strangers_do_not_keep_the_control_channel(self):
        """Connections that prove nothing leave the one control connection to the rightful node."""
        move = Move(self.lab, None, self.b, tls="raw")
        address = (ADDRESSES["b"][0], move.port_of[0])
        strangers = [self.lab.in_netns("a", lambda: socket.create_connection(address, timeout=DEADLINE_S))
                     for _ in range(5)]
        wait_for("them to arrive", lambda: self.b.must("GET", f"/v1/targets/{move.key}")["arriving"] == 5)
        self.assertEqual(self.b.streams(key=move.key), [])
        s = self.lab.dial_tls("a", *address, *self.lab.pki.good("a"), tls="raw")
        s.sendall(b"virsh")
        far, _ = move.listeners[0].accept()
        far.settimeout(DEADLINE_S)
        self.assertEqual(far.recv(16), b"virsh")
        for x in [far, s, *strangers]:
            x.close()


class AtTheSource(unittest.TestCase):
    """A source that is led to the wrong server."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.a = cls.lab.relay("a").ready()
        cls.b = cls.lab.relay("b").ready()
        pki, other = cls.lab.pki, cls.lab.other_pki
        cls.papers = {
            "self-signed": (pki.bad("self", "b", self_signed=True), "the certificate is self-signed"),
            "wrong CA": (other.bad("stranger", "b"), "does not come from this site's CA"),
            "wrong usage": (pki.bad("usage", "b", usage="clientAuth"), "may not be used as a server"),
            "wrong node": (pki.good("c"), "node 'c', expected 'b'"),
            "expired": (pki.bad("expired", "b", expired=True), "has expired"),
        }

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def serve(self, papers):
        """A TLS server on node b; what it received is in the result after join()."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*papers)
        if TLS == "ferry":
            context.set_alpn_protocols(["ferry/1"])
        listener = self.lab.in_netns("b", lambda: socket.create_server((ADDRESSES["b"][0], 0)))
        listener.settimeout(DEADLINE_S)
        got = []

        def body():
            s, _ = listener.accept()
            try:
                s.settimeout(DEADLINE_S)
                got.append(context.wrap_socket(s, server_side=True).recv(100))
            except (ssl.SSLError, OSError):
                got.append(b"")
            listener.close()
        t = threading.Thread(target=body)
        t.start()
        return listener.getsockname()[1], t, got

    def test_each(self):
        for name, (papers, reason) in self.papers.items():
            with self.subTest(name):
                move = Move(self.lab, self.a, self.b)
                port, server, got = self.serve(papers)
                body = dict(move.source_body, ports={str(port): 49152})
                self.a.must("PUT", f"/v1/sources/{move.key}", body)
                near = self.lab.connect(move.file(49152))
                near.sendall(b"guest memory")
                self.assertTrue(ended(near))
                server.join(DEADLINE_S)
                self.assertEqual(got, [b""], "guest memory went to a stranger")
                self.a.wait_log("stream not opened", f"key={move.key}", reason)

    def test_target_of_another_source(self):
        move = Move(self.lab, self.a, self.b, source_node="x")
        near = self.lab.connect(move.file(49152))
        self.assertTrue(ended(near))
        self.b.wait_log("stream not opened", f"key={move.key}", "node 'a', expected 'x'")
        self.a.wait_log("stream not opened" if TLS == "ferry" else "stream closed", f"key={move.key}",
                        "the peer refused this side")
        self.assertTrue(move.nothing_arrives())

    def test_source_of_another_target(self):
        move = Move(self.lab, self.a, self.b, target_node="x")
        near = self.lab.connect(move.file(49152))
        self.assertTrue(ended(near))
        self.a.wait_log("stream not opened", f"key={move.key}", "node 'b', expected 'x'")
        self.assertTrue(move.nothing_arrives())


need_root()
unittest.main(verbosity=2)
