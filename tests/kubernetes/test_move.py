"""A real guest moves on Kubernetes: kube-apiserver and kube-scheduler, and of Ferry everything but its API server.
ferry-pods runs the pods in place of kubelets. The relays have a CA of their own, as on any cluster whose CA is not Ferry's."""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess

import cases
import heartbeat
from cases import MIGRATIONS, NODES, PODS, VMIS, engine
from engine import wait_for

NAMES = ("k1", "k2")
BEATS = 20


class Lab:
    def __init__(self, bin_dir):
        self.bin = os.path.abspath(bin_dir)
        self.engine = engine.start("kubernetes", scheduler=True)
        os.chmod(self.engine.dir, 0o711)  # the relays and guests run as users of their own
        self.monitor = None

    def program(self, name):
        return os.path.join(self.bin, name)

    def root(self, node):
        return os.path.join(self.engine.dir, "node-" + node)

    def up(self):
        e = self.engine
        for node in NAMES:
            state = os.path.join(self.root(node), "var/lib/ferry")
            subprocess.run([self.program("ferry-apiserver"), "pki", "node", node, "--data", f"{e.dir}/relay-ca", "--server",
                            e.url, "--out", state, "--relay-owner", "61200:61200"], check=True, stdout=subprocess.DEVNULL)
            shutil.copy(e.kubeconfig("node", node), os.path.join(state, "node.kubeconfig"))
            root = ["--root", self.root(node), "--node", node]
            e.spawn(f"relay-{node}", self.program("ferry-relay"), "serve", *root, "--user", "61200:61200")
            e.spawn(f"pods-{node}", self.program("ferry-pods"), *root, "--launcher", self.program("ferry-launcher"),
                    "--guest-dir", os.path.join(self.bin, "../lib/ferry/guest"), "--relay-gid", "61200")
            e.spawn(f"handler-{node}", self.program("ferry-handler"), *root, "--node-address", "127.0.0.1",
                    "--migration-interface", "nonesuch0")
        e.spawn("controller", self.program("ferry-controller"), "--kubeconfig", e.kubeconfig("controller"))
        for node in NAMES:
            wait_for(f"node {node} to register", lambda n=node: self.ready(n), 60)
            e.client().patch(f"{NODES}/{node}", {"spec": {"taints": None}})
        self.monitor = heartbeat.Monitor(e.dir)

    def ready(self, node):
        conditions = (self.engine.client().get(f"{NODES}/{node}") or {}).get("status", {}).get("conditions") or []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def close(self, failed):
        if self.monitor:
            self.monitor.stop()
        for name in [n for n in self.engine.processes if n.startswith("pods-")]:
            self.engine.end(name)  # so that nobody starts again what ends here
        for path in glob.glob(os.path.join(self.engine.dir, "node-*/run/ferry/pods/*/sandbox.json")):
            with contextlib.suppress(OSError, ValueError):
                with open(path) as f:
                    info = json.load(f)
                if os.stat(f"/proc/{info['child-pid']}/ns/pid").st_ino == info["pid-namespace"]:
                    os.kill(info["child-pid"], signal.SIGKILL)
        if failed:
            for path in glob.glob(os.path.join(self.engine.dir, "node-*/run/ferry/pods/*/log")):
                shutil.copy(path, os.path.join(self.engine.dir, path.split("/")[-2] + ".log"))
        self.engine.close(failed)

    # -- what is there

    def ferry(self, *args):
        env = dict(os.environ, KUBECONFIG=self.engine.kubeconfig(), HOME=self.engine.dir)
        done = subprocess.run([self.program("ferry"), *args], env=env, text=True, stdin=subprocess.DEVNULL, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, f"ferry {' '.join(args)}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def node_of(self, vm):
        return self.engine.client().get(f"{VMIS}/{vm}")["status"]["nodeName"]

    def check_whole(self, mark, vm, node):
        """The guest lives on `node`, has lost no heartbeat and no page, and nothing of the move is left."""
        self.monitor.wait_beats(BEATS, 30)
        assert f"/node-{node}/" in self.monitor.current_log(), self.monitor.current_log()
        assert self.node_of(vm) == node
        assert self.monitor.broken_sequence(mark) == [], self.monitor.broken_sequence(mark)
        pages, bad = self.monitor.verify()
        assert pages > 0 and bad == 0, (pages, bad)
        wait_for("one pod", lambda: len(self.engine.client().list(PODS)) == 1, 60)
        left = glob.glob(os.path.join(self.engine.dir, "node-*/run/ferry/pods/*/m/*"))
        assert not left, left


def test_there_and_back(bin_dir):
    engine.need("kubernetes", scheduler=True)
    lab = Lab(bin_dir)
    failed = True
    try:
        lab.up()
        admin, monitor = lab.engine.client(), lab.monitor
        lab.ferry("vm", "create", "vm", "--memory", "96Mi", "--dirty-rate", "2", "--working-set", "24", "--heartbeat",
                  str(BEATS), "--wait")
        monitor.wait_beats(5, 60)
        source = lab.node_of("vm")
        target = NAMES[1 - NAMES.index(source)]
        mark = monitor.mark()

        # By Ferry's own command ...
        out = lab.ferry("migrate", "vm", "--watch")
        assert f"vm moved from {source} to {target}" in out, out
        lab.check_whole(mark, "vm", target)

        # ... and by kubectl.
        lab.engine.kubectl("create", "-f", "-", stdin=json.dumps(cases.migration("back", "vm")))
        lab.engine.kubectl("wait", "vmim/back", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
        lab.check_whole(mark, "vm", source)
        move = admin.get(f"{MIGRATIONS}/back")
        state = move["status"]["migrationState"]
        assert (state["sourceNode"], state["targetNode"], state["mode"]) == (target, source, "PreCopy"), state
        print("result:", json.loads(move["metadata"]["annotations"]["ferry.io/result"]))
        print(f"worst heartbeat gap {monitor.worst_gap(mark) * 1000:.0f} ms")

        lab.engine.kubectl("delete", "vmi", "vm", "--timeout=60s")
        wait_for("the pods to go", lambda: not admin.list(PODS), 60)
        events = {e["reason"] for e in admin.list("/api/v1/namespaces/default/events")}
        assert {"SuccessfulCreate", "SuccessfulMigration"} <= events, events
        failed = False
    finally:
        lab.close(failed)


if __name__ == "__main__":
    import scenario
    if os.geteuid() != 0:
        print("skipped: sandboxes need root")
        raise SystemExit(77)
    scenario.main(globals())
