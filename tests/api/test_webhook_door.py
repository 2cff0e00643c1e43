"""The webhook of ferry-controller as Kubernetes meets it: who may ask, what is no question, and certificates that are exchanged."""
import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import BUILD, DEADLINE_S, Lab, migration, vmi, vmis, wait_for  # noqa: E402

CONTROLLER = os.path.join(BUILD, "src/programs/ferry-controller")
MIGRATIONS = "/v1/admit/migrations"


def review(body, **request):
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u1", "operation": "CREATE", "namespace": "default", "object": body, **request}}


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Door(unittest.TestCase):
    """One API server for all; a controller per test, because its options differ."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.lab.controller()
        cls.lab.admin.ok("POST", vmis(), vmi("v"))

    def setUp(self):
        self.port = free_port()
        self.pair = self.issue("webhook")
        self.log = os.path.join(self.lab.dir, self._testMethodName + ".log")

    def issue(self, name, usage="serverAuth", **how):
        """A pair of files of this test's own."""
        name = f"{self._testMethodName}-{name}"
        return self.lab.certificate(name, "/CN=" + name[:60], usage, **how)

    def serve(self, *options):
        with open(self.log, "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [CONTROLLER, "--kubeconfig", os.path.join(self.lab.dir, "controller.kubeconfig"), "--webhook", f"127.0.0.1:{self.port}",
                 "--webhook-cert", self.pair[0], "--webhook-key", self.pair[1], *options], stderr=log, stdout=log)
        self.addCleanup(self.end, process)
        wait_for("the webhook to answer", lambda: self.health() == 200)

    def end(self, process):
        process.terminate()
        self.assertEqual(process.wait(DEADLINE_S), 0, self.said())
        self.assertNotIn("ThreadSanitizer", self.said())

    def said(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def context(self, pair=None):
        """Names are not compared: the certificates here have none."""
        made = ssl.create_default_context(cafile=self.lab.ca[0])
        made.check_hostname = False
        if pair:
            made.load_cert_chain(*pair)
        return made

    def ask(self, path, body, pair=None, method="POST"):
        """(status, decoded or plain answer)"""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context(pair), timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body if isinstance(body, (str, bytes)) else json.dumps(body))
            answer = connection.getresponse()
            text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def health(self):
        with contextlib.suppress(OSError):
            return self.ask("/healthz", "", method="GET")[0]
        return None

    def served(self):
        """The certificate that new connections get."""
        with contextlib.closing(socket.create_connection(("127.0.0.1", self.port), DEADLINE_S)) as plain:
            with self.context().wrap_socket(plain) as s:
                return ssl.DER_cert_to_PEM_cert(s.getpeercert(True)).strip()

    # ---- who may ask

    def test_everybody(self):
        """without a CA of clients all who reach the port are answered"""
        self.serve()
        status, answer = self.ask(MIGRATIONS, review(migration("m", "v")))
        self.assertEqual((status, answer["response"]["uid"], answer["response"]["allowed"]), (200, "u1", True))
        status, answer = self.ask(MIGRATIONS, review(migration("m", "ghost")))
        self.assertEqual((status, answer["response"]["allowed"]), (200, False))
        self.assertIn("ghost", answer["response"]["status"]["message"])

    def test_only_clients_of_a_ca(self):
        """with one, a client needs a certificate of it; health needs none"""
        ca = self.issue("ca", "ca", ca="self")
        friend = self.issue("friend", "clientAuth", ca=ca)
        # As good as the friend's, of the site's CA: that one was not named.
        stranger = self.issue("stranger", "clientAuth")
        late = self.issue("late", "clientAuth", ca=ca, end="20200102000000Z")
        self.serve("--webhook-client-ca", ca[0])
        question = review(migration("m", "v"))
        status, answer = self.ask(MIGRATIONS, question, friend)
        self.assertEqual((status, answer["response"]["allowed"]), (200, True))
        for who in (None, stranger, late):
            try:
                status, answer = self.ask(MIGRATIONS, question, who)
            except ssl.SSLError:
                continue  # refused even earlier
            self.assertEqual(status, 403, answer)
            self.assertIn("client certificate", answer["message"])
            self.assertNotIn("response", answer)

    # ---- what is no question

    def test_no_question(self):
        """what is no AdmissionReview, or comes to another door, is refused in words"""
        self.serve()
        for path, body, code in ((MIGRATIONS, "{", 400), (MIGRATIONS, "[]", 400), (MIGRATIONS, "{}", 400),
                                 (MIGRATIONS, {"request": {}}, 400), ("/v1/admit/other", review({}), 404),
                                 (MIGRATIONS, "[" * 100000, 400)):
            status, answer = self.ask(path, body)
            self.assertEqual(status, code, (body if len(body) < 100 else "long", answer))
            self.assertTrue(answer["message"], answer)
        self.assertEqual(self.ask(MIGRATIONS, "", method="GET")[0], 404)
        # Far above what Kubernetes sends; the next one is answered.
        with contextlib.suppress(OSError):
            self.assertEqual(self.ask(MIGRATIONS, b" " * (8 << 20))[0], 413)
        self.assertEqual(self.ask(MIGRATIONS, review(migration("m", "v")))[0], 200)

    # ---- certificates

    def test_new_certificate(self):
        """a new pair is served without a restart; until both files are there, the old one is"""
        self.serve()
        old = self.served()
        cert, key = self.issue("next")
        with open(cert, encoding="utf-8") as f:
            new = f.read().strip()
        self.replace(cert, self.pair[0])
        wait_for("the lone certificate to be seen", lambda: "new certificate is not taken" in self.said())
        self.assertEqual(self.served(), old)
        self.replace(key, self.pair[1])
        wait_for("the new certificate to be served", lambda: self.served() == new)
        self.assertEqual(self.ask(MIGRATIONS, review(migration("m", "v")))[0], 200)

    @staticmethod
    def replace(source, destination):
        shutil.copy(source, destination + ".new")
        os.replace(destination + ".new", destination)

    def test_started_without(self):
        """a pair that cannot be read, or is none, ends the program with words that name the file"""
        lone = self.issue("lone")
        for cert, key, words in ((self.pair[0] + ".absent", self.pair[1], ".absent"), (self.pair[0], lone[1], "key")):
            done = subprocess.run([CONTROLLER, "--kubeconfig", os.path.join(self.lab.dir, "controller.kubeconfig"), "--webhook",
                                   f"127.0.0.1:{self.port}", "--webhook-cert", cert, "--webhook-key", key],
                                  capture_output=True, text=True, timeout=DEADLINE_S, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
