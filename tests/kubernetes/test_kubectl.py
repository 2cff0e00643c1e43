"""kubectl as a person uses it on Ferry's kinds. FERRY_ENGINE=embedded runs the same against ferry-apiserver."""
import json
import os
import subprocess

import cases
from cases import NODES, PODS, VMIS
from engine import wait_for

MANIFEST = """
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  terminationGracePeriodSeconds: 5
  domain:
    cpu: {{cores: 2}}
    memory: {{guest: 64Mi}}
    devices: {{}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata:
  name: {name}-move
spec:
  vmiName: {name}
"""


def start(bin_dir, name=None):
    """The engine, with a VMI and a migration when a name is given."""
    e = cases.shared(bin_dir)
    if name:
        e.kubectl("apply", "-f", "-", stdin=MANIFEST.format(name=name))
    return e


def columns(text):
    return text.split("\n")[0].split()


def report(e, name, **status):
    """As the programs write status."""
    e.kubectl("patch", "vmi", name, "--type=merge", "-p", json.dumps({"status": status}))


def test_apply(bin_dir):
    e = start(bin_dir)
    text = MANIFEST.format(name="apply")
    out = e.kubectl("apply", "-f", "-", stdin=text).stdout
    assert out.split("\n")[:2] == ["virtualmachineinstance.kubevirt.io/apply created",
                                   "virtualmachineinstancemigration.kubevirt.io/apply-move created"], out
    out = e.kubectl("apply", "-f", "-", stdin=text).stdout
    assert out.count("unchanged") == 2, out
    out = e.kubectl("apply", "-f", "-", stdin=text.replace("app: apply", "app: other, tier: db")).stdout
    assert "apply configured" in out and "apply-move unchanged" in out, out
    assert e.kubectl("get", "vmi", "apply", "-o", "jsonpath={.metadata.labels.tier}").stdout == "db"
    done = e.kubectl("apply", "-f", "-", stdin=text.replace("cores: 2", "cores: two"), code=1)
    assert "spec.domain.cpu.cores" in done.stderr, done.stderr
    done = e.kubectl("apply", "-f", "-", stdin=text.replace("vmiName", "vmName"), code=1)
    assert "vmName" in done.stderr, done.stderr


def test_apply_server_side(bin_dir):
    e = start(bin_dir)
    text = MANIFEST.format(name="ssa")
    out = e.kubectl("apply", "--server-side", "-f", "-", stdin=text).stdout
    assert out.count("serverside-applied") == 2, out
    out = e.kubectl("apply", "--server-side", "-f", "-", stdin=text.replace("app: ssa", "app: changed")).stdout
    assert out.count("serverside-applied") == 2, out
    assert e.kubectl("get", "vmi", "ssa", "-o", "jsonpath={.metadata.labels.app}").stdout == "changed"
    # Fields of other writers stay.
    report(e, "ssa", phase="Running")
    e.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    assert e.kubectl("get", "vmi", "ssa", "-o", "jsonpath={.status.phase}").stdout == "Running"


def test_get(bin_dir):
    e = start(bin_dir, "get")
    report(e, "get", phase="Running", nodeName="a", interfaces=[{"name": "n", "ipAddress": "10.1.2.3"}],
           conditions=[{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": "False"}])
    out = e.kubectl("get", "vmi", "get").stdout
    assert columns(out) == ["NAME", "AGE", "PHASE", "IP", "NODENAME", "READY"], out
    assert out.split("\n")[1].split()[2:] == ["Running", "10.1.2.3", "a", "True"], out
    out = e.kubectl("get", "vmis", "get", "-o", "wide").stdout
    assert columns(out)[6:] == ["LIVE-MIGRATABLE", "PAUSED"] and "False" in out.split("\n")[1], out
    e.kubectl("patch", "vmim", "get-move", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
        "phase": "Failed", "migrationState": {"sourceNode": "a", "targetNode": "b", "mode": "PreCopy",
                                              "failureReason": "Aborted"}}}))
    out = e.kubectl("get", "vmim", "get-move").stdout
    head, row = columns(out), out.split("\n")[1].split()
    for name, value in {"PHASE": "Failed", "VMI": "get", "SOURCE": "a", "TARGET": "b", "MODE": "PreCopy",
                        "REASON": "Aborted"}.items():
        assert name in head, out
        if "PROGRESS" not in head:  # the embedded engine has one more, which may be empty
            assert row[head.index(name)] == value, out
    assert head[-1] == "AGE", out
    assert "kind: VirtualMachineInstance" in e.kubectl("get", "vmi", "get", "-o", "yaml").stdout
    body = json.loads(e.kubectl("get", "vmi", "get", "-o", "json").stdout)
    assert body["apiVersion"] == "kubevirt.io/v1" and body["spec"]["domain"]["cpu"] == {"cores": 2}, body
    assert e.kubectl("get", "vmi", "get", "-o", "name").stdout == "virtualmachineinstance.kubevirt.io/get\n"
    out = e.kubectl("get", "vmi", "-l", "app=get", "-o", "name").stdout
    assert out == "virtualmachineinstance.kubevirt.io/get\n", out
    out = e.kubectl("get", "vmi", "-l", "app in (get,x),!tier", "--field-selector=metadata.name=get", "-o", "name").stdout
    assert out == "virtualmachineinstance.kubevirt.io/get\n", out
    items = json.loads(e.kubectl("get", "vmi,vmim", "-A", "-o", "json").stdout)["items"]
    assert {i["kind"] for i in items} == {"VirtualMachineInstance", "VirtualMachineInstanceMigration"}
    done = e.kubectl("get", "vmi", "nobody", code=1)
    assert '(NotFound): virtualmachineinstances.kubevirt.io "nobody" not found' in done.stderr, done.stderr


def test_watch(bin_dir):
    e = start(bin_dir, "watch")
    log = os.path.join(e.dir, "watch.txt")
    env = dict(os.environ, KUBECONFIG=e.kubeconfig(), HOME=e.dir)
    with open(log, "w") as out:
        with subprocess.Popen(["kubectl", "get", "vmi", "watch", "-w"], env=env, stdin=subprocess.DEVNULL, stdout=out) as w:
            def seen(text):
                with open(log) as f:
                    return text in f.read()
            try:
                wait_for("the first line of the watch", lambda: seen("NODENAME"), 90)
                for phase in ("Scheduling", "Running"):
                    report(e, "watch", phase=phase)
                    wait_for(f"{phase} in the watch", lambda p=phase: seen(p), 90)
            finally:
                w.terminate()


def test_describe(bin_dir):
    e = start(bin_dir, "describe")
    uid = e.kubectl("get", "vmi", "describe", "-o", "jsonpath={.metadata.uid}").stdout
    e.client().create("/api/v1/namespaces/default/events", {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "describe.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "namespace": "default",
                           "name": "describe", "uid": uid},
        "reason": "Started", "message": "it runs now", "type": "Normal", "source": {"component": "ferry-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1})
    out = e.kubectl("describe", "vmi", "describe").stdout
    for text in ("Name:         describe", "Kind:         VirtualMachineInstance", "Cores:  2", "64Mi",
                 "Started", "it runs now"):
        assert text in out, f"'{text}' not in:\n{out}"
    assert "Vmi Name:  describe" in e.kubectl("describe", "vmim", "describe-move").stdout


def test_explain(bin_dir):
    e = start(bin_dir)
    for path, texts in {
            "vmi": ["KIND:       VirtualMachineInstance", "spec\t<Object> -required-"],
            "vmi.spec.domain.cpu": ["cores\t<integer>", "Cores per socket."],
            "vmi.status.migrationState": ["targetDirectMigrationNodePorts\t<map[string]integer>"],
            "vmim.spec": ["vmiName\t<string> -required-", "enum: system-critical, user-triggered, system-maintenance"],
            "kubevirt.spec.configuration.migrations": ["parallelMigrationsPerCluster\t<integer>", "5 when absent"],
            "migrationpolicy.spec": ["selectors\t<Object> -required-", "allowPostCopy\t<boolean>"],
            "vm.spec": ["runStrategy\t<string>"],
            "vmi.metadata": ["ownerReferences\t<[]OwnerReference>"],
            "pod.spec": ["FIELD: spec <PodSpec>", "containers\t<[]Container> -required-", "nodeName\t<string>",
                         "nodeSelector\t<map[string]string>", "terminationGracePeriodSeconds\t<integer>"],
            "pod.spec.containers.livenessProbe.httpGet": [" -required-", "scheme\t<string>"],
            "node.status": ["conditions\t<[]NodeCondition>"], "node.spec.taints": ["effect\t<string> -required-"],
            "pvc.spec.resources": ["requests\t<map[string]"], "pv.spec.nfs": ["server\t<string> -required-"],
            "resourcequota.spec": ["hard\t<map[string]"], "configmap": ["data\t<map[string]string>"],
            "lease.spec": ["holderIdentity\t<string>"], "storageclass": ["provisioner\t<string> -required-"]}.items():
        out = e.kubectl("explain", path).stdout
        for text in texts:
            assert text in out, f"explain {path}: '{text}' not in:\n{out}"
    assert "migrationID" in e.kubectl("explain", "vmim", "--recursive").stdout
    done = e.kubectl("explain", "vmim.spec.nothing", code=1)
    assert 'field "nothing" does not exist' in done.stderr, done.stderr


def test_strict(bin_dir):
    """A slip in a manifest of a core kind is told, with its place."""
    e = start(bin_dir)
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: strict}\nspec: {containers: [{name: a, image: b%s}]%s}\n"
    for slip, where in ((", imagePullPolice: Never", ""), ("", ", nodeSelectors: {a: b}")):
        done = e.kubectl("apply", "-f", "-", stdin=text % (slip, where), code=1)
        field = "spec.containers[0].imagePullPolice" if slip else "spec.nodeSelectors"
        assert f'unknown field "{field}"' in done.stderr, done.stderr
        done = e.kubectl("apply", "--validate=warn", "--dry-run=server", "-f", "-", stdin=text % (slip, where))
        assert f'Warning: unknown field "{field}"' in done.stderr, done.stderr
    done = e.kubectl("apply", "-f", "-", stdin=text % (", tty: perhaps", ""), code=1)
    assert "tty" in done.stderr, done.stderr
    e.kubectl("apply", "--validate=ignore", "-f", "-", stdin=text % ("", ", nodeSelectors: {a: b}"))
    assert "nodeSelectors" not in e.kubectl("get", "pod", "strict", "-o", "json").stdout.split('"spec": {', 1)[1]


def test_label_annotate(bin_dir):
    e = start(bin_dir, "label")
    def meta(what):
        return json.loads(e.kubectl("get", "vmi", "label", "-o", "json").stdout)["metadata"].get(what, {})
    e.kubectl("label", "vmi", "label", "tier=db")
    done = e.kubectl("label", "vmi", "label", "tier=web", code=1)
    assert "--overwrite" in done.stderr, done.stderr
    e.kubectl("label", "vmi", "-l", "app=label", "tier=web", "--overwrite")
    assert meta("labels") == {"app": "label", "tier": "web"}, meta("labels")
    e.kubectl("label", "vmi", "label", "tier-")
    assert meta("labels") == {"app": "label"}, meta("labels")
    done = e.kubectl("label", "vmi", "label", "tier=not a value", code=1)
    assert "a valid label must be" in done.stderr, done.stderr
    e.kubectl("annotate", "vmi", "label", "ferry.io/note=hello there")
    assert meta("annotations")["ferry.io/note"] == "hello there"
    e.kubectl("annotate", "vmi", "label", "ferry.io/note-")
    assert "ferry.io/note" not in meta("annotations")


def test_patch(bin_dir):
    e = start(bin_dir, "patch")
    merge = '{"metadata":{"labels":{"disk":"fast"}}}'
    out = e.kubectl("patch", "vmi", "patch", "--type=merge", "-p", merge).stdout
    assert out == "virtualmachineinstance.kubevirt.io/patch patched\n", out
    out = e.kubectl("patch", "vmi", "patch", "--type=merge", "-p", merge).stdout
    assert "(no change)" in out, out
    e.kubectl("patch", "vmi", "patch", "--type=json", "-p",
              '[{"op":"test","path":"/metadata/labels/disk","value":"fast"},'
              '{"op":"replace","path":"/metadata/labels/disk","value":"slow"}]')
    assert e.kubectl("get", "vmi", "patch", "-o", "jsonpath={.metadata.labels.disk}").stdout == "slow"
    done = e.kubectl("patch", "vmi", "patch", "--type=json", "-p",
                     '[{"op":"test","path":"/metadata/labels/disk","value":"fast"}]', code=1)
    assert done.stderr, "a failed test must say something"
    done = e.kubectl("patch", "vmi", "patch", "--type=merge", "-p", '{"status":{"phase":"Walking"}}', code=1)
    assert "status.phase" in done.stderr, done.stderr
    done = e.kubectl("patch", "vmi", "patch", "-p", merge, code=1)
    assert "strategic" in done.stderr, done.stderr
    done = e.kubectl("patch", "vmi", "patch", "--type=merge", "-p", '{"spec":{"nodeSelector":{"disk":"fast"}}}', code=1)
    assert "update of VMI object is restricted" in done.stderr, done.stderr
    done = e.kubectl("patch", "vmim", "patch-move", "--type=merge", "-p", '{"spec":{"vmiName":"x"}}', code=1)
    assert "update of Migration object's spec is restricted" in done.stderr, done.stderr
    e.kubectl("patch", "vmim", "patch-move", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Pending"}}')
    assert e.kubectl("get", "vmim", "patch-move", "-o", "jsonpath={.status.phase}").stdout == "Pending"
    # Core kinds take strategic merge patches: lists are merged by key.
    e.client().create(PODS, cases.pod("patch"))
    e.kubectl("patch", "pod", "patch", "-p", '{"spec":{"containers":[{"name":"compute","image":"y"}]}}')
    assert e.kubectl("get", "pod", "patch", "-o", "jsonpath={.spec.containers[*].image}").stdout == "y"


def test_create(bin_dir):
    e = start(bin_dir)
    text = json.dumps({**cases.vmi(""), "metadata": {"generateName": "someone-"}})
    names = {e.kubectl("create", "-f", "-", "-o", "name", stdin=text).stdout.strip() for _ in range(2)}
    assert len(names) == 2 and all(n.startswith("virtualmachineinstance.kubevirt.io/someone-") for n in names), names
    vmi = json.dumps(cases.vmi("create"))
    out = e.kubectl("create", "-f", "-", "--dry-run=server", stdin=vmi).stdout
    assert "created (server dry run)" in out, out
    assert e.client().get(f"{VMIS}/create") is None
    e.kubectl("create", "-f", "-", stdin=vmi)
    done = e.kubectl("create", "-f", "-", stdin=vmi, code=1)
    assert '(AlreadyExists)' in done.stderr, done.stderr


def test_wait_and_delete(bin_dir):
    e = start(bin_dir, "wait")
    report(e, "wait", phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    e.kubectl("wait", "vmi/wait", "--for=condition=Ready", "--timeout=90s")
    e.kubectl("wait", "vmi/wait", "--for=jsonpath={.status.phase}=Running", "--timeout=90s")
    done = e.kubectl("wait", "vmi/wait", "--for=condition=Paused", "--timeout=1s", code=1)
    assert "timed out" in done.stderr, done.stderr
    e.kubectl("patch", "vmi", "wait", "--type=merge", "-p", '{"metadata":{"finalizers":["ferry.io/test"]}}')
    e.kubectl("delete", "vmi", "wait", "--wait=false")
    body = json.loads(e.kubectl("get", "vmi", "wait", "-o", "json").stdout)
    assert body["metadata"]["deletionTimestamp"], body
    e.kubectl("patch", "vmi", "wait", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    e.kubectl("wait", "vmi/wait", "--for=delete", "--timeout=90s")
    # No controller runs here that would take its finalizer off.
    e.kubectl("patch", "vmim", "wait-move", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert "deleted" in e.kubectl("delete", "vmim", "wait-move", "--timeout=90s").stdout
    done = e.kubectl("delete", "vmim", "wait-move", code=1)
    assert "NotFound" in done.stderr, done.stderr
    assert e.kubectl("delete", "vmim", "wait-move", "--ignore-not-found").stdout == ""


def test_drain(bin_dir):
    """What a drain would do, said without doing it."""
    e = start(bin_dir)
    admin = e.client()
    cases.add_node(admin, "drained")
    admin.create(PODS, {**cases.pod("on-drained", nodeName="drained")})
    out = e.kubectl("drain", "drained", "--dry-run=server", "--force").stdout
    assert "node/drained cordoned (server dry run)" in out and "on-drained" in out, out
    assert not admin.get(f"{NODES}/drained")["spec"].get("unschedulable")
    e.kubectl("cordon", "drained")
    assert admin.get(f"{NODES}/drained")["spec"]["unschedulable"] is True
    e.kubectl("uncordon", "drained")


def test_auth(bin_dir):
    """What may I, and who am I?"""
    e = start(bin_dir)
    node = e.kubeconfig("node", "a")
    assert e.kubectl("auth", "can-i", "create", "vmim").stdout.strip() == "yes"
    for verb, what, yes in (("patch", "vmi", True), ("delete", "vmi", False), ("get", "secrets", False)):
        done = e.kubectl("--kubeconfig", node, "auth", "can-i", verb, what, code=0 if yes else 1)
        assert done.stdout.split()[0] == ("yes" if yes else "no"), done.stdout
    assert "virtualmachineinstances.kubevirt.io" in e.kubectl("--kubeconfig", node, "auth", "can-i", "--list").stdout
    out = e.kubectl("--kubeconfig", node, "auth", "whoami").stdout
    assert "system:node:a" in out and "system:nodes" in out, out


def test_create_by_words(bin_dir):
    """kubectl create KIND sends protobuf."""
    e = start(bin_dir)
    e.kubectl("create", "namespace", "by-words")
    e.kubectl("-n", "by-words", "create", "configmap", "c", "--from-literal=a=b")
    e.kubectl("-n", "by-words", "create", "secret", "generic", "s", "--from-literal=a=b")
    e.kubectl("-n", "by-words", "create", "quota", "q", "--hard=cpu=2,pods=3")
    out = e.kubectl("-n", "by-words", "get", "quota", "q", "-o", "jsonpath={.spec.hard.cpu} {.spec.hard.pods}").stdout
    assert out == "2 3", out


def test_discovery(bin_dir):
    e = start(bin_dir)
    out = e.kubectl("api-resources", "--api-group=kubevirt.io", "-o", "name").stdout.split()
    assert sorted(out) == ["kubevirts.kubevirt.io", "virtualmachineinstancemigrations.kubevirt.io", "virtualmachineinstancepresets.kubevirt.io",
                           "virtualmachineinstancereplicasets.kubevirt.io", "virtualmachineinstances.kubevirt.io",
                           "virtualmachines.kubevirt.io"], out
    assert "migrations.kubevirt.io/v1alpha1" in e.kubectl("api-versions").stdout
    done = e.kubectl("get", "kubevirtual", code=1)
    assert "the server doesn't have a resource type" in done.stderr, done.stderr


if __name__ == "__main__":
    import scenario
    scenario.main(globals())
