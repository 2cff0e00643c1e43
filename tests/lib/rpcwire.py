"""libvirt's RPC as bytes: messages, typed parameters, and the arguments of a move's two large calls.

Used by the recorder (recorder.py) and by tests that speak to the control channel's filter themselves.
"""
import socket
import struct

REMOTE, QEMU, KEEPALIVE = 0x20008086, 0x20008087, 0x6b656570
CALL, REPLY, MESSAGE, STREAM = 0, 1, 2, 3
OPEN, CLOSE, CAPABILITIES, FEATURE, AUTH_LIST, GET_URI = 1, 2, 7, 60, 66, 110
PREPARE3, FINISH3, REGISTER_CLOSE, UNREGISTER_CLOSE, COMPARE_CPU = 303, 306, 360, 361, 393
NAMES = {OPEN: "connect open", CLOSE: "connect close", CAPABILITIES: "connect get capabilities",
         FEATURE: "connect supports feature", AUTH_LIST: "auth list", GET_URI: "connect get URI",
         PREPARE3: "domain migrate prepare3 params", FINISH3: "domain migrate finish3 params",
         REGISTER_CLOSE: "connect register close callback", UNREGISTER_CLOSE: "connect unregister close callback",
         COMPARE_CPU: "connect compare hypervisor CPU"}
INT, UINT, LLONG, ULLONG, DOUBLE, BOOLEAN, STRING = range(1, 8)
HEADER = struct.Struct(">IIIiIII")


def message(program, procedure, kind, serial, payload=b"", status=0, version=1):
    return HEADER.pack(HEADER.size + len(payload), program, version, procedure, kind, serial, status) + payload


def opaque(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack(">I", len(data)) + data + b"\0" * (-len(data) % 4)


def optional(text):
    return struct.pack(">I", 0) if text is None else struct.pack(">I", 1) + opaque(text)


def params(items):
    """`items`: (name, type, value)..."""
    out = struct.pack(">I", len(items))
    for name, kind, value in items:
        out += opaque(name) + struct.pack(">I", kind)
        out += opaque(value) if kind == STRING else struct.pack(">Q" if kind in (LLONG, ULLONG) else ">I", value)
    return out


def prepare(items, cookie, flags):
    return params(items) + opaque(cookie) + struct.pack(">I", flags)


def finish(items, cookie, flags, cancelled=0):
    return prepare(items, cookie, flags) + struct.pack(">i", cancelled)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def unpack(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values[0]

    def opaque(self):
        n = self.unpack("I")
        data = self.data[self.at:self.at + n]
        self.at += n + -n % 4
        return data

    def optional(self):
        return self.opaque() if self.unpack("I") else None

    def params(self):
        found = []
        for _ in range(self.unpack("I")):
            name, kind = self.opaque().decode(), self.unpack("I")
            value = self.opaque() if kind == STRING else self.unpack("Q" if kind in (LLONG, ULLONG) else "I")
            found.append((name, kind, value))
        return found


def read_migrate(payload):
    """(parameters, cookie, flags) of a prepare or a finish."""
    r = Reader(payload)
    return r.params(), r.opaque(), r.unpack("I")


def read_error(payload):
    """What an error reply says: {code, domain, message, str2}."""
    r = Reader(payload)
    code, domain, text, _, dom = r.unpack("i"), r.unpack("i"), r.optional(), r.unpack("i"), r.unpack("I")
    assert dom == 0
    r.optional()
    str2 = r.optional()
    return {"code": code, "domain": domain, "message": (text or b"").decode(), "str2": (str2 or b"").decode()}


class Splitter:
    """Whole messages out of a stream of bytes."""

    def __init__(self):
        self.data = b""

    def feed(self, data):
        self.data += data
        while len(self.data) >= 4:
            n = struct.unpack_from(">I", self.data)[0]
            if len(self.data) < n:
                return
            yield self.data[:n]
            self.data = self.data[n:]


class Client:
    """A source's libvirt, or what pretends to be one."""

    def __init__(self, path, timeout=20):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.serial = 0
        self.splitter = Splitter()
        self.waiting = []

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def receive(self):
        """(header, payload) of the next message; None when the stream is over."""
        while not self.waiting:
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.waiting += self.splitter.feed(data)
        whole = self.waiting.pop(0)
        return HEADER.unpack_from(whole), whole[HEADER.size:]

    def call(self, procedure, payload=b"", program=REMOTE, **kwargs):
        """(status, payload) of the answer; None when there is none."""
        self.serial += 1
        self.send(message(program, procedure, CALL, self.serial, payload, **kwargs))
        while True:
            got = self.receive()
            if got is None:
                return None
            if got[0][4] == REPLY and got[0][5] == self.serial:
                return got[0][6], got[1]

    def open(self, uri="qemu:///session"):
        assert self.call(AUTH_LIST)[0] == 0
        return self.call(OPEN, optional(uri) + struct.pack(">I", 0))
