"""A relay is replaced by its successor (SIGUSR2): no stream is lost, not a byte, whoever fails."""
import os
import shutil
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import DEADLINE_S, RELAY, Lab, Move, ended, need_root, read_all, read_exactly, run, running, wait_for  # noqa: E402
from flow import Flow, both_ways  # noqa: E402

PATIENCE_S = 90


class Upgrades(unittest.TestCase):
    """What all of them need: two relays that run from files of their own, which can be replaced."""

    def setUp(self):
        self.lab = Lab()
        self.addCleanup(self.lab.close)
        self.files = {}
        self.a, self.b = self.start("a"), self.start("b")

    def start(self, node):
        path = os.path.join(self.lab.dir, f"relay-{node}")
        shutil.copy(RELAY, path)
        self.files[node] = path
        return self.lab.relay(node, program=path).ready()

    def upgrade(self, *relays):
        """All of them at once; waits until each is another process that answers."""
        old = [r.pid() for r in relays]
        for pid in old:
            os.kill(pid, signal.SIGUSR2)
        for r, pid in zip(relays, old):
            wait_for(f"successor of {r.node}\n{r.log()}", lambda: r.pid() != pid, PATIENCE_S)

    def flows(self, move, n, **kw):
        return [f for _ in range(n) for f in both_ways(*move.connect(), **kw)]

    @staticmethod
    def carries(flows, more=1 << 18):
        before = [f.received for f in flows]
        wait_for("bytes flow both ways",
                 lambda: all(f.error or f.received > n + more for f, n in zip(flows, before)), PATIENCE_S)

    def resumes(self, relay, move):
        return [s["resumes"] for s in relay.streams(key=move.key)]


class EightStreams(Upgrades):
    def go_through(self, *relays, times=1):
        move = Move(self.lab, self.a, self.b)
        flows = self.flows(move, 8)
        self.carries(flows)
        instance = self.b.must("GET", f"/v1/targets/{move.key}")["instance"]
        for _ in range(times):
            self.upgrade(*relays)
            self.carries(flows, 1 << 16)
        self.assertEqual(self.b.must("GET", f"/v1/targets/{move.key}")["instance"], instance)
        self.assertEqual(len(self.resumes(self.a, move)), 8)
        for f in flows:
            f.finish()
        for f in flows:
            f.sender.close()
        for r in (self.a, self.b):
            r.streams(0, key=move.key)
            self.assertNotIn(" error ", r.log())
            self.assertNotIn("stream lost", r.log())
        self.a.wait_log("stream closed", f"key={move.key}", " info ", "both sides ended")

    def test_source(self):
        self.go_through(self.a)

    def test_target(self):
        self.go_through(self.b)

    def test_both_at_once(self):
        self.go_through(self.a, self.b)

    def test_twenty_times(self):
        self.go_through(self.a, self.b, times=20)


class WhatIsKept(Upgrades):
    def test_everything_but_the_process(self):
        """Keys, port map, files, limits, identity: a node agent sees the same relay."""
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        near.sendall(b"x" * 1000)
        far.sendall(b"y" * 10)
        wait_for("counted", lambda: self.a.streams(key=move.key)[0]["bytesIn"] == 10)
        self.a.must("PUT", f"/v1/sources/{move.key}", dict(move.source_body, rateBytesPerS=1 << 30))
        self.a.must("PUT", "/v1/rate", {"bytesPerS": 1 << 31})
        self.b.must("POST", "/v1/drain")

        def seen():
            keep = ("key", "move", "channel", "role", "peer", "bytesIn", "bytesOut", "sinceMs")
            return [[r.must("GET", "/v1/targets"), r.must("GET", "/v1/sources"),
                     {**r.must("GET", "/healthz"), "pid": None}, [[s[k] for k in keep] for s in r.streams()],
                     [l for l in r.text("/metrics").splitlines() if "rate_limit" in l or "draining" in l]]
                    for r in (self.a, self.b)]
        before = seen()
        self.upgrade(self.a, self.b)
        # A connection that resumes a stream counts until it has joined it.
        wait_for(f"the same as {before}, not {seen()}", lambda: seen() == before)
        self.assertEqual(self.b.call("PUT", "/v1/targets/other", move.target_body)[0], 503)  # still draining
        self.assertEqual(self.a.must("PUT", f"/v1/sources/{move.key}",
                                     dict(move.source_body, rateBytesPerS=1 << 30))["files"], move.files)
        wait_for("resumed", lambda: self.resumes(self.a, move)[0] > 0)
        near.sendall(b"z")
        self.assertEqual(read_exactly(far, 1001), b"x" * 1000 + b"z")
        other, other_far = move.connect()  # and takes new streams
        other.sendall(b"new")
        self.assertEqual(other_far.recv(16), b"new")
        self.a.must("DELETE", f"/v1/sources/{move.key}")
        self.assertEqual(os.listdir(move.src_dir), [], "socket files are left")

    def test_calls_only_wait(self):
        """A node agent that calls all the time gets an answer each time."""
        move = Move(self.lab, self.a, self.b)
        stop, failures, calls = threading.Event(), [], [0]

        def agent():
            while not stop.is_set():
                try:
                    status, reply = self.b.call("PUT", f"/v1/targets/{move.key}", move.target_body)
                    if status != 200 or reply["ports"] != move.answer["ports"]:
                        failures.append((status, reply))
                    calls[0] += 1
                except Exception as e:
                    failures.append(e)
        threads = [threading.Thread(target=agent) for _ in range(4)]
        for t in threads:
            t.start()
        for _ in range(5):
            self.upgrade(self.b)
        stop.set()
        for t in threads:
            t.join(DEADLINE_S)
        self.assertEqual(failures, [])
        self.assertGreater(calls[0], 10)

    def test_new_file_is_run(self):
        """The successor is what lies at the path now, not what was started."""
        marker = os.path.join(self.lab.dir, "was-run")
        with open(self.files["a"] + ".new", "w") as f:
            f.write(f"#!/bin/sh\ntouch {marker}\nexec {self.files['b']} \"$@\"\n")
        os.chmod(self.files["a"] + ".new", 0o755)
        os.chmod(self.lab.dir, 0o777)
        os.replace(self.files["a"] + ".new", self.files["a"])
        self.upgrade(self.a)
        self.assertTrue(os.path.exists(marker))

    def test_file_that_only_root_can_walk_to(self):
        """The relay gave root away, and the file's directory lies where its user may not walk: under /root, say."""
        locked = os.path.join(self.lab.dir, "locked")
        os.makedirs(os.path.join(locked, "bin"), 0o755)
        os.chmod(locked, 0o700)
        program = os.path.join(locked, "bin", "ferry-relay")
        shutil.copy(RELAY, program)
        relay = self.lab.relay("a", program=program).ready()
        self.upgrade(relay)
        self.upgrade(relay)  # by a process that never was root

    def test_sigterm_of_the_successor_drains(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        self.upgrade(self.b)
        os.kill(self.b.pid(), signal.SIGTERM)
        self.b.wait_log("draining")
        near.sendall(b"goes on")
        self.assertEqual(far.recv(16), b"goes on")
        near.close()
        wait_for("ended", lambda: not self.b.alive(), PATIENCE_S)


class States(Upgrades):
    """A stream may be anywhere in its life when its relay is replaced."""

    def link(self, way):
        run("ip", "-n", self.lab.names["b"], "link", "set", "mig", way)

    def test_half_closed(self):
        for relays in ((self.a,), (self.b,), (self.a, self.b)):
            move = Move(self.lab, self.a, self.b)
            near, far = move.connect()
            near.sendall(b"question")
            near.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(far), b"question")
            self.upgrade(*relays)
            far.sendall(b"answer")
            far.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(near), b"answer")
            self.a.streams(0, key=move.key)
            self.b.streams(0, key=move.key)

    def test_away(self):
        move = Move(self.lab, self.a, self.b)
        flows = both_ways(*move.connect())
        self.carries(flows)
        self.link("down")
        try:
            wait_for("away", lambda: self.a.streams(key=move.key)[0]["state"] == "away", PATIENCE_S)
            self.upgrade(self.a, self.b)
            for r in (self.a, self.b):
                self.assertEqual([s["state"] for s in r.streams(key=move.key)], ["away"])
        finally:
            self.link("up")
        self.carries(flows)
        for f in flows:
            f.finish()

    def test_opening(self):
        """The target's host does not answer yet: the source's client waits through the upgrade."""
        move = Move(self.lab, self.a, self.b)
        self.link("down")
        try:
            near = self.lab.connect(move.file(49152))
            near.sendall(b"first words")
            wait_for("connecting", lambda: [s["state"] for s in self.a.streams(key=move.key)] == ["connecting"])
            self.upgrade(self.a)
            self.assertEqual([s["state"] for s in self.a.streams(key=move.key)], ["connecting"])
        finally:
            self.link("up")
        far, _ = move.listeners[49152].accept()
        self.lab.sockets.append(far)
        self.assertEqual(far.recv(64), b"first words")

    def test_target_still_dials(self):
        """The hypervisor's backlog is full: the dial begins anew in the successor."""
        move = Move(self.lab, self.a, self.b)
        listener = move.listeners[49152]
        listener.listen(0)
        fill = []
        while len(fill) < 8:
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            fill.append(s)
            try:
                s.connect(move.paths[49152])
            except BlockingIOError:
                break
        near = self.lab.connect(move.file(49152))
        near.sendall(b"late")
        wait_for("waiting", lambda: self.b.streams(key=move.key))
        self.upgrade(self.b)
        for s in fill:
            s.close()
        while True:
            far, _ = listener.accept()
            far.settimeout(DEADLINE_S)
            self.lab.sockets.append(far)
            if far.recv(16) == b"late":
                break

    def test_closing(self):
        """Its end is under way: the far side gets everything, then the end."""
        data = os.urandom(3 << 20)
        for relays in ((self.a,), (self.b,), (self.a, self.b)):
            move = Move(self.lab, self.a, self.b)
            near, far = move.connect()
            w = threading.Thread(target=lambda: (near.sendall(data), near.close()))
            w.start()
            self.assertTrue(far.recv(1000, socket.MSG_PEEK))
            self.upgrade(*relays)
            got = read_all(far)
            w.join(DEADLINE_S)
            self.assertTrue(got == data, f"{len(got)} of {len(data)} bytes")
            far.close()
            self.a.streams(0, key=move.key)
            self.b.streams(0, key=move.key)

    def test_finished_is_remembered(self):
        """A last word that was lost is said again by the successor, from a tombstone."""
        move = Move(self.lab, self.a, self.b)
        for _ in range(5):
            near, far = move.connect()
            near.sendall(b"all")
            near.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(far), b"all")
            far.shutdown(socket.SHUT_WR)
            os.kill(self.b.pid(), signal.SIGUSR2)
            self.assertEqual(read_all(near), b"")
            self.a.streams(0, key=move.key)
            self.b.streams(0, key=move.key)
        self.assertNotIn(" warning stream closed", self.a.log())


class Failures(Upgrades):
    """No successor, or one that dies: the relay goes on by itself."""

    def replace(self, text):
        with open(self.files["a"] + ".new", "w") as f:
            f.write(text)
        os.chmod(self.files["a"] + ".new", 0o755)
        os.replace(self.files["a"] + ".new", self.files["a"])

    def goes_on(self, *words, resumed=False):
        move = Move(self.lab, self.a, self.b)
        flows = self.flows(move, 2)
        self.carries(flows)
        pid = self.a.pid()
        os.kill(pid, signal.SIGUSR2)
        self.a.wait_log("not upgraded", *words, deadline_s=PATIENCE_S)
        self.assertEqual(self.a.pid(), pid)
        self.carries(flows)
        if not resumed:
            self.assertEqual(self.resumes(self.a, move), [0, 0])  # not even its connections
        near, far = move.connect()
        near.sendall(b"new")
        self.assertEqual(far.recv(16), b"new")
        for f in flows:
            f.finish()

    def test_no_file(self):
        os.unlink(self.files["a"])
        self.goes_on("nothing was stopped", "No such file")

    def test_not_a_program(self):
        self.replace("nonsense")
        self.goes_on("nothing was stopped", "Exec format error")

    def test_it_fails_to_start(self):
        self.replace("#!/bin/sh\necho no such luck >&2\nexit 3\n")
        self.goes_on("nothing was stopped", "it ended with 3")
        self.a.wait_log("no such luck")

    def test_another_version(self):
        self.replace("#!/usr/bin/python3\nimport socket, time\ns = socket.socket(fileno=3)\n"
                     "s.send(b'ready 999')\ntime.sleep(60)\n")
        self.goes_on("nothing was stopped", "it takes states of version 999, this one has version 1")

    def test_it_dies_with_everything(self):
        self.replace("#!/usr/bin/python3\nimport os, socket\ns = socket.socket(fileno=3)\ns.send(b'ready 1')\n"
                     "socket.recv_fds(s, 64, 250)\nsocket.recv_fds(s, 64, 250)\nos.kill(os.getpid(), 9)\n")
        self.goes_on("this process goes on", "successor does not take over")

    def test_it_dies_prepared(self):
        self.replace("#!/usr/bin/python3\nimport os, socket\ns = socket.socket(fileno=3)\ns.send(b'ready 1')\n"
                     "socket.recv_fds(s, 64, 250)\nsocket.recv_fds(s, 64, 250)\ns.send(b'prepared')\n"
                     "s.recv(64)\nos.kill(os.getpid(), 9)\n")
        self.goes_on("this process goes on", "successor does not take over")

    def test_killed_under_way(self):
        """kill -9 of a real successor at any moment before it has taken over."""
        move = Move(self.lab, self.a, self.b)
        flows = self.flows(move, 4)
        self.carries(flows)
        killed = 0
        for i in range(12):
            pid, mark = self.a.pid(), len(self.a.log())
            os.kill(pid, signal.SIGUSR2)
            child = wait_for("a child", lambda: self.child_of(pid) or self.a.pid() != pid, PATIENCE_S)
            # Stopped it cannot become the relay while this looks; before it does, it says so.
            if child is not True:
                time.sleep(0.02 * i)
                killed += self.kill_early(child, mark)
            wait_for("a relay answers", self.a.answers, PATIENCE_S)
            self.carries(flows, 1 << 16)
        for f in flows:
            f.finish()
        self.assertGreater(killed, 0)

    def kill_early(self, child, mark):
        """Whether it was killed; a successor that has the say already lives."""
        try:
            os.kill(child, signal.SIGSTOP)
            early = "takes over" not in self.a.log()[mark:]
            os.kill(child, signal.SIGKILL if early else signal.SIGCONT)
            return early
        except ProcessLookupError:
            return False

    @staticmethod
    def child_of(pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                return next((int(c) for c in f.read().split()), None)
        except FileNotFoundError:
            return None


class Bound(Upgrades):
    """Raw and plain streams stay with the process that has them."""

    def test_raw_streams_end_with_their_process(self):
        move = Move(self.lab, self.a, self.b, tls="raw")
        near, far = move.connect()
        old = self.a.pid()
        self.upgrade(self.a)
        self.a.wait_log("streams without ferry/1 cannot be handed over")
        near.sendall(b"as ever")
        self.assertEqual(far.recv(16), b"as ever")
        other, other_far = move.connect()  # this one is the successor's
        other.sendall(b"new")
        self.assertEqual(other_far.recv(16), b"new")
        self.assertTrue(running(old))
        near.close()
        self.assertTrue(ended(far))
        wait_for("the predecessor ends", lambda: not running(old), PATIENCE_S)

    def test_removing_the_move_reaches_them(self):
        move = Move(self.lab, self.a, self.b, tls="raw")
        near, far = move.connect()
        old = self.a.pid()
        self.upgrade(self.a)
        self.upgrade(self.a)  # it is known over more than one generation
        self.a.must("DELETE", f"/v1/sources/{move.key}")
        self.assertTrue(ended(near) and ended(far))
        wait_for("the predecessor ends", lambda: not running(old), PATIENCE_S)

    def test_second_signal_reaches_them(self):
        move = Move(self.lab, self.a, self.b, tls="raw")
        near, far = move.connect()
        old = self.a.pid()
        self.upgrade(self.a)
        os.kill(self.a.pid(), signal.SIGTERM)
        self.a.wait_log("draining")
        near.sendall(b"x")
        self.assertEqual(far.recv(16), b"x")
        os.kill(self.a.pid(), signal.SIGTERM)
        self.assertTrue(ended(near) and ended(far))
        wait_for("both end", lambda: not running(old) and not self.a.alive(), PATIENCE_S)


need_root()
unittest.main(verbosity=2)
