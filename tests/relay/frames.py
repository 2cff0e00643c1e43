"""Frames of ferry/1 as docs/stream-protocol.md has them: a second, small implementation for tests that break its rules."""
import os
import struct

HELLO, HELLO_OK, REFUSED, DATA, ACK, FIN, PING, PONG, RESET = range(1, 10)
NEW, RESUME = 1, 2
# By code, in the words of the relay's log.
REFUSALS = ("", "version", "malformed", "denied", "unknown move", "channel", "known stream", "unknown stream", "stale epoch", "expired",
            "ended", "offset", "unix socket", "busy")
RESETS = ("", "protocol", "unix socket", "cancelled", "resources", "state lost")
WINDOW = 1 << 20


def frame(kind, payload=b"", offset=0, flags=0, reserved=0, length=None):
    return struct.pack(">BBHIQ", kind, flags, reserved, len(payload) if length is None else length, offset) + payload


def hello(move, channel, stream=None, flags=NEW, epoch=1, delivered=0, window=WINDOW, version=1, move_length=None):
    name = move.encode()
    body = struct.pack(">HHIQ16sI", version, len(name) if move_length is None else move_length, channel, epoch,
                       os.urandom(16) if stream is None else stream, window)
    return frame(HELLO, body + name, delivered, flags)


def ack(delivered, window=WINDOW):
    return frame(ACK, struct.pack(">I", window), delivered)


def read_exactly(s, n):
    got = b""
    while len(got) < n:
        piece = s.recv(n - len(got))
        if not piece:
            raise EOFError(f"the connection ended {n - len(got)} bytes before the end of a frame")
        got += piece
    return got


def read_frame(s):
    """(type, flags, offset, payload) of the next frame."""
    kind, flags, _, length, offset = struct.unpack(">BBHIQ", read_exactly(s, 16))
    return kind, flags, offset, read_exactly(s, length)


def read_until(s, *kinds):
    """The next frame of these types; what else comes before is passed over."""
    while True:
        f = read_frame(s)
        if f[0] in kinds:
            return f


def note(payload, names):
    """Name of the code, and the text, of a REFUSED or RESET."""
    return names[struct.unpack(">H", payload[:2])[0]], payload[2:].decode()
