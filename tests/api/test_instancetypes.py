"""Instance types and preferences as kubectl sees them; which VMs are refused for what they name; kinds that there are none of. Numbers of
cases are items of docs/conformance.md."""
import functools
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import KUBEVIRT, MERGE_PATCH, ON_KUBERNETES, Lab, embedded_only, wait_for  # noqa: E402

SIZES = "/apis/instancetype.kubevirt.io/v1beta1"
TYPES, PREFERENCES = SIZES + "/virtualmachineclusterinstancetypes", SIZES + "/virtualmachineclusterpreferences"
VMS = KUBEVIRT + "/namespaces/default/virtualmachines"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
LAB = functools.cache(functools.partial(Lab, webhook=True)) if ON_KUBERNETES else Lab

MANIFESTS = """apiVersion: instancetype.kubevirt.io/v1beta1
kind: {prefix}Instancetype
metadata: {{name: shown}}
spec: {{cpu: {{guest: 2}}, memory: {{guest: 1Gi}}}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: {prefix}Preference
metadata: {{name: shown}}
spec: {{devices: {{preferredDiskBus: virtio}}, requirements: {{cpu: {{guest: 2}}}}}}
"""
NONE_OF_THESE = (
    ("VirtualMachinePool", "pool.kubevirt.io/v1beta1", "vmpool", "apply one VirtualMachine for each replica"),
    ("VirtualMachinePool", "pool.kubevirt.io/v1alpha1", "vmpool", "apply one VirtualMachine for each replica"),
    ("VirtualMachineInstanceReplicaSet", "kubevirt.io/v1", "vmirs", "apply one VirtualMachine for each replica"),
    ("VirtualMachineInstancePreset", "kubevirt.io/v1", "vmipreset", "make a VirtualMachineInstancetype or a VirtualMachinePreference"),
)


def sized(kind, name, **spec):
    return {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def vm(name, domain=None, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": {
        "runStrategy": "Halted", "template": {"spec": {"domain": domain or {}}}, **spec}}


class InstanceTypes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = LAB()
        cls.addClassCleanup(cls.lab.close)
        cls.api, cls.kubectl = cls.lab.admin, cls.lab.kubectl
        cls.api.ok("POST", TYPES, sized("VirtualMachineClusterInstancetype", "small", cpu={"guest": 2}, memory={"guest": "64Mi"}))
        cls.api.ok("POST", TYPES, sized("VirtualMachineClusterInstancetype", "odd", cpu={"guest": 3}, memory={"guest": "64Mi"}))
        cls.api.ok("POST", PREFERENCES, sized("VirtualMachineClusterPreference", "large", requirements={"cpu": {"guest": 4}}))
        cls.api.ok("POST", PREFERENCES, sized("VirtualMachineClusterPreference", "spread", cpu={"preferredCPUTopology": "spread"}))

    def refused(self, method, path, body, *words, kind="application/json"):
        code, answer = self.api.call(method, path, body, kind)
        self.assertEqual(code, 422, answer)
        for text in words:
            self.assertIn(text, answer["message"])

    def test_kubectl(self):
        """Short names, columns, explain: as KubeVirt has them."""
        for prefix, types, preferences in (("VirtualMachine", ("vminstancetype", "vmf"), ("vmpref", "vmp")),
                                           ("VirtualMachineCluster", ("vmclusterinstancetype", "vmcf"), ("vmcp", "vmcps"))):
            text = MANIFESTS.format(prefix=prefix)
            self.assertEqual(self.kubectl("apply", "-f", "-", stdin=text).count(" created"), 2)
            self.assertEqual(self.kubectl("apply", "-f", "-", stdin=text).count(" unchanged"), 2)
            for short in types:
                head, row = (re.split(r"\s{2,}", line.rstrip()) for line in self.kubectl("get", short, "shown").splitlines())
                self.assertEqual((head, row[:-1]), (["NAME", "CPU", "MEMORY", "AGE"], ["shown", "2", "1Gi"]))
            for short in preferences:
                self.assertIn("shown", self.kubectl("get", short))
            self.assertEqual(self.kubectl("delete", "-f", "-", stdin=text).count(" deleted"), 2)
        self.assertIn("How many there are", self.kubectl("explain", "vmcf.spec.cpu.guest"))

    def test_schema(self):
        """701: required fields, ranges, typing errors"""
        for spec, words in (({"cpu": {"guest": 1}}, "spec.memory: Required value"), ({"memory": {"guest": "1Gi"}}, "spec.cpu: Required value"),
                            ({"cpu": {}, "memory": {"guest": "1Gi"}}, "spec.cpu.guest: Required value"),
                            ({"cpu": {"guest": 1}, "memory": {}}, "spec.memory.guest: Required value"),
                            ({"cpu": {"guest": 1}, "memory": {"guest": "lots"}}, "spec.memory.guest: Invalid value"),
                            ({"cpu": {"guest": 1}, "memory": {"guest": "1Gi", "overcommitPercent": 101}},
                             "spec.memory.overcommitPercent: Invalid value"),
                            ({"cpu": {"guest": 1}, "memory": {"guest": "1Gi", "overcommitPercent": 1, "hugepages": {"pageSize": "2Mi"}}},
                             "should not be requested together")):
            self.refused("POST", TYPES, sized("VirtualMachineClusterInstancetype", "wrong", **spec), words)
        for spec, words in (({"cpu": {"preferredCPUTopology": "wide"}}, "spec.cpu.preferredCPUTopology: Unsupported value"),
                            ({"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "CoresThreads", "ratio": 3}}},
                             "only a ratio of 2")):
            self.refused("POST", PREFERENCES, sized("VirtualMachineClusterPreference", "wrong", **spec), words)
        code, answer = self.api.call("POST", TYPES + "?fieldValidation=Strict", sized(
            "VirtualMachineClusterInstancetype", "wrong", cpu={"guest": 1}, memory={"guest": "1Gi"}, memmory={}))
        self.assertEqual(code, 400, answer)
        self.assertIn('unknown field "spec.memmory"', answer["message"])

    def test_conflicts(self):
        """702, 703, 704: what a VM says that its instance type says is named, all of it, at apply"""
        small = {"instancetype": {"name": "small"}}
        self.refused("POST", VMS, vm("c", {"memory": {"guest": "1Gi"}, "cpu": {"cores": 2}}, **small),
                     "VM field(s) spec.template.spec.domain.cpu.cores, spec.template.spec.domain.memory.guest conflicts with selected "
                     "instance type")
        self.refused("POST", VMS, vm("c", preference={"name": "large"}, **small), "spec.instancetype",
                     "insufficient CPU resources of 2 vCPU provided by instance type, preference requires 4 vCPU")
        self.refused("POST", VMS, vm("c", instancetype={"name": "odd"}, preference={"name": "spread"}), "3 vCPUs provided by the instance type")
        self.api.ok("POST", VMS, vm("c", **small), code=201)
        path = VMS + "/c"
        self.refused("PATCH", path, {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 2}}}}}},
                     "spec.template.spec.domain.cpu.sockets conflicts", kind=MERGE_PATCH)
        # what is not about the spec is not asked
        self.api.ok("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
        self.api.ok("DELETE", path)

    def test_matchers(self):
        """705: what a VM may say of what it names"""
        for spec, words in (({"instancetype": {}}, "Either Name or InferFromVolume should be provided within the InstancetypeMatcher"),
                            ({"preference": {"name": "x", "kind": "Pod"}}, "got unexpected kind in PreferenceMatcher: Pod"),
                            ({"instancetype": {"inferFromVolume": "root"}}, "spec.instancetype.inferFromVolume")):
            self.refused("POST", VMS, vm("m", **spec), words)
        # as in KubeVirt: what is not there yet may come
        self.api.ok("POST", VMS, vm("m", instancetype={"name": "later"}), code=201)
        self.api.ok("DELETE", VMS + "/m")

    def test_revision(self):
        """710: the copy that a VM asks for counts, not what the instance type is now"""
        self.api.ok("POST", REVISIONS, {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "older"}, "revision": 0, "data": {
            **sized("VirtualMachineClusterInstancetype", "small", cpu={"guest": 1, "model": "m"}, memory={"guest": "1Gi"})}}, code=201)
        self.refused("POST", VMS, vm("r", {"cpu": {"model": "n"}}, instancetype={"name": "small", "revisionName": "older"}),
                     "spec.template.spec.domain.cpu.model conflicts")
        self.api.ok("POST", VMS, vm("r", {"cpu": {"model": "n"}}, instancetype={"name": "small"}), code=201)
        self.api.ok("DELETE", VMS + "/r")
        self.refused("PATCH", REVISIONS + "/older", {"data": {"spec": None}}, "data", "field is immutable", kind=MERGE_PATCH)

    @embedded_only("who collects what is left there is kube-controller-manager")
    def test_copies_go_with_their_vm(self):
        uid = self.api.ok("POST", VMS, vm("owner", instancetype={"name": "small"}), code=201)["metadata"]["uid"]
        self.api.ok("POST", REVISIONS, {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 0, "data": {}, "metadata": {
            "name": "copy", "ownerReferences": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "owner", "uid": uid}]}})
        self.api.ok("DELETE", VMS + "/owner")
        wait_for("the copy to go", lambda: self.api.call("GET", REVISIONS + "/copy")[0] == 404)

    def test_none_of_these(self):
        """Pools, replica sets, presets: kubectl is told what to do instead, and finds none."""
        for kind, version, short, words in NONE_OF_THESE:
            manifest = json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "p"},
                                   "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"domain": {}}}}})
            said = self.kubectl("apply", "-f", "-", stdin=manifest, code=1)
            self.assertIn(f'The {kind} "p" is invalid: spec: Invalid value', said)
            self.assertIn(f"Ferry has no {kind}", said)
            self.assertIn(words, said)
            self.assertNotIn("validation", said)
            self.assertEqual(self.kubectl("get", short), "")
            self.assertIn("Of what there is none", self.kubectl("explain", short + ".spec"))

    @embedded_only("these are KubeVirt's roles, which its own operator makes there")
    def test_roles(self):
        names = {r["metadata"]["name"] for r in self.api.ok("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")["items"]}
        self.assertIn("instancetype.kubevirt.io:view", names)
        for role, verb in (("kubevirt.io:edit", "create"), ("kubevirt.io:view", "watch")):
            rules = self.api.ok("GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}")["rules"]
            self.assertTrue(any("virtualmachinepreferences" in r["resources"] and verb in r["verbs"] for r in rules), rules)


if __name__ == "__main__":
    unittest.main()
