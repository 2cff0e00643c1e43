"""Who may do what: the table of docs/contracts/identity.md, asked of a real server by real calls.

A call that is allowed fails for another reason (there is no such object, there is nothing in the body), so that a row changes
nothing. tests/kubernetes/test_roles.py asks the same of the roles in deploy/kubernetes/; the rows are in tests/lib/roles.py.
"""
import contextlib
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import ON_KUBERNETES, Lab  # noqa: E402
import roles  # noqa: E402  pylint: disable=wrong-import-order

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
CLUSTER = ("nodes", "migrationpolicies", "namespaces", "clusterrolebindings")


def path(verb, what):
    resource, group, subresource, name, ns = roles.parse(what)
    method, named, query, body = CALLS[verb]
    version = "v1alpha1" if resource == "migrationpolicies" else "v1"
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    where = base + ("" if resource in CLUSTER else f"/namespaces/{ns}") + f"/{resource}"
    if named or subresource:
        where += "/" + (name or "none-such")
    return method, where + (f"/{subresource}" if subresource else "") + query, body


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.who = {"controller": cls.lab.controller(), "node": cls.lab.node("a"), "nobody": cls.lab.anonymous()}
        for who, subject in (("viewer", "/O=ferry:viewers/CN=somebody"), ("admin", "/O=ferry:admins/CN=ferry-admin"),
                             ("relay", "/CN=ferry-relay:a")):
            cls.who[who] = cls.lab.client_with(cls.lab.certificate(who, subject))

    def ask(self, who, verb, what):
        """(allowed, answer)"""
        method, where, body = path(verb, what)
        with contextlib.closing(self.who[who].connect()) as c:
            c.request(method, where, body, {
                "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"})
            answer = c.getresponse()
            text = b"" if verb == "watch" and answer.status == 200 else answer.read()
        self.assertLess(answer.status, 500, text)
        # what is not served at all is refused, too
        return answer.status not in (401, 403) and b"could not find the requested resource" not in text, f"{answer.status} {text[:200]}"

    def ask_whether(self, who, verb, what):
        """The same as a question: kubectl auth can-i."""
        resource, group, subresource, name, ns = roles.parse(what)
        status, answer = self.who[who].call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
                "namespace": ns, "verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name}}})
        if status in (401, 403):  # a stranger may not even ask
            return False, answer
        self.assertEqual(status, 201, answer)
        return answer["status"]["allowed"], answer

    def test_calls(self):
        self.check_table(self.ask)

    def test_questions(self):
        self.check_table(self.ask_whether)

    def test_who_am_i(self):
        for who, name, group in (("admin", "ferry-admin", "ferry:admins"), ("viewer", "somebody", "ferry:viewers"),
                                 ("node", "system:node:a", "system:nodes"), ("relay", "ferry-relay:a", None)):
            answer = self.who[who].ok("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
                "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, code=201)
            user = answer["status"]["userInfo"]
            self.assertEqual(user["username"], name)
            self.assertEqual(set(user["groups"]), {group, "system:authenticated"} - {None})

    def test_wrong_questions(self):
        ask = self.who["viewer"].call
        reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        both = {"spec": {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}}}
        self.assertEqual(ask("POST", reviews, both)[0], 422)
        self.assertEqual(ask("POST", reviews, {"spec": {}})[0], 422)
        self.assertEqual(ask("POST", reviews, {"kind": "SelfSubjectReview"})[0], 400)
        self.assertIn(ask("GET", reviews)[0], (403, 405))

    def test_nobody_else(self):
        """Who asks to be somebody else does not stay who he is: refused, or done as that one."""
        status, answer = self.who["admin"].call("GET", "/api/v1/namespaces/default/secrets", None, **{"Impersonate-User": "somebody"})
        self.assertEqual(status, 403, answer)

    def check_table(self, ask):
        engine = "kubernetes" if ON_KUBERNETES else "embedded"
        asked, wrong = 0, []
        for who, verb, what, allowed in roles.rows(engine):
            if who not in self.who:
                continue
            got, answer = ask(who, verb, what)
            asked += 1
            if got != allowed:
                wrong.append(f"{who} {verb} {what}: {answer}, should be {'allowed' if allowed else 'refused'}")
        self.assertFalse(wrong, "\n".join(wrong))
        self.assertGreater(asked, 150)


if __name__ == "__main__":
    unittest.main(verbosity=2)
