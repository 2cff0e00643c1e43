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
MARK = "aGlkZGVuLTRmMWM="
OPEN = {"ca.crt"}  # what anybody may know


class Server:
    def __init__(self, bin_dir):
        self.program = os.path.join(os.path.abspath(bin_dir), "ferry-apiserver")
        self.base = tempfile.mkdtemp(prefix="ferry-local-")
        os.chmod(self.base, 0o755)
        self.data = os.path.join(self.base, "data")
        self.process = None

    def start(self):
        port = ferrysite.free_port()
        with open(os.path.join(self.base, "log"), "ab") as log:
            self.process = subprocess.Popen(["sh", "-c", 'umask 0; exec "$@"', "sh", self.program, "serve", "--data", self.data, "--listen",
                                             f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
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
        return [os.path.join(at, name) for at, _, names in os.walk(self.data) for name in names]


def reads(path):
    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "head", "-c", "1", path],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
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


scenario.need_root()
scenario.main(globals())
