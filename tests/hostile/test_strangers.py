#!/usr/bin/env python3
"""Somebody without a certificate at every port: the API server, a node's API, a relay. What they send, and how slowly, they keep
nobody out, and nothing is done for them before it is clear who they are. Each attack has a row in docs/security.md."""
import contextlib
import http.client
import importlib.util
import os
import ssl
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../lib")]
import ferrysite
import scenario
from doorlab import Crowd, Server, Stranger, ask
from ferrysite import wait_for

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JOIN = "/ferry/v1/join"
HUGE = 10**15


def post(path, *headers, body=b"", length=None):
    lines = [f"POST {path} HTTP/1.1", "Host: x", *headers]
    if length is not None or not any(h.startswith("Transfer") for h in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# ---- slowness ------------------------------------------------------------------------------------


def test_they_are_slow(bin_dir):
    """Handshake, headers, a body, or nothing at all: time is counted from the beginning, whatever dribbles in."""
    with Server(bin_dir, "--header-timeout", "2", "--body-timeout", "3") as server:
        watcher = long_watch(server)
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
        for what, tls, text in (("handshake", False, hello), ("headers", True, b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 1000),
                                ("line", True, b"G" * 1000)):
            with contextlib.closing(Stranger(server.port, tls=tls)) as s:
                print(what, s.drip(text), "bytes")
        for tls in (False, True):  # half a handshake, and a whole one: then nothing more
            with contextlib.closing(Stranger(server.port, tls=tls)) as s:
                s.ended()
        slow_body(server)
        server.serves()
        assert watcher.is_open(), "who is known, and waits for what comes, is left alone"
        watcher.close()


def known(server):
    """A connection with the admin's certificate, as bytes."""
    return Stranger(server.port, context=server.api.context)


def long_watch(server):
    version = server.api.call("GET", CONFIGMAPS)[1]["metadata"]["resourceVersion"]
    s = known(server).send(f"GET {CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=600 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    s.s.recv(4096)
    return s


def slow_body(server):
    """Also of somebody who may send it."""
    with contextlib.closing(known(server)) as s:
        s.send(post(CONFIGMAPS, "Content-Type: application/json", length=1000))
        s.drip(b"{" + b" " * 900)


# ---- numbers -------------------------------------------------------------------------------------


def test_they_are_many(bin_dir):
    """More than may be there: the oldest go, of one address or of all; whoever is known does not notice."""
    with Server(bin_dir, "--strangers", "40", "--strangers-per-address", "20", "--header-timeout", "600") as server:
        watcher = long_watch(server)
        one = [Stranger(server.port, tls=False) for _ in range(100)]
        wait_for("those of one address to be no more than it may have", lambda: sum(s.is_open() for s in one) <= 20)
        server.serves()
        many = [Stranger(server.port, tls=False, source=f"127.0.1.{i % 50 + 1}") for i in range(150)]
        wait_for("all of them to be no more than strangers may be", lambda: sum(s.is_open() for s in one + many) <= 40)
        assert many[-1].is_open(), "the youngest stays"
        server.serves()
        assert watcher.is_open()
        for s in [watcher, *one, *many]:
            s.close()


def test_they_fill_all_places(bin_dir):
    """Enough for every place that there is, dripping, and back as soon as they are ended."""
    with Server(bin_dir) as server:
        crowd = Crowd(server.port, 2048, [f"127.0.2.{i + 1}" for i in range(100)])
        try:
            for i in range(50):
                status, answer = server.api.call("POST", CONFIGMAPS, {"metadata": {"name": f"beside-{i}"}})
                assert status == 201, answer
        finally:
            print(f"{crowd.close()} connections, {server.memory_mib():.0f} MiB")


def test_they_were_nodes(bin_dir):
    """A certificate of a node that was removed makes nobody known: its connection gets no more time than others, and no body is read."""
    with Server(bin_dir) as server:
        node = server.node("gone")
        assert node.call("POST", "/api/v1/nodes", {"metadata": {"name": "gone"}})[0] == 201
        assert server.api.call("DELETE", "/api/v1/nodes/gone")[0] == 200
        with contextlib.closing(Stranger(server.port, context=node.context)) as s:
            status, text = s.send(b"GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n").answer()
            assert status == 401 and b"was removed" in text, text
            s.ended()
        refused(*ask(server.port, post(CONFIGMAPS, body=b"{", length=HUGE), context=node.context), CONFIGMAPS)
        server.serves()


# ---- bodies --------------------------------------------------------------------------------------


def test_bodies_before_names(bin_dir):
    """No byte of a body is read of somebody who may not send it, and what would be too large is never taken in."""
    with Server(bin_dir) as server:
        before = server.memory_mib()
        for path in (CONFIGMAPS, "/nope", "/apis/x/y/z", JOIN, "/ferry/v1/renew", "/ferry/v1/backup",
                     "/api/v1/nodes/n1/proxy/v1/pause/a/b", "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b/start"):
            for headers, body, length in ((["Expect: 100-continue"], b"", 1000), ([], b"{", HUGE), ([], b"{" * 60000, 1 << 20)):
                status, text = ask(server.port, post(path, "Content-Type: application/json", *headers, body=body, length=length))
                refused(status, text, path)
        for path in ("/healthz", "/version"):  # open to all, but not for that
            assert ask(server.port, post(path, body=b"{", length=HUGE))[0] == 413
        endless_chunks(server)
        codings(server)
        assert server.memory_mib() - before < 100, (before, server.memory_mib())
        server.serves()


def refused(status, text, path):
    assert b"100 Continue" not in text and status in ((401, 403, 405) if path.startswith("/ferry") else (401,)), (path, text)


def endless_chunks(server):
    with contextlib.closing(Stranger(server.port)) as s:
        sent = 0
        with contextlib.suppress(OSError):
            s.send(post(CONFIGMAPS, "Transfer-Encoding: chunked"))
            while sent < 64 << 20:
                s.send(b"10000\r\n" + bytes(0x10000) + b"\r\n")
                sent += 0x10000
        assert sent < 64 << 20, "nobody stopped it"


def codings(server):
    """Bodies in a coding that nobody here speaks: of strangers refused as any, of others not understood, never unpacked."""
    bomb = b"\x1f\x8b\x08\x00" + bytes(2000)
    for header in ("Content-Encoding: gzip", "Content-Encoding: br", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: banana"):
        assert ask(server.port, post(CONFIGMAPS, header, "Content-Type: application/json", body=bomb))[0] in (0, 400, 401), header
    status, _ = ask(server.port, post(CONFIGMAPS, "Content-Encoding: gzip", "Content-Type: application/json", body=bomb),
                    context=server.api.context)
    assert status in (400, 415), status


def test_bodies_have_a_budget(bin_dir):
    """Large bodies of those who may send them take no more memory than there is for that; some are told to come again."""
    with Server(bin_dir, "--body-memory", "200") as server:
        viewer = server.program("token", "--user", "eve", "--group", "ferry:viewers").strip()
        body = b"[" + b"1," * ((3 << 19) - 10) + b"1]"
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        all_of_it = post(path, "Content-Type: application/json", f"Authorization: Bearer {viewer}", body=body)
        before = server.memory_mib()
        crowd = [Stranger(server.port) for _ in range(32)]
        for s in crowd:  # nearly all of each
            s.send(all_of_it[:-10])
        codes = []
        for s in crowd:
            with contextlib.suppress(OSError):
                s.send(all_of_it[-10:])
        for s in crowd:
            status, text = s.answer()
            codes.append(status)
            assert status != 429 or b"Retry-After: 1" in text, text
            s.close()
        grown = server.memory_mib() - before
        print(f"{grown:.0f} MiB more; {codes.count(429)} of {len(codes)} were to come again")
        assert 0 < codes.count(429) < len(codes) and set(codes) <= {400, 422, 429, 201}, codes
        assert grown < 600, grown  # sanitizers keep what was freed
        server.serves()
        # When others are through there is room; who is told to come again does.
        wait_for("room", lambda: ask(server.port, all_of_it)[0] in (400, 422, 201), 60)


# ---- joining and guessing ------------------------------------------------------------------------


def test_joining(bin_dir):
    """The door where nodes come in: a token first, then at most 32 KiB of JSON."""
    with Server(bin_dir) as server:
        token = server.program("token", "--node", "n1").strip()
        good = f"Authorization: Bearer {token}"
        kind = "Content-Type: application/json"
        for headers, body, code in (([kind], b"{" * 1000, 401), ([kind, good], b" " * 40000, 413), ([kind, good], b"{}", 400),
                                    (["Content-Type: application/yaml", good], b"a: 1", 415),
                                    (["Content-Type: application/vnd.kubernetes.protobuf", good], b"k8s\0", 415),
                                    ([kind, good], b'{"node":"n2"}', 401), ([kind, good], b'{"node":"n1"}', 400)):
            status, text = ask(server.port, post(JOIN, *headers, body=body))
            assert status == code, (headers, body[:20], text)
        server.serves()


def test_guessing(bin_dir):
    """Who has shown too many tokens that are not good is not listened to, not with a good one either; certificates are."""
    with Server(bin_dir) as server:
        good = server.program("token", "--user", "root", "--group", "ferry:admins").strip()

        def show(token, source="127.0.0.1"):
            return ask(server.port, f"GET {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode(), source=source)
        assert show(good)[0] == 200
        codes = [show(f"ferry.{i:010x}." + "0" * 40)[0] for i in range(30)]
        assert codes[:20] == [401] * 20 and set(codes[20:]) == {429}, codes
        status, text = show(good)
        assert status == 429 and b"Retry-After: " in text, text
        assert ask(server.port, post(JOIN, f"Authorization: Bearer {good}", body=b"{}"))[0] == 429
        assert show(good, "127.0.0.9")[0] == 200, "others are not held to account"
        server.serves()


# ---- nonsense ------------------------------------------------------------------------------------


def test_nonsense(bin_dir):
    """What is no HTTP, or hardly: nobody else notices, and no memory is lost to it."""
    with Server(bin_dir, "--header-timeout", "2") as server:
        before = server.memory_mib()
        for text in (b"GET /\r\n\r\n", b"GET\r\n\r\n", b"\0" * 5000, b"\r\n" * 5000, b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50000 + b"\r\n", b"GET /" + b"a" * 500000 + b" HTTP/1.1\r\n\r\n",
                     post(CONFIGMAPS, body=b"", length="-1"), post(CONFIGMAPS, "Content-Length: 1", "Content-Length: 2", length=3),
                     post(CONFIGMAPS, "Transfer-Encoding: chunked", body=b"zz\r\n\r\n"), b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"):
            for tls in (False, True):
                with contextlib.closing(Stranger(server.port, tls=tls)) as s:
                    with contextlib.suppress(OSError):
                        s.send(text)
                        s.s.shutdown(1) if not tls else None  # pylint: disable=expression-not-assigned
                    status, answer = s.answer()
                    assert status < 500 or status == 505, (text[:50], answer)
        pipelined(server)
        odd_tls(server)
        assert server.memory_mib() - before < 100, (before, server.memory_mib())
        server.serves()


def pipelined(server):
    """Thousands of requests whose answers nobody reads: they wait in the sender's own socket."""
    with contextlib.closing(Stranger(server.port)) as s:
        s.s.settimeout(2)
        with contextlib.suppress(OSError):
            for _ in range(2000):
                s.send(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        server.serves()


def odd_tls(server):
    for protocols in (["h2"], ["ferry/1"], ["acme-tls/1"], ["x" * 255] * 100):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(protocols)
        with contextlib.suppress(OSError):  # refused, or spoken to in HTTP/1.1
            status, answer = ask(server.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", context=context)
            assert status in (0, 200), answer
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    try:
        Stranger(server.port, context=old)
        raise AssertionError("TLS 1.1 was spoken")
    except (ssl.SSLError, OSError):
        pass


# ---- a node's API --------------------------------------------------------------------------------


class Handler:
    """ferry-handler of a node, without anything to handle."""

    def __init__(self, server, node):
        self.root = os.path.join(server.base, "root-" + node)
        server.program("pki", "node", node, "--server", f"https://127.0.0.1:{server.port}", "--out", os.path.join(self.root, "var/lib/ferry"))
        self.log = os.path.join(server.base, "handler.log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([os.path.join(server.bin, "ferry-handler"), "--root", self.root, "--node", node, "--node-address",
                                             "127.0.0.1", "--migration-interface", "nonesuch0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.server, self.node = server, node
        self.path = f"/api/v1/nodes/{node}/proxy/healthz"

    def answers(self):
        api = self.server.api
        with contextlib.closing(http.client.HTTPSConnection(api.host, api.port, context=api.context, timeout=60)) as c:
            c.request("GET", self.path)
            return c.getresponse().status == 200

    def port(self):
        node = self.server.api.get("nodes", self.node)
        return node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]

    def close(self, failed):
        self.process.terminate()
        self.process.wait(60)
        if failed:
            print(open(self.log, errors="replace").read()[-4000:])


def test_at_a_node(bin_dir):
    """The same doors at a node's own API: whoever comes through the API server gets in."""
    with Server(bin_dir) as server:
        handler, failed = Handler(server, "h1"), True
        try:
            wait_for("the handler to answer", handler.answers)
            at_a_node(handler)
            by_nodes(handler, server.node("evil").context)
            failed = False
        finally:
            handler.close(failed)


def at_a_node(handler):
    port = handler.port()
    idle = [Stranger(port, tls=False, source=f"127.0.3.{i % 50 + 1}") for i in range(600)]
    for _ in range(10):
        assert handler.answers()
    wait_for("those who say nothing to be fewer than the places", lambda: sum(s.is_open() for s in idle) <= 96)
    for s in idle:
        s.close()
    with contextlib.closing(Stranger(port)) as s:
        s.drip(b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 1000, 0.5)
    for path in ("/v1/pause/a/b", "/nope"):
        for headers, length in ((["Expect: 100-continue"], 1000), ([], HUGE)):
            status, text = ask(port, post(path, *headers, body=b"", length=length))
            assert status == 401 and b"100 Continue" not in text, text
    assert handler.answers()


def by_nodes(handler, context):
    """Another node's certificate gives nothing there, and so no place and no time either."""
    context.check_hostname = False  # the server's certificate is of the name h1
    crowd = []
    for i in range(250):
        with contextlib.suppress(OSError):
            crowd.append(Stranger(handler.port(), source=f"127.0.4.{i % 50 + 1}", context=context))
            crowd[-1].send(b"GET /v1/paths HTTP/1.1\r\nHost: x\r\n\r\n")
    status, text = crowd[-1].answer()
    assert status == 403 and b"only the API server" in text, text
    wait_for("those who may nothing there to be fewer than the places", lambda: sum(s.is_open() for s in crowd) <= 96)
    for _ in range(10):
        assert handler.answers()
    for s in crowd:
        s.close()


# ---- the controller's doors ----------------------------------------------------------------------


def test_at_the_controller(bin_dir):
    """Its webhook and its metrics read no body of somebody whom they do not answer."""
    with Server(bin_dir) as server:
        pki = os.path.join(server.data, "ca")
        kubeconfig, key, cert = (os.path.join(server.base, name) for name in ("controller.kubeconfig", "hook.key", "hook.crt"))
        server.program("pki", "controller", "--out", kubeconfig, "--server", f"https://127.0.0.1:{server.port}")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=hook",
                        "-keyout", key, "-out", cert], check=True, capture_output=True)
        hook, metrics = ferrysite.free_port(), ferrysite.free_port()
        with open(os.path.join(server.base, "controller.log"), "ab") as log:
            controller = subprocess.Popen([os.path.join(server.bin, "ferry-controller"), "--kubeconfig", kubeconfig, "--embedded", "--webhook",
                                           f"127.0.0.1:{hook}", "--webhook-cert", cert, "--webhook-key", key, "--webhook-client-ca",
                                           os.path.join(pki, "ca.crt"), "--metrics", str(metrics)], stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log)
        try:
            for port, tls, path, code in ((hook, True, "/v1/admit/evictions", 403), (metrics, False, "/metrics", 413)):
                wait_for("the controller to listen", lambda port=port, tls=tls: listens(port, tls), 60)
                for headers, length in ((["Expect: 100-continue"], 1000), ([], HUGE)):
                    status, text = ask(port, post(path, *headers, body=b"", length=length), tls=tls)
                    assert status in (code, 413) and b"100 Continue" not in text, (port, text)
        finally:
            controller.terminate()
            controller.wait(60)


def listens(port, tls):
    with contextlib.suppress(OSError):
        return ask(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", tls=tls)[0] == 200
    return False


# ---- a relay -------------------------------------------------------------------------------------


def relay_lab(bin_dir):
    """Of the relay's own tests."""
    os.environ["FERRY_BUILD"] = os.path.dirname(os.path.abspath(bin_dir))
    spec = importlib.util.spec_from_file_location("relaylab", os.path.join(HERE, "../relay/lab.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arriving(relay, key):
    return relay.must("GET", f"/v1/targets/{key}")["arriving"]


def test_at_a_relay(bin_dir):
    """Connections that never prove themselves are no streams, take none's place, and end in time; the rightful one gets through."""
    lab_of = relay_lab(bin_dir)
    lab = lab_of.Lab()
    try:
        relay = lab.relay("b").ready()
        move = lab_of.Move(lab, None, relay, tls="raw")
        host, port = lab_of.ADDRESSES["b"][0], move.port_of[49152]
        crowd = lab.in_netns("a", lambda: [Stranger(port, tls=False, host=host, source="10.91.0.1") for _ in range(600)])
        wait_for("them to be no more than may arrive", lambda: 0 < arriving(relay, move.key) <= 384)
        assert relay.streams(key=move.key) == [] and relay.must("GET", f"/v1/targets/{move.key}")["streams"] == 0
        rightful(lab, lab_of, move, host, port)
        slow = lab.in_netns("a", lambda: Stranger(port, tls=False, host=host, source="10.91.0.1"))
        slow.drip(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
        for s in crowd:
            s.close()
        unproven(lab, lab_of, host, port)
        wait_for("all of them to be gone", lambda: arriving(relay, move.key) == 0)
    finally:
        lab.close()


def rightful(lab, lab_of, move, host, port):
    s = lab.dial_tls("a", host, port, *lab.pki.good("a"), tls="raw")
    s.sendall(b"guest memory")
    far, _ = move.listeners[49152].accept()
    far.settimeout(lab_of.DEADLINE_S)
    assert far.recv(16) == b"guest memory"
    far.close()
    s.close()


def unproven(lab, lab_of, host, port):
    """TLS to its end, but by whom? and other languages."""
    for papers in (None, lab.pki.good("c"), lab.other_pki.bad("other", "a")):
        with contextlib.suppress(OSError):
            s = lab.dial_tls("a", host, port, *(papers or ()), tls="raw")
            assert lab_of.ended(s)
            s.close()
    for text in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(5000), b"\x16\x03\x01\xff\xff" + bytes(70000)):
        s = lab.in_netns("a", lambda: Stranger(port, tls=False, host=host, source="10.91.0.1"))
        with contextlib.suppress(OSError):
            s.send(text)
        s.ended()
        s.close()


scenario.need_root()
scenario.main(globals())
