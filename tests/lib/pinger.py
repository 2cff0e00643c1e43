"""Pings some addresses every few milliseconds until standard input closes (or, given a number of seconds, until the first
answer, for at most so long), and prints one JSON line: "answered", for each address a list of when a request that was
answered was sent and when the answer came; "announced", for each MAC address when it told the network where it is (RARP, as
QEMU does). Seconds of the monotonic clock. Runs in a network namespace."""
import json
import os
import select
import socket
import struct
import sys
import time

RARP = 0x8035


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


def request(ident, number):
    head = struct.pack("!BBHHH", 8, 0, 0, ident, number & 0xffff)
    return struct.pack("!BBHHH", 8, 0, checksum(head), ident, number & 0xffff)


class Pinger:
    def __init__(self, addresses):
        self.addresses = addresses
        self.answered = {a: [] for a in addresses}
        self.announced = {}
        self.ident = os.getpid() & 0xffff
        self.sent = {}
        self.number = 0
        self.icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self.rarp = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(RARP))

    def send(self):
        for address in self.addresses:
            self.sent[self.number & 0xffff] = (address, time.monotonic())
            try:
                self.icmp.sendto(request(self.ident, self.number), (address, 0))
            except OSError:
                pass  # no neighbour yet
            self.number += 1

    def take_answer(self):
        packet = self.icmp.recv(2048)
        kind, _, _, ident, number = struct.unpack("!BBHHH", packet[20:28])
        if kind == 0 and ident == self.ident and number in self.sent:
            address, at = self.sent.pop(number)
            self.answered[address].append((at, time.monotonic()))

    def take_announcement(self):
        frame, where = self.rarp.recvfrom(2048)
        # Once for each announcement: it is seen on the port that it comes in by, and again on others.
        if where[2] == socket.PACKET_BROADCAST or where[2] == socket.PACKET_HOST:
            self.announced.setdefault(frame[6:12].hex(":"), []).append(time.monotonic())

    def run(self, every, seconds):
        next_at = time.monotonic()
        until = next_at + (seconds or 0)
        while True:
            wait = [self.icmp, self.rarp] + ([] if seconds else [sys.stdin])
            ready = select.select(wait, [], [], max(0, next_at - time.monotonic()))[0]
            if sys.stdin in ready or (seconds and (any(self.answered.values()) or time.monotonic() > until)):
                break
            if self.icmp in ready:
                self.take_answer()
            if self.rarp in ready:
                self.take_announcement()
            if time.monotonic() >= next_at:
                self.send()
                next_at += every


def main(addresses, every, seconds=None):
    pinger = Pinger(addresses.split(","))
    pinger.run(float(every), float(seconds) if seconds else None)
    print(json.dumps({"answered": pinger.answered, "announced": pinger.announced}), flush=True)


main(*sys.argv[1:])
