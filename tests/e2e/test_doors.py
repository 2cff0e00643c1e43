#!/usr/bin/env python3
"""Wrong input at each door gets one clear sentence and a non-zero exit."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, leftovers, wait_for


def refused(done, code, *words):
    """The call failed with that code, and said so in one line with these words in it."""
    text = done.stderr.strip()
    assert done.returncode == code, f"code {done.returncode}, not {code}: {text}"
    assert len(text.splitlines()) == 1, f"not one line: {text}"
    assert text.startswith("ferry: "), text
    for word in words:
        assert word in text, f"'{word}' is not in: {text}"


def test_calls_without_a_site(bin_dir):
    site = Site(bin_dir)
    try:
        refused(site.run(), 2, "needs a verb")
        refused(site.run("migrat"), 2, "did you mean 'ferry migrate'")
        refused(site.run("frobnicate"), 2, "ferry --help")
        refused(site.run("vm", "crate"), 2, "did you mean 'ferry vm create'")
        refused(site.run("up", "--nodes", "9"), 2, "--nodes: 9", "1 to 8")
        refused(site.run("up", "--nodes", "many"), 2, "--nodes", "many")
        refused(site.run("up", "--port"), 2, "--port")
        refused(site.run("up", "--root", "/"), 2, "--root")
        refused(site.run("migrate"), 2, "name of a virtual machine is missing")
        refused(site.run("vm", "create", "Bad_Name"), 2, "'Bad_Name'")
        refused(site.run("vm", "create", "x", "--memory", "12parsecs"), 2, "--memory", "12parsecs")
        refused(site.run("vm", "create", "x", "--working-set", "500"), 2, "--working-set", "500 MiB")
        refused(site.run("list", "-o", "xml"), 2, "xml")
        refused(site.run("list"), 1, site.kubeconfig)
        refused(site.run("list", "--kubeconfig", "/nowhere/config"), 1, "/nowhere/config")
    finally:
        site.close(False)


def test_no_root(bin_dir):
    site = Site(bin_dir)
    try:
        os.chmod(site.base, 0o755)
        for verb in ("up", "down"):
            done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                                   os.path.join(site.bin, "ferry"), verb, "--root", site.root], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            refused(done, 1, "only root may do")
    finally:
        site.close(False)


def test_missing_tool(bin_dir):
    """What no virtual machine runs without is missed before anything is made."""
    site = Site(bin_dir)
    try:
        tools = os.path.join(site.base, "tools")
        os.mkdir(tools)
        os.symlink(shutil.which("ip"), os.path.join(tools, "ip"))
        done = subprocess.run([os.path.join(site.bin, "ferry"), "up", "--root", site.root, "--port", str(site.port)],
                              env=dict(site.environment(), PATH=tools), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        refused(done, 1, "no bwrap", "bubblewrap", "scripts/setup")
        assert not os.path.exists(site.root)
    finally:
        site.close(False)


def test_port_taken(bin_dir):
    site = Site(bin_dir)
    try:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", site.port))
            taken.listen()
            refused(site.run("up", "--root", site.root, "--port", str(site.port)), 2, f"port {site.port}", "taken",
                    "--port")
        assert leftovers(site.root) == [], leftovers(site.root)
    finally:
        site.close(False)


def test_directory_of_somebody_else(bin_dir):
    site = Site(bin_dir)
    try:
        os.mkdir(site.root)
        open(os.path.join(site.root, "precious"), "w").close()
        refused(site.run("up", "--root", site.root, "--port", str(site.port)), 2, "something other than a site")
        assert site.down().returncode == 0
        assert os.path.exists(os.path.join(site.root, "precious"))
    finally:
        site.close(False)


HALTED = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Mi}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: halted}
spec:
  runStrategy: Halted
  template:
    spec:
      domain: {memory: {guest: 64Mi}, devices: {disks: [{name: disk, disk: {bus: virtio}}]}}
      volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}]
"""

MANIFEST = """
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: from-file%s}
spec:
  domain:
    memory: {guest: 64Mi}
    devices: {}
    firmware:
      kernelBoot:
        kernelArgs: "ws=8 rate=1 hb=10"
        container: {image: ferry.io/builtin, kernelPath: /heartbeat.elf}
"""


def check_power(site):
    """A VirtualMachine is made, stopped, started, and deleted with its instance."""
    refused(site.run("vm", "create", "x", "--run-strategy", "sometimes"), 2, "--run-strategy", "'sometimes'")
    refused(site.run("vm", "start", "nobody"), 1, "no virtual machine 'nobody'")
    refused(site.run("vm", "start"), 2, "missing")
    refused(site.run("vm", "create", "-f", "-", "-o", "xml", stdin=MANIFEST % ""), 2, "--output", "'xml'")
    made = json.loads(site.ferry("vm", "create", "pw", "--memory", "64Mi", "-o", "json").stdout)
    assert made["kind"] == "VirtualMachine" and made["spec"]["runStrategy"] == "Manual", made
    refused(site.run("vm", "create", "pw"), 1, "'pw'", "already")
    wait_for("its instance", lambda: site.api.vmi("pw"))
    assert "already" in site.ferry("vm", "start", "pw", "--wait").stdout
    first = site.api.vmi("pw")["metadata"]["uid"]
    assert site.ferry("vm", "list", "-o", "name").stdout == "virtualmachine.kubevirt.io/pw\n"
    assert "Manual" in site.ferry("vm", "list", "-o", "wide").stdout

    assert "pw is stopped" in site.ferry("vm", "stop", "pw", "--wait").stdout
    wait_for("the instance to go", lambda: site.api.vmi("pw") is None)
    wait_for("the list to say so", lambda: "Stopped" in site.ferry("vm", "list").stdout)
    refused(site.run("migrate", "pw"), 1, "does not run", "ferry vm start pw")
    assert "already" in site.ferry("vm", "stop", "pw").stdout
    site.ferry("vm", "start", "pw", "--wait")
    assert site.api.vmi("pw")["metadata"]["uid"] != first

    # What ends by itself stays as it ended, and can be started.
    os.kill(wait_for("its QEMU", site.qemus)[0], signal.SIGKILL)
    wait_for("it to fail", lambda: "Failed" in site.ferry("vm", "list").stdout)
    assert "runs on" in site.ferry("vm", "start", "pw", "--wait").stdout
    site.ferry("vm", "delete", "pw", "--wait")
    assert site.api.vmi("pw") is None and "No virtual machines" in site.ferry("vm", "list").stderr

    # A manifest with what belongs to the VM; not started.
    site.ferry("vm", "create", "-f", "-", stdin=HALTED)
    assert "Stopped" in wait_for("its state", lambda: "Stopped" in (t := site.ferry("vm", "list").stdout) and t)
    assert site.api.get("persistentvolumeclaims", "disk")
    site.ferry("vm", "delete", "halted", "--wait")


def test_calls_to_a_site_of_one_node(bin_dir):
    with Site(bin_dir, nodes=1) as site:
        refused(site.run("vm", "create", "-f", "-", stdin="a: [unclosed\nb: c\n"), 2, "-:", "line")
        refused(site.run("vm", "create", "-f", "-", stdin="apiVersion: v1\nkind: Pod\n"), 2, "Pod", "kubectl apply")
        refused(site.run("vm", "create", "-f", "-", stdin=""), 2, "no object")
        refused(site.run("vm", "create", "-f", "/nowhere/vm.yaml"), 1, "/nowhere/vm.yaml")
        refused(site.run("vm", "create", "-n", "a", "-f", "-", stdin=MANIFEST % ", namespace: b"), 2, "'b'", "'a'")
        refused(site.run("migrate", "nobody"), 1, "no virtual machine 'nobody'", "ferry vm list")
        refused(site.run("vm", "delete", "nobody"), 1, "no virtual machine 'nobody'")
        refused(site.run("cancel", "nobody"), 1, "'nobody'", "ferry list")

        site.ferry("vm", "create", "-f", "-", "--wait", stdin=MANIFEST % "")
        refused(site.run("vm", "create", "from-file"), 1, "'from-file'", "already")
        refused(site.run("migrate", "from-file"), 1, "no node that from-file could move to")
        refused(site.run("migrate", "from-file", "--to", "node7"), 1, "no node 'node7'")
        refused(site.run("migrate", "from-file", "--to", "node1"), 1, "on node1 already")
        assert "from-file" in site.ferry("vm", "list").stdout
        assert site.ferry("vm", "list", "-o", "name").stdout == "virtualmachineinstance.kubevirt.io/from-file\n"
        refused(site.run("vm", "stop", "from-file"), 1, "without a VirtualMachine", "ferry vm delete from-file")
        site.ferry("vm", "delete", "from-file", "--wait")
        assert "No virtual machines" in site.ferry("vm", "list").stderr
        check_power(site)

        # The API server stopped for good: the supervisor, which would start it again, goes first.
        site.kill("supervisor")
        pid = site.kill("api")
        wait_for("the API server to be gone", lambda: not os.path.exists(f"/proc/{pid}"))
        refused(site.run("vm", "list"), 1, "does the API server run?", "ferry up")


scenario.need_root()
scenario.main(globals())
