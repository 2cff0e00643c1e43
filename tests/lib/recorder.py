"""Records what two libvirts say to each other during moves: FERRY_RECORD=DIR in the environment of a test of tests/vm.

A recorder stands between a target's relay and whatever it would have led to. tools/control-channel makes a summary of DIR.
"""
import os
import socket
import threading

import heartbeat


class Recorder:
    """Listens at `path` and passes all on to `onward`; a directory below `to` for each connection: calls, answers."""

    def __init__(self, path, onward, to, group):
        self.onward, self.to, self.count = onward, to, 0
        directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"/proc/self/fd/{directory}/{os.path.basename(path)}")  # the path may be too long
        os.close(directory)
        self.listener.listen(4)
        os.chown(path, -1, group)
        os.chmod(path, 0o770)
        os.makedirs(to)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            self.count += 1
            server = heartbeat.connect(self.onward)
            server.settimeout(None)
            kept = os.path.join(self.to, str(self.count))
            os.makedirs(kept)
            for name, a, b in (("calls", client, server), ("answers", server, client)):
                threading.Thread(target=self.pump, args=(os.path.join(kept, name), a, b), daemon=True).start()

    @staticmethod
    def pump(name, a, b):
        with open(name, "wb", buffering=0) as f:
            try:
                while data := a.recv(65536):
                    f.write(data)
                    b.sendall(data)
            except OSError:
                pass
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
