#!/usr/bin/env python3
"""All verbs as a person meets them on a site of two nodes: every format, an empty site, a second run, no permission, Ctrl-C, no server."""
import base64
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, namespace_names, processes, wait_for

LISTS = (("vm", "list"), ("list",), ("node", "list"), ("policy", "list"), ("events",))
SINGLE = (("show", "vm"), ("policy", "show", "calm"))
PATIENCE = 90


def refused(done, code, *words):
    """The call failed with that code, and said so in one line with these words in it, its last: what it waits for may be told before."""
    assert done.returncode == code, f"code {done.returncode}, not {code}: {done.stderr}"
    errors = [line for line in done.stderr.splitlines() if line.startswith("ferry: ")]
    assert len(errors) == 1 and done.stderr.endswith(errors[0] + "\n"), f"not one line at the end: {done.stderr}"
    for word in words:
        assert word in done.stderr, f"'{word}' is not in: {done.stderr}"


def check_empty(site):
    """Nothing is there: said to people, and an empty list to programs."""
    for verb in LISTS:
        if verb in (("node", "list"), ("events",)):
            continue
        done = site.ferry(*verb)
        assert not done.stdout and done.stderr.startswith("No ") and done.stderr.count("\n") == 1, (verb, done)
        answer = json.loads(site.ferry(*verb, "-o", "json").stdout)
        assert answer["kind"] == "List" and answer["items"] == [], answer
        assert "items: []" in site.ferry(*verb, "-o", "yaml").stdout
        done = site.ferry(*verb, "-o", "name")
        assert not done.stdout and not done.stderr, (verb, done)
    done = site.ferry("vm", "list", "-n", "elsewhere")
    assert "elsewhere" in done.stderr, done.stderr


def check_formats(site):
    """Every list and every single thing in every format; what programs get is the object, as kubectl shows it."""
    for verb in LISTS:
        table, wide = site.ferry(*verb).stdout, site.ferry(*verb, "-o", "wide").stdout
        assert table.split("\n")[0].isupper() and len(table.split("\n")) >= 3, (verb, table)
        assert len(wide.split("\n")[0].split()) >= len(table.split("\n")[0].split()), (verb, wide)
        assert not [line for line in (table + wide).split("\n") if line != line.rstrip()], f"{verb}: blanks at the end of a line"
        answer = json.loads(site.ferry(*verb, "-o", "json").stdout)
        assert answer["kind"] == "List" and answer["items"], (verb, answer)
        assert all(item["kind"] and item["metadata"]["name"] for item in answer["items"]), verb
        assert re.search(r"^kind: List$", site.ferry(*verb, "-o", "yaml").stdout, re.M), verb
        names = site.ferry(*verb, "-o", "name").stdout.split()
        assert len(names) == len(answer["items"]) and all("/" in n for n in names), (verb, names)
        refused(site.run(*verb, "-o", "xml"), 2, "'xml'", "json, yaml, name, wide")
        refused(site.run(*verb, "-n"), 2)
    for verb in SINGLE:
        assert json.loads(site.ferry(*verb, "-o", "json").stdout)["metadata"]["name"], verb
        assert re.search(r"^kind: ", site.ferry(*verb, "-o", "yaml").stdout, re.M), verb
        assert site.ferry(*verb, "-o", "name").stdout.count("/") == 1, verb
        refused(site.run(*verb, "-o", "xml"), 2, "'xml'")
    # Names are what kubectl takes.
    for verb in (("vm", "list"), ("list",), ("node", "list"), ("policy", "list")):
        for name in site.ferry(*verb, "-o", "name").stdout.split():
            assert site.kubectl("get", name, "-o", "name").stdout.strip() == name, name
    answer = json.loads(site.ferry("why", "vm", "-o", "json").stdout)
    assert answer["links"] and answer["broken"] is None, answer
    assert "links:" in site.ferry("why", "vm", "-o", "yaml").stdout


def check_twice(site):
    """What is done already is said, and is an error only where it could mean something else."""
    assert "already" in site.ferry("up", "--root", site.root, "--nodes", "2").stdout
    refused(site.run("vm", "create", "vm"), 1, "'vm'", "already")
    refused(site.run("policy", "create", "calm"), 1, "already")
    assert "already" in site.ferry("vm", "start", "vm").stdout
    site.ferry("vm", "pause", "vm", "--wait")
    assert "already" in site.ferry("vm", "pause", "vm").stdout
    site.ferry("vm", "unpause", "vm", "--wait")
    assert "already" in site.ferry("vm", "unpause", "vm").stdout
    move = site.ferry("list", "-o", "name").stdout.split()[-1].rpartition("/")[2]
    refused(site.run("cancel", move), 1, "over already")
    refused(site.run("cancel", "vm"), 1, "no running move")
    for _ in range(2):
        assert "takes virtual machines again" in site.ferry("undrain", "node1").stdout
    refused(site.run("vm", "delete", "nobody"), 1, "'nobody'", "ferry vm list")
    refused(site.run("policy", "delete", "nobody"), 1, "'nobody'")
    refused(site.run("node", "remove", "nobody"), 1, "'nobody'")
    refused(site.run("vm", "pause", "nobody"), 1, "'nobody'", "ferry vm list")


@contextlib.contextmanager
def viewer(site):
    """A kubeconfig of somebody who may look."""
    path = os.path.join(site.base, "viewer.kubeconfig")
    data = os.path.join(site.root, "api/var/lib/ferry")
    key, csr, crt, ext = (os.path.join(site.base, "viewer." + e) for e in ("key", "csr", "crt", "ext"))
    with open(ext, "w", encoding="utf8") as f:
        f.write("extendedKeyUsage=clientAuth\n")
    ca = os.path.join(data, "ca")
    for args in (("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=ferry:viewers/CN=visitor",
                  "-keyout", key, "-out", csr),
                 ("x509", "-req", "-in", csr, "-CA", os.path.join(ca, "ca.crt"), "-CAkey", os.path.join(ca, "ca.key"), "-CAcreateserial",
                  "-CAserial", os.path.join(site.base, "serial"), "-days", "1", "-extfile", ext, "-out", crt)):
        done = subprocess.run(["openssl", *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    with open(path, "w", encoding="utf8") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{site.port}",
                                                          "certificate-authority": os.path.join(ca, "ca.crt")}}],
                   "users": [{"name": "u", "user": {"client-certificate": crt, "client-key": key}}]}, f)
    admin, site.kubeconfig = site.kubeconfig, path
    try:
        yield
    finally:
        site.kubeconfig = admin


def check_no_permission(site):
    """Somebody who may only look can look, and is told so when it is more."""
    with viewer(site):
        for verb in (*LISTS, ("show", "vm"), ("why", "vm"), ("watch", "--once"), ("migrate", "vm", "--help")):
            site.ferry(*verb)
        move = site.ferry("list", "-o", "name").stdout.split()[-1].rpartition("/")[2]
        assert "Rounds:" in site.ferry("show", move).stdout
        for verb in (("vm", "create", "other"), ("vm", "delete", "vm"), ("vm", "stop", "vm"), ("vm", "pause", "vm"), ("vm", "console", "vm", "--once"),
                     ("migrate", "vm"), ("migrate", "vm", "--dry-run"), ("plan", "vm"), ("drain", "node1"), ("undrain", "node1"),
                     ("policy", "create", "other"), ("policy", "delete", "calm"), ("token", "create", "host"), ("node", "remove", "node2", "--force")):
            done = site.run(*verb)
            refused(done, 1, "may not do this")
            assert "visitor" in done.stderr or "cannot" in done.stderr or "forbidden" in done.stderr.lower(), (verb, done.stderr)
    assert not site.api.get("nodes", "node1")["spec"].get("unschedulable") and site.api.get("nodes", "node2")
    assert len(json.loads(site.ferry("vm", "list", "-o", "json").stdout)["items"]) == 1


def spoken(process):
    return bool(select.select([process.stdout, process.stderr], [], [], 0)[0])


def interrupted(site, *args, when=None):
    """Ctrl-C when `when()` is true, or the verb has said something: code 130, one line that says so."""
    process = subprocess.Popen([os.path.join(site.bin, "ferry"), *args], env=site.environment(), stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for(f"ferry {' '.join(args)} to be under way", lambda: process.poll() is not None or (when() if when else spoken(process)), PATIENCE)
        assert process.poll() is None, f"ferry {' '.join(args)} has ended: {process.communicate()}"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, (args, process.returncode, out, err)
    said = [line for line in (out + err).split("\n") if "interrupted" in line or "go on" in line or "goes on" in line]
    assert said and "Traceback" not in err and "Sanitizer" not in err, (args, out, err)
    return out + err


def shape(site, mbit):
    fabric = next(n for n in namespace_names(site.root) if n.endswith("-fabric"))
    for i in range(1, site.nodes + 1):
        subprocess.run(["tc", "-n", fabric, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", f"{mbit}mbit", "burst", "64k",
                        "latency", "50ms"], check=True)


def moving(site):
    return [m for m in site.api.list("virtualmachineinstancemigrations") if m.get("status", {}).get("phase") == "Running"]


def over(site):
    return all(m.get("status", {}).get("phase") in ("Succeeded", "Failed") for m in site.api.list("virtualmachineinstancemigrations"))


def check_ctrl_c(site):
    """It ends the watching; what was asked for goes on."""
    shape(site, 20)
    interrupted(site, "migrate", "vm", "--watch", when=lambda: moving(site))
    for more in ((), ("--dry-run",)):
        refused(site.run("migrate", "vm", *more), 1, "in-flight migration detected", "'ferry watch vm'", "'ferry cancel vm'")
    interrupted(site, "watch")
    interrupted(site, "watch", "vm")
    assert moving(site), "the move has ended with the watching"
    source = site.node_of("vm")
    launcher = next(pid for pid, command in processes() if re.match(r"\S*ferry-launcher ", command) and site.owns(pid, source))
    os.kill(launcher, signal.SIGSTOP)
    try:
        interrupted(site, "cancel", "vm", "--wait", when=lambda: [m for m in moving(site) if "deletionTimestamp" in m["metadata"]])
    finally:
        os.kill(launcher, signal.SIGCONT)
    wait_for("the cancel to come through all the same", lambda: over(site), PATIENCE)
    interrupted(site, "drain", source, when=lambda: moving(site))
    assert moving(site) and site.api.get("nodes", source)["spec"]["unschedulable"]
    shape(site, 2000)
    wait_for("the drain to go on", lambda: site.node_of("vm") != source and over(site), PATIENCE)
    site.ferry("undrain", source)
    interrupted(site, "vm", "create", "huge", "--memory", "512Gi", "--wait", when=lambda: site.api.vmi("huge"))
    site.ferry("vm", "delete", "huge", "--wait")
    done = site.run("vm", "create", "huge", "--memory", "512Gi", "--wait", "--timeout", "2")
    refused(done, 1, "waited too long", "ferry events")
    site.ferry("vm", "delete", "huge", "--wait")


def check_no_server(site):
    """The API server stands still, or is not there: said within a bounded time, with what to do."""
    pid = site.pid("api")
    os.kill(pid, signal.SIGSTOP)
    try:
        for verb in (("vm", "list"), ("migrate", "vm"), ("why", "vm")):
            refused(site.run(*verb, timeout=PATIENCE), 1, "does the API server run?")
    finally:
        os.kill(pid, signal.SIGCONT)
    site.ferry("vm", "list")
    refused(site.run("vm", "list", "--kubeconfig", os.path.join(site.base, "none")), 1, os.path.join(site.base, "none"))
    os.chmod(site.base, 0o755)  # a file that is another user's
    mine = os.path.join(site.base, "mine")
    with open(mine, "w", encoding="utf8", opener=lambda p, f: os.open(p, f, 0o600)):
        pass
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", os.path.join(site.bin, "ferry"), "vm", "list"],
                          env=dict(site.environment(), KUBECONFIG=mine), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    refused(done, 1, mine, "may not be read by this user", "--kubeconfig")
    broken = os.path.join(site.base, "broken")
    with open(broken, "w", encoding="utf8") as f:
        f.write("apiVersion: v1\nkind: Config\nclusters: [\n")
    refused(site.run("vm", "list", "--kubeconfig", broken), 1, broken)
    # Another site's CA: nobody said anything about the user.
    stranger = os.path.join(site.base, "stranger")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=stranger",
                    "-keyout", stranger + ".key", "-out", stranger + ".crt"], check=True, capture_output=True)
    with open(stranger + ".crt", "rb") as ca, open(site.kubeconfig, encoding="utf8") as mine, open(stranger, "w", encoding="utf8") as out:
        out.write(re.sub(r"certificate-authority-data: \S+", "certificate-authority-data: " + base64.b64encode(ca.read()).decode(), mine.read()))
    done = site.run("vm", "list", "--kubeconfig", stranger)
    refused(done, 1, "certificate problem", "do not fit")
    assert "may not" not in done.stderr, done.stderr


def test_operator(bin_dir):
    with Site(bin_dir) as site:
        check_empty(site)
        site.ferry("vm", "create", "vm", "--memory", "96Mi", "--working-set", "16", "--wait")
        site.ferry("policy", "create", "calm", "--vm-label", "app=calm")
        wait_for("it to be movable", lambda: site.run("migrate", "vm", "--dry-run").returncode == 0, PATIENCE)
        site.ferry("migrate", "vm", "--watch")
        for check in (check_formats, check_twice, check_no_permission, check_ctrl_c, check_no_server):
            check(site)
            print(f"ok     {check.__name__}", flush=True)
        site.ferry("vm", "delete", "vm", "--wait")
        assert site.down().returncode == 0 and site.down().returncode == 0


scenario.need_root()
scenario.main(globals())
