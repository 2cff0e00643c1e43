"""Who may do what: the identity table of docs/contracts/identity.md, as deploy/kubernetes/ grants it."""
import cases
import engine
import fieldattacks
import roles
from cases import MIGRATIONS, NODES, VMIS, expect_refused, migration, pod, vmi

WHO = {
    "controller": ["--as=system:ferry-controller"],
    "controller-pod": ["--as=system:serviceaccount:ferry:ferry-controller"],
    "node": ["--as=system:node:a", "--as-group=system:nodes"],
    "handler-pod": ["--as=system:serviceaccount:ferry:ferry-handler"],
    "viewer": ["--as=somebody", "--as-group=ferry:viewers"],
    "admin": ["--as=ferry-admin", "--as-group=ferry:admins"],
    "relay": ["--as=ferry-relay:a"],
    "nobody": ["--as=system:anonymous", "--as-group=system:unauthenticated"],
}


def review(admin, who, verb, what):
    """What the API server says itself; kubectl would take a tenth of a second for each question."""
    names = {a.split("=", 1)[0]: a.split("=", 1)[1] for a in who}
    resource, group, subresource, name, ns = roles.parse(what)
    answer = admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": names["--as"], "groups": [g for k, g in names.items() if k == "--as-group"],
            "resourceAttributes": {"namespace": ns, "verb": verb, "group": group, "resource": resource,
                                   "subresource": subresource, "name": name}}})
    return answer["status"]["allowed"]


def test_table(_):
    admin = cases.shared().client()
    rows = roles.rows("kubernetes")
    wrong = [f"{who}: {verb} {what}: not {allowed}" for who, verb, what, allowed in rows
             if review(admin, WHO[who], verb, what) != allowed]
    assert not wrong, "\n".join(wrong)
    print(f"{len(rows)} questions answered as expected")


def test_kubectl_can_i(_):
    """As a person asks: one line of the table for each."""
    e = cases.shared()
    asked = set()
    for who, verb, what, allowed in roles.rows("kubernetes"):
        if (who, allowed) in asked or "/" in what or " " in what or who == "nobody":  # nobody may not even ask
            continue
        asked.add((who, allowed))
        done = e.kubectl("auth", "can-i", verb, what, *WHO[who], code=0 if allowed else 1)
        assert done.stdout.split()[0] == ("yes" if allowed else "no"), f"{who} {verb} {what}: {done.stdout}"


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


# what of each node a may write
def runs(name):
    return {"status": {"interfaces": [{"name": name}]}}


OWN = {"on-a": runs, "came-to-a": runs,
       "to-a": lambda name: {"status": {"migrationState": {"targetNodeAddress": name}}},
       "leaves-a": lambda name: {"metadata": {"annotations": {"ferry.io/progress": name}}}}
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
    def write(which):
        return client.patch(f"{VMIS}/{which}", OWN.get(which, runs)(name))
    # Admission policies take effect a moment after they are made.
    engine.wait_for("the rules on nodes to be in force", lambda: client.call(
        "PATCH", f"{VMIS}/on-b", runs(name), engine.MERGE_PATCH)[0] == 403, 90)
    for own in OF_NODE_A:
        write(own)
    client.patch(f"{VMIS}/on-a", [{"op": "test", "path": "/status/nodeName", "value": "a"},
                                  {"op": "add", "path": "/status/migrationMethod", "value": "LiveMigration"}])
    for other in OF_OTHERS:
        expect_refused(403, "node 'a' may change only VirtualMachineInstances that are on it", write, other)
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
    expect_refused(403, "node '' may change only", loose.patch, f"{VMIS}/on-a", runs("loose"))


def test_fields(bin_dir):
    """What a node that was taken over may not write, and what handlers do: the same as of ferry-apiserver (tests/hostile/test_fields.py)."""
    e = cases.shared()
    clients = {"admin": e.client(), "controller": e.client("controller"), **{n: e.client("node", n) for n in ("n1", "n2", "n3", "a", "b", "c")}}
    fields = fieldattacks.Fields(clients.__getitem__)
    path = fields.make("running")
    engine.wait_for("the rules on fields to be in force", lambda: clients["n1"].call(
        "PATCH", path + "?dryRun=All", {"status": {"evacuationNodeName": "n1"}}, engine.MERGE_PATCH)[0] == 403, 90)
    print(f"{fields.attacks()} attacks refused")
    print(f"{fields.rows(bin_dir)} rows of the table")
    fields.every_way_to_write()
    fields.honest()


def test_spec_of_a_vmi(_):
    """Fixed for all but the controller, which plugs things in; metadata and status are free."""
    e = cases.shared()
    admin, controller = e.client(), e.client("controller")
    admin.create(VMIS, vmi("fixed"))
    change = {"spec": {"domain": {"cpu": {"sockets": 2}}}}
    engine.wait_for("the rule to be in force", lambda: admin.call(
        "PATCH", f"{VMIS}/fixed?dryRun=All", change, engine.MERGE_PATCH)[0] == 422, 90)
    expect_refused(422, "update of VMI object is restricted", admin.patch, f"{VMIS}/fixed", change)
    admin.patch(f"{VMIS}/fixed", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Pending"}})
    controller.patch(f"{VMIS}/fixed", change)


def test_priority(_):
    """Only the controller chooses the place of a migration in the queue."""
    e = cases.shared()
    admin, controller = e.client(), e.client("controller")
    body = migration("p1", "v", priority="system-critical")
    engine.wait_for("the rule on priorities to be in force",
                    lambda: admin.call("POST", f"{MIGRATIONS}?dryRun=All", body)[0] == 422, 90)
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
