"""rediswriter.py ADDRESS: writes to a redis over one connection, each write after the last was acknowledged, until its input ends; then reads
all back. Says how many were acknowledged so far ("123", a line each second), and at the end {"acknowledged", "wrong", "longest"}: writes that did
not read back as they were, and the longest wait for an answer in seconds."""
import json
import select
import socket
import sys
import time

PORT, PATIENCE = 6379, 120


def connect(address):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=PATIENCE)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def value(i):
    return f"{i * 2654435761 % (1 << 32):08x}" * 16


def main():
    s = connect(sys.argv[1])
    answers = s.makefile("rb")
    n, longest, told = 0, 0.0, 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        begin = time.monotonic()
        s.sendall(f"SET outside:{n} {value(n)}\r\n".encode())
        answer = answers.readline()
        assert answer == b"+OK\r\n", answer  # the connection outlives the move, or this fails
        n += 1
        longest = max(longest, time.monotonic() - begin)
        if time.monotonic() - told > 1:
            told = time.monotonic()
            print(n, flush=True)
    wrong = 0
    for i in range(n):
        s.sendall(f"GET outside:{i}\r\n".encode())
        size = int(answers.readline()[1:])
        wrong += size < 0 or answers.read(size + 2)[:-2].decode() != value(i)
    print(json.dumps({"acknowledged": n, "wrong": wrong, "longest": round(longest, 3)}), flush=True)


main()
