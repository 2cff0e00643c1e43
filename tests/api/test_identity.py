"""Who is let in, with what certificate, to do what."""
import os
import ssl
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import BUILD, KUBEVIRT, MERGE_PATCH, ON_KUBERNETES, PROGRAM, Client, Lab, binding, configmaps, embedded_only, migration, migrations, pod, pods, run, vmi, vmis, wait_for  # noqa: E402


class Identity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.admin = cls.lab.admin

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def refused(self, client, code, words, method="GET", path=pods(), body=None, kind="application/json"):
        status, answer = client.call(method, path, body, kind)
        self.assertEqual(status, code, answer)
        self.assertEqual((answer["kind"], answer["status"], answer["code"]), ("Status", "Failure", code))
        self.assertEqual(answer["reason"], {401: "Unauthorized", 403: "Forbidden"}[code])
        if not ON_KUBERNETES:  # which says it in other words
            self.assertIn(words, answer["message"])

    def unauthorized(self, pair, words):
        """Either TLS refuses the certificate or the API does."""
        try:
            self.refused(self.lab.client_with(pair), 401, words)
        except ssl.SSLError:
            pass

    def test_anonymous(self):
        nobody = self.lab.anonymous()
        for path in ("/healthz", "/readyz", "/livez"):
            self.assertEqual(nobody.raw("GET", path), (200, b"ok"))
        self.assertEqual(nobody.call("GET", "/version")[0], 200)
        for path in ("/api", "/apis", "/openapi/v3", pods(), vmis("x"), "/nope"):
            self.refused(nobody, 403 if ON_KUBERNETES else 401, "no client certificate", path=path)
        self.refused(nobody, 403 if ON_KUBERNETES else 401, "no client certificate", "POST", pods(), pod("x"))
        if not ON_KUBERNETES:
            self.assertIn("audit user=system:anonymous", self.lab.log_text())

    def test_bad_certificates(self):
        admin = "/O=ferry:admins/CN=ferry-admin"
        other_ca = self.lab.certificate("other-ca", "/CN=other", usage="ca", ca="self")
        self.unauthorized(self.lab.certificate("self", admin, ca="self"), "NOT trusted")
        self.unauthorized(self.lab.certificate("wrong-ca", admin, ca=other_ca), "NOT trusted")
        self.unauthorized(self.lab.certificate("server-only", admin, usage="serverAuth"), "purpose")
        self.unauthorized(self.lab.certificate("expired", admin, end="20210101000000Z"), "expired")
        self.unauthorized(self.lab.certificate("future", admin, start="20900101000000Z"), "not yet")
        # and the same subject, done right, is let in
        good = self.lab.client_with(self.lab.certificate("good", admin))
        self.assertEqual(good.call("GET", pods())[0], 200)

    def test_the_server_proves_itself(self):
        other_ca = self.lab.certificate("some-ca", "/CN=other", usage="ca", ca="self")
        with self.assertRaises(ssl.SSLError):
            Client(self.lab.port, other_ca[0]).raw("GET", "/healthz")

    def test_relay_and_viewer(self):
        relay = self.lab.client_with(self.lab.certificate("relay", "/CN=ferry-relay:n1", usage="clientAuth,serverAuth"))
        self.refused(relay, 403, "has no role")
        if not ON_KUBERNETES:  # which shows discovery to everybody it knows
            self.refused(relay, 403, "has no role", path="/api")
        viewer = self.lab.client_with(self.lab.certificate("viewer", "/O=ferry:viewers/CN=eve"))
        self.assertEqual(viewer.call("GET", pods())[0], 200)
        self.refused(viewer, 403, "cannot create", "POST", pods(), pod("x"))
        self.refused(viewer, 403, "cannot delete", "DELETE", "/api/v1/nodes/x")
        self.refused(viewer, 403, "cannot list", path="/api/v1/secrets")

    @embedded_only("what differs on Kubernetes, where others bind pods and keep nodes, is in tests/kubernetes/test_roles.py")
    def test_controller(self):
        controller = self.lab.controller()
        controller.ok("POST", vmis(), vmi("of-controller"))
        controller.ok("POST", migrations(), migration("of-controller", "of-controller", priority="system-critical"))
        controller.ok("POST", pods(), pod("of-controller"))
        controller.ok("POST", pods("of-controller") + "/binding", binding("of-controller", "n1"))
        self.refused(controller, 403, "cannot create", "POST", "/api/v1/namespaces", {"metadata": {"name": "x"}})
        self.refused(controller, 403, "cannot delete", "DELETE", "/api/v1/nodes/n1")

    @embedded_only("what differs on Kubernetes, where others bind pods and keep nodes, is in tests/kubernetes/test_roles.py")
    def test_node(self):
        n1, n2 = self.lab.node("n1"), self.lab.node("n2")
        node = {"metadata": {"name": "n1"}}
        self.refused(n2, 403, "cannot create", "POST", "/api/v1/nodes", node)
        n1.ok("POST", "/api/v1/nodes", node)
        n1.ok("PATCH", "/api/v1/nodes/n1/status", {"status": {"x": 1}}, MERGE_PATCH)
        self.refused(n2, 403, "cannot patch", "PATCH", "/api/v1/nodes/n1/status", {"status": {}}, MERGE_PATCH)
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        n1.ok("POST", leases, {"metadata": {"name": "n1"}})
        # of that name elsewhere it may be what a leader holds
        elsewhere = leases.replace("kube-node-lease", "kube-system")
        self.refused(n1, 403, "cannot create", "POST", elsewhere, {"metadata": {"name": "n1"}})
        self.refused(n1, 403, "cannot patch", "PATCH", elsewhere + "/n1", {"spec": {}}, MERGE_PATCH)
        # but it takes addresses there, for itself alone
        claim = {"metadata": {"name": "ferry-address-10.1.1.5", "labels": {"ferry.io/address": ""}}, "spec": {"holderIdentity": "n1"}}
        self.refused(n2, 403, "cannot create", "POST", elsewhere, claim)
        self.refused(n1, 403, "none of the site's network", "POST", elsewhere, claim)
        config = '{"type": "macvlan", "master": "eth0", "ipam": {"type": "host-local", "subnet": "10.1.1.0/24"}}'
        self.admin.ok("POST", "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions", {
            "metadata": {"name": "moves"}, "spec": {"config": config}})
        self.admin.ok("POST", f"{KUBEVIRT}/namespaces/default/kubevirts", {
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
            "spec": {"configuration": {"migrations": {"network": "moves"}}}})
        n1.ok("POST", elsewhere, claim)
        self.refused(n1, 403, "cannot create", "POST", elsewhere, {"metadata": {"name": "ferry-controller"}, "spec": {"holderIdentity": "n1"}})
        # what an administrator has asked of it stays, and nothing keeps it when it is to go
        n1.ok("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"kubevirt.io/schedulable": "true"}}}, MERGE_PATCH)
        self.admin.ok("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True}}, MERGE_PATCH)
        self.refused(n1, 403, "may not change the spec", "PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": None}}, MERGE_PATCH)
        self.refused(n1, 403, "may not change the finalizers", "PATCH", "/api/v1/nodes/n1", {"metadata": {"finalizers": ["a.b/c"]}},
                     MERGE_PATCH)
        self.refused(n2, 403, "cannot update", "PUT", leases + "/n1", {"metadata": {"name": "n1"}})

        self.admin.ok("POST", pods(), pod("of-n1"))
        self.refused(n1, 403, "its own node", "PATCH", pods("of-n1") + "/status", {"status": {}}, MERGE_PATCH)
        self.admin.ok("POST", pods("of-n1") + "/binding", binding("of-n1", "n1"))
        n1.ok("PATCH", pods("of-n1") + "/status", {"status": {"phase": "Running"}}, MERGE_PATCH)
        self.refused(n2, 403, "its own node", "PATCH", pods("of-n1") + "/status", {"status": {}}, MERGE_PATCH)
        self.refused(n2, 403, "its own node", "DELETE", pods("of-n1"))
        # a pod that is another VMI's, or nobody's any more, would be counted as such
        for path in (pods("of-n1"), pods("of-n1") + "/status"):
            self.assertEqual(n1.call("PATCH", path, {"metadata": {"labels": {"kubevirt.io": "virt-launcher"}}}, MERGE_PATCH)[0], 403)
        self.refused(n1, 403, "cannot patch", "PATCH", pods("of-n1"), {"metadata": {"ownerReferences": []}}, MERGE_PATCH)
        n1.ok("DELETE", pods("of-n1") + "?gracePeriodSeconds=0")

        self.admin.ok("POST", vmis(), vmi("of-n1"))
        change = {"status": {"phase": "Running"}}
        self.refused(n1, 403, "its own node", "PATCH", vmis("of-n1"), change, MERGE_PATCH)
        self.admin.ok("PATCH", vmis("of-n1"), {"status": {"nodeName": "n1"}}, MERGE_PATCH)
        n1.ok("PATCH", vmis("of-n1"), change, MERGE_PATCH)
        self.refused(n1, 403, "may not change the spec", "PATCH", vmis("of-n1"), {"spec": {"nodeSelector": {"a": "b"}}}, MERGE_PATCH)
        self.refused(n2, 403, "its own node", "PATCH", vmis("of-n1"), change, MERGE_PATCH)
        self.admin.ok("PATCH", vmis("of-n1"), {"status": {"migrationState": {"targetNode": "n2"}}}, MERGE_PATCH)
        n2.ok("PATCH", vmis("of-n1"), {"status": {"nodeName": "n2"}}, MERGE_PATCH)
        self.refused(n2, 403, "may not change status.evacuationNodeName: no node writes that", "PATCH", vmis("of-n1"),
                     {"status": {"evacuationNodeName": "n2"}}, MERGE_PATCH)
        # what it hangs on: an owner that is not there would have it collected
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "8a0ff1a4-0000-0000-0000-000000000000"}
        self.refused(n2, 403, "may not change the owners", "PATCH", vmis("of-n1"), {"metadata": {"ownerReferences": [owner]}}, MERGE_PATCH)
        self.refused(n2, 403, "may not change the finalizers", "PATCH", vmis("of-n1"), {"metadata": {"finalizers": ["x.y/z"]}}, MERGE_PATCH)
        self.refused(n1, 403, "cannot delete", "DELETE", vmis("of-n1"))
        self.refused(n1, 403, "cannot list", path="/api/v1/secrets")
        n1.ok("POST", "/api/v1/namespaces/default/events", {"metadata": {"generateName": "e-"}, "reason": "x", "source": {"host": "n1"}})

    @embedded_only("it is about files that this server makes")
    def test_files(self):
        """What the certificate commands leave behind, and who may read it."""
        self.lab.node("n9")
        base = os.path.join(self.lab.dir, "node-n9")
        modes = {name: oct(os.stat(os.path.join(base, name)).st_mode & 0o777) for name in (
            "pki", "pki/ca.crt", "pki/node.crt", "pki/node.key", "pki/relay.crt", "pki/relay.key", "node.kubeconfig")}
        self.assertEqual(modes, {"pki": "0o711", "pki/ca.crt": "0o644", "pki/node.crt": "0o644", "pki/node.key": "0o600",
                                 "pki/relay.crt": "0o644", "pki/relay.key": "0o600", "node.kubeconfig": "0o600"})
        self.assertEqual(oct(os.stat(self.lab.kubeconfig).st_mode & 0o777), "0o600")
        self.assertEqual(oct(os.stat(os.path.join(self.lab.data, "ca/ca.key")).st_mode & 0o777), "0o600")
        self.assertEqual(oct(os.stat(self.lab.data).st_mode & 0o777), "0o700")

    @embedded_only("renews certificates without a restart")
    def test_certificates_are_renewed(self):
        lab = Lab("--certificate-life", "9")
        self.addCleanup(lab.close)
        first = ssl.get_server_certificate(("127.0.0.1", lab.port))
        with open(lab.kubeconfig, encoding="utf-8") as f:
            kubeconfig = f.read()
        held = lab.admin.connect(60)  # a connection that was open before
        self.addCleanup(held.close)
        watch = lab.admin.watch(configmaps(), resourceVersion=lab.admin.ok("GET", configmaps())["metadata"]["resourceVersion"])
        self.addCleanup(watch.close)
        held.request("GET", "/healthz")
        self.assertEqual(held.getresponse().read(), b"ok")
        for _ in range(3):  # also the certificate that was renewed is renewed
            wait_for("another certificate", lambda: ssl.get_server_certificate(("127.0.0.1", lab.port)) != first, 60)
            first = ssl.get_server_certificate(("127.0.0.1", lab.port))
        held.request("GET", "/healthz")
        self.assertEqual(held.getresponse().read(), b"ok")
        with open(lab.kubeconfig, encoding="utf-8") as f:
            self.assertNotEqual(f.read(), kubeconfig)
        # the first admin certificate is over by now, the one of the file is good
        admin = lab.client_of(lab.kubeconfig)
        admin.ok("POST", configmaps(), {"metadata": {"name": "later"}})
        self.assertEqual(watch.next()[1]["metadata"]["name"], "later")
        self.assertEqual(lab.process.poll(), None)

    @embedded_only("renews certificates without a restart")
    def test_controller_is_renewed(self):
        """The controller's kubeconfig beside the admin's gets new certificates, and the controller that runs uses them."""
        lab = Lab("--certificate-life", "9")
        self.addCleanup(lab.close)
        config = os.path.join(lab.data, "controller.kubeconfig")
        run(PROGRAM, "pki", "controller", "--data", lab.data, "--out", config, "--server", f"https://127.0.0.1:{lab.port}")

        def text():
            with open(config, encoding="utf-8") as f:
                return f.read()

        def restart():
            lab.stop()
            lab.start(f"127.0.0.1:{lab.port}")

        def beat():
            status, lease = lab.client_of(lab.kubeconfig).call("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ferry-controller")
            return lease["spec"].get("renewTime") if status == 200 else None
        month = text()
        restart()
        self.assertNotEqual(text(), month)
        self.assertIn(f"https://127.0.0.1:{lab.port}", text())
        with open(os.path.join(lab.dir, "controller.log"), "w", encoding="utf-8") as log:
            controller = subprocess.Popen([os.path.join(BUILD, "src/programs/ferry-controller"), "--kubeconfig", config, "--embedded"],
                                          stderr=log)
        self.addCleanup(controller.wait)
        self.addCleanup(controller.kill)
        wait_for("the controller to lead", beat)
        for _ in range(2):  # the certificate that it began with is over then
            last = text()
            wait_for("another certificate", lambda seen=last: text() != seen)
        restart()  # and no connection is left that was made with it
        before = beat()
        wait_for("the controller to go on", lambda: beat() != before)

    @embedded_only("Kubernetes' audit log is not turned on")
    def test_audit(self):
        self.admin.ok("POST", configmaps(), {"metadata": {"name": "audited"}, "data": {"secret": "do-not-log"}})
        self.admin.ok("GET", configmaps("audited"))
        text = self.lab.log_text()
        line = [x for x in text.splitlines() if "name=audited" in x]
        self.assertEqual(len(line), 1, line)
        for word in ("user=ferry-admin", "verb=create", "resource=configmaps", "namespace=default", "code=201"):
            self.assertIn(word, line[0])
        self.assertNotIn("do-not-log", text)
        self.assertNotIn("PRIVATE KEY", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
