#!/usr/bin/env python3
"""Two hosts that share nothing but a network join a site with tokens, as docs/joining.md has it; a VM moves between them;
a removed host is refused. The hosts are network namespaces with roots of their own."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import wait_for

TAG = f"fj{os.getpid() % 100000}"


def sh(*words, **more):
    return subprocess.run(words, check=True, text=True, **more)


class Hosts:
    def __init__(self, bin_dir, names):
        self.bin = bin_dir
        self.base = tempfile.mkdtemp(prefix="ferry-join-")
        os.chmod(self.base, 0o711)
        self.names = names
        self.processes = []
        self.hub = TAG + "h"
        sh("ip", "netns", "add", self.hub)
        sh("ip", "-n", self.hub, "link", "add", "name", "hub0", "type", "bridge")
        sh("ip", "-n", self.hub, "addr", "add", "10.79.0.1/24", "dev", "hub0")
        for dev in ("lo", "hub0"):
            sh("ip", "-n", self.hub, "link", "set", dev, "up")
        for i, name in enumerate(names):
            ns = self.netns(name)
            sh("ip", "netns", "add", ns)
            sh("ip", "-n", self.hub, "link", "add", f"p{i}", "type", "veth", "peer", "name", "eth0", "netns", ns)
            sh("ip", "-n", self.hub, "link", "set", f"p{i}", "master", "hub0", "up")
            sh("ip", "-n", ns, "addr", "add", f"10.79.0.{11 + i}/24", "dev", "eth0")
            for dev in ("lo", "eth0"):
                sh("ip", "-n", ns, "link", "set", dev, "up")

    def netns(self, name):
        return TAG + name

    def root(self, name):
        return os.path.join(self.base, name)

    def log(self, name):
        return os.path.join(self.base, name + ".log")

    def start(self, ns, log, program, *args):
        with open(self.log(log), "a") as out:
            self.processes.append(subprocess.Popen(["ip", "netns", "exec", ns, os.path.join(self.bin, program), *args],
                                                   stdout=out, stderr=out, start_new_session=True))

    def run(self, ns, *args, stdin=None):
        config = os.path.join(self.root("api"), "var/lib/ferry/admin.kubeconfig")
        return subprocess.run(["ip", "netns", "exec", ns, os.path.join(self.bin, "ferry"), *args], text=True, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, KUBECONFIG=config),
                              timeout=240)

    def ferry(self, *args):
        done = self.run(self.hub, *args)
        assert done.returncode == 0, f"ferry {args}: {done.stdout}{done.stderr}"
        return done.stdout

    def serve(self):
        self.start(self.hub, "api", "ferry-apiserver", "serve", "--root", self.root("api"), "--listen", "10.79.0.1:6443",
                   "--listen", "127.0.0.1:6443")
        config = os.path.join(self.root("api"), "var/lib/ferry/controller.kubeconfig")
        wait_for("the API server", lambda: os.path.exists(os.path.join(self.root("api"), "var/lib/ferry/admin.kubeconfig")) and
                 self.run(self.hub, "node", "list").returncode == 0, 60)
        sh(os.path.join(self.bin, "ferry-apiserver"), "pki", "controller", "--server", "https://127.0.0.1:6443", "--out", config,
           "--data", os.path.join(self.root("api"), "var/lib/ferry"))
        self.start(self.hub, "controller", "ferry-controller", "--kubeconfig", config, "--embedded")

    def join(self, name, token, *more, stdin=None):
        return self.run(self.netns(name), "join", "10.79.0.1:6443", "--node", name, "--root", self.root(name), "--token", token,
                        *more, stdin=stdin)

    def start_node(self, name):
        """What the systemd units do."""
        environment = dict(line.split("=", 1) for line in open(os.path.join(self.root(name), "etc/ferry/node.env")).read().split("\n")
                           if line and not line.startswith("#"))
        assert environment["FERRY_NODE"] == name
        root = ["--root", self.root(name), "--node", name]
        self.start(self.netns(name), name, "ferry-relay", "serve", *root)
        self.start(self.netns(name), name, "ferry-pods", *root)
        self.start(self.netns(name), name, "ferry-handler", *root, "--node-address", environment["FERRY_NODE_ADDRESS"],
                   "--renew-at", "0")  # with every look, so that a move meets it, too

    def certificate(self, name, which):
        with open(os.path.join(self.root(name), "var/lib/ferry/pki", which + ".crt")) as f:
            return f.read()

    def nodes(self):
        return {n["metadata"]["name"]: any(c["type"] == "Ready" and c["status"] == "True" for c in n.get("status", {}).get("conditions", []))
                for n in json.loads(self.ferry("node", "list", "-o", "json"))["items"]}

    def close(self, failed):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for name in self.names + [None]:
            ns = self.netns(name) if name else self.hub
            for pid in subprocess.run(["ip", "netns", "pids", ns], stdout=subprocess.PIPE, text=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", ns])
        if failed:
            for name in os.listdir(self.base):
                if name.endswith(".log"):
                    print(f"--- {name}\n" + "".join(open(os.path.join(self.base, name)).readlines()[-40:]))
        end_sandboxes(self.base)
        shutil.rmtree(self.base, ignore_errors=True)


def end_sandboxes(base):
    for name in os.listdir(base):
        pods = os.path.join(base, name, "run/ferry/pods")
        for uid in os.listdir(pods) if os.path.isdir(pods) else []:
            try:
                os.kill(json.load(open(os.path.join(pods, uid, "sandbox.json")))["child-pid"], signal.SIGKILL)
            except (OSError, ValueError, KeyError):
                pass


def refused(done, *words):
    assert done.returncode != 0, done.stdout
    for word in words:
        assert word in done.stderr, f"'{word}' is not in: {done.stderr}"


def test_join(bin_dir):
    hosts = Hosts(bin_dir, ["one", "two"])
    failed = True
    try:
        hosts.serve()
        check_tokens(hosts)
        joined = {(name, which): hosts.certificate(name, which) for name in hosts.names for which in ("node", "relay")}
        for name in hosts.names:
            hosts.start_node(name)
        wait_for("both nodes to be ready", lambda: hosts.nodes() == {"one": True, "two": True}, 90)
        hosts.ferry("vm", "create", "vm", "--memory", "64Mi", "--wait")
        done = hosts.ferry("migrate", "vm", "--watch")
        assert "moved from" in done, done
        check_renewal(hosts, joined)
        check_removal(hosts)
        hosts.ferry("vm", "delete", "vm", "--wait")
        failed = False
    finally:
        hosts.close(failed)


def check_tokens(hosts):
    token = hosts.ferry("token", "create", "one").strip()
    secret, pin = token.split(":")
    refused(hosts.join("one", secret), "no fingerprint")
    refused(hosts.join("one", f"{secret}:{'0' * 64}"), "another CA")
    refused(hosts.join("one", "nonsense"), "not a token")
    refused(hosts.join("two", token), "not good for joining as this node")
    assert not os.path.exists(os.path.join(hosts.root("two"), "var/lib/ferry/node.kubeconfig"))
    done = hosts.join("one", "-", stdin=token + "\n")
    assert done.returncode == 0 and "has joined" in done.stdout, done.stderr
    pki = os.path.join(hosts.root("one"), "var/lib/ferry/pki")
    for name, mode in (("node.key", 0o600), ("relay.key", 0o600), ("node.crt", 0o644), ("relay.crt", 0o644), ("ca.crt", 0o644)):
        assert os.stat(os.path.join(pki, name)).st_mode & 0o777 == mode, name
    refused(hosts.join("one", token), "not good for joining")  # used up
    assert hosts.join("two", f"{hosts.ferry('token', 'create', 'two').strip()}").returncode == 0
    refused(hosts.run(hosts.hub, "token", "create", "Not_A_Name"), "name for the node")


def check_renewal(hosts, joined):
    """Certificates are replaced while the programs run; keys stay their owners', the node API has the new one, moves go on."""
    for (name, which), old in joined.items():
        wait_for(f"a new certificate of {name}'s {which}", lambda: hosts.certificate(name, which) != old)
        key = os.path.join(hosts.root(name), "var/lib/ferry/pki", which + ".key")
        st = os.stat(key)
        assert (st.st_mode & 0o777, st.st_uid) == (0o600, 0 if which == "node" else 61200), (key, oct(st.st_mode), st.st_uid)
    wait_for("the node API to have the new one", lambda: all("the node API has a new certificate" in open(hosts.log(n)).read()
                                                             for n in hosts.names))
    done = hosts.ferry("migrate", "vm", "--watch")
    assert "moved from" in done, done
    assert all(hosts.nodes().values()), hosts.nodes()


def check_removal(hosts):
    """A node with a VM stays unless forced; a removed one is refused everywhere and may join again."""
    here = next(word for word in hosts.ferry("vm", "list").split() if word in hosts.names)
    other = "two" if here == "one" else "one"
    refused(hosts.run(hosts.hub, "node", "remove", here), "ferry drain")
    refused(hosts.run(hosts.hub, "node", "remove", "three"), "no node 'three'")
    hosts.ferry("node", "remove", other)
    config = os.path.join(hosts.root(other), "var/lib/ferry/node.kubeconfig")
    done = hosts.run(hosts.netns(other), "node", "list", "--kubeconfig", config)
    refused(done, "removed")
    # Nor does it get new ones: what was removed does not renew itself back in.
    stays = hosts.certificate(other, "node")
    wait_for("a renewal to be refused", lambda: "certificates were not renewed" in open(hosts.log(other)).read(), 120)
    assert hosts.certificate(other, "node") == stays


scenario.need_root()
scenario.main(globals())
