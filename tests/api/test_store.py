"""The site's data: a disk that fills up, backups while it runs, restoring one."""
import datetime
import os
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import PROGRAM, Lab, configmaps, run, vmi, vmis, wait_for  # noqa: E402


EVENTS = "/api/v1/namespaces/default/events"


def body(name, size=0):
    return {"metadata": {"name": name}, "data": {"x": "x" * size}}


class FullDisk(unittest.TestCase):
    def test_what_the_server_does_by_itself_is_done_later(self):
        """Cutting loose what a deleted object owned: not half, and without anybody asking again."""
        lab = Lab()
        lab.stop()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", lab.data], check=False,
                                 capture_output=True)
        if mounted.returncode != 0:
            lab.start()
            lab.close()
            self.skipTest("cannot mount a small file system here")
        try:
            lab.start()
            owner = lab.admin.ok("POST", configmaps(), body("owner"))["metadata"]
            owned = body("owned", 500_000)
            owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}]
            lab.admin.ok("POST", configmaps(), owned)
            lab.stop()
            lab.start()  # and with it an empty journal
            free = os.statvfs(lab.data)
            filler = os.path.join(lab.data, "filler")
            with open(filler, "wb") as f:
                f.write(b"x" * (free.f_bavail * free.f_frsize - 200_000))
            lab.admin.ok("DELETE", configmaps("owner"), {"propagationPolicy": "Orphan"})
            wait_for("it to fail", lambda: "cannot change what an object owns" in lab.log_text())
            self.assertEqual(lab.admin.call("GET", configmaps("owner"))[0], 200)  # as long as it is owned
            os.unlink(filler)
            wait_for("the owner to go", lambda: lab.admin.call("GET", configmaps("owner"))[0] == 404)
            self.assertFalse(lab.admin.ok("GET", configmaps("owned"))["metadata"].get("ownerReferences"))
        finally:
            lab.stop()
            run("umount", lab.data)
        lab.close()

    def test_reads_go_on_and_it_recovers(self):
        lab = Lab()
        lab.stop()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", lab.data], check=False,
                                 capture_output=True)
        if mounted.returncode != 0:
            lab.start()
            lab.close()
            self.skipTest("cannot mount a small file system here")
        try:
            lab.start()
            code, made = 201, 0
            while code == 201 and made < 100:
                code, answer = lab.admin.call("POST", configmaps(), body(f"big-{made}", 200_000))
                made += code == 201
            self.assertEqual(code, 507, answer)
            self.assertIn("no space is left", answer["message"])
            self.assertGreater(made, 2)
            # what is there can be read, nothing of the failed write is, and what fits still goes
            names = {i["metadata"]["name"] for i in lab.admin.ok("GET", configmaps())["items"]}
            self.assertEqual(names, {f"big-{i}" for i in range(made)})
            run("mount", "-o", "remount,size=64m", lab.data)
            lab.admin.ok("POST", configmaps(), body("after", 200_000))
            lab.stop(signal.SIGKILL)
            lab.start()
            self.assertEqual(len(lab.admin.ok("GET", configmaps())["items"]), made + 1)
        finally:
            lab.stop()
            run("umount", lab.data)
        lab.close()


class OldEvents(unittest.TestCase):
    def test_they_end_after_an_hour(self):
        lab = Lab()
        now = datetime.datetime.now(datetime.timezone.utc)
        for name, minutes in (("old", 61), ("young", 58)):
            at = (now - datetime.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
            lab.admin.ok("POST", EVENTS, {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "lastTimestamp": at})
        lab.stop()
        lab.start()  # looks at once, and then every minute
        wait_for("the old one to go", lambda: lab.admin.call("GET", f"{EVENTS}/old")[0] == 404)
        lab.admin.ok("GET", f"{EVENTS}/young")
        lab.close()


class Backup(unittest.TestCase):
    def test_while_writing_and_back(self):
        lab = Lab()
        lab.admin.ok("POST", vmis(), vmi("kept"))
        stop, made = threading.Event(), []

        def write():
            while not stop.is_set():
                lab.admin.ok("POST", configmaps(), body(f"c-{len(made)}"))
                made.append(1)

        writer = threading.Thread(target=write)
        writer.start()
        saved = os.path.join(lab.dir, "saved")
        try:
            run(PROGRAM, "backup", saved, "--data", lab.data)
        finally:
            stop.set()
            writer.join()
        self.assertEqual(os.stat(saved).st_mode & 0o777, 0o600)
        before = lab.admin.ok("GET", vmis("kept"))
        newest = int(lab.admin.ok("GET", configmaps())["metadata"]["resourceVersion"])
        old_admin = lab.admin
        lab.stop()
        # never over a site that is there, and never half
        refused = subprocess.run([PROGRAM, "restore", saved, "--data", lab.data], capture_output=True, text=True,
                                 check=False)
        self.assertIn("is there already", refused.stderr)
        other = os.path.join(lab.dir, "other")
        cut = os.path.join(lab.dir, "cut")
        with open(saved, encoding="utf-8") as f, open(cut, "w", encoding="utf-8") as out:
            out.writelines(f.readlines()[:-2])
        refused = subprocess.run([PROGRAM, "restore", cut, "--data", other], capture_output=True, text=True, check=False)
        self.assertIn("not whole", refused.stderr)
        run(PROGRAM, "restore", saved, "--data", other)
        lab.data, lab.kubeconfig = other, os.path.join(other, "admin.kubeconfig")
        lab.start(listen=f"127.0.0.1:{lab.port}")
        self.assertEqual(old_admin.ok("GET", vmis("kept")), before)  # same CA: old certificates hold
        restored = lab.admin.ok("GET", configmaps())
        names = {i["metadata"]["name"] for i in restored["items"]}
        self.assertEqual(names, {f"c-{i}" for i in range(len(names))})  # one instant, no gap
        self.assertGreater(int(restored["metadata"]["resourceVersion"]), newest)
        # the file of a server that does not run
        lab.stop()
        run(PROGRAM, "backup", saved, "--data", other)
        lab.start()
        lab.close()

    def test_only_admins(self):
        lab = Lab()
        self.assertEqual(lab.controller().call("GET", "/ferry/v1/backup")[0], 403)
        self.assertEqual(lab.anonymous().call("GET", "/ferry/v1/backup")[0], 401)
        lab.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
