#!/usr/bin/env python3
"""A site of the version before (tests/compat/version, which is older than users, encrypted Secrets, roles and confined units), made by its
own `ferry up`, is upgraded program by program in the order of docs/upgrading.md while its VM runs. What is started anew is confined as
its unit says. The guest does not notice, keeps the user that all guests had, and moves; what starts afterwards has a user of its own
and is given its image. No object is lost, the database is closed, Secrets in it are encrypted, and who had rights has them still."""
import base64
import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
import unitbox
from boxedsite import Box
from ferrysite import wait_for
from versions import Mixed, move, old_programs

NODES = ("node1", "node2")
COMMON, FIRST = 61201, 1879048192
# Each with the user that it has afterwards.
ORDER = (("ferry-relay", 61200, [n + "-relay" for n in NODES]), ("ferry-apiserver", 61202, ["api"]),
         ("ferry-controller", 61203, ["controller"]), ("ferry-pods", 0, [n + "-pods" for n in NODES]),
         ("ferry-handler", 0, [n + "-handler" for n in NODES]))
VMIS = "virtualmachineinstances"
SECRET = "a-password-that-nobody-else-reads"


class Confined(Mixed):
    def __init__(self, bin_dir, old):
        self.box = Box(os.path.join(os.path.realpath(os.path.join(bin_dir, "..")), "bin"), os.path.realpath(old))
        super().__init__(bin_dir, old)

    def lines_of_today(self, name, call):
        units = [f"ferry-{n}" for n in ("relay", "apiserver", "controller", "pods", "handler")]
        more = ("--launcher", os.path.join(self.today, "bin/ferry-launcher")) if name == "ferry-pods" else ()
        return self.box.lines(name, self.root, *more) if name in units else super().lines_of_today(name, call)

    def close(self, failed):
        super().close(failed)
        unitbox.forget_groups()

    def is_confined(self, name):
        """A filter of system calls, and no new privileges."""
        with open(f"/proc/{self.pid(name)}/status") as f:
            status = dict(line.split(":", 1) for line in f.read().splitlines())
        return status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1"


def guest(name):
    """With a disk that both nodes have."""
    boot = {"kernelArgs": "ws=4 rate=2 static=16 hb=20 fill=rand", "container": {"image": "ferry.io/builtin", "kernelPath": "/heartbeat.elf"}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 0, "domain": {
                "memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": boot},
                "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}},
                "volumes": [{"name": "data", "hostDisk": {"path": "/data/vm/disk.img", "type": "Disk", "shared": True}}]}}


def make_image(site):
    paths = [os.path.join(site.root, node, "data/vm/disk.img") for node in NODES]
    for path in paths:
        os.makedirs(os.path.dirname(path))
    with open(paths[0], "wb") as f:
        f.truncate(1 << 20)
    os.link(paths[0], paths[1])
    return paths[0]


def user_of(pid):
    return os.stat(f"/proc/{pid}").st_uid


def user_of_file(path):
    return os.stat(path).st_uid


def start(site):
    site.api.create(VMIS, guest("vm"))
    wait_for("the guest to run", lambda: (site.api.vmi("vm") or {}).get("status", {}).get("phase") == "Running", 120)
    return wait_for("QEMU", lambda: (site.qemus() or [0])[0])


# ---- what the site holds ----------------------------------------------------------------------------------------------------------


def objects(site):
    """The uid of every object, by kind and name; events and leases come and go."""
    found = {}
    groups = [g["preferredVersion"]["groupVersion"] for g in site.api.call("GET", "/apis")[1]["groups"]]
    for base in ["/api/v1"] + ["/apis/" + g for g in groups]:
        for resource in site.api.call("GET", base)[1]["resources"]:
            plural = resource["name"]
            if "list" in resource["verbs"] and plural not in ("events", "leases"):
                for item in site.api.call("GET", f"{base}/{plural}")[1]["items"]:
                    meta = item["metadata"]
                    found[plural, meta.get("namespace"), meta["name"]] = meta["uid"]
    return found


def data_files(site):
    data = os.path.dirname(site.kubeconfig)
    return [os.path.join(at, name) for at, _, names in os.walk(data) for name in names]


def is_on_disk(site, text):
    """As it is, or as the API has it."""
    forms = (text.encode(), base64.b64encode(text.encode()))
    return any(form in open(path, "rb").read() for path in data_files(site) for form in forms)


def by_token(site, token, method, plural, body=None):
    """The status that somebody gets who has this token."""
    context = ssl.create_default_context(cafile=os.path.join(os.path.dirname(site.kubeconfig), "ca/ca.crt"))
    connection = http.client.HTTPSConnection(site.api.host, site.api.port, context=context, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, site.api.path(plural), body and json.dumps(body),
                           {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        return connection.getresponse().status


class Before:
    """What a site of the version before has, and how it is kept there."""

    def __init__(self, site):
        self.site = site
        site.api.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}})
        site.api.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept"}, "stringData": {"word": SECRET}})
        self.viewer = subprocess.run([os.path.join(site.old, "bin/ferry-apiserver"), "token", "--user", "eve", "--group", "ferry:viewers",
                                      "--root", os.path.join(site.root, "api")],
                                     capture_output=True, text=True, check=True).stdout.strip()
        assert by_token(site, self.viewer, "GET", VMIS) == 200
        files = data_files(site)
        assert len(files) > 4 and {user_of_file(f) for f in files} == {0}, files
        database = os.path.join(os.path.dirname(site.kubeconfig), "api.db")
        assert os.stat(database).st_mode & 0o077 and is_on_disk(site, SECRET), "what is to be mended is there"
        self.objects = objects(site)

    def check_kept(self):
        now = objects(self.site)
        lost = {key for key, uid in self.objects.items() if now.get(key) != uid}
        assert len(self.objects) > 8 and not lost, lost
        assert self.site.api.get("configmaps", "kept")["data"] == {"a": "b"}
        assert self.site.api.get("secrets", "kept")["data"]["word"] == base64.b64encode(SECRET.encode()).decode()

    def check_closed(self):
        """Nothing in the API server's directory is anybody else's to read, but for what the controller needs; no Secret is in the clear."""
        for path in data_files(self.site):
            st = os.stat(path)
            wanted = 0o640 if path.endswith("/controller.kubeconfig") else 0o644 if path.endswith(".crt") else 0o600
            assert (st.st_uid, st.st_mode & 0o777 & ~wanted) == (61202, 0), (path, st)
        assert not is_on_disk(self.site, SECRET)

    def check_rights(self):
        """Who could read can, and no more until a binding says so."""
        site, body = self.site, {"metadata": {"name": "of-eve"}}
        assert by_token(site, self.viewer, "GET", VMIS) == 200 and by_token(site, self.viewer, "GET", "secrets") == 403
        assert by_token(site, self.viewer, "POST", "configmaps", body) == 403
        names = {key[2] for key in objects(site) if key[0] == "clusterroles"}
        assert {"view", "edit", "admin", "cluster-admin", "kubevirt.io:edit"} <= names, names
        status, answer = site.api.call("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
            "metadata": {"name": "eve"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]})
        assert status == 201, answer
        assert by_token(site, self.viewer, "POST", "configmaps", body) == 201


# ---- its upgrade ------------------------------------------------------------------------------------------------------------------


def upgrade(site, monitor):
    mark = monitor.mark()
    for program, uid, names in ORDER:
        site.upgrade(program, *names)
        for name in names:
            wait_for(f"{name} to be of user {uid}", lambda name=name, uid=uid: user_of(site.pid(name)) == uid, 20)
            assert site.is_confined(name), name
        monitor.wait_beats(5, 30)
    site.upgrade_command()
    assert monitor.broken_sequence(mark) == [], monitor.broken_sequence(mark)


def look_after(site, monitor):
    """Once a `ferry` of today looks after the site, and starts its programs anew."""
    mark = monitor.mark()
    site.kill("supervisor")
    site.up()
    for name, uid in (("api", 61202), ("controller", 61203)):
        site.wait_restarted(name, site.kill(name, signal.SIGTERM))
        wait_for(f"{name} to run", lambda name=name, uid=uid: site.program(name).startswith(site.today) and user_of(site.pid(name)) == uid, 60)
    wait_for("the objects", lambda: site.run("vm", "list").returncode == 0, 60)
    assert monitor.broken_sequence(mark) == [], monitor.broken_sequence(mark)


def test_a_running_site_is_upgraded(bin_dir):
    with Confined(bin_dir, old_programs()) as site:
        for program, _, names in ORDER:
            assert all(site.program(name).startswith(site.old) for name in names), program
        image = make_image(site)
        qemu = start(site)
        before = Before(site)
        monitor = site.monitor()
        try:
            monitor.wait_beats(10, 60)
            assert user_of(qemu) == os.stat(image).st_uid == COMMON
            here = site.node_of("vm")
            there = NODES[1 - NODES.index(here)]
            upgrade(site, monitor)
            assert site.qemus() == [qemu] and site.launchers_are_old(here)
            before.check_kept()
            before.check_closed()
            before.check_rights()
            wait_for("the nodes to be ready", lambda: site.run("migrate", "vm", "--to", there, "--dry-run").returncode == 0, 60)
            move(site, monitor, there)
            assert not site.launchers_are_old(there)
            assert user_of(site.qemus()[0]) == os.stat(image).st_uid == COMMON, "it keeps its user until it ends"
            look_after(site, monitor)
            before.check_closed()
            move(site, monitor, here)
        finally:
            monitor.stop()
        site.api.call("DELETE", site.api.path(VMIS, "vm"))
        wait_for("the guest to end", lambda: site.api.vmi("vm") is None and not site.qemus(), 60)
        qemu = start(site)
        user = site.api.vmi("vm")["status"]["runtimeUser"]
        assert user >= FIRST and user_of(qemu) == os.stat(image).st_uid == user, (user, user_of(qemu))


scenario.need_root()
unitbox.need_systemd_analyze()
scenario.main(globals())
