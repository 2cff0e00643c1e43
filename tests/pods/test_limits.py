#!/usr/bin/env python3
"""What pods may use: real control groups, whichever this host has; what the kernel kills is told, also after a restart."""
import os
import signal

from host import run, wait_for

LIMITS = {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m", "memory": "96Mi"}}


def groups():
    """controller -> (mount point, unified) as this host has them, found the plain way."""
    found, unified = {}, None
    with open("/proc/self/mountinfo") as f:
        for line in f:
            before, after = line.split(" - ")
            kind, options = after.split()[0], after.split()[-1].split(",")
            if kind == "cgroup2":
                unified = unified or before.split()[4]
            elif kind == "cgroup":
                for name in ("cpu", "memory", "pids"):
                    if name in options:
                        found.setdefault(name, (before.split()[4], False))
    if unified:
        with open(os.path.join(unified, "cgroup.controllers")) as f:
            for name in {"cpu", "memory", "pids"} & set(f.read().split()):
                found.setdefault(name, (unified, True))
    return {k: v for k, v in found.items() if os.access(v[0], os.W_OK)}


def value(place, uid, name):
    with open(os.path.join(place[0], "ferry-pods", uid, name)) as f:
        return f.read().strip()


def are_kept(host, here):
    uid = host.create("limited", resources=LIMITS)
    host.wait_phase("limited", "Running")
    wait_for("the stand-in to answer", lambda: host.ask(uid))
    expected = {"cpu": {True: {"cpu.max": "50000 100000", "cpu.weight": "10"},
                        False: {"cpu.cfs_quota_us": "50000", "cpu.shares": "256"}},
                "memory": {True: {"memory.max": str(96 << 20)}, False: {"memory.limit_in_bytes": str(96 << 20)}},
                "pids": {True: {"pids.max": "4096"}, False: {"pids.max": "4096"}}}
    inside = set(map(str, host.inside(uid)))
    for name, place in here.items():
        for file, wanted in expected[name][place[1]].items():
            assert value(place, uid, file) == wanted, (file, value(place, uid, file))
        assert inside <= set(value(place, uid, "cgroup.procs").split()), (name, inside)
        assert str(host.agent.pid) not in value(place, uid, "cgroup.procs").split()
    return uid


def what_is_killed_is_told(host, uid, here):
    """The kernel kills in the pod, and the pod ends, while nobody watches; the next agent says what it was."""
    host.end_agent(signal.SIGKILL)
    answer = host.ask(uid, "eat 400")
    if here["memory"][1]:
        assert answer is None, answer  # all of it goes at once
    else:
        assert answer["ate"] == signal.SIGKILL, answer["ate"]
        host.ask(uid, "exit 0")
    host.start_agent()
    pod = host.wait_phase("limited", "Failed", 60)
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("OOMKilled", 137), terminated


def nothing_is_left(host, uid, here):
    host.delete("limited")
    host.wait_gone("limited", uid)
    for place in here.values():
        assert not os.path.exists(os.path.join(place[0], "ferry-pods", uid)), place


def without_any(host):
    """A pod runs all the same, and its owner is told that nothing limits it."""
    assert host.end_agent(signal.SIGTERM) == 0
    host.start_agent("--no-cgroups")
    uid = host.create("free", resources=LIMITS)
    host.wait_phase("free", "Running")
    wait_for("the event", lambda: any(e["reason"] == "LimitNotEnforced" and "memory" in e["message"]
                                      for e in host.api.list("events")), 60)
    host.delete("free")
    host.wait_gone("free", uid)


def story(host):
    here = groups()
    print("control groups:", here)
    host.start_agent()
    uid = are_kept(host, here)
    if "memory" in here:
        what_is_killed_is_told(host, uid, here)
    nothing_is_left(host, uid, here)
    without_any(host)


run(story)
