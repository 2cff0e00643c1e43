"""Two nodes by hand: launchers in real sandboxes, joined by relays, driven over their control sockets.

No API server, controller or handler is involved: the tests below play the handler's part. A node is a
network namespace with a directory of its own; a pod is the sandbox that ferry-pods makes (testpod).
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import complaints  # noqa: E402
import heartbeat  # noqa: E402
import recorder  # noqa: E402
from runners import Qmp, Watch, overlap  # noqa: E402,F401
from waiting import wait_for, wait_some  # noqa: E402,F401

VM_USER, RELAY_USER = 61201, 61200
KEEP = os.environ.get("FERRY_TEST_KEEP")
RECORD = os.environ.get("FERRY_RECORD")  # a directory for what two libvirts say to each other (recorder.py)
ACCELERATOR = os.environ.get("FERRY_ACCELERATOR", "tcg")  # as scripts/run-tests found it


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = heartbeat.connect(self.path)
        self.sock.settimeout(self.timeout)


def call(socket_path, method, path, body=None):
    """(status, decoded body) of a control call."""
    connection = UnixHTTP(socket_path)
    with contextlib.closing(connection):
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        data = answer.read()
    try:
        return answer.status, json.loads(data)
    except ValueError:
        return answer.status, data.decode()


def vmi(name, uid, memory="64Mi", args="ws=16 rate=4 hb=50 fill=rand", grace=10):
    return {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"namespace": "default", "name": name, "uid": uid},
        "spec": {
            "terminationGracePeriodSeconds": grace,
            "domain": {
                "memory": {"guest": memory}, "devices": {},
                "firmware": {"kernelBoot": {"kernelArgs": args, "container": {
                    "image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}},
            },
        },
    }


class Pod:
    """A launcher in its sandbox on a node."""

    def __init__(self, node, name, owner, images=None):
        """`images`: volume name -> content, or size, of a disk that the guest has."""
        self.node = node
        self.uid = str(uuid.uuid4())
        self.dir = os.path.join(node.root, "run/ferry/pods", self.uid)
        self.control = os.path.join(self.dir, "launcher.sock")
        meta = owner["metadata"]
        node.lab.testpod("start", node.root, node.lab.bin, node.lab.guest, self.uid, name,
                         "--namespace", meta["namespace"], "--name", meta["name"], "--uid", meta["uid"],
                         "--disk-dir", "/var/run/ferry-state/disks", "--accelerator", ACCELERATOR)
        for volume, content in (images or {}).items():
            self.make_image(volume, content)
        info = json.load(open(os.path.join(self.dir, "sandbox.json")))
        self.pid1 = info["child-pid"]
        node.lab.pods.append(self)
        self.wait_ready()

    def image(self, volume):
        """Where its image is on the host."""
        return os.path.join(self.dir, "state/disks", volume, "disk.img")

    def make_image(self, volume, content):
        path = self.image(volume)
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as f:
            if isinstance(content, int):
                f.truncate(content)
            else:
                f.write(content)
        for p in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
            os.chown(p, VM_USER, VM_USER)

    def wait_ready(self, seconds=30):
        wait_for("the launcher's status", lambda: self.call("GET", "/v1/status")[0] == 200, seconds)

    def call(self, method, path, body=None):
        return call(self.control, method, path, body)

    def ok(self, method, path, body=None):
        status, answer = self.call(method, path, body)
        if status != 200:
            raise AssertionError(f"{method} {path}: {status} {answer}")
        return answer

    def status(self):
        """The status; waits while libvirtd is away."""
        return wait_for("a status", lambda: (lambda s, a: a if s == 200 else None)(*self.call("GET", "/v1/status")))

    def domain(self):
        return self.status()["domain"]["state"]

    def migration(self):
        return self.status().get("migration", {})

    def qmp(self):
        """A connection to a monitor of its QEMU that the launcher does not use."""
        return Qmp(os.path.join(self.dir, "state/qmp.sock"))

    def children(self, name):
        """Host pids of processes of that name in the sandbox, not counting threads."""
        found = []
        for pid in os.listdir("/proc"):
            try:
                if pid.isdigit() and os.readlink(f"/proc/{pid}/ns/pid") == self.pid_ns and \
                        os.path.basename(open(f"/proc/{pid}/cmdline").read().split("\0")[0]).startswith(name):
                    found.append(int(pid))
            except OSError:
                pass
        return found

    @property
    def pid_ns(self):
        return os.readlink(f"/proc/{self.pid1}/ns/pid")

    def kill(self, name):
        """SIGKILL for the one process of that name in the sandbox."""
        # libvirtd asks QEMUs of its own what they can do.
        wait_for(f"one process {name}", lambda: len(self.children(name)) == 1)
        pids = self.children(name)
        os.kill(pids[0], signal.SIGKILL)
        wait_for(f"the end of {name} {pids[0]}", lambda: pids[0] not in self.children(name))

    def alive(self):
        try:
            return open(f"/proc/{self.pid1}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def end(self, grace=10):
        """Asks the launcher to stop; waits for the sandbox to be over, removes it."""
        self.ok("DELETE", "/v1/vm", {"graceS": grace})
        wait_for("the end of the sandbox", lambda: not self.alive(), grace + 20)
        code = open(os.path.join(self.dir, "exit")).read().strip()
        if code != "0":
            raise AssertionError(f"the launcher ended with {code}")
        self.remove()

    def remove(self):
        self.node.lab.pods.remove(self)
        if not KEEP:
            self.node.lab.testpod("remove", self.node.root, self.uid)

    def on_host(self, path):
        """A path in the pod, as the host sees it."""
        for inside, outside in (("/var/run/kubevirt/migrationproxy/", "m/"), ("/var/run/ferry-libvirt/", "libvirt/")):
            if path.startswith(inside):
                return os.path.join(self.dir, outside, path[len(inside):])
        raise AssertionError(f"unexpected path {path}")

    def record(self, uid):
        """The flight record of a migration."""
        connection = UnixHTTP(self.control)
        with contextlib.closing(connection):
            connection.request("GET", f"/v1/records/{uid}")
            return [json.loads(line) for line in connection.getresponse().read().splitlines()]

    def decisions(self, uid):
        return [r["action"] for r in self.record(uid) if r["type"] == "decision"]

    def left_in_m(self):
        return os.listdir(os.path.join(self.dir, "m"))

    def log(self, lines=40):
        return "".join(open(os.path.join(self.dir, "log"), errors="replace").readlines()[-lines:])


class Node:
    """A network namespace and a directory."""

    def __init__(self, lab, name, number):
        self.lab = lab
        self.name = name
        self.root = os.path.join(lab.root, name)
        self.netns = f"{lab.tag}-{name}"
        self.address = f"10.99.0.{number}"
        os.makedirs(os.path.join(self.root, "run/ferry/pods"))
        os.chmod(self.root, 0o711)
        self.relay = None
        lab.ip("netns", "add", self.netns)
        lab.ip("-n", self.netns, "link", "set", "lo", "up")

    def shape(self, mbit):
        """Limits what this node sends."""
        verb = "replace" if mbit else "del"
        extra = ["tbf", "rate", f"{mbit}mbit", "burst", "64k", "latency", "50ms"] if mbit else []
        subprocess.run(["tc", "-n", self.netns, "qdisc", verb, "dev", "eth0", "root"] + extra, check=bool(mbit),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_relay(self):
        pki = os.path.join(self.root, "pki")
        os.mkdir(pki, 0o711)
        for name, owner in (("ca.crt", 0), (f"{self.name}.crt", 0), (f"{self.name}.key", RELAY_USER)):
            shutil.copy(os.path.join(self.lab.root, "pki", name), pki)
            os.chown(os.path.join(pki, name), owner, owner)
        self.relay_socket = os.path.join(self.root, "run/ferry/relay.sock")
        self.run_relay()

    def restart_relay(self):
        """SIGKILL, and a new one."""
        self.kill_relay()
        self.run_relay()

    def kill_relay(self):
        """Also one that has taken over from the one that was started."""
        with contextlib.suppress(OSError):
            os.kill(self.relay_ok("GET", "/healthz")["pid"], signal.SIGKILL)
        self.relay.kill()
        self.relay.wait()

    def begin_upgrade(self):
        """SIGUSR2; the process that is to be replaced."""
        pid = self.relay_ok("GET", "/healthz")["pid"]
        os.kill(pid, signal.SIGUSR2)
        return pid

    def wait_upgrade(self, old):
        wait_for("the successor of the relay", lambda: self.relay_ok("GET", "/healthz")["pid"] != old, 90)

    def run_relay(self):
        pki = os.path.join(self.root, "pki")
        with open(os.path.join(self.root, "relay.log"), "ab") as log:
            self.relay = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.netns}", os.path.join(self.lab.bin, "ferry-relay"), "serve",
                 "--node", self.name, "--control", f"unix:{self.relay_socket}", "--ca", f"{pki}/ca.crt",
                 "--cert", f"{pki}/{self.name}.crt", "--key", f"{pki}/{self.name}.key"], stdout=log, stderr=log)
        wait_for("the relay", self.relay_answers)

    def relay_answers(self):
        try:
            return call(self.relay_socket, "GET", "/healthz")[0] == 200
        except OSError:
            return False

    def relay_ok(self, method, path, body=None):
        status, answer = call(self.relay_socket, method, path, body)
        if status != 200:
            raise AssertionError(f"relay of {self.name}: {method} {path}: {status} {answer}")
        return answer

    def listeners(self):
        """What the relay still serves."""
        return [self.relay_ok("GET", f"/v1/{kind}") for kind in ("targets", "sources")], \
            self.relay_ok("GET", "/v1/streams")["streams"]


class Move:
    """What the two handlers do around one migration, up to its start."""

    def __init__(self, lab, guest, source, target, options=None, tls="raw", make_disks=False):
        self.tls = tls
        self.uid = str(uuid.uuid4())
        self.key = guest["metadata"]["uid"]
        self.source, self.target = source, target
        self.guest = guest
        lab.moves.append(self)
        body = {"vmi": guest, "options": options or {}}
        if make_disks:
            body["sourceDisks"] = source.ok("POST", "/v1/disks", {"vmi": guest})["disks"]
        self.sockets = target.ok("PUT", f"/v1/target/{self.uid}", body)
        assert self.sockets["postCopy"], "userfaultfd is not accessible in the pod"
        self.connect(1)
        source.ok("PUT", f"/v1/migrations/{self.uid}", {
            "vmi": guest, "options": options or {}, "targetDisks": self.sockets.get("disks", [])})

    def connect(self, generation):
        """Sockets in the source pod that lead to those of the target pod."""
        channels = {0: "controlSocket", 49152: "memorySocket", 49153: "diskSocket"}
        answer = self.target.node.relay_ok("PUT", f"/v1/targets/{self.key}", {
            "move": self.uid, "generation": generation, "sourceNode": self.source.node.name,
            "bind": self.target.node.address, "tls": self.tls, "channels": [
                {"logical": n, "unix": self.leads_to(n, self.target.on_host(self.sockets[name]), generation)}
                for n, name in channels.items() if name in self.sockets]})
        self.source.node.relay_ok("PUT", f"/v1/sources/{self.key}", {
            "move": self.uid, "generation": generation, "targetNode": self.target.node.name,
            "address": answer["address"], "ports": answer["ports"], "dir": os.path.join(self.source.dir, "m"),
            "owner": VM_USER, "tls": self.tls})

    def leads_to(self, channel, path, generation):
        """Where the target's relay leads a channel to."""
        if not RECORD or channel != 0:
            return path
        between = os.path.join(os.path.dirname(path), f"record-{generation}.sock")
        test = os.path.basename(sys.argv[0]).removesuffix(".py")
        to = os.path.join(RECORD, test, f"{self.uid}-{generation}")
        recorder.Recorder(between, path, to, RELAY_USER)
        shutil.copy(os.path.join(self.target.dir, "state/devices.json.agreed"), os.path.join(to, "agreed"))
        return between

    def phase(self, pod):
        return pod.migration()["phase"]

    def wait_end(self, seconds=120):
        """Phases in which source and target end."""
        return tuple(wait_for(f"the end of the migration at the {role}",
                              lambda p=pod: self.phase(p) if self.phase(p) in ("succeeded", "failed") else None,
                              seconds)
                     for role, pod in (("source", self.source), ("target", self.target)))

    def wait_end_at_source(self, seconds=120):
        """Likewise; a target that was never reached stays prepared."""
        ends = ("succeeded", "failed")
        source = wait_for("the end of the migration at the source",
                          lambda: self.phase(self.source) if self.phase(self.source) in ends else None, seconds)
        if self.phase(self.target) != "prepared":
            return self.wait_end(seconds)
        return source, "prepared"

    def tell(self):
        """What the handlers tell the source of the target, once; what that was, or None."""
        theirs = self.target.migration()
        word = {"succeeded": "active", "failed": "never-ran" if theirs.get("neverRan") else None}.get(theirs["phase"])
        if word:
            self.source.call("PUT", f"/v1/migrations/{self.uid}/target-state", {"state": word})
        return word

    def settle(self, seconds=60):
        """Both ends, while the source is told of the target as the handlers would; phases as of wait_end()."""
        wait_for("the end of the move", lambda: self.phase(self.source) in ("succeeded", "failed") or (self.tell(), False)[1],
                 seconds, 0.1)
        return self.wait_end_at_source(seconds)

    def wait_bytes(self, least=1, seconds=60):
        """Waits until memory flows."""
        wait_for("memory to flow", lambda: self.source.migration().get("sample", {}).get("processedBytes", 0) >= least,
                 seconds)

    def close(self):
        self.source.node.relay_ok("DELETE", f"/v1/sources/{self.key}")
        self.target.node.relay_ok("DELETE", f"/v1/targets/{self.key}")


class Lab:
    def __init__(self, bin_dir):
        self.bin = os.path.abspath(bin_dir)
        self.build = os.path.dirname(self.bin)
        self.guest = os.path.join(self.build, "lib/ferry/guest")
        self.root = tempfile.mkdtemp(prefix="ferry-vm-")
        os.chmod(self.root, 0o711)
        self.tag = "fvm" + os.path.basename(self.root)[-6:].replace("_", "x")
        self.pods, self.moves, self.nodes = [], [], []
        self.monitor = heartbeat.Monitor(self.root)

    def set_up(self):
        for number, name in enumerate(("nodea", "nodeb"), 1):
            self.nodes.append(Node(self, name, number))
        self.lay_cable()
        for node in self.nodes:
            self.ip("-n", node.netns, "addr", "add", f"{node.address}/24", "dev", "eth0")
            self.ip("-n", node.netns, "link", "set", "eth0", "up")
        pki = os.path.join(self.root, "pki")
        os.mkdir(pki, 0o700)
        for args in (["init"], ["node", "nodea"], ["node", "nodeb"]):
            subprocess.run([os.path.join(self.bin, "ferry-relay"), "pki"] + args + ["--dir", pki], check=True,
                           stdout=subprocess.DEVNULL)
        for node in self.nodes:
            node.start_relay()

    def lay_cable(self):
        """An interface eth0 in both nodes."""
        a, b = self.nodes
        self.ip("-n", a.netns, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b.netns)

    @staticmethod
    def ip(*args):
        subprocess.run(("ip",) + args, check=True)

    def testpod(self, *args):
        tool = os.path.join(self.build, "tests/vm/testpod")
        result = subprocess.run((tool,) + args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            raise AssertionError(f"testpod {args[0]}: {result.stdout.strip()}")

    def share_cache(self, pod):
        """Later pods start faster with the capability cache of this one."""
        for node in self.nodes:
            if node is pod.node:
                self.testpod("harvest", node.root, pod.uid)
            else:
                shutil.copytree(os.path.join(pod.node.root, "var"), os.path.join(node.root, "var"),
                                dirs_exist_ok=True)

    def close(self, failed):
        self.monitor.stop()
        if failed:
            self.explain()
        for pod in list(self.pods):
            if pod.alive():
                os.kill(pod.pid1, signal.SIGKILL)
                wait_for("the end of a sandbox", lambda p=pod: not p.alive())
        for node in self.nodes:
            if node.relay:
                node.kill_relay()
            subprocess.run(["ip", "netns", "del", node.netns], check=False)
        if not KEEP:
            complaints.remove(self.root, failed)

    def explain(self):
        for pod in self.pods:
            print(f"--- log of pod {pod.uid} on {pod.node.name}")
            print(pod.log())
            try:
                print(pod.call("GET", "/v1/status"))
            except OSError as e:
                print(f"no status: {e}")
        for node in self.nodes:
            path = os.path.join(node.root, "relay.log")
            if os.path.exists(path):
                print(f"--- log of the relay on {node.name}\n{open(path, errors='replace').read()[-4000:]}")

    def running(self):
        """Pods whose domain is active."""
        return [p for p in self.pods if p.domain() in ("running", "paused")]

    def check_guest(self, pod):
        """Exactly one domain runs, on `pod`; its memory is whole and its heartbeat unbroken."""
        self.monitor.wait_beats(3, 30)
        active = self.running()
        if active != [pod]:
            raise AssertionError(f"active on {[p.node.name for p in active]}, wanted {pod.node.name}")
        pages, bad = self.monitor.verify()
        if bad or self.monitor.bad_pages():
            raise AssertionError(f"{bad} of {pages} pages are bad")
        if self.monitor.broken_sequence():
            raise AssertionError(f"the heartbeat is broken: {self.monitor.broken_sequence()[:5]}")
        if not re.search(re.escape(pod.uid), self.monitor.current_log()):
            raise AssertionError("the heartbeat comes from another pod")
        return pages


def new_guest(**kwargs):
    return vmi("vm-" + uuid.uuid4().hex[:6], str(uuid.uuid4()), **kwargs)


def start(made, node=0, **kwargs):
    """A running guest: (VMI, pod)."""
    return start_guest(made, new_guest(**kwargs), node=node)


def start_guest(made, guest, images=None, node=0):
    pod = Pod(made.nodes[node], "virt-launcher-1", guest, images)
    answer = pod.ok("PUT", "/v1/vm", {"vmi": guest})
    assert answer["domain"]["state"] == "running", answer
    made.share_cache(pod)
    made.monitor.wait_beats(3)
    return guest, pod


def move(made, guest, source, target_node, options=None):
    """Moves to a fresh pod on that node; the pod."""
    target = Pod(made.nodes[target_node], "virt-launcher-2", guest)
    mark = made.monitor.mark()
    m = Move(made, guest, source, target, options)
    phases = m.wait_end()
    assert phases == ("succeeded", "succeeded"), f"{phases}: {source.migration()}"
    pages = made.check_guest(target)
    status = source.status()
    print(f"moved to {target.node.name}: downtime {status['migration'].get('downtimeMs')} ms, "
          f"worst gap {made.monitor.worst_gap(mark) * 1000:.0f} ms, {pages} pages verified")
    assert status["domain"] == {"state": "shutoff", "reason": "migrated"}, status
    assert status["migration"]["downtimeMs"] >= 0, status
    target.ok("POST", f"/v1/migrations/{m.uid}/finalize")
    m.close()
    assert source.left_in_m() == [] and target.left_in_m() == [], (source.left_in_m(), target.left_in_m())
    return target, m


@contextlib.contextmanager
def lab(bin_dir):
    made = Lab(bin_dir)
    failed = True
    try:
        made.set_up()
        yield made
        failed = False
    finally:
        made.close(failed)
