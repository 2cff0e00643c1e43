"""The custom kinds in deploy/kubernetes/crds as a real API server sees them."""
import copy

import cases
from cases import KUBEVIRTS, MIGRATIONS, POLICIES, VMIS, VMS, expect_refused, kubevirt, machine, migration, policy, vmi

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

# plural -> short names, scope, whether there is a status subresource
SERVED = {
    "kubevirts.kubevirt.io": (["kv", "kvs"], "Namespaced", True),
    "migrationpolicies.migrations.kubevirt.io": ([], "Cluster", True),
    "virtualmachineinstancemigrations.kubevirt.io": (["vmim", "vmims"], "Namespaced", True),
    "virtualmachineinstances.kubevirt.io": (["vmi", "vmis"], "Namespaced", False),
    "virtualmachines.kubevirt.io": (["vm", "vms"], "Namespaced", True),
    "virtualmachineinstancetypes.instancetype.kubevirt.io": (["vminstancetype", "vminstancetypes", "vmf", "vmfs"], "Namespaced", False),
    "virtualmachineclusterinstancetypes.instancetype.kubevirt.io": (
        ["vmclusterinstancetype", "vmclusterinstancetypes", "vmcf", "vmcfs"], "Cluster", False),
    "virtualmachinepreferences.instancetype.kubevirt.io": (["vmpref", "vmprefs", "vmp", "vmps"], "Namespaced", False),
    "virtualmachineclusterpreferences.instancetype.kubevirt.io": (["vmcp", "vmcps"], "Cluster", False),
    "virtualmachineinstancereplicasets.kubevirt.io": (["vmirs", "vmirss"], "Namespaced", False),
    "virtualmachineinstancepresets.kubevirt.io": (["vmipreset", "vmipresets"], "Namespaced", False),
    "virtualmachinepools.pool.kubevirt.io": (["vmpool", "vmpools"], "Namespaced", False),
}


def crds():
    return {c["metadata"]["name"]: c for c in cases.shared().client().list(CRDS)}


def test_established_and_structural(_):
    found = crds()
    assert sorted(found) == sorted(SERVED), sorted(found)
    for name, crd in found.items():
        short, scope, status = SERVED[name]
        conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, f"{name}: {conditions}"
        version = crd["spec"]["versions"][0]
        assert crd["spec"]["names"].get("shortNames", []) == short, name
        assert crd["spec"]["scope"] == scope, name
        assert ("status" in version.get("subresources", {})) == status, name
        assert not version["schema"]["openAPIV3Schema"].get("x-kubernetes-preserve-unknown-fields"), name


def schema(name):
    return crds()[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def test_every_field_is_described(_):
    def walk(path, node):
        for name, child in node.get("properties", {}).items():
            if path or name in ("spec", "status"):
                assert child.get("description"), f"{path}.{name} has no description"
                walk(f"{path}.{name}", child)
        if "items" in node:
            walk(path + "[]", node["items"])
    for name in SERVED:
        walk("", {"properties": schema(name)})


def test_shared_parts_are_equal(_):
    """YAML has no way to say 'as over there' that every reader understands, so these stand in two files."""
    vmi_status = schema("virtualmachineinstances.kubevirt.io")["status"]["properties"]
    vmim_status = schema("virtualmachineinstancemigrations.kubevirt.io")["status"]["properties"]
    assert vmi_status["migrationState"] == vmim_status["migrationState"]
    resolved = copy.deepcopy(vmi_status["migrationState"]["properties"]["migrationConfiguration"]["properties"])
    experimental = resolved.pop("experimental")
    configuration = schema("kubevirts.kubevirt.io")["spec"]["properties"]["configuration"]["properties"]
    assert configuration["migrations"]["properties"] == resolved
    for of in ("instancetypes", "preferences"):
        assert schema(f"virtualmachine{of}.instancetype.kubevirt.io")["spec"] == schema(f"virtualmachinecluster{of}.instancetype.kubevirt.io")["spec"]
    spec = schema("migrationpolicies.migrations.kubevirt.io")["spec"]["properties"]
    assert spec["experimental"]["properties"] == experimental["properties"]


# (where, object, part of the refusal)
REFUSED = [
    (VMIS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "x"}},
     "spec: Required value"),
    (VMIS, vmi("x", domain=None), "spec.domain: Required value"),
    (VMIS, vmi("x", domain={"memory": {"guest": "lots"}}), "spec.domain.memory.guest: Invalid value"),
    (VMIS, vmi("x", domain={"memory": {"guest": "-1Mi"}}), "spec.domain.memory.guest: Invalid value"),
    (VMIS, vmi("x", domain={"cpu": {"cores": "2"}}), "spec.domain.cpu.cores: Invalid value"),
    (VMIS, vmi("x", domain={"cpu": {"cores": 5000}}), "spec.domain.cpu.cores: Invalid value"),
    (VMIS, vmi("x", domain={"cpu": {"features": [{"name": "f", "policy": "maybe"}]}}),
     "spec.domain.cpu.features[0].policy: Unsupported value"),
    (VMIS, vmi("x", domain={"firmware": {"kernelBoot": {"container": {"kernelPath": "/k"}}}}),
     "spec.domain.firmware.kernelBoot.container.image: Required value"),
    (VMIS, vmi("x", evictionStrategy="Migrate"), "spec.evictionStrategy: Unsupported value"),
    (VMIS, vmi("x", terminationGracePeriodSeconds=-1), "spec.terminationGracePeriodSeconds: Invalid value"),
    (VMIS, vmi("x", nodeSelector={"a": 1}), "spec.nodeSelector.a: Invalid value"),
    (VMIS, {**vmi("x"), "status": {"phase": "Walking"}}, "status.phase: Unsupported value"),
    (VMIS, {**vmi("x"), "status": {"conditions": [{"type": "Ready", "status": "yes"}]}},
     "status.conditions[0].status: Unsupported value"),
    (VMIS, {**vmi("x"), "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "True"}]}},
     "status.conditions[1]: Duplicate value"),
    (VMIS, {**vmi("x"), "status": {"migrationState": {"targetDirectMigrationNodePorts": {"43117": 99999}}}},
     "status.migrationState.targetDirectMigrationNodePorts.43117: Invalid value"),
    (VMIS, {**vmi("x"), "status": {"migrationState": {"startTimestamp": "yesterday"}}},
     "status.migrationState.startTimestamp: Invalid value"),
    (MIGRATIONS, {**migration("x", "v"), "spec": {}}, "spec.vmiName: Required value"),
    (MIGRATIONS, migration("x", ""), "spec.vmiName: Invalid value"),
    (MIGRATIONS, migration("x", "v", priority="urgent"), "spec.priority: Unsupported value"),
    (MIGRATIONS, migration("x", "v", sendTo={"migrationID": "i"}), "spec.sendTo.connectURL: Required value"),
    (MIGRATIONS, migration("x", "v", sendTo={"migrationID": "i", "connectURL": "h:1"}, receive={"migrationID": "j"}),
     "sendTo and receive must have the same migrationID"),
    (VMS, machine("x", runStrategy="Sometimes"), "spec.runStrategy: Unsupported value"),
    (VMS, machine("x", template=None), "spec.template: Required value"),
    (KUBEVIRTS, kubevirt("x", {"parallelMigrationsPerCluster": -1}),
     "spec.configuration.migrations.parallelMigrationsPerCluster: Invalid value"),
    (KUBEVIRTS, kubevirt("x", {"maxDowntimeMs": 0}), "spec.configuration.migrations.maxDowntimeMs: Invalid value"),
    (KUBEVIRTS, kubevirt("x", {"allowPostCopy": "yes"}), "spec.configuration.migrations.allowPostCopy: Invalid value"),
    (POLICIES, {**policy("x"), "spec": {}}, "spec.selectors: Required value"),
    (POLICIES, policy("x", bandwidthPerMigration="fast"), "spec.bandwidthPerMigration: Invalid value"),
    (POLICIES, policy("x", completionTimeoutPerGiB=-1), "spec.completionTimeoutPerGiB: Invalid value"),
    (POLICIES, policy("x", maxDowntimeMs=2000001), "spec.maxDowntimeMs: Invalid value"),
    (POLICIES, policy("x", experimental={"compression": "gzip"}), "spec.experimental.compression: Unsupported value"),
    (POLICIES, policy("x", experimental={"stallDetector": {"stallMargin": 101}}),
     "spec.experimental.stallDetector.stallMargin: Invalid value"),
]


def test_refused(_):
    admin = cases.shared().client()
    for where, body, text in REFUSED:
        expect_refused(422, text, admin.create, where, body)


# (where, object): taken as they are, nothing lost.
KEPT = [
    (VMIS, vmi("k1", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "x"}}],
               networks=[{"name": "lan", "multus": {"networkName": "lan"}}],
               domain={"cpu": {"sockets": 1, "cores": 2, "threads": 1, "model": "host-model", "maxSockets": 4},
                       "memory": {"guest": "1.5Gi", "hugepages": {"pageSize": "2Mi"}},
                       "resources": {"requests": {"cpu": "500m", "memory": 1073741824}},
                       "devices": {"disks": [{"name": "d", "disk": {"bus": "virtio"}}],
                                   "interfaces": [{"name": "lan", "bridge": {}}]}},
               nodeSelector={"kubernetes.io/hostname": "a"}, evictionStrategy="LiveMigrate")),
    (VMIS, {**vmi("k2"), "status": {
        "phase": "Running", "nodeName": "a", "guestOSInfo": {"id": "debian"}, "activePods": {"u": "a"},
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None,
                        "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "migrationState": {"migrationUid": "u", "sourceNode": "a", "targetNode": "b", "mode": "PreCopy",
                           "targetDirectMigrationNodePorts": {"43117": 0, "43118": 49152},
                           "migrationConfiguration": {"bandwidthPerMigration": "0", "completionTimeoutPerGiB": 150,
                                                      "experimental": {"compression": "zstd"}},
                           "sourceState": {"node": "a", "nodeSelectors": {"x": "y"}}}}}),
    (MIGRATIONS, migration("k3", "k1", addedNodeSelector={"disk": "fast"})),
    (MIGRATIONS, migration("k4", "k1", sendTo={"migrationID": "i", "connectURL": "h:1"}, receive={"migrationID": "i"})),
    (VMS, machine("k5", runStrategy="Always", updateVolumesStrategy="Migration", preference={"name": "p"})),
    (KUBEVIRTS, kubevirt("k6", {"parallelMigrationsPerCluster": 9, "bandwidthPerMigration": "64Mi", "network": "n",
                                "disableTLS": False, "allowWorkloadDisruption": True, "nodeDrainTaintKey": "k"})),
    (POLICIES, policy("k7", selectors={"namespaceSelector": {"team": "a"},
                                       "virtualMachineInstanceSelector": {"size": "big"}},
                      bandwidthPerMigration="1Gi", maxDowntimeMs=500, allowPostCopy=True,
                      experimental={"compression": "zstd", "stallDetector": {"ewmaAlpha": "0.25"}})),
]


def test_kept(_):
    admin = cases.shared().client()
    for where, body in KEPT:
        got = admin.create(where, body)
        assert got["spec"] == body["spec"], f"{body['metadata']['name']}: {got['spec']}"
        if where == VMIS:
            assert got.get("status") == body.get("status"), f"{body['metadata']['name']}: {got.get('status')}"


def test_unknown_fields(_):
    """Where all fields are known the others go; kubectl, which asks for strictness, is told."""
    admin = cases.shared().client()
    got = admin.create(MIGRATIONS, migration("u1", "v", speed="high"))
    assert "speed" not in got["spec"], got
    status, answer = admin.call("POST", f"{MIGRATIONS}?fieldValidation=Strict", migration("u2", "v", speed="high"))
    assert status == 400 and 'unknown field "spec.speed"' in answer["message"], answer


def test_spec_of_a_migration_is_fixed(_):
    admin = cases.shared().client()
    admin.create(MIGRATIONS, migration("f1", "v"))
    expect_refused(422, "update of Migration object's spec is restricted", admin.patch, f"{MIGRATIONS}/f1",
                   {"spec": {"vmiName": "w"}})
    admin.patch(f"{MIGRATIONS}/f1", {"metadata": {"labels": {"a": "b"}}})


def test_status(_):
    """A status of its own for migrations; for VMIs it is part of the object."""
    admin = cases.shared().client()
    admin.create(MIGRATIONS, migration("s1", "v"))
    assert "status" not in admin.patch(f"{MIGRATIONS}/s1", {"status": {"phase": "Pending"}})
    got = admin.patch(f"{MIGRATIONS}/s1/status", {"status": {"phase": "Pending"}, "metadata": {"labels": {"a": "b"}}})
    assert got["status"]["phase"] == "Pending", got
    assert admin.get(f"{MIGRATIONS}/s1")["metadata"].get("labels") is None
    admin.create(VMIS, vmi("s2"))
    got = admin.patch(f"{VMIS}/s2", {"status": {"phase": "Pending"}, "metadata": {"labels": {"a": "b"}}})
    assert got["status"]["phase"] == "Pending" and got["metadata"]["labels"] == {"a": "b"}, got
    assert admin.get(f"{VMIS}/s2/status") is None


if __name__ == "__main__":
    import scenario
    scenario.main(globals())
