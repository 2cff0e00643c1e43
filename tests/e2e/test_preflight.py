#!/usr/bin/env python3
"""What a target cannot do is refused before a byte moves, with the reason in the migration: post-copy, where QEMU has no userfaultfd."""
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import scenario
from ferrysite import Site, wait_for
from moving import Guest, policy


def new_pod(site, node, known):
    """The directory of a pod that was not there before, once its launcher answers."""
    fresh = [d for d in site.pod_dirs(node) if d not in known]
    return fresh[0] if fresh and site.launcher_status(fresh[0]) else None


def hide_userfaultfd(directory):
    """In the pod alone: a file that only root may open takes the device's place."""
    with open(os.path.join(directory, "sandbox.json")) as f:
        pid = json.JSONDecoder().raw_decode(f.read())[0]["child-pid"]
    closed = os.path.join(directory, "state/closed")
    with open(closed, "w"):
        os.chmod(closed, 0)
    subprocess.run(["nsenter", "-t", str(pid), "-m", "mount", "--bind", "/var/run/ferry-state/closed", "/dev/userfaultfd"], check=True)


def test_no_userfaultfd(bin_dir):
    with Site(bin_dir) as site:
        policy(site, "post", allowPostCopy=True)
        with Guest(site, "post", 64, 4, 16) as guest:
            source = site.node_of("post")
            target = "node2" if source == "node1" else "node1"
            known, handler = site.pod_dirs(target), site.pid(f"{target}-handler")
            os.kill(handler, signal.SIGSTOP)
            try:
                site.ferry("migrate", "post")
                hide_userfaultfd(wait_for("the target's launcher", lambda: new_pod(site, target, known), 90))
            finally:
                os.kill(handler, signal.SIGCONT)
            move = wait_for("the end of the move", lambda: next((
                m for m in site.api.list("virtualmachineinstancemigrations") if m["status"].get("phase") == "Failed"), None), 120)
            state = site.api.vmi("post")["status"]["migrationState"]
            print(f"  {state.get('failureReason')}", flush=True)
            assert "userfaultfd" in state["failureReason"] and "Refused" in state["failureReason"], (state, move["status"])
            assert site.node_of("post") == source and len(site.running_domains()) == 1
            guest.monitor.wait_beats(3, 30)


scenario.need_root()
scenario.main(globals())
