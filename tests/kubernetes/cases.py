"""Objects for the tests in this directory, and one engine per test file."""
import atexit
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import engine  # noqa: E402  pylint: disable=wrong-import-position,unused-import

VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
MIGRATIONS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations"
VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
KUBEVIRTS = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
POLICIES = "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"

_running = {}


def shared(bin_dir=None, scheduler=False):
    """The engine of this file, started at first use and ended with the process; FERRY_ENGINE=embedded changes its kind."""
    if "engine" not in _running:
        kind = os.environ.get("FERRY_ENGINE", "kubernetes")
        engine.need(kind, bin_dir, scheduler)
        _running["engine"] = engine.start(kind, bin_dir, scheduler)
        atexit.register(_running["engine"].close)
    return _running["engine"]


def vmi(name, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, **spec}}


def migration(name, vmi_name, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": name},
            "spec": {"vmiName": vmi_name, **spec}}


def policy(name, **spec):
    return {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy", "metadata": {"name": name},
            "spec": {"selectors": {}, **spec}}


def kubevirt(name, migrations):
    return {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": name},
            "spec": {"configuration": {"migrations": migrations}}}


def machine(name, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"domain": {"devices": {}}}}, **spec}}


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "compute", "image": "x"}], **spec}}


def add_node(admin, name):
    """A node as a kubelet would have it: ready, with room, and without the taint that every new node gets."""
    admin.create(NODES, {"apiVersion": "v1", "kind": "Node",
                         "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubevirt.io/schedulable": "true"}}})
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    admin.patch(f"{NODES}/{name}/status", {"status": {
        "capacity": room, "allocatable": room,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "test"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}})
    admin.patch(f"{NODES}/{name}", {"spec": {"taints": None}})


def later(what, action):
    """Does `action` as soon as it can be done (it then returns true), beside what the test does."""
    threading.Thread(target=engine.wait_for, args=(what, action, 60), daemon=True).start()


def expect_refused(status, text, call, *args):
    """The call must be answered with `status` and a message that has `text` in it."""
    try:
        call(*args)
    except engine.Refused as e:
        message = e.body.get("message", "") if isinstance(e.body, dict) else str(e.body)
        assert e.status == status and text in message, f"expected {status} '{text}', got {e.status} '{message}'"
        return
    raise AssertionError(f"expected {status} '{text}', but it was accepted")
