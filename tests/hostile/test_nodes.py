#!/usr/bin/env python3
"""A node that was taken over, against a real API server and real relays: it tries to outlive its removal, to say of itself what is
others' to say, to take addresses, and to drown the site in events and status. test_nodes.py BIN [K/N]: one class of them."""
import importlib.util
import json
import os
import re
import signal
import ssl
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
TESTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
BIN = os.path.abspath(sys.argv[1])
os.environ["FERRY_BUILD"] = os.path.dirname(BIN)
sys.path.insert(0, os.path.join(TESTS, "lib"))
from waiting import wait_for  # noqa: E402


def load(name):
    """Both labs are called lab.py."""
    spec = importlib.util.spec_from_file_location(f"{name}_lab", os.path.join(TESTS, name, "lab.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api_lab, relay_lab = load("api"), load("relay")
MERGE, JSON = api_lab.MERGE_PATCH, "application/json"
NODES, EVENTS = "/api/v1/nodes", "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
DENIED = "/api/v1/namespaces/kube-system/configmaps/ferry-denied."


def on_the_move(source, target):
    """The status of a VMI whose source may write as much as a node ever may."""
    return {"phase": "Running", "nodeName": source,
            "migrationState": {"migrationUid": "m-1", "sourceNode": source, "targetNode": target}}


def ready(message):
    return {"conditions": [{"type": "Ready", "status": "True", "message": message}]}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = api_lab.Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.api = cls.lab.admin

    def refused(self, code, words, client, *call):
        status, answer = client.call(*call)
        self.assertEqual(status, code, answer)
        self.assertIn(words, json.dumps(answer))
        return answer

    def token(self, *args):
        return api_lab.run(api_lab.PROGRAM, "token", "--data", self.lab.data, *args).strip()

    def at(self, name):
        return os.path.join(self.lab.dir, name)


def generation_of(pem_path):
    text = api_lab.run("openssl", "x509", "-noout", "-subject", "-in", pem_path)
    found = re.search(r"ferry-generation:([0-9a-f-]+)", text)
    return found[1] if found else None


class Removal(Case):
    """Whatever was signed for it, and whenever: after its removal nothing is good but what a new token gave."""

    def request(self, name):
        if not os.path.exists(self.at(f"{name}.csr")):
            api_lab.run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        self.at(f"{name}.key"), "-out", self.at(f"{name}.csr"), "-subj", "/CN=x")
        with open(self.at(f"{name}.csr"), encoding="utf-8") as f:
            return f.read()

    def ask(self, name, path, client, **headers):
        csr = self.request(name)
        return client.call("POST", path, {"node": name, "nodeRequest": csr, "relayRequest": csr}, **headers)

    def client(self, name, answer, which):
        path = self.at(f"{name}-{which}.crt")
        with open(path, "w", encoding="utf-8") as f:
            f.write(answer["node"])
        return api_lab.Client(self.lab.port, self.lab.ca[0], path, self.at(f"{name}.key")), generation_of(path)

    def join(self, name, which="joined"):
        code, answer = self.ask(name, "/ferry/v1/join", self.lab.anonymous(),
                                Authorization=f"Bearer {self.token('--node', name)}")
        self.assertEqual(code, 200, answer)
        return self.client(name, answer, which)

    def register(self, name, client):
        client.ok("POST", NODES, {"metadata": {"name": name}})

    def remove(self, name):
        self.api.ok("DELETE", f"{NODES}/{name}")

    def test_renewals_in_flight(self):
        """Many of them around its DELETE: none gives a certificate that outlives it, in whatever order they come."""
        client, _ = self.join("flight")
        self.register("flight", client)
        answers, gone = [], threading.Event()

        def renew():
            while not (gone.is_set() and answers):
                code, answer = self.ask("flight", "/ferry/v1/renew", client)
                answers.append((code, answer))
                if code != 200:
                    return
        threads = [threading.Thread(target=renew) for _ in range(8)]
        for t in threads:
            t.start()
        wait_for("some renewals", lambda: len(answers) > 8)
        self.remove("flight")
        gone.set()
        for t in threads:
            t.join()
        got = [a for code, a in answers if code == 200]
        self.assertGreater(len(got), 8)
        for i, answer in enumerate([got[0], *got[-12:]]):
            self.refused(401, "was removed", self.client("flight", answer, f"renewed-{i}")[0], "GET", NODES)
        self.refused(401, "was removed", client, "GET", NODES)

    def test_joins_in_flight(self):
        """Good are the certificates of those joins alone that came after it."""
        client, _ = self.join("late")
        self.register("late", client)
        tokens = [self.token("--node", "late") for _ in range(12)]
        answers = []
        self.request("late")

        def go(token):
            answers.append(self.ask("late", "/ferry/v1/join", self.lab.anonymous(), Authorization=f"Bearer {token}"))
        threads = [threading.Thread(target=go, args=(t,)) for t in tokens]
        for t in threads[:6]:
            t.start()
        self.remove("late")
        for t in threads[6:]:
            t.start()
        for t in threads:
            t.join()
        good = self.api.ok("GET", DENIED + "late")["data"]["generation"]
        self.assertRegex(good, "^[0-9a-f-]{36}$")
        again = 0
        for i, (code, answer) in enumerate(answers):
            if code == 401:  # it was told at once
                continue
            self.assertEqual(code, 200, answer)
            its, generation = self.client("late", answer, f"join-{i}")
            self.assertEqual(its.call("GET", NODES)[0], 200 if generation == good else 401)
            again += generation == good
        self.assertGreaterEqual(again, 6)
        self.refused(401, "was removed", client, "GET", NODES)

    def test_signed_after_the_removal(self):
        """A certificate of the same CA, younger than the removal: what a join or a renewal in flight had."""
        node = self.lab.node("young")
        self.register("young", node)
        self.remove("young")
        later = self.lab.node("young")
        # As of now, without the minutes that are given to clocks: the youngest that there can be.
        pair = self.lab.certificate("youngest", "/O=system:nodes/CN=system:node:young", start=time.strftime("%Y%m%d%H%M%SZ", time.gmtime()))
        for what in (node, later, self.lab.client_with(pair)):
            self.refused(401, "was removed", what, "GET", NODES)
            self.refused(401, "was removed", what, "POST", NODES, {"metadata": {"name": "young"}})
        # Renewing asks for nothing but the certificate.
        out = self.at("node-young")
        client = api_lab.Client(self.lab.port, self.lab.ca[0], f"{out}/pki/node.crt", f"{out}/pki/node.key")
        self.assertIn(self.ask("young", "/ferry/v1/renew", client)[0], (401, 403))

    def test_there_and_back(self):
        first, generation = self.join("back", "first")
        self.assertIsNone(generation)
        self.register("back", first)
        self.remove("back")
        second, generation = self.join("back", "second")
        self.assertEqual(second.call("GET", NODES)[0], 200)
        self.refused(401, "was removed", first, "GET", NODES)
        code, answer = self.ask("back", "/ferry/v1/renew", second)
        self.assertEqual(code, 200, answer)
        renewed, same = self.client("back", answer, "renewed")
        self.assertEqual(same, generation)
        self.assertEqual(renewed.call("GET", NODES)[0], 200)
        self.lab.stop(signal.SIGKILL)
        self.lab.start(listen=f"127.0.0.1:{self.lab.port}")
        type(self).api = self.lab.admin
        self.assertEqual([c.call("GET", NODES)[0] for c in (first, second, renewed)], [401, 200, 200])
        # and out again
        self.register("back", second)
        self.remove("back")
        third, generation = self.join("back", "third")
        self.assertNotIn(generation, (None, same))
        self.assertEqual([c.call("GET", NODES)[0] for c in (first, second, renewed, third)], [401, 401, 401, 200])
        listed = {n["node"]: n for n in third.ok("GET", "/ferry/v1/denied")["nodes"]}
        self.assertEqual(listed["back"], {"node": "back", "generation": generation})

    def test_removed_by_an_older_version(self):
        """Its record knows a time only: nodes that have come back since stay, and the next join closes the gap."""
        out = [self.lab.certificate("old", "/O=system:nodes/CN=system:node:older", start="20200101000000Z"),
               self.lab.certificate("new", "/O=system:nodes/CN=system:node:older", start="20250101000000Z")]
        old, new = (self.lab.client_with(pair) for pair in out)
        self.api.ok("POST", api_lab.configmaps("", "kube-system"), {
            "metadata": {"name": "ferry-denied.older"}, "data": {"node": "older", "removed": "2024-06-01T00:00:00Z"}})
        self.assertEqual([c.call("GET", NODES)[0] for c in (old, new)], [401, 200])
        listed = {n["node"]: n for n in new.ok("GET", "/ferry/v1/denied")["nodes"]}
        self.assertEqual(listed["older"], {"node": "older", "before": 1717200000})
        joined, generation = self.join("older")
        self.assertIsNotNone(generation)
        self.assertEqual([c.call("GET", NODES)[0] for c in (old, new, joined)], [401, 401, 200])

    def test_with_a_token(self):
        """An identity of a node that is a token and no certificate."""
        token = self.token("--user", "system:node:tok", "--group", "system:nodes")
        node = self.lab.node("tok")
        self.register("tok", node)
        bearer = {"Authorization": f"Bearer {token}"}
        anonymous = self.lab.anonymous()
        self.assertEqual(anonymous.call("GET", NODES, **bearer)[0], 200)
        self.remove("tok")
        self.assertEqual(anonymous.call("GET", NODES, **bearer)[0], 401)

    def test_its_own_record(self):
        node, _ = self.join("self")
        self.register("self", node)
        for method, body in (("DELETE", None), ("PATCH", {"data": {"generation": "x"}})):
            self.refused(403, "cannot", node, method, DENIED + "young", body, MERGE)
        self.refused(403, "cannot", node, "POST", api_lab.configmaps("", "kube-system"), {"metadata": {"name": "ferry-denied.other"}})


class Words(Case):
    """What it says of itself, whose events it writes, which addresses it takes."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node, cls.other = cls.lab.node("n1"), cls.lab.node("n2")
        for name, client in (("n1", cls.node), ("n2", cls.other)):
            client.ok("POST", NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})

    def patch(self, change, sub=""):
        return "PATCH", f"{NODES}/n1{sub}", change, MERGE

    def labels(self, **kw):
        return self.patch({"metadata": {"labels": {k.replace("__", "/").replace("_", "."): v for k, v in kw.items()}}})

    def test_labels(self):
        zone = {"topology.kubernetes.io/zone": "vault", "node-role.kubernetes.io/secret": "", "team": "red"}
        self.api.ok("PATCH", f"{NODES}/n1", {"metadata": {"labels": zone}}, MERGE)
        for sub in ("", "/status"):
            for change in ({"topology.kubernetes.io/zone": "other"}, {"topology.kubernetes.io/zone": None}, {"team": None},
                           {"node-role.kubernetes.io/secret": None}, {"node-role.kubernetes.io/control-plane": ""},
                           {"node-restriction.kubernetes.io/secret": "yes"}, {"anything": "x"}):
                self.refused(403, "may not", self.node, *self.patch({"metadata": {"labels": change}}, sub))
        self.refused(422, "not a value", self.node, *self.patch({"metadata": {"labels": {"kubernetes.io/hostname": "n2"}}}))
        self.refused(422, "not a value", self.node, *self.patch({"metadata": {"labels": {"machine-type.node.kubevirt.io/mine": "true"}}}))
        now = self.api.ok("GET", f"{NODES}/n1")
        # a replacement that leaves them out is a removal
        bare = {**now, "metadata": {**now["metadata"], "labels": {"kubernetes.io/hostname": "n1"}}}
        self.refused(403, "may not remove", self.node, "PUT", f"{NODES}/n1", bare)
        self.node.ok(*self.patch({"metadata": {"labels": {"cpu-model.node.kubevirt.io/Haswell": "true"}}}))
        self.node.ok(*self.patch({"metadata": {"labels": {"cpu-model.node.kubevirt.io/Haswell": None}}}))
        self.assertEqual(self.api.ok("GET", f"{NODES}/n1")["metadata"]["labels"], {**zone, "kubernetes.io/hostname": "n1"})

    def test_made_with_labels(self):
        late = self.lab.node("n3")
        self.refused(403, "may not set", late, "POST", NODES, {"metadata": {"name": "n3", "labels": {"node-role.kubernetes.io/x": ""}}})

    def test_capacity(self):
        for field in ("capacity", "allocatable"):
            for name, amount in (("memory", "1e30"), ("memory", "65Ti"), ("memory", "-1"), ("memory", "lots"), ("cpu", "100k"),
                                 ("pods", "1M"), ("example.com/gpu", "1P")):
                self.refused(422, "is invalid", self.node, *self.patch({"status": {field: {name: amount}}}, "/status"))
            self.refused(422, "Too many", self.node, *self.patch({"status": {field: {f"x.io/{i}": 1 for i in range(65)}}}, "/status"))
        self.node.ok(*self.patch({"status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}}}, "/status"))

    def test_taints_and_cordon(self):
        spec = {"unschedulable": True, "taints": [{"key": "drained", "effect": "NoSchedule"}]}
        self.api.ok("PATCH", f"{NODES}/n1", {"spec": spec}, MERGE)
        for change in ({"unschedulable": None}, {"unschedulable": False}, {"taints": None}, {"taints": []}):
            self.refused(403, "may not change the spec", self.node, *self.patch({"spec": change}))
            self.node.call(*self.patch({"spec": change}, "/status"))  # the spec is not taken there at all
        self.refused(403, "cannot delete", self.node, "DELETE", f"{NODES}/n1")
        now = self.api.ok("GET", f"{NODES}/n1")["spec"]
        self.assertEqual((now["unschedulable"], now["taints"]), (True, spec["taints"]))

    def test_where_moves_go(self):
        note = "ferry.io/migration-address"
        self.refused(422, "not a value", self.node, *self.patch({"metadata": {"annotations": {note: "10.0.0.1; reboot"}}}))
        self.refused(403, "may not set", self.node, *self.patch({"metadata": {"annotations": {"ferry.io/else": "x"}}}))
        self.refused(422, "numeric", self.node, *self.patch({"status": {"addresses": [{"type": "InternalIP", "address": "db"}]}}, "/status"))

    def claim(self, address, holder="n1"):
        return "POST", LEASES, {"metadata": {"name": f"ferry-address-{address}", "labels": {"ferry.io/address": ""}},
                                "spec": {"holderIdentity": holder}}

    def test_addresses(self):
        self.refused(403, "none of the site's network", self.node, *self.claim("10.1.1.5"))
        for name, net in (("moves", "10.1.1.0/24"), ("guests", "10.2.2.0/24")):
            config = {"type": "macvlan", "master": "eth0", "ipam": {"type": "whereabouts", "range": net, "gateway": net[:-4] + "1"}}
            self.api.ok("POST", "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions",
                        {"metadata": {"name": name}, "spec": {"config": json.dumps(config)}})
        self.api.ok("POST", f"{api_lab.KUBEVIRT}/namespaces/default/kubevirts", {
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
            "spec": {"configuration": {"migrations": {"network": "moves"}}}})
        for address in ("10.2.2.5", "10.1.1.1", "10.1.2.5", "192.0.2.1", "fd00--1-v6"):  # a guest's, the gateway, strangers'
            self.refused(403, "none of the site's network", self.node, *self.claim(address))
        self.refused(403, "cannot create", self.node, *self.claim("10.1.1.9", "n2"))
        self.refused(403, "cannot create", self.node, *self.claim("10.1.1.9", "vmi:default/x/eth0"))
        self.node.ok(*self.claim("10.1.1.20"))
        self.refused(403, "has 10.1.1.20 of the same range", self.node, *self.claim("10.1.1.40"))
        self.other.ok(*self.claim("10.1.1.40", "n2"))  # the range is not used up
        big = self.claim("10.1.1.41", "n2")
        big[2]["metadata"]["annotations"] = {"x": "y" * 5000}
        self.refused(413, "at most", self.other, *big)

    def event(self, host="n1", **more):
        return {"metadata": {"generateName": "e-"}, "reason": "x", "source": {"host": host}, "reportingInstance": host, **more}

    def test_whose_events(self):
        self.refused(403, "must say so", self.node, "POST", EVENTS, self.event("n2"))
        self.refused(403, "must say so", self.node, "POST", EVENTS, {"metadata": {"generateName": "e-"}, "reason": "x"})
        its = self.other.ok("POST", EVENTS, self.event("n2"))["metadata"]["name"]
        ours = self.lab.controller().ok("POST", EVENTS, self.event("", reason="y"))["metadata"]["name"]
        for name in (its, ours):
            self.refused(403, "is not node", self.node, "PATCH", f"{EVENTS}/{name}", {"message": "all is well"}, MERGE)
        mine = self.node.ok("POST", EVENTS, self.event())["metadata"]["name"]
        self.node.ok("PATCH", f"{EVENTS}/{mine}", {"count": 2}, MERGE)
        self.refused(403, "must say so", self.node, "PATCH", f"{EVENTS}/{mine}", {"source": {"host": "n2"}}, MERGE)
        self.refused(403, "cannot delete", self.node, "DELETE", f"{EVENTS}/{its}")

    def test_large_ones(self):
        self.refused(413, "TooLarge", self.node, "POST", EVENTS, self.event(message="x" * (1 << 20)))
        self.refused(413, "at most", self.node, "POST", EVENTS, self.event(message="x" * 9000))
        self.api.ok("POST", api_lab.vmis(), {**api_lab.vmi("big"), "status": on_the_move("n1", "n2")})
        self.api.ok("POST", api_lab.pods(), api_lab.pod("big"))
        self.api.ok("POST", api_lab.pods("big") + "/binding", api_lab.binding("big", "n1"))
        for size in (1 << 20, 200 << 10):
            for path, change in ((api_lab.vmis("big"), {"status": ready("x" * size)}),
                                 (api_lab.vmis("big"), {"metadata": {"annotations": {"ferry.io/progress": "x" * size}}}),
                                 (api_lab.pods("big") + "/status", {"status": {"message": "x" * size}})):
                self.refused(413, "TooLarge", self.node, "PATCH", path, change, MERGE)
        # a larger field that is an admin's does not stand in the way
        self.api.ok("PATCH", api_lab.vmis("big"), {"metadata": {"annotations": {"people": "x" * 100000}}}, MERGE)
        self.node.ok("PATCH", api_lab.vmis("big"), {"status": ready("fine")}, MERGE)
        self.refused(413, "at most", self.node, "PATCH", f"{NODES}/n1", {"metadata": {"annotations": {
            "kubevirt.io/heartbeat": "x" * (600 << 10)}}}, MERGE)


class Others(Case):
    """A guest on another node, which nobody moves: every call that might read, stop, move or starve it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node, cls.other = cls.lab.node("bad"), cls.lab.node("good")
        for name, client in (("bad", cls.node), ("good", cls.other)):
            client.ok("POST", NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
            client.ok("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", {"metadata": {"name": name}})
        vmi = cls.api.ok("POST", api_lab.vmis(), {**api_lab.vmi("guest"), "status": {"phase": "Running", "nodeName": "good"}})
        cls.pods = "/api/v1/namespaces/default/pods"
        cls.owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "guest", "uid": vmi["metadata"]["uid"],
                     "controller": True}
        cls.api.ok("POST", cls.pods, cls.pod("launcher", "good"))
        cls.api.ok("POST", cls.pods, cls.pod("mine", "bad"))
        cls.api.ok("POST", LEASES, {"metadata": {"name": "ferry-controller"}, "spec": {"holderIdentity": "c1"}})

    @classmethod
    def pod(cls, name, node=None):
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "ownerReferences": [cls.owner], "labels": {"kubevirt.io/created-by": cls.owner["uid"]}},
                "spec": {**({"nodeName": node} if node else {}), "containers": [{"name": "compute", "image": "x"}]}}

    def test_every_call(self):
        before = [self.api.ok("GET", path) for path in (api_lab.vmis("guest"), f"{self.pods}/launcher", f"{self.pods}/mine", f"{NODES}/good")]
        sub = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/guest"
        migration = {"metadata": {"name": "m"}, "spec": {"vmiName": "guest"}}
        lease = {"spec": {"holderIdentity": "bad"}}
        for what, *call in (
                ("its console, by the node's API", "GET", f"{NODES}/good/proxy/v1/console/default/guest"),
                ("checks of a move, by the node's API", "POST", f"{NODES}/good/proxy/v1/plan/default/guest", {}),
                ("pausing it, by the node's API", "PUT", f"{NODES}/good/proxy/v1/pause/default/guest", {}),
                ("its console", "GET", f"{sub}/console"), ("pausing it", "PUT", f"{sub}/pause", {}),
                ("letting it go on", "PUT", f"{sub}/unpause", {}), ("evacuating it", "PUT", f"{sub}/evacuate/cancel", {}),
                ("evicting it", "POST", f"{self.pods}/launcher/eviction", {"metadata": {"name": "launcher"}}),
                ("evicting its own", "POST", f"{self.pods}/mine/eviction", {"metadata": {"name": "mine"}}),
                ("deleting its pod", "DELETE", f"{self.pods}/launcher"), ("deleting all pods", "DELETE", self.pods),
                ("deleting it", "DELETE", api_lab.vmis("guest")), ("deleting all", "DELETE", api_lab.vmis()),
                ("saying that its pod is over", "PATCH", f"{self.pods}/launcher/status", {"status": {"phase": "Failed"}}, MERGE),
                ("saying that it is over", "PATCH", api_lab.vmis("guest"), {"status": {"phase": "Failed"}}, MERGE),
                ("another pod of it, here", "POST", self.pods, self.pod("second", "bad")),
                ("another pod of it, anywhere", "POST", self.pods, self.pod("third")),
                ("binding a pod", "POST", f"{self.pods}/launcher/binding", {"target": {"name": "bad"}}),
                ("moving it here", "POST", "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations", migration),
                ("a pod of its own for another guest", "PATCH", f"{self.pods}/mine", {"metadata": {"labels": {"kubevirt.io/migrationJobUID": "m"}}}, MERGE),
                ("closing the other node", "PATCH", f"{NODES}/good", {"spec": {"unschedulable": True}}, MERGE),
                ("the other node's readiness", "PATCH", f"{NODES}/good/status", ready("no"), MERGE),
                ("removing the other node", "DELETE", f"{NODES}/good"),
                ("another node", "POST", NODES, {"metadata": {"name": "third"}}),
                ("the other node's sign of life", "PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/good", lease, MERGE),
                ("the controller's lease", "PATCH", f"{LEASES}/ferry-controller", lease, MERGE),
                ("taking the controller's lease away", "DELETE", f"{LEASES}/ferry-controller"),
                ("the site's settings", "POST", "/apis/kubevirt.io/v1/namespaces/default/kubevirts", {"metadata": {"name": "kubevirt"}}),
                ("a policy", "POST", "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies", {"metadata": {"name": "p"}, "spec": {"selectors": {}}}),
                ("a quota", "POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}),
                ("a volume", "POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/"}}}),
                ("a claim", "POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": {}}),
                ("a network", "POST", "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions", {"metadata": {"name": "n"}, "spec": {}}),
                ("a right", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                    "metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
                ("a backup of everything", "GET", "/ferry/v1/backup"), ("all secrets", "GET", "/api/v1/secrets")):
            with self.subTest(what):
                status, answer = self.node.call(*call)
                self.assertEqual(status, 403, answer)
        after = [self.api.ok("GET", path) for path in (api_lab.vmis("guest"), f"{self.pods}/launcher", f"{self.pods}/mine", f"{NODES}/good")]
        self.assertEqual(before, after)

    def test_papers_of_another_node(self):
        """Its own certificate renews its own alone."""
        api_lab.run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.at("x.key"),
                    "-out", self.at("x.csr"), "-subj", "/CN=system:node:good/O=system:nodes")
        with open(self.at("x.csr"), encoding="utf-8") as f:
            csr = f.read()
        for asked in ("good", "bad"):
            answer = self.node.ok("POST", "/ferry/v1/renew", {"node": asked, "nodeRequest": csr, "relayRequest": csr})
            for part, name in (("node", "system:node:bad"), ("relay", "ferry-relay:bad")):
                with open(self.at("x.crt"), "w", encoding="utf-8") as f:
                    f.write(answer[part])
                text = api_lab.run("openssl", "x509", "-noout", "-text", "-in", self.at("x.crt"))
                self.assertIn(name, text)
                self.assertNotIn("good", text)


class Floods(Case):
    """As much as it can, as fast as it can; what others do, and what itself has to say, goes on."""

    def flood(self, client, seconds, method, path, body, kind=JSON, threads=4, tries=10000):
        """How many came through, how many were to wait, and what the server said to the last of these."""
        passed, waits, last, lock, wrong = [0], [0], [None], threading.Lock(), []
        left, end = [tries], time.monotonic() + seconds

        def run():
            c = client.connect()
            while time.monotonic() < end:
                with lock:
                    if left[0] == 0:
                        break
                    left[0] -= 1
                    n = left[0]
                c.request(method, path, body(n), {"Content-Type": kind})
                answer = c.getresponse()
                answer.read()
                with lock:
                    if answer.status == 429:
                        waits[0] += 1
                        last[0] = answer.headers["Retry-After"]
                    elif answer.status in (200, 201):
                        passed[0] += 1
                    else:
                        wrong.append(answer.status)
            c.close()
        all_ = [threading.Thread(target=run) for _ in range(threads)]
        begin = time.monotonic()
        for t in all_:
            t.start()
        for t in all_:
            t.join()
        self.assertFalse(wrong)
        return passed[0], waits[0], last[0], time.monotonic() - begin

    def member(self, name):
        client = self.lab.node(name)
        client.ok("POST", NODES, {"metadata": {"name": name}})
        return client

    def test_ten_thousand_events(self):
        node, other = self.member("loud"), self.member("calm")

        def event(n, who="loud"):
            return json.dumps({"metadata": {"name": f"{who}-{n}"}, "reason": "x", "message": "x" * 500, "source": {"host": who}})
        passed, waits, after, took = self.flood(node, 80, "POST", EVENTS, event)
        self.assertGreater(waits, 100)
        self.assertLessEqual(passed, 2000 + 5 * took + 1)
        self.assertGreaterEqual(int(after), 1)
        # its own signs of life, and others' events, have a budget of their own
        node.ok("PATCH", f"{NODES}/loud", {"metadata": {"annotations": {"kubevirt.io/heartbeat": "now"}}}, MERGE)
        for n in range(20):
            self.assertEqual(other.call("POST", EVENTS, event(n, "calm"))[0], 201)
        self.assertIn("a node writes too much", self.lab.log_text())

    def test_status_without_end(self):
        """160 MB in two seconds, as it once was: some 20 MB, and then as much as is sane."""
        node = self.member("heavy")
        self.api.ok("POST", api_lab.vmis(), {**api_lab.vmi("fat"), "status": on_the_move("heavy", "x")})
        size = 120 << 10
        passed, waits, _, took = self.flood(
            node, 20, "PATCH", api_lab.vmis("fat"), lambda n: json.dumps({"status": ready(f"{n}" + "x" * size)}), MERGE, tries=1400)
        self.assertGreater(waits, 100)
        self.assertLessEqual(passed * size, (16 << 20) + (2 << 20) * (took + 1))
        self.assertEqual(self.api.call("GET", api_lab.vmis("fat"))[0], 200)

    def test_a_drain_passes(self):
        """A hundred guests leave: what both handlers write then, without a pause in between."""
        node = self.member("honest")
        self.api.ok("POST", api_lab.vmis(), {**api_lab.vmi("guest"), "status": on_the_move("honest", "x")})

        def event(n):
            return json.dumps({"metadata": {"name": f"honest-{n}"}, "reason": "x", "message": "x" * 200, "source": {"host": "honest"}})
        _, waits, _, _ = self.flood(node, 100, "POST", EVENTS, event, tries=1000)
        self.assertEqual(waits, 0)
        _, waits, _, _ = self.flood(node, 100, "PATCH", api_lab.vmis("guest"), lambda n: json.dumps(
            {"metadata": {"annotations": {"ferry.io/progress": json.dumps({"n": n, "x": "y" * 1500})}}}), MERGE, tries=1500)
        self.assertEqual(waits, 0)


class Relays(unittest.TestCase):
    """The relay of a removed node, at the relays of the others."""

    @classmethod
    def setUpClass(cls):
        relay_lab.need_root()
        cls.lab = relay_lab.Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.a, cls.b = cls.lab.relay("a"), cls.lab.relay("b")
        cls.a.ready()
        cls.b.ready()

    def setUp(self):
        for r in (self.a, self.b):
            self.deny(r)

    def deny(self, relay, *nodes):
        self.assertEqual(relay.must("PUT", "/v1/denied", {"nodes": list(nodes)}), {"nodes": len(nodes)})

    def papers(self, node, generation):
        """As the API server signs them for a node that joined again."""
        at = self.lab.pki.path
        name = f"{node}-{generation}"
        run = relay_lab.run
        with open(at(f"{name}.ext"), "w", encoding="utf-8") as f:
            f.write(f"subjectAltName=URI:ferry://node/{node}\nextendedKeyUsage=clientAuth,serverAuth\n")
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at(f"{name}.key"),
            "-out", at(f"{name}.csr"), "-subj", f"/OU=ferry-generation:{generation}/CN=ferry-relay:{node}")
        run("openssl", "x509", "-req", "-in", at(f"{name}.csr"), "-CA", at("ca.crt"), "-CAkey", at("ca.key"), "-CAcreateserial",
            "-days", "5", "-extfile", at(f"{name}.ext"), "-out", at(f"{name}.crt"))
        return at(f"{name}.crt"), at(f"{name}.key")

    def let_in(self, move, papers):
        """At b, with these papers of a: its bytes come out at the hypervisor's socket."""
        with self.lab.dial_tls("a", relay_lab.ADDRESSES["b"][0], move.port_of[49152], *papers, tls="raw") as s:
            s.sendall(b"hello")
            far, _ = move.listeners[49152].accept()
            with far:
                far.settimeout(relay_lab.DEADLINE_S)
                self.assertEqual(relay_lab.read_exactly(far, 5), b"hello")

    def kept_out(self, move, papers):
        try:
            with self.lab.dial_tls("a", relay_lab.ADDRESSES["b"][0], move.port_of[49152], *papers, tls="raw") as s:
                s.sendall(b"hello")
                self.assertTrue(relay_lab.ended(s))
        except (ssl.SSLError, OSError):
            pass  # refused while it still shook hands
        self.assertTrue(move.nothing_arrives())

    @staticmethod
    def rest_of(sock):
        try:
            return relay_lab.read_all(sock)
        except ConnectionResetError:
            return b""

    def test_dialling(self):
        for denial, generation, let_in in (
                (None, None, True), ({"node": "c"}, None, True), ({"node": "a"}, None, False), ({"node": "a"}, "g1", False),
                ({"node": "a", "generation": "g1"}, "g1", True), ({"node": "a", "generation": "g1"}, "g2", False),
                ({"node": "a", "generation": "g1"}, None, False), ({"node": "a", "before": int(time.time()) + 60}, None, False),
                ({"node": "a", "before": 1700000000}, None, True)):
            with self.subTest(denial=denial, generation=generation):
                self.deny(self.b, *([denial] if denial else []))
                move = relay_lab.Move(self.lab, None, self.b, tls="raw")
                papers = self.papers("a", generation) if generation else self.lab.pki.good("a")
                (self.let_in if let_in else self.kept_out)(move, papers)
                self.b.must("DELETE", f"/v1/targets/{move.key}")
        # Not each time: of what comes again and again not everything is logged.
        self.b.wait_log("stream not opened", "the node of the certificate was removed from the site (node 'a')")

    def test_dialled(self):
        """Nor is a removed node's relay dialled into: the guest's memory would go there."""
        self.deny(self.a, {"node": "b"})
        move = relay_lab.Move(self.lab, self.a, self.b)
        near = self.lab.connect(move.file(49152))
        near.sendall(b"memory")
        self.assertTrue(relay_lab.ended(near))
        self.assertTrue(move.nothing_arrives())
        self.a.wait_log(f"key={move.key}", "was removed from the site")

    def test_open_streams_end(self):
        move = relay_lab.Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"before")
        self.assertEqual(relay_lab.read_exactly(far, 6), b"before")
        self.deny(self.b, {"node": "c"}, {"node": "a", "generation": "g9"})
        near.sendall(b"after")
        self.assertEqual(self.rest_of(far), b"")
        self.b.wait_log(f"key={move.key}", "was removed from the site")
        self.b.streams(0, key=move.key)

    def test_others_flow_on(self):
        move = relay_lab.Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"before")
        self.assertEqual(relay_lab.read_exactly(far, 6), b"before")
        self.deny(self.b, {"node": "c"}, {"node": "aa"}, {"node": "a", "before": 1000})
        near.sendall(b"after")
        self.assertEqual(relay_lab.read_exactly(far, 5), b"after")
        near.close()

    def test_after_a_handover(self):
        """A successor is told like the one before; a stream that came over with it ends, too."""
        move = relay_lab.Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"before")
        self.assertEqual(relay_lab.read_exactly(far, 6), b"before")
        pid = self.b.pid()
        os.kill(pid, signal.SIGUSR2)
        self.b.wait_log("upgraded: the successor has taken over")
        wait_for("the successor", lambda: self.b.pid() != pid)
        self.deny(self.b, {"node": "a"})
        self.assertEqual(self.rest_of(far), b"")
        self.b.streams(0, key=move.key)

    def test_across_a_handover(self):
        """A successor knows the list from its predecessor, before anybody tells it."""
        self.deny(self.b, {"node": "a", "generation": "g5"}, {"node": "c"})
        pid = self.b.pid()
        os.kill(pid, signal.SIGUSR2)
        wait_for("the successor", lambda: self.b.pid() != pid)
        move = relay_lab.Move(self.lab, None, self.b, tls="raw")
        self.kept_out(move, self.lab.pki.good("a"))
        self.let_in(move, self.papers("a", "g5"))

    def test_nonsense(self):
        for body in ({}, {"nodes": 1}, {"nodes": [{}]}, {"nodes": [{"node": "x" * 300}]}):
            status, answer = self.b.call("PUT", "/v1/denied", body)
            self.assertEqual(status, 400, answer)


if __name__ == "__main__":
    CLASSES = [Removal, Words, Others, Floods, Relays]
    part = int(sys.argv[2].split("/")[0]) if len(sys.argv) > 2 else 0
    names = [c.__name__ for c in (CLASSES[part - 1:part] if part else CLASSES)]
    unittest.main(verbosity=2, argv=[sys.argv[0], *names, *sys.argv[3:]])
