#!/usr/bin/env python3
"""Launchers and libvirtds die at bad moments; the guest runs on, in one place, with all of its memory.
Numbers of cases are items of docs/conformance.md."""
import contextlib
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20
SLOW = {"bandwidthBytesPerS": 8 * MIB}  # about 3 s for the guest's 24 MiB of noise


def begin(lab, guest, source, options=None):
    """A move that is under way: (target pod, move)."""
    target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    m = labs.Move(lab, guest, source, target, options or SLOW)
    m.wait_bytes(MIB)
    return target, m


def guests(pod):
    """QEMUs with a guest: libvirtd may ask others what they can do at any time."""
    found = []
    for pid in pod.children("qemu-system"):
        with contextlib.suppress(OSError):
            if "guest=" in open(f"/proc/{pid}/cmdline").read():
                found.append(pid)
    return found


def test_launcher_dies_while_idle(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        daemon = pod.children("libvirtd")
        for _ in range(2):
            pod.kill("ferry-launcher")
            pod.wait_ready()
            lab.check_guest(pod)
            assert pod.ok("PUT", "/v1/vm", {"vmi": guest})["domain"]["state"] == "running"
        assert pod.children("libvirtd") == daemon, "libvirtd was not adopted"
        assert len(guests(pod)) == 1
        second, _ = labs.move(lab, guest, pod, 1)
        pod.end()
        second.end()


def test_a_move_that_could_not_begin_begins_later(bin_dir):
    """The gate cannot be closed: the call fails, nothing has begun, and the same call works once it can be."""
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        gate = os.path.join(pod.dir, "state/gate")
        os.rename(gate, gate + ".away")
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        try:
            m = labs.Move(lab, guest, pod, target)
        except AssertionError as e:
            m = lab.moves[-1]
            assert "gate" in str(e), e
        else:
            raise AssertionError("a move began behind a gate that is open")
        assert "phase" not in pod.migration(), pod.migration()
        lab.check_guest(pod)
        os.rename(gate + ".away", gate)
        pod.ok("PUT", f"/v1/migrations/{m.uid}", {"vmi": guest, "options": {}})
        assert m.wait_end() == ("succeeded", "succeeded"), pod.migration()
        lab.check_guest(target)
        pod.end()
        target.end()


def test_libvirtd_dies_while_idle(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        qemu = guests(pod)
        pod.kill("libvirtd")
        pod.wait_ready()
        lab.check_guest(pod)
        assert guests(pod) == qemu and len(qemu) == 1, qemu
        second, _ = labs.move(lab, guest, pod, 1)
        pod.end()
        second.kill("libvirtd")
        second.wait_ready()
        lab.check_guest(second)
        second.end()


# nsenter's own way to be somebody in a user namespace wants to give groups up, which is not to be had there.
AS_A_GUEST = """
import ctypes, os, sys
CLONE_NEWUSER = 0x10000000
user = int(sys.argv[1])
assert ctypes.CDLL(None).setns(os.open("/proc/1/ns/user", os.O_RDONLY), CLONE_NEWUSER) == 0
os.setresgid(user, user, user)
os.setresuid(user, user, user)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def test_orphans_of_libvirtd(bin_dir):
    """A QEMU that libvirtd started only to ask what it can do, and that outlived it, ends when the next one starts; the guest's does not."""
    with labs.lab(bin_dir) as lab:
        _, pod = labs.start(lab)
        probe = "/var/run/ferry-home/config/libvirt/qemu/lib/qmp-orphan"
        inside = ["nsenter", "-t", str(pod.pid1), "-m", "-p", "-n", "/usr/bin/python3", "-c", AS_A_GUEST, str(labs.VM_USER)]
        subprocess.run(inside + ["mkdir", "-p", probe], check=True)
        subprocess.run(inside + ["qemu-system-x86_64", "-S", "-nodefaults", "-nographic", "-machine", "none", "-daemonize",
                                 "-qmp", f"unix:{probe}/qmp.monitor,server=on,wait=off"], check=True)
        orphan = next(p for p in pod.children("qemu-system") if "qmp-orphan" in open(f"/proc/{p}/cmdline").read())
        pod.kill("libvirtd")
        pod.wait_ready()
        labs.wait_for("the end of the orphan", lambda: orphan not in pod.children("qemu-system"))
        lab.check_guest(pod)
        pod.end()


def test_source_launcher_dies_during_a_move(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source)
        source.kill("ferry-launcher")
        source.wait_ready()
        assert m.wait_end() == ("succeeded", "succeeded")
        lab.check_guest(target)
        status = source.status()
        assert status["domain"] == {"state": "shutoff", "reason": "migrated"}, status
        assert '"type":"reattach"' in source.ok("GET", f"/v1/records/{m.uid}")
        assert source.call("PUT", f"/v1/migrations/{m.uid}", {"vmi": guest})[0] == 409
        m.close()
        source.end()
        target.end()


def test_source_launcher_dies_and_the_move_is_cancelled(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source, {"bandwidthBytesPerS": 2 * MIB})
        source.kill("ferry-launcher")
        source.wait_ready()
        assert m.phase(source) == "running", source.migration()
        source.ok("POST", f"/v1/migrations/{m.uid}/cancel")
        assert m.wait_end() == ("failed", "failed")
        assert source.migration()["reasonCode"] == "Aborted", source.migration()
        lab.check_guest(source)
        m.close()
        target.end()
        source.end()


def test_both_launchers_die_and_come_back_too_late(bin_dir):
    """They are held back until the move is over: its result is found from the domains alone."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source)
        for pod in (source, target):  # PID 1 stands still, so nobody starts them again
            os.kill(pod.pid1, signal.SIGSTOP)
            os.kill(pod.children("ferry-launcher")[0], signal.SIGKILL)
        try:
            labs.wait_for("the guest's arrival", lambda: target.uid in lab.monitor.current_log())
            time.sleep(1)  # libvirt's last words
        finally:
            for pod in (source, target):
                os.kill(pod.pid1, signal.SIGCONT)
        for pod in (source, target):
            pod.wait_ready()
        assert m.wait_end() == ("succeeded", "succeeded")
        # The downtime is libvirt's to tell; a launcher that was not there may ask too late.
        lab.check_guest(target)
        m.close()
        source.end()
        target.end()


def test_target_launcher_dies_during_a_move(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source)
        target.kill("ferry-launcher")
        target.wait_ready()
        assert m.wait_end() == ("succeeded", "succeeded")
        lab.check_guest(target)
        target.ok("POST", f"/v1/migrations/{m.uid}/finalize")
        m.close()
        source.end()
        target.end()


def test_source_libvirtd_dies_during_a_move(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source)
        source.kill("libvirtd")
        assert m.wait_end() == ("failed", "failed")
        assert source.migration()["reasonCode"] == "LibvirtError", source.migration()
        lab.check_guest(source)
        m.close()
        assert target.left_in_m() == [], target.left_in_m()
        target.end()
        second, _ = labs.move(lab, guest, source, 1)
        source.end()
        second.end()


def test_target_libvirtd_dies_during_a_move(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source)
        target.kill("libvirtd")
        assert m.wait_end() == ("failed", "failed")
        lab.check_guest(source)
        m.close()
        assert target.left_in_m() == [], target.left_in_m()
        target.end()
        source.end()


def test_relay_dies_during_a_move(bin_dir):
    """165, 316: a move that fails says so, with libvirt's words and its end."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source)
        lab.nodes[1].relay.kill()
        lab.nodes[1].relay.wait()
        assert m.wait_end() == ("failed", "failed")
        ended = source.migration()
        assert ended["endTimestamp"] and ended["failureReason"] and ended["reasonCode"] == "LibvirtError", ended
        lab.check_guest(source)
        source.end()
        target.end()


def test_relays_are_upgraded_during_a_move(bin_dir):
    """Both at once, again and again while memory flows: the guest arrives whole, and nothing was tried again."""
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        m = labs.Move(lab, guest, source, target, {"bandwidthBytesPerS": 4 * MIB}, tls="ferry")
        for more in range(1, 4):
            m.wait_bytes(more * MIB)
            for node, old in [(n, n.begin_upgrade()) for n in lab.nodes]:
                node.wait_upgrade(old)
            assert m.phase(source) == "running", source.migration()
        assert m.wait_end() == ("succeeded", "succeeded")
        lab.check_guest(target)
        m.close()
        for node in lab.nodes:
            log = open(os.path.join(node.root, "relay.log"), errors="replace").read()
            assert log.count("takes over") == 3 and "channel=49152" in log, log
            assert "stream resumed" in log and " error " not in log, log
        source.end()
        target.end()


def test_stop(bin_dir):
    """SIGTERM: by the power button; a guest that does not listen is ended when its grace is over."""
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        lab.testpod("signal", pod.node.root, pod.uid, str(int(signal.SIGTERM)))
        labs.wait_for("the end of the sandbox", lambda: not pod.alive(), 8)
        assert open(os.path.join(pod.dir, "exit")).read() == "0\n"
        assert any(text == "BYE" for _, _, text in lab.monitor.lines), "the guest was not shut down"
        pod.remove()
        guest, pod = labs.start(lab, args="ws=4 hb=20 acpi=off", grace=2)
        begun = time.monotonic()
        lab.testpod("signal", pod.node.root, pod.uid, str(int(signal.SIGTERM)))
        labs.wait_for("the end of the sandbox", lambda: not pod.alive(), 20)
        assert time.monotonic() - begun > 1.5, "the grace period was not kept"
        assert open(os.path.join(pod.dir, "exit")).read() == "0\n"
        pod.remove()


def test_stop_during_a_move(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        target, m = begin(lab, guest, source, {"bandwidthBytesPerS": 2 * MIB})
        source.end(10)
        labs.wait_for("the target to notice", lambda: m.phase(target) == "failed")
        assert target.domain() == "none"
        target.end()


def test_guest_ends_by_itself(bin_dir):
    """The launcher stays to tell how it was, until it is told to go."""
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab, args="ws=4 hb=20 poweroff=2")
        labs.wait_for("the guest to power off", lambda: pod.domain() == "shutoff", 20)
        assert pod.status()["domain"]["reason"] == "shutdown"
        pod.kill("ferry-launcher")
        pod.wait_ready()
        answer = pod.ok("PUT", "/v1/vm", {"vmi": guest})
        assert answer["domain"]["state"] == "shutoff", "a guest that ended was started again"
        pod.end()
        guest, pod = labs.start(lab)
        pod.kill("qemu-system")
        labs.wait_for("the crash to be noticed", lambda: pod.domain() == "crashed", 20)
        pod.end()


def test_paused_guest_stays_paused(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, source = labs.start(lab)
        name = f"default_{guest['metadata']['name']}"

        def virsh(pod, verb):
            subprocess.run(["virsh", "-q", "-c", f"qemu+unix:///session?socket={pod.dir}/libvirt/libvirt-sock", verb,
                            name], check=True, stdout=subprocess.DEVNULL)

        virsh(source, "suspend")
        labs.wait_for("the pause", lambda: source.domain() == "paused")
        target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
        m = labs.Move(lab, guest, source, target)
        assert m.wait_end() == ("succeeded", "succeeded")
        assert target.status()["domain"] == {"state": "paused", "reason": "user"}, target.status()
        virsh(target, "resume")
        lab.check_guest(target)
        m.close()
        source.end()
        target.end()


scenario.need_root()
scenario.main(globals())
