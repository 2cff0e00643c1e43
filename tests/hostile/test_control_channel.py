#!/usr/bin/env python3
"""A source that was taken over speaks to the target's libvirtd through the control channel: what a move asks for passes, all else ends the
move with ControlRefused and reaches nothing. The real filter, launcher, libvirtd and sandbox; the source is ours."""
import contextlib
import os
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "vm")]
import lab as labs  # noqa: E402
import rpcwire as wire  # noqa: E402
import scenario  # noqa: E402

FLAGS = 1 << 0 | 1 << 1 | 1 << 3  # live, peer to peer, persistent
QEMU_MONITOR_COMMAND, QEMU_ATTACH, QEMU_AGENT_COMMAND = 1, 2, 3
MARK = "/var/run/ferry-state/mark"  # what code that ran in the pod would leave


class Target:
    """A pod that waits for a guest, and what was agreed about it."""

    def __init__(self, lab, disks=()):
        self.guest = labs.new_guest()
        self.guest["spec"]["domain"]["devices"]["disks"] = [{"name": name} for name in disks]
        self.guest["spec"]["volumes"] = [{"name": n, "hostDisk": {"path": f"/srv/{n}.img", "type": "Disk"}} for n in disks]
        self.pod = labs.Pod(lab.nodes[1], "virt-launcher-2", self.guest, {name: 1 << 20 for name in disks})
        self.prepare()

    def prepare(self):
        self.move = str(uuid.uuid4())
        sockets = self.pod.ok("PUT", f"/v1/target/{self.move}", {"vmi": self.guest})
        assert sockets["controlSocket"].endswith("/control.sock"), sockets
        with open(os.path.join(self.pod.dir, "state/devices.json.agreed")) as f:
            agreed = f.read()
        self.xml = agreed[agreed.index("<domain"):agreed.index("</move>")].strip()
        self.memory = re.search("<memory>(.*?)</memory>", agreed).group(1)
        self.name, self.uuid = (re.search(f"<{n}>(.*?)</{n}>", self.xml).group(1) for n in ("name", "uuid"))

    @property
    def socket(self):
        return os.path.join(self.pod.dir, "libvirt/control.sock")

    def path(self, name):
        directory = os.open(os.path.join(self.pod.dir, "libvirt"), os.O_PATH)
        return f"/proc/self/fd/{directory}/{name}"

    def connect(self, opened=True, name="control.sock"):
        client = wire.Client(self.path(name))
        if opened:
            assert client.open() == (0, b"")
        return client

    def domain(self):
        """name, UUID, and an id, as calls name one."""
        return wire.opaque(self.name) + uuid.UUID(self.uuid).bytes + struct.pack(">i", 1)

    def cookie(self, persistent=""):
        return (f"<qemu-migration><name>{self.name}</name><uuid>{self.uuid}</uuid><hostname>a</hostname>"
                f"<hostuuid>{uuid.uuid4()}</hostuuid><feature name='lockstate'/>"
                f"{persistent}</qemu-migration>\0")

    def params(self, xml=None, uri=None, more=()):
        return [("destination_xml", wire.STRING, xml or self.xml), ("migrate_uri", wire.STRING, uri or self.memory), *more]

    def prepare_call(self, xml=None, cookie=None, uri=None, more=(), flags=FLAGS):
        return wire.prepare(self.params(xml, uri, more), cookie or self.cookie(), flags)

    def with_device(self, device):
        return self.xml.replace("</devices>", device + "</devices>")

    def virsh(self, *words):
        done = subprocess.run(["virsh", "-q", "-c", f"qemu+unix:///session?socket={self.pod.dir}/libvirt/libvirt-sock", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        return done.stdout.strip()


@contextlib.contextmanager
def target_of(bin_dir, disks=()):
    with labs.lab(bin_dir) as lab:
        yield lab, Target(lab, disks)


def check_refused(target, client, answer, why):
    """An error that says why, and the end of the stream; the move has failed with that reason, and libvirtd has nothing of it."""
    if answer is not None:
        assert answer[0] == 1, f"it was done: {answer}"
        said = wire.read_error(answer[1])
        assert said["code"] == 88 and said["str2"] == "ControlRefused" and why in said["message"], (why, said)
    with contextlib.suppress(OSError):  # only a leave is taken
        again = client.call(wire.FEATURE, struct.pack(">i", 4))
        assert again is None or wire.read_error(again[1])["str2"] == "ControlRefused", again
        assert client.call(wire.CLOSE) in (None, (0, b""))
    assert client.receive() is None, "the stream goes on"
    client.close()
    move = labs.wait_for("the end of the move", lambda: (lambda m: m if m.get("phase") == "failed" else None)(target.pod.migration()))
    assert move["uid"] == target.move and move["reasonCode"] == "ControlRefused" and why in move["failureReason"], (why, move)
    assert move["neverRan"], move
    assert target.virsh("list", "--all", "--name") == "", target.virsh("list", "--all")
    assert not os.path.exists(os.path.join(target.pod.dir, "state/mark")), "code of the source ran"
    labs.wait_for("the control channel to close", lambda: not os.path.exists(target.socket))
    target.prepare()


def refused(target, procedure, payload, why, opened=True, **kwargs):
    client = target.connect(opened)
    answer = client.call(procedure, payload, **kwargs)
    assert answer is not None, f"no answer to what should be refused for {why}"
    check_refused(target, client, answer, why)
    print(f"refused: {why}")


def test_what_a_move_asks_for(bin_dir):
    """The same calls, honestly: they reach libvirtd, which starts a QEMU, and ends it when the source gives up."""
    with target_of(bin_dir) as (_, target):
        client = target.connect()
        for feature in (10, 14, 15, 4, 6, 13):
            assert client.call(wire.FEATURE, struct.pack(">i", feature)) == (0, struct.pack(">i", 1)), feature
        assert client.call(wire.REGISTER_CLOSE)[0] == 0
        status, payload = client.call(wire.PREPARE3, target.prepare_call())
        assert status == 0, wire.read_error(payload)
        assert target.virsh("list", "--name") == target.name
        status, payload = client.call(wire.FINISH3, wire.finish(target.params(more=[("destination_name", wire.STRING, target.name)]),
                                                                target.cookie(), FLAGS, 1))
        assert status == 1 and wire.read_error(payload)["str2"] != "ControlRefused", payload
        assert client.call(wire.UNREGISTER_CLOSE)[0] == 0
        assert client.call(wire.CLOSE)[0] == 0
        client.close()
        labs.wait_for("the end of the move", lambda: target.pod.migration()["phase"] == "failed")
        assert target.pod.migration()["reasonCode"] == "TargetLost", target.pod.migration()


def test_without_the_filter(bin_dir):
    """What each of the attacks below would do: libvirtd itself does as it is told."""
    with target_of(bin_dir) as (_, target):
        client = target.connect(name="libvirt-sock")
        assert client.call(25, struct.pack(">i", 16))[0] == 0  # list defined domains
        xml = target.xml.replace("<name>", "<name>x").replace(target.uuid, str(uuid.uuid4()))
        status, payload = client.call(11, wire.opaque(xml))  # define XML
        assert status == 0, wire.read_error(payload)
        client.close()
        assert target.virsh("list", "--all", "--name") == "x" + target.name


def test_other_calls(bin_dir):
    """Any procedure but those of a move: of libvirt, of its QEMU program, of others; and messages that are no calls."""
    with target_of(bin_dir) as (_, target):
        named = target.domain()
        for procedure, payload in ((10, wire.opaque(target.xml) + struct.pack(">i", 0)), (11, wire.opaque(target.xml)), (25, b"\0\0\0\x10"),
                                   (23, wire.opaque(target.name)), (12, named), (214, b""), (305, named), (9999, b""), (-1, b"")):
            refused(target, procedure, payload, f"procedure {procedure} of program 0x20008086")
        refused(target, QEMU_MONITOR_COMMAND, named + wire.opaque("pmemsave") + struct.pack(">I", 1), "procedure 1 of program 0x20008087",
                program=wire.QEMU)
        refused(target, QEMU_AGENT_COMMAND, named + wire.opaque("{}") + struct.pack(">iI", 1, 0), "procedure 3 of program 0x20008087",
                program=wire.QEMU)
        refused(target, QEMU_ATTACH, struct.pack(">II", 1, 0), "procedure 2 of program 0x20008087", program=wire.QEMU)
        refused(target, 1, b"", "program 0x20008088", program=0x20008088)
        refused(target, wire.OPEN, b"", "procedure 1 of program 0x20008086", opened=False, version=2)
        for kind in (wire.REPLY, wire.MESSAGE, wire.STREAM, 4, 6):
            client = target.connect()
            client.send(wire.message(wire.REMOTE, wire.CLOSE, kind, 77))
            check_refused(target, client, None, f"a message of type {kind}")


def test_order(bin_dir):
    """Calls before their time, twice, or without end."""
    with target_of(bin_dir) as (_, target):
        refused(target, wire.PREPARE3, target.prepare_call(), "does not come at this point", opened=False)
        refused(target, wire.FINISH3, wire.finish(target.params(), target.cookie(), FLAGS), "does not come at this point")
        refused(target, wire.AUTH_LIST, b"", "does not come at this point")
        refused(target, wire.OPEN, wire.optional("qemu:///system") + struct.pack(">I", 0), "only qemu:///session may be opened", opened=False)
        refused(target, wire.OPEN, wire.optional("qemu:///session") + struct.pack(">I", 1), "for writing", opened=False)
        refused(target, wire.COMPARE_CPU, wire.optional(MARK) + wire.optional("x86_64") + wire.optional(None) * 2 + wire.opaque("<cpu/>") +
                struct.pack(">I", 0), "another emulator")
        client = target.connect()
        answer = None
        for _ in range(5000):
            answer = client.call(wire.FEATURE, struct.pack(">i", 4))
            if answer is None or answer[0] != 0:
                break
        check_refused(target, client, answer, "more than 64 calls")
        client = target.connect()
        with contextlib.suppress(OSError):  # it may be over before all was sent
            client.send(b"".join(wire.message(wire.KEEPALIVE, 1, wire.MESSAGE, 0) for _ in range(5000)))
        while client.receive():
            pass
        check_refused(target, client, None, "keep-alive")


def test_frames(bin_dir):
    """Messages that are cut, too long, or lie about their length: the filter lives, and its memory is bounded."""
    with target_of(bin_dir) as (_, target):
        for head, why in ((b"\0\0\0\0", "a message of 0 bytes"), (b"\0\0\0\x1b", "a message of 27 bytes"),
                          (b"\x7f\xff\xff\xff", "a message of 2147483647 bytes"), (b"\xff\xff\xff\xff", "a message of 4294967295 bytes"),
                          (b"\0\x10\0\1", "a message of 1048577 bytes")):
            client = target.connect()
            client.send(head)
            check_refused(target, client, None, why)
        whole = target.prepare_call()
        for n in (0, 3, 4, 100, len(whole) - 4):
            refused(target, wire.PREPARE3, whole[:n], "its arguments cannot be read")
        refused(target, wire.PREPARE3, whole + b"\0\0\0\0", "its arguments cannot be read")
        refused(target, wire.PREPARE3, struct.pack(">I", 0xffffffff), "its arguments cannot be read")
        refused(target, wire.FEATURE, struct.pack(">i", 0x7fffffff), "its arguments cannot be read")
        # one that stops in the middle, while another would come: the relay lets only one through at a time
        client = target.connect()
        client.send(wire.message(wire.REMOTE, wire.PREPARE3, wire.CALL, 9, whole)[:-7])
        client.close()
        assert target.connect().call(wire.FEATURE, struct.pack(">i", 4))[0] == 0


def test_domains(bin_dir):
    """A domain that is not the one that was agreed, and every place where it could hide."""
    with target_of(bin_dir, ("root",)) as (_, target):
        def edit(old, new):
            assert old in target.xml, old
            return target.xml.replace(old, new, 1)

        emulator = "<emulator>/usr/bin/qemu-system-x86_64</emulator>"
        commandline = '<qemu:arg value="-chardev"/>'
        for make, why in (
                (lambda: edit("<name>", "<name>other-"), "/domain/name"),
                (lambda: edit(target.uuid, str(uuid.uuid4())), "/domain/uuid"),
                (lambda: edit(emulator, f"<emulator>{MARK}</emulator>"), "/domain/devices/emulator"),
                (lambda: edit(commandline, '<qemu:arg value="-plugin"/>'), "/domain/qemu:commandline/qemu:arg '-plugin'"),
                (lambda: edit("</qemu:commandline>", '<qemu:arg value="-device"/><qemu:arg value="loader,file=/x"/></qemu:commandline>'),
                 "/domain/qemu:commandline/qemu:arg '-device'"),
                (lambda: edit("</qemu:commandline>", '<qemu:env name="LD_PRELOAD" value="/x"/></qemu:commandline>'), "has more than arguments"),
                (lambda: target.with_device("<filesystem type='mount'><source dir='/'/><target dir='x'/></filesystem>"),
                 "/domain/devices/filesystem"),
                (lambda: target.with_device("<disk type='file' device='disk'><source file='/etc/passwd'/><target dev='vdb' bus='virtio'/></disk>"),
                 "/domain/devices/disk was not agreed"),
                (lambda: target.with_device("<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0' bus='0' slot='1' "
                                            "function='0'/></source></hostdev>"), "/domain/devices/hostdev was not agreed"),
                (lambda: target.with_device("<interface type='ethernet'><script path='/x'/></interface>"), "/domain/devices/interface was not agreed"),
                (lambda: target.with_device("<graphics type='vnc' listen='0.0.0.0'/>"), "/domain/devices/graphics"),
                (lambda: edit("disks/root/disk.img", "../ferry-state/state.json"), "/domain/devices/disk/source/@file"),
                (lambda: edit('type="raw"', 'type="qcow2"'), "/domain/devices/disk/driver/@type"),
                (lambda: edit("serial.sock", "../ferry-libvirt/control.sock"), "/domain/devices/serial/source/@path"),
                (lambda: edit("heartbeat.elf", "../../etc/shadow"), "/domain/os/kernel"),
                (lambda: edit("</os>", "<loader type='rom'>/x</loader></os>"), "/domain/os/loader"),
                (lambda: edit("</devices>", "</devices><seclabel type='static' model='dac'><label>root:root</label></seclabel>"),
                 "/domain/seclabel/@type"),
                (lambda: edit("<domain ", "<!DOCTYPE d [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><domain "), "not XML as libvirt writes it"),
                (lambda: target.xml + "<domain/>", "not XML as libvirt writes it"),
                (lambda: "x", "not XML as libvirt writes it")):
            refused(target, wire.PREPARE3, target.prepare_call(xml=make()), why)


def test_what_comes_beside_the_domain(bin_dir):
    """Parameters, flags and the cookie with the definition that stays."""
    with target_of(bin_dir) as (_, target):
        for arguments, why in (
                ({"uri": "tcp://0.0.0.0:49152"}, "parameter migrate_uri is not what was agreed"),
                ({"uri": "unix:///var/run/ferry-state/qmp.sock"}, "parameter migrate_uri is not what was agreed"),
                ({"more": [("listen_address", wire.STRING, "0.0.0.0")]}, "parameter 'listen_address'"),
                ({"more": [("destination_name", wire.STRING, "another")]}, "parameter destination_name"),
                ({"more": [("disks_uri", wire.STRING, "unix:///x")]}, "parameter disks_uri"),
                ({"more": [("migrate_disks", wire.STRING, "vda")]}, "parameter migrate_disks"),
                ({"more": [("disks_port", wire.INT, 10809)]}, "parameter 'disks_port'"),
                ({"more": [("graphics_uri", wire.STRING, "vnc://x")]}, "parameter 'graphics_uri'"),
                ({"more": [("migrate_uri", wire.STRING, "tcp://x")]}, "there twice"),
                ({"flags": FLAGS | 1 << 2}, "flags 0xf"),       # tunnelled
                ({"flags": FLAGS | 1 << 7}, "flags 0x8b"),      # with disks, of which none is to be copied
                ({"flags": FLAGS | 1 << 10}, "flags 0x40b"),    # offline: only the definition
                ({"flags": FLAGS | 1 << 16}, "flags 0x1000b"),  # TLS of libvirt's own
                ({"flags": 1}, "flags 0x1 ")):
            refused(target, wire.PREPARE3, target.prepare_call(**arguments), why)
        for make, why in (
                (lambda: target.cookie(target.xml.replace("</qemu:commandline>", "<qemu:arg value='-S'/></qemu:commandline>")),
                 "/qemu-migration/domain/qemu:commandline/qemu:arg '-S'"),
                (lambda: target.cookie(target.xml.replace("/usr/bin/qemu-system-x86_64", MARK)), "/qemu-migration/domain/devices/emulator"),
                (lambda: target.cookie(target.xml + target.xml), "/qemu-migration/domain"),
                (lambda: target.cookie("<graphics type='spice' port='1' listen='x'/>"), "/qemu-migration/graphics"),
                (lambda: target.cookie("<nbd port='1'/>"), "/qemu-migration/nbd/@port"),
                (lambda: target.cookie().replace(target.name, "another"), "/qemu-migration/name"),
                (lambda: "nonsense", "the cookie is not XML")):
            refused(target, wire.PREPARE3, target.prepare_call(cookie=make()), why)
        # the definition that stays comes with the last call
        client = target.connect()
        status, payload = client.call(wire.PREPARE3, target.prepare_call())
        assert status == 0, wire.read_error(payload)
        foreign = target.cookie(target.xml.replace("/usr/bin/qemu-system-x86_64", MARK)).replace("lockstate", "persistent")
        answer = client.call(wire.FINISH3, wire.finish(target.params(), foreign, FLAGS))
        check_refused(target, client, answer, "/qemu-migration/domain/devices/emulator")


def test_a_real_source(bin_dir):
    """Two real libvirts, whose guest is not the one that the target was told of: both sides say why, and the guest runs on."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        told = dict(guest, spec={**guest["spec"], "domain": {**guest["spec"]["domain"], "memory": {"guest": "96Mi"}}})
        pod = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        uid = str(uuid.uuid4())
        m = labs.Move.__new__(labs.Move)
        m.tls, m.uid, m.key, m.source, m.target, m.guest = "raw", uid, guest["metadata"]["uid"], source, pod, guest
        m.sockets = pod.ok("PUT", f"/v1/target/{uid}", {"vmi": told})
        m.connect(1)
        source.ok("PUT", f"/v1/migrations/{uid}", {"vmi": guest, "options": {}})
        assert m.wait_end() == ("failed", "failed")
        for side in (source, pod):
            move = side.migration()
            assert move["reasonCode"] == "ControlRefused" and "/domain/memory '65536'" in move["failureReason"], move
        lab.check_guest(source)
        m.close()


class Liar:
    """A target that was taken over: what it says to each call of the source's libvirt."""

    def __init__(self, path, say):
        self.say, self.calls = say, 0
        self.listener = socket.socket(socket.AF_UNIX)
        directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
        self.listener.bind(f"/proc/self/fd/{directory}/{os.path.basename(path)}")  # the path may be too long
        os.close(directory)
        os.chown(path, labs.VM_USER, labs.RELAY_USER)
        os.chmod(path, 0o770)
        self.listener.listen(4)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            splitter = wire.Splitter()
            with contextlib.suppress(OSError), client:
                while data := client.recv(65536):
                    for whole in splitter.feed(data):
                        self.calls += 1
                        client.sendall(self.say(wire.HEADER.unpack_from(whole)))


def reply(header, payload, **changed):
    """A reply to a call, with some of its words changed."""
    words = {"program": header[1], "procedure": header[3], "kind": wire.REPLY, "serial": header[5], **changed}
    return wire.message(words["program"], words["procedure"], words["kind"], words["serial"], payload)


LIES = (
    ("noise", lambda h: os.urandom(65536)),
    ("a length of 4 GiB", lambda h: struct.pack(">I", 0xffffffff) + bytes(1 << 20)),
    ("a length of 32 MiB that never comes", lambda h: struct.pack(">I", 32 << 20) + bytes(100) + os.urandom(33 << 20)),
    ("a length of nothing", lambda h: bytes(4096)),
    ("a megabyte where a number is", lambda h: reply(h, b"\xff" * (1 << 20))),
    ("too little", lambda h: reply(h, b"") if h[3] not in (wire.AUTH_LIST, wire.OPEN) else reply(h, b"\0\0")),
    ("answers that nobody waits for", lambda h: b"".join(reply(h, b"", serial=n) for n in range(1000, 3000))),
    ("calls of its own", lambda h: reply(h, bytes(64), kind=wire.CALL, procedure=1, program=wire.REMOTE)),
    ("events of other guests", lambda h: b"".join(reply(h, os.urandom(64), kind=wire.MESSAGE, procedure=n, serial=0) for n in range(100, 400))),
    ("a stream", lambda h: reply(h, bytes(4096), kind=wire.STREAM)),
)


SILENCE = ("events of other guests", "a stream")


def test_answers_of_a_target(bin_dir):
    """The source's libvirt, in the sandbox of the guest that moves, is all that reads them: the move fails, the guest runs on."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        qemu = source.children("qemu-system")
        for name, say in LIES:
            pod = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)

            class Move(labs.Move):
                def leads_to(self, channel, path, generation):
                    if channel == 0:
                        path = os.path.join(os.path.dirname(path), "liar.sock")
                        self.liar = Liar(path, say)
                    return path
            m = Move(lab, guest, source, pod)
            labs.wait_for("somebody to speak to it", lambda m=m: m.liar.calls)
            if name in SILENCE:  # libvirt may wait on: the controller ends the move (ConnectTimeout), and then the streams go
                m.close()
            labs.wait_for("the end of the move", lambda m=m: m.phase(source) == "failed", 60)
            assert source.children("qemu-system") == qemu and source.status()["domain"]["state"] == "running", (name, source.status())
            print(f"{name}: {source.migration()['reasonCode']}: {source.migration()['failureReason']}")
            if name not in SILENCE:
                m.close()
            pod.end()
        lab.check_guest(source)
        target, _ = labs.move(lab, guest, source, 1)  # and an honest one takes it
        lab.check_guest(target)


def begin(lab, options=None):
    """A busy guest and a slow link, and a move that is under way."""
    guest, source = labs.start(lab, memory="96Mi", args="ws=32 rate=60 hb=50 fill=rand")
    pod = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    lab.nodes[0].shape(160)
    return source, pod, labs.Move(lab, guest, source, pod, options)


def filter_of(pod):
    return labs.wait_for("the filter", lambda: pod.children("ferry-rpc-filter"))


def test_filter_dies(bin_dir):
    """Killed before the source dials: another takes its place. Killed while memory flows: the move fails, and the guest runs on."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        pod = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        lab.nodes[0].shape(160)
        pod.ok("PUT", f"/v1/target/{uuid.uuid4()}", {"vmi": guest})
        old = filter_of(pod)
        os.kill(old[0], signal.SIGKILL)
        labs.wait_for("another filter", lambda: pod.children("ferry-rpc-filter") not in ([], old))
        pod.end()
        target, m = labs.move(lab, guest, source, 1)
        labs.wait_for("the filter to go", lambda: not target.children("ferry-rpc-filter"))
        assert not os.path.exists(os.path.join(target.dir, "libvirt/control.sock"))
        assert m.phase(target) == "succeeded"
    with labs.lab(bin_dir) as lab:
        source, pod, m = begin(lab)
        m.wait_bytes(1 << 20)
        os.kill(filter_of(pod)[0], signal.SIGKILL)
        assert m.settle()[0] == "failed", source.migration()
        lab.check_guest(source)
        print(source.migration()["reasonCode"], source.migration()["failureReason"])


def test_filter_dies_in_post_copy(bin_dir):
    """The guest runs on the target by then, and gets the rest of its memory, as when a relay dies."""
    with labs.lab(bin_dir) as lab:
        source, pod, m = begin(lab, {"allowPostCopy": True, "allowWorkloadDisruption": True})
        labs.wait_for("the guest to run on the target", lambda: pod.status()["domain"]["reason"].startswith("postcopy"), 60)
        os.kill(filter_of(pod)[0], signal.SIGKILL)
        lab.nodes[0].shape(None)
        m.settle(120)
        lab.check_guest(pod)
        print(m.phase(source), m.phase(pod), source.status())


def test_launcher_dies(bin_dir):
    """The filter serves its connection to the end without the launcher, and the next launcher has one of its own."""
    with labs.lab(bin_dir) as lab:
        source, pod, m = begin(lab)
        m.wait_bytes(1 << 20)
        old = filter_of(pod)
        pod.kill("ferry-launcher")
        pod.wait_ready()
        assert old[0] in pod.children("ferry-rpc-filter"), "the connection of the move died with the launcher"
        lab.nodes[0].shape(None)
        assert m.wait_end() == ("succeeded", "succeeded"), source.migration()
        lab.check_guest(pod)
        labs.wait_for("the filters to go", lambda: not pod.children("ferry-rpc-filter"))


def calls(target, name):
    """Milliseconds that each of fifty small calls takes."""
    client = target.connect(name=name)
    took = []
    for _ in range(50):
        begun = time.monotonic()
        assert client.call(wire.FEATURE, struct.pack(">i", 4))[0] == 0
        took.append((time.monotonic() - begun) * 1000)
    client.close()
    return statistics.median(took)


def test_costs(bin_dir):
    """What the thirteen calls of a move take longer than without the filter. With sanitizers, so that it is more than in a release."""
    with target_of(bin_dir) as (_, target):
        direct, filtered = calls(target, "libvirt-sock"), calls(target, "control.sock")
        more = 13 * (filtered - direct)
        print(f"a call: {direct:.3f} ms direct, {filtered:.3f} ms through the filter: {filtered / direct:.2f} times; "
              f"thirteen of them {more:.2f} ms more")
        assert more < 5, more


scenario.need_root()
scenario.main(globals())
