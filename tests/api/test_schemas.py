"""The custom kinds: what a real kube-apiserver refuses, keeps and drops by their definitions, this one does too."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../kubernetes")]
from lab import MERGE_PATCH, ON_KUBERNETES, LabCase, migration, migrations, pod, pods, vmi, vmis  # noqa: E402
from test_crds import KEPT, REFUSED  # noqa: E402  the tables that tests/kubernetes runs against Kubernetes

# Decided before the schema's own rule is reached: moves between clusters are not offered here.
ELSEWHERE = ("sendTo and receive must have the same migrationID",)


class Schemas(LabCase):
    def test_refused_alike(self):
        for where, body, text in REFUSED:
            if ON_KUBERNETES or text not in ELSEWHERE:
                with self.subTest(text=text):
                    code, answer = self.api.call("POST", where, body)
                    self.assertEqual(code, 422, answer)
                    self.assertIn(text, answer["message"])

    def test_kept_alike(self):
        for where, body in KEPT:
            if "sendTo" in body["spec"] and not ON_KUBERNETES:
                continue  # refused here: moves between clusters are not offered
            with self.subTest(name=body["metadata"]["name"]):
                made = self.api.ok("POST", where, body)
                self.assertEqual(made["spec"], body["spec"])
                if where == vmis():
                    self.assertEqual(made.get("status"), body.get("status"))

    def test_unknown_fields(self):
        self.api.ok("POST", vmis(), vmi("u"))
        with_more = migration("u1", "u", speed="high")
        code, answer = self.api.call("POST", migrations() + "?fieldValidation=Strict", with_more)
        self.assertEqual(code, 400)
        self.assertIn('strict decoding error: unknown field "spec.speed"', answer["message"])
        connection = self.api.connect()
        connection.request("POST", migrations() + "?dryRun=All", json.dumps(with_more),
                           {"Content-Type": "application/json"})
        warned = connection.getresponse()
        self.assertEqual(warned.headers["Warning"], '299 - "unknown field \\"spec.speed\\""')
        connection.close()
        self.assertNotIn("speed", self.api.ok("POST", migrations(), with_more)["spec"])
        code, answer = self.api.call("PATCH", migrations("u1"), {"spec": {"vmiName": "v"}}, MERGE_PATCH)
        self.assertIn("update of Migration object's spec is restricted", answer["message"])

    def test_core_kinds(self):
        """What people write into manifests of core kinds, and what they cannot."""
        small = pod("half")
        small["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 0.5, "memory": 1073741824}, "limits": {"cpu": 1.5}}
        self.api.ok("POST", pods() + "?dryRun=All", small, code=201)
        self.api.ok("POST", "/api/v1/namespaces/default/resourcequotas?dryRun=All", {
            "metadata": {"name": "half"}, "spec": {"hard": {"requests.cpu": 1.5}}}, code=201)
        secrets = "/api/v1/namespaces/default/secrets"
        for data in ("not base64", "QUJ", "QUJD=", "=QUI", "QUI=QUJD"):
            code, answer = self.api.call("POST", secrets, {"metadata": {"name": "odd"}, "data": {"x": data}})
            self.assertEqual(code, 400 if ON_KUBERNETES else 422, (data, answer))
        self.api.ok("POST", secrets, {"metadata": {"name": "even"}, "data": {"x": "QUI=", "y": "QUJD\nQUJD\n", "z": ""}})

    def test_what_is_immutable(self):
        for kind, value in (("configmaps", "a"), ("secrets", "QUJD")):
            where = f"/api/v1/namespaces/default/{kind}"
            self.api.ok("POST", where, {"metadata": {"name": "fixed"}, "data": {"x": value}})
            self.api.ok("PATCH", where + "/fixed", {"immutable": True, "data": {"y": value}}, MERGE_PATCH)
            for change in ({"data": {"x": None}}, {"data": {"z": value}}, {"immutable": None}, {"immutable": False}):
                code, answer = self.api.call("PATCH", where + "/fixed", change, MERGE_PATCH)
                self.assertEqual(code, 422, (change, answer))
                self.assertIn("field is immutable when `immutable` is set", answer["message"])
            self.api.ok("PATCH", where + "/fixed", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
            self.api.ok("DELETE", where + "/fixed")

    def test_columns_and_explain(self):
        self.api.ok("POST", "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies",
                    {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy",
                     "metadata": {"name": "p"}, "spec": {"selectors": {}, "bandwidthPerMigration": "1Gi",
                                                         "allowPostCopy": True}})
        out = self.lab.kubectl("get", "migrationpolicy", "p").split("\n")
        self.assertEqual(out[0].split(), ["NAME", "BANDWIDTH", "AUTOCONVERGE", "POSTCOPY", "AGE"])
        self.assertEqual(out[1].split()[:3], ["p", "1Gi", "true"])
        out = self.lab.kubectl("explain", "vmim.spec")
        self.assertIn("vmiName\t<string> -required-", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
