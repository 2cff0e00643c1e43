#!/usr/bin/env python3
"""Names, messages and reasons in which somebody put commands for a terminal: what the command line prints of them is text, and what it
prints as JSON or YAML is the same value."""
import json
import os
import pty
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../pods"))
from host import program, run, wait_for

# Clear the screen, a title, answers typed by the terminal, C1 in both forms, another direction, another line, back to its start.
HOSTILE = "begin\x1b[2J\x1b]0;title\x07\x1b[c\u009b31m\u009dx\u0085\x7f\u202egnp.exe\u2066\r\x08\nnode1 is removed\tend"
OWN = HOSTILE.replace("\n", "")  # what somebody typed is theirs, but for what a terminal obeys
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MERGE = "application/merge-patch+json"


def put(host, plural, body, status=None):
    host.api.create(plural, body)
    if status:
        path = host.api.path(plural, body["metadata"]["name"])
        code, answer = host.api.call("PATCH", path + "/status", {"status": status}, content_type=MERGE)
        if code == 404:
            code, answer = host.api.call("PATCH", path, {"status": status}, content_type=MERGE)
        assert code == 200, answer


def make_objects(host):
    """A VM, its instance and a move that failed, as somebody who may write their status leaves them."""
    meta = {"name": "web", "annotations": {"ferry.io/note": HOSTILE}, "labels": {"a": "b"}}
    condition = {"type": "Ready", "status": "False", "reason": HOSTILE, "message": HOSTILE}
    put(host, "virtualmachineinstances", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": meta,
                                          "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}},
        {"phase": "Running", "nodeName": HOSTILE, "reason": HOSTILE, "conditions": [condition]})
    put(host, "virtualmachineinstancemigrations", {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                                                   "metadata": {"name": "move"}, "spec": {"vmiName": "web"}},
        {"phase": "Failed", "conditions": [condition],
         "migrationState": {"migrationUid": "x", "failed": True, "failureReason": HOSTILE, "sourceNode": HOSTILE, "targetNode": HOSTILE}})
    host.api.create("events", {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Warning", "reason": HOSTILE[:100],
                               "message": HOSTILE, "involvedObject": {"kind": "VirtualMachineInstance", "namespace": "default", "name": "web"},
                               "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1})


def words(host, *args):
    return [program("ferry"), *args, "--kubeconfig", os.path.join(host.data, "admin.kubeconfig")]


def ferry(host, *args):
    done = subprocess.run(words(host, *args), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    return done.stdout + done.stderr


def on_terminal(host, *args):
    """What a terminal gets: everything that is there, until the program ends."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(program("ferry"), words(host, *args))
    data = b""
    try:
        while chunk := os.read(fd, 65536):
            data += chunk
    except OSError:
        pass  # its end
    os.close(fd)
    os.waitpid(pid, 0)
    return data.replace(b"\r\n", b"\n")


def is_text(what, data):
    text = data.decode()
    found = OBEYED.search(text)
    assert not found, f"{what}: {found and found[0]!r} in {text!r}"
    lines = [line for line in text.split("\n") if line.startswith("node1 is removed")]
    assert not lines, f"{what}: a line of its own: {text!r}"
    return text


def story(host):
    make_objects(host)
    verbs = [["events"], ["events", "web"], ["list"], ["list", "--all"], ["show", "move"], ["vm", "list"], ["why", "move"], ["why", "web"],
             ["watch", "--once"], ["migrate", "web"], ["plan", "web"], ["node", "list"], ["vm", "stop", OWN], ["show", OWN],
             ["list", "-n", OWN], ["no-verb\x1b[2J"], ["--no-option\x1b[2J\n"], ["cancel", "mo\x1b[2J"]]
    shown = 0
    for args in verbs:
        for how in (ferry, on_terminal):
            text = is_text(f"{how.__name__} {args}", how(host, *args))
            shown += "\\u001b[2J" in text
    assert shown >= 10, shown
    # Values are the same, whoever reads them.
    text = is_text("json", ferry(host, "show", "move", "-o", "json"))
    assert json.loads(text)["status"]["conditions"][0]["message"] == HOSTILE
    assert "\\u009b31m" in is_text("yaml", ferry(host, "show", "move", "-o", "yaml"))
    # Who asks for a terminal gets one: the console is not made text (there is none here; the words of the refusal are).
    is_text("console", ferry(host, "vm", "console", "web"))
    # Lines of daemons: the API server logs what it is asked, one line for each.
    host.api.call("GET", "/apis/%0anode1%20is%20removed%1b[2J")
    wait_for("the API server's log", lambda: os.path.getsize(os.path.join(host.base, "log")) > 0)
    is_text("log", open(os.path.join(host.base, "log"), "rb").read())


run(story)
