"""Objects over HTTP: create, read, change, delete, as Kubernetes does it."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import (APPLY, JSON_PATCH, KUBEVIRT, MERGE_PATCH, STRATEGIC, LabCase, binding, configmaps, embedded_only,  # noqa: E402
                 migration, migrations, pod, pods, vmi, vmis, wait_for)


class Objects(LabCase):
    def refused(self, code, reason, words, method, path, body=None, kind="application/json"):
        status, answer = self.api.call(method, path, body, kind)
        self.assertEqual(status, code, answer)
        self.assertEqual((answer["kind"], answer["status"], answer["reason"], answer["code"]),
                         ("Status", "Failure", reason, code))
        self.assertIn(words, answer["message"])
        return answer

    def test_create_and_get(self):
        made = self.api.ok("POST", vmis(), vmi("create-1"), code=201)
        meta = made["metadata"]
        self.assertEqual((meta["name"], meta["namespace"], meta["generation"]), ("create-1", "default", 1))
        self.assertRegex(meta["uid"], r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertRegex(meta["creationTimestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(self.api.ok("GET", vmis("create-1")), made)
        self.refused(409, "AlreadyExists", 'virtualmachineinstances.kubevirt.io "create-1" already exists', "POST",
                     vmis(), vmi("create-1"))
        self.refused(404, "NotFound", 'virtualmachineinstances.kubevirt.io "nope" not found', "GET", vmis("nope"))
        self.refused(404, "NotFound", 'namespaces "nope" not found', "POST", vmis(ns="nope"), vmi("a"))

    def test_generate_name(self):
        body = pod("x")
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = "gen-"
        names = {self.api.ok("POST", pods(), body)["metadata"]["name"] for _ in range(5)}
        self.assertEqual(len(names), 5)
        for name in names:
            self.assertRegex(name, r"^gen-[a-z0-9]{5}$")

    def test_lists_and_selectors(self):
        for name, labels in (("list-a", {"t": "list", "x": "1"}), ("list-b", {"t": "list", "x": "2"}), ("list-c", {})):
            self.api.ok("POST", configmaps(), {"metadata": {"name": name, "labels": labels}})

        def names(query):
            answer = self.api.ok("GET", configmaps() + "?" + query)
            self.assertEqual((answer["kind"], answer["apiVersion"]), ("ConfigMapList", "v1"))
            self.assertGreater(int(answer["metadata"]["resourceVersion"]), 0)
            return [i["metadata"]["name"] for i in answer["items"]]
        self.assertEqual(names("labelSelector=t%3Dlist"), ["list-a", "list-b"])
        self.assertEqual(names("labelSelector=t%3Dlist,x+notin+(1)"), ["list-b"])
        self.assertEqual(names("labelSelector=x+in+(1,2),x!%3D2"), ["list-a"])
        self.assertEqual(names("fieldSelector=metadata.name%3Dlist-c"), ["list-c"])
        self.assertEqual(names("labelSelector=t&fieldSelector=metadata.name!%3Dlist-a"), ["list-b"])
        self.refused(400, "BadRequest", "expected", "GET", configmaps() + "?labelSelector=a+b")
        self.refused(400, "BadRequest", "spec.x", "GET", configmaps() + "?fieldSelector=spec.x%3D1")
        everywhere = self.api.ok("GET", "/api/v1/configmaps?labelSelector=t%3Dlist")
        self.assertEqual(len(everywhere["items"]), 2)

    def test_updates_and_conflicts(self):
        made = self.api.ok("POST", configmaps(), {"metadata": {"name": "up"}, "data": {"a": "1"}})
        first = dict(made, data={"a": "2"})
        second = self.api.ok("PUT", configmaps("up"), first)
        self.assertGreater(int(second["metadata"]["resourceVersion"]), int(made["metadata"]["resourceVersion"]))
        self.refused(409, "Conflict", "the object has been modified", "PUT", configmaps("up"), first)
        # nothing changes: no new version
        self.assertEqual(self.api.ok("PUT", configmaps("up"), second), second)
        # an update without a version takes whatever is there
        del second["metadata"]["resourceVersion"]
        second["data"] = {"a": "3"}
        self.assertEqual(self.api.ok("PUT", configmaps("up"), second)["data"], {"a": "3"})
        other = dict(second, metadata={"name": "up", "uid": "someone-else"})
        self.refused(409, "Conflict", "UID", "PUT", configmaps("up"), other)
        self.refused(404, "NotFound", "not found", "PUT", configmaps("absent"), {"metadata": {"name": "absent"}})
        # custom kinds and leases are never replaced blindly
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "up"}, "spec": {}}
        for where, body in ((vmis(), vmi("up")), (leases, lease)):
            made = self.api.ok("POST", where, body)
            self.refused(422, "Invalid", "metadata.resourceVersion: Invalid value", "PUT", where + "/up", body)
            self.api.ok("PUT", where + "/up", made)
        self.refused(400, "BadRequest", "does not match the name", "PUT", configmaps("up"), {"metadata": {"name": "x"}})

    def test_patches(self):
        made = self.api.ok("POST", configmaps(), {"metadata": {"name": "patch", "labels": {"a": "b"}}, "data": {"x": "1"}})
        version = made["metadata"]["resourceVersion"]
        path = configmaps("patch")
        good = [{"op": "test", "path": "/metadata/resourceVersion", "value": version},
                {"op": "add", "path": "/data/y", "value": "2"}, {"op": "remove", "path": "/metadata/labels/a"}]
        after = self.api.ok("PATCH", path, good, JSON_PATCH)
        self.assertEqual(after["data"], {"x": "1", "y": "2"})
        self.assertFalse(after["metadata"].get("labels"))
        self.refused(422, "Invalid", "rejected our request", "PATCH", path, good, JSON_PATCH)
        self.refused(422, "Invalid", "rejected our request", "PATCH", path, [{"op": "remove", "path": "/data/zz"}], JSON_PATCH)
        self.refused(400, "BadRequest", "", "PATCH", path, {}, JSON_PATCH)
        merged = self.api.ok("PATCH", path, {"data": {"x": None, "z": "3"}}, MERGE_PATCH)
        self.assertEqual(merged["data"], {"y": "2", "z": "3"})
        self.refused(409, "Conflict", "modified", "PATCH", path,
                     {"metadata": {"resourceVersion": version}, "data": {"q": "1"}}, MERGE_PATCH)
        self.assertEqual(self.api.call("PATCH", path, {}, "text/plain")[0], 415)
        self.refused(404, "NotFound", "not found", "PATCH", configmaps("absent"), {}, MERGE_PATCH)

    def test_fields_that_core_kinds_do_not_have(self):
        """They go, as with custom kinds; who asks for strictness is refused."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"x": "1"}, "unknown": {"y": 1}}
        self.assertNotIn("unknown", self.api.ok("POST", configmaps(), body))
        path = configmaps("more")
        after = self.api.ok("PATCH", path, {"data": {"z": "3"}, "other": [1]}, MERGE_PATCH)
        self.assertEqual((after["data"], after.get("other")), ({"x": "1", "z": "3"}, None))
        self.refused(400, "BadRequest", 'unknown field "unknown"', "POST", configmaps() + "?fieldValidation=Strict",
                     {**body, "metadata": {"name": "more-2"}})

    @embedded_only("Kubernetes says less, and in another place, of a patch that cannot be read")
    def test_what_is_wrong_with_a_patch_is_said(self):
        made = self.api.ok("POST", configmaps(), {"metadata": {"name": "said"}, "data": {"x": "1"}})
        path = configmaps("said")
        bad = [{"op": "test", "path": "/data/x", "value": "2"}]
        self.refused(422, "Invalid", "test failed", "PATCH", path, bad, JSON_PATCH)
        self.refused(422, "Invalid", "/data/zz", "PATCH", path, [{"op": "remove", "path": "/data/zz"}], JSON_PATCH)
        self.refused(400, "BadRequest", "'op' must be", "PATCH", path, [{"op": "x", "path": "/a"}], JSON_PATCH)
        self.refused(400, "BadRequest", "must be a list", "PATCH", path, {}, JSON_PATCH)
        # what identifies the object cannot be patched away
        same = self.api.ok("PATCH", path, [{"op": "remove", "path": "/metadata/uid"}], JSON_PATCH)
        self.assertEqual(same["metadata"]["uid"], made["metadata"]["uid"])

    def test_apply(self):
        path = configmaps("applied") + "?fieldManager=test"
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: '1'}\n"
        status, made = self.api.call("PATCH", path, text, APPLY)
        self.assertEqual((status, made["data"]), (201, {"a": "1"}))
        status, again = self.api.call("PATCH", path, text.replace("'1'", "'2'"), APPLY)
        self.assertEqual((status, again["data"]), (200, {"a": "2"}))
        self.api.ok("PATCH", configmaps("applied"), {"data": {"other": "kept"}}, MERGE_PATCH)
        status, again = self.api.call("PATCH", path, text, APPLY)
        self.assertEqual((status, again["data"]), (200, {"a": "1", "other": "kept"}))

    @embedded_only("field managers are not tracked: what an apply leaves out stays")
    def test_apply_merges(self):
        path = configmaps("merged") + "?fieldManager=test"
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: merged}\ndata: {a: '1'}\n"
        self.api.call("PATCH", path, text, APPLY)
        status, again = self.api.call("PATCH", path, text.replace("a: '1'", "b: '2'"), APPLY)
        self.assertEqual((status, again["data"]), (200, {"a": "1", "b": "2"}))

    def test_strategic(self):
        self.api.ok("POST", "/api/v1/nodes", {"metadata": {"name": "strategic"}, "spec": {"taints": [
            {"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]}})
        after = self.api.ok("PATCH", "/api/v1/nodes/strategic", {"spec": {"taints": [
            {"key": "c", "effect": "NoExecute"}]}}, STRATEGIC)  # a list that is replaced whole
        self.assertEqual([t["key"] for t in after["spec"]["taints"]], ["c"])
        for kind, status in (("A", "True"), ("B", "True"), ("A", "False")):  # lists that are merged by key
            after = self.api.ok("PATCH", "/api/v1/nodes/strategic/status", {"status": {"conditions": [
                {"type": kind, "status": status}]}}, STRATEGIC)
        self.assertEqual({c["type"]: c["status"] for c in after["status"]["conditions"]}, {"A": "False", "B": "True"})
        after = self.api.ok("PATCH", "/api/v1/nodes/strategic/status", {"status": {"conditions": [
            {"$patch": "delete", "type": "B"}]}}, STRATEGIC)
        self.assertEqual([c["type"] for c in after["status"]["conditions"]], ["A"])
        self.api.ok("POST", vmis(), vmi("strategic"))
        self.assertEqual(self.api.call("PATCH", vmis("strategic"), {"metadata": {}}, STRATEGIC)[0], 415)

    def test_yaml_body_and_dry_run(self):
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\n"
        status, answer = self.api.call("POST", configmaps() + "?dryRun=All", text, "application/yaml")
        self.assertEqual((status, answer["metadata"]["name"]), (201, "from-yaml"))
        self.refused(404, "NotFound", "not found", "GET", configmaps("from-yaml"))
        self.api.ok("POST", configmaps(), text, "application/yaml", code=201)
        self.api.ok("DELETE", configmaps("from-yaml") + "?dryRun=All")
        self.api.ok("PATCH", configmaps("from-yaml") + "?dryRun=All", {"data": {"a": "b"}}, MERGE_PATCH)
        self.assertNotIn("data", self.api.ok("GET", configmaps("from-yaml")))

    def test_status_doors(self):
        self.api.ok("POST", vmis(), vmi("doors"))
        # a VMI takes status at the object, as KubeVirt has it
        after = self.api.ok("PATCH", vmis("doors"), {"status": {"phase": "Running", "nodeName": "n1"}}, MERGE_PATCH)
        self.assertEqual(after["status"], {"phase": "Running", "nodeName": "n1"})
        self.assertEqual(self.api.call("PATCH", vmis("doors") + "/status", {"status": {}}, MERGE_PATCH)[0], 404)
        # a migration only at its own
        made = self.api.ok("POST", migrations(), {**migration("doors", "doors"), "status": {"phase": "Failed"}})
        self.assertNotIn("status", made)
        same = self.api.ok("PATCH", migrations("doors"), {"status": {"phase": "Failed"}}, MERGE_PATCH)
        self.assertNotIn("status", same)
        after = self.api.ok("PATCH", migrations("doors") + "/status", {"status": {"phase": "Failed"}, "metadata": {
            "labels": {"x": "y"}}}, MERGE_PATCH)
        self.assertEqual(after["status"], {"phase": "Failed"})
        self.assertNotIn("x", after["metadata"].get("labels", {}))
        self.assertEqual(after["metadata"]["generation"], 1)
        # of a pod likewise
        self.api.ok("POST", pods(), pod("doors"))
        after = self.api.ok("PATCH", pods("doors") + "/status", {"status": {"phase": "Running"}}, STRATEGIC)
        self.assertEqual(after["status"]["phase"], "Running")
        self.refused(422, "Invalid", "spec", "PATCH", pods("doors"), {"spec": {"nodeName": "x"}},
                     MERGE_PATCH)

    def test_binding(self):
        self.api.ok("POST", pods(), pod("bound"))
        target = binding("bound", "n7")
        for wrong in ({"uid": "8a0ff1a4-0000-0000-0000-000000000000"}, {"resourceVersion": "1"}):  # another pod was looked at
            self.assertEqual(self.api.call("POST", pods("bound") + "/binding", {
                **target, "metadata": {"name": "bound", **wrong}})[0], 409)
        self.assertNotIn("nodeName", self.api.ok("GET", pods("bound"))["spec"])
        answer = self.api.ok("POST", pods("bound") + "/binding", target, code=201)
        self.assertEqual(answer["status"], "Success")
        after = self.api.ok("GET", pods("bound"))
        self.assertEqual(after["spec"]["nodeName"], "n7")
        self.assertIn(("PodScheduled", "True"), [(c["type"], c["status"]) for c in after["status"]["conditions"]])
        self.refused(409, "Conflict", 'already assigned to node "n7"', "POST", pods("bound") + "/binding", target)
        self.refused(404, "NotFound", "not found", "POST", pods("nobody") + "/binding", binding("nobody", "n7"))
        self.refused(400, "BadRequest", "name in URL does not match", "POST", pods("bound") + "/binding", binding("x", "n7"))
        found = self.api.ok("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn7")["items"]
        self.assertEqual([p["metadata"]["name"] for p in found], ["bound"])

    def test_deletion(self):
        made = self.api.ok("POST", configmaps(), {"metadata": {"name": "del"}})
        uid = made["metadata"]["uid"]
        self.refused(409, "Conflict", "UID in the precondition", "DELETE", configmaps("del"),
                     {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}})
        answer = self.api.ok("DELETE", configmaps("del"), {"preconditions": {"uid": uid}})
        self.assertEqual((answer["kind"], answer["status"], answer["details"]["uid"]), ("Status", "Success", uid))
        self.refused(404, "NotFound", "not found", "DELETE", configmaps("del"))

    def test_finalizers(self):
        self.api.ok("POST", vmis(), vmi("fin", finalizers=["a.b/c"]))
        marked = self.api.ok("DELETE", vmis("fin"))
        self.assertIn("deletionTimestamp", marked["metadata"])
        version = marked["metadata"]["resourceVersion"]
        again = self.api.ok("DELETE", vmis("fin"))
        self.assertEqual(again["metadata"]["resourceVersion"], version)
        self.refused(422, "Invalid", "no new finalizers", "PATCH", vmis("fin"),
                     {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}, MERGE_PATCH)
        self.api.ok("PATCH", vmis("fin"), {"metadata": {"finalizers": None}}, MERGE_PATCH)
        self.refused(404, "NotFound", "not found", "GET", vmis("fin"))

    def test_graceful_pods(self):
        for name in ("grace-1", "grace-2"):
            self.api.ok("POST", pods(), pod(name))
        # nobody runs it: gone at once
        self.api.ok("DELETE", pods("grace-1"))
        self.refused(404, "NotFound", "not found", "GET", pods("grace-1"))
        self.api.ok("POST", pods("grace-2") + "/binding", binding("grace-2", "n1"))
        marked = self.api.ok("DELETE", pods("grace-2"))
        self.assertEqual(marked["metadata"]["deletionGracePeriodSeconds"], 30)
        self.assertEqual(self.api.ok("GET", pods("grace-2"))["metadata"]["deletionGracePeriodSeconds"], 30)
        shorter = self.api.ok("DELETE", pods("grace-2"), {"gracePeriodSeconds": 2})
        self.assertEqual(shorter["metadata"]["deletionGracePeriodSeconds"], 2)
        self.api.ok("DELETE", pods("grace-2") + "?gracePeriodSeconds=0")
        self.refused(404, "NotFound", "not found", "GET", pods("grace-2"))

    def gone(self, path):
        return self.api.call("GET", path)[0] == 404

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_owners(self):
        owner = self.api.ok("POST", vmis(), vmi("owner"))
        other = self.api.ok("POST", vmis(), vmi("owner-2"))
        refs = [{"apiVersion": o["apiVersion"], "kind": o["kind"], "name": o["metadata"]["name"],
                 "uid": o["metadata"]["uid"]} for o in (owner, other)]
        child = self.api.ok("POST", configmaps(), {"metadata": {"name": "child", "ownerReferences": refs[:1]}})
        self.api.ok("POST", configmaps(), {"metadata": {"name": "both", "ownerReferences": refs}})
        self.api.ok("POST", configmaps(), {"metadata": {"name": "grandchild", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "child", "uid": child["metadata"]["uid"]}]}})
        self.api.ok("DELETE", vmis("owner"))
        wait_for("the child to go", lambda: self.gone(configmaps("child")))
        wait_for("the grandchild to go", lambda: self.gone(configmaps("grandchild")))
        self.assertFalse(self.gone(configmaps("both")))
        self.api.ok("DELETE", vmis("owner-2"))
        wait_for("the child of both to go", lambda: self.gone(configmaps("both")))
        # an owner that never was
        self.api.ok("POST", configmaps(), {"metadata": {"name": "orphan", "ownerReferences": [
            {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "no-such-uid"}]}})
        wait_for("the orphan to go", lambda: self.gone(configmaps("orphan")))

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_owners_that_are_named_later(self):
        self.api.ok("POST", configmaps(), {"metadata": {"name": "adopted"}})
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "8a0ff1a4-0000-0000-0000-000000000000"}
        self.api.ok("PATCH", configmaps("adopted"), {"metadata": {"ownerReferences": [ref]}}, MERGE_PATCH)
        wait_for("what nobody owns to go", lambda: self.api.call("GET", configmaps("adopted"))[0] == 404)

    @embedded_only("kube-controller-manager empties namespaces, not kube-apiserver")
    def test_namespaces(self):
        self.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "short"}})
        self.api.ok("POST", configmaps(ns="short"), {"metadata": {"name": "a"}})
        self.api.ok("POST", vmis(ns="short"), vmi("held", finalizers=["x.y/z"]))
        marked = self.api.ok("DELETE", "/api/v1/namespaces/short")
        self.assertEqual(marked["status"]["phase"], "Terminating")
        wait_for("the contents to go", lambda: self.gone(configmaps("a", ns="short")))
        self.refused(403, "Forbidden", "being terminated", "POST", configmaps(ns="short"), {"metadata": {"name": "b"}})
        self.assertEqual(self.api.call("GET", "/api/v1/namespaces/short")[0], 200)
        self.api.ok("PATCH", vmis("held", ns="short"), {"metadata": {"finalizers": None}}, MERGE_PATCH)
        wait_for("the namespace to go", lambda: self.gone("/api/v1/namespaces/short"))
        self.refused(403, "Forbidden", "may not be deleted", "DELETE", "/api/v1/namespaces/default")

    @embedded_only("kube-controller-manager empties namespaces, not kube-apiserver")
    def test_namespaces_that_only_look_as_if_they_ended(self):
        """A label may have any name."""
        for name in ("labelled", "ending"):
            self.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            self.api.ok("POST", configmaps(ns=name), {"metadata": {"name": "a"}})
        self.lab.kubectl("label", "ns", "labelled", "deletionTimestamp=y")
        self.api.ok("DELETE", "/api/v1/namespaces/ending")  # what looks at this one looks at the other
        wait_for("the namespace to go", lambda: self.gone("/api/v1/namespaces/ending"))
        self.assertFalse(self.gone(configmaps("a", ns="labelled")))
        self.assertFalse(self.gone("/api/v1/namespaces/labelled"))
        self.api.ok("DELETE", "/api/v1/namespaces/labelled")
        wait_for("the labelled one to go, too", lambda: self.gone("/api/v1/namespaces/labelled"))

    def test_admission(self):
        bad = vmi("x")
        bad["spec"]["domain"] = {"memory": {"guest": "much"}}
        answer = self.refused(422, "Invalid", "spec.domain.memory.guest: Invalid value: \"much\"", "POST", vmis(), bad)
        self.assertEqual(answer["details"]["kind"], "VirtualMachineInstance")
        none = vmi("x")
        del none["spec"]["domain"]["memory"]
        # (rules of Kubernetes take effect a moment after they are made)
        wait_for("a machine without memory to be refused", lambda: self.api.call("POST", vmis() + "?dryRun=All", none)[0] == 422)
        self.refused(422, "Invalid", "spec.domain.memory.guest: Required value", "POST", vmis(), none)
        bad = migration("x", "y")
        del bad["spec"]["vmiName"]
        answer = self.refused(422, "Invalid", "spec.vmiName: Required value", "POST", migrations(), bad)
        self.assertEqual((answer["details"]["kind"], answer["details"]["group"], answer["details"]["name"]),
                         ("VirtualMachineInstanceMigration", "kubevirt.io", "x"))
        self.assertIn(("spec.vmiName", "FieldValueRequired"), [(c["field"], c["reason"]) for c in answer["details"]["causes"]])
        self.refused(400, "BadRequest", "must be of type VirtualMachineInstance", "POST", vmis(),
                     {"metadata": {"name": "x"}, "spec": {"domain": {}}})

    @embedded_only("KubeVirt has these rules in a webhook: they look at other objects")
    def test_admission_of_migrations(self):
        self.api.ok("POST", vmis(), vmi("adm"))
        self.refused(400, "BadRequest", 'the VMI "gone" does not exist', "POST", migrations(), migration("x", "gone"))
        self.api.ok("POST", migrations(), migration("adm-1", "adm"))
        self.refused(400, "BadRequest", "in-flight migration detected", "POST", migrations(), migration("adm-2", "adm"))
        self.refused(422, "Invalid", "restricted", "PATCH", migrations("adm-1"), {"spec": {"vmiName": "other"}}, MERGE_PATCH)
        self.api.ok("PATCH", migrations("adm-1") + "/status", {"status": {"phase": "Succeeded"}}, MERGE_PATCH)
        self.api.ok("POST", migrations(), migration("adm-2", "adm"))
        self.api.ok("PATCH", vmis("adm"), {"status": {"phase": "Failed"}}, MERGE_PATCH)
        self.api.ok("PATCH", migrations("adm-2") + "/status", {"status": {"phase": "Failed"}}, MERGE_PATCH)
        self.refused(400, "BadRequest", "finalized state", "POST", migrations(), migration("adm-3", "adm"))

    @embedded_only("Kubernetes serves more")
    def test_kinds_that_are_not_served(self):
        self.refused(404, "NotFound", "could not find", "GET", "/api/v1/services")
        self.refused(404, "NotFound", "could not find", "GET", "/apis/apps/v1/deployments")

    def test_unknown_doors(self):
        self.refused(404, "NotFound", "", "GET", f"{KUBEVIRT}/namespaces/a/virtualmachineinstances/b/x")
        self.refused(405, "MethodNotAllowed", "method", "DELETE", "/api/v1/pods")
        self.assertEqual(self.api.raw("POST", "/api", "{}", {"Content-Type": "application/json"})[0], 405)


if __name__ == "__main__":
    unittest.main(verbosity=2)
