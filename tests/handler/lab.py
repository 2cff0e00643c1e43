"""Two nodes with real API server, handlers, pods agents, relays, launchers and guests. A test plays the controller: it makes
pods and hands moves off."""
import contextlib
import glob
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import complaints
import ferrysite
import heartbeat
from ferrysite import wait_for

BIN = sys.argv[1] if len(sys.argv) > 1 else sys.exit(f"usage: {sys.argv[0]} BIN_DIR")
GUEST = os.path.join(BIN, "../lib/ferry/guest")
VMIS, MIGRATIONS, NODES = "virtualmachineinstances", "virtualmachineinstancemigrations", ("h1", "h2")
MERGE_PATCH = "application/merge-patch+json"
BEATS = 20
ACCELERATOR = os.environ.get("FERRY_ACCELERATOR", "tcg")  # as scripts/run-tests found it


def program(name):
    return os.path.join(BIN, name)


class Lab:
    def __init__(self, pods_options=()):
        self.pods_options = pods_options
        self.base = tempfile.mkdtemp(prefix="ferry-handler-")
        os.chmod(self.base, 0o755)
        self.data = os.path.join(self.base, "api")
        self.processes = {}
        self.monitor = None
        self.api = None
        self.uids = {}  # of migrations, by name

    def root(self, node):
        return os.path.join(self.base, "node-" + node)

    def start(self, name, *argv):
        log = open(os.path.join(self.base, name + ".log"), "ab")
        with log:
            self.processes[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, name, sig=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(sig)
        return process.wait(30)

    def start_relay(self, node):
        self.start("relay-" + node, program("ferry-relay"), "serve", "--root", self.root(node), "--node", node, "--user",
                   "61200:61200")
        wait_for("the relay", lambda: self.relay(node, "/healthz"))

    def start_pods(self, node, guests=GUEST):
        self.start("pods-" + node, program("ferry-pods"), "--root", self.root(node), "--node", node, "--launcher",
                   program("ferry-launcher"), "--guest-dir", guests, "--relay-gid", "61200", *self.pods_options)

    def start_handler(self, node):
        self.start("handler-" + node, program("ferry-handler"), "--root", self.root(node), "--node", node,
                   "--node-address", "127.0.0.1", "--migration-interface", "nonesuch0", "--log-level", "debug")

    def up(self):
        port = ferrysite.free_port()
        self.start("api", program("ferry-apiserver"), "serve", "--data", self.data, "--listen", f"127.0.0.1:{port}")
        admin = os.path.join(self.data, "admin.kubeconfig")
        wait_for("the API server", lambda: os.path.exists(admin))
        self.api = ferrysite.Api(admin)
        for node in NODES:
            subprocess.run([program("ferry-apiserver"), "pki", "node", node, "--data", self.data, "--server",
                            f"https://127.0.0.1:{port}", "--out", os.path.join(self.root(node), "var/lib/ferry"),
                            "--relay-owner", "61200:61200"], check=True, stdout=subprocess.DEVNULL)
            self.start_relay(node)
            self.start_pods(node)
            self.start_handler(node)
        self.monitor = heartbeat.Monitor(self.base)

    def close(self, failed):
        if self.monitor:
            self.monitor.stop()
        with contextlib.suppress(OSError):
            if failed and self.api:
                print(json.dumps(self.api.vmi("vm"), indent=1))
        for name in list(self.processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.kill(name)
        for path in glob.glob(os.path.join(self.base, "node-*/run/ferry/pods/*/sandbox.json")):
            with contextlib.suppress(OSError, ValueError):
                info = json.load(open(path))
                if os.stat(f"/proc/{info['child-pid']}/ns/pid").st_ino == info["pid-namespace"]:
                    os.kill(info["child-pid"], signal.SIGKILL)
        if failed:
            for path in sorted(glob.glob(os.path.join(self.base, "*.log"))) + sorted(
                    glob.glob(os.path.join(self.base, "node-*/run/ferry/pods/*/log"))):
                with open(path, errors="replace") as f:
                    lines = [line for line in f if "audit" not in line and "/dev/kvm" not in line]
                print(f"==== {path[len(self.base) + 1:]}")
                sys.stdout.writelines(lines[-50:])
        complaints.remove(self.base, failed)

    def owns(self, pid):
        """Whether a process is in a sandbox of this lab."""
        ns = os.stat(f"/proc/{pid}/ns/pid").st_ino
        for path in glob.glob(os.path.join(self.base, "node-*/run/ferry/pods/*/sandbox.json")):
            with contextlib.suppress(OSError, ValueError):
                if json.load(open(path))["pid-namespace"] == ns:
                    return True
        return False

    def qemu(self, node, pod_uid):
        """Pid of the guest's QEMU in a pod."""
        with open(os.path.join(self.root(node), "run/ferry/pods", pod_uid, "sandbox.json")) as f:
            ns = json.load(f)["pid-namespace"]

        def find():
            for pid, command in ferrysite.processes():
                with contextlib.suppress(OSError):
                    # libvirtd asks QEMUs of its own what they can do: the guest's is the one with a name.
                    if "-name guest=" in command and os.stat(f"/proc/{pid}/ns/pid").st_ino == ns:
                        return pid
            return None
        return wait_for("QEMU", find)

    # -- control sockets ---------------------------------------------------------------------

    @staticmethod
    def control(path, what, method="GET", body=None):
        """A call on a control socket; None when nobody answers."""
        with contextlib.suppress(OSError, ValueError):
            with heartbeat.connect(path) as s:
                s.settimeout(10)
                data = json.dumps(body) if body is not None else ""
                s.sendall(f"{method} {what} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n{data}".encode())
                data = b""
                while chunk := s.recv(65536):
                    data += chunk
            return json.loads(data.partition(b"\r\n\r\n")[2])
        return None

    def relay(self, node, what, *more):
        return self.control(os.path.join(self.root(node), "run/ferry/relay.sock"), what, *more)

    def launcher(self, node, pod_uid):
        return self.control(os.path.join(self.root(node), "run/ferry/pods", pod_uid, "launcher.sock"), "/v1/status")

    def node_api(self, node, what, context=None):
        """(status, text) of the node API, called by an administrator."""
        port = self.api.get("nodes", node)["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        with contextlib.closing(connection):
            raw = socket.create_connection(("127.0.0.1", port), 20)
            connection.sock = (context or self.api.context).wrap_socket(raw, server_hostname=node)
            connection.request("GET", what)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def node_context(self, identity):
        pki = os.path.join(self.root("h2"), "var/lib/ferry/pki")
        context = ssl.create_default_context(cafile=os.path.join(pki, "ca.crt"))
        if identity:
            context.load_cert_chain(os.path.join(pki, identity + ".crt"), os.path.join(pki, identity + ".key"))
        return context

    def local_api(self, node, what):
        return self.control(os.path.join(self.root(node), "run/ferry/handler.sock"), what)

    # -- the controller's part ---------------------------------------------------------------

    def patch(self, *ops):
        status, answer = self.api.call("PATCH", self.api.path(VMIS, "vm"), list(ops), "application/json-patch+json")
        assert status == 200, answer
        return answer

    def create_vmi(self, kernel="/heartbeat.elf"):
        return self.api.create(VMIS, {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "vm", "finalizers": ["foregroundDeleteVirtualMachine"], "labels": {"app": "x"}},
            "spec": {"terminationGracePeriodSeconds": 2, "domain": {
                "memory": {"guest": "64Mi"}, "devices": {}, "firmware": {"kernelBoot": {
                    "kernelArgs": f"ws=24 rate=2 hb={BEATS} fill=rand", "container": {
                        "image": "ferry.io/builtin", "kernelPath": kernel}}}}}})

    def create_pod(self, name, node, vmi):
        meta = vmi["metadata"]
        pod = self.api.create("pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": name, "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": meta["uid"]},
                "ownerReferences": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                     "name": meta["name"], "uid": meta["uid"], "controller": True}]},
            "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [{
                "name": "compute", "image": "x", "command": ["ferry-launcher"],
                "args": ["--namespace", "default", "--name", "vm", "--uid", meta["uid"], "--accelerator", ACCELERATOR],
                "resources": {"limits": {"devices.kubevirt.io/kvm": "1"}} if ACCELERATOR == "kvm" else {}}]}})
        wait_for(f"pod {name} to run", lambda: self.api.get("pods", name)["status"].get("phase") == "Running")
        return pod["metadata"]["uid"]

    def create_migration(self, name, target_pod):
        """The migration of that name, alone, as the target pod tells of it; its UID."""
        for old in self.uids:
            self.api.call("PATCH", self.api.path(MIGRATIONS, old) + "/status", {"status": {"phase": "Succeeded"}}, MERGE_PATCH)
        made = self.api.create(MIGRATIONS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                                            "metadata": {"name": name}, "spec": {"vmiName": "vm"}})
        self.uids[name] = made["metadata"]["uid"]
        status, answer = self.api.call("PATCH", self.api.path("pods", target_pod), {"metadata": {
            "labels": {"kubevirt.io/migrationJobUID": self.uids[name]}, "annotations": {"kubevirt.io/migrationJobName": name}}},
            MERGE_PATCH)
        assert status == 200, answer
        return self.uids[name]

    def hand_off(self, name, source, source_pod, target, target_pod, config=None):
        uid = self.create_migration(name, target_pod)
        state = {"migrationUid": uid, "sourceNode": source, "sourcePod": source_pod, "targetNode": target,
                 "targetPod": target_pod, "migrationConfiguration": config or {}}
        self.patch({"op": "add", "path": "/status/migrationState", "value": state},
                   {"op": "add", "path": "/metadata/labels/kubevirt.io~1migrationTargetNodeName", "value": target})

    def delete_pod(self, name):
        status, answer = self.api.call("DELETE", self.api.path("pods", name))
        assert status in (200, 202), answer
        wait_for(f"pod {name} to go", lambda: self.api.get("pods", name) is None)

    # -- waiting -----------------------------------------------------------------------------

    def status(self):
        return self.api.vmi("vm").get("status", {})

    def move(self):
        return self.status().get("migrationState", {})

    def wait_move(self, what, condition, seconds=60):
        wait_for(what, lambda: condition(self.move()), seconds, step=0.1)
        return self.move()

    def wait_copying(self):
        def copying():
            text = self.api.vmi("vm")["metadata"].get("annotations", {}).get("ferry.io/progress", "{}")
            sample = json.loads(text)
            return sample.get("uid") == self.move()["migrationUid"] and sample.get("processedBytes", 0) > 1 << 20
        wait_for("memory to be on its way", copying)

    def wait_clean(self):
        """Nothing of a move is left on the nodes."""
        wait_for("the label to go", lambda: "kubevirt.io/migrationTargetNodeName" not in
                 self.api.vmi("vm")["metadata"]["labels"])
        for node in NODES:
            wait_for(f"the relay of {node} to be idle", lambda: (h := self.relay(node, "/healthz")) and
                     h["targets"] == h["sources"] == h["streams"] == 0)
            wait_for(f"the sockets on {node} to go",
                     lambda: not glob.glob(os.path.join(self.root(node), "run/ferry/pods/*/m/*")))


def check_alive(lab):
    lab.monitor.wait_beats(5, 30)


def starts(lab):
    vmi = lab.create_vmi()
    uid = lab.create_pod("pod1", "h1", vmi)
    lab.patch({"op": "add", "path": "/metadata/labels/kubevirt.io~1nodeName", "value": "h1"},
              {"op": "add", "path": "/status", "value": {"phase": "Scheduled", "nodeName": "h1"}})
    wait_for("the guest to run", lambda: lab.status().get("phase") == "Running")
    status = lab.status()
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"Ready": "True", "LiveMigratable": "True", "StorageLiveMigratable": "True"}, conditions
    assert (status["migrationMethod"], status["migrationTransport"]) == ("LiveMigration", "Unix")
    assert status["phaseTransitionTimestamps"][-1]["phase"] == "Running"
    check_alive(lab)
    return vmi, uid


def ends(lab, pod="pod3"):
    status, _ = lab.api.call("DELETE", lab.api.path(VMIS, "vm"))
    assert status in (200, 202)
    wait_for("the guest to be shut down", lambda: lab.status().get("phase") == "Succeeded")
    pod = wait_for("the pod to be over", lambda: (p := lab.api.get("pods", pod))["status"]["phase"] == "Succeeded" and p)
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    lab.patch({"op": "remove", "path": "/metadata/finalizers"})
    wait_for("the VMI to go", lambda: lab.api.vmi("vm") is None)


def run(story, *pods_options):
    """Calls story(lab) with a lab that is up; shows the logs when it fails."""
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    lab = Lab(pods_options)
    failed = True
    try:
        lab.up()
        story(lab)
        for node in NODES:
            assert lab.kill("handler-" + node, signal.SIGTERM) == 0
        failed = False
    finally:
        lab.close(failed)
