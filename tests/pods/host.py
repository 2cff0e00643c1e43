"""One API server and one node with nothing but ferry-pods on it, whose pods run a stand-in for the launcher."""
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import complaints
import ferrysite
import heartbeat
from ferrysite import wait_for

BUILD = os.environ["FERRY_BUILD"]
VM, RELAY = 61201, 61200
NODE = "solo"


def program(name):
    return os.path.join(BUILD, "src", "programs", name)


class Host:
    """One API server and one node with nothing but ferry-pods on it."""

    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="ferry-pods-")
        os.chmod(self.base, 0o755)
        self.data = os.path.join(self.base, "api")
        self.root = os.path.join(self.base, "node")
        self.pods_dir = os.path.join(self.root, "run/ferry/pods")
        self.launcher = os.path.join(self.base, "standin")
        shutil.copy(os.path.join(HERE, "standin.py"), self.launcher)
        os.chmod(self.launcher, 0o755)
        self.log = open(os.path.join(self.base, "log"), "w+b")
        self.processes = []
        self.agent = None

    def serve(self):
        port = ferrysite.free_port()
        self.server = f"https://127.0.0.1:{port}"
        self.start(program("ferry-apiserver"), "serve", "--data", self.data, "--listen", f"127.0.0.1:{port}")
        admin = os.path.join(self.data, "admin.kubeconfig")
        wait_for("the API server", lambda: os.path.exists(admin))
        self.kubeconfig = os.path.join(self.root, "var/lib/ferry/node.kubeconfig")
        subprocess.run([program("ferry-apiserver"), "pki", "node", NODE, "--data", self.data, "--server", self.server,
                        "--out", os.path.dirname(self.kubeconfig)], check=True, stdout=self.log, stderr=self.log)
        self.api = ferrysite.Api(admin)
        wait_for("the API server to answer", self.answers)

    def answers(self):
        with contextlib.suppress(OSError):
            return self.api.call("GET", "/api/v1/nodes")[0] == 200

    def start(self, *argv):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.processes.append(process)
        return process

    def start_agent(self, *more, wrapper=()):
        self.agent = self.start(*wrapper, program("ferry-pods"), "--node", NODE, "--root", self.root, "--launcher", self.launcher,
                                "--log-level", "debug", *more)

    def end_agent(self, sig):
        self.agent.send_signal(sig)
        code = self.agent.wait(30)
        self.processes.remove(self.agent)
        return code

    # -- pods --------------------------------------------------------------------------------

    def create(self, name, *words, grace=30, mounts=(), files=(), devices=(), resources=None, **spec):
        container = {"name": "compute", "image": "x", "command": ["ferry-launcher", "--name", name, *words],
                     "resources": resources or {},
                     "volumeMounts": [{"name": m, "mountPath": "/var/run/kubevirt-private/vmi-disks/" + m} for m in mounts] +
                     [{"name": m.split("/")[1], "mountPath": "/var/run/kubevirt-private/" + m} for m in files] +
                     [{"name": m.split("/")[-1], "mountPath": m} for m in devices]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"nodeName": NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": grace,
                        "containers": [container], **spec}}
        return self.api.create("pods", pod)["metadata"]["uid"]

    def create_and_wait(self, name, *words, **more):
        uid = self.create(name, *words, **more)
        self.wait_phase(name, "Running")
        return uid

    def pod(self, name):
        return self.api.get("pods", name)

    def wait_phase(self, name, phase, seconds=30):
        return wait_for(f"pod {name} to be {phase}; it is {self.pod(name)}",
                        lambda: (p := self.pod(name)) and p.get("status", {}).get("phase") == phase and p, seconds)

    def wait_ready(self, name, ready, seconds=60):
        """The status of a pod whose container, and all conditions about it, say so."""
        word = str(ready)

        def told():
            status = (self.pod(name) or {}).get("status", {})
            said = {c["status"] for c in status.get("conditions", []) if c["type"] in ("Ready", "ContainersReady")}
            return said == {word} and status["containerStatuses"][0]["ready"] is ready and status
        return wait_for(f"pod {name} to be {'' if ready else 'not '}ready", told, seconds)

    def wait_gone(self, name, uid, seconds=30):
        wait_for(f"pod {name} to go", lambda: self.pod(name) is None, seconds)
        # A pod that was over goes at once: its directory may follow its object.
        wait_for(f"the directory of pod {name} to go", lambda: not os.path.exists(self.dir(uid)), seconds)

    def delete(self, name, grace=None):
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        status, answer = self.api.call("DELETE", self.api.path("pods", name), body)
        assert status in (200, 202), answer

    def dir(self, uid):
        return os.path.join(self.pods_dir, uid)

    def ask(self, uid, word="what"):
        """What the stand-in sees; None when it does not answer."""
        with contextlib.suppress(OSError, ValueError):
            with heartbeat.connect(os.path.join(self.dir(uid), "launcher.sock")) as s:
                s.settimeout(10)
                s.sendall(word.encode())
                data = b""
                while chunk := s.recv(65536):
                    data += chunk
                return json.loads(data)
        return None

    def sandbox(self, uid):
        """Host pid and pid namespace of the sandbox's PID 1."""
        with open(os.path.join(self.dir(uid), "sandbox.json")) as f:
            info = json.load(f)
        return info["child-pid"], info["pid-namespace"]

    def inside(self, uid):
        """Host pids of the processes in a sandbox."""
        _, ns = self.sandbox(uid)
        found = []
        for pid, _ in ferrysite.processes():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/pid").st_ino == ns:
                    found.append(pid)
        return found

    def close(self, failed):
        for process in self.processes:
            process.kill()
            process.wait()
        for uid in os.listdir(self.pods_dir) if os.path.isdir(self.pods_dir) else []:
            with contextlib.suppress(OSError, ValueError, IndexError):
                for pid in self.inside(uid):
                    os.kill(pid, signal.SIGKILL)
        if failed:
            self.log.seek(0)
            sys.stdout.write(self.log.read().decode(errors="replace"))
            for uid in os.listdir(self.pods_dir) if os.path.isdir(self.pods_dir) else []:
                with contextlib.suppress(OSError):
                    print(f"==== {uid}\n{open(os.path.join(self.dir(uid), 'log')).read()}")
        complaints.remove(self.base, failed)


def mode(path):
    st = os.lstat(path)
    return stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid


def run(story):
    """Calls story(host) with a host that serves; shows the log when it fails."""
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    host = Host()
    failed = True
    try:
        host.serve()
        story(host)
        failed = False
    finally:
        host.close(failed)
