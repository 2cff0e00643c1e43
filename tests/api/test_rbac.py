"""Kubernetes' roles and bindings: what they give, what they refuse, and that nobody gives away more than they have.

The table in tests/lib/people.json is asked of both engines by SubjectAccessReview, and of this one by real calls of persons too.
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import APPLY, MERGE_PATCH, ON_KUBERNETES, Lab, LabCase, embedded_only, vmis  # noqa: E402
import people  # noqa: E402  pylint: disable=wrong-import-order
from people import RBAC, complete, place  # noqa: E402  pylint: disable=wrong-import-order
from waiting import wait_for  # noqa: E402  pylint: disable=wrong-import-order

REVIEWS = "/apis/authorization.k8s.io/v1"
CALLS = {  # verb -> method, with a name, query, body
    "get": ("GET", True, "", None),
    "list": ("GET", False, "?limit=1", None),
    "watch": ("GET", False, "?watch=1&timeoutSeconds=1", None),
    "create": ("POST", False, "?dryRun=All", "{}"),
    "update": ("PUT", True, "?dryRun=All", "{}"),
    "patch": ("PATCH", True, "?dryRun=All", "{}"),
    "delete": ("DELETE", True, "?dryRun=All", None),
    "deletecollection": ("DELETE", False, "?dryRun=All", None),
}
SERVED = ("", "kubevirt.io", "coordination.k8s.io", "rbac.authorization.k8s.io", "subresources.kubevirt.io")


def role(name, ns, *rules):
    return complete({"kind": "Role" if ns else "ClusterRole", "metadata": {"name": name, **({"namespace": ns} if ns else {})},
                     "rules": [{"apiGroups": [g], "resources": r.split(), "verbs": v.split()} for v, g, r in rules]})


def binding(name, ns, kind, to, *users, subject="User"):
    return complete({"kind": "RoleBinding" if ns else "ClusterRoleBinding",
                     "metadata": {"name": name, **({"namespace": ns} if ns else {})},
                     "roleRef": {"kind": kind, "name": to}, "subjects": [{"kind": subject, "name": u} for u in users]})


class People(LabCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.persons = {}
        for ns in ("a", "b", "kube-system"):
            if cls.api.call("GET", f"/api/v1/namespaces/{ns}")[0] == 404:
                cls.api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        for obj in people.TABLE["objects"]:
            cls.give(complete(obj))

    @classmethod
    def give(cls, obj):
        status, answer = cls.api.call("POST", place(obj), obj)
        assert status in (201, 409), answer
        return answer

    @classmethod
    def person(cls, name, *groups):
        if (name, groups) not in cls.persons:
            subject = "".join(f"/O={g}" for g in groups) + f"/CN={name}"
            pair = cls.lab.certificate(f"person-{len(cls.persons)}", subject)
            cls.persons[name, groups] = cls.lab.client_with(pair)
        return cls.persons[name, groups]

    def refused(self, client, code, text, method, path, body=None, kind="application/json"):
        status, answer = client.call(method, path, body, kind)
        self.assertEqual(status, code, answer)
        self.assertIn(text, answer["message"])
        return answer

    def may(self, client, verb, what):
        answer = client.ok("POST", f"{REVIEWS}/selfsubjectaccessreviews",
                           {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                            "spec": people.attributes(verb, what)}, code=201)
        return answer["status"]["allowed"]


class Rbac(People):
    # ---- the table

    def ask(self, who, verb, what):
        answer = self.api.ok("POST", f"{REVIEWS}/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {**people.TABLE["users"][who], **people.attributes(verb, what)}}, code=201)
        return answer["status"]["allowed"]

    def test_table(self):
        rows = people.rows()
        if ON_KUBERNETES:  # which reads bindings a moment after they are made: what is refused is only asked once all of them are read
            for who, verb, what in (row[:3] for row in rows if row[3]):
                wait_for(f"{who} {verb} {what}", lambda row=(who, verb, what): self.ask(*row), 30)
        answers = {row[:3]: self.ask(*row[:3]) for row in rows}
        wrong = [f"{who} {verb} {what}: not {allowed}" for who, verb, what, allowed in rows if answers[who, verb, what] != allowed]
        self.assertFalse(wrong, "\n".join(wrong))
        self.assertEqual(len(answers), len(rows), "a row stands twice")
        for allowed in (True, False):
            self.assertGreater(list(answers.values()).count(allowed), 75)

    @embedded_only("each row as the call itself, which tests its way to the check")
    def test_calls(self):
        wrong, asked = [], 0
        for who, verb, what, allowed in people.rows():
            resource, group, subresource, name, ns = people.parse(what)
            if verb not in CALLS or what.startswith("path ") or group not in SERVED or (
                    not ns and resource not in people.CLUSTER_KINDS and verb not in ("list", "watch")):
                continue
            method, named, query, body = CALLS[verb]
            user = people.TABLE["users"][who]
            where = (f"/apis/{group}/v1" if group else "/api/v1") + (
                f"/namespaces/{ns}" if ns and resource not in people.CLUSTER_KINDS else "") + f"/{resource}"
            if named or subresource:
                where += "/" + (name or "none-such") + (f"/{subresource}" if subresource else "")
            elif name and verb in ("list", "watch"):
                query += f"&fieldSelector=metadata.name={name}"
            status, answer = self.person(user["user"], *user["groups"]).raw(
                method, where + query, body, {"Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"})
            self.assertLess(status, 500, answer)
            asked += 1
            forbidden = status == 403 and (b" cannot " in answer)
            if forbidden == allowed and b"could not find the requested resource" not in answer:
                wrong.append(f"{who} {verb} {what}: {status} {answer[:200]}")
        self.assertFalse(wrong, "\n".join(wrong))
        self.assertGreater(asked, 120)

    # ---- what Kubernetes takes

    def test_validation(self):
        good = role("v", "a", ("get", "", "pods"))
        for path, value, text in (
                ("verbs", [], "verbs must contain at least one value"),
                ("apiGroups", [], "resource rules must supply at least one api group"),
                ("resources", [], "resource rules must supply at least one resource"),
                ("nonResourceURLs", ["/x"], "namespaced rules cannot apply to non-resource URLs")):
            bad = json.loads(json.dumps(good))
            bad["rules"][0][path] = value
            self.refused(self.api, 422, text, "POST", place(good), bad)
        both = role("v", "", ("get", "", "pods"))
        both["rules"][0]["nonResourceURLs"] = ["/x"]
        self.refused(self.api, 422, "cannot apply to both regular resources and non-resource URLs", "POST", place(both), both)
        empty = complete({"kind": "ClusterRole", "metadata": {"name": "v"}, "aggregationRule": {"clusterRoleSelectors": []}})
        self.refused(self.api, 422, "aggregationRule", "POST", place(empty), empty)
        for change, text in (({"roleRef": {"apiGroup": "other", "kind": "Role", "name": "x"}}, "roleRef.apiGroup"),
                             ({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Pod", "name": "x"}}, "roleRef.kind"),
                             ({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ""}}, "roleRef.name"),
                             ({"subjects": [{"kind": "Robot", "name": "x"}]}, "subjects[0].kind"),
                             ({"subjects": [{"kind": "User", "name": ""}]}, "subjects[0].name"),
                             ({"subjects": [{"kind": "User", "name": "x", "apiGroup": "y"}]}, "subjects[0].apiGroup")):
            bad = {**binding("v", "a", "Role", "x", "u"), **change}
            self.refused(self.api, 422, text, "POST", place(bad), bad)
        bad = binding("v", "", "Role", "x", "u")
        self.refused(self.api, 422, "roleRef.kind", "POST", place(bad), bad)
        bad = binding("v", "", "ClusterRole", "x", "u", subject="ServiceAccount")
        self.refused(self.api, 422, "subjects[0].namespace", "POST", place(bad), bad)

    def test_a_binding_keeps_its_role(self):
        b = binding("fixed", "a", "Role", "reader", "nobody-yet")
        made = self.give(b)
        self.assertEqual(made["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io")
        self.refused(self.api, 422, "cannot change roleRef", "PATCH", place(b) + "/fixed", {"roleRef": {"name": "other"}}, MERGE_PATCH)
        self.api.ok("PATCH", place(b) + "/fixed", {"subjects": []}, MERGE_PATCH)

    def test_names(self):
        for name in ("system:Test", "Team A's"):
            r = role(name, "", ("get", "", "pods"))
            status = self.api.call("POST", place(r), r)[0]
            self.assertEqual(status, 201 if name == "system:Test" or ON_KUBERNETES else 422)

    # ---- nobody gives away more than they have

    def admin_of_a(self, name):
        """Somebody who may make roles and bindings in namespace a, and holds little else."""
        for obj in (role("test-boss", "", ("*", "rbac.authorization.k8s.io", "roles rolebindings"), ("get list", "", "pods configmaps")),):
            obj["rules"][0]["verbs"] = ["get", "list", "watch", "create", "update", "patch", "delete"]
            self.give(obj)
        self.give(binding(name, "a", "ClusterRole", "test-boss", name))
        boss = self.person(name)
        wait_for("the binding to be in force", lambda: self.may(boss, "create", "roles.rbac.authorization.k8s.io -n a"), 30)
        return boss

    def test_escalation(self):
        boss = self.admin_of_a("boss")
        held = role("held", "a", ("get", "", "pods configmaps"), ("list", "", "pods"))
        boss.ok("POST", place(held), held)
        named = role("named", "a", ("get", "", "pods"))
        named["rules"][0]["resourceNames"] = ["x"]
        boss.ok("POST", place(named), named)
        for rule in (("get", "", "secrets"), ("get delete", "", "pods"), ("*", "", "pods"), ("get", "*", "pods"), ("get", "", "*"),
                     ("get", "", "pods/status"), ("get", "apps", "pods")):
            more = role("more", "a", ("list", "", "pods"), rule)
            self.refused(boss, 403, "attempting to grant RBAC permissions not currently held", "POST", place(more), more)
        self.refused(boss, 403, "not currently held", "PUT", place(held) + "/held", role("held", "a", ("get", "", "secrets")))
        self.refused(boss, 403, "not currently held", "PATCH", place(held) + "/held?fieldManager=t&force=true",
                     {**role("held", "a", ("get", "", "secrets"))}, APPLY)
        boss.ok("PATCH", place(held) + "/held", {"metadata": {"labels": {"x": "y"}}}, MERGE_PATCH)

    def test_binding(self):
        boss = self.admin_of_a("chief")
        boss.ok("POST", f"{RBAC}/namespaces/a/rolebindings", binding("to-friend", "a", "ClusterRole", "test-boss", "friend"))
        for kind, name in (("ClusterRole", "cluster-admin"), ("ClusterRole", "system:aggregate-to-edit"), ("ClusterRole", "test-everything")):
            self.refused(boss, 403, "not currently held", "POST", f"{RBAC}/namespaces/a/rolebindings", binding("up", "a", kind, name, "chief"))
        self.refused(boss, 404, "not found", "POST", f"{RBAC}/namespaces/a/rolebindings", binding("up", "a", "Role", "none-such", "chief"))
        # somebody else's binding to more than they have is not theirs to point at themselves
        self.give(binding("of-others", "a", "ClusterRole", "test-everything", "root"))
        self.refused(boss, 403, "not currently held", "PATCH", f"{RBAC}/namespaces/a/rolebindings/of-others",
                     {"subjects": [{"kind": "User", "name": "chief", "apiGroup": "rbac.authorization.k8s.io"}]}, MERGE_PATCH)

    def test_bind_and_escalate(self):
        boss = self.admin_of_a("head")
        one = role("may-bind", "a", ("bind", "rbac.authorization.k8s.io", "clusterroles"))
        one["rules"][0]["resourceNames"] = ["test-guests"]
        self.give(one)
        self.give(binding("may-bind", "a", "Role", "may-bind", "head"))
        wait_for("the binding to be in force", lambda: self.may(boss, "bind", "clusterroles.rbac.authorization.k8s.io test-guests -n a"), 30)
        boss.ok("POST", f"{RBAC}/namespaces/a/rolebindings", binding("guests-for-boss", "a", "ClusterRole", "test-guests", "head"))
        self.refused(boss, 403, "not currently held", "POST", f"{RBAC}/namespaces/a/rolebindings",
                     binding("all-for-boss", "a", "ClusterRole", "test-everything", "head"))
        big = role("big", "a", ("*", "*", "*"))
        self.refused(boss, 403, "not currently held", "POST", place(big), big)
        self.give(role("may-escalate", "a", ("escalate", "rbac.authorization.k8s.io", "roles")))
        self.give(binding("may-escalate", "a", "Role", "may-escalate", "head"))
        wait_for("the binding to be in force", lambda: self.may(boss, "escalate", "roles.rbac.authorization.k8s.io -n a"), 30)
        boss.ok("POST", place(big), big)

    def test_aggregation_is_for_admins(self):
        self.give(role("test-roles", "", ("create update patch get", "rbac.authorization.k8s.io", "clusterroles")))
        self.give(binding("test-roles", "", "ClusterRole", "test-roles", "rolf"))
        rolf = self.person("rolf")
        wait_for("the binding to be in force", lambda: self.may(rolf, "create", "clusterroles.rbac.authorization.k8s.io -A"), 30)
        gatherer = complete({"kind": "ClusterRole", "metadata": {"name": "gatherer"}, "rules": [],
                             "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}})
        self.refused(rolf, 403, "must have cluster-admin privileges to use the aggregationRule", "POST", place(gatherer), gatherer)
        # a label alone would add what the role has to others' roles
        self.refused(rolf, 403, "not currently held", "PATCH", f"{RBAC}/clusterroles/test-guests",
                     {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}}, MERGE_PATCH)

    # ---- questions

    def test_who_may_ask(self):
        eve = self.person("eve", "strangers")
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": "ann", **people.attributes("get", "pods -n a")}}
        self.refused(eve, 403, 'cannot create resource "subjectaccessreviews"', "POST", f"{REVIEWS}/subjectaccessreviews", review)
        local = {**review, "kind": "LocalSubjectAccessReview"}
        self.refused(eve, 403, "localsubjectaccessreviews", "POST", f"{REVIEWS}/namespaces/a/localsubjectaccessreviews", local)
        self.give(binding("asks", "a", "ClusterRole", "system:aggregate-to-admin", "asker"))
        asker = self.person("asker")
        wait_for("the binding to be in force", lambda: self.may(asker, "create", "localsubjectaccessreviews.authorization.k8s.io -n a"), 30)
        answer = asker.ok("POST", f"{REVIEWS}/namespaces/a/localsubjectaccessreviews",
                          {**local, "metadata": {"namespace": "a"}}, code=201)
        self.assertTrue(answer["status"]["allowed"], answer)
        wrong = {**local, "metadata": {"namespace": "a"}, "spec": {"user": "ann", **people.attributes("get", "pods -n b")}}
        self.assertEqual(asker.call("POST", f"{REVIEWS}/namespaces/a/localsubjectaccessreviews", wrong)[0], 422)

    def test_words(self):
        eve = self.person("eve", "strangers")
        self.refused(eve, 403, 'virtualmachines.kubevirt.io "x" is forbidden: User "eve" cannot get resource "virtualmachines" in API '
                     'group "kubevirt.io" in the namespace "a"', "GET", "/apis/kubevirt.io/v1/namespaces/a/virtualmachines/x")
        self.refused(eve, 403, 'nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope', "GET",
                     "/api/v1/nodes")
        self.refused(eve, 403, 'forbidden: User "eve" cannot get path "/metrics"', "GET", "/metrics")
        for open_to_all in ("/api", "/apis", "/version"):
            self.assertEqual(eve.call("GET", open_to_all)[0], 200)


@embedded_only("its own start, its own kinds of call")
class Embedded(People):
    """What Kubernetes leaves to controllers, or has no counterpart of."""

    def test_in_force_at_once(self):
        eve = self.person("eve2")
        b = binding("quick", "a", "ClusterRole", "test-guests", "eve2")
        for _ in range(30):
            self.give(b)
            self.assertEqual(eve.call("GET", vmis(ns="a"))[0], 200)
            self.api.ok("DELETE", place(b) + "/quick")
            self.assertEqual(eve.call("GET", vmis(ns="a"))[0], 403)

    def test_aggregated(self):
        self.give(binding("view-a", "a", "ClusterRole", "view", "vera"))
        self.give(binding("edit-a", "a", "ClusterRole", "edit", "edda"))
        self.give(binding("admin-a", "a", "ClusterRole", "admin", "anna"))
        vera, edda, anna = self.person("vera"), self.person("edda"), self.person("anna")
        for who, verb, what, allowed in (
                (vera, "get", "virtualmachines.kubevirt.io -n a", True), (vera, "create", "virtualmachines.kubevirt.io -n a", False),
                (vera, "get", "secrets -n a", False), (edda, "create", "virtualmachines.kubevirt.io -n a", True),
                (edda, "deletecollection", "virtualmachines.kubevirt.io -n a", False), (edda, "get", "secrets -n a", True),
                (edda, "update", "virtualmachines.subresources.kubevirt.io/start x -n a", True),
                (edda, "update", "virtualmachines.subresources.kubevirt.io/migrate x -n a", False),
                (edda, "create", "rolebindings.rbac.authorization.k8s.io -n a", False),
                (edda, "create", "virtualmachineinstancemigrations.kubevirt.io -n a", False),
                (anna, "create", "rolebindings.rbac.authorization.k8s.io -n a", True),
                (anna, "deletecollection", "virtualmachines.kubevirt.io -n a", True),
                (anna, "create", "virtualmachines.kubevirt.io -n b", False), (anna, "list", "nodes -A", False),
                (vera, "list", "network-attachment-definitions.k8s.cni.cncf.io -n a", False)):
            self.assertEqual(self.may(who, verb, what), allowed, f"{verb} {what}")
        # what a user adds counts at once, and is shown
        more = role("test-nads", "", ("get list", "k8s.cni.cncf.io", "network-attachment-definitions"))
        more["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        self.give(more)
        for who in (vera, edda, anna):
            self.assertTrue(self.may(who, "list", "network-attachment-definitions.k8s.cni.cncf.io -n a"))
        for name in ("view", "edit", "admin"):
            rules = self.api.ok("GET", f"{RBAC}/clusterroles/{name}")["rules"]
            self.assertIn(more["rules"][0], rules)
        self.api.ok("DELETE", f"{RBAC}/clusterroles/test-nads")
        self.assertFalse(self.may(vera, "list", "network-attachment-definitions.k8s.cni.cncf.io -n a"))
        self.assertNotIn(more["rules"][0], self.api.ok("GET", f"{RBAC}/clusterroles/admin")["rules"])
        # an admin of a namespace gives their role on
        anna.ok("POST", f"{RBAC}/namespaces/a/rolebindings", binding("for-berta", "a", "ClusterRole", "admin", "berta"))
        self.assertTrue(self.may(self.person("berta"), "get", "secrets -n a"))

    def test_built_in_roles_are_kept(self):
        names = {r["metadata"]["name"] for r in self.api.ok("GET", f"{RBAC}/clusterroles")["items"]}
        self.assertTrue({"cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user", "kubevirt.io:admin",
                         "kubevirt.io:edit", "kubevirt.io:view", "kubevirt.io:migrate", "kubevirt.io:default"} <= names, names)
        extra = {"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]}
        self.api.ok("PATCH", f"{RBAC}/clusterroles/kubevirt.io:view", {"rules": [extra]}, MERGE_PATCH)
        self.api.ok("PATCH", f"{RBAC}/clusterroles/system:monitoring", {"rules": [], "metadata": {
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}}, MERGE_PATCH)
        self.api.ok("DELETE", f"{RBAC}/clusterrolebindings/system:discovery")
        self.api.ok("DELETE", f"{RBAC}/clusterroles/edit")
        self.assertEqual(self.person("eve").call("GET", "/api")[0], 403)
        self.lab.stop()
        self.lab.start()
        type(self).api = self.lab.admin
        type(self).persons = {}
        rules = self.api.ok("GET", f"{RBAC}/clusterroles/kubevirt.io:view")["rules"]
        self.assertIn(extra, rules)
        self.assertTrue(any("virtualmachines" in r["resources"] for r in rules), rules)
        self.assertEqual(self.api.ok("GET", f"{RBAC}/clusterroles/system:monitoring")["rules"], [])
        self.assertTrue(self.api.ok("GET", f"{RBAC}/clusterroles/edit")["rules"])
        self.assertEqual(self.person("eve").call("GET", "/api")[0], 200)

    def test_kubectl(self):
        k = self.lab.kubectl
        k("create", "role", "k-reader", "--verb=get,list", "--resource=pods,virtualmachines.kubevirt.io", "-n", "a")
        k("create", "rolebinding", "k-reads", "--role=k-reader", "--user=kim", "--serviceaccount=a:bot", "-n", "a")
        k("create", "clusterrole", "k-paths", "--verb=get", "--non-resource-url=/metrics")
        k("create", "clusterrolebinding", "k-paths", "--clusterrole=k-paths", "--group=kims")
        self.assertIn("Role/k-reader", k("get", "rolebindings", "-n", "a", "-o", "wide"))
        self.assertIn("CREATED AT", k("get", "clusterroles"))
        self.assertIn("a/bot", k("get", "rolebindings", "k-reads", "-n", "a", "-o", "wide"))
        self.assertIn("virtualmachines.kubevirt.io", k("describe", "role", "k-reader", "-n", "a"))
        k("auth", "reconcile", "-f", "-", stdin=json.dumps(role("k-reader", "a", ("get", "", "secrets"))))
        self.person("kim", "kims")
        cert, key = os.path.join(self.lab.dir, f"person-{len(self.persons) - 1}"), None
        cert, key = cert + ".crt", cert + ".key"
        config = os.path.join(self.lab.dir, "kim.kubeconfig")
        admin, self.lab.kubeconfig = self.lab.kubeconfig, config
        self.addCleanup(setattr, self.lab, "kubeconfig", admin)
        k("config", "set-cluster", "f", f"--server=https://127.0.0.1:{self.lab.port}", f"--certificate-authority={self.lab.ca[0]}")
        k("config", "set-credentials", "kim", f"--client-certificate={cert}", f"--client-key={key}")
        k("config", "set-context", "f", "--cluster=f", "--user=kim")
        k("config", "use-context", "f")
        self.assertEqual(k("auth", "can-i", "get", "pods", "-n", "a").strip(), "yes")
        self.assertIn("yes", k("auth", "can-i", "get", "/metrics"))
        for verb, what, ns in (("delete", "pods", "a"), ("get", "pods", "b"), ("create", "clusterrolebindings", "a")):
            k("auth", "can-i", verb, what, "-n", ns, code=1)
        self.assertIn("kims", k("auth", "whoami"))
        listed = k("auth", "can-i", "--list", "-n", "a")
        self.assertIn("virtualmachines.kubevirt.io", listed)
        self.assertIn("secrets", listed)
        self.assertIn("/metrics", listed)
        k("get", "pods", "-n", "a")
        k("get", "vms", "-n", "a")
        self.assertIn('User "kim" cannot list resource "pods" in API group "" in the namespace "b"', k("get", "pods", "-n", "b", code=1))

    def test_guests_of_the_namespace(self):
        self.give(binding("edit-a", "a", "ClusterRole", "edit", "edda"))
        edda = self.person("edda")
        vm = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "w", "namespace": "a"}, "spec": {
            "runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}}}
        for ns in ("a", "b"):
            self.api.ok("POST", f"/apis/kubevirt.io/v1/namespaces/{ns}/virtualmachines", {**vm, "metadata": {"name": "w"}})
        start = "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachines/w/start"
        self.assertEqual(edda.call("PUT", start.format("a"), {})[0], 202)
        self.refused(edda, 403, 'virtualmachines.subresources.kubevirt.io "w" is forbidden: User "edda" cannot update resource '
                     '"virtualmachines/start"', "PUT", start.format("b"), {})
        # at the node the guest's rights count, not the node's: there is no such node, which only those learn who may ask
        proxy = "/api/v1/nodes/n9/proxy/v1/console/{}/w"
        self.assertEqual(edda.call("GET", proxy.format("a"))[0], 404)
        self.assertEqual(edda.call("POST", proxy.format("a"), "x")[0], 404)
        for path in (proxy.format("b"), proxy.format("a") + "/x", "/api/v1/nodes/n9/proxy/v1/paths", "/api/v1/nodes/n9/proxy/metrics",
                     "/api/v1/nodes/n9/proxy/v1/records/0-1", "/api/v1/nodes/n9/proxy/v1/console/a%2F..%2Fb/w"):
            self.assertIn(edda.call("GET", path)[0], (400, 403), path)

    def test_system_masters(self):
        root = self.person("root", "system:masters")
        self.assertEqual(root.call("GET", "/api/v1/secrets")[0], 200)

    def test_an_unknown_role_does_no_harm(self):
        self.give(binding("dangling", "a", "Role", "comes-later", "dan"))
        dan = self.person("dan")
        self.assertFalse(self.may(dan, "get", "pods -n a"))
        self.give(role("comes-later", "a", ("get", "", "pods")))
        self.assertTrue(self.may(dan, "get", "pods -n a"))


class Viewers(unittest.TestCase):
    @embedded_only("there a viewer is a binding of deploy/kubernetes")
    def test_a_viewer_with_a_namespace(self):
        lab = Lab()
        self.addCleanup(lab.close)
        viewer = lab.client_with(lab.certificate("viewer", "/O=ferry:viewers/CN=vic"))
        path = "/api/v1/namespaces/default/configmaps"
        self.assertEqual(viewer.call("POST", path, {"metadata": {"name": "c"}})[0], 403)
        b = binding("vic", "default", "ClusterRole", "edit", "vic")
        lab.admin.ok("POST", place(b), b)
        self.assertEqual(viewer.call("POST", path, {"metadata": {"name": "c"}})[0], 201)
        self.assertEqual(viewer.call("GET", "/api/v1/namespaces/kube-system/configmaps")[0], 200)
        self.assertEqual(viewer.call("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "c"}})[0], 403)


if __name__ == "__main__":
    unittest.main(verbosity=2)
