"""tests/control's plane on Kubernetes: real kube-apiserver and kube-scheduler, ferry-controller without --embedded, and
the same agent in place of kubelets and handlers, with the certificates that kubelets have."""
import os
import shutil
import sys

import cases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))
import engine  # noqa: E402
import nodes  # noqa: E402
from cases import NODES  # noqa: E402


class Away:
    """In place of an API server that is not there."""

    def __getattr__(self, name):
        raise OSError("the API server is away")


class Plane(nodes.Plane):
    def __init__(self, bin_dir, nodes=("a", "b")):
        super().__init__(bin_dir, nodes)
        self.engine = None

    def start_apiserver(self):
        engine.need("kubernetes", scheduler=True)
        self.engine = engine.start("kubernetes", scheduler=True)
        self.data, self.server = self.engine.dir, self.engine.url  # where admin.kubeconfig is

    def kill_apiserver(self):
        """Kills kube-apiserver and starts it again. The agent pauses: until the server has read all of its own objects it
        answers 403 and 503, which the agent would take for mistakes."""
        api, beats = self.api, self.agent.beats
        self.api, self.agent.beats = Away(), set()
        self.engine.restart_apiserver()
        self.api, self.agent.beats = api, beats

    def pki(self, *what_and_out):
        *what, out = what_and_out
        if what[0] == "node":
            os.makedirs(out, exist_ok=True)
            out = os.path.join(out, "node.kubeconfig")
            self.admit(what[1])
        shutil.copy(self.engine.kubeconfig(*what), out)

    def admit(self, name):
        """What the cloud's controllers do for a node that a kubelet registers: take the taint of new nodes off it."""
        admin = self.engine.client()

        def untaint():
            if admin.get(f"{NODES}/{name}"):
                admin.patch(f"{NODES}/{name}", {"spec": {"taints": None}})
                return True
            return False
        cases.later(f"node {name} to register", untaint)

    def start_controller(self, *more):
        self.controller = self.spawn("ferry-controller", "--kubeconfig", self.config, *more)

    def close(self, failed):
        super().close(failed)
        if self.engine:
            self.engine.close(failed)


class WebhookPlane(Plane):
    """The same, and Kubernetes asks ferry-controller about migrations and evictions."""

    def start_controller(self, *more):
        super().start_controller(*self.engine.webhook_options(), *more)
        self.engine.install_webhook()
