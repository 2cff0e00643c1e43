#!/usr/bin/env python3
"""The exploit by which a node once reached the guests of other nodes, made again on a whole site: root on a move's source has its control
channel, wants code to run in the target's pod, and from there the libvirt of another guest. Each link breaks on its own: the move ends, its
object says what was refused, and both guests run on."""
import os
import re
import sys
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "vm"), os.path.join(HERE, "..", "faults")]
import move as moves  # noqa: E402
import rpcwire as wire  # noqa: E402
import scenario  # noqa: E402
from faultsite import FaultSite  # noqa: E402
from waiting import wait_for  # noqa: E402

MOVABLE = {"type": "LiveMigratable", "status": "True"}
FLAGS = 1 << 0 | 1 << 1 | 1 << 3  # live, peer to peer, persistent
CREATE_XML = 10  # domain create
LOADER = '<qemu:arg value="-device"/><qemu:arg value="loader,file=/var/run/ferry-state/x"/><qemu:arg value="-plugin"/><qemu:arg value="/tmp/x.so"/>'


def guest(name, node):
    boot = {"kernelArgs": "ws=4 rate=2 static=24 hb=20 fill=rand", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    spec = {"domain": {"memory": {"guest": "96Mi"}, "firmware": {"kernelBoot": boot}, "devices": {}}}
    if name == "victim":
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    else:  # it may leave
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": {
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}}]}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": spec}


def movable(site, name):
    conditions = (site.api.vmi(name) or {"status": {}})["status"].get("conditions", [])
    return any(all(c.get(k) == v for k, v in MOVABLE.items()) for c in conditions)


def ready(site, node):
    answer = site.api.call("GET", f"/api/v1/nodes/{node}")[1]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in answer.get("status", {}).get("conditions", []))


def control_socket(m):
    """The source's end of channel 0, once its relay has made it."""
    directory = os.path.join(m.source.dir, "m")
    found = [n for n in os.listdir(directory) if n.endswith("-source.sock") and "-4915" not in n]
    return f"/proc/self/fd/{os.open(directory, os.O_PATH)}/{found[0]}" if found else None  # a short path


class Attack:
    """A move whose control channel the attacker has instead of the source's libvirtd, which stands still."""

    def __init__(self, site):
        self.site = site
        self.m = moves.Move(site, "web", f"taken-{uuid.uuid4().hex[:6]}")
        pid = self.m.source.process("libvirtd")
        self.m.ask()
        self.m.until("the source's end of the control channel", lambda: control_socket(self.m))
        self.libvirtd = moves.Freeze(pid)

    def dial(self):
        self.client = wire.Client(control_socket(self.m))
        return self.client

    def end(self):
        self.client.close()
        self.libvirtd.release()
        wait_for("the move to end", self.m.over, 120)
        return self.m.status()

    def end_by_target(self):
        """Which knows why. The source would say what it made of a broken connection, and has no say until then."""
        handler = moves.Freeze(self.site.pid("node1-handler"))
        try:
            return self.end()
        finally:
            handler.release()

    def agreed(self):
        """The domain, and where its memory goes to, as the attacker knows them from moves before."""
        with open(os.path.join(self.m.target.dir, "state/devices.json.agreed")) as f:
            text = f.read()
        return text[text.index("<domain"):text.index("</move>")].strip(), re.search("<memory>(.*?)</memory>", text).group(1)


def opened(site):
    """None when the source's libvirt was first: a channel is one connection."""
    a = Attack(site)
    try:
        if a.dial().open() == (0, b""):
            return a
    except TypeError:
        pass
    a.end()
    a.m.close()
    return None


class Guests:
    """`web` on node1, whose root is the attacker; `victim` on node2, which nobody moves."""

    def __init__(self, site):
        self.site = site
        self.pods = {}
        wait_for("both nodes to take guests", lambda: all(ready(site, n) for n in ("node1", "node2")), 60)
        for name, node in (("victim", "node2"), ("web", "node1")):
            before = set(site.pod_dirs(node))
            site.api.create("virtualmachineinstances", guest(name, node))
            wait_for(f"{name} to run", lambda name=name: movable(site, name), 180)
            assert site.node_of(name) == node, site.node_of(name)
            [self.pods[name]] = set(site.pod_dirs(node)) - before
        self.libvirtd = site.in_pod(self.pods["victim"], "libvirtd")
        self.alive()

    def alive(self):
        for name, directory in self.pods.items():
            path = os.path.join(directory, "console/serial.log")
            size = os.stat(path).st_size
            wait_for(f"a sign of life of {name}", lambda path=path, size=size: os.stat(path).st_size > size + 50, 60)

    def unharmed(self, attack):
        assert attack.m.source.watch.running() and not attack.m.target.watch.running()
        assert self.site.in_pod(self.pods["victim"], "libvirtd") == self.libvirtd
        assert self.site.node_of("web") == "node1", self.site.api.vmi("web")
        self.alive()
        attack.m.close()


def refused(site, guests, ask, why):
    """A call on the control channel: libvirt's caller is told, and the object."""
    a = wait_for("the attacker to be first", lambda: opened(site), 150)
    status, answer = a.client.call(*ask(a))
    said = wire.read_error(answer)
    assert status == 1 and said["str2"] == "ControlRefused", (status, said)
    state = a.end_by_target()
    assert state["phase"] == "Failed", state
    assert state["migrationState"]["failureReason"].startswith("ControlRefused"), state
    assert why in state["migrationState"]["failureReason"], (why, state)
    shown = site.run("show", a.m.name).stdout
    assert "ControlRefused" in shown and why in shown, shown
    guests.unharmed(a)
    print(f"refused: {why}")


def with_arguments(a):
    xml, memory = a.agreed()
    end = "</qemu:commandline>"
    assert end in xml
    name, of = (re.search(f"<{n}>(.*?)</{n}>", xml).group(1) for n in ("name", "uuid"))
    cookie = f"<qemu-migration><name>{name}</name><uuid>{of}</uuid><hostname>a</hostname><hostuuid>{uuid.uuid4()}</hostuuid></qemu-migration>\0"
    return wire.PREPARE3, wire.prepare([("destination_xml", wire.STRING, xml.replace(end, LOADER + end)), ("migrate_uri", wire.STRING, memory)],
                                       cookie, FLAGS)


def lead_astray(site, guests):
    """Code in the target's pod, had it come to run, puts a link to the victim's libvirt where the relay dials; both would be the
    pod's own user's. The attacker gets not a byte through it."""
    a = Attack(site)
    place = os.path.join(a.m.target.dir, "libvirt/control.sock")
    aim = os.path.join(guests.pods["victim"], "libvirt/libvirt-sock")
    wait_for("the target's socket", lambda: os.path.exists(place), 60)
    owner = os.lstat(place).st_uid
    os.unlink(place)
    os.symlink(aim, place)
    os.lchown(place, owner, owner)
    assert os.path.exists(place), "the link leads to the victim"
    try:
        assert a.dial().call(wire.AUTH_LIST) is None, "somebody answered"
    except OSError:
        pass
    a.end()
    log = "".join(open(path, errors="replace").read() for path in site.logs() if "node2-relay" in path)
    assert "it is a link" in log, log[-4000:]
    guests.unharmed(a)


def test_the_chain(bin_dir):
    site = FaultSite(bin_dir)
    failed = True
    try:
        site.up()
        guests = Guests(site)
        site.shape(moves.COPY_MBIT)
        refused(site, guests, lambda a: (CREATE_XML, wire.opaque(a.agreed()[0].replace("</qemu:commandline>", LOADER + "</qemu:commandline>"))
                                         + bytes(4)), f"procedure {CREATE_XML}")
        refused(site, guests, with_arguments, "/domain/qemu:commandline/qemu:arg '-device'")
        lead_astray(site, guests)
        # and what a move is for still works
        m = moves.Move(site, "web", "honest")
        m.ask()
        wait_for("an honest move to end", m.over, 120)
        assert m.status()["phase"] == "Succeeded", m.status()
        m.close()
        failed = False
    finally:
        if failed:
            site.print_logs()
        site.close(failed)


scenario.main(globals())
