"""Watches: order, selectors, resume, what is too old, bookmarks, ends."""
import http.client
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import MERGE_PATCH, ON_KUBERNETES, Lab, LabCase, Watch, configmaps, embedded_only, vmi, vmis  # noqa: E402


class Watches(LabCase):
    def version(self):
        return self.api.ok("GET", configmaps())["metadata"]["resourceVersion"]

    def make(self, name, **data):
        return self.api.ok("POST", configmaps(), {"metadata": {"name": name, "labels": data}})

    def test_from_a_version(self):
        start = self.version()
        self.make("w-1")
        w = self.api.watch(configmaps(), resourceVersion=start)
        self.assertEqual(w.next()[1]["metadata"]["name"], "w-1")
        self.api.ok("PATCH", configmaps("w-1"), {"data": {"x": "1"}}, MERGE_PATCH)
        kind, changed = w.next()
        self.assertEqual((kind, changed["data"]), ("MODIFIED", {"x": "1"}))
        self.api.ok("POST", vmis(), vmi("other-kind"))
        self.api.ok("DELETE", configmaps("w-1"))
        kind, gone = w.next()
        self.assertEqual(kind, "DELETED")
        self.assertGreater(int(gone["metadata"]["resourceVersion"]), int(changed["metadata"]["resourceVersion"]))
        w.close()
        # resume after the first event: the rest comes again, nothing else
        w = self.api.watch(configmaps(), resourceVersion=changed["metadata"]["resourceVersion"], timeoutSeconds=1)
        self.assertEqual([w.next(), w.next()], [("DELETED", gone), None])
        w.close()

    def test_without_a_version(self):
        self.make("w-2", watch="initial")
        w = self.api.watch(configmaps(), labelSelector="watch%3Dinitial")
        kind, found = w.next()
        self.assertEqual((kind, found["metadata"]["name"]), ("ADDED", "w-2"))
        # ceasing to match is going, matching again is coming
        changed = self.api.ok("PATCH", configmaps("w-2"), {"metadata": {"labels": {"watch": "no"}}, "data": {"x": "1"}}, MERGE_PATCH)
        kind, left = w.next()
        self.assertEqual(kind, "DELETED")
        # as it was when it matched, with the version of the change
        self.assertEqual((left["metadata"]["labels"], left.get("data")), ({"watch": "initial"}, None))
        self.assertEqual(left["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"])
        self.api.ok("PATCH", configmaps("w-2"), {"data": {"unseen": "1"}}, MERGE_PATCH)
        self.api.ok("PATCH", configmaps("w-2"), {"metadata": {"labels": {"watch": "initial"}}}, MERGE_PATCH)
        kind, back = w.next()
        self.assertEqual((kind, back["data"]), ("ADDED", {"unseen": "1", "x": "1"}))
        w.close()

    @embedded_only("Kubernetes sends them at times of its own")
    def test_bookmarks(self):
        """Every now and then, and at the end of the stream, what a resume may begin from though nothing came."""
        api = self.api
        if not ON_KUBERNETES:  # which has it a minute long
            lab = Lab("--bookmark-interval", "2")
            self.addCleanup(lab.close)
            api = lab.admin
        start = api.ok("GET", configmaps())["metadata"]["resourceVersion"]
        long, short = (api.watch(configmaps("", "kube-node-lease"), resourceVersion=start, allowWatchBookmarks="true",
                                 timeoutSeconds=s) for s in (600, 1))
        silent = api.watch(configmaps("", "kube-node-lease"), resourceVersion=start, timeoutSeconds=1)
        newest = int(api.ok("POST", vmis(), vmi("moves-on"))["metadata"]["resourceVersion"])
        for w in (short, long):
            kind, mark = w.next()
            self.assertEqual((kind, mark["kind"], mark["apiVersion"]), ("BOOKMARK", "ConfigMap", "v1"))
            self.assertGreaterEqual(int(mark["metadata"]["resourceVersion"]), newest)
        self.assertIsNone(short.next())
        self.assertIsNone(silent.next())
        for w in (long, short, silent):
            w.close()

    def test_one_object(self):
        start = self.version()
        for name in ("one-a", "one-b"):
            self.make(name)
        watch = self.api.watch(configmaps(), fieldSelector="metadata.name%3Done-b", resourceVersion=start)
        self.assertEqual(watch.next()[1]["metadata"]["name"], "one-b")
        watch.close()

    def test_bad_versions(self):
        for version in ("x", "1x"):
            status, answer = self.api.call("GET", f"{configmaps()}?watch=1&resourceVersion={version}")
            self.assertIn(status, (400, 422, 500), answer)

    @embedded_only("Kubernetes waits for a version that is to come")
    def test_versions_to_come(self):
        status, answer = self.api.call("GET", f"{configmaps()}?watch=1&resourceVersion=99999999")
        self.assertEqual((status, answer["reason"]), (410, "Expired"))

    def test_end(self):
        w = self.api.watch(configmaps(), resourceVersion=self.version(), timeoutSeconds=1)
        self.assertIsNone(w.next())  # the client waits for a minute, servers for five and more
        w.close()

    def test_table(self):
        w = Watch(self.api, vmis(), {"resourceVersion": self.version()}, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        self.api.ok("POST", vmis(), vmi("in-table"))
        kind, table = w.next()
        self.assertEqual((kind, table["kind"], table["rows"][0]["cells"][0]), ("ADDED", "Table", "in-table"))
        w.close()

    def test_many_watchers_same_story(self):
        start, stories = self.version(), []

        def follow():
            w, story = self.api.watch(configmaps(), resourceVersion=start, labelSelector="many"), []
            while len(story) < 60:
                kind, what = w.next()
                story.append((kind, what["metadata"]["resourceVersion"]))
            w.close()
            stories.append(story)
        followers = [threading.Thread(target=follow) for _ in range(8)]
        for f in followers:
            f.start()

        def write(n):
            for i in range(10):
                self.make(f"many-{n}-{i}", many="")
                self.api.ok("DELETE", configmaps(f"many-{n}-{i}"))
        writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for t in writers:
            t.start()
        for t in writers + followers:
            t.join(60)
        self.assertEqual(len(stories), 8)
        for story in stories:
            self.assertEqual(story, stories[0])
            versions = [int(v) for _, v in story]
            self.assertEqual(versions, sorted(set(versions)))

    @embedded_only("it is about the window of this server; 160 MB through etcd take minutes")
    def test_slow_watcher(self):
        """One that does not read holds nobody up, and is told when it has missed too much."""
        big = "x" * 200_000
        self.make("slow")
        w = self.api.watch(configmaps(), resourceVersion=self.version())
        for i in range(400):  # 160 MB of before and after; the window holds 32
            self.api.ok("PATCH", configmaps("slow"), {"data": {"x": f"{i}{big}"}}, MERGE_PATCH)
        last = None
        while True:
            event = w.next()
            if event is None:
                break
            last = event
        self.assertEqual((last[0], last[1]["code"], last[1]["reason"]), ("ERROR", 410, "Expired"))
        w.close()

    @embedded_only("restarts the server")
    def test_restart(self):
        """The window does not outlive the server: what is older than its start is refused, the newest is not."""
        lab = Lab()
        for name in ("a", "b"):
            old, new = (lab.admin.ok("POST", configmaps(), {"metadata": {"name": name + str(i)}})["metadata"][
                "resourceVersion"] for i in range(2))
        lab.stop()
        lab.start()
        status, answer = lab.admin.call("GET", f"{configmaps()}?watch=1&resourceVersion={old}")
        self.assertEqual((status, answer["reason"]), (410, "Expired"))
        w = lab.admin.watch(configmaps(), resourceVersion=new)
        lab.admin.ok("POST", configmaps(), {"metadata": {"name": "c"}})
        kind, made = w.next()
        self.assertEqual((kind, made["metadata"]["name"]), ("ADDED", "c"))
        self.assertEqual(int(made["metadata"]["resourceVersion"]), int(new) + 1)
        w.close()
        lab.close()

    @embedded_only("stops the server")
    def test_stop_ends_watches(self):
        lab = Lab()
        w = lab.admin.watch(configmaps(), resourceVersion=lab.admin.ok("GET", configmaps())["metadata"]["resourceVersion"])
        lab.close()  # waits for a minute at most
        try:
            self.assertIsNone(w.next())
        except (OSError, http.client.HTTPException):
            pass  # cut off in the middle of a chunk
        w.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
