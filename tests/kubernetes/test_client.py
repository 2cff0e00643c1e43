"""src/kube against a real API server: calls (kube_client_test) and the informer (kube_watch) over a path that breaks.
FERRY_ENGINE chooses the engine: kube-apiserver, or ferry-apiserver ("embedded")."""
import concurrent.futures
import contextlib
import os
import re
import subprocess
import threading
import time

import cases
import engine
from cases import VMIS, vmi
from engine import wait_for
from forwarder import Forwarder

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def forwarded(path):
    """The admin's kubeconfig, over this path."""
    e = cases.shared()
    kubeconfig = os.path.join(e.dir, f"forwarded-{path.port}.kubeconfig")
    with open(e.kubeconfig()) as f, open(kubeconfig, "w", opener=lambda p, fl: os.open(p, fl, 0o600)) as out:
        out.write(f.read().replace(e.url, f"https://127.0.0.1:{path.port}"))
    return kubeconfig


def test_calls(bin_dir):
    e = cases.shared(bin_dir)
    admin = e.client()
    cases.add_node(admin, "a")
    cases.add_node(admin, "b")

    def create(i):
        admin.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap",
                                  "metadata": {"name": f"many-{i}", "labels": {"many": "true"}}})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(501)))
    path = Forwarder(e.port)
    done = subprocess.run([os.environ["KUBE_CLIENT_TEST"]], env=dict(os.environ, KUBECONFIG=forwarded(path)), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    path.close()
    print(done.stdout)
    assert done.returncode == 0, f"kube_client_test ended with {done.returncode}"
    # Some hundred calls, on the test's thread and the recorder's.
    assert path.connections <= 4, f"{path.connections} connections: they are not used again"


class Watch:
    """kube_watch on VMIs with these labels, and what it printed."""

    def __init__(self, kubeconfig, labels, plural="virtualmachineinstances", wrap=(), **env):
        self.lines = []
        self.log = ""
        self.process = subprocess.Popen([*wrap, os.environ["KUBE_WATCH"], plural, labels],
                                        env=dict(os.environ, KUBECONFIG=kubeconfig, **env), text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_log)]
        for r in self.readers:
            r.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def _read_log(self):
        for line in self.process.stderr:
            self.log += line

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(20)
        for r in self.readers:
            r.join()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code == 0, f"kube_watch ended with {code}: {self.log}"

    def deltas(self):
        """Without versions, which the test does not choose."""
        return [re.sub(r" \d+$", "", line) for line in self.lines]

    def expect(self, *deltas, seconds=30):
        try:
            wait_for("deltas", lambda: len(self.lines) >= len(deltas), seconds)
        except AssertionError:
            pass
        assert self.deltas() == list(deltas), f"got {self.deltas()}\nexpected {list(deltas)}\n{self.log}"


@contextlib.contextmanager
def watching(labels):
    """A watch through a forwarder."""
    path = Forwarder(cases.shared().port)
    watch = Watch(forwarded(path), labels)
    try:
        yield watch, path
    finally:
        path.mend()
        watch.close()
        path.close()


def make(name, label):
    body = vmi(name)
    body["metadata"]["labels"] = {"watch": label}
    cases.shared().client().create(VMIS, body)


def change(name):
    cases.shared().client().patch(f"{VMIS}/{name}", {"metadata": {"annotations": {"at": str(time.time())}}})


def remove(name):
    cases.shared().client().delete(f"{VMIS}/{name}")


def lists_served():
    """How many lists of VMIs the server answered since it started; None where it does not count them."""
    if cases.shared().kind == "embedded":
        return None
    _, _, text = cases.shared().client().raw("GET", "/metrics", headers={"Accept": "text/plain"})
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.split("\n")
               if line.startswith("apiserver_request_total{") and 'resource="virtualmachineinstances"' in line
               and 'verb="LIST"' in line)


def test_watch(_):
    make("w1", "live")
    with watching("watch=live") as (watch, _path):
        watch.expect("+ default/w1", "synced")
        make("w2", "live")
        make("w3", "other")
        change("w1")
        watch.expect("+ default/w1", "synced", "+ default/w2", "~ default/w1")
        # What no longer fits the selector is gone for those who select by it, and comes back.
        cases.shared().client().patch(f"{VMIS}/w1", {"metadata": {"labels": {"watch": "other"}}})
        remove("w2")
        cases.shared().client().patch(f"{VMIS}/w1", {"metadata": {"labels": {"watch": "live"}}})
        watch.expect("+ default/w1", "synced", "+ default/w2", "~ default/w1", "- default/w1", "- default/w2",
                     "+ default/w1")


def test_resume(_):
    """A broken path: what was missed comes after it, in order, without listing again."""
    make("r1", "resume")
    make("r2", "resume")
    with watching("watch=resume") as (watch, path):
        first = ["+ default/r1", "+ default/r2", "synced"]
        watch.expect(*first)
        lists = lists_served()
        path.cut()
        change("r1")
        make("r3", "resume")
        remove("r2")
        time.sleep(0.5)  # several attempts to come back
        assert watch.deltas() == first, watch.deltas()
        path.mend()
        watch.expect(*first, "~ default/r1", "+ default/r3", "- default/r2")
        assert lists_served() == lists, "resuming must not list"


def test_too_old(_):
    """The server no longer has what happened meanwhile: 410, and a list shows the difference."""
    for name in ("o1", "o2", "o3"):
        make(name, "old")
    with watching("watch=old") as (watch, path):
        first = ["+ default/o1", "+ default/o2", "+ default/o3", "synced"]
        watch.expect(*first)
        path.cut()
        change("o1")
        remove("o2")
        make("o4", "old")
        change("o1")
        cases.shared().restart_apiserver()  # its history begins here
        path.mend()
        watch.expect(*first, "~ default/o1", "+ default/o4", "- default/o2")
        assert lists_served() in (1, None), lists_served()
        assert "too old resource version" in watch.log, watch.log
        change("o3")
        watch.expect(*first, "~ default/o1", "+ default/o4", "- default/o2", "~ default/o3")


def test_server_restarts(_):
    """The server goes away and comes back: nothing is lost, nobody hammers it."""
    make("s1", "restart")
    with watching("watch=restart") as (watch, _path):
        watch.expect("+ default/s1", "synced")
        cases.shared().end("apiserver")
        time.sleep(2)
        interruptions = watch.log.count("watching the API server was interrupted")
        assert 1 <= interruptions <= 8, f"{interruptions} attempts in 2 s\n{watch.log}"
        cases.shared().start_apiserver()
        wait_for("the API server to be back", cases.shared().ready, 90)
        change("s1")
        watch.expect("+ default/s1", "synced", "~ default/s1")


def test_not_installed(_):
    """A kind of another project that this cluster does not have: empty, at once, and quietly."""
    if cases.shared().kind == "embedded":
        return  # it has them all
    watch = Watch(cases.shared().kubeconfig(), "", "storageprofiles")
    try:
        watch.expect("synced")
        time.sleep(2)
        assert watch.log.count("not installed") == 1 and "interrupted" not in watch.log, watch.log
    finally:
        watch.close()


def test_in_cluster(_):
    """A pod: no kubeconfig, a service account in its place, whose token is replaced while it runs."""
    e = cases.shared()
    if e.kind == "embedded" or os.geteuid() != 0:
        return
    with open(e.token_kubeconfig("ferry-handler"), encoding="ascii") as f:
        token = re.search(r"token: *\"?([\w.-]+)", f.read())[1]
    account = os.path.join(e.dir, "account")
    os.makedirs(account, exist_ok=True)
    for name, text in (("token", token), ("namespace", "ferry")):
        with open(os.path.join(account, name), "w", encoding="ascii") as f:
            f.write(text)
    with open(f"{e.pki}/ca.crt", "rb") as f, open(os.path.join(account, "ca.crt"), "wb") as out:
        out.write(f.read())
    make("i1", "cluster")
    mount = ('mount -t tmpfs none /var/run/ && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount && '
             'mount --bind "$0" /var/run/secrets/kubernetes.io/serviceaccount && exec "$@"')
    watch = Watch("/nowhere/kubeconfig", "watch=cluster", wrap=("unshare", "-m", "sh", "-c", mount, account),
                  KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(e.port))
    try:
        watch.expect("+ default/i1", "synced")
        assert "service account of this pod" in watch.log, watch.log
    finally:
        watch.close()


def test_token(_):
    """A service account's token instead of a certificate."""
    e = cases.shared()
    if e.kind == "embedded":
        return  # its tokens are tried in tests/api
    make("t1", "token")
    watch = Watch(e.token_kubeconfig("ferry-handler"), "watch=token")
    try:
        watch.expect("+ default/t1", "synced")
    finally:
        watch.close()
    path = os.path.join(e.dir, "bad-token.kubeconfig")
    engine.write_kubeconfig(path, e.url, f"{e.pki}/ca.crt", {"token": "nonsense"})
    done = subprocess.run([os.environ["KUBE_CLIENT_TEST"]], env=dict(os.environ, KUBECONFIG=path), text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode != 0 and "Unauthorized" in done.stdout, done.stdout


if __name__ == "__main__":
    import scenario
    scenario.main(globals())
