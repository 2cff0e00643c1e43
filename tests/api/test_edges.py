"""Rules that only show at the edges, as a real kube-apiserver has them: this file runs against both."""
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import APPLY, MERGE_PATCH, LabCase, configmaps, embedded_only, pod, pods, vmi, vmis, wait_for  # noqa: E402

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SECRETS = "/api/v1/namespaces/default/secrets"


def config(name, **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}


def ref(of, **more):
    return {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"], **more}


class Case(LabCase):
    def refused(self, code, words, method, path, body=None, kind="application/json"):
        status, answer = self.api.call(method, path, body, kind)
        self.assertEqual(status, code, answer)
        self.assertIn(words, answer["message"])


class Deletion(Case):
    def test_generation(self):
        """That it is to go is a new wish."""
        self.assertEqual(self.api.ok("POST", vmis(), vmi("old", finalizers=["a.b/c"]))["metadata"]["generation"], 1)
        self.assertEqual(self.api.ok("DELETE", vmis("old"))["metadata"]["generation"], 2)
        self.assertEqual(self.api.ok("DELETE", vmis("old"))["metadata"]["generation"], 2)

    def test_propagation_is_chosen_later(self):
        self.api.ok("POST", vmis(), vmi("late", finalizers=["a.b/c"]))
        self.api.ok("DELETE", vmis("late"))
        for _ in range(2):
            after = self.api.ok("DELETE", vmis("late"), {"propagationPolicy": "Foreground"})
            self.assertEqual(after["metadata"]["finalizers"], ["a.b/c", "foregroundDeletion"])

    def test_options(self):
        self.api.ok("POST", configmaps(), config("options"))
        self.assertEqual(self.api.call("DELETE", configmaps("options"), {"dryRun": ["Some"]})[0], 422)
        self.api.ok("DELETE", configmaps("options"), {"dryRun": ["All"]})
        self.api.ok("GET", configmaps("options"))

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_two_owners(self):
        """Who waits for what it owns does not take along what is another's, too."""
        one, two = (self.api.ok("POST", configmaps(), config(n)) for n in ("one", "two"))
        self.api.ok("POST", configmaps(), config("of-one", ownerReferences=[ref(one, blockOwnerDeletion=True)]))
        self.api.ok("POST", configmaps(), config("of-both", ownerReferences=[ref(one, blockOwnerDeletion=True), ref(two)]))
        self.api.ok("DELETE", configmaps("one"), {"propagationPolicy": "Foreground"})
        wait_for("the owner to go", lambda: self.api.call("GET", configmaps("one"))[0] == 404)
        self.assertEqual(self.api.call("GET", configmaps("of-one"))[0], 404)
        left = self.api.ok("GET", configmaps("of-both"))["metadata"]
        self.assertNotIn("deletionTimestamp", left)
        self.assertEqual([o["name"] for o in left["ownerReferences"]], ["two"])
        self.api.ok("DELETE", configmaps("two"))
        wait_for("it to go with its last owner", lambda: self.api.call("GET", configmaps("of-both"))[0] == 404)

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_owners_that_only_look_as_if_they_ended(self):
        """A label may have any name: it makes nobody go, and keeps nobody."""
        looks = {"labels": {"deletionTimestamp": "orphan"}}
        one, two = (self.api.ok("POST", configmaps(), config(n, **looks)) for n in ("looks-one", "looks-two"))
        self.api.ok("POST", configmaps(), config("looks-owned", ownerReferences=[ref(one, blockOwnerDeletion=True)], **looks))
        self.api.ok("POST", configmaps(), config("looks-shared", ownerReferences=[ref(one, blockOwnerDeletion=True), ref(two)]))
        self.api.ok("DELETE", configmaps("looks-one"), {"propagationPolicy": "Foreground"})
        wait_for("the owner to go", lambda: self.api.call("GET", configmaps("looks-one"))[0] == 404)
        self.assertEqual(self.api.call("GET", configmaps("looks-owned"))[0], 404)
        left = self.api.ok("GET", configmaps("looks-shared"))["metadata"]
        self.assertEqual([o["name"] for o in left["ownerReferences"]], ["looks-two"])
        self.api.ok("GET", configmaps("looks-two"))

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_owners_that_are_only_spoken_of(self):
        """A text with an owner's uid in it is not the owner, and owns nothing."""
        gone = self.api.ok("POST", configmaps(), config("spoken-gone"))
        uid = gone["metadata"]["uid"]
        said = json.dumps({"uid": uid, "ownerReferences": [ref(gone)], "deletionTimestamp": "x"})
        self.api.ok("POST", configmaps(), config("spoken-of", labels={"uid": uid}, annotations={"note": said}))
        self.api.ok("POST", configmaps(), config("spoken-owned", ownerReferences=[ref(gone)]))
        self.api.ok("DELETE", configmaps("spoken-gone"))
        wait_for("the owned to go", lambda: self.api.call("GET", configmaps("spoken-owned"))[0] == 404)
        self.api.ok("GET", configmaps("spoken-of"))

    @embedded_only("kube-controller-manager collects, not kube-apiserver")
    def test_the_last_owner_that_is_there_is_taken_away(self):
        one, two = (self.api.ok("POST", configmaps(), config(n)) for n in ("last-one", "last-two"))
        self.api.ok("POST", configmaps(), config("last-owned", ownerReferences=[ref(one), ref(two)]))
        self.api.ok("DELETE", configmaps("last-one"))
        self.api.ok("POST", configmaps(), config("last-later", ownerReferences=[ref(one)]))  # until it has been looked at
        wait_for("what has nobody to go", lambda: self.api.call("GET", configmaps("last-later"))[0] == 404)
        self.assertEqual(len(self.api.ok("GET", configmaps("last-owned"))["metadata"]["ownerReferences"]), 2)
        self.api.ok("PATCH", configmaps("last-owned"), {"metadata": {"ownerReferences": [ref(one)]}}, MERGE_PATCH)
        wait_for("it to go", lambda: self.api.call("GET", configmaps("last-owned"))[0] == 404)


class Evictions(Case):
    def evict(self, name, **body):
        return self.api.call("POST", pods(name) + "/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {
            "name": name}, **body})[0]

    def test_the_pod_that_was_meant(self):
        made = self.api.ok("POST", pods(), pod("meant"))["metadata"]
        self.assertEqual(self.evict("meant", metadata={"name": "other"}), 400)
        for wrong in ({"uid": "8a0ff1a4-0000-0000-0000-000000000000"}, {"resourceVersion": "1"}):
            self.assertEqual(self.evict("meant", deleteOptions={"preconditions": wrong}), 409)
        self.assertEqual(self.evict("meant", deleteOptions={"dryRun": ["Some"]}), 422)
        self.assertEqual(self.evict("meant", deleteOptions={"dryRun": ["All"]}), 201)
        self.api.ok("GET", pods("meant"))
        self.assertEqual(self.evict("meant", deleteOptions={"preconditions": {"uid": made["uid"]}}), 201)
        self.assertEqual(self.api.call("GET", pods("meant"))[0], 404)


class Metadata(Case):
    def test_what_may_stand_there(self):
        two = [{"apiVersion": "v1", "kind": "X", "name": n, "uid": n, "controller": True} for n in ("a", "b")]
        for meta, words in (({"finalizers": ["mine"]}, "metadata.finalizers"), ({"finalizers": ["a b/c"]}, "metadata.finalizers"),
                            ({"ownerReferences": two}, "metadata.ownerReferences"), ({"annotations": {"a b": ""}}, "metadata.annotations")):
            self.refused(422, words, "POST", configmaps(), config("wrong", **meta))
        self.api.ok("POST", configmaps() + "?dryRun=All", config("meta", annotations={"Example.ORG/b": ""}, finalizers=["orphan"]))

    def test_names_and_versions_of_what_replaces(self):
        self.api.ok("POST", configmaps(), config("replaced"))
        self.refused(400, "name", "PUT", configmaps("replaced"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
        self.api.ok("PUT", configmaps("replaced"), config("replaced", resourceVersion="0"))

    def test_limits_below_zero(self):
        self.assertTrue(self.api.ok("GET", "/api/v1/namespaces?limit=-1")["items"])


class Chosen(Case):
    """What cannot be changed afterwards."""

    def test_secrets(self):
        self.api.ok("POST", SECRETS, {"metadata": {"name": "kind"}, "stringData": {"a": "b"}})
        self.refused(422, "type", "PATCH", SECRETS + "/kind", {"type": "example.org/other"}, MERGE_PATCH)

    def test_classes(self):
        self.api.ok("POST", CLASSES, {"metadata": {"name": "class"}, "provisioner": "example.org/a"})
        self.refused(422, "provisioner", "PATCH", CLASSES + "/class", {"provisioner": "example.org/b"}, MERGE_PATCH)
        self.api.ok("PATCH", CLASSES + "/class", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)

    def test_claims(self):
        self.api.ok("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": {
            "storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        for change in ({"accessModes": ["ReadWriteMany"]}, {"resources": {"requests": {"storage": "2Gi"}}}, {"storageClassName": "x"}):
            self.refused(422, "spec is immutable", "PATCH", CLAIMS + "/c", {"spec": change}, MERGE_PATCH)
        self.api.ok("PATCH", CLAIMS + "/c", {"spec": {"volumeName": "v"}}, MERGE_PATCH)
        self.refused(422, "spec is immutable", "PATCH", CLAIMS + "/c", {"spec": {"volumeName": "w"}}, MERGE_PATCH)
        self.api.ok("PATCH", CLAIMS + "/c/status", {"status": {"phase": "Bound"}}, MERGE_PATCH)

    @embedded_only("nobody binds volumes beside a kube-apiserver alone")
    def test_phases_of_others_stay(self):
        """Whoever binds volumes does not write over what was written since it looked."""
        for n in range(150):
            self.api.ok("POST", CLAIMS, {"metadata": {"name": f"given-{n}"}, "spec": {
                "storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
            self.api.ok("PATCH", CLAIMS + f"/given-{n}/status", {"status": {"phase": "Bound"}}, MERGE_PATCH)
        self.claim_that_waits("last")
        phases = {c["metadata"]["name"]: c["status"]["phase"] for c in self.api.ok("GET", CLAIMS)["items"]}
        self.assertEqual({phase for name, phase in phases.items() if name.startswith("given-")}, {"Bound"})

    def claim_that_waits(self, name):
        """All that was to be done for those before it is done when it has its phase."""
        self.api.ok("POST", CLAIMS, {"metadata": {"name": name}, "spec": {
            "storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        wait_for("a claim to wait", lambda: self.api.ok("GET", CLAIMS + "/" + name).get("status", {}).get("phase") == "Pending")

    def test_data(self):
        for data, words in (({"a/b": ""}, "data"), ({"..": ""}, "data"), ({"": ""}, "data"), ({"a" * 254: ""}, "data"),
                            ({"a": "x" * (1 << 20) + "y"}, "Too long")):
            self.refused(422, words, "POST", configmaps(), {**config("wrong"), "data": data})
        self.api.ok("POST", configmaps(), {**config("right"), "data": {"a" * 253: "", ".x-Y_z": "x" * 1_000_000}})
        self.refused(422, "Too long", "PATCH", configmaps("right"), {"data": {"more": "x" * 100_000}}, MERGE_PATCH)


@embedded_only("kube-apiserver needs the status of a quota from kube-controller-manager")
class Growth(Case):
    def test_what_grows_counts(self):
        self.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "grows"}})
        claims = CLAIMS.replace("default", "grows")
        self.api.ok("POST", "/api/v1/namespaces/grows/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {
            "requests.storage": "3Gi"}}})
        self.api.ok("POST", claims, {"metadata": {"name": "c"}, "spec": {
            "storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        self.api.ok("PATCH", claims + "/c/status", {"status": {"phase": "Bound"}}, MERGE_PATCH)

        def grow(size):
            return self.api.call("PATCH", claims + "/c", {"spec": {"resources": {"requests": {"storage": size}}}}, MERGE_PATCH)
        self.assertEqual(grow("3Gi")[0], 200)
        code, answer = grow("3073Mi")
        self.assertEqual(code, 403)
        self.assertIn("exceeded quota: q, requested: requests.storage=1Mi, used: requests.storage=3Gi", answer["message"])
        self.api.ok("PATCH", claims + "/c", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)


class Apply(Case):
    def test_what_is_applied_says_what_it_is(self):
        self.assertEqual(self.api.call("PATCH", configmaps("x") + "?fieldManager=t", "metadata: {name: x}\n", APPLY)[0], 400)

    def test_together(self):
        """Many who apply what is not there yet: all of them have their way, whoever comes first."""
        for turn in range(5):
            codes = []

            def apply(n, turn=turn, codes=codes):
                text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: together-{turn}}}\ndata: {{k{n}: v}}\n"
                codes.append(self.api.call("PATCH", configmaps(f"together-{turn}") + f"?fieldManager=m{n}", text, APPLY)[0])
            threads = [threading.Thread(target=apply, args=(n,)) for n in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(sorted(codes), [200] * 7 + [201])
            self.assertEqual(len(self.api.ok("GET", configmaps(f"together-{turn}"))["data"]), 8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
