"""Who may do what (docs/contracts/identity.md): rows for both engines.

A row is (who, verbs, object, allowed); `allowed` is True, False, or the one engine that allows it:
on Kubernetes there are other leases and secrets, and the scheduler binds. An object is
RESOURCE[.GROUP][/SUBRESOURCE] [NAME] [-n NAMESPACE].
"""

VMI = "virtualmachineinstances.kubevirt.io"
VMIM = "virtualmachineinstancemigrations.kubevirt.io"
POLICY = "migrationpolicies.migrations.kubevirt.io"
KUBEVIRT = "kubevirts.kubevirt.io"

TABLE = [
    ("controller", "get list watch create patch delete", VMI, True),
    ("controller", "get list watch create patch delete", VMIM, True),
    ("controller", "patch", VMIM + "/status", True),
    ("controller", "get list watch create patch delete", "pods", True),
    ("controller", "get list watch patch", "nodes", True),
    ("controller", "patch", "nodes/status", True),
    ("controller", "create patch", "events", True),
    ("controller", "get list watch", POLICY, True),
    ("controller", "get list watch", KUBEVIRT, True),
    ("controller", "get list watch", "namespaces", True),
    ("controller", "get list watch", "persistentvolumeclaims", True),
    ("controller", "get list watch", "resourcequotas", True),
    ("controller", "get patch", "leases.coordination.k8s.io ferry-controller -n kube-system", True),
    ("controller", "create", "leases.coordination.k8s.io -n kube-system", True),
    ("controller", "get patch delete", "leases.coordination.k8s.io kube-scheduler -n kube-system", "embedded"),
    ("controller", "get create patch", "leases.coordination.k8s.io -n default", "embedded"),
    ("controller", "get list watch", "secrets", False),
    ("controller", "create patch delete", POLICY, False),
    ("controller", "create delete", "nodes", False),
    ("controller", "create", "pods/exec", False),
    ("controller", "patch", "pods/status", "embedded"),
    ("controller", "create", "pods/binding", "embedded"),
    ("controller", "create", "clusterrolebindings.rbac.authorization.k8s.io", False),
    ("controller-pod", "create patch", VMIM, True),
    ("controller-pod", "get patch", "leases.coordination.k8s.io ferry-controller -n kube-system", True),
    ("controller-pod", "get", "secrets", False),
    ("node", "get list watch patch", VMI, True),
    ("node", "create delete", VMI, False),
    ("node", "get list watch", VMIM, True),
    ("node", "create patch delete", VMIM, False),
    ("node", "patch", VMIM + "/status", False),
    ("node", "get list watch", KUBEVIRT, True),
    ("node", "patch", KUBEVIRT, False),
    ("node", "get", POLICY, "embedded"),
    ("node", "get list watch", "nodes", True),
    ("node", "create patch", "events", True),
    ("node", "patch", "leases.coordination.k8s.io a -n kube-node-lease", True),
    ("node", "patch", "leases.coordination.k8s.io b -n kube-node-lease", False),
    ("node", "patch delete", "leases.coordination.k8s.io a -n kube-system", False),
    ("node", "patch", "nodes a", True),
    ("node", "delete", "pods", True),
    ("node", "patch", "pods", False),
    ("node", "get list", "secrets -n kube-system", False),
    ("node", "get list watch", "configmaps", False),
    ("handler-pod", "get list watch patch", VMI, True),
    ("handler-pod", "get list watch", "pods", True),
    ("handler-pod", "get patch", "nodes", True),
    ("handler-pod", "create patch", "events", True),
    ("handler-pod", "create delete", VMI, False),
    ("handler-pod", "create patch delete", VMIM, False),
    ("handler-pod", "create delete patch", "pods", False),
    ("handler-pod", "get", "secrets", False),
    ("viewer", "get list watch", VMI, True),
    ("viewer", "get list watch", VMIM, True),
    ("viewer", "get list watch", POLICY, True),
    ("viewer", "get list watch", "pods", True),
    ("viewer", "get list watch", "nodes", True),
    ("viewer", "get list watch", "events", True),
    ("viewer", "create patch delete", VMI, False),
    ("viewer", "create patch delete", VMIM, False),
    ("viewer", "get list", "secrets", False),
    ("admin", "get list watch create update patch delete deletecollection", VMI, True),
    ("admin", "get list watch create update patch delete deletecollection", VMIM, True),
    ("admin", "create update patch delete", POLICY, True),
    ("admin", "create update patch delete", KUBEVIRT, True),
    ("admin", "get patch", "nodes", True),
    ("admin", "create", "pods/eviction", True),
    ("admin", "get", "secrets", "embedded"),
    ("relay", "get list watch", VMI, False),
    ("relay", "get", "nodes", False),
    ("viewer", "get list watch", "configmaps", "embedded"),
    ("viewer", "create", "pods/eviction", False),
    ("viewer", "create update patch delete deletecollection", POLICY, False),
    ("viewer", "create patch delete", "nodes", False),
    ("admin", "create delete", "namespaces", "embedded"),
    ("admin", "patch", VMIM + "/status", True),
    ("relay", "create patch delete", VMIM, False),
    ("nobody", "get list watch create patch delete", VMI, False),
    ("nobody", "get list", "secrets", False),
]


def parse(what):
    """(resource, group, subresource, name, namespace)"""
    what, _, ns = what.partition(" -n ")
    what, _, name = what.partition(" ")
    what, _, subresource = what.partition("/")
    resource, _, group = what.partition(".")
    return resource, group, subresource, name, ns or "default"


def rows(engine):
    """(who, verb, object, allowed) for one engine."""
    return [(who, verb, what, allowed if isinstance(allowed, bool) else allowed == engine)
            for who, verbs, what, allowed in TABLE for verb in verbs.split()]
