#!/usr/bin/env python3
"""What a site shows of an attack on the control channel: the move ends, its object says ControlRefused and names what was refused, and
the guest runs on. All programs; root on the source's node is the attacker."""
import os
import struct
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
DESTROY = 12  # domain destroy


def guest(name):
    boot = {"kernelArgs": "ws=4 rate=2 static=24 hb=20 fill=rand", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"domain": {"memory": {"guest": "96Mi"}, "firmware": {"kernelBoot": boot}, "devices": {}}}}


def movable(site, name):
    conditions = (site.api.vmi(name) or {"status": {}})["status"].get("conditions", [])
    return any(all(c.get(k) == v for k, v in MOVABLE.items()) for c in conditions)


def control_socket(m):
    """The source's end of channel 0, once its relay has made it."""
    directory = os.path.join(m.source.dir, "m")
    found = [n for n in os.listdir(directory) if n.endswith("-source.sock") and "-4915" not in n]
    return f"/proc/self/fd/{os.open(directory, os.O_PATH)}/{found[0]}" if found else None  # a short path


def taken(site):
    """A move whose control channel the attacker has instead of the source's libvirtd, which stands still; None when that was first."""
    m = moves.Move(site, "web", f"taken-{uuid.uuid4().hex[:6]}")
    pid = m.source.process("libvirtd")
    m.ask()
    m.until("the source's end of the control channel", lambda: control_socket(m))
    libvirtd = moves.Freeze(pid)
    client = wire.Client(control_socket(m))
    try:
        assert client.open() == (0, b"")
        return m, libvirtd, client
    except TypeError:  # no answer: a channel is one connection
        client.close()
        libvirtd.release()
        wait_for("the move to end", m.over, 120)
        m.close()
        return None


def test_the_object_says_what_was_refused(bin_dir):
    site = FaultSite(bin_dir)
    failed = True
    try:
        site.up()
        site.api.create("virtualmachineinstances", guest("web"))
        monitor = site.monitor()
        site.shape(moves.COPY_MBIT)
        monitor.wait_beats(5, 180)
        wait_for("the guest to be movable", lambda: movable(site, "web"), 120)
        m, libvirtd, client = wait_for("the attacker to be first", lambda: taken(site), 150)
        status, answer = client.call(DESTROY, wire.opaque("web") + bytes(16) + struct.pack(">i", 1))
        said = wire.read_error(answer)
        assert status == 1 and said["str2"] == "ControlRefused", (status, said)
        client.close()
        libvirtd.release()
        wait_for("the move to end", m.over, 120)
        state = m.status()
        assert state["phase"] == "Failed", state
        assert state["migrationState"]["failureReason"].startswith("ControlRefused"), state
        assert "procedure 12" in state["migrationState"]["failureReason"], state
        why = site.run("show", m.name).stdout
        assert "ControlRefused" in why and "procedure 12" in why, why
        monitor.wait_beats(5, 60)
        assert m.source.watch.running() and not m.target.watch.running()
        m.close()
        monitor.stop()
        failed = False
    finally:
        if failed:
            site.print_logs()
        site.close(failed)


scenario.main(globals())
