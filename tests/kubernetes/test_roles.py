"""Who may do what: the identity table of docs/contracts.md, as deploy/kubernetes/ grants it."""
import cases
import engine
from cases import MIGRATIONS, NODES, VMIS, expect_refused, migration, pod, vmi

CONTROLLER = ["--as=system:ferry-controller"]
CONTROLLER_POD = ["--as=system:serviceaccount:ferry:ferry-controller"]
NODE = ["--as=system:node:a", "--as-group=system:nodes"]
HANDLER_POD = ["--as=system:serviceaccount:ferry:ferry-handler"]
VIEWER = ["--as=somebody", "--as-group=ferry:viewers"]
ADMIN = ["--as=ferry-admin", "--as-group=ferry:admins"]
RELAY = ["--as=ferry-relay:a"]

VMI = "virtualmachineinstances.kubevirt.io"
VMIM = "virtualmachineinstancemigrations.kubevirt.io"
POLICY = "migrationpolicies.migrations.kubevirt.io"
KUBEVIRT = "kubevirts.kubevirt.io"

# (who, verbs, object, allowed)
TABLE = [
    (CONTROLLER, "get list watch create patch delete", VMI, True),
    (CONTROLLER, "get list watch create patch delete", VMIM, True),
    (CONTROLLER, "patch", VMIM + "/status", True),
    (CONTROLLER, "get list watch create patch delete", "pods", True),
    (CONTROLLER, "get list watch patch", "nodes", True),
    (CONTROLLER, "patch", "nodes/status", True),
    (CONTROLLER, "create patch", "events", True),
    (CONTROLLER, "get list watch", POLICY, True),
    (CONTROLLER, "get list watch", KUBEVIRT, True),
    (CONTROLLER, "get list watch", "namespaces", True),
    (CONTROLLER, "get list watch", "persistentvolumeclaims", True),
    (CONTROLLER, "get list watch", "resourcequotas", True),
    (CONTROLLER, "get patch", "leases.coordination.k8s.io ferry-controller -n kube-system", True),
    (CONTROLLER, "create", "leases.coordination.k8s.io -n kube-system", True),
    (CONTROLLER, "get patch delete", "leases.coordination.k8s.io kube-scheduler -n kube-system", False),
    (CONTROLLER, "get create patch", "leases.coordination.k8s.io -n default", False),
    (CONTROLLER, "get list watch", "secrets", False),
    (CONTROLLER, "create patch delete", POLICY, False),
    (CONTROLLER, "create delete", "nodes", False),
    (CONTROLLER, "create", "pods/exec", False),
    (CONTROLLER, "patch", "pods/status", False),
    (CONTROLLER, "create", "pods/binding", False),
    (CONTROLLER, "create", "clusterrolebindings.rbac.authorization.k8s.io", False),
    (CONTROLLER_POD, "create patch", VMIM, True),
    (CONTROLLER_POD, "get patch", "leases.coordination.k8s.io ferry-controller -n kube-system", True),
    (CONTROLLER_POD, "get", "secrets", False),
    (NODE, "get list watch patch", VMI, True),
    (NODE, "create delete", VMI, False),
    (NODE, "get list watch", VMIM, True),
    (NODE, "create patch delete", VMIM, False),
    (NODE, "patch", VMIM + "/status", False),
    (NODE, "get", POLICY, False),
    (NODE, "get list watch", "nodes", True),
    (NODE, "create patch", "events", True),
    (NODE, "get list", "secrets -n kube-system", False),
    (HANDLER_POD, "get list watch patch", VMI, True),
    (HANDLER_POD, "get list watch", "pods", True),
    (HANDLER_POD, "get patch", "nodes", True),
    (HANDLER_POD, "create patch", "events", True),
    (HANDLER_POD, "create delete", VMI, False),
    (HANDLER_POD, "create patch delete", VMIM, False),
    (HANDLER_POD, "create delete patch", "pods", False),
    (HANDLER_POD, "get", "secrets", False),
    (VIEWER, "get list watch", VMI, True),
    (VIEWER, "get list watch", VMIM, True),
    (VIEWER, "get list watch", POLICY, True),
    (VIEWER, "get list watch", "pods", True),
    (VIEWER, "get list watch", "nodes", True),
    (VIEWER, "get list watch", "events", True),
    (VIEWER, "create patch delete", VMI, False),
    (VIEWER, "create patch delete", VMIM, False),
    (VIEWER, "get list", "secrets", False),
    (ADMIN, "get list watch create update patch delete deletecollection", VMI, True),
    (ADMIN, "get list watch create update patch delete deletecollection", VMIM, True),
    (ADMIN, "create update patch delete", POLICY, True),
    (ADMIN, "create update patch delete", KUBEVIRT, True),
    (ADMIN, "get patch", "nodes", True),
    (ADMIN, "create", "pods/eviction", True),
    (ADMIN, "get", "secrets", False),
    (RELAY, "get list watch", VMI, False),
    (RELAY, "get", "nodes", False),
]


def review(admin, who, verb, what):
    """What the API server says itself; kubectl would take a tenth of a second for each question."""
    names = {a.split("=", 1)[0]: a.split("=", 1)[1] for a in who}
    what, _, ns = what.partition(" -n ")
    what, _, name = what.partition(" ")
    what, _, subresource = what.partition("/")
    resource, _, group = what.partition(".")
    answer = admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": names["--as"], "groups": [g for k, g in names.items() if k == "--as-group"],
            "resourceAttributes": {"namespace": ns or "default", "verb": verb, "group": group, "resource": resource,
                                   "subresource": subresource, "name": name}}})
    return answer["status"]["allowed"]


def test_table(_):
    admin = cases.shared().client()
    rows = [(who, verb, what, allowed) for who, verbs, what, allowed in TABLE for verb in verbs.split()]
    wrong = [f"{' '.join(who)}: {verb} {what}: not {allowed}" for who, verb, what, allowed in rows
             if review(admin, who, verb, what) != allowed]
    assert not wrong, "\n".join(wrong)
    print(f"{len(rows)} questions answered as expected")


def test_kubectl_can_i(_):
    """As a person asks: one line of the table for each."""
    e = cases.shared()
    asked = set()
    for who, verbs, what, allowed in TABLE:
        if (who[0], allowed) in asked or "/" in what or " " in what:
            continue
        asked.add((who[0], allowed))
        done = e.kubectl("auth", "can-i", verbs.split()[0], what, *who, code=0 if allowed else 1)
        assert done.stdout.split()[0] == ("yes" if allowed else "no"), f"{who} {verbs} {what}: {done.stdout}"


def test_nobody(_):
    """Without credentials: health and version, nothing else."""
    e = cases.shared()
    path = f"{e.dir}/nobody.kubeconfig"
    engine.write_kubeconfig(path, e.url, f"{e.pki}/ca.crt", {"token": "not-a-token"})
    nobody = engine.Client(path)
    nobody.headers.pop("Authorization")
    for good in ("/healthz", "/readyz", "/livez", "/version"):
        assert nobody.call("GET", good)[0] == 200, good
    for bad in (VMIS, NODES, MIGRATIONS):
        assert nobody.call("GET", bad)[0] in (401, 403), bad


# name -> status; which of them node a may change
OF_NODE_A = {
    "on-a": {"nodeName": "a"},
    "to-a": {"nodeName": "b", "migrationState": {"sourceNode": "b", "targetNode": "a"}},
    "came-to-a": {"nodeName": "a", "migrationState": {"sourceNode": "b", "targetNode": "a", "completed": True}},
    "leaves-a": {"nodeName": "b", "migrationState": {"sourceNode": "a", "targetNode": "b"}},
}
OF_OTHERS = {
    "on-b": {"nodeName": "b"},
    "nowhere": {},
    "left-a": {"nodeName": "b", "migrationState": {"sourceNode": "a", "targetNode": "b", "completed": True}},
}


def prepare_vmis(admin):
    for name, status in {**OF_NODE_A, **OF_OTHERS}.items():
        admin.create(VMIS, {**vmi(name), "status": status})


def check_node(client, name):
    """What a node may change of VMIs: those that are its own, and not their spec."""
    def annotate(which):
        return client.patch(f"{VMIS}/{which}", {"metadata": {"annotations": {"by": name}}})
    # Admission policies take effect a moment after they are made.
    engine.wait_for("the rules on nodes to be in force", lambda: client.call(
        "PATCH", f"{VMIS}/on-b", {"metadata": {"annotations": {"by": name}}}, engine.MERGE_PATCH)[0] == 403, 30)
    for own in OF_NODE_A:
        annotate(own)
    client.patch(f"{VMIS}/on-a", [{"op": "test", "path": "/status/nodeName", "value": "a"},
                                  {"op": "add", "path": "/status/reason", "value": "fine"}])
    for other in OF_OTHERS:
        expect_refused(403, "node 'a' may change only VirtualMachineInstances that are on it", annotate, other)
    expect_refused(422, "update of VMI object is restricted", client.patch, f"{VMIS}/on-a",
                   {"spec": {"domain": {"memory": {"guest": "1Gi"}}}})


def test_node(_):
    e = cases.shared()
    admin = e.client()
    cases.add_node(admin, "a")
    cases.add_node(admin, "b")
    prepare_vmis(admin)
    node = e.client("node", "a")
    check_node(node, "certificate")
    beat = {"metadata": {"annotations": {"kubevirt.io/heartbeat": "now"}, "labels": {"kubevirt.io/schedulable": "true"}}}
    node.patch(f"{NODES}/a", beat)
    expect_refused(403, "not allowed to modify node", node.patch, f"{NODES}/b", beat)


def test_handler_pod(_):
    """The same for a handler that is a pod, whose token says which node it is on."""
    e = cases.shared()
    admin = e.client()
    pods = "/api/v1/namespaces/ferry/pods"
    admin.create(pods, {**pod("handler", nodeName="a", serviceAccountName="ferry-handler"),
                        "metadata": {"name": "handler", "namespace": "ferry"}})
    handler = engine.Client(e.token_kubeconfig("ferry-handler", pod="handler"))
    check_node(handler, "token")
    beat = {"metadata": {"annotations": {"kubevirt.io/heartbeat": "now"}}}
    handler.patch(f"{NODES}/a", beat)
    expect_refused(403, "its own Node only", handler.patch, f"{NODES}/b", beat)
    expect_refused(403, "spec of a Node", handler.patch, f"{NODES}/a", {"spec": {"unschedulable": True}})
    loose = engine.Client(e.token_kubeconfig("ferry-handler"))
    expect_refused(403, "node '' may change only", loose.patch, f"{VMIS}/on-a", {"metadata": {"annotations": {"a": "b"}}})


def test_spec_of_a_vmi(_):
    """Fixed for all but the controller, which plugs things in; metadata and status are free."""
    e = cases.shared()
    admin, controller = e.client(), e.client("controller")
    admin.create(VMIS, vmi("fixed"))
    change = {"spec": {"domain": {"cpu": {"sockets": 2}}}}
    engine.wait_for("the rule to be in force", lambda: admin.call(
        "PATCH", f"{VMIS}/fixed?dryRun=All", change, engine.MERGE_PATCH)[0] == 422, 30)
    expect_refused(422, "update of VMI object is restricted", admin.patch, f"{VMIS}/fixed", change)
    admin.patch(f"{VMIS}/fixed", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Pending"}})
    controller.patch(f"{VMIS}/fixed", change)


def test_priority(_):
    """Only the controller chooses the place of a migration in the queue."""
    e = cases.shared()
    admin, controller = e.client(), e.client("controller")
    body = migration("p1", "v", priority="system-critical")
    engine.wait_for("the rule on priorities to be in force",
                    lambda: admin.call("POST", f"{MIGRATIONS}?dryRun=All", body)[0] == 422, 30)
    expect_refused(422, "may only be set by the controller", admin.create, MIGRATIONS, body)
    controller.create(MIGRATIONS, body)
    admin.create(MIGRATIONS, migration("p2", "v"))


def test_label_of_a_migration(_):
    e = cases.shared()
    admin = e.client()
    body = migration("l1", "v")
    body["metadata"]["labels"] = {"kubevirt.io/vmi-name": "v", "other": "x"}
    admin.create(MIGRATIONS, body)
    for labels in ({"kubevirt.io/vmi-name": "w"}, {"kubevirt.io/vmi-name": None}, None):
        expect_refused(422, "cannot be changed while the migration is not over", admin.patch, f"{MIGRATIONS}/l1",
                       {"metadata": {"labels": labels}})
    admin.patch(f"{MIGRATIONS}/l1", {"metadata": {"labels": {"other": "y"}}})
    admin.patch(f"{MIGRATIONS}/l1/status", {"status": {"phase": "Succeeded"}})
    admin.patch(f"{MIGRATIONS}/l1", {"metadata": {"labels": None}})


if __name__ == "__main__":
    import scenario
    scenario.main(globals())
