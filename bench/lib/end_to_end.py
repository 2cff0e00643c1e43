"""A whole site on a shaped link, and moves on it that are asked for as a user asks for them: by a migration object."""
import contextlib
import json
import os
import subprocess
import time
import uuid

from figures import jain, shares_of
from rig import Link, cpu, labs  # also says where the tests' libraries are
from ferrysite import Site, namespace_names, wait_for  # pylint: disable=wrong-import-order

MIGRATIONS = "virtualmachineinstancemigrations"
VMIS = "virtualmachineinstances"
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
STEP_S = 0.05


class EndToEnd:
    def __init__(self, build, mbit):
        self.site, self.mbit = Site(str(build / "bin")), mbit
        self.vm, self.kind, self.monitor, self.names = None, None, None, []

    def up(self):
        self.site.up()
        fabric = next(n for n in namespace_names(self.site.root) if n.endswith("-fabric"))
        for i in (1, 2):
            subprocess.run(["tc", "-n", fabric, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", f"{self.mbit}mbit",
                            "burst", "64k", "latency", "50ms"], check=True)
        migrations = {"parallelMigrationsPerCluster": 16, "parallelOutboundMigrationsPerNode": 16}
        status, answer = self.site.api.call("POST", KUBEVIRT, {
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
            "metadata": {"name": "kubevirt", "annotations": {"ferry.io/parallelInboundMigrationsPerNode": "16"}},
            "spec": {"configuration": {"migrations": migrations}}})
        assert status == 201, answer

    def close(self, failed):
        if self.monitor:
            self.monitor.stop()
        self.site.close(failed)

    # ---- guests --------------------------------------------------------------------------------

    def create(self, options):
        """A running guest; its name."""
        made = labs.new_guest(**options)
        made["metadata"] = {"name": made["metadata"]["name"]}
        self.site.api.create(VMIS, made)
        return made["metadata"]["name"]

    def movable(self, name):
        conditions = (self.site.api.vmi(name) or {}).get("status", {}).get("conditions", [])
        return any(c["type"] == "LiveMigratable" and c["status"] == "True" for c in conditions)

    def delete(self, names):
        for name in names:
            self.site.api.call("DELETE", self.site.api.path(VMIS, name))
        wait_for("the guests to go", lambda: not [n for n in names if self.site.api.vmi(n)], 120, 0.5)

    def use(self, kind, options):
        """One guest of that kind, and no other."""
        if self.kind == kind:
            return
        self.forget()
        self.vm, self.kind = self.create(options), kind
        self.monitor = self.site.monitor()
        self.monitor.wait_beats(50, 240)
        wait_for("the guest to be movable", lambda: self.movable(self.vm), 120, 0.5)

    def forget(self):
        if self.vm:
            self.monitor.stop()
            self.delete([self.vm])
        self.vm = self.kind = self.monitor = None

    # ---- one move ------------------------------------------------------------------------------

    def ask(self, vm):
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self.site.api.create(MIGRATIONS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                                          "metadata": {"name": name}, "spec": {"vmiName": vm}})
        return name

    def timed(self, kind, options):
        """One move of the guest, from its object to its end; figures as of Rig.timed()."""
        self.use(kind, options)
        site, source = self.site, self.site.node_of(self.vm)
        relays = [site.pid(f"node{i}-relay") for i in (1, 2)]
        mark, before = self.monitor.mark(), cpu(relays)
        link = Link(site.pid(f"{source}-relay"), "migration0")
        begin = time.monotonic()
        name = self.ask(self.vm)
        phase = wait_for("the end of the move", lambda: self.ended(name), 300, STEP_S)
        seconds = time.monotonic() - begin
        sent, data = link.stop()
        if phase != "Succeeded":
            raise RuntimeError(f"the move failed: {site.api.migration(name)['status']}")
        self.monitor.wait_beats(3, 60)
        row = {"total": seconds, "data": data, "gap": self.monitor.worst_gap(mark) * 1000, "downtime": self.downtime(), "bytes": sent,
               "cpu": cpu(relays) - before}
        self.check(mark)
        wait_for("the source's pod to go", lambda: len(site.qemus()) == 1, 60, 0.2)
        return row

    def ended(self, name):
        phase = (self.site.api.migration(name) or {}).get("status", {}).get("phase")
        return phase if phase in ("Succeeded", "Failed") else None

    def downtime(self):
        """As the source reported it."""
        progress = self.site.api.vmi(self.vm)["metadata"].get("annotations", {}).get("ferry.io/progress", "{}")
        return float(json.loads(progress).get("downtimeMs", -1))

    def check(self, mark):
        pages, bad = self.monitor.verify(240)
        broken = self.monitor.broken_sequence(mark)
        if bad or broken or self.monitor.bad_pages():
            raise RuntimeError(f"{bad} of {pages} pages are bad; heartbeat broken at {broken}")

    # ---- many at once --------------------------------------------------------------------------

    def cordon(self, node, on):
        status, answer = self.site.api.call("PATCH", self.site.api.path("nodes", node), {"spec": {"unschedulable": on}},
                                            "application/merge-patch+json")
        assert status == 200, answer

    def crowd(self, count, options):
        """Guests, all of them on the first node."""
        self.forget()
        self.cordon("node2", True)
        self.names = [self.create(options) for _ in range(count)]
        wait_for("the guests to be movable", lambda: all(self.movable(n) for n in self.names), 300, 1)
        self.cordon("node2", False)
        time.sleep(5)  # for all of them to have written their memory

    def disperse(self):
        self.delete(self.names)
        self.names = []

    def at_once(self, count):
        """Moves of so many guests, asked for together: time until the last has ended, and how even they were served."""
        source = self.site.node_of(self.names[0])
        relay = os.path.join(self.site.root, source, "run/ferry/relay.sock")
        link = Link(self.site.pid(f"{source}-relay"), "migration0")
        begin, waiting, looks = time.monotonic(), [self.ask(n) for n in self.names[:count]], []
        while waiting and time.monotonic() < begin + 300:
            looks.append(sent_by_move(relay))
            waiting = [n for n in waiting if self.ended(n) != "Succeeded"]
            time.sleep(STEP_S)
        seconds = time.monotonic() - begin
        sent, data = link.stop()
        if waiting:
            raise RuntimeError(f"{len(waiting)} moves did not end")
        wait_for("the sources' pods to go", lambda: len(self.site.qemus()) == len(self.names), 120, 0.2)
        together, shares = shares_of(looks)
        return {"total": seconds, "data": data, "bytes": sent, "together": together, "jain": jain(shares)}


def sent_by_move(relay_socket):
    """{move: bytes of its memory that the relay has taken}"""
    with contextlib.suppress(OSError, ValueError):
        status, answer = labs.call(relay_socket, "GET", "/v1/streams")
        if status == 200:
            totals = {}
            for s in answer["streams"]:
                if s["channel"] == 49152:
                    totals[s["move"]] = totals.get(s["move"], 0) + s["bytesOut"]
            return totals
    return {}
