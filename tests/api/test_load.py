"""Everything at once: writers on the same objects, watchers of every kind, lists in pages, garbage, quotas, backups, nodes that
are removed while they watch. With sanitizers, ThreadSanitizer above all, the server must have nothing to say about it."""
import contextlib
import http.client
import os
import random
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import (APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC, Lab, Watch, configmaps, migrations, pods, vmi, vmis,  # noqa: E402
                 wait_for)

TURNS = int(os.environ.get("FERRY_LOAD_TURNS", "40"))
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NODES = "/api/v1/nodes"
FINE = (200, 201, 202, 404, 409, 410, 422, 429, 403)  # others are at the same objects; never 5xx or nonsense


class Load(unittest.TestCase):
    def setUp(self):
        self.lab = Lab()
        self.api = self.lab.admin
        self.wrong, self.done = [], threading.Event()
        self.addCleanup(self.done.set)

    def go(self, api, method, path, body=None, kind="application/json"):
        status, answer = api.call(method, path, body, kind)
        if status not in FINE:
            self.wrong.append(f"{method} {path}: {status} {answer}")
        return status, answer

    # ---- what others do meanwhile

    def shared(self, turn):
        """Many at one object, in every way to change one."""
        name = f"shared-{turn % 3}"
        self.go(self.api, "POST", configmaps(), {"metadata": {"name": name, "labels": {"load": "1"}}})
        self.go(self.api, "PATCH", configmaps(name), {"data": {"a": str(turn)}}, MERGE_PATCH)
        self.go(self.api, "PATCH", configmaps(name), {"data": {"a": str(turn)}}, MERGE_PATCH)  # nothing new
        self.go(self.api, "PATCH", configmaps(name), {"metadata": {"finalizers": ["ferry.io/x"]}}, STRATEGIC)
        self.go(self.api, "PATCH", configmaps(name), [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH)
        self.go(self.api, "PATCH", configmaps(name), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"s": "1"}}, APPLY)
        code, now = self.go(self.api, "GET", configmaps(name))
        if code == 200:
            self.go(self.api, "PUT", configmaps(name), now)
        self.go(self.api, "DELETE", configmaps(name), {"propagationPolicy": random.choice(["Foreground", "Background", "Orphan"])})

    def machines(self, turn):
        """VMIs with moves, pods that are bound, marked, evicted, and collected with their owner."""
        name = f"m-{turn}"
        code, made = self.go(self.api, "POST", vmis(), {**vmi(name), "status": {"phase": "Running", "nodeName": "n1"}})
        if code != 201:
            return
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": name, "uid": made["metadata"]["uid"]}
        self.go(self.api, "POST", pods(), {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"containers": [
            {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}})
        self.go(self.api, "POST", pods(name) + "/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}})
        self.go(self.api, "POST", migrations(), {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                                                 "metadata": {"generateName": name + "-"}, "spec": {"vmiName": name}})
        self.go(self.api, "PATCH", vmis(name), {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, MERGE_PATCH)
        self.go(self.api, "POST", pods(name) + "/eviction", {"metadata": {"name": name}})
        self.go(self.api, "DELETE", vmis(name))
        if turn % 10 == 9:
            self.go(self.api, "DELETE", migrations())

    def quotas(self, turn):
        self.go(self.api, "POST", "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": f"q-{turn % 2}"}, "spec": {
            "hard": {"pods": "50", "requests.cpu": "40"}}})
        self.go(self.api, "DELETE", f"/api/v1/namespaces/default/resourcequotas/q-{(turn + 1) % 2}")

    def namespaces(self, turn):
        name = f"ns-{turn % 4}"
        self.go(self.api, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.go(self.api, "POST", configmaps("", name), {"metadata": {"generateName": "x-"}})
        self.go(self.api, "DELETE", f"/api/v1/namespaces/{name}")

    def readers(self, turn):
        code, page = self.go(self.api, "GET", configmaps() + "?limit=2")
        while code == 200 and page["metadata"].get("continue"):
            code, page = self.go(self.api, "GET", configmaps() + "?limit=2&continue=" + page["metadata"]["continue"])
        for path in (vmis() + "?fieldSelector=metadata.name%3Dm-1", pods() + "?labelSelector=a%2C!b", "/openapi/v3", "/apis"):
            self.go(self.api, "GET", path)
        self.api.raw("GET", "/metrics")
        self.api.raw("GET", vmis(), headers={"Accept": TABLE})
        if turn % 10 == 0:
            self.api.raw("GET", "/ferry/v1/backup")

    def removed_nodes(self, turn):
        """A node that watches and is removed meanwhile; it is back the next time, with new papers."""
        if turn % 10:
            return
        name = f"gone-{turn}"
        node = self.lab.node(name)
        self.go(node, "POST", NODES, {"metadata": {"name": name}})
        with contextlib.closing(node.watch(pods(), resourceVersion="0")):
            self.go(node, "PATCH", f"{NODES}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
            self.go(self.api, "DELETE", f"{NODES}/{name}")
            self.assertEqual(node.call("GET", pods())[0], 401)

    # ---- who watches

    def watch(self, path, accept, slow, **query):
        last = 0
        while not self.done.is_set():
            try:
                with contextlib.closing(Watch(self.api, path, {"timeoutSeconds": 5, **query}, accept)) as w:
                    last = 0
                    while not self.done.is_set():
                        event = w.next()
                        if event is None or event[0] == "ERROR":
                            break
                        version = int(event[1]["metadata"].get("resourceVersion") or 0)
                        if "resourceVersion" not in query and event[0] != "ADDED" and version < last:
                            self.wrong.append(f"{path}: {version} after {last}")
                        last = version if event[0] != "ADDED" else last
                        if slow:
                            self.done.wait(0.05)
            except (OSError, http.client.HTTPException):
                pass  # its end

    def run_all(self, *work):
        def turns(what):
            for turn in range(TURNS):
                try:
                    what(turn)
                except Exception as e:  # pylint: disable=broad-except
                    self.wrong.append(f"{what.__name__}: {e!r}")
                    return
        threads = [threading.Thread(target=turns, args=(w,)) for w in work]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def test_all_at_once(self):
        watchers = [threading.Thread(target=self.watch, args=args, kwargs=query) for args, query in (
            ((configmaps(), "application/json", False), {}), ((configmaps(), "application/json", True), {}),
            ((vmis(), TABLE, False), {}), ((pods(), "application/json", False), {"labelSelector": "!x"}),
            ((migrations(), TABLE, True), {"allowWatchBookmarks": "true"}),
            ((configmaps(), "application/json", False), {"sendInitialEvents": "true", "allowWatchBookmarks": "true",
                                                         "resourceVersionMatch": "NotOlderThan"}))]
        for w in watchers:
            w.start()
        self.run_all(self.shared, self.shared, self.shared, self.machines, self.quotas, self.namespaces, self.readers, self.removed_nodes)
        wait_for("every pod to be marked, its owner is gone", lambda: all(
            p["metadata"].get("deletionTimestamp") for p in self.api.ok("GET", pods())["items"]))
        self.done.set()
        for w in watchers:
            w.join()
        self.assertEqual(self.wrong, [])
        self.lab.close()  # looks at what the sanitizers say


if __name__ == "__main__":
    unittest.main(verbosity=2)
