"""What KubeVirt's webhooks decide, item by item of docs/conformance.md. On Kubernetes ferry-controller answers as one."""
import functools
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import KUBEVIRT, MERGE_PATCH, ON_KUBERNETES, Lab, migration, migrations, pod, pods, vmi, vmis  # noqa: E402

POLICIES = "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"
KUBEVIRTS = KUBEVIRT + "/namespaces/default/kubevirts"
LABEL = "kubevirt.io/vmi-name"
LAB = functools.cache(functools.partial(Lab, webhook=True)) if ON_KUBERNETES else Lab


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = LAB()
        cls.addClassCleanup(cls.lab.close)
        cls.api = cls.lab.admin

    def setUp(self):
        self.ns = self._testMethodName.replace("_", "-")[:40]
        self.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns}})

    def machine(self, name="v", strategy=None, migratable=None, **status):
        body = {**vmi(name), "status": {"phase": "Running", "nodeName": "n1", **status}}
        if strategy:
            body["spec"]["evictionStrategy"] = strategy
        if migratable is not None:
            body["status"]["conditions"] = [{"type": "LiveMigratable", "status": str(migratable), "reason": "DisksNotLiveMigratable",
                                             "message": "disk d is not shared"}]
        return self.api.ok("POST", vmis(ns=self.ns), body)

    def move(self, name="m", code=201, who=None, query="", **spec):
        status, answer = (who or self.api).call("POST", migrations(ns=self.ns) + query, migration(name, "v", **spec))
        self.assertEqual(status, code, answer)
        return answer

    def change(self, name, body, code, where=""):
        status, answer = self.api.call("PATCH", migrations(name, self.ns) + where, body, MERGE_PATCH)
        self.assertEqual(status, code, answer)
        return answer


class Migrations(Case):
    def test_in_flight(self):
        """400: a move of the same machine that is not over refuses the next"""
        self.machine()
        self.move()
        answer = self.move("m2", 400)
        self.assertIn("in-flight migration detected", answer["message"])
        self.assertEqual(answer["details"]["causes"][0]["reason"], "MoveInFlight")

    def test_valid(self):
        """402: a valid migration is taken, and labelled with its machine"""
        self.machine(migratable=True)
        self.assertEqual(self.move()["metadata"]["labels"], {LABEL: "v"})

    def test_after_others(self):
        """403: moves that are over do not count"""
        self.machine()
        for name, phase in (("m1", "Succeeded"), ("m2", "Failed")):
            self.move(name)
            self.change(name, {"status": {"phase": phase}}, 200, "/status")
        self.move("m3")

    def test_final_machines(self):
        """404: a machine that is over cannot be moved"""
        for phase in ("Succeeded", "Failed"):
            self.machine(phase=phase)
            self.assertIn("finalized state", self.move("m-" + phase.lower(), 400)["message"])
            self.api.ok("DELETE", vmis("v", self.ns))

    def test_not_migratable(self):
        """405: the reason of the condition is in the refusal"""
        self.machine(migratable=False)
        message = self.move(code=400)["message"]
        self.assertIn("DisksNotLiveMigratable", message)
        self.assertIn("disk d is not shared", message)

    def test_unknown_fields(self):
        """406: unknown fields are refused on create and on update, when the client asks for it as kubectl does"""
        self.machine()
        self.assertIn("spec.speed", self.move(code=400, query="?fieldValidation=Strict", speed="high")["message"])
        self.move()
        self.assertIn("spec.speed", self.change("m", {"spec": {"speed": "high"}}, 422 if ON_KUBERNETES else 400,
                                                "?fieldValidation=Strict")["message"])

    def test_priority(self):
        """409: the priority is the controller's to set"""
        self.machine()
        answer = self.move(code=422, priority="system-critical")
        self.assertIn("spec.migrationPriority", answer["message"])
        self.move(who=self.lab.controller(), priority="system-critical")

    def test_spec(self):
        """410: the spec does not change; an update that leaves it is taken"""
        self.machine()
        made = self.move()
        self.change("m", {"spec": {"vmiName": "w"}}, 422)
        self.change("m", {"spec": made["spec"], "metadata": {"annotations": {"a": "b"}}}, 200)

    def test_all_labels(self):
        """411: the labels cannot be removed in flight"""
        self.machine()
        self.move()
        self.change("m", {"metadata": {"labels": None}}, 422)

    def test_one_label(self):
        """412: nor the one that names the machine alone; others can"""
        self.machine()
        self.move()
        self.change("m", {"metadata": {"labels": {"other": "x"}}}, 200)
        self.change("m", {"metadata": {"labels": {LABEL: None}}}, 422)
        self.change("m", {"metadata": {"labels": {LABEL: "w"}}}, 422)
        self.change("m", {"metadata": {"labels": {"other": None}}}, 200)
        self.change("m", {"status": {"phase": "Failed"}}, 200, "/status")
        self.change("m", {"metadata": {"labels": None}}, 200)


class Policies(Case):
    def check(self, good, bad):
        """Both are lists of specs."""
        for specs, code in ((good, 201), (bad, 422)):
            for spec in specs:
                status, answer = self.api.call("POST", POLICIES + "?dryRun=All", {
                    "apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy",
                    "metadata": {"name": "p"}, "spec": {"selectors": {}, **spec}})
                self.assertEqual(status, code, (spec, answer))

    def stall(self, name, good, bad):
        self.check(*([{"experimental": {"stallDetector": {name: value}}} for value in values] for values in (good, bad)))

    def test_completion_timeout(self):
        """414: a negative completion timeout is refused"""
        self.check([{"completionTimeoutPerGiB": n} for n in (0, 1, 800)], [{"completionTimeoutPerGiB": -1}])
        self.check([{"bandwidthPerMigration": v} for v in ("0", "64Mi")], [{"bandwidthPerMigration": "-1Mi"}])

    def test_precopy_factor(self):
        """415: precopyPossibleFactor is at least 1"""
        self.stall("precopyPossibleFactor", ("1", "1.5", "1000000"), ("0.999", "0", "-2"))
        self.stall("completionTimeoutFactor", ("1", "99"), ("0.5",))

    def test_alpha(self):
        """416: ewmaAlpha is above 0, at most 1, with three decimals; also in thousandths"""
        self.stall("ewmaAlpha", ("1", "0.001", "0.4", "500m", 1), ("0", "1.001", "0.1234", "-0.5", 2))

    def test_decay(self):
        """417: patienceWindowDecayFactor is at most 1"""
        self.stall("patienceWindowDecayFactor", ("0", "1", "0.5"), ("1.1", "2"))

    def test_both(self):
        """418: stall detection and downtime tuning exclude each other"""
        self.check([{"experimental": {"downtimeTuning": {"steps": 3}}}],
                   [{"experimental": {"downtimeTuning": {"steps": 3}, "stallDetector": {"ewmaAlpha": "0.5"}}}])


class Evictions(Case):
    def launcher(self, name="launcher", of="v", node="n1", **labels):
        p = pod(name, labels={"kubevirt.io": "virt-launcher", **labels}, annotations={"kubevirt.io/domain": of})
        self.api.ok("POST", pods(ns=self.ns), {**p, "spec": {**p["spec"], "nodeName": node}})

    def evict(self, code, name="launcher", query="", **body):
        status, answer = self.api.call("POST", pods(name, self.ns) + "/eviction" + query, {
            "apiVersion": "policy/v1", "kind": "Eviction", **{"metadata": {"name": name}, **body}})
        self.assertEqual(status, code, answer)
        return answer.get("message", "")

    def marked(self):
        return self.api.ok("GET", vmis("v", self.ns))["status"].get("evacuationNodeName")

    def test_other_pods(self):
        """423: pods that are no machine's, or whose machine is over, go"""
        self.api.ok("POST", pods(ns=self.ns), pod("plain"))
        self.evict(201, "plain")
        self.evict(404, "nowhere")
        self.machine(strategy="LiveMigrate", migratable=True)
        for phase in ("Succeeded", "Failed"):
            self.launcher(phase.lower())
            self.api.ok("PATCH", pods(phase.lower(), self.ns) + "/status", {"status": {"phase": phase}}, MERGE_PATCH)
            self.evict(201, phase.lower())
        self.assertIsNone(self.marked())

    def test_mark(self):
        """424: a machine that can move is marked, and its pod stays"""
        self.machine(strategy="LiveMigrate", migratable=True)
        self.launcher()
        self.assertIn('Eviction triggered evacuation of VMI "v"', self.evict(429))
        self.assertEqual(self.marked(), "n1")
        self.assertNotIn("deletionTimestamp", self.api.ok("GET", pods("launcher", self.ns))["metadata"])

    def test_external(self):
        """426: with External it is marked, whether it can move or not"""
        for name, migratable in (("yes", True), ("no", False)):
            self.machine(name, "External", migratable)
            self.launcher("pod-" + name, name)
            self.evict(429, "pod-" + name)
            self.assertEqual(self.api.ok("GET", vmis(name, self.ns))["status"]["evacuationNodeName"], "n1")

    def test_no_strategy(self):
        """428: with None it goes, unmarked; without a strategy it is to move"""
        for name, strategy, code, mark in (("without", None, 429, "n1"), ("none", "None", 201, None)):
            self.machine(name, strategy, True)
            self.launcher("pod-" + name, name)
            self.evict(code, "pod-" + name)
            self.assertEqual(self.api.ok("GET", vmis(name, self.ns))["status"].get("evacuationNodeName"), mark)

    def test_cluster_strategy(self):
        """427: the strategy of the KubeVirt object counts for machines that have none"""
        self.api.ok("POST", KUBEVIRTS, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kv"},
                                        "spec": {"configuration": {"evictionStrategy": "LiveMigrate"}}})
        self.addCleanup(self.api.ok, "DELETE", KUBEVIRTS + "/kv")
        for name, strategy, migratable, code in (("a", None, True, 429), ("b", None, False, 429), ("c", "None", True, 201)):
            self.machine(name, strategy, migratable)
            self.launcher("pod-" + name, name)
            self.evict(code, "pod-" + name)
        self.assertEqual(self.api.ok("GET", vmis("a", self.ns))["status"].get("evacuationNodeName"), "n1")
        self.assertNotIn("evacuationNodeName", self.api.ok("GET", vmis("b", self.ns))["status"])

    def test_cannot_move(self):
        """429: with LiveMigrate a machine that cannot move stays, unmarked"""
        self.machine(strategy="LiveMigrate", migratable=False)
        self.launcher()
        self.assertIn("not live-migratable", self.evict(429))
        self.assertIsNone(self.marked())

    def test_descheduler(self):
        """430: the descheduler is named as the one who asked"""
        self.machine(strategy="LiveMigrate", migratable=True)
        self.launcher()
        self.evict(429, metadata={"name": "launcher", "annotations": {
            "descheduler.alpha.kubernetes.io/requested-by": "sigs.k8s.io/descheduler"}})
        self.assertEqual(self.api.ok("GET", vmis("v", self.ns))["metadata"]["annotations"],
                         {"kubevirt.io/eviction-source": "descheduler"})

    def test_again(self):
        """432: a machine that is marked is not marked again"""
        self.machine(strategy="LiveMigrate", migratable=True, evacuationNodeName="n1")
        self.launcher()
        version = self.api.ok("GET", vmis("v", self.ns))["metadata"]["resourceVersion"]
        self.assertIn("Evacuation in progress", self.evict(429))
        self.assertEqual(self.api.ok("GET", vmis("v", self.ns))["metadata"]["resourceVersion"], version)

    def test_dry_run(self):
        """433: a dry run, asked for in the call or in the object, marks nothing and is refused as well"""
        self.machine(strategy="LiveMigrate", migratable=True)
        self.launcher()
        self.evict(429, query="?dryRun=All")
        self.evict(429, deleteOptions={"dryRun": ["All"]})
        self.assertIsNone(self.marked())


if __name__ == "__main__":
    unittest.main(verbosity=2)
