#!/usr/bin/env python3
"""ferry-pods with a real API server and real sandboxes: life and death of pods, adoption, refusals."""
import base64
import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

from host import NODE, RELAY, VM, ferrysite, mode, program, run, wait_for


def waits_for_the_api(host):
    """An API server that is not there: it says so and waits; SIGTERM ends it cleanly."""
    other = os.path.join(host.base, "nowhere")
    text = open(host.kubeconfig).read()
    with open(other, "w") as f:
        f.write(re.sub(r"(https://127\.0\.0\.1):\d+", rf"\1:{ferrysite.free_port()}", text))
    log = os.path.join(host.base, "waiting.log")
    with open(log, "w") as f:
        agent = subprocess.Popen([program("ferry-pods"), "--node", NODE, "--root", host.base + "/elsewhere", "--kubeconfig",
                                  other, "--launcher", host.launcher], stderr=f)
    try:
        wait_for("it to say what it waits for", lambda: "API server unreachable" in open(log).read())
        agent.terminate()
        assert agent.wait(30) == 0
    finally:
        agent.kill()
        agent.wait()


def runs_and_is_told(host):
    uid = host.create("first", "word")
    host.wait_phase("first", "Running")
    status = host.wait_ready("first", True)
    [container] = status["containerStatuses"]
    assert container["name"] == "compute" and container["ready"] and "running" in container["state"], container
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {t: "True" for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")}, conditions
    assert status["startTime"]

    d = host.dir(uid)
    for name, expected in {"": (0o711, 0, 0), "m": (0o2770, VM, RELAY), "libvirt": (0o2770, VM, RELAY),
                           "console": (0o2770, VM, RELAY), "console/serial.log": (0o640, VM, RELAY),
                           "state": (0o700, VM, VM), "home": (0o700, VM, VM), "launcher.sock": (0o600, 0, 0),
                           "exit": (0o600, 0, 0), "out/log": (0o600, 0, 0), "sandbox.json": (0o600, 0, 0)}.items():
        assert mode(os.path.join(d, name)) == expected, (name, [oct(x) for x in mode(os.path.join(d, name))])

    assert os.readlink(os.path.join(d, "log")) == "out/log" and "stand-in started" in open(os.path.join(d, "log")).read()

    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["args"][:3] == ["--name", "first", "word"], seen["args"]
    assert (seen["uid"], seen["gid"], seen["groups"]) in ((VM, VM, []), (VM, VM, [VM])), seen
    assert set(seen["caps"]) == {"0000000000000000"} and seen["noNewPrivs"] == "1" and seen["seccomp"] == "2", seen
    assert seen["users"] == [[str(VM), str(VM), "1"]] * 2, "a user namespace with nobody else in it"
    assert seen["ppid"] == 1 and seen["hostname"] == "first", seen
    assert seen["interfaces"] == ["lo"], seen["interfaces"]
    assert os.stat(d + "/netns").st_ino == os.stat(f"/proc/{host.sandbox(uid)[0]}/ns/net").st_ino
    lo = subprocess.run(["nsenter", "--net=" + d + "/netns", "ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert len(lo.splitlines()) == 1 and ",UP" in lo, lo
    assert set(seen["processes"]) == {1, seen["pid"]}, seen["processes"]
    given = int(seen["env"]["LISTEN_FDS"])
    assert given in (3, 4) and seen["descriptors"] == list(range(3 + given)), "and one more where the kernel counts what it kills"
    assert "kvm" not in seen["dev"], seen["dev"]
    assert "userfaultfd" not in seen["dev"], "only a move that comes in needs it"
    home = "/var/run/ferry-home"
    assert seen["writable"] == ["/tmp", "/var/run/kubevirt/migrationproxy", "/var/run/ferry-libvirt",
                                "/var/run/ferry-console", "/var/run/ferry-state", home, home + "/rt", home + "/config",
                                home + "/cache", home + "/data"], seen["writable"]
    assert seen["env"]["HOME"] == home, seen["env"]
    assert "FERRY_BUILD" not in seen["env"], "the agent's environment leaked"
    return uid


def mounts_volumes(host):
    """Empty and host directories, a claim once it is bound; each only where the pod asks for it."""
    old = os.path.join(host.root, "data/old")
    os.makedirs(old)
    with open(old + "/disk.img", "w") as f:
        f.write("x")
    uid = host.create("disks", mounts=("empty", "made", "old", "claimed"), volumes=[
        {"name": "empty", "emptyDir": {}}, {"name": "old", "hostPath": {"path": "/data/old"}},
        {"name": "made", "hostPath": {"path": "/data/made", "type": "DirectoryOrCreate"}},
        {"name": "claimed", "persistentVolumeClaim": {"claimName": "claim"}}])
    wait_for("the missing claim to be told", lambda: any(
        e["reason"] == "FailedMount" and "no claim 'claim'" in e["message"] for e in host.api.list("events")), 60)
    path = os.path.join(host.root, "data/pv")
    os.makedirs(path)
    host.api.create("persistentvolumes", {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                 "hostPath": {"path": "/data/pv"}}})
    host.api.create("persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                 "resources": {"requests": {"storage": "1Gi"}}}})
    host.wait_phase("disks", "Running", 90)
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["disks"] == {"empty": {"writable": True, "image": False}, "made": {"writable": True, "image": False},
                             "old": {"writable": False, "image": True}, "claimed": {"writable": True, "image": False}}, seen["disks"]
    assert mode(old + "/disk.img")[1:] == (VM, VM) and mode(old)[1:] == (0, 0)
    host.delete("disks")
    host.wait_gone("disks", uid)
    with open("/proc/self/mounts") as f:
        assert uid not in f.read()
    assert os.path.exists(old + "/disk.img") and os.path.exists(os.path.join(host.root, "data/made"))


def shows_config_maps_and_secrets(host):
    """As files of the pod's user alone; what is missing is waited for unless it is optional; the bytes are nowhere else."""
    secret, blob = "hidden-7d1c", bytes(range(256))
    node = ferrysite.Api(host.kubeconfig)

    def read(what):
        return node.call("GET", "/api/v1/namespaces/default/" + what)[0]

    def told(words):
        return any(e["reason"] == "FailedMount" and words in e["message"] for e in host.api.list("events"))

    host.api.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "foreign"}, "stringData": {"a": "b"}})
    assert read("secrets/foreign") == read("secrets/seed") == read("configmaps/map") == 403
    uid = host.create("seeded", files=("config-map/plain", "secret/some", "secret/none", "secret/part"), volumes=[
        {"name": "plain", "configMap": {"name": "map"}},
        {"name": "some", "secret": {"secretName": "seed", "items": [{"key": "user", "path": "userdata"}]}},
        {"name": "none", "secret": {"secretName": "absent", "optional": True}},
        {"name": "part", "secret": {"secretName": "seed", "optional": True, "items": [{"key": "nothing", "path": "x"}]}}])
    wait_for("the missing config map to be told", lambda: told("configmap 'map' not found"), 60)
    assert host.pod("seeded")["status"]["phase"] == "Pending"
    host.api.create("configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"text": "line\n", "empty": ""},
        "binaryData": {"blob": base64.b64encode(blob).decode()}})
    host.api.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "seed"}, "stringData": {"other": "x"}})
    wait_for("the missing key to be told", lambda: told("non-existent key 'user'"), 60)
    assert host.api.call("PATCH", host.api.path("secrets", "seed"), {"stringData": {"user": secret}},
                         content_type="application/merge-patch+json")[0] == 200
    host.wait_phase("seeded", "Running", 90)
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))["files"]
    owned = {"mode": "0o400", "uid": VM}
    assert seen == {
        "config-map/plain": {"writable": False, "files": {
            "text": {**owned, "bytes": b"line\n".hex()}, "empty": {**owned, "bytes": ""}, "blob": {**owned, "bytes": blob.hex()}}},
        "secret/some": {"writable": False, "files": {"userdata": {**owned, "bytes": secret.encode().hex()}}},
        "secret/none": {"writable": False, "files": {}}, "secret/part": {"writable": False, "files": {}}}, seen
    assert mode(host.dir(uid) + "/files/some")[:2] == (0o500, VM)
    assert read("secrets/seed") == read("configmaps/map") == 200 and read("secrets/absent") == 404
    assert read("secrets") == read("configmaps") == read("secrets/foreign") == 403
    found = subprocess.run(["grep", "-rl", "-e", secret, "-e", base64.b64encode(secret.encode()).decode(), host.root, host.base + "/log"],
                           capture_output=True, text=True, check=False).stdout.split()
    assert found == [host.dir(uid) + "/files/some/userdata"], found
    host.delete("seeded")
    host.wait_gone("seeded", uid)
    assert not os.path.exists(host.dir(uid)) and read("secrets/seed") == 403


def is_isolated():
    """In mounts of its own (scripts/isolated): /dev may be replaced."""
    with open("/proc/mounts") as f:
        return any(line.startswith("run /run tmpfs") for line in f)


def fake_devices(host):
    """A /dev like the host's, but with a KVM and a vhost-net that are /dev/null."""
    copy = os.path.join(host.base, "dev")
    os.makedirs(copy)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "dev", copy], check=True)
    for entry in os.scandir("/dev"):
        to, info = os.path.join(copy, entry.name), entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), to)
        elif entry.is_dir():
            os.mkdir(to)
            subprocess.run(["mount", "--rbind", entry.path, to], check=True)
        elif (stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode)) and entry.name not in ("kvm", "vhost-net"):
            os.mknod(to, info.st_mode, info.st_rdev)
            os.chmod(to, stat.S_IMODE(info.st_mode))
    if os.path.ismount(f"{copy}/ferry") or os.path.isdir(f"{copy}/ferry"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700", "ferry", f"{copy}/ferry"], check=True)  # copies of others' agents
    for name in ("kvm", "vhost-net"):
        os.mknod(f"{copy}/{name}", stat.S_IFCHR | 0o600, os.stat("/dev/null").st_rdev)
    subprocess.run(["mount", "--rbind", copy, "/dev"], check=True)


def gives_kvm(host):
    """To whoever asks for it, with vhost-net; what it is made of is the host's node."""
    uid = host.create_and_wait("fast", resources={"limits": {"devices.kubevirt.io/kvm": "1"}})
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert {"kvm", "vhost-net"} <= set(seen["dev"]), seen["dev"]
    assert os.stat("/dev/ferry/kvm").st_rdev == os.stat("/dev/null").st_rdev
    host.delete("fast")
    host.wait_gone("fast", uid)


def gives_devices(host):
    """VFIO groups that are asked for, as devices that the pod's user can open; nothing of it else. The nodes are stand-ins of
    the same kind; vhost-net is given where the host has it."""
    vfio, null = os.path.join(host.root, "dev/vfio"), os.stat("/dev/null").st_rdev
    os.makedirs(vfio)
    for name in ("vfio", "12", "13"):
        os.mknod(f"{vfio}/{name}", stat.S_IFCHR | 0o600, null)
    asked = {"limits": {"devices.kubevirt.io/vhost-net": "1"}}
    uid = host.create_and_wait("devices", devices=("/dev/vfio/12",), resources=asked, volumes=[
        {"name": "12", "hostPath": {"path": "/dev/vfio/12", "type": "CharDevice"}}])
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["vfio"] == {"vfio": [null, True], "12": [null, True]}, seen["vfio"]
    assert ("vhost-net" in seen["dev"]) == os.path.exists("/dev/vhost-net"), seen["dev"]
    assert not [n for n in os.listdir("/dev/ferry") if uid in n]
    host.delete("devices")
    host.wait_gone("devices", uid)
    uid = host.create_and_wait("plain")
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["vfio"] is None and "vhost-net" not in seen["dev"], seen["dev"]
    host.delete("plain")
    host.wait_gone("plain", uid)
    uid = host.create("none", devices=("/dev/vfio/99",), volumes=[
        {"name": "99", "hostPath": {"path": "/dev/vfio/99", "type": "CharDevice"}}])
    wait_for("the missing group to be told", lambda: any(
        e["reason"] == "FailedMount" and "/dev/vfio/99 is not a character device" in e["message"] for e in host.api.list("events")), 60)
    host.delete("none")
    host.wait_gone("none", uid)


def survives_its_launcher(host, uid):
    before, _ = host.sandbox(uid)
    inner = host.ask(uid)["pid"]
    [launcher] = [p for p in host.inside(uid) if p != before]
    os.kill(launcher, signal.SIGKILL)
    after = wait_for("a new launcher", lambda: (a := host.ask(uid)) and a["pid"] != inner and a)
    assert after["ppid"] == 1
    assert host.sandbox(uid)[0] == before and host.pod("first")["status"]["phase"] == "Running"
    host.ask(uid, "exit 3")  # an exit code other than 0 is a death as well
    wait_for("yet another launcher", lambda: (a := host.ask(uid)) and a["pid"] not in (inner, after["pid"]))


def is_ready_while_its_launcher_answers(host, uid):
    """As with kubelet's readiness probe: ready with the first good answer, not ready after three bad ones, and Running all the while;
    an agent that is restarted keeps to what was said before."""
    host.ask(uid, "unready")
    status = host.wait_ready("first", False)
    [container] = status["containerStatuses"]
    assert status["phase"] == "Running" and container["started"] and "running" in container["state"], status
    [ready] = [c for c in status["conditions"] if c["type"] == "Ready"]
    assert ready["reason"] == "ContainersNotReady", ready
    host.ask(uid, "ready")
    status = host.wait_ready("first", True)
    since = [c["lastTransitionTime"] for c in status["conditions"] if c["type"] == "Ready"]
    assert host.end_agent(signal.SIGTERM) == 0
    host.start_agent()
    other = host.create("other")
    host.wait_ready("other", True)
    assert since == [c["lastTransitionTime"] for c in host.pod("first")["status"]["conditions"] if c["type"] == "Ready"]
    host.delete("other", grace=0)
    host.wait_gone("other", other)


def survives_the_agent(host, uid):
    identity, launcher = host.sandbox(uid), host.ask(uid)["pid"]
    host.end_agent(signal.SIGKILL)
    assert host.ask(uid)["pid"] == launcher, "the sandbox went with the agent"
    gone = host.create("while-away")
    orphan = host.create("orphan")
    host.start_agent()
    host.wait_phase("while-away", "Running")
    host.wait_phase("orphan", "Running")
    assert host.sandbox(uid) == identity and host.ask(uid)["pid"] == launcher, "not adopted"
    assert host.end_agent(signal.SIGTERM) == 0
    assert host.ask(uid)["pid"] == launcher
    # The object goes while nobody looks; its end, too.
    host.delete("orphan", grace=0)
    wait_for("the object to go", lambda: host.pod("orphan") is None)
    time.sleep(1)  # its end is told to the second
    killed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    os.kill(host.sandbox(gone)[0], signal.SIGKILL)
    host.start_agent()
    pod = host.wait_phase("while-away", "Failed")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert terminated["exitCode"] == 137 and terminated["finishedAt"] >= killed, (terminated, killed)
    wait_for("the orphan to be ended", lambda: not os.path.exists(host.dir(orphan)))
    host.delete("while-away")
    host.wait_gone("while-away", gone)
    assert host.pod("first")["status"]["phase"] == "Running"


def stops_when_deleted(host, uid):
    inside = host.inside(uid)
    host.delete("first")
    host.wait_gone("first", uid)
    assert not [p for p in inside if os.path.exists(f"/proc/{p}")]


def kills_what_does_not_stop(host):
    uid = host.create("stubborn", "stubborn", grace=2)
    host.wait_phase("stubborn", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(uid))
    started = time.monotonic()
    inside = host.inside(uid)
    host.delete("stubborn")
    asked = wait_for("it to be asked", lambda: os.path.exists(host.dir(uid) + "/stop") and os.stat(host.dir(uid) + "/stop"))
    host.end_agent(signal.SIGKILL)
    assert os.stat(host.dir(uid) + "/stop").st_mtime_ns == asked.st_mtime_ns
    host.start_agent()  # which goes on counting
    host.wait_gone("stubborn", uid)
    assert time.monotonic() - started >= 1.5, "no grace was given"
    assert not [p for p in inside if os.path.exists(f"/proc/{p}")]


def is_deleted_with_less_grace(host):
    """What the deletion says counts, not what the pod says."""
    uid = host.create("patient", "stubborn", grace=600)
    host.wait_phase("patient", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(uid))
    host.delete("patient", grace=1)
    host.wait_gone("patient", uid, 60)


def does_without_user_namespaces(host):
    """The host forbids them, here as a filter does: a pod runs as before, and both logs say so once."""
    host.end_agent(signal.SIGTERM)
    refuse = ("import ctypes,os,sys; l=ctypes.CDLL('libseccomp.so.2'); l.seccomp_init.restype=ctypes.c_void_p; c=ctypes.c_void_p(l.seccomp_init(0x7fff0000));"
              "sys.path.insert(0,sys.argv[1]); import unitbox as u;"
              "u.namespaces(l,set(u.CLONE)-{'user'}).load(); os.execv(sys.argv[2],sys.argv[2:])")
    host.start_agent(wrapper=(sys.executable, "-c", refuse, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")))
    uid = host.create_and_wait("mapped")
    seen = wait_for("the stand-in to answer", lambda: host.ask(uid))
    assert seen["users"] == [["0", "0", "4294967295"]] * 2 and seen["uid"] == VM, seen
    assert set(seen["caps"]) == {"0000000000000000"} and seen["noNewPrivs"] == "1" and seen["seccomp"] == "2", seen
    assert open(os.path.join(host.dir(uid), "log")).read().count("no user namespace here") == 1
    with open(os.path.join(host.base, "log")) as f:
        text = f.read()
    assert text.count("guests have no user namespaces of their own") == 1, text
    assert text.count("guests have user namespaces of their own") > 0, text
    host.delete("mapped", grace=0)
    host.wait_gone("mapped", uid)
    host.end_agent(signal.SIGTERM)
    host.start_agent()


def is_made_anew_meanwhile(host):
    """While nobody looks a pod is deleted and another of its name is made: the one ends, the other runs."""
    old = host.create_and_wait("twin")
    wait_for("the stand-in to answer", lambda: host.ask(old))
    inside = host.inside(old)
    host.end_agent(signal.SIGKILL)
    host.delete("twin", grace=0)
    wait_for("the object to go", lambda: host.pod("twin") is None)
    new = host.create("twin")
    host.start_agent()
    host.wait_phase("twin", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(new))
    wait_for("the old one to end", lambda: not os.path.exists(host.dir(old)) and not [p for p in inside if os.path.exists(f"/proc/{p}")], 60)
    assert host.pod("twin")["metadata"]["uid"] == new and host.ask(new)
    host.delete("twin")
    host.wait_gone("twin", new)


def reports_how_it_ended(host):
    uid = host.create("ends")
    host.wait_phase("ends", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(uid))
    host.ask(uid, "exit 0")
    pod = host.wait_phase("ends", "Succeeded")
    [container] = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 0 and not container["ready"], container
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]}["Ready"] == "False"
    assert os.path.exists(host.dir(uid)), "what is left of a pod stays until its object goes"
    host.delete("ends")
    host.wait_gone("ends", uid)


def refuses_by_name(host):
    uid = host.create("web", hostNetwork=True)
    pod = host.wait_phase("web", "Failed")
    assert pod["status"]["reason"] == "UnsupportedPod" and "hostNetwork" in pod["status"]["message"], pod["status"]
    assert not os.path.exists(host.dir(uid))
    host.delete("web")
    host.wait_gone("web", uid)


def tries_again_to_start(host):
    hidden = host.launcher + ".away"
    os.rename(host.launcher, hidden)
    uid = host.create("later")
    wait_for("the reason why it does not start",
             lambda: "standin" in (host.pod("later").get("status") or {}).get("message", ""))
    state = host.pod("later")["status"]["containerStatuses"][0]["state"]
    assert state["waiting"]["reason"] == "CreateContainerError", state
    os.rename(hidden, host.launcher)
    pod = host.wait_phase("later", "Running")
    assert "message" not in pod["status"], pod["status"]
    host.delete("later")
    host.wait_gone("later", uid)


def lives_with_a_full_disk(host):
    """The directory of the pods is full: a pod waits and says why, one that runs ends and goes; with space again all goes on."""
    assert host.end_agent(signal.SIGTERM) == 0
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0711", "ferry-test", host.pods_dir], check=True)
    try:
        host.start_agent()
        ran = host.create_and_wait("ran")
        wait_for("the stand-in to answer", lambda: host.ask(ran))
        filler = os.path.join(host.pods_dir, ".filler")
        with open(filler, "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(b"x" * 4096):
                pass
        waits = host.create("waits")
        wait_for("the reason why it does not start",
                 lambda: "No space left" in ((host.pod("waits") or {}).get("status") or {}).get("message", ""), 60)
        assert host.pod("waits")["status"]["phase"] == "Pending"
        host.delete("ran")
        host.wait_gone("ran", ran)
        os.unlink(filler)
        host.wait_phase("waits", "Running", 60)
        wait_for("the stand-in to answer", lambda: host.ask(waits))
        host.delete("waits")
        host.wait_gone("waits", waits)
        assert host.end_agent(signal.SIGTERM) == 0
    finally:
        subprocess.run(["umount", "-l", host.pods_dir], check=False)
    host.start_agent()


def one_sentence_each(host):
    """Wrong calls."""
    for argv, code, words in (
            ([], 2, "--node is missing"),
            (["--node", NODE, "extra"], 2, "unexpected argument 'extra'"),
            (["--node", NODE, "--root", "relative"], 2, "not an absolute path"),
            (["--node", NODE, "--root", host.root, "--launcher", host.launcher], 1, "another ferry-pods"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", "/nonexistent"], 1, "/nonexistent cannot be run"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", host.launcher], 1, "node.kubeconfig"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", host.launcher, "--vm-user", "0:0"], 1, "say 'root'"),
            (["--node", NODE, "--root", host.base + "/e", "--launcher", host.launcher, "--guest-dir", "/nonexistent"], 1,
             "--guest-dir")):
        done = subprocess.run([program("ferry-pods"), *argv], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and words in done.stderr, (argv, done)
        assert done.stderr.count("\n") == 1, done.stderr
    shutil.copy(program("ferry-pods"), host.base)
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", host.base + "/ferry-pods",
                           "--node", NODE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "needs root" in done.stderr, done


def story(host):
    waits_for_the_api(host)
    if is_isolated():
        fake_devices(host)
    host.start_agent()
    uid = runs_and_is_told(host)
    mounts_volumes(host)
    shows_config_maps_and_secrets(host)
    gives_devices(host)
    if is_isolated():
        gives_kvm(host)
    survives_its_launcher(host, uid)
    is_ready_while_its_launcher_answers(host, uid)
    survives_the_agent(host, uid)
    stops_when_deleted(host, uid)
    kills_what_does_not_stop(host)
    is_deleted_with_less_grace(host)
    does_without_user_namespaces(host)
    is_made_anew_meanwhile(host)
    reports_how_it_ended(host)
    refuses_by_name(host)
    tries_again_to_start(host)
    lives_with_a_full_disk(host)
    one_sentence_each(host)
    assert host.end_agent(signal.SIGTERM) == 0


run(story)
