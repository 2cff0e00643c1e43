"""The table of fields of a machine (docs/vmi-fields.md): KubeVirt's schema against it, a machine for each row, typos, and KubeVirt's own examples."""
import contextlib
import functools
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../lib")]
import kubevirtfiles  # noqa: E402
import vmifields  # noqa: E402
from lab import CRDS, KUBEVIRT, MERGE_PATCH, ON_KUBERNETES, Lab, LabCase, embedded_only  # noqa: E402

LAB = functools.cache(functools.partial(Lab, webhook=True)) if ON_KUBERNETES else Lab
SRC = pathlib.Path(HERE, "../../src")
RESULTS = os.path.join(HERE, "../../docs/conformance.examples")
PLURALS = {"VirtualMachine": "virtualmachines", "VirtualMachineInstance": "virtualmachineinstances"}
# In KubeVirt's schema no more.
GONE = {"liveUpdateFeatures"}


def place_of(kind):
    return f"{KUBEVIRT}/namespaces/default/{PLURALS[kind]}"


def open_schema(schema):
    return schema.get("x-kubernetes-preserve-unknown-fields")


class Fields(LabCase):
    @classmethod
    def setUpClass(cls):
        cls.swagger = kubevirtfiles.swagger()
        cls.lab = LAB()
        cls.api = cls.lab.admin
        served = cls.api.ok("GET", "/openapi/v3" + KUBEVIRT)["components"]["schemas"]
        cls.specs = {kind: served[next(n for n in served if n.endswith("." + kind))]["properties"]["spec"] for kind in PLURALS}
        cls.rows = vmifields.rows()

    def send(self, method, path, body, kind="application/json"):
        """(status, answer, warnings)"""
        with contextlib.closing(self.api.connect()) as c:
            c.request(method, path, body if isinstance(body, str) else json.dumps(body), {"Content-Type": kind})
            answer = c.getresponse()
            return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []

    def try_machine(self, body, mode="Strict"):
        return self.send("POST", f"{place_of(body['kind'])}?dryRun=All&fieldValidation={mode}", body)

    # ---- the schema --------------------------------------------------------------------------------------------------------

    def definition(self, schema):
        ref = schema.get("$ref") or next((s["$ref"] for s in schema.get("allOf", ()) if "$ref" in s), None)
        return self.swagger[ref.rsplit("/", 1)[1]] if ref else schema

    def compare(self, theirs, ours, path, missing):
        theirs = self.definition(theirs)
        if open_schema(ours):
            return
        kind = theirs.get("type")
        kinds = kind if isinstance(kind, list) else [kind] if kind else []
        mine = ours.get("type") or ("string" if ours.get("x-kubernetes-int-or-string") else None)
        if kinds and mine not in kinds:
            missing.append(f"{path}: {mine} here, {kind} there")
        for name, field in theirs.get("properties", {}).items():
            own = ours.get("properties", {}).get(name)
            if own is None:
                missing.append(f"{path}.{name}: no row")
            else:
                self.compare(field, own, f"{path}.{name}", missing)
        for name in ours.get("properties", {}):
            if name not in theirs.get("properties", {}) and name not in GONE:
                missing.append(f"{path}.{name}: KubeVirt has no such field")
        if "items" in theirs:
            self.compare(theirs["items"], ours.get("items", {}), path + "[]", missing)

    def test_every_field_of_kubevirt_has_a_row(self):
        missing = []
        for kind, schema in self.specs.items():
            self.compare(self.swagger[f"v1.{kind}Spec"], schema, "spec", missing)
        self.assertEqual(missing, [])

    def test_who_honours_is_there(self):
        """A function of that name is defined, or there is a program of that name."""
        defined = set()
        for path in SRC.rglob("*.c"):
            defined |= set(re.findall(r"^[a-z].*?\b\**(\w+)\(", path.read_text(encoding="utf8"), re.M))
        programs = {path.stem for path in (SRC / "programs").glob("*.c")}
        for row in self.rows:
            if row.by:
                self.assertIn(row.by, defined | programs, row.path)

    # ---- single fields -----------------------------------------------------------------------------------------------------

    def causes(self, answer):
        return {c["field"]: c["message"] for c in answer.get("details", {}).get("causes", ())}

    def test_each_field_by_itself(self):
        tried = {"honoured": 0, "refused": 0, "without effect": 0}
        for row in self.rows:
            with self.subTest(row.path):
                body = vmifields.machine(self.specs, row)
                code, answer, warnings = self.try_machine(body)
                tried[row.verdict] += 1
                if row.verdict == "refused":
                    self.assertEqual((code, answer["reason"]), (422, "Invalid"), answer)
                    self.assertRegex(self.causes(answer)[row.shown()], "Forbidden: .*: ")
                    continue
                self.assertEqual(code, 201, answer)
                told = [w for w in warnings if row.shown() in w and "has no effect" in w]
                self.assertEqual(len(told), int(row.verdict == "without effect"), warnings)
        self.assertGreater(min(tried.values()), 10, tried)
        self.assertGreater(sum(tried.values()), 200)

    def test_other_values(self):
        """Where some values are honoured, others are refused."""
        tried = 0
        for row in self.rows:
            if not row.values:
                continue
            schema = self.specs[row.of]
            for name in re.split(r"\.", row.path):
                schema = vmifields.field_of(schema, name)
            other = {"boolean": row.values == ["false"], "object": {"example.com/x": "1"}}.get(schema.get("type"), "other")
            if "enum" in schema:
                other = next(v for v in schema["enum"] if v not in row.values)
            with self.subTest(row.path):
                code, answer, _ = self.try_machine(vmifields.machine(self.specs, row, other))
                self.assertEqual(code, 422, answer)
                self.assertIn("Unsupported value: ", self.causes(answer)[row.shown()])
                tried += 1
        self.assertGreater(tried, 15)

    # ---- typos -------------------------------------------------------------------------------------------------------------

    TYPOS = [
        ("domain.memmory", {"guest": "1Gi"}), ("domain.cpu.core", 2), ("domain.cpu.Cores", 2), ("domain.machine.typ", "q35"),
        ("domain.devices.disk", []), ("domain.devices.disks[].boot0rder", 1), ("domain.devices.disks[].disk.buss", "virtio"),
        ("domain.devices.interfaces[].macAdress", "02:00:00:00:00:01"), ("domain.devices.interfaces[].bridged", {}),
        ("domain.devices.autoAttachSerialConsole", True), ("domain.firmware.bootLoader", {}), ("domain.resources.request", {}),
        ("volumes[].persistantVolumeClaim", {}), ("volumes[].cloudInitNoCloud.userdata", "x"), ("networks[].multus.networkname", "x"),
        ("nodeselector", {}), ("terminationGracePeriod", 5), ("evictionstrategy", "None"),
        ("tolerations[].keys", "x"), ("affinity.nodeAffinity.required", {}),
    ]

    def with_typo(self, path, value):
        spec = {"domain": {"memory": {"guest": "64Mi"}}}
        at = spec
        names = path.split(".")
        for name in names[:-1]:
            at = at.setdefault(name.removesuffix("[]"), [{}] if name.endswith("[]") else {})
            at = at[0] if name.endswith("[]") else at
        at[names[-1]] = value
        if "multus" in path:
            at["networkName"] = "n"
        vmifields.complete(spec)
        return spec

    def test_typos(self):
        for path, value in self.TYPOS:
            shown = path.replace("[]", "[0]")
            for kind in PLURALS:
                spec, where = self.with_typo(path, value), "spec."
                if kind == "VirtualMachine":
                    spec, where = {"runStrategy": "Halted", "template": {"spec": spec}}, "spec.template.spec."
                body = {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": "typo"}, "spec": spec}
                with self.subTest(path, kind=kind):
                    code, answer, _ = self.try_machine(body)
                    self.assertEqual(code, 400, answer)
                    self.assertIn(f'unknown field "{where}{shown}"', answer["message"])
                    code, answer, warnings = self.try_machine(body, "Warn")
                    self.assertEqual(code, 201, answer)
                    self.assertTrue(any(f'{where}{shown}\\"' in w for w in warnings), warnings)
                    self.assertNotIn(f'"{path.rsplit(".", 1)[-1]}"', json.dumps(answer["spec"]))  # it is dropped
                    code, answer, warnings = self.try_machine(body, "Ignore")
                    self.assertEqual((code, [w for w in warnings if "unknown" in w]), (201, []), answer)

    def test_kubectl_catches_it(self):
        said = self.lab.kubectl("apply", "-f", "-", code=1, stdin=json.dumps({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "typo"},
            "spec": {"domain": {"memmory": {"guest": "1Gi"}}}}))
        self.assertIn('unknown field "spec.domain.memmory"', said)

    # ---- changes -----------------------------------------------------------------------------------------------------------

    def test_several_at_once(self):
        code, answer, _ = self.try_machine({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "two"}, "spec": {
            "architecture": "arm64", "domain": {"memory": {"guest": "64Mi"}, "devices": {"tpm": {}, "rng": {}}}}})
        self.assertEqual(code, 422)
        self.assertEqual(set(self.causes(answer)), {"spec.architecture", "spec.domain.devices.tpm", "spec.domain.devices.rng"})
        for field in self.causes(answer):
            self.assertIn(field, answer["message"])

    def test_a_change_is_judged(self):
        """A field that comes is refused, whatever else is changed is not held up by it."""
        where = place_of("VirtualMachine")
        self.api.ok("POST", where, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "old"}, "spec": {
            "runStrategy": "Halted", "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}})
        code, answer, _ = self.send("PATCH", f"{where}/old", {"spec": {"template": {"spec": {"domain": {"devices": {"tpm": {}}}}}}}, MERGE_PATCH)
        self.assertEqual(code, 422, answer)
        self.api.ok("PATCH", f"{where}/old", {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}}, MERGE_PATCH)
        self.api.ok("DELETE", f"{where}/old")

    def test_the_controller_is_not_judged(self):
        """It makes of a machine that was let in before what that says."""
        body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "old"}, "spec": {
            "domain": {"memory": {"guest": "64Mi"}, "devices": {"tpm": {}}}}}
        self.assertEqual(self.try_machine(body)[0], 422)
        self.lab.controller().ok("POST", place_of("VirtualMachineInstance"), body)
        self.api.ok("PATCH", place_of("VirtualMachineInstance") + "/old", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
        self.api.ok("DELETE", place_of("VirtualMachineInstance") + "/old")

    def test_a_volume_gets_its_disk(self):
        body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "v"}, "spec": {
            "domain": {"memory": {"guest": "64Mi"}}, "volumes": [{"name": "a", "emptyDisk": {"capacity": "1Gi"}}]}}
        code, answer, _ = self.try_machine(body)
        self.assertEqual(code, 201, answer)
        self.assertEqual(answer["spec"]["domain"]["devices"]["disks"], [{"name": "a", "disk": {"bus": "sata"}}])
        code, answer, _ = self.try_machine({**body, "kind": "VirtualMachine", "spec": {"runStrategy": "Halted", "template": {"spec": body["spec"]}}})
        self.assertEqual(code, 201, answer)
        self.assertNotIn("disks", json.dumps(answer["spec"]))  # as in KubeVirt: the instance has it

    # ---- KubeVirt's examples -----------------------------------------------------------------------------------------------

    def test_examples_of_kubevirt(self):
        """What becomes of each is in docs/conformance.md, by way of docs/conformance.examples."""
        with open(RESULTS, encoding="utf8") as f:
            listed = dict(re.findall(r"^(\S+\.yaml) \| (.*)$", f.read(), re.M))
        self.maxDiff = None
        found = {}
        for name, text in kubevirtfiles.examples().items():
            kind = re.search(r"^kind: (\w+)$", text, re.M)[1]
            if kind not in PLURALS:
                continue
            code, answer, _ = self.send("POST", f"{place_of(kind)}?dryRun=All&fieldValidation=Strict", text, "application/yaml")
            self.assertIn(code, (201, 422), f"{name}: {answer}")
            found[name] = "taken" if code == 201 else "refused: " + ", ".join(sorted(self.causes(answer)))
        self.assertEqual(len(found), 34)
        self.assertEqual({n: r for n, r in found.items() if r != "taken"}, {n: r for n, r in listed.items() if r.startswith("refused: ")})
        self.assertEqual(sorted(n for n, r in found.items() if r == "taken"), sorted(n for n, r in listed.items() if not r.startswith("refused: ")))


@embedded_only("kube-apiserver drops such a field when it reads the object")
class OlderObjects(unittest.TestCase):
    def test_unknown_fields_of_before(self):
        """A field that the kind has no more is not the mistake of who changes another."""
        with tempfile.TemporaryDirectory() as crds, contextlib.closing(Lab("--crds", crds)) as lab:
            lab.stop()
            for path in pathlib.Path(CRDS).glob("*.yaml"):
                text = path.read_text(encoding="utf8").replace("            required: [template]\n", "            x-kubernetes-preserve-unknown-fields: true\n")
                text = re.sub(r"pattern: '\^\(pc\|.*", "maxLength: 99", text)
                pathlib.Path(crds, path.name).write_text(text, encoding="utf8")
            lab.start()
            where = place_of("VirtualMachine")
            lab.admin.ok("POST", where, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "old"}, "spec": {
                "runStrategy": "Halted", "speed": "high", "template": {"spec": {
                    "domain": {"memory": {"guest": "64Mi"}, "machine": {"type": "vax"}}}}}})
            self.assertEqual(lab.admin.ok("GET", f"{where}/old")["spec"]["speed"], "high")
            lab.stop()
            lab.options = ()
            lab.start()
            label = {"metadata": {"labels": {"a": "b"}}}
            made = lab.admin.ok("PATCH", f"{where}/old?fieldValidation=Strict", label, MERGE_PATCH)
            self.assertNotIn("speed", made["spec"])
            code, answer = lab.admin.call("PATCH", f"{where}/old?fieldValidation=Strict", {"spec": {"speed": "low"}}, MERGE_PATCH)
            self.assertEqual(code, 400, answer)
            # what no schema of today has stays, the controller says how the machine is, and nobody makes it worse
            lab.controller().ok("PATCH", f"{where}/old/status", {"status": {"ready": False}}, MERGE_PATCH)
            lab.admin.ok("PATCH", f"{where}/old", {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}}, MERGE_PATCH)
            code, answer = lab.admin.call("PATCH", f"{where}/old", {"spec": {"template": {"spec": {"domain": {"machine": {"type": "pdp"}}}}}}, MERGE_PATCH)
            self.assertEqual(code, 422, answer)


if __name__ == "__main__":
    unittest.main(verbosity=2)
