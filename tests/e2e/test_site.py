#!/usr/bin/env python3
"""A site comes up, heals, and goes away without a trace."""
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, leftovers, namespace_names, wait_for


def host_links():
    return subprocess.run(["ip", "-o", "link"], stdout=subprocess.PIPE, text=True, check=True).stdout.count("\n")


def daemons(site):
    return [d["name"] for d in site.state()["daemons"]]


def ready_nodes(site):
    ready = []
    for node in site.api.list("nodes"):
        for c in node["status"].get("conditions", []):
            if c["type"] == "Ready" and c["status"] == "True":
                ready.append(node["metadata"]["name"])
    return sorted(ready)


def test_up_heal_down(bin_dir):
    links = host_links()
    site = Site(bin_dir, nodes=2)
    failed = True
    try:
        site.up()
        assert host_links() == links, "the host's network namespace got an interface"
        assert len(namespace_names(site.root)) == 3
        assert ready_nodes(site) == ["node1", "node2"]

        again = site.ferry("up", "--root", site.root)
        assert "up already" in again.stdout, again.stdout
        other = site.ferry("up", "--root", site.root, "--nodes", "3", code=2)
        assert "has 2 nodes, not 3" in other.stderr, other.stderr

        for name in daemons(site):
            site.wait_restarted(name, site.kill(name))
        wait_for("the nodes to be ready", lambda: ready_nodes(site) == ["node1", "node2"])

        # A relay that hands over to its successor has not ended.
        relay = site.pid("node1-relay")
        os.kill(relay, signal.SIGUSR2)
        wait_for("the successor of the relay", lambda: site.pid("node1-relay") not in (0, relay))
        with open(os.path.join(site.root, "log/supervisor.log")) as log:
            assert "a successor has taken over name=node1-relay" in log.read()

        # Programs run on without their supervisor, and the next one takes them over.
        before = {name: site.pid(name) for name in daemons(site)}
        old = site.kill("supervisor")
        wait_for("the supervisor to be gone", lambda: not os.path.exists(f"/proc/{old}"))
        assert all(os.path.exists(f"/proc/{pid}") for pid in before.values())
        site.ferry("up", "--root", site.root)
        assert {name: site.pid(name) for name in before} == before
        site.wait_restarted("api", site.kill("api"))
        wait_for("the API to answer", lambda: site.run("list").returncode == 0)

        # Down without a supervisor.
        site.kill("supervisor")
        down = site.down()
        assert down.returncode == 0, down.stderr
        assert "3 network namespaces" in down.stdout, down.stdout
        assert leftovers(site.root) == [], leftovers(site.root)
        twice = site.down()
        assert twice.returncode == 0 and "no site" in twice.stdout, twice
        failed = False
    finally:
        site.close(failed)


def test_interrupted_up_leaves_nothing(bin_dir):
    site = Site(bin_dir, nodes=2)
    try:
        up = subprocess.Popen([os.path.join(site.bin, "ferry"), "up", "--root", site.root, "--port", str(site.port)],
                              env=site.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("the supervisor to start", lambda: os.path.exists(os.path.join(site.root, "site.json")))
        up.send_signal(signal.SIGINT)
        out, err = up.communicate(timeout=60)
        assert up.returncode == 130, (up.returncode, out, err)
        assert leftovers(site.root) == [], leftovers(site.root)
    finally:
        site.close(False)


def test_down_ends_what_the_state_does_not_know(bin_dir):
    """The state file is lost; and a program was started whose pid was never written down."""
    site = Site(bin_dir, nodes=1)
    failed = True
    try:
        site.up()
        stray = subprocess.Popen(["sleep", "1000"], env=dict(os.environ, FERRY_SITE=site.root))
        os.unlink(os.path.join(site.root, "site.json"))
        begin = time.monotonic()
        down = site.down()
        assert down.returncode == 0, down.stderr
        assert stray.wait(10) != 0
        assert time.monotonic() - begin < 60
        assert namespace_names(site.root) == []
        assert [what for what in leftovers(site.root) if what.startswith("process")] == []
        failed = False
    finally:
        site.close(failed)


scenario.need_root()
scenario.main(globals())
