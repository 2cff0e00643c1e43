"""A relay is started anew by a service manager that keeps its descriptors: no stream is lost."""
import fcntl
import os
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from flow import both_ways  # noqa: E402
from lab import RELAY, Lab, Move, Relay, ended, need_root, read_all, wait_for  # noqa: E402
from manager_stand_in import Manager  # noqa: E402

PATIENCE_S = 90


class Managed(Relay):
    """A relay whose process is the manager's."""

    def __init__(self, lab, node, room=4096, extra=("--fd-store", "4096")):
        self.lab, self.node = lab, node
        self.root = os.path.join(lab.dir, f"root-{node}-managed")
        self.control = os.path.join(self.root, "run/ferry/relay.sock")
        self.log_path = os.path.join(lab.dir, f"{node}-managed.log")
        crt, key = lab.pki.good(node)
        directory = os.path.join(lab.dir, f"manager-{node}")
        os.mkdir(directory)
        self.manager = Manager(
            directory, ["nsenter", f"--net=/run/netns/{lab.names[node]}", RELAY, "serve", "--root", self.root,
                        "--node", node, "--ca", lab.pki.path("ca.crt"), "--cert", crt, "--key", key, *extra],
            self.log_path, room)
        self.manager.start()
        self.process, self.pids = self.manager.process, {self.manager.pid}

    def close(self):
        self.manager.close()
        if any(word in self.log() for word in ("Sanitizer", "runtime error:")):
            raise AssertionError(self.log())


class Store(unittest.TestCase):
    def setUp(self):
        self.lab = Lab()
        self.addCleanup(self.lab.close)
        self.a, self.b = Managed(self.lab, "a"), Managed(self.lab, "b")
        for r in (self.a, self.b):
            self.addCleanup(r.close)
            wait_for("it answers", r.answers)

    def carries(self, flows, more=1 << 16):
        before = [f.received for f in flows]
        wait_for("bytes flow both ways",
                 lambda: all(f.error or f.received > n + more for f, n in zip(flows, before)), PATIENCE_S)

    def test_restart_while_eight_streams_flow(self):
        move = Move(self.lab, self.a, self.b)
        flows = [f for _ in range(8) for f in both_ways(*move.connect())]
        self.carries(flows)
        for relays in ((self.a,), (self.b,), (self.a, self.b)):
            for r in relays:
                r.manager.stop()
                self.assertGreater(len(r.manager.kept), 8)
            for r in relays:
                r.manager.start()
                self.assertEqual(r.manager.kept, [], "taken out, and nobody gets it again")
            self.carries(flows)
        for f in flows:
            f.finish()
        for f in flows:
            f.sender.close()
        for r in (self.a, self.b):
            r.streams(0, key=move.key)
            self.assertNotIn(" error ", r.log())
            r.wait_log("takes over", "descriptor store", "streams=8")
        self.assertEqual(self.b.must("PUT", f"/v1/targets/{move.key}", move.target_body)["ports"],
                         move.answer["ports"])

    def test_after_an_upgrade(self):
        """The manager follows a successor, and keeps its descriptors as well."""
        move = Move(self.lab, self.a, self.b)
        flows = both_ways(*move.connect())
        self.carries(flows)
        old = self.a.manager.pid
        os.kill(old, signal.SIGUSR2)
        wait_for("MAINPID", lambda: self.a.manager.pid != old, PATIENCE_S)
        self.assertEqual(self.a.pid(), self.a.manager.pid)
        self.carries(flows)
        self.a.manager.restart()
        self.carries(flows)
        for f in flows:
            f.finish()

    def test_a_peer_that_has_left_keeps_its_bytes(self):
        """What a process wrote before it closed its socket still arrives, also out of the store."""
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        os.kill(self.a.pid(), signal.SIGSTOP)  # so that the bytes wait in the socket
        near.sendall(b"last words")
        near.close()
        pid = self.a.manager.pid
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        wait_for("it ends", self.a.manager.gone, PATIENCE_S)
        self.a.manager.start()
        self.assertEqual(read_all(far), b"last words")

    def test_sigint_drains(self):
        move = Move(self.lab, self.a, self.b)
        near, far = move.connect()
        os.kill(self.a.manager.pid, signal.SIGINT)
        self.a.wait_log("draining")
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        near.close()
        wait_for("it ends", self.a.manager.gone, PATIENCE_S)
        self.assertEqual(self.a.manager.kept, [])

    def test_raw_streams_are_waited_for(self):
        raw, ferry = Move(self.lab, self.a, self.b, tls="raw"), Move(self.lab, self.a, self.b)
        near, far = raw.connect()
        flows = both_ways(*ferry.connect())
        os.kill(self.a.manager.pid, signal.SIGTERM)
        self.a.wait_log("streams without ferry/1 cannot be kept")
        near.sendall(b"as ever")
        self.assertEqual(far.recv(16), b"as ever")
        self.carries(flows)
        near.close()
        self.assertTrue(ended(far))
        wait_for("it ends", self.a.manager.gone, PATIENCE_S)
        self.a.manager.start()
        self.carries(flows)
        for f in flows:
            f.finish()

    def test_what_was_kept_is_broken(self):
        """It starts empty, says so, and does not get it again."""
        move = Move(self.lab, self.a, self.b)
        near, _ = move.connect()
        self.a.manager.stop()
        kept = self.a.manager.kept
        name, fd = next(k for k in kept if k[0] == "ferry-state")
        kept.remove((name, fd))
        os.close(fd)
        self.a.manager.start()
        self.a.wait_log(" error ", "what the service manager kept is not complete")
        self.assertEqual(self.a.manager.kept, [])
        self.assertEqual(self.a.must("GET", "/healthz")["sources"], 0)
        self.assertTrue(ended(near))

    def test_another_version(self):
        move = Move(self.lab, self.a, self.b)
        near, _ = move.connect()
        self.a.manager.stop()
        kept = self.a.manager.kept
        name, fd = next(k for k in kept if k[0] == "ferry-state")
        data = bytearray(os.pread(fd, 1 << 24, 0))
        data[11] = 99
        other = os.memfd_create("state", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(other, data)
        fcntl.fcntl(other, 1033, 15)  # F_ADD_SEALS, all of them
        kept[kept.index((name, fd))] = (name, other)
        os.close(fd)
        self.a.manager.start()
        self.a.wait_log(" error ", "state of version 99, this relay knows 1")
        self.assertEqual(self.a.manager.kept, [])
        self.a.must("PUT", f"/v1/sources/{move.key}", move.source_body)
        self.assertTrue(ended(near))


class TooSmall(unittest.TestCase):
    def test_it_drains_instead(self):
        lab = Lab()
        self.addCleanup(lab.close)
        a, b = Managed(lab, "a", extra=("--fd-store", "3")), Managed(lab, "b", extra=())
        for r in (a, b):
            self.addCleanup(r.close)
            wait_for("it answers", r.answers)
        move = Move(lab, a, b)
        near, far = move.connect()
        for r, words in ((a, "do not go into a store for 3"), (b, "draining")):
            os.kill(r.manager.pid, signal.SIGTERM)
            r.wait_log(words)
            r.wait_log("draining")
        near.sendall(b"x")
        self.assertEqual(far.recv(1), b"x")
        near.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(far), b"")
        far.close()
        wait_for("both end", lambda: a.manager.gone() and b.manager.gone(), PATIENCE_S)


need_root()
unittest.main(verbosity=2)
