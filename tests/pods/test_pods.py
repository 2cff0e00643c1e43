#!/usr/bin/env python3
"""ferry-pods with a real API server and real sandboxes: life and death of pods, adoption, refusals."""
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
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

    def start_agent(self):
        self.agent = self.start(program("ferry-pods"), "--node", NODE, "--root", self.root, "--launcher", self.launcher,
                                "--log-level", "debug")

    def end_agent(self, sig):
        self.agent.send_signal(sig)
        code = self.agent.wait(30)
        self.processes.remove(self.agent)
        return code

    # -- pods --------------------------------------------------------------------------------

    def create(self, name, *words, grace=30, mounts=(), **spec):
        container = {"name": "compute", "image": "x", "command": ["ferry-launcher", "--name", name, *words],
                     "volumeMounts": [{"name": m, "mountPath": "/var/run/kubevirt-private/vmi-disks/" + m} for m in mounts]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"nodeName": NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": grace,
                        "containers": [container], **spec}}
        return self.api.create("pods", pod)["metadata"]["uid"]

    def pod(self, name):
        return self.api.get("pods", name)

    def wait_phase(self, name, phase, seconds=30):
        return wait_for(f"pod {name} to be {phase}; it is {self.pod(name)}",
                        lambda: (p := self.pod(name)) and p.get("status", {}).get("phase") == phase and p, seconds)

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
        shutil.rmtree(self.base, ignore_errors=True)


def mode(path):
    st = os.lstat(path)
    return stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid


def waits_for_the_api(host):
    """An API server that is not there: it says so and waits; SIGTERM ends it cleanly."""
    other = os.path.join(host.base, "nowhere")
    text = open(host.kubeconfig).read()
    with open(other, "w") as f:
        f.write(re.sub(r"(https://127\.0\.0\.1):\d+", rf"\1:{ferrysite.free_port()}", text))
    agent = subprocess.Popen([program("ferry-pods"), "--node", NODE, "--root", host.base + "/elsewhere", "--kubeconfig",
                              other, "--launcher", host.launcher], stderr=subprocess.PIPE, text=True)
    try:
        lines = [agent.stderr.readline() for _ in range(2)]  # the watch says it, too
        assert "waiting for the API server" in "".join(lines), lines
        agent.terminate()
        assert agent.wait(30) == 0
    finally:
        agent.kill()
        agent.wait()
        agent.stderr.close()


def runs_and_is_told(host):
    uid = host.create("first", "word")
    pod = host.wait_phase("first", "Running")
    status = pod["status"]
    [container] = status["containerStatuses"]
    assert container["name"] == "compute" and container["ready"] and "running" in container["state"], container
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {t: "True" for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")}, conditions
    assert status["startTime"]

    d = host.dir(uid)
    for name, expected in {"": (0o711, 0, 0), "m": (0o2770, VM, RELAY), "libvirt": (0o2770, VM, RELAY),
                           "console": (0o2770, VM, RELAY), "console/serial.log": (0o640, VM, RELAY),
                           "state": (0o700, VM, VM), "home": (0o700, VM, VM), "launcher.sock": (0o600, 0, 0),
                           "exit": (0o600, 0, 0), "log": (0o600, 0, 0), "sandbox.json": (0o600, 0, 0)}.items():
        assert mode(os.path.join(d, name)) == expected, (name, [oct(x) for x in mode(os.path.join(d, name))])

    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["args"][:3] == ["--name", "first", "word"], seen["args"]
    assert (seen["uid"], seen["gid"], seen["groups"]) in ((VM, VM, []), (VM, VM, [VM])), seen
    assert set(seen["caps"]) == {"0000000000000000"} and seen["noNewPrivs"] == "1", seen
    assert seen["ppid"] == 1 and seen["hostname"] == "first", seen
    assert seen["interfaces"] == ["lo"], seen["interfaces"]
    assert set(seen["processes"]) == {1, seen["pid"]}, seen["processes"]
    assert seen["descriptors"] == [0, 1, 2, 3, 4, 5], seen["descriptors"]
    assert "kvm" not in seen["dev"], seen["dev"]
    assert not os.path.exists("/dev/userfaultfd") or "userfaultfd" in seen["dev"], seen["dev"]
    home = "/var/run/ferry-home"
    assert seen["writable"] == ["/tmp", "/var/run/kubevirt/migrationproxy", "/var/run/ferry-libvirt",
                                "/var/run/ferry-console", "/var/run/ferry-state", home, home + "/rt", home + "/config",
                                home + "/cache", home + "/data"], seen["writable"]
    assert seen["env"]["HOME"] == home and seen["env"]["LISTEN_FDS"] == "3", seen["env"]
    assert "FERRY_BUILD" not in seen["env"], "the agent's environment leaked"
    return uid


def mounts_volumes(host):
    """Empty and host directories, a claim once it is bound; each only where the pod asks for it."""
    old = os.path.join(host.root, "data/old")
    os.makedirs(old)
    with open(old + "/disk.img", "w") as f:
        f.write("x")
    uid = host.create("disks", mounts=("empty", "made", "old", "claimed"), volumes=[
        {"name": "empty", "emptyDir": {}}, {"name": "old", "hostPath": {"path": "/data/old"}},
        {"name": "made", "hostPath": {"path": "/data/made", "type": "DirectoryOrCreate"}},
        {"name": "claimed", "persistentVolumeClaim": {"claimName": "claim"}}])
    wait_for("the missing claim to be told", lambda: any(
        e["reason"] == "FailedMount" and "no claim 'claim'" in e["message"] for e in host.api.list("events")), 60)
    path = os.path.join(host.root, "data/pv")
    os.makedirs(path)
    host.api.create("persistentvolumes", {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                 "hostPath": {"path": "/data/pv"}}})
    host.api.create("persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                 "resources": {"requests": {"storage": "1Gi"}}}})
    host.wait_phase("disks", "Running", 90)
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["disks"] == {"empty": {"writable": True, "image": False}, "made": {"writable": True, "image": False},
                             "old": {"writable": False, "image": True}, "claimed": {"writable": False, "image": False}}, seen["disks"]
    assert mode(old + "/disk.img")[1:] == (VM, VM) and mode(old)[1:] == (0, 0)
    host.delete("disks")
    host.wait_gone("disks", uid)
    assert os.path.exists(old + "/disk.img") and os.path.exists(os.path.join(host.root, "data/made"))


def survives_its_launcher(host, uid):
    before, _ = host.sandbox(uid)
    inner = host.ask(uid)["pid"]
    [launcher] = [p for p in host.inside(uid) if p != before]
    os.kill(launcher, signal.SIGKILL)
    after = wait_for("a new launcher", lambda: (a := host.ask(uid)) and a["pid"] != inner and a)
    assert after["ppid"] == 1
    assert host.sandbox(uid)[0] == before and host.pod("first")["status"]["phase"] == "Running"
    host.ask(uid, "exit 3")  # an exit code other than 0 is a death as well
    wait_for("yet another launcher", lambda: (a := host.ask(uid)) and a["pid"] not in (inner, after["pid"]))


def survives_the_agent(host, uid):
    identity, launcher = host.sandbox(uid), host.ask(uid)["pid"]
    host.end_agent(signal.SIGKILL)
    assert host.ask(uid)["pid"] == launcher, "the sandbox went with the agent"
    gone = host.create("while-away")
    orphan = host.create("orphan")
    host.start_agent()
    host.wait_phase("while-away", "Running")
    host.wait_phase("orphan", "Running")
    assert host.sandbox(uid) == identity and host.ask(uid)["pid"] == launcher, "not adopted"
    assert host.end_agent(signal.SIGTERM) == 0
    assert host.ask(uid)["pid"] == launcher
    # The object goes while nobody looks; its end, too.
    host.delete("orphan", grace=0)
    wait_for("the object to go", lambda: host.pod("orphan") is None)
    os.kill(host.sandbox(gone)[0], signal.SIGKILL)
    host.start_agent()
    pod = host.wait_phase("while-away", "Failed")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert terminated["exitCode"] == 137, terminated
    wait_for("the orphan to be ended", lambda: not os.path.exists(host.dir(orphan)))
    host.delete("while-away")
    host.wait_gone("while-away", gone)
    assert host.pod("first")["status"]["phase"] == "Running"


def stops_when_deleted(host, uid):
    inside = host.inside(uid)
    host.delete("first")
    host.wait_gone("first", uid)
    assert not [p for p in inside if os.path.exists(f"/proc/{p}")]


def kills_what_does_not_stop(host):
    uid = host.create("stubborn", "stubborn", grace=2)
    host.wait_phase("stubborn", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(uid))
    started = time.monotonic()
    inside = host.inside(uid)
    host.delete("stubborn")
    host.wait_gone("stubborn", uid)
    assert time.monotonic() - started >= 1.5, "no grace was given"
    assert not [p for p in inside if os.path.exists(f"/proc/{p}")]


def reports_how_it_ended(host):
    uid = host.create("ends")
    host.wait_phase("ends", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(uid))
    host.ask(uid, "exit 0")
    pod = host.wait_phase("ends", "Succeeded")
    [container] = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 0 and not container["ready"], container
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]}["Ready"] == "False"
    assert os.path.exists(host.dir(uid)), "what is left of a pod stays until its object goes"
    host.delete("ends")
    host.wait_gone("ends", uid)


def refuses_by_name(host):
    uid = host.create("web", hostNetwork=True)
    pod = host.wait_phase("web", "Failed")
    assert pod["status"]["reason"] == "UnsupportedPod" and "hostNetwork" in pod["status"]["message"], pod["status"]
    assert not os.path.exists(host.dir(uid))
    host.delete("web")
    host.wait_gone("web", uid)


def tries_again_to_start(host):
    hidden = host.launcher + ".away"
    os.rename(host.launcher, hidden)
    uid = host.create("later")
    wait_for("the reason why it does not start",
             lambda: "standin" in (host.pod("later").get("status") or {}).get("message", ""))
    state = host.pod("later")["status"]["containerStatuses"][0]["state"]
    assert state["waiting"]["reason"] == "CreateContainerError", state
    os.rename(hidden, host.launcher)
    pod = host.wait_phase("later", "Running")
    assert "message" not in pod["status"], pod["status"]
    host.delete("later")
    host.wait_gone("later", uid)


def one_sentence_each(host):
    """Wrong calls."""
    for argv, code, words in (
            ([], 2, "--node is missing"),
            (["--node", NODE, "extra"], 2, "unexpected argument 'extra'"),
            (["--node", NODE, "--root", "relative"], 2, "not an absolute path"),
            (["--node", NODE, "--root", host.root, "--launcher", host.launcher], 1, "another ferry-pods"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", "/nonexistent"], 1, "/nonexistent cannot be run"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", host.launcher], 1, "node.kubeconfig"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", host.launcher, "--vm-user", "0:0"], 1, "root"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", host.launcher, "--guest-dir", "/nonexistent"], 1,
             "--guest-dir")):
        done = subprocess.run([program("ferry-pods"), *argv], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and words in done.stderr, (argv, done)
        assert done.stderr.count("\n") == 1, done.stderr
    shutil.copy(program("ferry-pods"), host.base)
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", host.base + "/ferry-pods",
                           "--node", NODE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "needs root" in done.stderr, done


def main():
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    host = Host()
    failed = True
    try:
        host.serve()
        waits_for_the_api(host)
        host.start_agent()
        uid = runs_and_is_told(host)
        mounts_volumes(host)
        survives_its_launcher(host, uid)
        survives_the_agent(host, uid)
        stops_when_deleted(host, uid)
        kills_what_does_not_stop(host)
        reports_how_it_ended(host)
        refuses_by_name(host)
        tries_again_to_start(host)
        one_sentence_each(host)
        assert host.end_agent(signal.SIGTERM) == 0
        failed = False
    finally:
        host.close(failed)


main()
