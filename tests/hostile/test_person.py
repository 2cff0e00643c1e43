#!/usr/bin/env python3
"""Somebody who is admin of one namespace, and tries everything to get out of it (docs/security.md has a row for each attack)."""
import contextlib
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
sys.path.insert(0, os.path.join(HERE, "../api"))
import lab  # noqa: E402
import scenario  # noqa: E402
from lab import APPLY, JSON_PATCH, KUBEVIRT, MERGE_PATCH  # noqa: E402

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SUB = "/apis/subresources.kubevirt.io/v1"
NAD = "/apis/k8s.cni.cncf.io/v1"
KINDS = {  # of the other namespace: path -> a name that is there
    "/api/v1/namespaces/theirs/secrets": "password", "/api/v1/namespaces/theirs/configmaps": "settings",
    "/api/v1/namespaces/theirs/persistentvolumeclaims": "disk", "/api/v1/namespaces/theirs/pods": "launcher",
    "/api/v1/namespaces/theirs/events": "none", "/api/v1/namespaces/theirs/resourcequotas": "none",
    KUBEVIRT + "/namespaces/theirs/virtualmachines": "vm", KUBEVIRT + "/namespaces/theirs/virtualmachineinstances": "vm",
    KUBEVIRT + "/namespaces/theirs/virtualmachineinstancemigrations": "none", NAD + "/namespaces/theirs/network-attachment-definitions": "lan",
    RBAC + "/namespaces/theirs/roles": "none", RBAC + "/namespaces/theirs/rolebindings": "none",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases": "none", "/api/v1/namespaces/kube-system/secrets": "none",
    "/api/v1/namespaces/kube-system/configmaps": "none"}
SECRET = "c2VjcmV0LTcxZmE="


def guest(name, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
            "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, **spec}}


def machine(name, template=None, **spec):
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": {
        "runStrategy": "Halted", "template": {**(template or {}), "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, **spec}}}}


def binding(name, kind, to, user, cluster=False):
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding" if cluster else "RoleBinding",
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to},
            "subjects": [{"kind": "User", "name": user}]}


class Site:
    def __init__(self, bin_dir):
        lab.PROGRAM = os.path.join(os.path.abspath(bin_dir), "ferry-apiserver")
        self.lab = lab.EmbeddedLab()
        self.admin = self.lab.admin
        for ns in ("hers", "theirs"):
            self.admin.ok("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        core = "/api/v1/namespaces/theirs"
        self.admin.ok("POST", f"{core}/secrets", {"metadata": {"name": "password"}, "data": {"p": SECRET}})
        self.admin.ok("POST", f"{core}/configmaps", {"metadata": {"name": "settings"}, "data": {"p": "x"}})
        self.admin.ok("POST", f"{core}/persistentvolumeclaims", {"metadata": {"name": "disk"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        self.admin.ok("POST", f"{NAD}/namespaces/theirs/network-attachment-definitions", {
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "lan"}, "spec": {"config": "{}"}})
        self.admin.ok("POST", f"{core}/pods", lab.pod("launcher"))
        self.admin.ok("POST", f"{KUBEVIRT}/namespaces/theirs/virtualmachines", machine("vm"))
        self.admin.ok("POST", f"{KUBEVIRT}/namespaces/theirs/virtualmachineinstances", guest("vm"))
        self.admin.ok("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        self.admin.ok("POST", f"{RBAC}/namespaces/hers/rolebindings", binding("mallory", "ClusterRole", "admin", "mallory"))
        self.mallory = self.lab.client_with(self.lab.certificate("mallory", "/O=team/CN=mallory"))

    def refuses(self, method, path, body=None, kind="application/json", **headers):
        status, answer = self.mallory.call(method, path, body, kind, **headers)
        assert status == 403, f"{method} {path}: {status} {answer}"
        assert SECRET not in json.dumps(answer)
        return answer["message"]

    def everything(self):
        """All objects, to see whether something became of an attack."""
        return self.mallory, [o for p in KINDS for o in self.admin.ok("GET", p)["items"]]


@contextlib.contextmanager
def site(bin_dir):
    s = Site(bin_dir)
    try:
        yield s
    except BaseException:
        print(s.lab.log_text()[-3000:])
        raise
    finally:
        s.lab.close()


def test_another_namespace(bin_dir):
    with site(bin_dir) as s:
        before = s.everything()[1]
        for path, name in KINDS.items():
            for method, where, body, kind in (
                    ("GET", f"/{name}", None, None), ("GET", "", None, None), ("GET", "?watch=1&timeoutSeconds=1", None, None),
                    ("GET", f"?fieldSelector=metadata.name={name}", None, None), ("POST", "", {"metadata": {"name": "x"}}, None),
                    ("PUT", f"/{name}", {"metadata": {"name": name}}, None), ("PATCH", f"/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH),
                    ("PATCH", f"/{name}", [{"op": "add", "path": "/metadata/labels", "value": {}}], JSON_PATCH),
                    ("PATCH", f"/new?fieldManager=m&force=true", {"apiVersion": "v1", "kind": "X", "metadata": {"name": "new"}}, APPLY),
                    ("DELETE", f"/{name}", None, None), ("DELETE", "", None, None)):
                text = s.refuses(method, path + where, body, kind or "application/json")
                assert 'User "mallory" cannot' in text, text
        assert s.everything()[1] == before


def test_all_namespaces_and_the_cluster(bin_dir):
    with site(bin_dir) as s:
        for path in ("/api/v1/secrets", "/api/v1/pods", "/api/v1/configmaps", f"{KUBEVIRT}/virtualmachines", f"{KUBEVIRT}/virtualmachineinstances",
                     "/api/v1/events", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/persistentvolumes", f"{RBAC}/clusterroles",
                     f"{RBAC}/clusterrolebindings", "/apis/storage.k8s.io/v1/storageclasses", "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"):
            s.refuses("GET", path)
            s.refuses("GET", path + "?watch=1&timeoutSeconds=1")
            s.refuses("GET", path + "?fieldSelector=metadata.namespace=hers")
        for path in ("/api/v1/nodes", "/api/v1/namespaces", "/api/v1/persistentvolumes", "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"):
            s.refuses("POST", path, {"metadata": {"name": "x"}})
        for path in ("/api/v1/nodes/n1", "/api/v1/namespaces/theirs", "/api/v1/namespaces/hers"):
            s.refuses("DELETE", path)
            s.refuses("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
        s.refuses("PATCH", "/api/v1/nodes/n1/status", {"status": {}}, MERGE_PATCH)
        # what is set for the whole site, though it lies in a namespace
        s.refuses("POST", f"{KUBEVIRT}/namespaces/hers/kubevirts", {"metadata": {"name": "kv"}, "spec": {}})
        s.refuses("POST", "/api/v1/namespaces/hers/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1000"}}})
        s.refuses("POST", f"{NAD}/namespaces/hers/network-attachment-definitions", {"metadata": {"name": "n"}, "spec": {"config": "{}"}})
        s.refuses("GET", "/metrics")
        s.refuses("GET", "/ferry/v1/backup")


def test_more_rights(bin_dir):
    with site(bin_dir) as s:
        hers = f"{RBAC}/namespaces/hers"
        s.refuses("POST", f"{RBAC}/clusterrolebindings", binding("up", "ClusterRole", "cluster-admin", "mallory", True))
        s.refuses("POST", f"{RBAC}/namespaces/theirs/rolebindings", binding("up", "ClusterRole", "admin", "mallory"))
        for name in ("cluster-admin", "system:monitoring", "kubevirt.io:migrate"):
            text = s.refuses("POST", f"{hers}/rolebindings", binding("up", "ClusterRole", name, "mallory"))
            assert "not currently held" in text, text
        for rule in ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
                     {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}, {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
                     {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]},
                     {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["bind"]},
                     {"apiGroups": ["kubevirt.io"], "resources": ["kubevirts"], "verbs": ["create"]}):
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "up"}, "rules": [rule]}
            assert "not currently held" in s.refuses("POST", f"{hers}/roles", role)
            s.refuses("PATCH", f"{hers}/roles/up?fieldManager=m", role, APPLY)
        own = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "own"},
               "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
        s.mallory.ok("POST", f"{hers}/roles", own)
        s.refuses("PATCH", f"{hers}/roles/own", [{"op": "replace", "path": "/rules/0/verbs", "value": ["*"]}], JSON_PATCH)
        s.refuses("PATCH", f"{hers}/roles/own", {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}, MERGE_PATCH)
        for name in ("edit", "admin", "kubevirt.io:admin"):
            s.refuses("PATCH", f"{RBAC}/clusterroles/{name}", {"rules": []}, MERGE_PATCH)
            s.refuses("DELETE", f"{RBAC}/clusterroles/{name}")
        s.refuses("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "x", "labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
                                                   "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}]})
        # her own binding points where it pointed
        status, answer = s.mallory.call("PATCH", f"{hers}/rolebindings/mallory", {"roleRef": {"name": "cluster-admin"}}, MERGE_PATCH)
        assert status == 422 and "cannot change roleRef" in answer["message"], answer
        for header in ("Impersonate-User", "Impersonate-Group", "Impersonate-Uid"):
            s.refuses("GET", "/api/v1/namespaces/hers/secrets", None, **{header: "system:masters"})
        s.refuses("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "admin", "resourceAttributes": {"verb": "get"}}})


def test_through_guests(bin_dir):
    with site(bin_dir) as s:
        vmis, vms = f"{KUBEVIRT}/namespaces/hers/virtualmachineinstances", f"{KUBEVIRT}/namespaces/hers/virtualmachines"
        disk = [{"name": "d", "hostDisk": {"path": "/var/lib/ferry/api.db", "type": "Disk"}}]
        net = [{"name": "n", "multus": {"networkName": "theirs/lan"}}]
        for spec in ({"volumes": disk}, {"networks": net}):
            s.refuses("POST", vmis, guest("g", **spec))
            s.refuses("POST", vms, machine("g", **spec))
            s.refuses("PATCH", f"{vms}/g?fieldManager=m", machine("g", **spec), APPLY)
        s.mallory.ok("POST", vms, machine("g", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]))
        for spec in ({"volumes": disk}, {"networks": net}):
            s.refuses("PATCH", f"{vms}/g", {"spec": {"template": {"spec": spec}}}, MERGE_PATCH)
        # the words of Ferry's programs to each other
        for marks in ({"annotations": {"ferry.io/addresses": '{"n": ["10.0.0.1/24"]}'}}, {"labels": {"kubevirt.io/nodeName": "n1"}},
                      {"labels": {"kubevirt.io/migrationTargetNodeName": "n1"}}):
            s.refuses("POST", vmis, {**guest("m"), "metadata": {"name": "m", **marks}})
            s.refuses("POST", vms, machine("m", {"metadata": marks}))
        # the status is not hers: neither new, nor changed, nor applied
        lie = {"phase": "Running", "nodeName": "n1", "runtimeUser": 1879048192, "migrationState": {"targetNode": "n1", "sourcePod": "launcher"}}
        made = s.mallory.ok("POST", vmis, {**guest("liar"), "status": lie})
        assert not made.get("status"), made
        s.admin.ok("PATCH", f"{vmis}/liar", {"status": {"phase": "Scheduling"}}, MERGE_PATCH)
        for method, body, kind in (("PATCH", {"status": lie}, MERGE_PATCH), ("PATCH", {**guest("liar"), "status": lie}, APPLY),
                                   ("PATCH", [{"op": "add", "path": "/status/nodeName", "value": "n1"}], JSON_PATCH),
                                   ("PUT", {**s.mallory.ok("GET", f"{vmis}/liar"), "status": lie}, "application/json")):
            answer = s.mallory.ok(method, f"{vmis}/liar" + ("?fieldManager=m" if kind == APPLY else ""), body, kind)
            assert answer["status"] == {"phase": "Scheduling"}, answer
        s.refuses("PATCH", f"{vms}/g/status", {"status": {"ready": True}}, MERGE_PATCH)


def test_pods(bin_dir):
    with site(bin_dir) as s:
        pods = "/api/v1/namespaces/hers/pods"
        pod = lab.pod("p")
        pod["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/"}}]
        assert "ferry-controller alone" in s.refuses("POST", pods, pod)
        s.refuses("PATCH", f"{pods}/p?fieldManager=m", pod, APPLY)
        s.admin.ok("POST", pods, lab.pod("launcher"))
        s.refuses("PATCH", f"{pods}/launcher", {"metadata": {"labels": {"kubevirt.io/created-by": "x"}}}, MERGE_PATCH)
        s.refuses("PUT", f"{pods}/launcher", s.mallory.ok("GET", f"{pods}/launcher"))
        s.refuses("POST", f"{pods}/launcher/binding", lab.binding("launcher", "n1"))
        s.refuses("PATCH", f"{pods}/launcher/status", {"status": {"phase": "Running"}}, MERGE_PATCH)
        s.refuses("POST", "/api/v1/namespaces/theirs/pods/launcher/eviction", {"kind": "Eviction", "metadata": {"name": "launcher"}})
        s.refuses("POST", "/api/v1/namespaces/theirs/pods/launcher/binding", lab.binding("launcher", "n1"))
        assert s.mallory.call("POST", f"{pods}/launcher/eviction", {"kind": "Eviction", "metadata": {"name": "launcher"}})[0] == 201


def test_consoles_and_power(bin_dir):
    with site(bin_dir) as s:
        proxy = "/api/v1/nodes/n1/proxy"
        for path in ("/v1/console/theirs/vm", "/v1/console/theirs/vm?follow=true", "/v1/console/hers/../theirs/vm", "/v1/console/hers%2F..%2Ftheirs/vm",
                     "/v1/console/hers/x/../../theirs/vm", "/v1/console//theirs/vm", "/v1/console/theirs%2Fvm", "/v1/records/0123", "/v1/checks/0123",
                     "/v1/paths", "/metrics", "/healthz", "/v1", "/", "/v2/console/hers/vm"):
            status, answer = s.mallory.call("GET", proxy + path)
            assert status in (400, 403, 404) and (status != 404 or "find the requested" in answer["message"]), f"{path}: {status} {answer}"
        for path in ("/v1/console/theirs/vm", "/v1/pause/theirs/vm", "/v1/unpause/theirs/vm", "/v1/plan/theirs/vm", "/v1/plan/hers/vm"):
            s.refuses("POST", proxy + path, "x")
        # of her own she gets as far as the node, which says nowhere where its API is
        status, answer = s.mallory.call("GET", proxy + "/v1/console/hers/vm")
        assert status == 503, answer
        for what in ("virtualmachines/vm/start", "virtualmachines/vm/stop", "virtualmachines/vm/restart", "virtualmachines/vm/migrate",
                     "virtualmachineinstances/vm/pause", "virtualmachineinstances/vm/unpause", "virtualmachineinstances/vm/evacuate/cancel"):
            s.refuses("PUT", f"{SUB}/namespaces/theirs/{what}", {})
        s.refuses("PUT", f"{SUB}/namespaces/hers/virtualmachines/vm/migrate", {})
        s.refuses("PUT", f"{SUB}/namespaces/hers/virtualmachineinstances/vm/evacuate/cancel", {})
        s.refuses("POST", f"{KUBEVIRT}/namespaces/hers/virtualmachineinstancemigrations", lab.migration("m", "vm"))


def test_tokens(bin_dir):
    with site(bin_dir) as s:
        lab.run(lab.PROGRAM, "token", "--data", s.lab.data, "--user", "root", "--group", "ferry:admins")
        for path in ("/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/kube-system/secrets?fieldSelector=type=ferry.io/token"):
            s.refuses("GET", path)
        stored = s.admin.ok("GET", "/api/v1/namespaces/kube-system/secrets")["items"]
        assert len(stored) == 1
        # a token of her own making, where she may make Secrets
        forged = {**stored[0], "metadata": {"name": "ferry-token.0123456789"}}
        s.refuses("POST", "/api/v1/namespaces/kube-system/secrets", forged)
        s.mallory.ok("POST", "/api/v1/namespaces/hers/secrets", forged)
        status = s.lab.anonymous().call("GET", "/api/v1/nodes", Authorization="Bearer ferry.0123456789." + "0" * 40)[0]
        assert status == 401, status


def test_rights_that_end(bin_dir):
    with site(bin_dir) as s:
        path = f"{RBAC}/namespaces/hers/rolebindings/mallory"
        watch = s.mallory.watch("/api/v1/namespaces/hers/secrets", timeoutSeconds=60)
        s.mallory.ok("POST", "/api/v1/namespaces/hers/secrets", {"metadata": {"name": "seen"}})
        assert watch.next()[1]["metadata"]["name"] == "seen"
        s.admin.ok("DELETE", path)
        s.refuses("GET", "/api/v1/namespaces/hers/secrets")
        s.admin.ok("POST", "/api/v1/namespaces/hers/secrets", {"metadata": {"name": "unseen"}})
        left = watch.next()
        assert left is None, left
        watch.close()


def test_a_token_that_ends(bin_dir):
    with site(bin_dir) as s:
        token = lab.subprocess.run([lab.PROGRAM, "token", "--data", s.lab.data, "--user", "mallory"], capture_output=True, text=True,
                                   check=True).stdout.strip()
        client, path = s.lab.anonymous(), "/api/v1/namespaces/hers/secrets"
        with contextlib.closing(client.connect()) as c:
            c.request("GET", path + "?watch=1&timeoutSeconds=60", headers={"Authorization": f"Bearer {token}"})
            answer = c.getresponse()
            assert answer.status == 200
            s.admin.ok("DELETE", f"/api/v1/namespaces/kube-system/secrets/ferry-token.{token.split('.')[1]}")
            s.admin.ok("POST", path, {"metadata": {"name": "unseen"}})
            assert answer.read() == b""
        assert client.call("GET", path, Authorization=f"Bearer {token}")[0] == 401


def test_a_relay_and_strangers(bin_dir):
    with site(bin_dir) as s:
        everybody = {**binding("all", "ClusterRole", "cluster-admin", "x", True),
                     "subjects": [{"kind": "Group", "name": g} for g in ("system:authenticated", "team")] + [
                         {"kind": "User", "name": n} for n in ("ferry-relay:n1", "system:node:n1")]}
        s.admin.ok("POST", f"{RBAC}/clusterrolebindings", everybody)
        for n, subject in enumerate(("/O=team/CN=ferry-relay:n1", "/O=team/CN=system:node:n1", "/O=team/CN=system:ferry-apiserver")):
            client = s.lab.client_with(s.lab.certificate(f"x{n}", subject))
            for path in ("/api/v1/nodes", "/api/v1/namespaces/theirs/secrets", "/api"):
                status, answer = client.call("GET", path)
                assert status == 403, f"{subject} {path}: {status} {answer}"
        # a stranger gets what is bound to strangers, to read, and nothing else
        stranger, pods = s.lab.anonymous(), "/api/v1/namespaces/theirs/pods"
        assert stranger.call("GET", "/api/v1/nodes")[0] == 401
        public = {**binding("public", "ClusterRole", "edit", "x"), "subjects": [{"kind": "Group", "name": "system:unauthenticated"}]}
        s.admin.ok("POST", f"{RBAC}/namespaces/theirs/rolebindings", public)
        assert stranger.call("GET", pods)[0] == 200
        for method, path in (("POST", pods), ("DELETE", f"{pods}/launcher"), ("GET", "/api/v1/pods"), ("GET", "/api/v1/nodes/n1/proxy/v1/paths"),
                             ("GET", "/api"), ("GET", "/metrics"), ("GET", "/ferry/v1/backup"), ("PUT", f"{SUB}/namespaces/theirs/virtualmachines/vm/stop")):
            assert stranger.call(method, path, {})[0] == 401, path
        assert stranger.call("GET", pods, None, Authorization="Bearer ferry.0123456789." + "0" * 40)[0] == 401


if __name__ == "__main__":
    scenario.main(globals())
