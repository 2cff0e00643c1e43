"""What tests of strangers stand on: an API server of its own, clients of it, and connections that do what no client does."""
import contextlib
import http.client
import os
import re
import select
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import complaints
import ferrysite
from ferrysite import wait_for

DEADLINE_S = 60
AGAIN_S = 3
# Sanitizers keep what was freed, a quarter of a GiB of it, and memory is measured here.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8"}


def memory_mib(pid, what="VmHWM"):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what)) / 1024


class Server:
    """ferry-apiserver with these options, on every address of loopback."""

    def __init__(self, bin_dir, *options):
        self.bin, self.options = os.path.abspath(bin_dir), options
        self.base = tempfile.mkdtemp(prefix="ferry-doors-")
        os.chmod(self.base, 0o755)
        self.data = os.path.join(self.base, "data")
        self.port, self.process, self.api = 0, None, None

    def program(self, *args):
        return subprocess.run([os.path.join(self.bin, "ferry-apiserver"), *args, "--data", self.data], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True).stdout

    def __enter__(self):
        try:
            self.api = wait_for("the API server", self.ready)
        except AssertionError:
            self.__exit__(AssertionError, None, None)
            raise
        return self

    def start(self):
        self.port = ferrysite.free_port()  # which may be somebody's a moment later
        with open(os.path.join(self.base, "log"), "ab") as log:
            self.process = subprocess.Popen([os.path.join(self.bin, "ferry-apiserver"), "serve", "--data", self.data, "--listen",
                                             f"0.0.0.0:{self.port}", *self.options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=ENVIRONMENT)

    def ready(self):
        if not self.process or self.process.poll() is not None:
            self.start()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            api = ferrysite.Api(os.path.join(self.data, "admin.kubeconfig"))
            api.host = "127.0.0.1"
            return api if api.port == self.port and api.call("GET", "/api/v1/namespaces/default")[0] == 200 else None
        return None

    def node(self, name):
        out = os.path.join(self.base, "node-" + name)
        self.program("pki", "node", name, "--out", out, "--server", f"https://127.0.0.1:{self.port}")
        return ferrysite.Api(os.path.join(out, "node.kubeconfig"))

    def __exit__(self, kind, value, trace):
        failed = kind is not None
        self.process.terminate()
        try:
            failed |= self.process.wait(DEADLINE_S) != 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            failed = True
        log = open(os.path.join(self.base, "log"), errors="replace").read()
        if failed:
            print(log[-4000:])
        complaints.remove(self.base, failed)
        assert kind is not None or not failed, "the server did not end well"

    def log(self):
        return open(os.path.join(self.base, "log"), errors="replace").read()

    def memory_mib(self, what="VmHWM"):
        return memory_mib(self.process.pid, what)

    def serves(self):
        status, answer = self.api.call("GET", "/api/v1/namespaces/default")
        assert status == 200, answer


class Stranger:
    """A connection without a certificate."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def __init__(self, port, tls=True, source="127.0.0.1", host="127.0.0.1", context=None):
        self.s = socket.create_connection((host, port), DEADLINE_S, (source, 0))
        if tls:
            self.s = (context or self.context).wrap_socket(self.s, server_hostname=host)

    def send(self, *pieces):
        """As much of it as the other side takes."""
        for piece in pieces:
            self.s.sendall(piece)
        return self

    def answer(self, cap=1 << 20):
        """(status, text) of the first answer, 0 when the connection ended without one."""
        text = b""
        with contextlib.suppress(OSError):
            while len(text) < cap:
                piece = self.s.recv(65536)
                if not piece:
                    break
                text += piece
                head, _, rest = text.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                if rest is not None and length and len(rest) >= int(length[1]):
                    break
        found = re.match(rb"HTTP/1\.[01] (\d+) ", text)
        return int(found[1]) if found else 0, text

    def ended(self, what="the connection to be ended"):
        """Waits for it; what comes before that is thrown away."""
        end = time.monotonic() + DEADLINE_S
        self.s.settimeout(1)
        while time.monotonic() < end:
            try:
                if not self.s.recv(65536):
                    return
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError:
                return
        raise AssertionError(f"waited {DEADLINE_S} s for {what}")

    def is_open(self):
        self.s.setblocking(False)
        try:
            return self.s.recv(65536) != b""
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        finally:
            self.s.settimeout(DEADLINE_S)

    def drip(self, text, step=0.2):
        """A byte now and then, until the other side has enough of it."""
        end = time.monotonic() + DEADLINE_S
        sent = 0
        while time.monotonic() < end:
            try:
                self.s.sendall(text[sent % len(text):sent % len(text) + 1])
            except OSError:
                return sent
            sent += 1
            select.select([self.s], [], [], step)
            if not self.is_open():
                return sent
        raise AssertionError(f"{sent} bytes, one every {step} s, and the connection is still open")

    def close(self):
        self.s.close()


def ask(port, *pieces, **kw):
    """(status, text) of what a stranger is told who sends this."""
    with contextlib.closing(Stranger(port, **kw)) as s:
        with contextlib.suppress(OSError):  # it may not want to hear all of it
            s.send(*pieces)
        return s.answer()


class Attackers:
    """A process of its own, which takes what CPU others leave."""

    def __init__(self, *args):
        self.process = subprocess.Popen([sys.executable, os.path.realpath(__file__), *map(str, args)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "there\n"
        self.came = 0

    def close(self):
        """How often they came."""
        self.process.terminate()
        came = self.process.stdout.read()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        self.came = int(came.split()[-1]) if came.split() else 0
        return self.came


class Crowd(Attackers):
    """Connections that all send a byte of a handshake now and then, and come again soon after they were ended."""

    def __init__(self, port, n, sources):
        super().__init__("crowd", port, n, *sources)


class Bodies(Attackers):
    """So many at a time, again a second later, each as large as a body may be, with a token or without."""

    def __init__(self, port, n, token):
        super().__init__("bodies", port, n, token or "")


def told_to_end():
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    return done


def crowd(port, n, *sources):
    port, n = int(port), int(n)
    hello = b"\x16\x03\x01\x20\x00\x01\x00\x1f\xfc\x03\x03" + bytes(8000)
    chosen = selectors.DefaultSelector()
    done = told_to_end()
    connections, waiting, came = {}, [], 0

    def come(i):
        s = socket.socket()
        s.setblocking(False)
        with contextlib.suppress(OSError):
            s.bind((sources[i % len(sources)], 0))
        s.connect_ex(("127.0.0.1", port))
        connections[s] = [i, 0]
        chosen.register(s, selectors.EVENT_READ)

    def drip(s, state):
        """Whether it is still there."""
        try:
            s.send(hello[state[1] % len(hello):][:1])
            state[1] += 1
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def is_gone(s):
        try:
            return not s.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            return True

    for i in range(n):
        come(i)
    print("there", flush=True)
    while not done.is_set():
        gone = {s for s, state in connections.items() if not drip(s, state)}
        gone |= {key.fileobj for key, _ in chosen.select(0) if is_gone(key.fileobj)}
        for s in gone:
            i, _ = connections.pop(s)
            chosen.unregister(s)
            s.close()
            waiting.append((time.monotonic() + AGAIN_S, i))
        while waiting and waiting[0][0] < time.monotonic():
            come(waiting.pop(0)[1])
        came += len(gone)
        done.wait(0.5)
    print(came, flush=True)


def bodies(port, n, token):
    done = told_to_end()
    body = b"[" + b"1," * ((3 << 19) - 10) + b"1]"
    head = (f"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/json\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "") + "\r\n").encode()
    came = []

    def again_and_again():
        while not done.is_set():
            with contextlib.suppress(OSError):
                with contextlib.closing(Stranger(int(port))) as s:
                    s.s.settimeout(10)
                    s.send(head, body)
                    s.answer()
            came.append(1)
            done.wait(1)
    threads = [threading.Thread(target=again_and_again, daemon=True) for _ in range(int(n))]
    for t in threads:
        t.start()
    print("there", flush=True)
    done.wait()
    print(len(came), flush=True)


if __name__ == "__main__":
    {"crowd": crowd, "bodies": bodies}[sys.argv[1]](*sys.argv[2:])
