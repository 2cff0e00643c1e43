"""A stand-in for systemd, as far as a service with a descriptor store sees it.

It starts the service with NOTIFY_SOCKET, keeps what comes with FDSTORE=1 under its name (once, as systemd does: not
watched with FDPOLL=0, dropped when its peer hangs up without it), forgets with FDSTOREREMOVE=1, answers BARRIER=1 by
closing the descriptor, follows MAINPID=, and passes what it kept to the next start as LISTEN_FDS and LISTEN_FDNAMES.
"""
import os
import select
import signal
import socket
import subprocess
import threading

from lab import DEADLINE_S, running, wait_for

FIRST_FD = 3


class Manager:
    def __init__(self, directory, argv, log_path, room=4096):
        self.argv, self.room = argv, room
        self.path = os.path.join(directory, "notify.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o777)
        self.log = open(log_path, "ab")
        self.kept, self.words, self.process, self.pid = [], [], None, None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while not self.stopped.is_set():
            if select.select([self.socket], [], [], 0.1)[0]:
                text, fds, _, _ = socket.recv_fds(self.socket, 4096, 250)
                self.take(dict(l.split("=", 1) for l in text.decode().splitlines()), fds)

    def take(self, said, fds):
        self.words.append(said)
        if "MAINPID" in said:
            self.pid = int(said["MAINPID"])
        if said.get("FDSTOREREMOVE") == "1":
            for name, fd in [k for k in self.kept if k[0] == said["FDNAME"]]:
                os.close(fd)
            self.kept = [k for k in self.kept if k[0] != said["FDNAME"]]
        if said.get("FDSTORE") == "1":
            for fd in fds:
                hung_up = said.get("FDPOLL") != "0" and self.has_hung_up(fd)
                if len(self.kept) < self.room and not hung_up:
                    self.kept.append((said.get("FDNAME", "stored"), fd))
                else:
                    os.close(fd)
            return
        for fd in fds:
            os.close(fd)

    @staticmethod
    def has_hung_up(fd):
        p = select.poll()
        p.register(fd, 0)
        return bool(p.poll(0))

    def said(self, word):
        return any(word in w for w in self.words)

    def start(self):
        """The names in an order of the manager's own."""
        kept = sorted(self.kept, key=lambda k: k[0][::-1])
        env = {**os.environ, "NOTIFY_SOCKET": self.path}
        self.words = []

        def before_exec():
            # First out of the way of the numbers that they are to get.
            moved = [os.dup2(fd, 1000 + i) for i, (_, fd) in enumerate(kept)]
            for i, fd in enumerate(moved):
                os.dup2(fd, FIRST_FD + i)
            os.closerange(FIRST_FD + len(moved), 3000)
        if kept:
            env.update(LISTEN_FDS=str(len(kept)), LISTEN_FDNAMES=":".join(name for name, _ in kept))
        self.process = subprocess.Popen(self.argv, env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        close_fds=False, preexec_fn=before_exec)
        self.pid = self.process.pid
        wait_for("it says that it is ready", lambda: self.said("READY") or self.process.poll() is not None)
        return self

    def stop(self, sig=signal.SIGTERM, deadline_s=3 * DEADLINE_S):
        os.kill(self.pid, sig)
        wait_for("it ends", lambda: self.gone(), deadline_s)

    def gone(self):
        self.process.poll()
        return not running(self.pid)

    def restart(self):
        self.stop()
        return self.start()

    def close(self):
        if not self.gone():
            os.kill(self.pid, signal.SIGKILL)
        wait_for("it is gone", self.gone)
        self.process.wait(DEADLINE_S)
        self.stopped.set()
        self.thread.join()
        self.socket.close()
        for _, fd in self.kept:
            os.close(fd)
        self.log.close()
