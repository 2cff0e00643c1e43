#!/usr/bin/env python3
"""What pods may use: real control groups, whichever this host has; what the kernel kills is told, also after a restart."""
import contextlib
import fcntl
import glob
import os
import signal
import subprocess

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


def group(place, uid):
    """The pod's group, whose parent is the node's; None when there is none."""
    found = glob.glob(os.path.join(place[0], "ferry-pods/*", uid))
    assert len(found) <= 1, found
    return found[0] if found else None


def node_group(host, place):
    pods = os.stat(host.pods_dir)
    return os.path.join(place[0], f"ferry-pods/node-{pods.st_dev:x}-{pods.st_ino:x}")


def value(place, uid, name):
    with open(os.path.join(group(place, uid), name)) as f:
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
        assert group(place, uid) is None, place


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


def what_the_dead_left_goes(host, here):
    """A site was killed, and its directories are gone: the next agent that starts, of whichever node, removes its groups, but none
    that has processes, and none of an agent that lives."""
    place = next(iter(here.values()))
    parent = os.path.join(place[0], "ferry-pods")
    own = os.path.dirname(group(place, host.create_and_wait("stays")))
    dead, busy, live = (os.path.join(parent, f"test-{os.getpid()}-{x}") for x in ("dead", "busy", "live"))
    made = [d for top in (dead, busy, live) for d in (top, os.path.join(top, "pod"))] + [os.path.join(own, "no-such-pod")]
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        for d in made:
            os.mkdir(d)
        with open(os.path.join(busy, "pod/cgroup.procs"), "w") as f:
            f.write(str(sleeper.pid))
        lock = os.open(live, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert host.end_agent(signal.SIGTERM) == 0
        host.start_agent()
        wait_for("the groups to go", lambda: not os.path.exists(dead) and not os.path.exists(os.path.join(own, "no-such-pod")))
        host.wait_phase("stays", "Running")
        assert os.path.isdir(os.path.join(busy, "pod")) and os.path.isdir(os.path.join(live, "pod")) and os.path.isdir(own)
        assert group(place, host.pod("stays")["metadata"]["uid"]), "the group of a running pod"
        os.close(lock)
    finally:
        sleeper.kill()
        sleeper.wait()
        for d in reversed(made):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(d)
    uid = host.pod("stays")["metadata"]["uid"]
    host.delete("stays", grace=0)
    host.wait_gone("stays", uid)


def what_others_took_is_made_again(host, here):
    """The node's own group is gone, as after somebody tidied up: the next pod has its limits all the same."""
    for place in here.values():
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(node_group(host, place))
    uid = host.create_and_wait("late")
    for place in here.values():
        assert group(place, uid), place
    host.delete("late", grace=0)
    host.wait_gone("late", uid)


def story(host):
    here = groups()
    print("control groups:", here)
    host.start_agent()
    uid = are_kept(host, here)
    if "memory" in here:
        what_is_killed_is_told(host, uid, here)
    nothing_is_left(host, uid, here)
    if here:
        what_the_dead_left_goes(host, here)
        what_others_took_is_made_again(host, here)
    without_any(host)


run(story)
