"""One move of the guest, brought to the instant at which something is to break."""
import os
import signal
import time

import faultsite
from ferrysite import wait_for
from runners import Qmp, Watch

MIB = 1 << 20
COPY_MBIT, BUSY_MBIT, TRICKLE_MBIT, FAST_MBIT = 50, 80, 8, 400
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
HOLD_S = 150


class NotReached(Exception):
    """The move was over, or elsewhere, before it could be held."""


def sure(call, what, seconds=120):
    """The answer of a call that is repeated while the API server is away."""
    def attempt():
        try:
            return call() or True
        except (OSError, AssertionError, ValueError):
            return None
    return wait_for(what, attempt, seconds, 0.2)


class Side:
    """The pod of one end."""

    def __init__(self, site, node, known=()):
        self.site, self.node, self.known = site, node, set(known)
        self.watch = Watch(self)

    @property
    def dir(self):
        """Of the pod that is not one of those known before; None when there is none yet."""
        found = [d for d in self.site.pod_dirs(self.node) if d not in self.known and os.path.exists(d + "sandbox.json")]
        return found[-1] if found else None

    def qmp(self):
        directory = self.dir
        if not directory:
            raise OSError("no pod yet, or no more")
        return Qmp(os.path.join(directory, "state/qmp.sock"))

    def process(self, name):
        program = {"launcher": "ferry-launcher", "libvirtd": "libvirtd", "qemu": "qemu-system", "filter": "ferry-rpc-filter"}[name]
        directory = self.dir
        return self.site.in_pod(directory, program) if directory else 0


class Move:
    def __init__(self, site, vm, name):
        self.site, self.vm, self.name = site, vm, name
        source = site.node_of(vm)
        target = "node2" if source == "node1" else "node1"
        own = sure(lambda: next(d for d in site.pod_dirs(source) if site.in_pod(d, "qemu-system")), "the pod of the guest")
        self.source = Side(site, source, set(site.pod_dirs(source)) - {own})
        self.target = Side(site, target, site.pod_dirs(target))
        wait_for("the guest's QEMU to answer", self.source.watch.running, 60)
        self.sent_before = site.sent(source)

    def close(self):
        for side in (self.source, self.target):
            side.watch.stop()

    def side(self, name):
        return {"source": self.source, "target": self.target}[name]

    # -- what the site is told ---------------------------------------------------------------

    def configure(self, **migrations):
        """The site's settings for moves; others as they are by default."""
        spec = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
                "spec": {"configuration": {"migrations": migrations}}}

        def put():
            status, now = self.site.api.call("GET", KUBEVIRT + "/kubevirt")
            if status == 404:
                status, _ = self.site.api.call("POST", KUBEVIRT, spec)
            elif status == 200 and now["spec"].get("configuration", {}).get("migrations") != migrations:
                spec["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"]
                status, _ = self.site.api.call("PUT", KUBEVIRT + "/kubevirt", spec)
            assert status in (200, 201), status
        sure(put, "the site's settings to be written")

    def cordon(self, node, on):
        def patch():
            status, answer = self.site.api.call("PATCH", self.site.api.path("nodes", node), {"spec": {"unschedulable": on}},
                                                "application/merge-patch+json")
            assert status == 200, answer
        sure(patch, f"{node} to be closed or opened")

    def ask(self):
        """Creates the migration object."""
        self.site.api.create("virtualmachineinstancemigrations", {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": self.name},
            "spec": {"vmiName": self.vm}})

    # -- what is seen ------------------------------------------------------------------------

    def status(self):
        """Of the migration object; {} when the API server does not answer."""
        try:
            m = self.site.api.migration(self.name)
        except (OSError, AssertionError, ValueError):
            return {}
        return (m or {}).get("status", {})

    def over(self):
        return self.status().get("phase") in ("Succeeded", "Failed")

    def sent(self):
        return self.site.sent(self.source.node) - self.sent_before

    def until(self, what, condition):
        """Waits; a move that ends meanwhile is not where it was wanted."""
        deadline, look = time.monotonic() + HOLD_S, 0
        while not condition():
            if time.monotonic() > look:
                if self.over() and not condition():
                    raise NotReached(f"{what}: the move is over: {self.status()}")
                look = time.monotonic() + 1
            if time.monotonic() > deadline:
                raise NotReached(f"waited {HOLD_S} s for: {what}")
            time.sleep(0.005)

    def until_phase(self, phase):
        self.until(f"phase {phase}", lambda: self.status().get("phase") == phase)


class Hold:
    """What keeps a move where it is."""
    pid = 0  # of the process that stands still for it

    def __init__(self, release=lambda: None):
        self.release = release


class Freeze(Hold):
    """A process that stands still until it is released, or killed."""

    def __init__(self, pid):
        super().__init__(self.go_on)
        self.pid, self.fd = pid, os.pidfd_open(pid)
        faultsite.send(self.fd, signal.SIGSTOP)

    def go_on(self):
        if self.fd >= 0:
            faultsite.send(self.fd, signal.SIGCONT)
            os.close(self.fd)
            self.fd = -1


# ---- one function per phase: brings a move there; what holds it --------------------------------


def pending(m, _):
    m.configure(parallelMigrationsPerCluster=0)
    m.ask()
    m.until_phase("Pending")
    return Hold(m.configure)


def scheduling(m, _):
    m.cordon(m.target.node, True)
    m.ask()
    m.until_phase("Scheduling")
    return Hold(lambda: m.cordon(m.target.node, False))


def scheduled(m, _):
    m.ask()
    m.until("a target pod", lambda: m.target.dir)
    controller = Freeze(m.site.running("controller"))

    def ready():
        pods = m.site.api.list("pods")
        return any(p["spec"].get("nodeName") == m.target.node and c["type"] == "Ready" and c["status"] == "True"
                   for p in pods for c in p.get("status", {}).get("conditions", []) if p["metadata"]["uid"] in m.target.dir)
    try:
        m.until("the target pod to be ready", ready)
    except BaseException:
        controller.release()
        raise
    return controller


def held_by_handler(side, phase):
    def hold(m, _):
        handler = Freeze(m.site.running(f"{m.side(side).node}-handler"))
        try:
            m.ask()
            m.until_phase(phase)
        except BaseException:
            handler.release()
            raise
        return handler
    return hold


def running(m, dice):
    m.ask()
    wanted = dice.uniform(3, 12) * MIB
    m.until("memory to be on its way", lambda: m.sent() > wanted)
    return Hold()


def switch_over(m, dice):
    running(m, dice)
    daemon = Freeze(m.target.process("libvirtd"))
    try:
        m.until("the last byte", lambda: not m.source.watch.running() and "completed" in m.source.watch.states)
    except BaseException:
        daemon.release()
        raise
    return daemon


def confirmation(m, dice):
    """libvirt's final step: the target's daemon does what it was told, and its answer is lost."""
    daemon = switch_over(m, dice)
    m.site.deafen(m.source.node)
    try:
        daemon.release()
        m.until("the guest to run on the target", m.target.watch.running)
    except BaseException:
        m.site.shape(FAST_MBIT)
        raise
    return Hold(lambda: m.site.shape(FAST_MBIT))


def post_copy(m, _):
    m.site.shape(BUSY_MBIT)
    m.configure(allowPostCopy=True, allowWorkloadDisruption=True)
    m.ask()
    m.until("post-copy", lambda: "postcopy-active" in m.source.watch.states and m.target.watch.running())
    m.site.shape(TRICKLE_MBIT)
    return Hold()


def finishing(m, dice):
    running(m, dice)
    handler = Freeze(m.site.running(f"{m.target.node}-handler"))
    try:
        m.until("the guest to run on the target", m.target.watch.running)
    except BaseException:
        handler.release()
        raise
    return handler


HOLDS = {"Pending": pending, "Scheduling": scheduling, "Scheduled": scheduled,
         "PreparingTarget": held_by_handler("target", "PreparingTarget"),
         "TargetReady": held_by_handler("source", "TargetReady"), "Running": running, "Switch-over": switch_over,
         "Confirmation": confirmation,
         "Post-copy": post_copy, "Finishing": finishing}
