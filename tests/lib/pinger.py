"""Pings an address every few milliseconds until standard input closes (or, given a number of seconds, until the first
answer, for at most so long), and prints one JSON line: for each request that was
answered, when it was sent and when the answer came (seconds of the monotonic clock). Runs in a network namespace."""
import json
import os
import select
import socket
import struct
import sys
import time


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


def request(ident, number):
    head = struct.pack("!BBHHH", 8, 0, 0, ident, number & 0xffff)
    return struct.pack("!BBHHH", 8, 0, checksum(head), ident, number & 0xffff)


def main(address, every, seconds=None):
    ident = os.getpid() & 0xffff
    answered, sent, number = [], {}, 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        next_at = time.monotonic()
        until = next_at + (seconds or 0)
        while True:
            ready = select.select([s] if seconds else [s, sys.stdin], [], [], max(0, next_at - time.monotonic()))[0]
            if sys.stdin in ready or (seconds and (answered or time.monotonic() > until)):
                break
            if s in ready:
                packet = s.recv(2048)
                kind, _, _, i, n = struct.unpack("!BBHHH", packet[20:28])
                if kind == 0 and i == ident and n in sent:
                    answered.append((sent.pop(n), time.monotonic()))
            if time.monotonic() >= next_at:
                sent[number & 0xffff] = time.monotonic()
                try:
                    s.sendto(request(ident, number), (address, 0))
                except OSError:
                    pass  # no neighbour yet
                number += 1
                next_at += every
    print(json.dumps(answered), flush=True)


main(sys.argv[1], *map(float, sys.argv[2:]))
