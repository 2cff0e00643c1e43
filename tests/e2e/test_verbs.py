#!/usr/bin/env python3
"""Verbs of an operator on a site of two nodes: look, explain, drain, policies. One site for all of them."""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, namespace_names, wait_for


def refused(done, code, *words):
    assert done.returncode == code, (done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, f"'{word}' is not in: {done.stderr}"


def broken(site, what, link, code=4):
    """`ferry why` names exactly this link; its text."""
    done = site.ferry("why", what, "-o", "json", code=code)
    answer = json.loads(done.stdout)
    last = answer["links"][-1]
    assert last["name"] == link, f"not {link}: {done.stdout}"
    assert [l for l in answer["links"][:-1] if l["state"] != "ok"] == [], done.stdout
    assert answer["broken"] == (link if code == 4 else None), done.stdout
    assert code == 0 or last["remedy"], f"no remedy: {done.stdout}"
    return last["text"]


def slow_down(site, mbit):
    fabric = next(n for n in namespace_names(site.root) if n.endswith("-fabric"))
    for i in range(1, site.nodes + 1):
        subprocess.run(["tc", "-n", fabric, "qdisc", "replace", "dev", f"m{i}", "root", "tbf", "rate", f"{mbit}mbit",
                        "burst", "256k", "latency", "50ms"], check=True)


def move(site, vm):
    return site.ferry("migrate", vm).stdout.split()[1]


def row(site, name, *args):
    """The cells of that move in `ferry list`; none when it is not in it."""
    lines = [line.split() for line in site.ferry("list", *args).stdout.split("\n")]
    return next((line for line in lines if line[:1] == [name]), [])


def in_phase(site, name, *phases):
    return wait_for(f"{name} to be {phases}", lambda: (site.api.migration(name) or {}).get("status", {}).get("phase")
                    in phases, 90)


def on_terminal(site, *args, until=None, columns=100, rows=24, term="xterm", typed=()):
    """What `ferry ARGS` writes on a terminal; interrupted when `until` is seen. `typed`: pairs of a text to wait for and keys."""
    master, slave = pty.openpty()
    subprocess.run(["stty", "cols", str(columns), "rows", str(rows)], stdin=slave, check=True)
    process = subprocess.Popen([os.path.join(site.bin, "ferry"), *args], env=dict(site.environment(), TERM=term), stdin=slave,
                               stdout=slave, stderr=slave)
    os.close(slave)
    seen, at = b"", 0
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
            if until and until in seen:
                process.send_signal(signal.SIGINT)
                until = None
            if typed and typed[0][0] in seen[at:]:
                at = len(seen)
                os.write(master, typed[0][1])
                typed = typed[1:]
    finally:
        timer.cancel()
        os.close(master)
    return process.wait(), seen.decode(errors="replace")


def check_before_a_move(site):
    assert "no move of vm" in broken(site, "vm", "object")
    refused(site.run("why", "nobody"), 1, "'nobody'", "ferry list")
    refused(site.run("why"), 2, "missing")
    refused(site.run("show", "vm"), 1, "no move called 'vm'")
    assert "nothing was changed" in site.ferry("migrate", "vm", "--dry-run").stdout
    would = json.loads(site.ferry("migrate", "vm", "--dry-run", "-o", "json").stdout)
    assert would["spec"]["vmiName"] == "vm", would
    refused(site.run("migrate", "vm", "--watch", "-o", "json"), 2, "--watch")
    refused(site.run("migrate", "vm", "-o", "xml"), 2, "'xml'")
    assert site.api.list("virtualmachineinstancemigrations") == []
    assert "No move goes on" in site.ferry("watch", "--once").stderr
    nodes = site.ferry("node", "list", "-o", "wide").stdout
    assert "node1" in nodes and "ADDRESS" in nodes, nodes


def check_running(site):
    """A slow move: seen by watch, explained by why as going on, shown when over."""
    slow_down(site, 60)
    name = move(site, "vm")
    in_phase(site, name, "Running")
    wait_for("figures", lambda: "remaining" in site.ferry("watch", "--once").stdout, 30)
    line = site.ferry("watch", "--once").stdout
    for word in ("vm", " > node", "Running", "rate", "dirty", "ETA", "round"):
        assert word in line, line
    assert "nothing is in the way" in broken(site, "vm", "end", code=0)
    source = site.node_of("vm")
    target = "node2" if source == "node1" else "node1"
    assert row(site, name)[:5] == [name, "vm", "Running", source, target], row(site, name)
    code, text = on_terminal(site, "watch", until=b"\033[1A\033[J")
    assert code == 130 and "moves go on" in text and "\033[1A\033[J" in text, (code, text)
    code, text = on_terminal(site, "watch", until=b"left", columns=60)
    lines = [line.rpartition("\033[J")[2] for line in text.replace("\r", "").split("\n") if "Running" in line]
    assert lines and max(map(len, lines)) < 60 and " left  ETA " in lines[0], text
    check_readers(site)
    code, text = on_terminal(site, "watch", until=b"ETA", term="dumb")
    assert code == 130 and "\033" not in text and "remaining" in text, (code, text)
    done = site.ferry("watch", name, "--once")
    assert done.stdout.count("\n") == 1 and done.stdout.startswith("Running "), done.stdout
    refused(site.run("watch", name, "--until-idle"), 2, "--until-idle")
    assert site.api.migration(name)["status"]["phase"] == "Running"
    slow_down(site, 1000)
    done = site.ferry("watch", name)
    route = f"vm moved from {source} to {target} in "
    assert route in done.stdout, done.stdout
    took = done.stdout.partition(route)[2].partition(";")[0]
    assert row(site, name, "-o", "wide")[6:8] == took.split(), (took, row(site, name, "-o", "wide"))
    text = site.ferry("show", name).stdout
    assert re.search(rf"^took +{took}$", text, re.M), (took, text)
    for word in ("Succeeded", "Phases:", "TargetReady", "Events:", "SuccessfulMigration", "sent", "Rounds:", "Record:",
                 "start: guest of 128.0 MiB", "the guest stood for"):
        assert word in text, text
    plot = site.ferry("show", name, "--plot").stdout
    assert "sent per second" in plot and plot.count("|") + plot.count("│") >= 18, plot
    assert json.loads(site.ferry("show", name, "-o", "json").stdout)["metadata"]["name"] == name
    assert site.ferry("show", "vm", "-o", "name").stdout.strip().endswith(name)
    assert "Migrated" in site.ferry("events", "vm").stdout
    assert "has moved" in broken(site, name, "end", code=0)
    site.ferry("migrate", "vm", "--watch")  # back again, which changes nothing of how it went before
    assert route in site.ferry("watch", name, "--once").stdout


def check_plan(site):
    """Before anything was sent the path is a guess; after a move it is not."""
    text = site.ferry("plan", "vm").stdout
    for word in ("vm: ", "none: the site's settings", "to send", "assumed", "at best", "at worst"):
        assert word in text, text
    site.ferry("migrate", "vm", "--watch")
    assert "measured" in site.ferry("plan", "vm").stdout
    answer = json.loads(site.ferry("plan", "vm", "-o", "json").stdout)
    assert answer["pathMeasured"] and answer["dataBytes"] > 1 << 20 and answer["low"]["totalMs"] > 0, answer
    refused(site.run("plan", "vm", "--to", site.node_of("vm")), 1, "already")
    refused(site.run("plan", "nobody"), 1, "'nobody'")
    assert "dataBytes:" in site.ferry("plan", "vm", "-o", "yaml").stdout
    refused(site.run("plan", "vm", "-o", "wide"), 2, "'wide'")


def check_console(site):
    """What the guest writes, across a move; what is typed reaches it."""
    refused(site.run("vm", "console", "nobody", "--once"), 1, "'nobody'")
    assert "HB " in site.ferry("vm", "console", "vm", "--once", "--tail", "500").stdout
    with subprocess.Popen([os.path.join(site.bin, "ferry"), "vm", "console", "vm"], env=site.environment(), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        seen = []
        threading.Thread(target=lambda: seen.extend(process.stdout), daemon=True).start()
        timer = threading.Timer(200, process.kill)
        timer.start()
        wait_for("a heartbeat", lambda: any("HB " in l for l in seen), 30)
        site.ferry("migrate", "vm", "--watch")
        node = site.node_of("vm")
        wait_for("the console to follow", lambda: f"[vm is on {node} now]\n" in seen, 60)
        there = seen.index(f"[vm is on {node} now]\n")
        wait_for("heartbeats from there", lambda: any("HB " in l for l in seen[there + 1:]), 60)
        site.ferry("vm", "console", "vm", "--send", "v")
        wait_for("the guest's answer", lambda: any(l.startswith("VERIFY ") for l in seen), 60)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        timer.cancel()
    code, text = on_terminal(site, "vm", "console", "vm", until=b"HB ")
    assert "Ctrl-] leaves" in text, text
    # Nobody can find the way out among the guest's lines: Ctrl-C says it again, and does not end the guest.
    code, text = on_terminal(site, "vm", "console", "vm", typed=((b"HB ", b"\x03"), (b"Ctrl-] leaves", b"\x1d")))
    assert code == 0 and text.count("Ctrl-] leaves") == 2, (code, text)


def check_readers(site):
    """A reader that leaves ends what goes on for ever, quietly; what cannot be written is said."""
    for verb, line in ((("vm", "console", "vm"), "HB "), (("watch",), "Running")):
        with subprocess.Popen([os.path.join(site.bin, "ferry"), *verb], env=site.environment(), text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            timer = threading.Timer(60, process.kill)
            timer.start()
            while line not in process.stdout.readline():
                pass
            process.stdout.close()
            assert process.wait() == 141, (verb, process.returncode)
            assert not process.stderr.read(), verb
            timer.cancel()
    for verb in (("vm", "console", "vm"), ("vm", "list"), ("watch", "--once"), ("watch",), ("list", "--help")):
        with open("/dev/full", "w", encoding="utf8") as full:
            done = subprocess.run([os.path.join(site.bin, "ferry"), *verb], env=site.environment(), text=True, stdin=subprocess.DEVNULL, timeout=60,
                                  stdout=full, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (1, "ferry: cannot write to standard output: No space left on device\n"), (verb, done)


def check_broken_links(site):
    # The controller does not act.
    site.kill("supervisor")
    pid = site.kill("controller")
    wait_for("the controller to be gone", lambda: not os.path.exists(f"/proc/{pid}"))
    name = move(site, "vm")
    wait_for("the controller to be missed", lambda: site.run("why", name, "-o", "name").stdout == "controller\n", 60)
    broken(site, name, "controller")
    site.ferry("up", "--root", site.root)
    site.ferry("watch", name)

    # The node that would take it is cordoned after the checks beforehand.
    other = "node2" if site.node_of("vm") == "node1" else "node1"
    refused(site.run("migrate", "vm", "--to", "node7", "--dry-run"), 1, "no node 'node7'")
    site.kubectl("cordon", other)
    refused(site.run("migrate", "vm", "--dry-run"), 1, "no node that vm could move to")
    name = site.api.create("virtualmachineinstancemigrations",
                           {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                            "metadata": {"generateName": "stuck-"}, "spec": {"vmiName": "vm"}})["metadata"]["name"]
    wait_for("the target pod to find no node",
             lambda: site.run("why", name, "-o", "name").stdout == "target-pod\n" and
             site.run("why", name).returncode == 4, 60)
    assert "no node for" in broken(site, name, "target-pod")
    site.ferry("undrain", other)
    site.ferry("watch", name)


def node_trouble(site, name):
    """(reason, message) of the migration's condition, or None."""
    m = site.api.migration(name) or {}
    return next(((c["reason"], c["message"]) for c in m.get("status", {}).get("conditions", [])
                 if c["type"] == "migrationNodeTrouble" and c["status"] == "True"), None)


def check_node_troubles(site):
    """What a node cannot do is on the object: it ends a move that waiting would not help, else the move goes on."""
    source = site.node_of("vm")
    other = "node2" if source == "node1" else "node1"
    beats = site.monitor()
    beats.wait_beats(1)
    mark = beats.mark()
    # The relay's user may not pass any more. The controller would wait two minutes for either node.
    for side, node in (("source", source), ("target", other)):
        way = os.path.join(site.root, node)
        mode = os.stat(way).st_mode & 0o777
        os.chmod(way, 0o700)
        try:
            name = move(site, "vm")
            wait_for(f"the move to fail by its {side}", lambda: site.api.migration(name)["status"].get("phase") == "Failed", 60)
        finally:
            os.chmod(way, mode)
        reason = site.api.migration(name)["status"]["migrationState"]["failureReason"]
        assert reason.startswith(f"RelayTrouble: by the {side}: uid 61200 cannot "), reason
        assert "Permission denied" in reason and f"/{node}/" in reason, reason
        code, message = node_trouble(site, name)
        assert code == "RelayTrouble" and message.startswith(f"the {side} node {node}: uid 61200 cannot "), (code, message)
        assert "uid 61200 cannot" in broken(site, name, "sockets")
        vmi = site.api.vmi("vm")
        assert vmi["status"]["nodeName"] == source and vmi["status"]["phase"] == "Running", vmi["status"]
        wait_for("the target pod to be gone", lambda: len(site.pod_dirs()) == 1)
    beats.wait_beats(2, mark=beats.mark())
    assert not beats.bad_pages() and not beats.broken_sequence(mark), beats.broken_sequence(mark)
    beats.stop()

    # One that does not answer for now may be back.
    relay = site.pid(f"{source}-relay")
    os.kill(relay, signal.SIGSTOP)
    try:
        name = move(site, "vm")
        reason, message = wait_for("the condition to name the relay", lambda: node_trouble(site, name), 60)
        assert reason == "RelayTrouble" and message.startswith(f"the source node {source}: no answer at "), (reason, message)
        said = json.loads(site.api.vmi("vm")["metadata"]["annotations"]["ferry.io/source-trouble"])
        assert said["class"] == "retry" and said["uid"] == site.api.migration(name)["metadata"]["uid"], said
        assert "RelayTrouble: no answer at " in broken(site, name, "sockets")
        assert site.api.migration(name)["status"]["phase"] == "TargetReady"
    finally:
        os.kill(relay, signal.SIGCONT)
    site.ferry("watch", name)
    assert site.node_of("vm") == other and node_trouble(site, name) is None
    assert "ferry.io/source-trouble" not in site.api.vmi("vm")["metadata"]["annotations"]


def create_second(site):
    site.ferry("vm", "create", "second", "--memory", "64Mi", "--wait")


def check_drain(site):
    create_second(site)
    node = site.node_of("vm")
    other = "node2" if node == "node1" else "node1"
    plan = json.loads(site.ferry("drain", node, "--dry-run", "-o", "json").stdout)
    assert plan["node"] == node and {v["plan"] for v in plan["vms"]} == {"moves"}, plan
    refused(site.run("drain", node, "-o", "json"), 2, "--dry-run")
    plan = site.ferry("drain", node, "--dry-run").stdout
    assert "vm" in plan and "moves" in plan, plan
    assert not site.api.get("nodes", node)["spec"].get("unschedulable")
    refused(site.run("drain", "node7"), 1, "no node 'node7'")
    done = site.ferry("drain", node)
    assert f"no virtual machine is on {node} any more" in done.stdout, done.stdout
    assert site.node_of("vm") == other and site.node_of("second") == other
    assert site.api.get("nodes", node)["spec"]["unschedulable"]
    assert "no, drained" in site.ferry("node", "list").stdout
    assert "of 0 there" in site.ferry("drain", node).stdout  # an empty one
    # Now there is nowhere to go.
    done = site.ferry("drain", other, "--dry-run", code=1)
    assert "stays" in done.stdout and "no node that vm could move to" in done.stdout, done.stdout
    done = site.ferry("drain", other, code=1)
    assert f"still on {other}" in done.stdout, done.stdout
    site.ferry("undrain", other)
    assert "takes virtual machines again" in site.ferry("undrain", node).stdout
    assert not site.api.get("nodes", node)["spec"].get("unschedulable")


def check_low_terminal(site):
    """More moves than lines: what does not fit is counted, the one that sends is shown."""
    slow_down(site, 30)
    names = [move(site, vm) for vm in ("vm", "second")]
    in_phase(site, names[0], "Running")
    code, text = on_terminal(site, "watch", until=b"... and 1 more", rows=3)
    shown = text.replace("\r", "").split("... and 1 more")[0].rpartition("\033[J")[2]
    assert code == 130 and shown.count("\n") == 1 and "Running" in shown, (code, text)
    slow_down(site, 1000)
    for name in names:
        in_phase(site, name, "Succeeded")


def check_cancelled(site):
    """A cancel takes the object away; the list still tells of the move, whether it had begun or not."""
    slow_down(site, 20)
    source = site.node_of("vm")
    target = "node2" if source == "node1" else "node1"
    name = move(site, "vm")
    in_phase(site, name, "Running")
    assert "was cancelled" in site.ferry("cancel", name, "--wait").stdout
    assert site.api.migration(name) is None
    wait_for("the list to tell of it", lambda: row(site, name)[2:5] == ["Cancelled", source, target], 30)
    assert "Aborted: " in site.ferry("list", "-o", "wide").stdout
    assert f"/{name}\n" not in site.ferry("list", "-o", "name").stdout
    site.kubectl("cordon", target)
    early = site.api.create("virtualmachineinstancemigrations",
                            {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                             "metadata": {"generateName": "early-"}, "spec": {"vmiName": "vm"}})["metadata"]["name"]
    in_phase(site, early, "Scheduling")
    site.ferry("cancel", early, "--wait")
    wait_for("the list to tell of that, too", lambda: row(site, early)[:3] == [early, "vm", "Cancelled"], 30)
    site.ferry("undrain", target)
    slow_down(site, 1000)


def check_given_up(site):
    """Moves that their own node gives up have failed, and say why; nobody cancelled them."""
    node = site.node_of("vm")
    slow_down(site, 20)
    site.ferry("policy", "create", "hasty", "--vm-label", "app=hasty", "--completion-timeout", "2")
    site.kubectl("label", "vmi", "--all", "app=hasty")
    done = site.ferry("migrate", "vm", "--watch", code=1)
    assert "vm did not move: NotConverging: " in done.stdout and "cancelled" not in done.stdout, done.stdout
    there = [vm for vm in ("vm", "second") if site.node_of(vm) == node]
    done = site.ferry("drain", node, code=1)
    last = done.stdout.partition(f"still on {node}:\n")[2]
    for vm in there:
        assert f"{vm} did not move: NotConverging: " in done.stdout, done.stdout
        assert [line for line in last.split("\n") if f" {vm} " in line and "did not move " in line and "NotConverging: " in line], done.stdout
    site.ferry("undrain", node)
    site.kubectl("label", "vmi", "--all", "app-")
    site.ferry("policy", "delete", "hasty")
    slow_down(site, 1000)


def check_policies(site):
    assert "No policies" in site.ferry("policy", "list").stderr
    made = site.ferry("policy", "create", "fast", "--vm-label", "app=db", "--allow-post-copy", "--bandwidth", "64Mi",
                      "-o", "name")
    assert made.stdout == "migrationpolicy.migrations.kubevirt.io/fast\n", made.stdout
    assert made.stderr.startswith("Warning: spec.allowPostCopy"), made.stderr
    refused(site.run("policy", "create", "fast"), 1, "'fast' already")
    refused(site.run("policy", "create", "x", "--vm-label", "app"), 2, "KEY=VALUE")
    table = site.ferry("policy", "list").stdout
    assert "app=db" in table and "bandwidthPerMigration=64Mi" in table, table
    assert "allowPostCopy: true" in site.ferry("policy", "show", "fast").stdout
    assert site.ferry("policy", "list", "-o", "name").stdout == "migrationpolicy.migrations.kubevirt.io/fast\n"
    site.ferry("policy", "delete", "fast")
    refused(site.run("policy", "delete", "fast"), 1, "no policy 'fast'")


def check_completion(site):
    def words(*typed):
        script = 'eval "$(ferry completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ferry; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        env = dict(site.environment(), PATH=site.bin + ":" + os.environ["PATH"])
        done = subprocess.run(["bash", "-c", script, "bash", "ferry", *typed], env=env, text=True, check=True,
                              stdout=subprocess.PIPE)
        return done.stdout.split()
    assert words("mig") == ["migrate"]
    assert words("vm", "cr") == ["create"]
    assert words("migrate", "") == ["second", "vm"]
    assert words("drain", "node") == ["node1", "node2"]
    assert "--dry-run" in words("migrate", "--")
    assert words("migrate", "vm", "--to", "") == ["node1", "node2"]
    assert words("list", "-o", "") == ["json", "yaml", "wide", "name"] and words("list", "--output", "y") == ["yaml"]
    assert words("vm", "create", "-f", "") == [] and words("why", "--kubeconfig", "") == []
    assert words("policy", "create", "--allow-p") == ["--allow-post-copy"]


def run(bin_dir, checks):
    with Site(bin_dir) as site:
        site.ferry("vm", "create", "vm", "--memory", "128Mi", "--dirty-rate", "1", "--working-set", "16", "--wait")
        for check in checks:
            check(site)
            print(f"ok     {check.__name__}", flush=True)


def test_moves_that_are_looked_at(bin_dir):
    run(bin_dir, (check_before_a_move, check_plan, check_console, check_running, create_second, check_low_terminal, check_policies,
                  check_completion))


def test_moves_that_are_stopped(bin_dir):
    run(bin_dir, (check_broken_links, check_node_troubles, check_drain, check_cancelled, check_given_up))


scenario.need_root()
scenario.main(globals())
