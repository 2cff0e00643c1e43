"""Quotas, volumes made by hand, what virtctl calls, warnings, who may ask for what. Numbers of cases are items of docs/conformance.md."""
import json
import os
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import MERGE_PATCH, ON_KUBERNETES, LabCase, configmaps, embedded_only, migration, migrations, pod, pods, vmi, vmis, wait_for  # noqa: E402

SUB = "/apis/subresources.kubevirt.io/v1/namespaces/default"
POLICIES = "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"
KUBEVIRTS = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"


def sized(name, memory="1Gi", limits=None):
    p = pod(name)
    p["spec"]["containers"][0]["resources"] = {"requests": {"memory": memory, "cpu": "500m"},
                                                   "limits": limits or {}}
    return p


class WrongValues(LabCase):
    """What schemas let pass and both engines refuse."""

    def refused(self, path, body, field, group="v1", kind=None):
        body = {"apiVersion": group, "kind": kind, "metadata": {"name": "wrong"}, **body} if kind else body
        # on Kubernetes a policy counts a moment after it was made
        answer = wait_for(f"{field} to be refused", lambda: (a := self.api.call("POST", path + "?dryRun=All", body))[0] != 201 and a)
        self.assertEqual(answer[0], 422, answer)
        self.assertIn(field, answer[1]["message"])

    def test_amounts(self):
        for amount in ("-1", "many"):
            if amount == "-1" or not ON_KUBERNETES:  # which cannot even read the other: 400
                self.refused("/api/v1/namespaces/default/resourcequotas", {"spec": {"hard": {"cpu": amount}}}, "spec.hard[cpu]",
                             kind="ResourceQuota")
        p = pod("wrong")
        p["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "-1"}}
        self.refused(pods(), p, "spec.containers[0].resources.requests")
        self.refused("/api/v1/namespaces/default/persistentvolumeclaims", {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "-1Gi"}}}}, "spec.resources", kind="PersistentVolumeClaim")

    def test_selectors(self):
        for wrong in ({"a b": "c"}, {"zone": "not a value"}, {"x" * 64: "y"}):
            self.refused(pods(), {**pod("wrong"), "spec": {**pod("")["spec"], "nodeSelector": wrong}}, "spec.nodeSelector")
            machine = vmi("wrong")
            machine["spec"]["nodeSelector"] = wrong
            self.refused(vmis(), machine, "spec.nodeSelector")
            self.refused(migrations(), migration("wrong", "v", addedNodeSelector=wrong), "spec.addedNodeSelector")
            for name in ("namespaceSelector", "virtualMachineInstanceSelector"):
                self.refused(POLICIES, {"spec": {"selectors": {name: wrong}}}, "spec.selectors." + name,
                             "migrations.kubevirt.io/v1alpha1", "MigrationPolicy")
        good = {"spec": {"selectors": {"namespaceSelector": {"example.org/team": "red", "empty": ""}}}}
        self.api.ok("POST", POLICIES + "?dryRun=All", {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy",
                                                       "metadata": {"name": "right"}, **good}, code=201)


@embedded_only("kube-apiserver needs the status of a quota from kube-controller-manager")
class Quota(LabCase):
    def namespace(self, name, **hard):
        self.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.api.ok("POST", f"/api/v1/namespaces/{name}/resourcequotas",
                    {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        return pods(ns=name)

    def test_exceeded(self):
        where = self.namespace("q1", **{"pods": "3", "requests.memory": "2Gi", "limits.cpu": "4"})
        self.api.ok("POST", where, sized("a", limits={"cpu": "1"}))
        code, answer = self.api.call("POST", where, sized("b", "1536Mi", {"cpu": "1"}))
        self.assertEqual((code, answer["message"]), (
            403, 'pods "b" is forbidden: exceeded quota: q, requested: requests.memory=1536Mi, '
                 'used: requests.memory=1Gi, limited: requests.memory=2Gi'))
        self.assertEqual(answer["reason"], "Forbidden")
        self.assertEqual(answer["details"]["causes"][0]["reason"], "QuotaExceeded")
        code, answer = self.api.call("POST", where, sized("c"))
        self.assertIn("failed quota: q: must specify limits.cpu", answer["message"])
        self.assertEqual(self.api.call("POST", where + "?dryRun=All", sized("b", "1536Mi", {"cpu": "1"}))[0], 403)
        self.api.ok("POST", where, sized("b", limits={"cpu": "1"}))
        wait_for("the status", lambda: self.api.ok("GET", "/api/v1/namespaces/q1/resourcequotas/q").get(
            "status", {}).get("used") == {"pods": "2", "requests.memory": "2Gi", "limits.cpu": "2"})
        # what is over gives its place back
        self.api.ok("PATCH", pods("a", "q1") + "/status", {"status": {"phase": "Succeeded"}}, MERGE_PATCH)
        self.api.ok("POST", where, sized("c", limits={"cpu": "1"}))

    def claim(self, ns, name, storage):
        return self.api.call("POST", f"/api/v1/namespaces/{ns}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}})

    def test_petabytes_are_not_nothing(self):
        where = self.namespace("q4", **{"requests.storage": "10Gi", "requests.memory": "1Gi"})
        code, answer = self.claim("q4", "huge", "20Pi")
        self.assertEqual((code, answer["message"].split(": ", 1)[1]), (
            403, "exceeded quota: q, requested: requests.storage=20Pi, used: requests.storage=0, limited: requests.storage=10Gi"))
        two = sized("two", "100Mi")
        two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "second", "resources": {
            "requests": {"memory": "20Pi"}}})
        self.assertEqual(self.api.call("POST", where, two)[0], 403)
        self.namespace("q6", **{"requests.storage": "7Ei"})  # together more than fits in a number
        self.assertEqual([self.claim("q6", f"c{i}", "7Ei")[0] for i in range(2)], [201, 403])
        self.namespace("q5", **{"requests.storage": "50Pi", "count/virtualmachineinstances.kubevirt.io": "1"})
        self.assertEqual([self.claim("q5", f"c{i}", "20Pi")[0] for i in range(3)], [201, 201, 403])
        wait_for("the status", lambda: self.api.ok("GET", "/api/v1/namespaces/q5/resourcequotas/q").get(
            "status", {}).get("used", {}).get("requests.storage") == "40Pi")

    def test_the_last_place_goes_once(self):
        where = self.namespace("q2", pods="5")
        codes = []
        threads = [threading.Thread(target=lambda n=n: codes.append(
            self.api.call("POST", where, pod(f"p{n}"))[0])) for n in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((codes.count(201), codes.count(403)), (5, 7))

    def test_counts(self):
        self.namespace("q3", **{"count/virtualmachineinstances.kubevirt.io": "1", "configmaps": "1"})
        self.api.ok("POST", vmis(ns="q3"), vmi("one"))
        self.assertEqual(self.api.call("POST", vmis(ns="q3"), vmi("two"))[0], 403)
        self.api.ok("POST", configmaps(ns="q3"), {"metadata": {"name": "one"}})
        self.assertIn("exceeded quota", self.api.call("POST", configmaps(ns="q3"), {"metadata": {"name": "x"}})[1]["message"])


@embedded_only("kube-controller-manager binds volumes")
class Volumes(LabCase):
    def volume(self, name, size, **spec):
        self.api.ok("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteMany"], "storageClassName": "by-hand",
            "persistentVolumeReclaimPolicy": "Retain", **spec}})

    def claim(self, name, size, **spec):
        self.api.ok("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "by-hand",
            "resources": {"requests": {"storage": size}}, **spec}})

    def get(self, name):
        return self.api.ok("GET", f"/api/v1/namespaces/default/persistentvolumeclaims/{name}")

    def test_selectors(self):
        """Whatever kind of selector a claim has, only volumes that it matches are given out."""
        for name in ("red", "blue"):
            self.api.ok("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name, "labels": {"colour": name}}, "spec": {
                "capacity": {"storage": "1Gi" if name == "red" else "5Gi"}, "accessModes": ["ReadWriteMany"],
                "storageClassName": "coloured", "persistentVolumeReclaimPolicy": "Retain"}})
        for i, wrong in enumerate(([{"key": "colour", "operator": "In", "values": ["green"]}], [{"key": "colour", "operator": "DoesNotExist"}],
                                   [{"key": "shape", "operator": "Exists"}], [{"key": "colour", "operator": "NotIn", "values": ["red", "blue"]}])):
            self.claim(f"wrong-{i}", "1Gi", storageClassName="coloured", selector={"matchExpressions": wrong})
        self.claim("coloured", "1Gi", storageClassName="coloured", selector={
            "matchExpressions": [{"key": "colour", "operator": "NotIn", "values": ["red"]}, {"key": "colour", "operator": "Exists"}]})
        wait_for("the claim to be bound", lambda: self.get("coloured").get("status", {}).get("phase") == "Bound")
        self.assertEqual(self.get("coloured")["spec"]["volumeName"], "blue")
        for i in range(4):
            self.assertEqual(self.get(f"wrong-{i}")["status"]["phase"], "Pending")

    def test_smallest_that_fits(self):
        for name, size in (("big", "10Gi"), ("small", "1Gi"), ("middle", "2Gi")):
            self.volume(name, size)
        self.claim("c", "1500Mi")
        wait_for("the claim to be bound", lambda: self.get("c").get("status", {}).get("phase") == "Bound")
        c = self.get("c")
        self.assertEqual((c["spec"]["volumeName"], c["status"]["capacity"]), ("middle", {"storage": "2Gi"}))
        v = self.api.ok("GET", "/api/v1/persistentvolumes/middle")
        self.assertEqual((v["spec"]["claimRef"]["uid"], v["status"]["phase"]), (c["metadata"]["uid"], "Bound"))
        self.claim("other", "1500Mi", storageClassName="another")
        wait_for("the other claim to wait", lambda: self.get("other").get("status", {}).get("phase") == "Pending")
        self.assertIn("middle", self.lab.kubectl("get", "pvc", "c"))
        self.api.ok("DELETE", "/api/v1/namespaces/default/persistentvolumeclaims/c")
        wait_for("the volume to be released", lambda: self.api.ok(
            "GET", "/api/v1/persistentvolumes/middle")["status"]["phase"] == "Released")
        self.claim("c", "1500Mi")  # the data of the old claim is not given to the new one
        wait_for("the new claim to be bound", lambda: self.get("c").get("status", {}).get("phase") == "Bound")
        self.assertEqual(self.get("c")["spec"]["volumeName"], "big")

    def test_a_claim_is_known_by_its_own_uid(self):
        """Not by that of an older one, which an annotation of it may have, too."""
        old = "8a0ff1a4-0000-4000-8000-000000000000"
        self.claim("later", "1Gi", storageClassName="nobody")
        self.api.ok("PATCH", "/api/v1/namespaces/default/persistentvolumeclaims/later",
                    {"metadata": {"annotations": {"restored-from": old}}}, MERGE_PATCH)
        self.volume("of-old", "1Gi", claimRef={"namespace": "default", "name": "later", "uid": old})
        self.api.ok("PATCH", "/api/v1/persistentvolumes/of-old/status", {"status": {"phase": "Bound"}}, MERGE_PATCH)
        wait_for("the volume to be released", lambda: self.api.ok(
            "GET", "/api/v1/persistentvolumes/of-old")["status"]["phase"] == "Released")


@embedded_only("virt-api serves these on Kubernetes")
class Virtctl(LabCase):
    def test_migrate(self):
        self.assertEqual(self.api.call("PUT", f"{SUB}/virtualmachines/none/migrate")[0], 404)
        self.api.ok("POST", vmis(), {**vmi("m"), "status": {"phase": "Pending"}})
        self.assertEqual(self.api.call("PUT", f"{SUB}/virtualmachines/m/migrate")[0], 409)
        self.api.ok("PATCH", vmis("m"), {"status": {"phase": "Running"}}, MERGE_PATCH)
        self.assertEqual(self.api.call("PUT", f"{SUB}/virtualmachines/m/migrate", {"dryRun": ["All"]})[0], 202)
        self.assertEqual(self.api.ok("GET", migrations())["items"], [])
        code, _ = self.api.call("PUT", f"{SUB}/virtualmachines/m/migrate", {"addedNodeSelector": {"disk": "fast"}})
        self.assertEqual(code, 202)
        made, = self.api.ok("GET", migrations() + "?labelSelector=kubevirt.io%2Fvmi-name%3Dm")["items"]
        self.assertTrue(made["metadata"]["name"].startswith("kubevirt-migrate-vm-"))
        self.assertEqual(made["spec"], {"vmiName": "m", "addedNodeSelector": {"disk": "fast"}})
        self.assertIn("in-flight migration detected",
                      self.api.call("PUT", f"{SUB}/virtualmachines/m/migrate")[1]["message"])
        self.assertEqual(self.lab.node("n1").call("PUT", f"{SUB}/virtualmachines/m/migrate")[0], 403)
        self.assertEqual(self.api.call("GET", f"{SUB}/virtualmachines/m/migrate")[0], 405)
        self.assertEqual(self.api.call("PUT", f"{SUB}/virtualmachines/m/restart")[0], 404)

    def test_evacuate_cancel(self):
        self.api.ok("POST", vmis(), {**vmi("e"), "status": {"phase": "Running", "evacuationNodeName": "n1"}})
        path = f"{SUB}/virtualmachineinstances/e/evacuate/cancel"
        self.assertEqual(self.api.call("PUT", path)[0], 400)
        self.api.ok("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "spec": {
            "taints": [{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]}})
        code, answer = self.api.call("PUT", path, {"evacuationNodeName": "n1"})
        self.assertEqual(code, 400)
        self.assertIn("tainted", answer["message"])
        self.api.ok("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": None}}, MERGE_PATCH)
        self.assertEqual(self.api.call("PUT", path, {"evacuationNodeName": "n2"})[0], 409)
        self.assertEqual(self.api.call("PUT", path, {"evacuationNodeName": "n1"})[0], 200)
        self.assertNotIn("evacuationNodeName", self.api.ok("GET", vmis("e"))["status"])
        self.assertEqual(self.api.call("PUT", path, {})[0], 200)


class Options(LabCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if ON_KUBERNETES:  # rules take effect a moment after they are made
            case = cls("warnings")
            wait_for("the rules to be in force", lambda: case.warnings("POST", POLICIES + "?dryRun=All", case.policy(
                "early", allowPostCopy=True)) and case.api.call("POST", POLICIES + "?dryRun=All", case.policy(
                    "early", experimental={"stallDetector": {"ewmaAlpha": "0"}}))[0] == 422)

    def warnings(self, method, path, body):
        connection = self.api.connect()
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        self.assertLess(answer.status, 300, text)
        return answer.headers.get_all("Warning") or []

    def policy(self, name, **spec):
        return {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy", "metadata": {"name": name},
                "spec": {"selectors": {}, **spec}}

    @staticmethod
    def kubevirt(name, **migrations):
        return {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": name},
                "spec": {"configuration": {"migrations": migrations}}}

    def test_risks_are_said(self):
        self.assertEqual(self.warnings("POST", POLICIES, self.policy("quiet", allowAutoConverge=True)), [])
        text, = self.warnings("POST", POLICIES, self.policy("risky", allowPostCopy=True))
        self.assertIn("spec.allowPostCopy", text)
        found = self.warnings("POST", KUBEVIRTS, self.kubevirt("kv", disableTLS=True, unsafeMigrationOverride=True))
        self.assertEqual(len(found), 2, found)
        self.assertIn("disableTLS", found[0] + found[1])
        self.assertIn("Warning:", self.kubectl_stderr())

    def kubectl_stderr(self):
        done = subprocess.run(["kubectl", "create", "-f", "-"], text=True, capture_output=True, check=False,
                              env={**os.environ, "KUBECONFIG": self.lab.kubeconfig, "HOME": self.lab.dir},
                              input=json.dumps(self.policy("shown", allowPostCopy=True)))
        return done.stderr

    def test_only_those_who_may(self):
        controller = self.lab.controller()
        if ON_KUBERNETES:  # rules take effect a moment after they are made
            wait_for("the rule on priorities to be in force", lambda: self.api.call(
                "POST", migrations() + "?dryRun=All", migration("p0", "p", priority="system-critical"))[0] == 422)
        self.assertEqual(controller.call("POST", KUBEVIRTS, self.kubevirt("x", disableTLS=True))[0], 403)
        self.api.ok("POST", vmis(), vmi("p"))
        code, answer = self.api.call("POST", migrations(), migration("p1", "p", priority="system-critical"))
        self.assertEqual(code, 422)
        self.assertIn("may only be set by the controller", answer["message"])
        controller.ok("POST", migrations(), migration("p1", "p", priority="system-critical"))

    def test_policies(self):
        stall = {"ewmaAlpha": "0.5"}
        for experimental, field in (({"stallDetector": {"ewmaAlpha": "0"}}, "ewmaAlpha"),
                                    ({"stallDetector": {"ewmaAlpha": "1.5"}}, "ewmaAlpha"),
                                    ({"stallDetector": stall, "downtimeTuning": {"steps": 3}}, "downtimeTuning")):
            code, answer = self.api.call("POST", POLICIES, self.policy("bad", experimental=experimental))
            self.assertEqual(code, 422, experimental)
            self.assertIn(field, answer["message"])
        self.api.ok("POST", POLICIES, self.policy("good", experimental={"stallDetector": stall}))


@embedded_only("on Kubernetes KubeVirt's webhook asks for gates, and Ferry brings none")
class Gates(LabCase):
    """Where the site's KubeVirt object names feature gates, what needs one is refused without it (facts 6.2)."""

    def setUp(self):
        self.api.call("DELETE", KUBEVIRTS + "/gates")

    def write(self, method, name, **spec):
        return self.api.call(method, POLICIES + ("" if method == "POST" else "/" + name),
                             Options.policy(self, name, **spec) if method == "POST" else {"spec": spec, "metadata": {}},
                             "application/json" if method == "POST" else MERGE_PATCH)

    def gates(self, *names):
        body = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "gates"}, "spec": {
            "configuration": {"developerConfiguration": {"featureGates": list(names)}}}}
        if self.api.call("POST", KUBEVIRTS, body)[0] == 409:
            self.api.ok("PATCH", KUBEVIRTS + "/gates", {"spec": body["spec"]}, MERGE_PATCH)

    def test_max_downtime(self):
        """420: maxDowntimeMs needs a gate when it is new or changed"""
        self.assertEqual(self.write("POST", "free", maxDowntimeMs=500)[0], 201)  # no gates are named: everything is on
        self.gates("LiveMigration")
        code, answer = self.write("POST", "d", maxDowntimeMs=500)
        self.assertEqual((code, answer["details"]["causes"][0]["field"]), (422, "spec.maxDowntimeMs"))
        self.assertEqual(self.write("PATCH", "free", maxDowntimeMs=500, allowAutoConverge=True)[0], 200)
        self.assertEqual(self.write("PATCH", "free", maxDowntimeMs=501)[0], 422)
        code, answer = self.api.call("PATCH", KUBEVIRTS + "/gates", {"spec": {"configuration": {"migrations": {
            "maxDowntimeMs": 300}}}}, MERGE_PATCH)
        self.assertEqual(code, 422, answer)
        for gate in ("MigrationDowntimeTuning", "MigrationStallDetection"):
            self.gates("LiveMigration", gate)
            self.assertEqual(self.write("PATCH", "free", maxDowntimeMs=len(gate))[0], 200)

    def test_experimental(self):
        """421, 422: so do downtime tuning and stall detection"""
        for field, value, other, gate in (("downtimeTuning", {"steps": 5}, {"steps": 6}, "MigrationDowntimeTuning"),
                                          ("stallDetector", {"ewmaAlpha": "0.5"}, {"ewmaAlpha": "0.4"}, "MigrationStallDetection")):
            name = field.lower()
            self.gates(gate)
            self.assertEqual(self.write("POST", name, experimental={field: value})[0], 201)
            self.gates("LiveMigration")
            self.assertEqual(self.write("POST", name + "-2", experimental={field: value})[0], 422)
            self.assertEqual(self.write("PATCH", name, experimental={field: value}, allowAutoConverge=True)[0], 200)
            self.assertEqual(self.write("PATCH", name, experimental={field: other})[0], 422)


@embedded_only("virt-api serves these on Kubernetes")
class VirtctlCalls(LabCase):
    """Byte for byte what virtctl sends: no content type with options, two equals signs, and what it asks when a call has failed."""

    def send(self, method, path, body=None):
        headers = {"Accept": "application/json, */*", "User-Agent": "virtctl/v1.9.0 (linux/amd64)"}
        if method == "DELETE":
            headers["Content-Type"] = "application/json"
        status, text = self.api.raw(method, path, body, headers)
        return status, json.loads(text)

    def active(self, name):
        code, found = self.send("GET", migrations() + f"?labelSelector=kubevirt.io%2Fvmi-name%3D%3D{name}")
        self.assertEqual(code, 200)
        return [m["metadata"]["name"] for m in found["items"] if m.get("status", {}).get("phase") not in ("Succeeded", "Failed")]

    def test_migrate_and_cancel(self):
        self.api.ok("POST", vmis(), {**vmi("v"), "status": {"phase": "Running", "nodeName": "n1"}})
        move = f"{SUB}/virtualmachines/v/migrate"
        self.assertEqual(self.send("PUT", move, '{"dryRun":["All"]}')[0], 202)
        self.assertEqual(self.active("v"), [])
        self.assertEqual(self.send("PUT", move, "{}")[0], 202)
        name, = self.active("v")
        code, answer = self.send("PUT", move, '{"addedNodeSelector":{"a":"b"}}')
        self.assertIn("in-flight migration detected", answer["message"])
        self.assertGreaterEqual(code, 400)
        options = '{"kind":"DeleteOptions","apiVersion":"kubevirt.io/v1"%s}'
        self.assertEqual(self.send("DELETE", migrations(name), options % ',"dryRun":["All"]')[0], 200)
        self.assertNotIn("deletionTimestamp", self.api.ok("GET", migrations(name))["metadata"])
        self.assertEqual(self.send("DELETE", migrations(name), options % "")[0], 200)
        self.assertIn("deletionTimestamp", self.api.ok("GET", migrations(name))["metadata"])
        self.api.ok("PATCH", migrations(name) + "/status", {"status": {"phase": "Failed"}}, MERGE_PATCH)
        self.assertEqual(self.active("v"), [])

    def test_after_a_failure(self):
        """It asks which version the server has, and says more when it is not told."""
        code, group = self.send("GET", "/apis/subresources.kubevirt.io")
        self.assertEqual((code, group["preferredVersion"]["groupVersion"]), (200, "subresources.kubevirt.io/v1"))
        code, version = self.send("GET", "/apis/subresources.kubevirt.io/v1/version")
        self.assertEqual(code, 200)
        self.assertRegex(version["gitVersion"], r"^v1\.\d+\.\d+")


@embedded_only("virt-api serves these on Kubernetes")
@unittest.skipUnless(shutil.which("virtctl"), "no virtctl in PATH")
class VirtctlProgram(LabCase):
    def virtctl(self, *args, code=0):
        done = subprocess.run(["virtctl", *args], text=True, capture_output=True, check=False, timeout=60,
                              env={**os.environ, "KUBECONFIG": self.lab.kubeconfig, "HOME": self.lab.dir})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def moves(self):
        return self.api.ok("GET", migrations())["items"]

    def test_migrate_and_cancel(self):
        self.api.ok("POST", vmis(), {**vmi("m"), "status": {"phase": "Running", "nodeName": "n1"}})
        self.assertIn("VM m was scheduled to migrate", self.virtctl("migrate", "m", "--dry-run"))
        self.assertEqual(self.moves(), [])
        self.assertIn("VM m was scheduled to migrate", self.virtctl("migrate", "m", "--addedNodeSelector", "a=b"))
        made, = self.moves()
        self.assertEqual(made["spec"], {"vmiName": "m", "addedNodeSelector": {"a": "b"}})
        self.assertIn("in-flight migration detected", self.virtctl("migrate", "m", code=1))
        self.assertIn("VM m was scheduled to migrate-cancel", self.virtctl("migrate-cancel", "m"))
        self.assertEqual(self.moves(), [])
        self.assertIn("no migration to cancel", self.virtctl("migrate-cancel", "m", code=1))
        self.assertIn("not found", self.virtctl("migrate", "ghost", code=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
