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

NETNS = "/run/netns"


def netns_mounted():
    """Also when it is mounted over itself, as `ip netns add` does."""
    with open("/proc/self/mountinfo") as f:
        return any(line.split()[4] == NETNS for line in f)


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


def interrupted_up(site, when):
    """`ferry up`, hit by what Ctrl-C is to a terminal's programs, twice, as soon as `when()` is true."""
    up = subprocess.Popen([os.path.join(site.bin, "ferry"), "up", "--root", site.root, "--port", str(site.port)],
                          env=site.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True)
    try:
        wait_for("the instant to press Ctrl-C", when, step=0.001)
        os.killpg(up.pid, signal.SIGINT)
        time.sleep(0.05)
        if up.poll() is None:
            os.killpg(up.pid, signal.SIGINT)
        out, err = up.communicate(timeout=60)
    finally:
        if up.poll() is None:
            up.kill()
    assert up.returncode == 130, (up.returncode, out, err)
    return err


def test_interrupted_up_leaves_nothing(bin_dir):
    site = Site(bin_dir, nodes=2)
    instants = {
        "its directory is made": lambda: os.path.exists(site.root),
        "its network is being made": lambda: namespace_names(site.root),
        "its state is written": lambda: os.path.exists(os.path.join(site.root, "site.json")),
        "its API server has started": lambda: os.path.exists(site.kubeconfig),
    }
    try:
        for name, when in instants.items():
            err = interrupted_up(site, when)
            assert "interrupted" in err and ("has been removed" in err or "before anything" in err), (name, err)
            assert leftovers(site.root) == [], (name, leftovers(site.root))
        # What was there before is not its own to remove.
        os.mkdir(site.root, 0o755)
        interrupted_up(site, instants["its network is being made"])
        assert os.listdir(site.root) == [] and namespace_names(site.root) == []
    finally:
        site.close(False)


def test_up_says_who_cannot_pass(bin_dir):
    """A relay is not root: a directory above the site that its user may not pass is found before anything is made."""
    site = Site(bin_dir, nodes=1)
    failed = True
    try:
        shut = os.path.join(site.base, "shut")
        os.mkdir(shut, 0o700)
        link = os.path.join(site.base, "link")
        os.symlink(shut, link)
        for root in (os.path.join(shut, "deep/s"), os.path.join(link, "s"), shut):
            done = site.ferry("up", "--nodes", "1", "--root", root, "--port", str(site.port), code=2)
            assert f"uid 61200, which may not pass directory {shut} (mode 0700)" in done.stderr, done.stderr
            assert f"chmod o+x {shut}" in done.stderr, done.stderr
            assert os.listdir(shut) == [] and namespace_names(root) == [], os.listdir(shut)
        # What it makes itself is passable, whatever the caller's umask says.
        os.chmod(shut, 0o711)
        old = os.umask(0o077)
        try:
            site.root = os.path.join(shut, "deep/s")
            site.up()
        finally:
            os.umask(old)
        for path in (os.path.join(shut, "deep"), site.root, os.path.join(site.root, "node1")):
            assert os.stat(path).st_mode & 0o001, path
        assert site.down().returncode == 0
        failed = False
    finally:
        site.close(failed)


def test_down_leaves_what_up_did_not_make(bin_dir):
    site = Site(bin_dir, nodes=1)
    failed = True
    try:
        # A file system of its own, and something of somebody else's mounted below.
        os.mkdir(site.root, 0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", site.root], check=True)
        mount = os.stat(site.root)
        mounted = netns_mounted()
        site.up()
        other = os.path.join(site.base, "other")
        os.makedirs(os.path.join(other, "kept"))
        inside = os.path.join(site.root, "node1/a share")
        os.mkdir(inside)
        subprocess.run(["mount", "--bind", other, inside], check=True)
        beside = os.path.join(site.root, "mine")
        os.mkdir(beside)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", beside], check=True)

        # Up again after all of it died: what is mounted stays.
        state = site.state()
        os.kill(state["supervisor"]["pid"], signal.SIGKILL)
        for daemon in state["daemons"]:
            os.kill(daemon["pid"], signal.SIGKILL)
        wait_for("the site to be dead", lambda: not any(os.path.exists(f"/proc/{d['pid']}") for d in state["daemons"]))
        again = site.up()
        assert "up again" in again.stdout, again.stdout
        assert os.path.ismount(site.root) and os.path.ismount(beside) and os.path.ismount(inside)

        down = site.down()
        assert down.returncode == 0 and "stays" in down.stdout, (down.stdout, down.stderr)
        assert os.stat(site.root).st_dev == mount.st_dev, "the root was unmounted"
        assert os.listdir(site.root) == ["mine"] and os.path.ismount(beside), os.listdir(site.root)
        assert os.listdir(other) == ["kept"], "what was mounted in the site lost its files"
        # The place of all network namespaces is as it was, and stays when somebody else made it.
        assert netns_mounted() == mounted and os.path.isdir(NETNS)
        for verb in ("add", "delete"):
            subprocess.run(["ip", "netns", verb, f"other-{os.getpid()}"], check=True)
        assert netns_mounted()
        subprocess.run(["umount", beside], check=True)
        os.rmdir(beside)
        subprocess.run(["umount", site.root], check=True)

        # A plain directory that was there before.
        os.chmod(site.root, 0o751)
        site.up()
        down = site.down()
        assert down.returncode == 0 and "stays" in down.stdout, (down.stdout, down.stderr)
        assert os.listdir(site.root) == [] and os.stat(site.root).st_mode & 0o777 == 0o751
        assert netns_mounted(), "what others need for their namespaces was unmounted"
        # Where there is no site nothing is left, either.
        assert site.down().returncode == 0 and os.listdir(site.root) == []
        open(os.path.join(site.root, "a file"), "w").close()
        site.ferry("up", "--root", site.root, code=2)
        assert os.listdir(site.root) == ["a file"], os.listdir(site.root)
        os.unlink(os.path.join(site.root, "a file"))
        failed = False
    finally:
        for path in ("node1/a share", "mine", ""):
            while os.path.ismount(os.path.join(site.root, path)):
                subprocess.run(["umount", "-l", os.path.join(site.root, path).rstrip("/")], check=True)
        site.close(failed)


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
