"""An API server of its own for a test, on loopback: Ferry's embedded one, or a real Kubernetes.

    with engine.start("kubernetes", bin_dir) as e:
        e.kubectl("get", "nodes")                    # as admin
        node = e.client("node", "a")                 # calls with the credentials of node a
        Popen([..., "--kubeconfig", e.kubeconfig("controller")])

Both kinds have the same identities (docs/contracts/identity.md): admin, controller, node NAME, viewer, relay NAME. Kubernetes is
etcd, kube-apiserver and, when asked for, kube-scheduler, from the directory that KUBEBUILDER_ASSETS names (default:
.cache/kubernetes; tests/kubernetes/get-assets fills it), with what deploy/kubernetes/ has applied. There is no
controller-manager: nothing collects garbage, nothing finishes the deletion of namespaces.
"""
import base64
import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import complaints
from waiting import wait_for

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
MANIFESTS = os.path.join(TOP, "deploy/kubernetes")
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def assets():
    return os.environ.get("KUBEBUILDER_ASSETS") or os.path.join(TOP, ".cache/kubernetes")


def missing_assets(scheduler=False):
    names = ["etcd", "kube-apiserver"] + (["kube-scheduler"] if scheduler else [])
    return [n for n in names if not os.access(os.path.join(assets(), n), os.X_OK)]


def need(kind, bin_dir=None, scheduler=False):
    """Ends the test as skipped when engines of this kind cannot run here."""
    if kind == "kubernetes":
        missing = missing_assets(scheduler)
        where = f"{assets()}; tests/kubernetes/get-assets makes them, or set KUBEBUILDER_ASSETS"
    else:
        missing = [n for n in ["ferry-apiserver"] if not os.access(os.path.join(bin_dir, n), os.X_OK)]
        where = bin_dir
    if missing:
        print(f"skipped: no {', '.join(missing)} in {where}")
        sys.exit(77)


def start(kind, bin_dir=None, scheduler=False):
    """A running engine. `scheduler` is for Kubernetes alone: in Ferry's own it is part of ferry-controller."""
    engine = Kubernetes(scheduler) if kind == "kubernetes" else Embedded(bin_dir)
    try:
        engine.up()
    except BaseException:
        engine.close(True)
        raise
    return engine


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# -- calls -----------------------------------------------------------------------------------------------


class Refused(AssertionError):
    """An answer other than 2xx."""

    def __init__(self, what, status, body):
        message = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{what}: {status} {message}")
        self.status, self.body = status, body


class Client:
    """The API with the credentials of one kubeconfig; from several threads at a time."""

    def __init__(self, kubeconfig):
        with open(kubeconfig) as f:
            text = f.read()
        self.kubeconfig = kubeconfig
        self.host, port = re.search(r"server: \"?https://([^:\s\"]+):(\d+)", text).groups()
        self.port = int(port)
        self.context = ssl.create_default_context(cadata=self._data(text, "certificate-authority-data"))
        token = re.search(r"token: \"?([^\s\"]+)", text)
        self.headers = {"Accept": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token[1]}"
        else:
            self._load_certificate(text)
        self.local = threading.local()

    def _load_certificate(self, text):
        with tempfile.TemporaryDirectory() as d:
            files = []
            for name in ("client-certificate-data", "client-key-data"):
                files.append(os.path.join(d, name))
                with open(files[-1], "w", opener=lambda p, f: os.open(p, f, 0o600)) as out:
                    out.write(self._data(text, name))
            self.context.load_cert_chain(*files)

    @staticmethod
    def _data(text, name):
        return base64.b64decode(re.search(name + r": \"?([A-Za-z0-9+/=]+)", text)[1]).decode()

    def connect(self, timeout=60):
        return http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)

    def raw(self, method, path, body=None, content_type="application/json", headers=None):
        """(status, headers, text); a connection that the server closed meanwhile is made anew once."""
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        headers = {**self.headers, "Content-Type": content_type, **(headers or {})}
        for fresh in (False, True):
            connection = getattr(self.local, "connection", None)
            if fresh or not connection:
                connection = self.local.connection = self.connect()
                fresh = True
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read().decode()
            except (OSError, http.client.HTTPException):
                self.local.connection = None
                if fresh:
                    raise
        raise AssertionError("unreachable")

    def call(self, method, path, body=None, content_type="application/json", headers=None):
        """(status, decoded body)"""
        status, _, text = self.raw(method, path, body, content_type, headers)
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            return status, text

    def must(self, method, path, body=None, content_type="application/json"):
        """Decoded body of an answer that must be 2xx."""
        status, answer = self.call(method, path, body, content_type)
        if not 200 <= status <= 299:
            raise Refused(f"{method} {path}", status, answer)
        return answer

    def get(self, path):
        """The object, or None when there is none."""
        status, answer = self.call("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise Refused(f"GET {path}", status, answer)
        return answer

    def list(self, path):
        return self.must("GET", path)["items"]

    def create(self, path, body):
        return self.must("POST", path, body)

    def patch(self, path, body, content_type=None):
        """A list is a JSON patch, an object a merge patch."""
        return self.must("PATCH", path, body, content_type or (JSON_PATCH if isinstance(body, list) else MERGE_PATCH))

    def delete(self, path, grace=None):
        return self.must("DELETE", path, {} if grace is None else {"gracePeriodSeconds": grace})

    def watch(self, path, version, seconds=60):
        """Yields the events after `version` until the server ends the stream or `seconds` are over."""
        mark = "&" if "?" in path else "?"
        with contextlib.closing(self.connect(seconds + 5)) as connection:
            connection.request("GET", f"{path}{mark}watch=1&resourceVersion={version}&timeoutSeconds={seconds}"
                                      "&allowWatchBookmarks=true", headers=self.headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise Refused(f"watch {path}", answer.status, json.loads(answer.read()))
            while line := answer.readline():
                yield json.loads(line)


# -- engines ---------------------------------------------------------------------------------------------


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a killed test leaves nothing behind


class Engine:
    """What both kinds have in common: a directory, processes, identities."""

    kind = None

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix=f"ferry-{self.kind}-")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.processes = {}
        self.configs = {}
        self.clients = {}

    # -- life

    def up(self):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close(kind is not None)

    def close(self, failed=False):
        for name in list(self.processes):
            self.end(name)
        if failed:
            self.print_logs()
        complaints.remove(self.dir, failed)

    def print_logs(self, lines=40):
        for name in sorted(os.listdir(self.dir)):
            if name.endswith(".log"):
                with open(os.path.join(self.dir, name), errors="replace") as f:
                    tail = f.readlines()[-lines:]
                print(f"==== {name}")
                sys.stdout.writelines(tail)
        sys.stdout.flush()

    def spawn(self, name, *argv, env=None):
        """Starts a program that lives no longer than the engine; its log is NAME.log."""
        with open(os.path.join(self.dir, f"{name}.log"), "ab") as log:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir,
                                       env={**os.environ, **(env or {})}, preexec_fn=end_with_parent)
        self.processes[name] = process
        return process

    def end(self, name, sig=signal.SIGKILL, seconds=20):
        """Ends a program that spawn() started, if it runs; its exit code."""
        process = self.processes.pop(name)
        if process.poll() is None:
            process.send_signal(sig)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def alive(self, name):
        process = self.processes[name]
        if process.poll() is not None:
            raise AssertionError(f"{name} ended with {process.returncode}")
        return True

    def log(self, name):
        with open(os.path.join(self.dir, f"{name}.log"), errors="replace") as f:
            return f.read()

    # -- identities

    def kubeconfig(self, who="admin", name=None):
        """Path of the kubeconfig of an identity; `name` is the node's for nodes and relays."""
        if (who, name) not in self.configs:
            self.configs[who, name] = self.make_kubeconfig(who, name)
        return self.configs[who, name]

    def make_kubeconfig(self, who, name):
        raise NotImplementedError

    def client(self, who="admin", name=None):
        if (who, name) not in self.clients:
            self.clients[who, name] = Client(self.kubeconfig(who, name))
        return self.clients[who, name]

    def kubectl(self, *args, stdin=None, code=0, who="admin", name=None):
        """`kubectl ARGS...`, which must end with `code` (None: with any); the finished process."""
        env = dict(os.environ, KUBECONFIG=self.kubeconfig(who, name), HOME=self.dir, KUBECACHEDIR=f"{self.dir}/cache")
        done = subprocess.run(["kubectl", *args], env=env, input=stdin, text=True, timeout=180,
                              stdin=subprocess.DEVNULL if stdin is None else None,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if code is not None and done.returncode != code:
            raise AssertionError(f"kubectl {' '.join(args)}: code {done.returncode}, not {code}\n"
                                 f"{done.stdout}{done.stderr}")
        return done


class Embedded(Engine):
    """ferry-apiserver on SQLite."""

    kind = "embedded"

    def __init__(self, bin_dir):
        super().__init__()
        self.program = os.path.join(os.path.abspath(bin_dir), "ferry-apiserver")
        self.data = os.path.join(self.dir, "data")

    def start_apiserver(self):
        self.spawn("apiserver", self.program, "serve", "--root", self.dir, "--data", self.data,
                   "--listen", f"127.0.0.1:{self.port}")

    def restart_apiserver(self):
        """Kills ferry-apiserver and starts it again: its window of past changes begins anew."""
        self.end("apiserver")
        self.start_apiserver()
        wait_for("ferry-apiserver to be ready again", self.ready, 60)

    def up(self):
        self.start_apiserver()
        admin = os.path.join(self.data, "admin.kubeconfig")
        wait_for("ferry-apiserver's first kubeconfig", lambda: self.alive("apiserver") and os.path.exists(admin), 90)
        self.configs["admin", None] = admin
        wait_for("ferry-apiserver to be ready", self.ready, 90)

    def ready(self):
        self.alive("apiserver")
        try:
            return self.client().call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def make_kubeconfig(self, who, name):
        if who == "controller":
            path = os.path.join(self.dir, "controller.kubeconfig")
            self.pki("controller", "--out", path)
            return path
        if who == "node":
            out = os.path.join(self.dir, f"node-{name}")
            self.pki("node", name, "--out", out)
            return os.path.join(out, "node.kubeconfig")
        raise AssertionError(f"ferry-apiserver makes no kubeconfig for {who}")

    def pki(self, *args):
        subprocess.run([self.program, "pki", *args, "--server", self.url, "--data", self.data], check=True,
                       stdin=subprocess.DEVNULL, timeout=120)


# Subjects of the identities. admin is in system:masters too, because tests play kubelet and cluster administrator.
SUBJECTS = {
    "admin": "/O=system:masters/O=ferry:admins/CN=ferry-admin",
    "controller": "/CN=system:ferry-controller",
    "node": "/O=system:nodes/CN=system:node:{name}",
    "relay": "/CN=ferry-relay:{name}",
    "viewer": "/O=ferry:viewers/CN=viewer",
    "scheduler": "/CN=system:kube-scheduler",
}

# The groups that Ferry needs or a user meets beside it; each one left out makes the start quicker.
GROUPS = ["v1", "apiextensions.k8s.io/v1", "admissionregistration.k8s.io/v1", "apps/v1", "authentication.k8s.io/v1",
          "authorization.k8s.io/v1", "coordination.k8s.io/v1", "discovery.k8s.io/v1", "events.k8s.io/v1", "networking.k8s.io/v1",
          "node.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1", "resource.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1",
          "apiregistration.k8s.io/v1"]


class Kubernetes(Engine):
    """etcd, kube-apiserver, kube-scheduler."""

    kind = "kubernetes"

    def __init__(self, scheduler=False):
        super().__init__()
        self.scheduler = scheduler
        self.etcd_port, self.peer_port, self.scheduler_port = free_port(), free_port(), free_port()
        self.pki = os.path.join(self.dir, "pki")

    def up(self):
        self.start_etcd()
        self.make_pki()
        self.start_apiserver()
        admin = self.client()
        # Custom kinds can be made before the server has written its own roles.
        wait_for("kube-apiserver to answer", lambda: self.ready("/readyz/poststarthook/crd-informer-synced"), 90)
        apply(admin, manifests("crds"))
        wait_for("kube-apiserver to be ready", self.ready, 90)
        apply(admin, manifests())
        wait_for("the custom kinds to be served", lambda: self.established(admin), 90)
        # The server reads admission policies when it comes to it; until then it lets in what they refuse.
        urgent = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": "probe"},
                  "spec": {"vmiName": "none-such", "priority": "system-critical"}}
        wait_for("the admission policies to be asked", lambda: admin.call(
            "POST", "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations?dryRun=All", urgent)[0] == 422, 90)
        if self.scheduler:
            self.start_scheduler()

    def start_etcd(self):
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        self.spawn("etcd", os.path.join(assets(), "etcd"), "--name", "test", "--data-dir", f"{self.dir}/etcd",
                   "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                   "--initial-advertise-peer-urls", peer, "--initial-cluster", f"test={peer}",
                   "--heartbeat-interval", "20", "--election-timeout", "200")

    def start_apiserver(self):
        p = self.pki
        self.spawn("apiserver", os.path.join(assets(), "kube-apiserver"),
                   f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1",
                   f"--secure-port={self.port}", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
                   f"--cert-dir={p}", f"--tls-cert-file={p}/apiserver.crt", f"--tls-private-key-file={p}/apiserver.key",
                   f"--client-ca-file={p}/ca.crt", f"--requestheader-client-ca-file={p}/ca.crt",
                   "--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User",
                   "--requestheader-group-headers=X-Remote-Group",
                   "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                   f"--service-account-key-file={p}/sa.pub", f"--service-account-signing-key-file={p}/sa.key",
                   "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
                   "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                   "--disable-admission-plugins=ServiceAccount", "--allow-privileged=true",
                   "--enable-priority-and-fairness=false",
                   "--runtime-config=api/all=false," + ",".join(f"{g}=true" for g in GROUPS))

    def start_scheduler(self):
        config = self.kubeconfig("scheduler")
        self.spawn("scheduler", os.path.join(assets(), "kube-scheduler"), f"--kubeconfig={config}",
                   f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
                   "--bind-address=127.0.0.1", f"--secure-port={self.scheduler_port}", f"--cert-dir={self.pki}",
                   "--leader-elect=false")

    def restart_apiserver(self):
        """Ends kube-apiserver and starts it again: its caches of past changes begin anew."""
        self.end("apiserver")
        self.start_apiserver()
        wait_for("kube-apiserver to be ready again", self.ready, 90)

    def ready(self, path="/readyz"):
        self.alive("etcd")
        self.alive("apiserver")
        try:
            return self.client().call("GET", path)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    @staticmethod
    def established(admin):
        def conditions(crd):
            return {c["type"]: c["status"] for c in crd.get("status", {}).get("conditions") or []}
        crds = admin.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        return all(conditions(c).get("Established") == "True" for c in crds) and all(
            admin.call("GET", f"/apis/{c['spec']['group']}/{c['spec']['versions'][0]['name']}/"
                              f"{c['spec']['names']['plural']}")[0] == 200 for c in crds)

    # -- certificates

    def make_pki(self):
        os.mkdir(self.pki, 0o700)
        self.openssl("req", "-x509", *self.new_key("ca"), "-subj", "/CN=ferry-test-ca", "-days", "2",
                     "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        self.issue("apiserver", "/CN=kube-apiserver",
                   "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{self.pki}/sa.key")
        self.openssl("ec", "-in", f"{self.pki}/sa.key", "-pubout", "-out", f"{self.pki}/sa.pub")
        self.kubeconfig()

    def openssl(self, *args):
        subprocess.run(["openssl", *args], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)

    def new_key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{self.pki}/{name}.key",
                "-out", f"{self.pki}/{name}.crt"]

    def issue(self, name, subject, extensions):
        p = self.pki
        request, config = f"{p}/{name}.csr", f"{p}/{name}.ext"
        with open(config, "w") as f:
            f.write(f"basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n{extensions}\n")
        args = self.new_key(name)
        args[-1] = request
        self.openssl("req", "-new", *args, "-subj", subject)
        self.openssl("x509", "-req", "-in", request, "-CA", f"{p}/ca.crt", "-CAkey", f"{p}/ca.key", "-CAcreateserial",
                     "-days", "2", "-extfile", config, "-out", f"{p}/{name}.crt")

    def make_kubeconfig(self, who, name):
        full = f"{who}-{name}" if name else who
        self.issue(full, SUBJECTS[who].format(name=name), "extendedKeyUsage=clientAuth")
        path = os.path.join(self.dir, f"{full}.kubeconfig")
        write_kubeconfig(path, self.url, f"{self.pki}/ca.crt", {
            "client-certificate-data": encoded(f"{self.pki}/{full}.crt"),
            "client-key-data": encoded(f"{self.pki}/{full}.key")})
        return path

    # -- the webhook of ferry-controller

    def webhook_options(self):
        """How ferry-controller serves it."""
        self.webhook_port = free_port()
        self.issue("webhook", "/CN=ferry-webhook", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth")
        return ["--webhook", f"127.0.0.1:{self.webhook_port}", "--webhook-cert", f"{self.pki}/webhook.crt",
                "--webhook-key", f"{self.pki}/webhook.key"]

    def install_webhook(self):
        """Waits until it is served, makes Kubernetes ask it, and waits until that is so."""
        def served():
            with contextlib.suppress(OSError), contextlib.closing(socket.create_connection(("127.0.0.1", self.webhook_port), 5)):
                return True
            return False
        wait_for("the webhook to be served", served, 90)
        apply(self.client(), manifests("webhook"), lambda text: re.sub(
            r"service: \{.*path: (\S+)\}", rf"url: https://127.0.0.1:{self.webhook_port}\1",
            text.replace("CA_BUNDLE", encoded(f"{self.pki}/ca.crt"))))
        nowhere = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": "probe"},
                   "spec": {"vmiName": "none-such"}}
        wait_for("the webhook to be asked", lambda: self.client().call(
            "POST", "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations?dryRun=All", nowhere)[0] == 400, 90)

    def start_standby(self, bin_dir):
        """A ferry-controller that only answers the webhook: another one is said to lead."""
        self.client().create("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "ferry-controller"},
            "spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 86400,
                     "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())}})
        self.spawn("controller", os.path.join(os.path.abspath(bin_dir), "ferry-controller"), "--kubeconfig",
                   self.kubeconfig("controller"), *self.webhook_options())
        self.install_webhook()

    def token_kubeconfig(self, account, ns="ferry", pod=None):
        """kubeconfig with a token of a service account; bound to a pod, it also says which node the pod is on."""
        bound = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": pod}} if pod else {}
        answer = self.client().create(f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token",
                                      {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                       "spec": {"expirationSeconds": 3600, **bound}})
        path = os.path.join(self.dir, f"token-{account}-{pod}.kubeconfig")
        write_kubeconfig(path, self.url, f"{self.pki}/ca.crt", {"token": answer["status"]["token"]})
        return path


def encoded(file):
    with open(file, "rb") as f:
        return base64.b64encode(f.read()).decode()


def write_kubeconfig(path, url, ca, user):
    fields = "".join(f"    {key}: {value}\n" for key, value in user.items())
    with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as out:
        out.write(f"""apiVersion: v1
kind: Config
current-context: ferry
contexts:
- name: ferry
  context: {{cluster: ferry, user: ferry}}
clusters:
- name: ferry
  cluster:
    server: {url}
    certificate-authority-data: {encoded(ca)}
users:
- name: ferry
  user:
{fields}""")


# -- manifests -------------------------------------------------------------------------------------------

# Where the kinds in deploy/kubernetes/ are; faster than asking, and kubectl takes a second for each.
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{ns}/serviceaccounts",
    "Service": "/api/v1/namespaces/{ns}/services",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


def manifests(folder=""):
    """Paths of what deploy/kubernetes/ has."""
    folder = os.path.join(MANIFESTS, folder)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".yaml"))


def apply(client, files, change=lambda text: text):
    """Server-side apply of manifests; the server reads the YAML."""
    for file in files:
        with open(file) as f:
            documents = re.split(r"^---$", change(f.read()), flags=re.M)
        for text in documents:
            kind = re.search(r"^kind: (\S+)", text, re.M)
            if not kind:
                continue
            name = re.search(r"^  name: (\S+)", text, re.M)[1]
            ns = re.search(r"^  namespace: (\S+)", text, re.M)
            path = PLACES[kind[1]].format(ns=ns and ns[1])
            client.must("PATCH", f"{path}/{name}?fieldManager=ferry-tests&force=true", text, APPLY_PATCH)
