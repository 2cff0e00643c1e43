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
    def __init__(self, bin_dir, names, six=False):
        self.bin = bin_dir
        self.net = "fd79::%d" if six else "10.79.0.%d"
        self.api_at = (f"[{self.net}]:6443" if six else f"{self.net}:6443") % 1
        self.base = tempfile.mkdtemp(prefix="ferry-join-")
        os.chmod(self.base, 0o711)
        self.names = names
        self.processes = []
        self.handlers = {}  # name -> process, address
        self.hub = TAG + "h"
        sh("ip", "netns", "add", self.hub)
        sh("ip", "-n", self.hub, "link", "add", "name", "hub0", "type", "bridge")
        sh("ip", "-n", self.hub, "addr", "add", self.host(1), "dev", "hub0", *self.at_once())
        for dev in ("lo", "hub0"):
            sh("ip", "-n", self.hub, "link", "set", dev, "up")
        for i, name in enumerate(names):
            ns = self.netns(name)
            sh("ip", "netns", "add", ns)
            sh("ip", "-n", self.hub, "link", "add", f"p{i}", "type", "veth", "peer", "name", "eth0", "netns", ns)
            sh("ip", "-n", self.hub, "link", "set", f"p{i}", "master", "hub0", "up")
            sh("ip", "-n", ns, "addr", "add", self.host(11 + i), "dev", "eth0", *self.at_once())
            for dev in ("lo", "eth0"):
                sh("ip", "-n", ns, "link", "set", dev, "up")

    def host(self, number):
        return self.net % number + ("/64" if ":" in self.net else "/24")

    def at_once(self):
        return ["nodad"] if ":" in self.net else []

    def netns(self, name):
        return TAG + name

    def root(self, name):
        return os.path.join(self.base, name)

    def log(self, name):
        return os.path.join(self.base, name + ".log")

    def start(self, ns, log, program, *args):
        with open(self.log(log), "a") as out:
            process = subprocess.Popen(["nsenter", f"--net=/run/netns/{ns}", os.path.join(self.bin, program), *args],
                                       stdout=out, stderr=out, start_new_session=True)
        self.processes.append(process)
        return process

    def end(self, process, sig):
        process.send_signal(sig)
        process.wait(60)
        self.processes.remove(process)

    def run(self, ns, *args, stdin=None):
        config = os.path.join(self.root("api"), "var/lib/ferry/admin.kubeconfig")
        return subprocess.run(["nsenter", f"--net=/run/netns/{ns}", os.path.join(self.bin, "ferry"), *args], text=True, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, KUBECONFIG=config),
                              timeout=240)

    def ferry(self, *args):
        done = self.run(self.hub, *args)
        assert done.returncode == 0, f"ferry {args}: {done.stdout}{done.stderr}"
        return done.stdout

    def serve(self):
        self.start(self.hub, "api", "ferry-apiserver", "serve", "--root", self.root("api"), "--listen", self.api_at,
                   "--listen", "127.0.0.1:6443")
        config = os.path.join(self.root("api"), "var/lib/ferry/controller.kubeconfig")
        wait_for("the API server", lambda: os.path.exists(os.path.join(self.root("api"), "var/lib/ferry/admin.kubeconfig")) and
                 self.run(self.hub, "node", "list").returncode == 0, 60)
        sh(os.path.join(self.bin, "ferry-apiserver"), "pki", "controller", "--server", "https://127.0.0.1:6443", "--out", config,
           "--data", os.path.join(self.root("api"), "var/lib/ferry"))
        self.start(self.hub, "controller", "ferry-controller", "--kubeconfig", config, "--embedded")

    def join(self, name, token, *more, stdin=None):
        return self.run(self.netns(name), "join", self.api_at, "--node", name, "--root", self.root(name), "--token", token,
                        *more, stdin=stdin)

    def kubectl(self, *args):
        config = os.path.join(self.root("api"), "var/lib/ferry/admin.kubeconfig")
        return sh("ip", "netns", "exec", self.hub, "kubectl", "--kubeconfig", config, *args, stdout=subprocess.PIPE, timeout=60).stdout

    def start_node(self, name, address=None):
        """What the systemd units do."""
        environment = dict(line.split("=", 1) for line in open(os.path.join(self.root(name), "etc/ferry/node.env")).read().split("\n")
                           if line and not line.startswith("#"))
        assert environment["FERRY_NODE"] == name and environment["FERRY_NODE_ADDRESS"] == (address or environment["FERRY_NODE_ADDRESS"])
        root = ["--root", self.root(name), "--node", name]
        with open(os.path.join(self.root(name), "etc/ferry/ferry-handler.conf"), "w") as f:  # as an operator may
            f.write("# with every look, so that a move meets it, too\nrenew-at = 0\nnode-address = 192.0.2.1\n")
        self.start(self.netns(name), name, "ferry-relay", "serve", *root)
        self.start(self.netns(name), name, "ferry-pods", *root)
        self.start_handler(name, environment["FERRY_NODE_ADDRESS"])

    def start_handler(self, name, address):
        self.handlers[name] = self.start(self.netns(name), name, "ferry-handler", "--root", self.root(name), "--node", name,
                                         "--node-address", address), address

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


def test_join_ipv6(bin_dir):
    """Everything over IPv6: the API, the nodes' addresses, the paths of moves, the node API behind the API server."""
    hosts = Hosts(bin_dir, ["one", "two"], six=True)
    failed = True
    try:
        hosts.serve()
        for i, name in enumerate(hosts.names):
            token = hosts.ferry("token", "create", name).strip()
            done = hosts.join(name, "-", stdin=token)
            assert done.returncode == 0, done.stderr
            hosts.start_node(name, f"fd79::{11 + i}")
        wait_for("both nodes to be ready", lambda: hosts.nodes() == {"one": True, "two": True}, 90)
        hosts.ferry("vm", "create", "vm", "--memory", "64Mi", "--wait")
        for _ in range(2):
            done = hosts.ferry("migrate", "vm", "--watch")
            assert "moved from" in done, done
            vmi = json.loads(hosts.kubectl("get", "vmi", "vm", "-o", "json"))
            address = vmi["status"]["migrationState"]["targetNodeAddress"]
            assert address in ("fd79::11", "fd79::12"), address
        metrics = hosts.kubectl("get", "--raw", "/api/v1/nodes/one/proxy/metrics")
        assert "ferry_" in metrics, metrics[:300]
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
    wait_for("the node API to have the new one", lambda: all("certificate of the node API renewed" in open(hosts.log(n)).read()
                                                             for n in hosts.names))
    done = hosts.ferry("migrate", "vm", "--watch")
    assert "moved from" in done, done
    assert all(hosts.nodes().values()), hosts.nodes()
    check_interrupted_renewal(hosts, "one", joined["one", "node"])


def check_interrupted_renewal(hosts, name, old):
    """The agent is killed when the new key is in its place and the certificate is not: the next one finishes that, and gets in."""
    process, address = hosts.handlers[name]
    hosts.end(process, signal.SIGKILL)
    crt = os.path.join(hosts.root(name), "var/lib/ferry/pki/node.crt")
    if not os.path.exists(crt + ".new"):  # it was killed at another instant
        os.rename(crt, crt + ".new")
    with open(crt, "w") as f:
        f.write(old)
    before = os.path.getsize(hosts.log(name))
    hosts.start_handler(name, address)
    wait_for("certificates to be renewed again", lambda: b"certificates renewed" in open(hosts.log(name), "rb").read()[before:], 60)
    assert not os.path.exists(crt + ".new") and hosts.certificate(name, "node") != old


def check_other_doors(hosts, here, removed):
    """The removed node's certificates at another node's API and relay: neither lets it in."""
    pki = os.path.join(hosts.root(removed), "var/lib/ferry/pki")
    node = json.loads(hosts.kubectl("get", "node", here, "-o", "json"))
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    address = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")

    def curl(which, url, *more):
        return subprocess.run(["ip", "netns", "exec", hosts.netns(removed), "curl", "-sS", "--max-time", "20", "--cacert", f"{pki}/ca.crt",
                               "--cert", f"{pki}/{which}.crt", "--key", f"{pki}/{which}.key", "-w", "%{http_code}", *more, url],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for which in ("node", "relay"):
        done = curl(which, f"https://{address}:{port}/v1/paths", "--insecure")
        assert done.stdout.endswith("403") or done.stdout.endswith("401") or done.returncode != 0, (which, done.stdout)
    # The relay was told; then not even a move that names the removed node lets it in, nor one of another node.
    wait_for("the relay to be told", lambda: "removed nodes are refused" in open(hosts.log(here)).read(), 60)
    control = os.path.join(hosts.root(here), "run/ferry/relay.sock")
    for source, words in ((here, "names the wrong node"), (removed, "was removed from the site")):
        body = json.dumps({"move": "11111111-1111-4111-8111-111111111111", "generation": 1, "sourceNode": source, "bind": address,
                           "tls": "ferry", "resumeWindowS": 10, "channels": [{"logical": 0, "unix": "/nonexistent/x.sock"}]})
        made = json.loads(sh("curl", "-sS", "--max-time", "20", "--unix-socket", control, "-X", "PUT", "-d", body,
                             "http://relay/v1/targets/test", stdout=subprocess.PIPE).stdout)
        port = next(iter(made["ports"]))
        before = os.path.getsize(hosts.log(here))
        subprocess.run(["ip", "netns", "exec", hosts.netns(removed), "openssl", "s_client", "-connect", f"{address}:{port}", "-alpn",
                        "ferry/1", "-CAfile", f"{pki}/ca.crt", "-cert", f"{pki}/relay.crt", "-key", f"{pki}/relay.key", "-tls1_3"],
                       input="", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)

        def says(since=before, what=words):
            with open(hosts.log(here)) as f:
                f.seek(since)
                return [line for line in f if what in line and f"node '{removed}'" in line]
        wait_for("the relay to refuse it", says, 30)
        sh("curl", "-sS", "--max-time", "20", "--unix-socket", control, "-X", "DELETE", "http://relay/v1/targets/test", stdout=subprocess.PIPE)


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
    check_other_doors(hosts, here, other)
    # Nor does it get new ones: what was removed does not renew itself back in.
    stays = hosts.certificate(other, "node")
    wait_for("a renewal to be refused", lambda: "cannot renew certificates" in open(hosts.log(other)).read(), 120)
    assert hosts.certificate(other, "node") == stays


scenario.need_root()
scenario.main(globals())
