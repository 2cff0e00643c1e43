"""An API server of its own for a test, and clients with any certificate.

FERRY_ENGINE=kubernetes runs the same tests against a real kube-apiserver and etcd (tests/lib/engine.py), one for all tests
of a file. What only one of the two does is marked with the reason: @embedded_only("...").
"""
import atexit
import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import engine  # noqa: E402  pylint: disable=wrong-import-position
from waiting import wait_for  # noqa: E402  pylint: disable=wrong-import-position

BUILD = os.environ.get("FERRY_BUILD", "build-asan")
PROGRAM = os.path.join(BUILD, "src/programs/ferry-apiserver")
CRDS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../deploy/kubernetes/crds"))
DEADLINE_S = 60
ON_KUBERNETES = os.environ.get("FERRY_ENGINE") == "kubernetes"
KUBEVIRT = "/apis/kubevirt.io/v1"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


def embedded_only(reason):
    return unittest.skipIf(ON_KUBERNETES, "of ferry-apiserver: " + reason)


def vmis(name="", ns="default"):
    return f"{KUBEVIRT}/namespaces/{ns}/virtualmachineinstances" + (f"/{name}" if name else "")


def migrations(name="", ns="default"):
    return f"{KUBEVIRT}/namespaces/{ns}/virtualmachineinstancemigrations" + (f"/{name}" if name else "")


def pods(name="", ns="default"):
    return f"/api/v1/namespaces/{ns}/pods" + (f"/{name}" if name else "")


def binding(name, node):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}


def configmaps(name="", ns="default"):
    return f"/api/v1/namespaces/{ns}/configmaps" + (f"/{name}" if name else "")


def vmi(name, **meta):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name, **meta},
            "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}}


def migration(name, of, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": name},
            "spec": {"vmiName": of, **spec}}


def pod(name, **meta):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta},
            "spec": {"containers": [{"name": "compute", "image": "ferry.io/launcher"}]}}


class Client:
    """Calls with one identity (a pair of PEM files) or none."""

    def __init__(self, port, ca_file, cert=None, key=None):
        self.port = port
        self.context = ssl.create_default_context(cafile=ca_file)
        if cert:
            self.context.load_cert_chain(cert, key)

    def connect(self, timeout=DEADLINE_S):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=timeout)

    def raw(self, method, path, data=None, headers=None):
        """(status, body as bytes)"""
        with contextlib.closing(self.connect()) as c:
            c.request(method, path, data, headers or {})
            answer = c.getresponse()
            return answer.status, answer.read()

    def call(self, method, path, body=None, kind="application/json", **headers):
        """(status, decoded body)"""
        data = json.dumps(body) if body is not None and not isinstance(body, (str, bytes)) else body
        status, text = self.raw(method, path, data, {"Content-Type": kind, **headers})
        return status, json.loads(text) if text else None

    def ok(self, method, path, body=None, kind="application/json", code=None):
        status, answer = self.call(method, path, body, kind)
        if status != code if code else status >= 300:
            raise AssertionError(f"{method} {path}: {status} {answer}")
        return answer

    def watch(self, path, **query):
        return Watch(self, path, query)


class Watch:
    """Events of a watch, one by one."""

    def __init__(self, client, path, query, accept="application/json"):
        text = "&".join(f"{k}={v}" for k, v in {"watch": "true", **query}.items())
        self.connection = client.connect()
        self.connection.request("GET", f"{path}?{text}", headers={"Accept": accept})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status
        self.rest = b"" if self.status == 200 else self.answer.read() + b"\n"

    def next(self):
        """(type, object); None at the end"""
        while b"\n" not in self.rest:
            piece = self.answer.read1(65536)
            if not piece:
                return None
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        event = json.loads(line)
        if self.status != 200:
            raise AssertionError(f"the watch was refused: {line}")
        return event["type"], event["object"]

    def close(self):
        self.connection.close()


def Lab(*options, webhook=False):  # pylint: disable=invalid-name
    """The engine that is asked for; on Kubernetes also with the webhook of ferry-controller."""
    if not ON_KUBERNETES:
        return EmbeddedLab(*options)
    lab = KubernetesLab.shared()
    if webhook:
        lab.engine.start_standby(os.path.join(BUILD, "src/programs"))
    return lab


class LabCase(unittest.TestCase):
    """One server for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.api = cls.lab.admin

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()


class Certificates:
    """Makes certificates; `self.ca` names the PEM files of the engine's CA."""

    def certificate(self, name, subject, usage="clientAuth", ca=None, start="20200101000000Z", end="20991231000000Z"):
        """A certificate signed by the engine's CA, by another (`ca`: PEM files) or by itself ("self")."""
        base = os.path.join(self.dir, name)
        key, request, cert = base + ".key", base + ".csr", base + ".crt"
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            key, "-out", request, "-subj", subject)
        signer = (cert, key) if ca == "self" else ca or self.ca
        with open(base + ".cnf", "w", encoding="utf-8") as f:
            f.write(f"""[ca]
default_ca = x
[x]
database = {base}.index
new_certs_dir = {self.dir}
default_md = sha256
policy = p
rand_serial = yes
copy_extensions = none
[p]
countryName = optional
organizationName = optional
commonName = supplied
[e]
basicConstraints = CA:{"TRUE" if usage == "ca" else "FALSE"}
{"" if usage == "ca" else "extendedKeyUsage = " + usage}
""")
        with open(base + ".index", "w", encoding="utf-8"):
            pass
        options = ["-selfsign", "-keyfile", key] if ca == "self" else ["-cert", signer[0], "-keyfile", signer[1]]
        run("openssl", "ca", "-batch", "-config", base + ".cnf", "-in", request, "-out", cert, "-notext",
            "-extensions", "e", "-startdate", start, "-enddate", end, *options)
        return cert, key

    def client_with(self, pair):
        return Client(self.port, self.ca[0], *pair)

    def client_of(self, kubeconfig):
        with open(kubeconfig, encoding="utf-8") as f:
            text = f.read()
        paths = []
        for name in ("certificate-authority-data", "client-certificate-data", "client-key-data"):
            data = base64.b64decode(re.search(name + r": (\S+)", text)[1])
            path = os.path.join(self.dir, f"{os.path.basename(kubeconfig)}.{name}")
            with open(path, "wb", opener=lambda p, f: os.open(p, f, 0o600)) as out:
                out.write(data)
            paths.append(path)
        return Client(self.port, *paths)

    def anonymous(self):
        return Client(self.port, self.ca[0])

    def kubectl(self, *args, code=0, stdin=None):
        """Standard output; standard error when it was to fail."""
        env = {**os.environ, "KUBECONFIG": self.kubeconfig, "HOME": self.dir}
        done = subprocess.run(["kubectl", *args], env=env, input=stdin, capture_output=True, text=True,
                              timeout=2 * DEADLINE_S, check=False)
        if done.returncode != code:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr


class KubernetesLab(Certificates):
    """A real kube-apiserver, with the same face."""

    running = None

    @classmethod
    def shared(cls):
        if not cls.running:
            engine.need("kubernetes")
            cls.running = cls()
        return cls.running

    def __init__(self):
        self.engine = engine.start("kubernetes")
        atexit.register(self.engine.close)
        self.dir, self.port = self.engine.dir, self.engine.port
        self.ca = (os.path.join(self.engine.pki, "ca.crt"), os.path.join(self.engine.pki, "ca.key"))
        self.kubeconfig = self.engine.kubeconfig()
        self.admin = self.client_of(self.kubeconfig)

    def node(self, name):
        return self.client_of(self.engine.kubeconfig("node", name))

    def controller(self):
        return self.client_of(self.engine.kubeconfig("controller"))

    def close(self):
        """It ends with the process."""


class EmbeddedLab(Certificates):
    def __init__(self, *options):
        self.dir = tempfile.mkdtemp(prefix="ferry-api-")
        self.data = os.path.join(self.dir, "data")
        self.ca = (os.path.join(self.data, "ca/ca.crt"), os.path.join(self.data, "ca/ca.key"))
        self.kubeconfig = os.path.join(self.data, "admin.kubeconfig")
        self.options = options
        self.process, self.port = None, 0
        self.start()

    def start(self, listen="127.0.0.1:0"):
        """A port that is asked for may be somebody's for a moment."""
        wait_for(f"the server to listen on {listen}", lambda: self.started(listen), step=0.5)
        self.admin = self.client_of(self.kubeconfig)

    def started(self, listen):
        self.log = open(os.path.join(self.dir, "log"), "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [PROGRAM, "--data", self.data, "--listen", listen, "--crds", CRDS, *self.options], stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        line = self.process.stdout.readline()
        found = re.match(r"listening https://127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.process.wait(DEADLINE_S)
            if "Address already in use" in self.log_text():
                return False
            raise AssertionError(f"the server said '{line}': {self.log_text()}")
        self.port = int(found[1])
        return True

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            code = self.process.wait(DEADLINE_S)
            self.process.stdout.close()
            self.log.close()
            self.process = None
            return code
        return 0

    def close(self):
        code = self.stop()
        text = self.log_text()
        shutil.rmtree(self.dir, ignore_errors=True)
        if code != 0 or "ERROR: " in text or "ThreadSanitizer" in text:
            raise AssertionError(f"the server ended with {code}: {text[-4000:]}")

    def log_text(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as f:
            return f.read()

    # ---- identities

    def node(self, name):
        out = os.path.join(self.dir, "node-" + name)
        run(PROGRAM, "pki", "node", name, "--data", self.data, "--out", out, "--server",
            f"https://127.0.0.1:{self.port}")
        return self.client_of(os.path.join(out, "node.kubeconfig"))

    def controller(self):
        out = os.path.join(self.dir, "controller.kubeconfig")
        run(PROGRAM, "pki", "controller", "--data", self.data, "--out", out, "--server",
            f"https://127.0.0.1:{self.port}")
        return self.client_of(out)


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
