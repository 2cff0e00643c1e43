"""The control API: idempotent, replaced on change, gone on delete; who may call and connect."""
import json
import os
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import UnixHTTP, ADDRESSES, Lab, Move, UnixHTTP, ended, need_root, wait_for  # noqa: E402

CONNECT_AS = """
import os, socket, sys
text = sys.argv[3].encode().decode('unicode_escape').encode()  # before the library is out of reach
os.setgroups([61200]); os.setresgid(int(sys.argv[1]), int(sys.argv[1]), int(sys.argv[1]))
os.setresuid(int(sys.argv[1]), int(sys.argv[1]), int(sys.argv[1]))
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[2])
try:
    s.sendall(text)
    while True:
        b = s.recv(4096)
        if not b: break
        sys.stdout.write(b.decode())
        if len(sys.argv) > 4: break
except (ConnectionResetError, BrokenPipeError):
    pass
"""


def as_uid(uid, path, text, *more):
    """Connects as another user, sends a text, returns what came until the end."""
    done = subprocess.run([sys.executable, "-c", CONNECT_AS, str(uid), path, text, *more],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    return done.stdout


class Control(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.a = cls.lab.relay("a").ready()
        cls.b = cls.lab.relay("b").ready()

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def can_dial(self, port):
        address = (ADDRESSES["b"][0], port)
        try:
            self.lab.in_netns("a", lambda: socket.create_connection(address, timeout=5)).close()
            return True
        except ConnectionRefusedError:
            return False

    def test_same_body_changes_nothing(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        self.assertEqual(set(move.answer["ports"].values()), {0, 49152})
        self.assertEqual(move.answer["address"], ADDRESSES["b"][0])
        again = self.b.must("PUT", f"/v1/targets/{move.key}",
                            dict(move.target_body, channels=list(reversed(move.target_body["channels"]))))
        self.assertEqual((again["ports"], again["instance"]), (move.answer["ports"], move.answer["instance"]))
        files = self.a.must("PUT", f"/v1/sources/{move.key}", move.source_body)["files"]
        self.assertEqual(sorted(files), sorted(move.files))
        self.assertEqual(sorted(files), sorted([move.file(0), move.file(49152)]))
        near.sendall(b"still here")
        self.assertEqual(far.recv(16), b"still here")

    def test_changed_body_replaces(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        old = dict(move.port_of)
        move.target_body["generation"] = 2
        move.put_target()
        self.assertTrue(set(old.values()).isdisjoint(move.port_of.values()))
        self.assertTrue(ended(near) and ended(far))
        self.assertFalse(any(self.can_dial(p) for p in old.values()))
        body = dict(move.source_body, generation=2, ports=move.answer["ports"])
        self.a.must("PUT", f"/v1/sources/{move.key}", body)
        near, far = move.connect()
        near.sendall(b"again")
        self.assertEqual(far.recv(16), b"again")

    def test_failed_replacement_keeps_a_target(self):
        move = Move(self.lab, self.a, self.b)
        status, reply = self.b.call("PUT", f"/v1/targets/{move.key}", dict(move.target_body, bind="10.91.0.99"))
        self.assertNotEqual(status, 200)
        self.assertIn("10.91.0.99", reply["message"])
        self.assertEqual(self.b.must("GET", f"/v1/targets/{move.key}")["ports"], move.answer["ports"])
        move.connect()

    def test_delete(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        self.assertTrue(os.path.exists(move.file(0)) and os.path.exists(move.file(49152)))
        self.a.must("DELETE", f"/v1/sources/{move.key}")
        self.assertEqual(os.listdir(move.src_dir), [])
        self.assertTrue(ended(near) and ended(far))
        self.b.must("DELETE", f"/v1/targets/{move.key}")
        self.assertFalse(any(self.can_dial(p) for p in move.port_of.values()))
        for relay, kind in ((self.a, "sources"), (self.b, "targets")):
            self.assertEqual(relay.must("DELETE", f"/v1/{kind}/{move.key}"), {"deleted": False})
            self.assertEqual(relay.call("GET", f"/v1/{kind}/{move.key}")[0], 404)
            self.assertNotIn(move.key, [x["key"] for x in relay.must("GET", f"/v1/{kind}")[kind]])

    def test_delete_ends_streams_that_wait(self):
        """A stream in the middle of its handshake does not hold up DELETE."""
        move = Move(self.lab, None, self.b)
        address = (ADDRESSES["b"][0], move.port_of[49152])
        s = self.lab.in_netns("a", lambda: socket.create_connection(address, timeout=5))
        wait_for("it to arrive", lambda: self.b.must("GET", f"/v1/targets/{move.key}")["arriving"] == 1)
        self.b.must("DELETE", f"/v1/targets/{move.key}")
        self.assertTrue(ended(s))
        s.close()

    def test_stale_files_are_replaced(self):
        move = Move(self.lab, None, self.b)
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(move.file(49152))
        stale.close()
        self.assertTrue(os.path.exists(move.file(49152)))
        self.a.must("PUT", f"/v1/sources/{move.key}", move.source_body)
        near, far = move.connect()
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")

    def test_long_directories(self):
        move = Move(self.lab, None, self.b)
        long = os.path.join(self.lab.make_dir(f"{move.key}-deep"), "d" * 120)
        os.mkdir(long)
        os.chown(long, 0, 61200)
        os.chmod(long, 0o2770)
        reply = self.a.must("PUT", f"/v1/sources/{move.key}", dict(move.source_body, dir=long))
        self.assertEqual(sorted(os.path.basename(f) for f in reply["files"]), sorted(os.listdir(long)))

    def test_missing_directory(self):
        move = Move(self.lab, None, self.b)
        status, reply = self.a.call("PUT", f"/v1/sources/{move.key}", dict(move.source_body, dir="/no/such/dir"))
        self.assertEqual((status, reply["code"], reply["retry"], reply["reason"]), (404, 404, False, "NotFound"))
        self.assertIn("/no/such/dir", reply["message"])

    def test_control_channel_takes_one(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect(0)
        second = self.lab.connect(move.file(0))
        self.assertTrue(ended(second))
        self.a.wait_log("stream not opened", f"key={move.key}", "the control channel is busy")
        near.sendall(b"first")
        self.assertEqual(far.recv(16), b"first")
        near.close()
        third, far = move.connect(0)  # at once: the wait for the first to end is the relay's
        third.sendall(b"third")
        self.assertEqual(far.recv(16), b"third")

    def test_control_channel_takes_one_at_the_target(self):
        move = Move(self.lab, None, self.b, tls="raw")
        papers = self.lab.pki.good("a")
        first = self.lab.dial_tls("a", ADDRESSES["b"][0], move.port_of[0], *papers, tls="raw")
        far, _ = move.listeners[0].accept()
        second = self.lab.dial_tls("a", ADDRESSES["b"][0], move.port_of[0], *papers, tls="raw")
        self.assertTrue(ended(second))
        self.b.wait_log("stream not opened", f"key={move.key}", "the control channel is busy")
        self.assertTrue(move.nothing_arrives(0))
        for s in (first, second, far):
            s.close()

    def test_missing_hypervisor_socket(self):
        move = Move(self.lab, self.a, self.b)
        move.listeners[49152].close()
        os.unlink(move.paths[49152])
        near = self.lab.connect(move.file(49152))
        self.assertTrue(ended(near))
        self.b.wait_log("stream not opened", f"key={move.key}", "No such file or directory", move.paths[49152])
        self.a.wait_log("stream not opened", f"key={move.key}", " warning ", "No such file or directory")

    def test_rate_is_set_without_touching_streams(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        url = f"/v1/sources/{move.key}"
        self.assertEqual(self.a.must("PUT", url, dict(move.source_body, rateBytesPerS=12345))["rateBytesPerS"], 12345)
        self.assertEqual(self.a.must("GET", url)["rateBytesPerS"], 12345)
        near.sendall(b"goes on")
        self.assertEqual(far.recv(16), b"goes on")
        self.a.must("PUT", url, move.source_body)
        self.assertEqual(self.a.must("PUT", "/v1/rate", {"bytesPerS": 1 << 30}), {"bytesPerS": 1 << 30})
        self.assertEqual(self.a.call("PUT", "/v1/rate", {"bytesPerS": "fast"})[0], 400)
        self.assertEqual(self.a.call("PUT", "/v1/rate", {})[0], 400)
        self.a.must("PUT", "/v1/rate", {"bytesPerS": 0})

    def test_metrics(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"x" * 1000)
        while far.recv(1000) == b"":
            pass
        values = self.metrics()
        self.assertGreaterEqual(values['ferry_relay_streams_open{role="source"}'], 1)
        self.assertGreaterEqual(values['ferry_relay_sent_bytes_total{role="source"}'], 1000)
        self.assertEqual(values["ferry_relay_draining"], 0)

    def test_counters_never_fall(self):
        """What streams and moves that are gone have carried stays in the counters."""
        name = 'ferry_relay_%s{role="source"}'
        before = self.metrics()
        for n in (1, 2, 3):
            move = Move(self.lab, self.a, self.b)
            near, far = move.connect()
            near.sendall(b"x" * 1000)
            far.sendall(b"y" * 500)
            self.assertEqual((len(far.recv(1000, socket.MSG_WAITALL)), len(near.recv(500, socket.MSG_WAITALL))), (1000, 500))
            near.close()
            far.close()
            self.a.streams(0, key=move.key)
            self.a.must("DELETE", f"/v1/sources/{move.key}")
            now = self.metrics()
            grown = {k: now[name % k] - before[name % k] for k in ("streams_total", "sent_bytes_total", "received_bytes_total")}
            self.assertEqual(grown, {"streams_total": n, "sent_bytes_total": n * 1000, "received_bytes_total": n * 500})

    def metrics(self):
        """By name and labels; the text is as Prometheus wants it."""
        c = UnixHTTP(self.a.control)
        c.request("GET", "/metrics")
        reply = c.getresponse()
        lines = reply.read().decode().splitlines()
        c.close()
        self.assertTrue(reply.getheader("Content-Type").startswith("text/plain"))
        types = dict(l.split()[2:4] for l in lines if l.startswith("# TYPE"))
        values = {k: int(v) for k, v in (l.rsplit(" ", 1) for l in lines if not l.startswith("#"))}
        for key in values:
            kind = types[key.split("{")[0]]
            self.assertEqual(kind == "counter", key.split("{")[0].endswith("_total"), key)
        return values

    def test_full_backlog_is_waited_for(self):
        """QEMU's backlog is tiny: more connections than it holds must still get through."""
        move = Move(self.lab, self.a, self.b)
        move.listeners[49152].listen(0)
        nears = [self.lab.connect(move.file(49152)) for _ in range(6)]
        for i, s in enumerate(nears):
            s.sendall(bytes([i]))
        got = set()
        for _ in nears:
            far, _ = move.listeners[49152].accept()
            far.settimeout(20)
            got.add(far.recv(1)[0])
            self.lab.sockets.append(far)
        self.assertEqual(got, set(range(6)))

    def test_nobody_listens_there(self):
        move = Move(self.lab, self.a, self.b)
        self.b.must("DELETE", f"/v1/targets/{move.key}")
        near = self.lab.connect(move.file(49152))
        self.assertTrue(ended(near))
        self.a.wait_log("stream not opened", f"key={move.key}", "Connection refused")

    def test_bad_requests(self):
        move = Move(self.lab, self.a, self.b)
        for method, path, body, status, words in (
                ("PUT", "/v1/targets/new", {}, 400, "move: missing"),
                ("PUT", "/v1/targets/new", dict(move.target_body, bind="nowhere"), 400, "bind"),
                ("PUT", "/v1/targets/new", dict(move.target_body, tls="some"), 400, "tls"),
                ("PUT", "/v1/targets/.hidden", move.target_body, 400, "key"),
                ("PUT", "/v1/targets/a/b", move.target_body, 400, "key"),
                ("PUT", "/v1/sources/new", dict(move.source_body, owner="root"), 400, "owner"),
                ("PUT", "/v1/targets/new", dict(move.target_body, pad="x" * 70000), 413, "larger"),
                ("PATCH", f"/v1/targets/{move.key}", {}, 405, "method"),
                ("POST", "/v1/targets", {}, 405, "method"),
                ("GET", "/v1/elsewhere", None, 404, "no such call"),
                ("GET", "/v1/targetsX", None, 404, "no such call"),
                ("GET", "/v1/targets/unknown", None, 404, "no target")):
            with self.subTest(call=f"{method} {path}", words=words):
                got, reply = self.b.call(method, path, body)
                self.assertEqual((got, reply["code"]), (status, status), reply)
                self.assertIn(words, reply["message"])
        c = UnixHTTP(self.b.control)
        c.request("PUT", "/v1/targets/new", "{not json")
        reply = c.getresponse()
        self.assertEqual(reply.status, 400)
        self.assertIn("not JSON", json.loads(reply.read())["message"])
        c.close()
        self.assertEqual(self.b.call("GET", "/v1/targets/new")[0], 404)

    def test_health(self):
        reply = self.a.must("GET", "/healthz")
        self.assertEqual(reply["status"], "ok")
        self.assertEqual(set(reply), {"status", "instance", "targets", "sources", "streams", "pid"})

    def test_callers_of_another_uid(self):
        self.assertEqual(os.stat(self.a.control).st_mode & 0o777, 0o600)
        call = "GET /v1/streams HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
        self.assertIn("Permission denied", as_uid(61234, self.a.control, call))
        os.chmod(self.a.control, 0o666)  # even where the file's mode would let them in
        self.assertIn(" 403 ", as_uid(61234, self.a.control, call))
        self.a.wait_log("control call refused", "uid=61234", "path=/v1/streams")
        self.assertIn(" 200 ", as_uid(61200, self.a.control, call))
        os.chmod(self.a.control, 0o600)

    def test_owner_of_source_sockets(self):
        move = Move(self.lab, self.a, self.b, owner=61300)
        self.assertEqual(as_uid(61301, move.file(49152), "x"), "")
        self.a.wait_log("stream not opened", f"key={move.key}", "uid 61301")
        self.assertTrue(move.nothing_arrives())
        self.assertIn("sent", self.echo_once(move, 61300))

    def echo_once(self, move, uid):
        child = subprocess.Popen([sys.executable, "-c", CONNECT_AS, str(uid), move.file(49152), "hi", "once"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        far, _ = move.listeners[49152].accept()
        far.settimeout(20)
        self.assertEqual(far.recv(16), b"hi")
        far.sendall(b"sent")
        out, _ = child.communicate(timeout=30)
        far.close()
        return out

    def test_not_root(self):
        for relay in (self.a, self.b):
            with open(f"/proc/{relay.process.pid}/status") as f:
                status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
            self.assertEqual(status["Uid"].split(), ["61200"] * 4)
            self.assertEqual(status["Gid"].split(), ["61200"] * 4)
            self.assertEqual(status["Groups"].split(), [])
            self.assertEqual((int(status["CapEff"], 16), int(status["CapPrm"], 16)), (0, 0))
            self.assertEqual(status["NoNewPrivs"], "1")

    def test_no_descriptor_is_left(self):
        def count():
            return len(os.listdir(f"/proc/{self.b.process.pid}/fd"))
        Move(self.lab, None, self.b)  # whatever is opened once is open now
        before = count()
        for _ in range(5):
            move = Move(self.lab, self.a, self.b)
            near, far = move.connect()
            near.close()
            far.close()
            self.a.must("DELETE", f"/v1/sources/{move.key}")
            self.b.must("DELETE", f"/v1/targets/{move.key}")
        wait_for("descriptors are back", lambda: count() <= before)


need_root()
unittest.main(verbosity=2)
