#!/usr/bin/env python3
"""Two handlers with real API server, pods agents, relays, launchers and guests. The test plays the controller: it makes
pods and hands moves off, and sees what the nodes make of it."""
import contextlib
import glob
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

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import ferrysite
import heartbeat
from ferrysite import wait_for

BIN = sys.argv[1] if len(sys.argv) > 1 else sys.exit(f"usage: {sys.argv[0]} BIN_DIR")
GUEST = os.path.join(BIN, "../lib/ferry/guest")
VMIS, NODES = "virtualmachineinstances", ("h1", "h2")
BEATS = 20


def program(name):
    return os.path.join(BIN, name)


class Lab:
    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="ferry-handler-")
        os.chmod(self.base, 0o755)
        self.data = os.path.join(self.base, "api")
        self.processes = {}
        self.monitor = None
        self.api = None

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
            self.start("pods-" + node, program("ferry-pods"), "--root", self.root(node), "--node", node, "--launcher",
                       program("ferry-launcher"), "--guest-dir", GUEST, "--relay-gid", "61200")
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
        shutil.rmtree(self.base, ignore_errors=True)

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

    def create_vmi(self):
        return self.api.create(VMIS, {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "vm", "finalizers": ["foregroundDeleteVirtualMachine"], "labels": {"app": "x"}},
            "spec": {"terminationGracePeriodSeconds": 2, "domain": {
                "memory": {"guest": "64Mi"}, "devices": {}, "firmware": {"kernelBoot": {
                    "kernelArgs": f"ws=24 rate=2 hb={BEATS} fill=rand", "container": {
                        "image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}}}}})

    def create_pod(self, name, node, vmi):
        meta = vmi["metadata"]
        pod = self.api.create("pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": name, "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": meta["uid"]},
                "ownerReferences": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                                     "name": meta["name"], "uid": meta["uid"], "controller": True}]},
            "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [{
                "name": "compute", "image": "x", "command": ["ferry-launcher"],
                "args": ["--namespace", "default", "--name", "vm", "--uid", meta["uid"]]}]}})
        wait_for(f"pod {name} to run", lambda: self.api.get("pods", name)["status"].get("phase") == "Running")
        return pod["metadata"]["uid"]

    def hand_off(self, uid, source, source_pod, target, target_pod, config=None):
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


def registers(lab):
    for node in NODES:
        found = wait_for(f"node {node}", lambda: (n := lab.api.get("nodes", node)) and n.get("status", {}).get("conditions")
                         and n)
        [ready] = [c for c in found["status"]["conditions"] if c["type"] == "Ready"]
        assert ready["status"] == "True", ready
        assert found["metadata"]["labels"]["kubernetes.io/hostname"] == node
        assert found["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"
        assert found["metadata"]["annotations"]["kubevirt.io/heartbeat"]
        assert found["status"]["addresses"][0] == {"type": "InternalIP", "address": "127.0.0.1"}
        assert {"cpu", "memory", "pods"} <= set(found["status"]["allocatable"])


def starts(lab):
    vmi = lab.create_vmi()
    uid = lab.create_pod("pod1", "h1", vmi)
    lab.patch({"op": "add", "path": "/metadata/labels/kubevirt.io~1nodeName", "value": "h1"},
              {"op": "add", "path": "/status", "value": {"phase": "Scheduled", "nodeName": "h1"}})
    wait_for("the guest to run", lambda: lab.status().get("phase") == "Running")
    status = lab.status()
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"Ready": "True", "LiveMigratable": "True"}, conditions
    assert (status["migrationMethod"], status["migrationTransport"]) == ("LiveMigration", "Unix")
    assert status["phaseTransitionTimestamps"][-1]["phase"] == "Running"
    check_alive(lab)
    return vmi, uid


def moves(lab, vmi):
    uid = lab.create_pod("pod2", "h2", vmi)
    lab.hand_off("move-1", "h1", "pod1", "h2", "pod2")
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed"), move
    for field in ("targetNodeAddress", "startTimestamp", "endTimestamp", "targetNodeDomainReadyTimestamp", "mode"):
        assert move.get(field), (field, move)
    assert move["targetNodeDomainDetected"] is True
    assert sorted(move["targetDirectMigrationNodePorts"].values()) == [0, 49152], move
    status = lab.status()
    assert status["nodeName"] == "h2" and status["phase"] == "Running" and status["activePods"] == {uid: "h2"}, status
    assert lab.api.vmi("vm")["metadata"]["labels"]["kubevirt.io/nodeName"] == "h2"
    lab.wait_clean()
    check_alive(lab)
    assert lab.launcher("h2", uid)["domain"]["state"] == "running"
    result = json.loads(lab.api.vmi("vm")["metadata"]["annotations"]["ferry.io/progress"])
    assert result["uid"] == "move-1" and result["downtimeMs"] >= 0, result
    lab.delete_pod("pod1")


def answers(lab):
    """The node API: who may call it, figures, the record of a move whose pod is gone, the console."""
    status, text = lab.node_api("h1", "/v1/records/move-1")
    assert status == 200 and all(json.loads(line) for line in text.splitlines()) and text, (status, text)
    assert lab.node_api("h1", "/v1/records/nonesuch")[0] == 404
    assert lab.node_api("h1", "/v1/records/..%2f..%2fpki%2fnode")[0] == 404
    status, text = lab.node_api("h2", "/metrics")
    assert status == 200 and 'ferry_handler_vmis{node="h2",role="owner"} 1' in text and "ferry_relay" in text, text
    status, text = lab.node_api("h2", "/v1/paths")
    assert status == 200 and set(json.loads(text)["paths"]) == {"h1"}, text
    status, text = lab.node_api("h2", "/v1/console/default/vm?tail=2000")
    assert status == 200 and 0 < len(text) <= 2000, (status, text)
    assert lab.node_api("h2", "/healthz", lab.node_context(None))[0] == 401
    assert lab.node_api("h2", "/healthz", lab.node_context("node"))[0] == 403
    assert lab.local_api("h2", "/v1/paths")["paths"].keys() == {"h1"}


def checks(lab, uid):
    """Both ends of a move under way find nothing wrong, handshakes included."""
    for node, role in zip(NODES, ("source", "target")):
        report = lab.local_api(node, "/v1/checks/" + uid)
        assert report["role"] == role and report["ok"], report
        names = [c["name"] for c in report["checks"]]
        assert ("handshake 49152" in names) == (role == "source") and "port map" in names, report
    assert lab.local_api("h1", "/v1/checks/nonesuch")["code"] == 404


def republishes(lab, vmi):
    """The target's relay is restarted before the source begins: the new ports are in the VMI, and the move works."""
    lab.kill("handler-h2")  # the source: nothing begins
    lab.create_pod("pod3", "h1", vmi)
    lab.hand_off("move-2", "h2", "pod2", "h1", "pod3", {"bandwidthPerMigration": "4Mi"})
    ports = lab.wait_move("ports", lambda m: m.get("targetDirectMigrationNodePorts"))["targetDirectMigrationNodePorts"]
    lab.kill("relay-h1")
    lab.start_relay("h1")
    lab.wait_move("new ports", lambda m: m["targetDirectMigrationNodePorts"] != ports)
    lab.start_handler("h2")


def goes_on_without_handlers(lab):
    """kill -9 of both handlers in the middle changes nothing."""
    lab.wait_copying()
    for node in NODES:
        lab.kill("handler-" + node)
    assert not lab.move().get("completed")
    for node in NODES:
        lab.start_handler(node)
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"), 120)
    assert not move.get("failed"), move
    assert lab.status()["nodeName"] == "h1"
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod2")


def cancels(lab, vmi):
    uid = lab.create_pod("pod4", "h2", vmi)
    lab.hand_off("move-3", "h1", "pod3", "h2", "pod4", {"bandwidthPerMigration": "1Mi"})
    lab.wait_copying()
    checks(lab, "move-3")
    lab.patch({"op": "add", "path": "/status/migrationState/abortRequested", "value": True})
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    assert move["failed"] and move["abortStatus"] == "Succeeded" and "Aborted" in move["failureReason"], move
    assert lab.status()["nodeName"] == "h1" and lab.status()["phase"] == "Running"
    lab.wait_clean()
    check_alive(lab)
    assert lab.launcher("h2", uid)["domain"]["state"] == "none"
    lab.delete_pod("pod4")


def cancels_before_the_start(lab, vmi):
    lab.create_pod("pod5", "h2", vmi)
    lab.kill("handler-h2")  # the target: nothing is published
    lab.hand_off("move-4", "h1", "pod3", "h2", "pod5")
    lab.patch({"op": "add", "path": "/status/migrationState/abortRequested", "value": True})
    move = lab.wait_move("the move to end", lambda m: m.get("completed"))
    assert move["failed"] and move["abortStatus"] == "Succeeded", move
    lab.start_handler("h2")
    lab.wait_clean()
    lab.delete_pod("pod5")


def gives_up_a_lost_move(lab, vmi):
    """Somebody else declares the move failed: the source stops it and the guest stays."""
    lab.create_pod("pod6", "h2", vmi)
    lab.hand_off("move-5", "h1", "pod3", "h2", "pod6", {"bandwidthPerMigration": "1Mi"})
    lab.wait_copying()
    lab.patch({"op": "add", "path": "/status/migrationState/completed", "value": True},
              {"op": "add", "path": "/status/migrationState/failed", "value": True})
    pod = lab.api.get("pods", "pod3")["metadata"]["uid"]
    wait_for("the launcher to stop it", lambda: (s := lab.launcher("h1", pod)) and s["migration"]["phase"] == "failed")
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod6")


def recovers(lab, vmi):
    """Both relays die in post-copy, twice; each time it goes on over fresh streams. Then a move without encryption back."""
    target = lab.create_pod("pod7", "h2", vmi)
    lab.relay("h1", "/v1/rate", "PUT", {"bytesPerS": 4 << 20})
    lab.hand_off("move-6", "h1", "pod3", "h2", "pod7", {"allowPostCopy": True, "bandwidthPerMigration": "4Mi",
                                                        "completionTimeoutPerGiB": 6})
    source = lab.api.get("pods", "pod3")["metadata"]["uid"]
    for node, generation in (("h2", 1), ("h1", 2)):
        wait_for("post-copy", lambda: (s := lab.launcher("h1", source)) and s["domain"]["reason"] == "postcopy" and
                 (t := lab.launcher("h2", target)) and t["domain"] == {"state": "running", "reason": "postcopy"})
        lab.kill("relay-" + node)
        lab.start_relay(node)
        lab.relay("h1", "/v1/rate", "PUT", {"bytesPerS": 1 << 20})
        wait_for("fresh ports", lambda: lab.api.vmi("vm")["metadata"]["annotations"].get("ferry.io/ports-generation", "")
                 .startswith("move-6/"))
        wait_for("the move to go on", lambda: (s := lab.launcher("h1", source)) and
                 s["migration"].get("recoveries", 0) >= generation)
    lab.relay("h1", "/v1/rate", "PUT", {"bytesPerS": 0})
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed") and move["mode"] == "PostCopy", move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod3")
    lab.create_pod("pod3", "h1", vmi)
    lab.hand_off("move-7", "h2", "pod7", "h1", "pod3", {"disableTLS": True})
    tls = wait_for("the relay to know it", lambda: (t := lab.relay("h1", "/v1/targets")["targets"]) and t[0])["tls"]
    assert tls == "plain", tls
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed"), move
    lab.wait_clean()
    check_alive(lab)
    lab.delete_pod("pod7")


def ends(lab):
    status, _ = lab.api.call("DELETE", lab.api.path(VMIS, "vm"))
    assert status in (200, 202)
    wait_for("the guest to be shut down", lambda: lab.status().get("phase") == "Succeeded")
    pod = wait_for("the pod to be over", lambda: (p := lab.api.get("pods", "pod3"))["status"]["phase"] == "Succeeded" and p)
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    lab.patch({"op": "remove", "path": "/metadata/finalizers"})
    wait_for("the VMI to go", lambda: lab.api.vmi("vm") is None)


def main():
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    lab = Lab()
    failed = True
    try:
        lab.up()
        registers(lab)
        vmi, _ = starts(lab)
        moves(lab, vmi)
        answers(lab)
        republishes(lab, vmi)
        goes_on_without_handlers(lab)
        cancels(lab, vmi)
        cancels_before_the_start(lab, vmi)
        gives_up_a_lost_move(lab, vmi)
        if "--recovery" in sys.argv:
            recovers(lab, vmi)
        ends(lab)
        for node in NODES:
            assert lab.kill("handler-" + node, signal.SIGTERM) == 0
        failed = False
    finally:
        lab.close(failed)


main()
