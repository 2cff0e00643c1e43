#!/usr/bin/env python3
"""A user of the API host without any right there: what an API server leaves on disk is closed to them, whatever the umask was and
whatever an older version left open; and whoever has the database without the key has no Secret."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import complaints
import ferrysite
import scenario
from ferrysite import wait_for

NOBODY = 65534
OWN, CONTROLLER = 61202, 61203
MARK = "aGlkZGVuLTRmMWM="
OPEN = {"ca.crt"}  # what anybody may know


class Server:
    def __init__(self, bin_dir):
        self.program = os.path.join(os.path.abspath(bin_dir), "ferry-apiserver")
        self.base = tempfile.mkdtemp(prefix="ferry-local-")
        os.chmod(self.base, 0o755)
        self.data = os.path.join(self.base, "data")
        self.process = None

    def start(self, *more):
        port = ferrysite.free_port()
        with open(os.path.join(self.base, "log"), "ab") as log:
            self.process = subprocess.Popen(["sh", "-c", 'umask 0; exec "$@"', "sh", self.program, "serve", "--data", self.data, "--listen",
                                             f"127.0.0.1:{port}", *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        admin = os.path.join(self.data, "admin.kubeconfig")

        def ready():
            with contextlib.suppress(OSError, ValueError):
                return ferrysite.Api(admin) if f":{port}" in open(admin).read() and ferrysite.Api(admin).call(
                    "GET", "/api/v1/namespaces/default")[0] == 200 else None
        return wait_for("the API server", ready)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0

    def files(self):
        """But for those that are just being written, under a name of their own."""
        return [os.path.join(at, name) for at, _, names in os.walk(self.data) for name in names if not name.startswith(".")]


def as_user(uid, *words):
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=60)


def reads(path, uid=NOBODY):
    done = as_user(uid, "head", "-c", "0", path)
    assert done.returncode == 0 or "Permission denied" in done.stderr, done.stderr
    return done.returncode == 0


def closed(server):
    files = server.files()
    assert any(f.endswith("/api.db") for f in files) and any(f.endswith("/secrets.key") for f in files), files
    for path in files:
        os.chmod(server.data, 0o755)  # the files by themselves, not for their directory
        os.chmod(os.path.join(server.data, "ca"), 0o755)
        assert reads(path) == (os.path.basename(path) in OPEN), path
    os.chmod(server.data, 0o700)


def holds(server):
    return [f for f in server.files() if MARK.encode() in open(f, "rb").read()]


def test_what_is_on_disk(bin_dir):
    server, failed = Server(bin_dir), True
    try:
        api = server.start()
        assert os.stat(server.data).st_mode & 0o777 == 0o700
        api.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "some"}, "data": {"a": MARK}})
        closed(server)
        assert not holds(server), "a Secret is in the database, or its log, as it is"
        backup = os.path.join(server.base, "backup")
        subprocess.run(["sh", "-c", 'umask 0; exec "$@"', "sh", server.program, "backup", backup, "--data", server.data], check=True)
        assert not reads(backup) and MARK in open(backup).read()
        server.stop()
        assert not holds(server)
        # As an older version left it under a wide umask.
        for path in server.files():
            if "api.db" in path:
                os.chmod(path, 0o666)
        api = server.start()
        closed(server)
        assert api.get("secrets", "some")["data"] == {"a": MARK}
        server.stop()
        # The database went somewhere without its key.
        os.rename(os.path.join(server.data, "secrets.key"), os.path.join(server.base, "kept"))
        done = subprocess.run([server.program, "serve", "--data", server.data, "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and "secrets.key is missing" in done.stderr, done
        os.rename(os.path.join(server.base, "kept"), os.path.join(server.data, "secrets.key"))
        api = server.start()
        assert api.get("secrets", "some")["data"] == {"a": MARK}
        server.stop()
        failed = False
    finally:
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        if failed:
            print(open(os.path.join(server.base, "log"), errors="replace").read()[-4000:])
        complaints.remove(server.base, failed)


def owners(server):
    return {os.path.relpath(f, server.data): (os.stat(f).st_uid, os.stat(f).st_mode & 0o777) for f in [server.data, *server.files()]}


def run(server, *words, code=0):
    done = subprocess.run([server.program, *words, "--data", server.data], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == code, (words, done)
    return done.stdout + done.stderr


def all_are(server, uid):
    left = {f: o for f, o in owners(server).items() if f != "." and o[0] != uid}
    assert not left, left


def test_what_root_does_for_a_server_that_is_not_root(bin_dir):
    """The server has a user of its own. Root's site becomes that user's; backup, token and pki, called by root, leave no file of
    root's; the controller's user reads its kubeconfig, also after it was renewed, and nothing else."""
    server = Server(bin_dir)
    try:
        api = server.start()  # as a version before had it: root
        api.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "some"}, "data": {"a": MARK}})
        config = os.path.join(server.data, "controller.kubeconfig")
        run(server, "pki", "controller", "--server", "https://127.0.0.1:6443", "--out", config)
        server.process.kill()  # its log stays, and is root's
        server.process.wait()
        all_are(server, 0)
        assert os.path.exists(os.path.join(server.data, "api.db-wal"))
        api = server.start("--user", f"{OWN}:{OWN}", "--controller-gid", str(CONTROLLER), "--certificate-life", "6")
        all_are(server, OWN)
        st = os.stat(server.data)
        assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, OWN, 0o1771), oct(st.st_mode)
        with open(f"/proc/{server.process.pid}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        assert status["Uid"].split() == [str(OWN)] * 4 and status["Groups"].split() == [str(CONTROLLER)] and int(status["CapEff"], 16) == 0
        assert api.get("secrets", "some")["data"] == {"a": MARK}
        first = open(config).read()
        wait_for("the controller's certificate to be renewed", lambda: open(config).read() != first, 30)
        readable = {f for f in server.files() if reads(f, CONTROLLER)}
        assert readable == {config}, readable
        assert all(reads(path, OWN) and not reads(path) for path in server.files())

        backup = os.path.join(server.base, "backup")
        run(server, "backup", backup)
        assert os.stat(backup).st_uid == 0 and os.stat(backup).st_mode & 0o777 == 0o600
        assert run(server, "token", "--user", "somebody").strip()
        run(server, "pki", "controller", "--server", "https://127.0.0.1:6443", "--out", config, "--controller-gid", str(CONTROLLER))
        out = os.path.join(server.base, "node")
        run(server, "pki", "node", "one", "--server", "https://127.0.0.1:6443", "--out", out)
        assert os.stat(os.path.join(out, "node.kubeconfig")).st_uid == 0
        assert reads(config, CONTROLLER) and not reads(config)
        all_are(server, OWN)
        server.process.kill()
        server.process.wait()
        run(server, "backup", backup)  # of a database that no server has: it is opened
        all_are(server, OWN)
        # Started by root without a word about users: it knows by the site whose it is. By another user: a clear word.
        api = server.start()
        assert os.stat(f"/proc/{server.process.pid}").st_uid == OWN and api.get("secrets", "some")["data"] == {"a": MARK}
        server.stop()
        all_are(server, OWN)
        done = as_user(NOBODY, server.program, "serve", "--data", server.data, "--listen", "127.0.0.1:0")
        assert done.returncode == 1 and f"belongs to uid {OWN}, and this is uid {NOBODY}" in done.stderr, done
    finally:
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        complaints.remove(server.base, False)


def test_what_a_taken_over_server_leaves_for_root(bin_dir):
    """Before each start root gives the site's files to the server. Links and names that a server planted there meanwhile get it
    nothing."""
    server = Server(bin_dir)
    try:
        server.start("--user", f"{OWN}:{OWN}")
        server.stop()
        shadow = os.path.join(server.base, "shadow")
        with open(shadow, "w") as f:
            f.write("root's own\n")
        os.chmod(shadow, 0o600)
        planted = {"admin.kubeconfig": "-s", "ca/planted.key": "-s", "api.db-shm": "-s", "controller.kubeconfig": "-s"}
        for name, how in planted.items():
            path = os.path.join(server.data, name)
            as_user(OWN, "rm", "-f", path)
            assert as_user(OWN, "ln", how, shadow, path).returncode == 0, name
        os.link(shadow, os.path.join(server.data, "ca/hard.key"))  # where the kernel lets them
        assert "left alone" in run(server, "serve", "--user", f"{OWN}:{OWN}", "--prepare")
        subprocess.run([os.path.join(os.path.dirname(server.program), "ferry-controller"), "--prepare", "--kubeconfig",
                        os.path.join(server.data, "controller.kubeconfig")], check=True, timeout=60)
        st = os.stat(shadow)
        assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (0, 0, 0o600), st
        with open(os.path.join(server.data, "node.kubeconfig"), "w") as f:
            f.write("the node's\n")
        for name in ("pki", "records", "disks", "libvirt-cache", "node.kubeconfig"):  # a node's on the same host
            path = os.path.join(server.data, name)
            assert os.lstat(path).st_uid == 0, name
            assert as_user(OWN, "rm", "-rf", path).returncode != 0 and as_user(OWN, "mv", path, path + ".away").returncode != 0
    finally:
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        complaints.remove(server.base, False)


scenario.need_root()
scenario.main(globals())
