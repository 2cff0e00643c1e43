"""Joining with a one-time token, renewing, being removed; tokens for people."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import MERGE_PATCH, PROGRAM, Client, LabCase, configmaps, run, wait_for  # noqa: E402


class Join(LabCase):
    def token(self, *args):
        return run(PROGRAM, "token", "--data", self.lab.data, *args).strip()

    def request(self, name, subject="/CN=whatever"):
        key, path = (os.path.join(self.lab.dir, f"{name}.{end}") for end in ("key", "csr"))
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-out", path, "-subj", subject)
        with open(path, encoding="utf-8") as f:
            return f.read()

    def join(self, token, node, client=None, path="/ferry/v1/join", **more):
        body = {"node": node, "nodeRequest": self.request(f"{node}-node", "/O=ferry:admins/CN=ferry-admin"),
                "relayRequest": self.request(f"{node}-relay"), **more}
        return (client or self.lab.anonymous()).call("POST", path, body,
                                                     **({"Authorization": f"Bearer {token}"} if token else {}))

    def client(self, node, answer):
        cert = os.path.join(self.lab.dir, f"{node}-joined.crt")
        with open(cert, "w", encoding="utf-8") as f:
            f.write(answer["node"])
        return Client(self.lab.port, os.path.join(self.lab.data, "ca/ca.crt"), cert,
                      os.path.join(self.lab.dir, f"{node}-node.key"))

    def test_once(self):
        token = self.token("--node", "n1")
        self.assertEqual(self.join(token, "n2")[0], 401)           # another name
        self.assertEqual(self.join(token[:-1] + "x", "n1")[0], 401)
        self.assertEqual(self.join(None, "n1")[0], 401)
        self.assertEqual(self.join(token, "n1", nodeRequest="nonsense")[0], 400)
        self.assertEqual(self.join(token, "N_1")[0], 400)
        code, answer = self.join(token, "n1")
        self.assertEqual(code, 200, answer)
        node = self.client("n1", answer)
        node.ok("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})  # it is n1, whatever its request said
        self.assertEqual(node.call("POST", "/api/v1/nodes", {"metadata": {"name": "other"}})[0], 403)
        self.assertEqual(node.call("GET", "/api/v1/namespaces/kube-system/secrets")[0], 403)
        text = run("openssl", "x509", "-noout", "-subject", "-ext", "subjectAltName", "-in",
                   self.write("relay.crt", answer["relay"]))
        self.assertRegex(text, r"CN ?= ?ferry-relay:n1\n")
        self.assertIn("URI:ferry://node/n1", text)
        self.assertEqual(self.join(token, "n1")[0], 401)           # used up
        # a joining token is no way in
        other = self.token("--node", "n9")
        self.assertEqual(self.lab.anonymous().call("GET", configmaps(), Authorization=f"Bearer {other}")[0], 401)
        # renewing: own name only, by a node only
        code, renewed = self.join(None, "ignored", node, "/ferry/v1/renew")
        self.assertEqual(code, 200, renewed)
        self.assertIn("system:node:n1", run("openssl", "x509", "-noout", "-subject", "-in",
                                            self.write("renewed.crt", renewed["node"])))
        self.assertEqual(self.join(None, "n1", self.api, "/ferry/v1/renew")[0], 403)

    def write(self, name, text):
        path = os.path.join(self.lab.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_tokens_end(self):
        token = self.token("--node", "late", "--life", "1")
        time.sleep(1.1)  # it ends by the clock; there is nothing else to wait for
        self.assertEqual(self.join(token, "late")[0], 401)

    def test_removed_nodes(self):
        node = self.lab.node("gone")
        node.ok("POST", "/api/v1/nodes", {"metadata": {"name": "gone"}})
        self.api.ok("DELETE", "/api/v1/nodes/gone")
        code, answer = node.call("GET", "/api/v1/nodes")
        self.assertEqual(code, 401)
        self.assertIn("was removed", answer["message"])
        self.lab.stop()
        self.lab.start(listen=f"127.0.0.1:{self.lab.port}")
        type(self).api = self.lab.admin
        self.assertEqual(node.call("GET", "/api/v1/nodes")[0], 401)

        def again():
            code, answer = self.join(self.token("--node", "gone"), "gone")
            self.assertEqual(code, 200, answer)
            return self.client("gone", answer).call("GET", "/api/v1/nodes")[0] == 200

        wait_for("a certificate that is younger than the removal", again, step=0.3)

    def test_a_node_cannot_hold_itself_in(self):
        """Whatever keeps its Node object for a while: its certificates end when it is deleted."""
        owner = self.api.ok("POST", configmaps(), {"metadata": {"name": "owner-of-nodes"}})["metadata"]
        for name, meta, options in (("held", {"finalizers": ["x.io/mine"]}, None),
                                    ("slow", {}, {"propagationPolicy": "Foreground"}),
                                    ("owned", {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"],
                                                                    "uid": owner["uid"]}]}, None)):
            node = self.lab.node(name)
            node.ok("POST", "/api/v1/nodes", {"metadata": {"name": name, **meta}})
            if name == "owned":
                self.api.ok("DELETE", configmaps(owner["name"]))
            else:
                self.api.ok("DELETE", f"/api/v1/nodes/{name}", options)
            wait_for(f"{name} to be refused", lambda n=node: n.call("GET", "/api/v1/nodes")[0] == 401)
            self.assertEqual(node.call("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"finalizers": None}}, MERGE_PATCH)[0], 401)
            self.api.call("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"finalizers": None}}, MERGE_PATCH)
            wait_for(f"{name} to go", lambda n=name: self.api.call("GET", f"/api/v1/nodes/{n}")[0] == 404)
            self.assertEqual(node.call("GET", "/api/v1/nodes")[0], 401)

    def test_what_a_removed_node_watches_ends(self):
        node = self.lab.node("spy")
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        node.ok("POST", "/api/v1/nodes", {"metadata": {"name": "spy"}})
        start = self.api.ok("GET", leases)["metadata"]["resourceVersion"]
        its, ours = (c.watch(leases, resourceVersion=start, timeoutSeconds=600) for c in (node, self.api))
        self.api.ok("DELETE", "/api/v1/nodes/spy")
        self.assertIsNone(its.next())
        self.api.ok("POST", leases, {"metadata": {"name": "not-for-spies"}})
        self.assertEqual(ours.next()[1]["metadata"]["name"], "not-for-spies")
        its.close()
        ours.close()

    def test_tokens_of_people(self):
        viewer, admin = self.token("--user", "eve", "--group", "ferry:viewers"), self.token(
            "--user", "root", "--group", "ferry:admins")
        anonymous = self.lab.anonymous()
        self.assertEqual(anonymous.call("GET", configmaps(), Authorization=f"Bearer {viewer}")[0], 200)
        body = {"metadata": {"name": "by-token"}}
        self.assertEqual(anonymous.call("POST", configmaps(), body, Authorization=f"Bearer {viewer}")[0], 403)
        self.assertEqual(anonymous.call("POST", configmaps(), body, Authorization=f"Bearer {admin}")[0], 201)
        for bad in ("ferry.0000000000." + "0" * 40, "nonsense", "", viewer[:-2]):
            self.assertEqual(anonymous.call("GET", configmaps(), Authorization=f"Bearer {bad}")[0], 401)
        self.assertNotIn(admin.split(".")[2], self.lab.log_text())
        self.api.ok("DELETE", "/api/v1/namespaces/kube-system/secrets/ferry-token." + admin.split(".")[1])
        self.assertEqual(anonymous.call("GET", configmaps(), Authorization=f"Bearer {admin}")[0], 401)


if __name__ == "__main__":
    unittest.main(verbosity=2)
