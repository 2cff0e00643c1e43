"""The types of core kinds (src/apiserver/kinds/core_types.c) are those of Kubernetes: nothing more, nothing less, but for what the
table says it does not look into."""
import cases
import engine

DOCUMENTS = ("api/v1", "apis/storage.k8s.io/v1", "apis/coordination.k8s.io/v1")


def shape(schema, ours):
    """A field's type in one word, alike for both."""
    ref = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
    if ref:
        name = ref.rsplit(".", 1)[-1]
        return {"Quantity": "string", "IntOrString": "intorstring", "Time": "time", "MicroTime": "time", "FieldsV1": "any"}.get(name, name)
    if schema.get("x-kubernetes-preserve-unknown-fields") or (not ours and schema == {"type": "object"}):
        return "any"
    kind = schema.get("type")
    if kind == "array":
        return "[]" + shape(schema["items"], ours)
    if kind == "object" and "additionalProperties" in schema:
        return "{}" + shape(schema["additionalProperties"], ours)
    return {"date-time": "time", "int-or-string": "intorstring", "int32": "int32", "int64": "int64"}.get(schema.get("format"), kind)


def types(client, ours):
    """type -> (field -> shape, required)"""
    found = {}
    for document in DOCUMENTS:
        for name, schema in client.get("/openapi/v3/" + document)["components"]["schemas"].items():
            if name.startswith(("io.k8s.api.core.", "io.k8s.api.storage.v1.StorageClass", "io.k8s.api.coordination.", "io.k8s.apimachinery.")):
                found[name] = ({k: shape(v, ours) for k, v in schema.get("properties", {}).items()}, set(schema.get("required", [])))
    return found


def test_types(bin_dir):
    with engine.start("embedded", bin_dir) as e:
        mine = types(e.client(), True)
    real = types(cases.shared().client(), False)
    wrong = []
    for name, (fields, required) in mine.items():
        theirs, needed = real.get(name, ({}, set()))
        if name not in real:
            wrong.append(f"{name}: not a type of Kubernetes")
            continue
        wrong += [f"{name}.{f}: Kubernetes has it, we have not" for f in theirs.keys() - fields.keys()]
        wrong += [f"{name}.{f}: we have it, Kubernetes has not" for f in fields.keys() - theirs.keys()]
        wrong += [f"{name}.{f}: {fields[f]}, in Kubernetes {theirs[f]}" for f in fields.keys() & theirs.keys()
                  if "any" not in fields[f] and fields[f] != theirs[f]]
        if required != needed - {"metadata"}:
            wrong.append(f"{name}: requires {sorted(required)}, in Kubernetes {sorted(needed)}")
    assert not wrong, "\n".join(wrong)
    assert len(mine) > 150, len(mine)


if __name__ == "__main__":
    import scenario
    scenario.main(globals())
