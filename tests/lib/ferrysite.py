"""A Ferry site of its own for a test: directory, port and namespaces that no other site has."""
import base64
import contextlib
import glob
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

import complaints
import heartbeat
from waiting import wait_for


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Api:
    """The API server, called with the credentials of a kubeconfig."""

    def __init__(self, kubeconfig):
        text = open(kubeconfig).read()
        self.host, port = re.search(r"server: \"?https://([^:\s\"]+):(\d+)", text).groups()
        self.port = int(port)
        self.context = ssl.create_default_context(cadata=self._data(text, "certificate-authority-data"))
        with tempfile.TemporaryDirectory() as d:
            for name in ("client-certificate-data", "client-key-data"):
                with open(os.path.join(d, name), "w", opener=lambda p, f: os.open(p, f, 0o600)) as out:
                    out.write(self._data(text, name))
            self.context.load_cert_chain(os.path.join(d, "client-certificate-data"),
                                         os.path.join(d, "client-key-data"))

    @staticmethod
    def _data(text, name):
        return base64.b64decode(re.search(name + r": \"?([A-Za-z0-9+/=]+)", text)[1]).decode()

    def call(self, method, path, body=None, content_type="application/json"):
        """(status, decoded body)"""
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=20)
        with contextlib.closing(connection):
            data = json.dumps(body) if body is not None and not isinstance(body, str) else body
            connection.request(method, path, data, {"Content-Type": content_type, "Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def path(self, plural, name="", ns="default"):
        if plural in ("nodes", "persistentvolumes"):
            base = f"/api/v1/{plural}"
        elif plural in ("pods", "events", "persistentvolumeclaims", "configmaps", "secrets"):
            base = f"/api/v1/namespaces/{ns}/{plural}"
        else:
            base = f"/apis/kubevirt.io/v1/namespaces/{ns}/{plural}"
        return base + ("/" + name if name else "")

    def get(self, plural, name, ns="default"):
        """The object, or None when there is none. It has a status, which is empty before anybody wrote one."""
        status, body = self.call("GET", self.path(plural, name, ns))
        if status == 404:
            return None
        assert status == 200, f"get {plural} {name}: {status} {body}"
        body.setdefault("status", {})
        return body

    def list(self, plural, ns="default"):
        status, body = self.call("GET", self.path(plural, "", ns))
        assert status == 200, f"list {plural}: {status} {body}"
        return body["items"]

    def create(self, plural, body, ns="default"):
        status, answer = self.call("POST", self.path(plural, "", ns), body)
        assert status == 201, f"create {plural}: {status} {answer}"
        return answer

    def vmi(self, name):
        return self.get("virtualmachineinstances", name)

    def migration(self, name):
        return self.get("virtualmachineinstancemigrations", name)


class Site:
    def __init__(self, bin_dir, nodes=2):
        self.bin = os.path.abspath(bin_dir)
        self.nodes = nodes
        self.base = tempfile.mkdtemp(prefix="ferry-site-")
        os.chmod(self.base, 0o711)  # the relays run as a user of their own
        self.root = os.path.join(self.base, "s")
        self.port = free_port()
        self.kubeconfig = os.path.join(self.root, "api/var/lib/ferry/admin.kubeconfig")
        self._api = None

    # -- life --------------------------------------------------------------------------------

    def up(self, seconds=180):
        done = self.run("up", "--nodes", str(self.nodes), "--root", self.root, "--port", str(self.port),
                        timeout=seconds)
        if done.returncode != 0:
            raise AssertionError(f"ferry up: {done.stdout}{done.stderr}")
        return done

    def down(self):
        return self.run("down", "--root", self.root, timeout=120)

    def close(self, failed):
        """Ends the site; prints its logs when a test failed."""
        if failed:
            self.print_logs()
        self.keep_logs()
        done = self.down()
        if done.returncode != 0:
            print(f"ferry down: {done.stdout}{done.stderr}")
        complaints.remove(self.base, failed)

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.close(True)
            raise
        return self

    def __exit__(self, kind, value, trace):
        self.close(kind is not None)

    def logs(self):
        return sorted(glob.glob(os.path.join(self.root, "log/*.log"))) + sorted(
            glob.glob(os.path.join(self.root, "node*/run/ferry/pods/*/log")))

    def keep_logs(self):
        """`ferry down` removes them; under another name they stay, with what programs say when they end."""
        for i, path in enumerate(self.logs()):
            with contextlib.suppress(OSError):
                os.link(path, os.path.join(self.base, f"{i}-{os.path.basename(path).removesuffix('.log')}.log"))

    def print_logs(self, lines=60):
        for path in self.logs():
            with open(path, errors="replace") as f:
                tail = f.readlines()[-lines:]
            print(f"==== {path[len(self.root) + 1:]}")
            sys.stdout.writelines(tail)
        sys.stdout.flush()

    # -- commands ----------------------------------------------------------------------------

    def environment(self):
        env = dict(os.environ, KUBECONFIG=self.kubeconfig)
        env["HOME"] = self.base  # no ~/.kube of the user's
        return env

    def run(self, *args, timeout=120, stdin=None):
        """`ferry ARGS...` to its end."""
        return subprocess.run([os.path.join(self.bin, "ferry"), *args], env=self.environment(), input=stdin,
                              stdin=subprocess.DEVNULL if stdin is None else None, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)

    def ferry(self, *args, timeout=120, code=0, stdin=None):
        """`ferry ARGS...`, which must end with `code`; the finished process."""
        done = self.run(*args, timeout=timeout, stdin=stdin)
        if done.returncode != code:
            raise AssertionError(f"ferry {' '.join(args)}: code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *args, stdin=None, check=True):
        return subprocess.run(["kubectl", *args], env=self.environment(), input=stdin, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=check)

    @property
    def api(self):
        if not self._api:
            self._api = Api(self.kubeconfig)
        return self._api

    # -- processes ---------------------------------------------------------------------------

    def state(self):
        with open(os.path.join(self.root, "site.json")) as f:
            return json.load(f)

    def pid(self, name):
        state = self.state()
        for process in state["daemons"] + [state["supervisor"]]:
            if process["name"] == name:
                return process["pid"]
        raise KeyError(name)

    def kill(self, name, sig=signal.SIGKILL):
        """Kills a program of the site; its old pid."""
        pid = wait_for(f"{name} to run", lambda: self.pid(name))
        os.kill(pid, sig)
        return pid

    def wait_restarted(self, name, old_pid, seconds=30):
        return wait_for(f"{name} to be started again", lambda: self.pid(name) not in (0, old_pid) and self.pid(name),
                        seconds)

    # -- virtual machines --------------------------------------------------------------------

    def monitor(self, fresh=False):
        return heartbeat.Monitor(self.root, fresh=fresh)

    def node_of(self, vm):
        vmi = self.api.vmi(vm)
        return vmi["status"].get("nodeName") if vmi else None

    def pod_dirs(self, node="*"):
        return sorted(glob.glob(os.path.join(self.root, node, "run/ferry/pods/*/")))

    def launcher_status(self, pod_dir):
        """GET /v1/status of the launcher in a pod's directory; None when nobody answers."""
        try:
            with heartbeat.connect(os.path.join(pod_dir.rstrip("/"), "launcher.sock")) as s:
                s.sendall(b"GET /v1/status HTTP/1.0\r\nHost: localhost\r\n\r\n")
                data = b""
                while chunk := s.recv(65536):
                    data += chunk
        except OSError:
            return None
        head, _, body = data.partition(b"\r\n\r\n")
        return json.loads(body) if b" 200 " in head.split(b"\r\n")[0] else None

    def running_domains(self):
        """Directories of the pods whose guest runs."""
        found = []
        for directory in self.pod_dirs():
            status = self.launcher_status(directory)
            if status and status.get("domain", {}).get("state") == "running":
                found.append(directory)
        return found

    def qemus(self):
        """Pids of this site's QEMU processes."""
        return [pid for pid, command in processes() if "qemu-system" in command and self.owns(pid)]

    def owns(self, pid, node="*"):
        """Whether a process belongs to a sandbox of this site (or node): its pid namespace is one of theirs."""
        try:
            ns = int(re.search(r"\d+", os.readlink(f"/proc/{pid}/ns/pid"))[0])
        except OSError:
            return False
        for directory in self.pod_dirs(node):
            try:
                with open(os.path.join(directory, "sandbox.json")) as f:
                    if json.JSONDecoder().raw_decode(f.read())[0].get("pid-namespace") == ns:
                        return True
            except (OSError, ValueError):
                continue
        return False


def processes():
    """(pid, command line) of every process."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    command = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if command:
                yield int(entry), command


def namespace_names(root):
    """Names of the network namespaces of the site at `root` that exist; named as src/cli/site/site_plan.c names them."""
    number = 2166136261
    for byte in root.encode():
        number = (number ^ byte) * 16777619 % (1 << 32)
    try:
        return sorted(n for n in os.listdir("/run/netns") if n.startswith(f"ferry-{number:08x}-"))
    except OSError:
        return []


def leftovers(root):
    """What a site left behind: a list of sentences, empty when it is all gone."""
    found = []
    for pid, command in processes():
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                marked = f"FERRY_SITE={root}".encode() in f.read().split(b"\0")
        except OSError:
            marked = False
        if pid != os.getpid() and (marked or f"{root}/" in command or root in command.split()):
            found.append(f"process {pid}: {command[:100]}")
    with open("/proc/self/mountinfo") as f:
        found += [f"mount {line.split()[4]}" for line in f if root in line]
    found += [f"network namespace {name}" for name in namespace_names(root)]
    with open("/proc/net/unix") as f:
        found += [f"socket {line.split()[-1]}" for line in f if root in line]
    if os.path.exists(root):
        found.append(f"directory {root}")
    return found
