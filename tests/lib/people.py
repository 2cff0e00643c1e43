"""Persons, roles, bindings and what follows from them (people.json), for both engines."""
import json
import os

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_KINDS = ("nodes", "namespaces", "persistentvolumes", "clusterroles", "clusterrolebindings")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "people.json"), encoding="utf-8") as f:
    TABLE = json.load(f)


def place(obj):
    """Where the collection of a role or binding is."""
    ns = obj["metadata"].get("namespace")
    return RBAC + (f"/namespaces/{ns}/" if ns else "/") + obj["kind"].lower() + "s"


def complete(obj):
    """With what every manifest says."""
    full = {"apiVersion": "rbac.authorization.k8s.io/v1", **obj}
    if "roleRef" in full:
        full["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", **full["roleRef"]}
    return full


def parse(what):
    """(resource, group, subresource, name, namespace); RESOURCE[.GROUP][/SUBRESOURCE] [NAME] -n NAMESPACE or -A"""
    what, _, ns = what.replace(" -A", " -n ").partition(" -n ")
    what, _, name = what.strip().partition(" ")
    what, _, subresource = what.partition("/")
    resource, _, group = what.partition(".")
    return resource, group, subresource, name, ns.strip()


def attributes(verb, what):
    """Of a SubjectAccessReview."""
    if what.startswith("path "):
        return {"nonResourceAttributes": {"path": what.split()[1], "verb": verb}}
    resource, group, subresource, name, ns = parse(what)
    return {"resourceAttributes": {"verb": verb, "resource": resource, "group": group, "subresource": subresource, "name": name,
                                   "namespace": ns}}


def rows():
    """(who, verb, what, allowed)"""
    return [(who, verb, what, allowed) for who, verbs, what, allowed in TABLE["rows"] for verb in verbs.split()]
