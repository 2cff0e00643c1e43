"""deploy/kubernetes as a real API server takes it, and ferry-controller run as its manifest says: in a sandbox like its pod."""
import base64
import glob
import json
import os
import shutil
import socket
import subprocess

import cases
from cases import PODS, VMIS, engine
from engine import MANIFESTS, free_port, wait_for

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def documents(e, path):
    """The objects of a manifest, as kubectl reads it."""
    out = e.kubectl("create", "--dry-run=client", "--validate=ignore", "-o", "json", "-f", path).stdout
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(out.rstrip()):
        value, at = decoder.raw_decode(out, at)
        found += value["items"] if value["kind"] == "List" else [value]
        at += len(out[at:]) - len(out[at:].lstrip())
    return found


def test_all_are_taken(_):
    """Every file, with fields that the server does not know refused."""
    e = cases.shared()
    files = sorted(glob.glob(os.path.join(MANIFESTS, "**/*.yaml"), recursive=True))
    assert any(f.endswith("/controller.yaml") for f in files), files
    for path in files:
        with open(path) as f:
            text = f.read().replace("CA_BUNDLE", base64.b64encode(b"x").decode())
        if "webhook" in path:  # the server looks into the bundle
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
                            "/CN=x", "-keyout", f"{e.dir}/x.key", "-out", f"{e.dir}/x.crt"], check=True, stderr=subprocess.DEVNULL)
            with open(f"{e.dir}/x.crt", "rb") as f:
                text = text.replace(base64.b64encode(b"x").decode(), base64.b64encode(f.read()).decode())
        e.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


def make_secret(e):
    """As README.md beside the manifests has it."""
    crt, key = f"{e.dir}/tls.crt", f"{e.dir}/tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365", "-subj",
                    "/CN=ferry-webhook", "-addext", "subjectAltName=DNS:ferry-webhook.ferry.svc", "-keyout", key, "-out", crt],
                   check=True, stderr=subprocess.DEVNULL)
    e.kubectl("-n", "ferry", "create", "secret", "tls", "ferry-webhook", "--cert", crt, "--key", key)


def mount_all(e, spec, container):
    """Directories with what kubelet would mount: secrets, and the service account's token; as words for bubblewrap."""
    words = []
    for mount in container["volumeMounts"]:
        [volume] = [v for v in spec["volumes"] if v["name"] == mount["name"]]
        secret = e.client().get(f"/api/v1/namespaces/ferry/secrets/{volume['secret']['secretName']}")
        words += ["--ro-bind", put(e, "secret-" + mount["name"], {k: base64.b64decode(v) for k, v in secret["data"].items()}),
                  mount["mountPath"]]
    token = e.kubectl("-n", "ferry", "create", "token", spec["serviceAccountName"]).stdout.strip()
    config = json.loads(e.kubectl("config", "view", "--raw", "-o", "json").stdout)
    ca = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
    return words + ["--ro-bind", put(e, "account", {"token": token.encode(), "ca.crt": ca, "namespace": b"ferry"}), ACCOUNT]


def put(e, name, files):
    path = os.path.join(e.dir, name)
    os.makedirs(path)
    for file, data in files.items():
        with open(os.path.join(path, file), "wb") as f:
            f.write(data)
    return path


def parents(words):
    """Bubblewrap makes missing directories for root alone; kubelet makes them for all."""
    places = {os.path.dirname(words[i + 2]) for i in range(0, len(words), 3)}
    every = sorted({p[:i] for p in places for i in range(1, len(p) + 1) if i == len(p) or p[i] == "/"})
    return [w for p in every for w in ("--perms", "0755", "--dir", p)]


def run_container(e, bin_dir, deployment, port):
    spec = deployment["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    user = spec["securityContext"]
    program = os.path.join(e.dir, container["command"][0])
    shutil.copy(os.path.join(bin_dir, container["command"][0]), program)
    os.chmod(e.dir, 0o711)
    args = [a.replace("0.0.0.0:9443", f"127.0.0.1:{port}") for a in container["args"]]
    assert args != container["args"], args
    mounts = ["--ro-bind", program, "/app/" + container["command"][0], *mount_all(e, spec, container)]
    host, api_port = e.url.split("//")[1].split(":")
    e.spawn("pod", "bwrap", "--die-with-parent", "--unshare-pid", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
            "--symlink", "usr/lib64", "/lib64", *parents(mounts), "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc",
            "--dev", "/dev", *mounts, "--remount-ro", "/", "--clearenv",
            "--setenv", "PATH", "/app:/usr/bin", "--setenv", "KUBERNETES_SERVICE_HOST", host, "--setenv", "KUBERNETES_SERVICE_PORT", api_port,
            "setpriv", "--reuid", str(user["runAsUser"]), "--regid", str(user["runAsGroup"]), "--clear-groups", "--no-new-privs",
            "--bounding-set=-all", *container["command"], *args)


def test_the_controller_runs(bin_dir):
    """It takes the lease, makes the pod of a VMI, and its probe finds the port open; with nothing but what its pod has."""
    engine.need("kubernetes")
    e = cases.shared()
    make_secret(e)
    [deployment] = [d for d in documents(e, os.path.join(MANIFESTS, "controller/controller.yaml")) if d["kind"] == "Deployment"]
    port = free_port()
    run_container(e, os.path.abspath(bin_dir), deployment, port)
    try:
        def lease():
            found = e.client().get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ferry-controller")
            return e.alive("pod") and found and found["spec"].get("holderIdentity")
        wait_for("it to take the lease", lease, 60)
        e.client().create(VMIS, cases.vmi("first"))
        wait_for("the pod of a VMI", lambda: e.alive("pod") and e.client().list(PODS), 60)
        with socket.create_connection(("127.0.0.1", port), 10):
            pass
        print(e.log("pod")[:600])
    except BaseException:
        print(e.log("pod"))
        raise
    finally:
        e.end("pod")


if __name__ == "__main__":
    import scenario
    if os.geteuid() != 0:
        print("skipped: sandboxes need root")
        raise SystemExit(77)
    scenario.main(globals())
