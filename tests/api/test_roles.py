"""Who may do what: the table of docs/contracts.md, asked of a real server by real calls.

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

    def test_table(self):
        engine = "kubernetes" if ON_KUBERNETES else "embedded"
        asked, wrong = 0, []
        for who, verb, what, allowed in roles.rows(engine):
            if who not in self.who:
                continue
            got, answer = self.ask(who, verb, what)
            asked += 1
            if got != allowed:
                wrong.append(f"{who} {verb} {what}: {answer}, should be {'allowed' if allowed else 'refused'}")
        self.assertFalse(wrong, "\n".join(wrong))
        self.assertGreater(asked, 150)


if __name__ == "__main__":
    unittest.main(verbosity=2)
