"""kubectl as a user runs it, without special flags."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import DEADLINE_S, ON_KUBERNETES, Lab, embedded_only, wait_for  # noqa: E402

VMI = """apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata:
  name: {name}
  labels: {{app: web}}
spec:
  domain:
    memory: {{guest: 64Mi}}
    devices: {{}}
"""
MIGRATION = """apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata:
  name: {name}
spec:
  vmiName: {vmi}
"""
NODE = """apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{kubernetes.io/hostname: {name}}}
status:
  addresses: [{{type: InternalIP, address: 10.0.0.7}}]
  conditions: [{{type: Ready, status: "True"}}]
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  containers: [{{name: compute, image: ferry.io/launcher}}]
"""


class Kubectl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.kubectl = cls.lab.kubectl

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def apply(self, text, *args):
        return self.kubectl("apply", "-f", "-", *args, stdin=text)

    def rows(self, *args):
        """Lines of a table, split at two or more spaces."""
        return [re.split(r"\s{2,}", line.rstrip()) for line in self.kubectl(*args).splitlines()]

    def let_go(self, migration):
        """No controller runs here that would take its finalizer off."""
        self.kubectl("patch", "vmim", migration, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')

    def test_discovery(self):
        names = {line.split()[0] for line in self.kubectl("api-resources", "--no-headers").splitlines()}
        self.assertLessEqual({"pods", "nodes", "namespaces", "events", "leases", "virtualmachineinstances",
                              "virtualmachineinstancemigrations", "kubevirts", "migrationpolicies"}, names)
        self.assertIn("Server Version: v1.", self.kubectl("version"))
        self.assertIn("kubevirt.io/v1", self.kubectl("api-versions"))

    def test_apply_get_delete(self):
        text = VMI.format(name="kc-1") + "---\n" + MIGRATION.format(name="kc-m", vmi="kc-1")
        out = self.apply(text)
        self.assertIn("virtualmachineinstance.kubevirt.io/kc-1 created", out)
        self.assertIn("virtualmachineinstancemigration.kubevirt.io/kc-m created", out)
        self.assertEqual(self.apply(text).count("unchanged"), 2)
        changed = text.replace("app: web", "app: db")
        self.assertIn("virtualmachineinstance.kubevirt.io/kc-1 configured", self.apply(changed))
        self.assertEqual(self.kubectl("get", "vmi", "kc-1", "-o", "jsonpath={.metadata.labels.app}"), "db")
        shown = json.loads(self.kubectl("get", "vmi", "kc-1", "-o", "json"))
        self.assertEqual(shown["spec"]["domain"]["memory"], {"guest": "64Mi"})
        self.assertIn("guest: 64Mi", self.kubectl("get", "virtualmachineinstances", "kc-1", "-o", "yaml"))
        self.let_go("kc-m")
        out = self.kubectl("delete", "-f", "-", stdin=text)
        self.assertIn('"kc-1" deleted', out)
        self.assertIn('"kc-m" deleted', out)
        self.assertIn('virtualmachineinstances.kubevirt.io "kc-1" not found', self.kubectl("get", "vmi", "kc-1", code=1))

    def test_columns(self):
        self.apply(VMI.format(name="col") + "---\n" + MIGRATION.format(name="col-m", vmi="col") + "---\n" +
                   NODE.format(name="col-n") + "---\n" + POD.format(name="col-p"))
        self.kubectl("patch", "vmi", "col", "--type=merge", "-p", json.dumps({"status": {
            "phase": "Running", "nodeName": "n1", "interfaces": [{"ipAddress": "10.1.2.3"}],
            "conditions": [{"type": "Ready", "status": "True"}]}}))
        self.kubectl("patch", "vmim", "col-m", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
            "phase": "Running", "migrationState": {"sourceNode": "n1", "targetNode": "n2", "mode": "PreCopy"}}}))
        head, row = self.rows("get", "vmi", "col")
        self.assertEqual(head, ["NAME", "AGE", "PHASE", "IP", "NODENAME", "READY"])
        self.assertEqual([row[0]] + row[2:], ["col", "Running", "10.1.2.3", "n1", "True"])
        head, row = self.rows("get", "vmims", "col-m")
        # How far it is stands in an annotation of the VMI, where a definition's columns do not reach.
        progress = [] if ON_KUBERNETES else ["PROGRESS"]
        self.assertEqual(head, ["NAME", "PHASE", "VMI", "SOURCE", "TARGET", "MODE"] + progress + ["REASON", "AGE"])
        self.assertEqual(row[:-1], ["col-m", "Running", "col", "n1", "n2", "PreCopy"])
        if not ON_KUBERNETES:
            uid = self.kubectl("get", "vmim", "col-m", "-o", "jsonpath={.metadata.uid}")
            for of, shown in (("somebody-else", []), (uid, ["75%"])):
                self.kubectl("annotate", "vmi", "col", "--overwrite", "ferry.io/progress=" + json.dumps(
                    {"uid": of, "phase": "running", "totalBytes": 400, "remainingBytes": 100}))
                self.assertEqual(self.rows("get", "vmims", "col-m")[1][6:-1], shown)
            self.kubectl("annotate", "vmim", "col-m", "ferry.io/queue=" + json.dumps({"reason": "OutboundLimit"}))
            self.assertEqual(self.rows("get", "vmims", "col-m")[1][6:-1], ["75%", "OutboundLimit"])
            # Until it is over the VMI knows more than the migration; of another move it says nothing.
            self.kubectl("patch", "vmim", "col-m", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
                "migrationState": {"targetNode": None, "mode": None}}}))
            for of, shown in (("somebody-else", ["n1"]), (uid, ["n1", "n3", "PostCopy"])):
                self.kubectl("patch", "vmi", "col", "--type=merge", "-p", json.dumps({"status": {"migrationState": {
                    "migrationUid": of, "sourceNode": "n1", "targetNode": "n3", "mode": "PostCopy"}}}))
                self.assertEqual(self.rows("get", "vmims", "col-m")[1][3:-3], shown)
        head, row = self.rows("get", "nodes", "col-n", "-o", "wide")
        self.assertEqual((head[:2], row[:2]), (["NAME", "STATUS"], ["col-n", "Ready"]))
        self.assertIn("10.0.0.7", row)
        head, row = self.rows("get", "po", "col-p")
        self.assertEqual(head, ["NAME", "READY", "STATUS", "RESTARTS", "AGE"])
        self.assertEqual(row[:3], ["col-p", "0/1", "Pending"])
        self.assertIn("default", self.kubectl("get", "ns"))
        self.assertIn("col-p", self.kubectl("get", "all"))

    def test_labels_and_annotations(self):
        self.apply(VMI.format(name="lab"))
        self.kubectl("label", "vmi", "lab", "tier=gold")
        self.kubectl("annotate", "vmi", "lab", "note=hello")
        self.assertIn("lab", self.kubectl("get", "vmi", "-l", "tier=gold"))
        self.assertEqual(self.kubectl("get", "vmi", "-l", "tier!=gold,tier", "--no-headers").strip(), "")
        self.kubectl("label", "vmi", "lab", "tier-")
        self.assertEqual(self.kubectl("get", "vmi", "lab", "-o", "jsonpath={.metadata.labels.tier}"), "")

    def test_wait(self):
        self.apply(VMI.format(name="wait"))
        waiting = subprocess.Popen(
            ["kubectl", "wait", "vmi/wait", "--for=condition=Ready", "--timeout=30s"],
            env={**os.environ, "KUBECONFIG": self.lab.kubeconfig, "HOME": self.lab.dir}, stdout=subprocess.PIPE, text=True)
        self.kubectl("patch", "vmi", "wait", "--type=merge", "-p",
                     '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}')
        out, _ = waiting.communicate(timeout=DEADLINE_S)
        self.assertIn("condition met", out)
        self.assertIn("condition met", self.kubectl("wait", "vmi/wait", "--for=jsonpath={.status.phase}=Running"))
        self.kubectl("delete", "vmi", "wait", "--wait=false")
        self.kubectl("wait", "vmi/wait", "--for=delete", "--timeout=10s")

    def test_watch(self):
        path = os.path.join(self.lab.dir, "watch.out")
        with open(path, "w", encoding="utf-8") as out:
            watching = subprocess.Popen(
                ["kubectl", "get", "vmi", "-w", "-l", "watched"], stdout=out,
                env={**os.environ, "KUBECONFIG": self.lab.kubeconfig, "HOME": self.lab.dir})
        try:
            self.apply(VMI.format(name="seen").replace("app: web", "watched: x"))
            self.kubectl("patch", "vmi", "seen", "--type=merge", "-p", '{"status":{"phase":"Scheduling"}}')

            def text():
                with open(path, encoding="utf-8") as f:
                    return f.read()
            wait_for("the phase in the watch", lambda: "Scheduling" in text())
            self.assertEqual(text().count("AGE"), 1, text())
        finally:
            watching.terminate()
            watching.wait(DEADLINE_S)

    def test_nodes(self):
        self.apply(NODE.format(name="kn"))
        self.kubectl("cordon", "kn")
        self.assertIn("SchedulingDisabled", self.kubectl("get", "node", "kn"))
        self.kubectl("uncordon", "kn")
        self.assertNotIn("SchedulingDisabled", self.kubectl("get", "node", "kn"))
        self.kubectl("taint", "node", "kn", "a=b:NoSchedule")
        self.assertIn("a=b:NoSchedule", self.kubectl("describe", "node", "kn"))
        self.kubectl("taint", "node", "kn", "a=b:NoSchedule-")
        self.kubectl("delete", "node", "kn")

    def test_pods_end(self):
        self.apply(POD.format(name="ending"))
        self.kubectl("delete", "pod", "ending", "--now")
        self.assertIn("not found", self.kubectl("get", "pod", "ending", code=1))

    def test_server_side_apply_and_dry_run(self):
        out = self.apply(VMI.format(name="ssa"), "--server-side")
        self.assertIn("serverside-applied", out)
        self.assertIn("serverside-applied", self.apply(VMI.format(name="ssa"), "--server-side"))
        self.apply(VMI.format(name="dry"), "--dry-run=server")
        self.assertIn("not found", self.kubectl("get", "vmi", "dry", code=1))

    def test_describe(self):
        self.apply(VMI.format(name="desc"))
        self.kubectl("create", "-f", "-", stdin="""apiVersion: v1
kind: Event
metadata: {name: desc.1}
involvedObject: {kind: VirtualMachineInstance, name: desc, namespace: default}
reason: Started
message: the guest runs
type: Normal
""")
        out = self.kubectl("describe", "vmi", "desc")
        self.assertIn("Name:         desc", out)
        self.assertIn("the guest runs", self.kubectl("get", "events"))

    def test_creators(self):
        """These send protobuf and nothing else."""
        self.kubectl("create", "namespace", "made")
        self.kubectl("create", "configmap", "cm", "-n", "made", "--from-literal=a=b")
        self.kubectl("create", "secret", "generic", "s", "-n", "made", "--from-literal=p=q")
        self.assertEqual(self.kubectl("get", "cm", "cm", "-n", "made", "-o", "jsonpath={.data.a}"), "b")
        self.assertEqual(self.kubectl("get", "secret", "s", "-n", "made", "-o", "jsonpath={.data.p}"), "cQ==")
        self.kubectl("delete", "namespace", "made", "--wait=false")

    @embedded_only("KubeVirt has this rule in a webhook: it looks at another object")
    def test_migrations_of_nothing(self):
        error = self.kubectl("apply", "-f", "-", stdin=MIGRATION.format(name="x", vmi="ghost"), code=1)
        self.assertIn('the VMI "ghost" does not exist', error)

    def test_refusals(self):
        error = self.kubectl("create", "-f", "-", stdin=VMI.format(name="bad").replace("64Mi", "lots"), code=1)
        self.assertIn("spec.domain.memory.guest: Invalid value: \"lots\"", error)
        error = self.kubectl("get", "vmi", "-n", "default", "--field-selector", "spec.x=1", code=1)
        self.assertIn("field", error)
        error = self.kubectl("apply", "-n", "ghost", "-f", "-", stdin=VMI.format(name="x"), code=1)
        self.assertIn('namespaces "ghost" not found', error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
