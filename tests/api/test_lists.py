"""Lists in pages, lists of the past, watches that begin with a list; deletion of many, and of what others own."""
import json
import os
import sys
import unittest
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import MERGE_PATCH, Lab, LabCase, configmaps, embedded_only, pod, pods, vmi, vmis, wait_for  # noqa: E402


def names(listing):
    return [i["metadata"]["name"] for i in listing["items"]]


def config(name, **meta):
    return {"metadata": {"name": name, **meta}, "data": {}}


class Case(LabCase):
    def setUp(self):
        self.ns = self._testMethodName.replace("_", "-")
        self.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns}})


class Lists(Case):
    def test_pages_show_one_instant(self):
        path = configmaps(ns=self.ns)
        for i in range(7):
            self.api.ok("POST", path, config(f"c{i}", labels={"odd": str(i % 2)}))
        first = self.api.ok("GET", f"{path}?limit=3")
        self.assertEqual(names(first), ["c0", "c1", "c2"])
        self.assertEqual(first["metadata"]["remainingItemCount"], 4)
        # what happens now is not in the pages that follow
        self.api.ok("DELETE", configmaps("c4", self.ns))
        self.api.ok("PATCH", configmaps("c5", self.ns), {"data": {"new": "1"}}, MERGE_PATCH)
        self.api.ok("POST", path, config("c3a"))
        second = self.api.ok("GET", f"{path}?limit=3&continue={quote(first['metadata']['continue'])}")
        self.assertEqual(names(second), ["c3", "c4", "c5"])
        self.assertEqual(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"])
        self.assertNotIn("new", second["items"][2].get("data") or {})
        last = self.api.ok("GET", f"{path}?limit=3&continue={quote(second['metadata']['continue'])}")
        self.assertEqual(names(last), ["c6"])
        self.assertNotIn("continue", last["metadata"])
        odd = self.api.ok("GET", f"{path}?limit=2&labelSelector=odd%3D1")
        self.assertEqual(names(odd), ["c1", "c3"])
        self.assertNotIn("remainingItemCount", odd["metadata"])
        self.assertEqual(self.lab.kubectl("get", "cm", "-n", self.ns, "--chunk-size=2", "-o", "name").count("\n"), 7)
        self.assertEqual(self.api.call("GET", f"{path}?continue=nonsense")[0], 400)

    def test_versions(self):
        path = configmaps(ns=self.ns)
        made = [self.api.ok("POST", path, config(f"v{i}"))["metadata"]["resourceVersion"] for i in range(3)]
        exact = self.api.ok("GET", f"{path}?resourceVersion={made[1]}&resourceVersionMatch=Exact")
        self.assertEqual((names(exact), exact["metadata"]["resourceVersion"]), (["v0", "v1"], made[1]))
        newer = self.api.ok("GET", f"{path}?resourceVersion={made[1]}&resourceVersionMatch=NotOlderThan")
        self.assertEqual(names(newer), ["v0", "v1", "v2"])
        self.assertEqual(len(self.api.ok("GET", f"{path}?resourceVersion=0")["items"]), 3)
        future = int(made[2]) + 1000
        self.assertEqual(self.api.call("GET", f"{path}?resourceVersion={future}")[0], 504)
        self.assertEqual(self.api.call("GET", f"{path}/v0?resourceVersion={future}")[0], 504)
        for bad in ("resourceVersionMatch=Exact", "resourceVersion=3&resourceVersionMatch=Sometimes",
                    "resourceVersion=0&resourceVersionMatch=Exact"):
            self.assertEqual(self.api.call("GET", f"{path}?{bad}")[0], 422)

    @embedded_only("restarts the server")
    def test_versions_from_before_the_window(self):
        lab = Lab()
        made = lab.admin.ok("POST", configmaps(), config("a"))["metadata"]["resourceVersion"]
        lab.admin.ok("POST", configmaps(), config("b"))
        page = lab.admin.ok("GET", f"{configmaps()}?limit=1")
        lab.admin.ok("POST", configmaps(), config("c"))
        lab.stop()
        lab.start()  # the window begins anew
        code, answer = lab.admin.call("GET", f"{configmaps()}?resourceVersion={made}&resourceVersionMatch=Exact")
        self.assertEqual((code, answer["reason"]), (410, "Expired"))
        code, answer = lab.admin.call("GET", f"{configmaps()}?limit=1&continue={quote(page['metadata']['continue'])}")
        self.assertEqual((code, answer["reason"]), (410, "Expired"))
        lab.close()

    @embedded_only("Kubernetes does it only with an etcd newer than Debian's")
    def test_watch_that_begins_with_a_list(self):
        path = configmaps(ns=self.ns)
        for i in range(2):
            self.api.ok("POST", path, config(f"w{i}"))
        watch = self.api.watch(path, sendInitialEvents="true", resourceVersionMatch="NotOlderThan",
                               allowWatchBookmarks="true")
        events = [watch.next() for _ in range(3)]
        self.assertEqual([t for t, _ in events], ["ADDED", "ADDED", "BOOKMARK"])
        self.assertEqual(events[2][1]["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"})
        self.api.ok("POST", path, config("w2"))
        self.assertEqual(watch.next()[1]["metadata"]["name"], "w2")
        watch.close()
        self.assertEqual(self.api.watch(path, sendInitialEvents="true").status, 422)


class Deletion(Case):
    def test_collections(self):
        path = configmaps(ns=self.ns)
        for i in range(4):
            self.api.ok("POST", path, config(f"d{i}", labels={"odd": str(i % 2)},
                                             finalizers=["x.io/y"] if i == 3 else []))
        self.assertEqual(len(self.api.ok("DELETE", f"{path}?dryRun=All")["items"]), 4)
        self.assertEqual(len(self.api.ok("GET", path)["items"]), 4)
        self.api.ok("DELETE", f"{path}?labelSelector=odd%3D1")
        left = self.api.ok("GET", path)
        self.assertEqual(names(left), ["d0", "d2", "d3"])
        self.assertIn("deletionTimestamp", left["items"][2]["metadata"])
        self.api.ok("PATCH", configmaps("d3", self.ns), {"metadata": {"finalizers": None}}, MERGE_PATCH)
        self.lab.kubectl("delete", "cm", "--all", "-n", self.ns)
        self.assertEqual(self.api.ok("GET", path)["items"], [])

    def owned(self, cascade):
        owner = self.api.ok("POST", configmaps(ns=self.ns), config("owner"))
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
               "blockOwnerDeletion": True}
        self.api.ok("POST", configmaps(ns=self.ns), config("owned", ownerReferences=[ref], finalizers=["x.io/y"]))
        self.lab.kubectl("delete", "cm", "owner", "-n", self.ns, f"--cascade={cascade}", "--wait=false")

    def code(self, name):
        return self.api.call("GET", configmaps(name, self.ns))[0]

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_foreground(self):
        self.owned("foreground")
        wait_for("the owned to be on its way out", lambda: "deletionTimestamp" in self.api.ok(
            "GET", configmaps("owned", self.ns))["metadata"])
        self.assertEqual(self.code("owner"), 200)  # waits for what it owns
        self.api.ok("PATCH", configmaps("owned", self.ns), {"metadata": {"finalizers": None}}, MERGE_PATCH)
        wait_for("the owner to go", lambda: self.code("owner") == 404)
        self.assertEqual(self.code("owned"), 404)

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_orphan(self):
        self.owned("orphan")
        wait_for("the owner to go", lambda: self.code("owner") == 404)
        owned = self.api.ok("GET", configmaps("owned", self.ns))["metadata"]
        self.assertFalse(owned.get("ownerReferences"))
        self.assertNotIn("deletionTimestamp", owned)

    def test_preconditions(self):
        made = self.api.ok("POST", configmaps(ns=self.ns), config("p"))["metadata"]
        for wrong in ({"uid": "x"}, {"resourceVersion": "1"}):
            self.assertEqual(self.api.call("DELETE", configmaps("p", self.ns), {"preconditions": wrong})[0], 409)
        self.api.ok("DELETE", configmaps("p", self.ns),
                    {"preconditions": {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}})
        self.assertEqual(self.api.call("DELETE", configmaps("p", self.ns), {"propagationPolicy": "Sideways"})[0], 422)


class Eviction(Case):
    def launcher(self, name, of, node="n1"):
        p = pod(name, labels={"kubevirt.io": "virt-launcher"}, annotations={"kubevirt.io/domain": of})
        self.api.ok("POST", pods(ns=self.ns), {**p, "spec": {**p["spec"], "nodeName": node}})

    def machine(self, name, strategy, migratable="True", node="n1"):
        made = vmi(name)
        made["spec"]["evictionStrategy"] = strategy
        made["status"] = {"nodeName": node, "phase": "Running",
                          "conditions": [{"type": "LiveMigratable", "status": migratable}]}
        self.api.ok("POST", vmis(ns=self.ns), made)

    def evict(self, name, query="", **body):
        return self.api.call("POST", pods(name, self.ns) + "/eviction" + query, {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **body})

    def test_a_plain_pod_goes(self):
        self.api.ok("POST", pods(ns=self.ns), pod("plain"))
        self.assertEqual(self.evict("plain", "?dryRun=All")[0], 201)
        self.assertEqual(self.api.call("GET", pods("plain", self.ns))[0], 200)
        self.assertEqual(self.evict("plain")[0], 201)
        self.assertEqual(self.api.call("GET", pods("plain", self.ns))[0], 404)
        self.assertEqual(self.evict("plain")[0], 404)

    @embedded_only("KubeVirt has these rules in a webhook, and Ferry brings none to Kubernetes")
    def test_machines_are_asked_to_leave(self):
        self.machine("m", "LiveMigrate")
        self.launcher("launcher", "m")
        self.launcher("target", "m", "n2")
        self.assertEqual(self.evict("target")[1]["message"], 'Eviction request for target Pod of VMI "m"')
        code, answer = self.evict("launcher", "?dryRun=All")
        self.assertEqual(code, 429)
        self.assertNotIn("evacuationNodeName", self.api.ok("GET", vmis("m", self.ns))["status"])
        code, answer = self.evict("launcher")
        self.assertEqual((code, answer["message"]), (429, 'Eviction triggered evacuation of VMI "m"'))
        self.assertEqual(self.api.ok("GET", vmis("m", self.ns))["status"]["evacuationNodeName"], "n1")
        self.assertIn("Evacuation in progress", self.evict("launcher")[1]["message"])
        self.assertNotIn("deletionTimestamp", self.api.ok("GET", pods("launcher", self.ns))["metadata"])

    @embedded_only("KubeVirt has these rules in a webhook, and Ferry brings none to Kubernetes")
    def test_strategies(self):
        for strategy, migratable, code in (("None", "True", 201), ("LiveMigrate", "False", 429),
                                           ("LiveMigrateIfPossible", "False", 201), ("External", "False", 429)):
            name = f"{strategy.lower()}-{migratable.lower()}"
            self.machine(name, strategy, migratable)
            self.launcher(f"pod-{name}", name)
            self.assertEqual(self.evict(f"pod-{name}")[0], code, name)
        self.launcher("pod-lost", "lost")
        self.assertEqual(self.evict("pod-lost")[0], 429)

    @embedded_only("KubeVirt has these rules in a webhook, and Ferry brings none to Kubernetes")
    def test_drain(self):
        self.api.ok("POST", "/api/v1/nodes", {"metadata": {"name": "drained"}})
        self.machine("m", "LiveMigrate", node="drained")
        self.launcher("launcher", "m", "drained")
        out = self.lab.kubectl("drain", "drained", "--dry-run=client", "--force")
        self.assertIn("launcher", out)
        self.lab.kubectl("drain", "drained", "--force", "--timeout=3s", code=1)
        self.assertEqual(self.api.ok("GET", vmis("m", self.ns))["status"]["evacuationNodeName"], "drained")
        self.assertTrue(self.api.ok("GET", "/api/v1/nodes/drained")["spec"]["unschedulable"])


class Kinds(Case):
    @embedded_only("on Kubernetes two of these kinds come with other software")
    def test_all_that_the_design_names(self):
        kinds = {line.split()[0] for line in self.lab.kubectl("api-resources", "--no-headers").splitlines()}
        for kind in ("pods nodes namespaces persistentvolumes persistentvolumeclaims resourcequotas events configmaps "
                     "secrets storageclasses storageprofiles leases network-attachment-definitions virtualmachines "
                     "virtualmachineinstances virtualmachineinstancemigrations kubevirts migrationpolicies").split():
            self.assertIn(kind, kinds)
        self.assertIn("policy/v1", self.lab.kubectl("api-versions"))
        json.loads(self.lab.kubectl("get", "pv,sc", "-o", "json"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
