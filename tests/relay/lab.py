"""What the relay tests stand on: two nodes in network namespaces, relays, certificates, sockets.

A Lab cleans up by itself what it made: processes by pid, namespaces by name, files.
"""
import atexit
import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from waiting import wait_for  # noqa: E402

BUILD = os.environ.get("FERRY_BUILD", "")
RELAY = os.path.join(BUILD, "src/programs/ferry-relay")
TLS = os.environ.get("FERRY_TLS", "ferry")  # what moves speak unless a test says otherwise
DEADLINE_S = 30
ADDRESSES = {"a": ("10.91.0.1", "fd91::1"), "b": ("10.91.0.2", "fd91::2")}
CLONE_NEWNET = 0x40000000


def need_root():
    if os.geteuid() != 0:
        print("needs root for network namespaces")
        sys.exit(77)


def running(pid):
    """Whether it is there, and not merely waiting for its parent."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def run(*argv, **kw):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: {done.stdout}")
    return done.stdout


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE_S)
        self.sock.connect(self.path)


class Pki:
    """Certificates of every kind, good and bad, for node NAME."""

    def __init__(self, directory):
        self.dir = directory
        run(RELAY, "pki", "init", "--dir", directory)
        os.chmod(directory, 0o755)

    def path(self, name):
        return os.path.join(self.dir, name)

    def good(self, node):
        run(RELAY, "pki", "node", node, "--dir", self.dir)
        os.chmod(self.path(f"{node}.key"), 0o644)  # the relay under test is another user
        return self.path(f"{node}.crt"), self.path(f"{node}.key")

    def bad(self, name, node, ca=None, usage="clientAuth,serverAuth", expired=False, self_signed=False):
        """A certificate made with openssl, so that it can be wrong in one chosen way."""
        ca = ca or self
        crt, key, csr, ext = (self.path(f"{name}.{e}") for e in ("crt", "key", "csr", "ext"))
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        with open(ext, "w") as f:
            f.write(f"subjectAltName=URI:ferry://node/{node}\nbasicConstraints=critical,CA:FALSE\n")
            f.write(f"extendedKeyUsage={usage}\n" if usage else "")
        run("openssl", "req", "-new", "-key", key, "-subj", f"/CN=ferry-relay:{node}", "-out", csr)
        signer = ["-selfsign", "-keyfile", key] if self_signed else ["-cert", ca.path("ca.crt"), "-keyfile", ca.path("ca.key")]
        ago, ahead = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + d * 86400)) for d in (-20, -10 if expired else 10))
        run("openssl", "ca", "-batch", "-notext", "-config", self.signing(), *signer, "-in", csr, "-extfile", ext,
            "-startdate", ago, "-enddate", ahead, "-out", crt)
        os.chmod(key, 0o644)
        return crt, key

    def signing(self):
        """What "openssl ca" wants to know; it is the one command that takes dates in every version."""
        path = self.path("signing.conf")
        if not os.path.exists(path):
            open(self.path("signed"), "w").close()
            with open(path, "w") as f:
                f.write(f"[ca]\ndefault_ca=site\n[site]\ndatabase={self.path('signed')}\nnew_certs_dir={self.dir}\n"
                        "rand_serial=yes\nunique_subject=no\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n")
        return path


class Relay:
    """A ferry-relay of one node, in that node's network namespace."""

    def __init__(self, lab, node, netns, cert, key, extra=(), prefix=(), program=RELAY, env=None):
        self.lab, self.node = lab, node
        self.root = os.path.join(lab.dir, f"root-{node}-{len(lab.relays)}")
        self.control = os.path.join(self.root, "run/ferry/relay.sock")
        self.log_path = os.path.join(lab.dir, f"{node}-{len(lab.relays)}.log")
        self.log_file = open(self.log_path, "wb")
        enter = ["nsenter", f"--net=/run/netns/{netns}"] if netns else []
        self.process = subprocess.Popen(
            [*enter, *prefix, program, "serve", "--root", self.root, "--node", node,
             "--ca", lab.pki.path("ca.crt"), "--cert", cert, "--key", key, *extra],
            stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=self.log_file, env=env)
        self.pids = {self.process.pid}
        lab.relays.append(self)

    def ready(self):
        wait_for(f"relay {self.node} answers\n{self.log()}", self.answers)
        return self

    def answers(self):
        try:
            return self.pid() > 0
        except OSError:
            if not self.alive():
                raise AssertionError(f"relay {self.node} ended with {self.process.returncode}:\n{self.log()}") from None
            return False

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_log(self, *words, deadline_s=DEADLINE_S):
        """A line that has all these words."""
        def look():
            return next((l for l in self.log().splitlines() if all(w in l for w in words)), None)
        try:
            return wait_for(f"{words} in the log", look, deadline_s)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.log()}") from None

    def call(self, method, path, body=None):
        c = UnixHTTP(self.control)
        try:
            c.request(method, path, None if body is None else json.dumps(body))
            reply = c.getresponse()
            text = reply.read().decode()
            return reply.status, json.loads(text) if text else None
        finally:
            c.close()

    def must(self, method, path, body=None):
        status, reply = self.call(method, path, body)
        if status != 200:
            raise AssertionError(f"{method} {path}: {status} {reply}\n{self.log()}")
        return reply

    def streams(self, n=None, key=None):
        """Those of a key, or all; once there are n of them."""
        def now():
            return [s for s in self.must("GET", "/v1/streams")["streams"] if key in (None, s["key"])]
        if n is not None:
            wait_for(f"{n} streams at {self.node}, first {now()}", lambda: len(now()) == n)
        return now()

    def text(self, path):
        c = UnixHTTP(self.control)
        try:
            c.request("GET", path)
            return c.getresponse().read().decode()
        finally:
            c.close()

    def pid(self):
        """Of the process that answers now; it may be a successor."""
        pid = self.must("GET", "/healthz")["pid"]
        self.pids.add(pid)
        return pid

    def find_successor(self):
        """One that nobody asked about yet: whoever answers is to be ended, too."""
        try:
            return self.pid() not in self.alive()
        except (OSError, http.client.HTTPException):
            return False

    def alive(self):
        """Those of its processes that still run."""
        self.process.poll()
        return [p for p in self.pids if running(p)]

    def kill(self):
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(DEADLINE_S)

    def stop(self):
        """As an operator in a hurry does; what a sanitizer had to say about it is an error."""
        end = time.monotonic() + DEADLINE_S
        while self.find_successor() or self.alive():
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"relay {self.node} did not stop:\n{self.log()}")
            for pid in self.alive():
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        self.log_file.close()
        if any(word in self.log() for word in ("Sanitizer", "runtime error:")):
            raise AssertionError(f"relay {self.node}:\n{self.log()}")


class Lab:
    def __init__(self, namespaces=True):
        self.dir = tempfile.mkdtemp(prefix="ferry-relay-")
        os.chmod(self.dir, 0o755)
        self.relays, self.sockets, self.names = [], [], {}
        atexit.register(self.close)
        self.pki = Pki(os.path.join(self.dir, "pki"))
        self.other_pki = Pki(os.path.join(self.dir, "other-pki"))
        if namespaces:
            self.make_namespaces()

    def make_namespaces(self):
        tag = f"fr{os.getpid()}"
        for n in "ab":
            run("ip", "netns", "add", f"{tag}{n}")
            self.names[n] = f"{tag}{n}"
        run("ip", "-n", self.names["a"], "link", "add", "mig", "type", "veth", "peer", "name", "mig",
            "netns", self.names["b"])
        for n, (v4, v6) in ADDRESSES.items():
            for command in (["addr", "add", f"{v4}/24", "dev", "mig"],
                            ["addr", "add", f"{v6}/64", "dev", "mig", "nodad"],
                            ["link", "set", "mig", "up"], ["link", "set", "lo", "up"]):
                run("ip", "-n", self.names[n], *command)

    def close(self):
        for s in self.sockets:
            s.close()
        relays, self.relays, self.sockets = self.relays, [], []
        try:
            for r in relays:
                r.stop()
        finally:
            for r in relays:
                r.kill()
            self.remove()

    def remove(self):
        for n in self.names.values():
            subprocess.run(["ip", "netns", "del", n], stderr=subprocess.DEVNULL)
        self.names = {}
        shutil.rmtree(self.dir, ignore_errors=True)

    def relay(self, node, where=None, papers=None, **kw):
        crt, key = papers or self.pki.good(node)
        return Relay(self, node, self.names.get(where or node), crt, key, **kw)

    def make_dir(self, name):
        """A directory as a pod's m/: the relay's group may write to it."""
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        os.chown(path, 0, 61200)
        os.chmod(path, 0o2770)
        return path

    def listen(self, path, backlog=16):
        s = socket.socket(socket.AF_UNIX)
        s.bind(path)
        os.chmod(path, 0o777)
        s.listen(backlog)
        s.settimeout(DEADLINE_S)
        self.sockets.append(s)
        return s

    def connect(self, path):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(DEADLINE_S)
        s.connect(path)
        self.sockets.append(s)
        return s

    def in_netns(self, node, action):
        """Runs action() on a thread in the node's network; sockets made there stay there."""
        result = []

        def body():
            with open(f"/run/netns/{self.names[node]}") as f:
                if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) != 0:
                    result.append(OSError(ctypes.get_errno(), "setns"))
                    return
            try:
                result.append(action())
            except Exception as e:
                result.append(e)
        t = threading.Thread(target=body)
        t.start()
        t.join()
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]

    def dial_tls(self, node, address, port, crt=None, key=None, tls=TLS):
        """A TLS client that checks nothing and shows what it was given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if tls == "ferry":
            context.set_alpn_protocols(["ferry/1"])
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if crt:
            context.load_cert_chain(crt, key)

        def action():
            s = socket.create_connection((address, port), timeout=DEADLINE_S)
            return context.wrap_socket(s)
        return self.in_netns(node, action)


class Move:
    """One move from node a to node b through two relays."""

    count = 0

    def __init__(self, lab, source, target, channels=(0, 49152), family=0, source_node="a", target_node="b",
                 owner=None, tls=TLS, **more):
        Move.count += 1
        self.lab, self.source, self.target = lab, source, target
        self.key = f"key-{Move.count}"
        self.src_dir = lab.make_dir(f"{self.key}-src")
        self.dst_dir = lab.make_dir(f"{self.key}-dst")
        self.paths = {c: os.path.join(self.dst_dir, f"{c}.sock") for c in channels}
        self.listeners = {c: lab.listen(p) for c, p in self.paths.items()}
        self.target_body = {
            "move": f"move-{Move.count}", "generation": 1, "sourceNode": source_node,
            "bind": ADDRESSES["b"][family], "tls": tls,
            "channels": [{"logical": c, "unix": p} for c, p in self.paths.items()]}
        self.target_body.update(more)
        self.put_target()
        self.source_body = {
            "move": f"move-{Move.count}", "generation": 1, "targetNode": target_node,
            "address": self.answer["address"], "ports": self.answer["ports"], "dir": self.src_dir, "tls": tls}
        self.source_body.update(more)
        if owner is not None:
            self.source_body["owner"] = owner
        if source:
            self.files = self.source.must("PUT", f"/v1/sources/{self.key}", self.source_body)["files"]

    def put_target(self):
        self.answer = self.target.must("PUT", f"/v1/targets/{self.key}", self.target_body)
        self.port_of = {c: int(p) for p, c in self.answer["ports"].items()}

    def file(self, channel):
        suffix = f"-{channel}" if channel else ""
        return os.path.join(self.src_dir, f"{self.key}{suffix}-source.sock")

    def connect(self, channel=49152):
        """Both ends of a stream: (at the source, at the target)."""
        near = self.lab.connect(self.file(channel))
        far, _ = self.listeners[channel].accept()
        far.settimeout(DEADLINE_S)
        self.lab.sockets.append(far)
        return near, far

    def nothing_arrives(self, channel=49152, seconds=0.3):
        """Nobody connected to the hypervisor's socket."""
        self.listeners[channel].settimeout(seconds)
        try:
            self.lab.sockets.append(self.listeners[channel].accept()[0])
        except TimeoutError:
            return True
        finally:
            self.listeners[channel].settimeout(DEADLINE_S)
        return False


def read_all(s):
    parts = []
    while True:
        b = s.recv(1 << 16)
        if not b:
            return b"".join(parts)
        parts.append(b)


def read_exactly(s, n):
    parts = b""
    while len(parts) < n and (b := s.recv(n - len(parts))):
        parts += b
    return parts


def ended(s):
    """Whether the connection was ended by the other side, cleanly or not."""
    try:
        return s.recv(1) == b""
    except (ConnectionResetError, ssl.SSLError, BrokenPipeError):
        return True
