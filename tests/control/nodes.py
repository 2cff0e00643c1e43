"""A control plane without nodes: ferry-apiserver and ferry-controller for real, and a test agent that plays the
node side. The agent writes what pods agent and handlers write (docs/contracts/fields.md), with the
certificates of the nodes, and can be told to stop at any step."""
import contextlib
import datetime
import http.client
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

import complaints
import ferrysite
from ferrysite import wait_for

VMIS = "virtualmachineinstances"
MOVES = "virtualmachineinstancemigrations"


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Plane:
    def __init__(self, bin_dir, nodes=("a", "b"), env=None):
        self.bin = os.path.abspath(bin_dir)
        self.env = {**os.environ, **(env or {})}  # of the programs
        self.base = tempfile.mkdtemp(prefix="ferry-control-")
        self.data = os.path.join(self.base, "api")
        self.port = ferrysite.free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.log = open(os.path.join(self.base, "log"), "ab")
        self.apiserver = self.controller = None
        self.names = list(nodes)
        self.agent = None

    # -- life --------------------------------------------------------------------------------

    def __enter__(self):
        try:
            self.start_apiserver()
            self.kubeconfig = os.path.join(self.data, "admin.kubeconfig")
            wait_for("the API server", lambda: os.path.exists(self.kubeconfig))
            self.api = ferrysite.Api(self.kubeconfig)
            wait_for("the API server to answer", self.answers)
            self.config = os.path.join(self.base, "controller.kubeconfig")
            self.pki("controller", self.config)
            self.agent = Agent(self)
            for name in self.names:
                self.agent.join(name)
            self.agent.start()
            self.start_controller()
        except BaseException:
            self.close(True)
            raise
        return self

    def __exit__(self, kind, value, trace):
        problem = kind is None and self.problem_at_end()
        self.close(kind is not None or problem)
        assert not problem, problem

    def problem_at_end(self):
        """What a test that went well may still have left: a troubled agent, a controller that does not end cleanly."""
        self.agent.stop()
        if self.agent.errors:
            return f"agent: {self.agent.errors}"
        code = self.stop_controller() if self.controller.poll() is None else self.controller.returncode
        # -SIGTERM: it was started a moment ago and had not blocked the signal.
        return code not in (0, -signal.SIGTERM) and f"ferry-controller ended with {code}"

    def close(self, failed):
        if self.agent:
            self.agent.stop()
        for process in (self.controller, self.apiserver):
            if process:
                process.kill()
                process.wait()
        if failed:
            self.log.flush()
            with open(self.log.name, errors="replace") as f:
                print("".join(f.readlines()[-120:]))
        self.log.close()
        complaints.remove(self.base, failed)

    def spawn(self, name, *args):
        return subprocess.Popen([os.path.join(self.bin, name), *args], stdin=subprocess.DEVNULL, stdout=self.log,
                                stderr=self.log, env=self.env)

    def pki(self, *what_and_out):
        *what, out = what_and_out
        subprocess.run([os.path.join(self.bin, "ferry-apiserver"), "pki", *what, "--data", self.data, "--server",
                        self.server, "--out", out], check=True, stdout=self.log, stderr=self.log)

    def start_apiserver(self):
        self.apiserver = self.spawn("ferry-apiserver", "serve", "--data", self.data, "--listen",
                                    f"127.0.0.1:{self.port}")

    def answers(self):
        with contextlib.suppress(OSError):
            return self.api.call("GET", "/api/v1/nodes")[0] == 200
        return False

    def start_controller(self, *more):
        self.controller = self.spawn("ferry-controller", "--kubeconfig", self.config, "--embedded", *more)

    def kill_controller(self):
        self.controller.kill()
        self.controller.wait()

    def stop_controller(self):
        """Asks it to end; its exit code."""
        self.controller.send_signal(signal.SIGTERM)
        return self.controller.wait(20)

    # -- objects -----------------------------------------------------------------------------

    def create_vm(self, name, **spec):
        self.api.create(VMIS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                               "metadata": {"name": name},
                               "spec": {"terminationGracePeriodSeconds": 0, "domain": {"memory": {"guest": "64Mi"}},
                                        **spec}})

    def run_vm(self, name, **spec):
        self.create_vm(name, **spec)
        return wait_for(f"{name} to run", lambda: (v := self.api.vmi(name)) and phase(v) == "Running" and v, 30)

    def create_move(self, name, vm, **spec):
        self.api.create(MOVES, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                                "metadata": {"name": name}, "spec": {"vmiName": vm, **spec}})

    def wait_move(self, name, want, seconds=60):
        """Waits for a phase; fails when another final one comes."""
        def reached():
            move = self.api.migration(name)
            assert move, f"migration {name} is gone"
            if phase(move) != want and phase(move) in ("Succeeded", "Failed"):
                raise AssertionError(f"{name} is {phase(move)}, not {want}: {json.dumps(move['status'])}")
            return phase(move) == want and move
        return wait_for(f"{name} to be {want}; it is {phase(self.api.migration(name))}", reached, seconds)

    def delete(self, plural, name):
        status, answer = self.api.call("DELETE", self.api.path(plural, name))
        assert status == 200, answer

    def wait_gone(self, plural, name, seconds=30):
        wait_for(f"{plural} {name} to go: {self.api.get(plural, name)}", lambda: not self.api.get(plural, name), seconds)

    def pods_of(self, vm):
        return [p for p in self.api.list("pods") if p["metadata"]["labels"].get("vm.kubevirt.io/name") == vm]

    def events(self, name):
        status, body = self.api.call("GET", "/api/v1/namespaces/default/events")
        assert status == 200
        return [e["reason"] for e in body["items"] if e["involvedObject"].get("name") == name]

    def kubectl(self, *args):
        env = dict(os.environ, KUBECONFIG=self.kubeconfig, HOME=self.base)
        return subprocess.run(["kubectl", *args], env=env, text=True, timeout=60, check=True, stdout=subprocess.PIPE).stdout


def equal(got, want):
    assert got == want, f"got {got}, expected {want}"


def check_stayed(p, vm, source):
    """A VM that was not moved: on its node, with its one pod."""
    wait_for("the target pod to go", lambda: len(p.pods_of(vm)) == 1)
    vmi = p.api.vmi(vm)
    equal((phase(vmi), vmi["status"]["nodeName"]), ("Running", source))
    equal(p.pods_of(vm)[0]["spec"]["nodeName"], source)
    return vmi


def phase(obj):
    return (obj or {}).get("status", {}).get("phase", "")


class Agent(threading.Thread):
    """All nodes in one thread. `hold` names the steps that are not taken: pods, run, prepare, start, finish, stop,
    abort; `beats` are the nodes that report."""

    def __init__(self, plane):
        super().__init__(daemon=True)
        self.plane = plane
        self.hold = set()
        self.apis = {}
        self.beats = set()
        self.ended = threading.Event()
        self.errors = []

    def join(self, *args):
        """join(NAME): a node joins the site; join(): the thread's own."""
        if not args:
            return super().join()
        name = args[0]
        out = os.path.join(self.plane.base, "node-" + name)
        self.plane.pki("node", name, out)
        api = ferrysite.Api(os.path.join(out, "node.kubeconfig"))
        api.create("nodes", {"apiVersion": "v1", "kind": "Node",
                             "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubevirt.io/schedulable": "true"},
                                          "annotations": {"kubevirt.io/heartbeat": now()}}})
        self.patch(api, api.path("nodes", name) + "/status", {"status": {
            "allocatable": {"cpu": "8", "memory": "4Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now()}]}})
        self.apis[name] = api
        self.beats.add(name)

    def stop(self):
        self.ended.set()
        if self.is_alive():
            super().join()

    @staticmethod
    def call(api, method, path, *more):
        """The answer; an object that went (404) or changed in between (409) is seen in the next round."""
        status, answer = api.call(method, path, *more)
        if status >= 500:
            raise OSError(f"the API server answered {status}")  # on its way down
        assert status in (200, 404, 409), f"{method} {path}: {status} {answer}"
        return answer

    def patch(self, api, path, merge):
        self.call(api, "PATCH", path, merge, "application/merge-patch+json")

    def list(self, plural):
        api = self.plane.api
        return self.call(api, "GET", api.path(plural))["items"]

    def run(self):
        last = 0.0
        while not self.ended.wait(0.03):
            try:
                if time.monotonic() - last > 2:
                    last = time.monotonic()
                    self.report()
                for pod in self.list("pods"):
                    self.pod(pod)
                for vmi in self.list(VMIS):
                    self.vmi(vmi)
            except (OSError, http.client.HTTPException, ValueError):
                continue  # the API server is away: nodes wait
            except Exception as e:  # pylint: disable=broad-except
                self.errors.append(e)
                print(f"agent: {e}", flush=True)
                return

    def report(self):
        for name in sorted(self.beats):
            api = self.apis[name]
            self.patch(api, api.path("nodes", name), {"metadata": {"annotations": {"kubevirt.io/heartbeat": now()}}})

    # -- pods agent --------------------------------------------------------------------------

    def pod(self, pod):
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        api = self.apis.get(node)
        if not api:
            return
        path = api.path("pods", name)
        if "deletionTimestamp" in pod["metadata"]:
            self.call(api, "DELETE", path, {"gracePeriodSeconds": 0})
        elif phase(pod) in ("", "Pending") and "pods" not in self.hold:
            self.patch(api, path + "/status", {"status": {"phase": "Running", "containerStatuses": [
                {"name": "compute", "ready": True, "state": {"running": {"startedAt": now()}}}]}})

    # -- handlers ----------------------------------------------------------------------------

    def vmi(self, vmi):
        api = self.apis.get(vmi.get("status", {}).get("nodeName"))
        if not api:
            return
        path = api.path(VMIS, vmi["metadata"]["name"])
        if "deletionTimestamp" in vmi["metadata"]:
            if phase(vmi) in ("Scheduled", "Running") and "stop" not in self.hold:
                self.patch(api, path, {"status": {"phase": "Succeeded"}})
        elif phase(vmi) == "Scheduled" and "run" not in self.hold:
            others = [c for c in vmi["status"].get("conditions", []) if c["type"] != "LiveMigratable"]
            times = vmi["status"].get("phaseTransitionTimestamps", [])
            times.append({"phase": "Running", "phaseTransitionTimestamp": now()})
            self.patch(api, path, {"status": {"phase": "Running", "phaseTransitionTimestamps": times,
                                              "migrationMethod": "LiveMigration",
                                              "migrationTransport": "Unix",
                                              "conditions": [*others, {"type": "LiveMigratable", "status": "True"}]}})
        state = vmi["status"].get("migrationState", {})
        if state.get("migrationUid") and not state.get("completed"):
            self.move(vmi, state, path)

    def move(self, vmi, state, path):
        source, target = self.apis[state["sourceNode"]], self.apis[state["targetNode"]]
        if state.get("abortRequested"):
            if "abort" not in self.hold:
                self.patch(source, path, {"status": {"migrationState": {
                    "abortStatus": "Succeeded", "failed": True, "completed": True, "endTimestamp": now(),
                    "failureReason": "Aborted: operation aborted"}}})
        elif not state.get("targetNodeAddress"):
            if "prepare" not in self.hold:
                self.patch(target, path, {"status": {"migrationState": {
                    "targetNodeAddress": "127.0.0.1", "targetDirectMigrationNodePorts": {"40001": 0, "40002": 49152}}}})
        elif not state.get("startTimestamp"):
            if "start" not in self.hold:
                progress = json.dumps({"uid": state["migrationUid"], "processedBytes": 4096, "downtimeMs": 12})
                self.patch(source, path, {"metadata": {"annotations": {"ferry.io/progress": progress}},
                                          "status": {"migrationState": {"startTimestamp": now(), "mode": "PreCopy"}}})
        elif "finish" not in self.hold:
            self.patch(target, path, {
                "metadata": {"labels": {"kubevirt.io/nodeName": state["targetNode"],
                                        "kubevirt.io/migrationTargetNodeName": None}},
                "status": {"nodeName": state["targetNode"], "migrationState": {
                    "targetNodeDomainDetected": True, "targetNodeDomainReadyTimestamp": now(), "completed": True,
                    "endTimestamp": now()}}})
