"""A path to a server that a test can cut: what goes to the forwarder's port goes to another one."""
import contextlib
import socket
import threading


class Forwarder:
    def __init__(self, to_port):
        self.to_port = to_port
        self.lock = threading.Lock()
        self.open = True
        self.pairs = set()
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                inner, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(inner,), daemon=True).start()

    def _serve(self, inner):
        with self.lock:
            if not self.open:
                inner.close()
                return
            try:
                outer = socket.create_connection(("127.0.0.1", self.to_port))
            except OSError:
                inner.close()
                return
            self.pairs.add((inner, outer))
            self.connections += 1
        back = threading.Thread(target=self._copy, args=(outer, inner), daemon=True)
        back.start()
        self._copy(inner, outer)
        back.join()
        with self.lock:
            self.pairs.discard((inner, outer))
        inner.close()
        outer.close()

    @staticmethod
    def _copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for s in (source, sink):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Ends what is connected; who comes is turned away."""
        with self.lock:
            self.open = False
            for pair in self.pairs:
                for s in pair:
                    with contextlib.suppress(OSError):
                        s.shutdown(socket.SHUT_RDWR)

    def mend(self):
        with self.lock:
            self.open = True

    def close(self):
        self.cut()
        self.listener.close()
