"""docs/vmi-fields.md as a table, and machines that have one of its fields."""
import os
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/vmi-fields.md")
ROW = re.compile(r"- `(\S+)`: \*(honoured|refused|without effect)\*(?: by `(\S+)`)?")
ONLY = re.compile(r"^  (?:.*\s)?Only `([^`]+)`;", re.M)


class Row:
    def __init__(self, of, path, verdict, by, values):
        self.of, self.path, self.verdict, self.by, self.values = of, path, verdict, by, values

    def shown(self):
        """As a refusal names it."""
        return "spec." + self.path.replace("[]", "[0]")


def rows():
    """Those that are not just parts of others."""
    with open(PAGE, encoding="utf8") as f:
        text = f.read()
    found = []
    for chapter in re.split(r"^## ", text, flags=re.M)[1:]:
        of = "VirtualMachine" if chapter.startswith("VirtualMachine\n") else "VirtualMachineInstance"
        for item in re.split(r"^(?=- )", chapter, flags=re.M)[1:]:
            path, verdict, by = ROW.match(item).groups()
            only = ONLY.search(item)
            found.append(Row(of, path, verdict, by, only[1].split() if only else None))
    return found


# One of them fits each pattern.
WORDS = ("x", "/x", "q35", "02:00:00:00:00:01", "0000:00:09.0", "5d307ca9-b3ef-428c-8861-06e72d69f223")


# ---- values that fit a schema ----------------------------------------------------------------------------------------------

def sample(schema, values=None):
    """Something that asks for what a field does."""
    kind = schema.get("type")
    if kind == "boolean":
        return values != ["false"]
    if values and kind != "object":
        return values[0]
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        if values:
            return {name: "1" for name in values}
        if "additionalProperties" in schema:
            return {"a": "1"}
        return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "string":
        return next(word for word in WORDS if re.search(schema.get("pattern", ""), word))
    return {"integer": 2, "number": 2, "array": []}.get(kind, "1Gi")


def field_of(schema, name):
    found = schema["properties"][name.removesuffix("[]")]
    return found["items"] if name.endswith("[]") else found


def place(schema, path, values, value=None):
    """A spec that has the field, and what must be around it."""
    name, _, rest = path.partition(".")
    last = not rest
    below = schema["properties"][name.removesuffix("[]")]
    made = {n: sample(schema["properties"][n]) for n in schema.get("required", ())}
    if name.endswith("[]"):
        made[name[:-2]] = [place(below["items"], rest, values, value)]
    elif last and below.get("type") == "array":
        items = below["items"]
        made[name] = [sample(items, values) if value is None else value]
    elif last:
        made[name] = sample(below, values) if value is None else value
    else:
        made[name] = place(below, rest, values, value)
    return made


SOURCES = ("cloudInitConfigDrive", "cloudInitNoCloud", "configMap", "containerDisk", "containerPath", "dataVolume", "downwardAPI", "ephemeral",
           "emptyDisk", "hostDisk", "persistentVolumeClaim", "memoryDump", "secret", "serviceAccount", "sysprep", "downwardMetrics")
USER_DATA = {"userData", "userDataBase64", "secretRef"}
BINDINGS = ("bridge", "masquerade", "sriov", "slirp", "passt", "passtBinding", "macvtap", "binding")


def complete(spec):
    """A machine that is whole: disks have volumes, interfaces networks."""
    domain = spec.setdefault("domain", {})
    domain.setdefault("memory", {}).setdefault("guest", "64Mi")
    devices = domain.setdefault("devices", {})
    container = domain.get("firmware", {}).get("kernelBoot", {}).get("container", {})
    if container.get("image") == "x":
        container["image"] = "ferry.io/builtin"
    for v in spec.get("volumes", ()):
        v.setdefault("name", "x")
        if v.get("hostDisk", {}).get("type") == "x":
            v["hostDisk"]["type"] = "Disk"
        if "cloudInitNoCloud" in v and not v["cloudInitNoCloud"].keys() & USER_DATA:
            v["cloudInitNoCloud"]["userData"] = "x"
        if not any(s in v for s in SOURCES):
            v["persistentVolumeClaim"] = {"claimName": "c"}
    for d in devices.get("disks", ()):
        d.setdefault("name", "x")
        if d["name"] not in [v["name"] for v in spec.get("volumes", ())]:
            spec.setdefault("volumes", []).append({"name": d["name"], "persistentVolumeClaim": {"claimName": "c"}})
    for n in spec.get("networks", ()):
        n.setdefault("name", "x")
        if not n.keys() & {"pod", "multus"}:
            n["multus"] = {"networkName": "n"}
        if not devices.get("interfaces"):
            devices["interfaces"] = [{"name": n["name"], "bridge": {}}]
    for i in devices.get("interfaces", ()):
        i.setdefault("name", "x")
        if not any(b in i for b in BINDINGS):
            i["bridge"] = {}
        if not spec.get("networks"):
            spec["networks"] = [{"name": i["name"], "multus": {"networkName": "n"}}]
    return spec


def machine(schemas, row, value=None):
    """An object with the field of a row; `schemas`: of each kind's spec. `value` instead of one that is supported."""
    spec = place(schemas[row.of], row.path, row.values, value)
    if row.of == "VirtualMachine":
        if "running" not in spec:
            spec.setdefault("runStrategy", "Halted")
        complete(spec.setdefault("template", {}).setdefault("spec", {}))
        for what, kind in (("instancetype", "VirtualMachineInstancetype"), ("preference", "VirtualMachinePreference")):
            if what in spec:
                spec[what].setdefault("name", "x")
                if spec[what].get("kind") == "x":
                    spec[what]["kind"] = kind
    else:
        complete(spec)
    return {"apiVersion": "kubevirt.io/v1", "kind": row.of, "metadata": {"name": "one"}, "spec": spec}
