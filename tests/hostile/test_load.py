#!/usr/bin/env python3
"""Strangers fill every place that there is and dribble, others send large bodies without end; meanwhile people, an admin's program and
nodes work, and guests move, and it takes hardly longer than before. It measures time: by ratios of one run, and runs alone."""
import contextlib
import http.client
import math
import os
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.realpath(__file__)), os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib")]
import scenario
from doorlab import ENVIRONMENT, Bodies, Crowd, Server, memory_mib
from ferrysite import Site

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
TURNS, NODES = 60, 4
CROWD, BODIES = 2048, 64
# How many times as long it may take; of some tries the best counts, since other work on the machine only adds. Who comes anew waits for
# those who come at the same moment, and shakes hands on what CPU there is.
MOST = {"a person, each time anew": 4.0, "an admin's program": 2.0, "nodes' leases": 2.0, "a move": 2.0}
TRIES, MOVES = 5, 2
MEMORY_MIB = 800  # with sanitizers, a thread for each connection


class Caller(threading.Thread):
    """Does the same thing again and again; how long each took."""

    def __init__(self, once):
        super().__init__()
        self.once, self.times, self.wrong = once, [], []

    def run(self):
        for i in range(TURNS):
            begin = time.monotonic()
            try:
                self.once(i)
            except (OSError, AssertionError, http.client.HTTPException) as e:
                self.wrong.append(repr(e))
            self.times.append(time.monotonic() - begin)
            time.sleep(0.02)


def kept(api, method, path, body):
    """A call over a connection that stays, as programs make them."""
    connection = http.client.HTTPSConnection(api.host, api.port, context=api.context, timeout=60)

    def once(i):
        connection.request(method, path, body(i), {"Content-Type": MERGE})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
    return once


def fresh(api):
    """A call by a person's program: it comes, asks and goes."""
    def once(_):
        status, answer = api.call("GET", CONFIGMAPS + "/of-admin")
        assert status == 200, answer
    return once


def at_work(callers):
    """Median milliseconds by name, of all of them at once."""
    threads = {name: [Caller(f) for f in fs] for name, fs in callers.items()}
    for t in sum(threads.values(), []):
        t.start()
    for t in sum(threads.values(), []):
        t.join()
    wrong = [w for t in sum(threads.values(), []) for w in t.wrong]
    assert not wrong, (len(wrong), wrong[:3])
    return {name: 1000 * statistics.median(x for t in ts for x in t.times) for name, ts in threads.items()}


def test_answers_beside_it_all(bin_dir):
    with Server(bin_dir) as server:
        viewer = server.program("token", "--user", "eve", "--group", "ferry:viewers").strip()
        nodes = [server.node(f"n{i}") for i in range(NODES)]
        for i, node in enumerate(nodes):
            assert node.call("POST", "/api/v1/nodes", {"metadata": {"name": f"n{i}"}})[0] == 201
            assert node.call("POST", LEASES, {"metadata": {"name": f"n{i}"}, "spec": {}})[0] == 201
        server.api.create("configmaps", {"metadata": {"name": "of-admin"}})
        callers = {
            "a person, each time anew": [fresh(server.api)],
            "an admin's program": [kept(server.api, "PATCH", CONFIGMAPS + "/of-admin", lambda i: f'{{"data":{{"turn":"{i}"}}}}')],
            "nodes' leases": [kept(node, "PATCH", f"{LEASES}/n{i}", lambda turn: f'{{"spec":{{"leaseTransitions":{turn}}}}}')
                              for i, node in enumerate(nodes)],
        }
        at_work(callers)  # all is warm
        compare(lambda: at_work(callers), server.port, viewer)
        bounded(server.memory_mib())


def test_moves_beside_it_all(bin_dir):
    """From the call to the end of the move, as somebody sees it who waits for it."""
    os.environ["ASAN_OPTIONS"] = ENVIRONMENT["ASAN_OPTIONS"]  # memory is measured here, too
    with Site(bin_dir) as site:
        viewer = subprocess.run([os.path.join(site.bin, "ferry-apiserver"), "token", "--user", "eve", "--group", "ferry:viewers",
                                 "--root", os.path.join(site.root, "api")], capture_output=True, text=True, check=True).stdout.strip()
        site.ferry("vm", "create", "vm", "--memory", "64Mi", "--dirty-rate", "4", "--working-set", "16", "--wait")

        def moves():
            return {"a move": min(move(site) for _ in range(MOVES))}

        moves()  # all is warm
        compare(moves, site.port, viewer)
        bounded(memory_mib(site.pid("api")))


def move(site):
    """Milliseconds."""
    begin, before = time.monotonic(), site.node_of("vm")
    assert "moved from" in site.ferry("migrate", "vm", "--watch").stdout
    assert site.node_of("vm") != before
    return 1000 * (time.monotonic() - begin)


def compare(work, port, viewer):
    """What each thing takes, without the load and beside it."""
    best = {}
    for _ in range(TRIES):
        before, beside = work(), beside_it_all(port, viewer, work)
        for name, ms in before.items():
            print(f"{name}: {ms:.1f} ms, beside it all {beside[name]:.1f} ms: {beside[name] / ms:.2f} times", flush=True)
            best[name] = min(best.get(name, math.inf), beside[name] / ms)
        if all(best[name] <= MOST[name] for name in best):
            return
    raise AssertionError(best)


def bounded(mib):
    print(f"VmHWM {mib:.0f} MiB of at most {MEMORY_MIB}")
    assert mib < MEMORY_MIB


def beside_it_all(port, viewer, work):
    with contextlib.closing(Crowd(port, CROWD, [f"127.0.2.{i + 1}" for i in range(100)])) as crowd, \
            contextlib.closing(Bodies(port, BODIES // 2, None)) as strangers, contextlib.closing(Bodies(port, BODIES // 2, viewer)) as known:
        done = work()
    assert crowd.came and strangers.came and known.came, (crowd.came, strangers.came, known.came)
    print(f"{CROWD} connections, ended and come again {crowd.came} times; bodies of 3 MiB: {strangers.came} of strangers, {known.came} of a viewer")
    return done


scenario.need_root()
scenario.main(globals())
