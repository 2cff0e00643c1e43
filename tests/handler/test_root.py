#!/usr/bin/env python3
"""The root variant (--vm-user root): libvirt as qemu:///system in the sandbox, with hardly a capability; a guest starts, moves
and ends as it does without it."""
import os
import sys

sys.dont_write_bytecode = True
from lab import check_alive, ends, run, starts


FEW = 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8  # DAC_OVERRIDE, SETGID, SETUID, SETPCAP


def qemus(lab):
    """Who runs the QEMUs of this lab, and with which capabilities."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if b"qemu-system" not in f.read().split(b"\0")[0]:
                    continue
            with open(f"/proc/{pid}/status") as f:
                status = dict(line.split(":\t", 1) for line in f if ":\t" in line)
            if lab.owns(int(pid)):
                found.append((status["Uid"].split()[0], int(status["CapEff"], 16)))
        except OSError:
            continue
    return found


def story(lab):
    vmi, _ = starts(lab)
    found = qemus(lab)
    assert found and all(user == "0" and not caps & ~FEW for user, caps in found), found
    lab.create_pod("pod2", "h2", vmi)
    lab.hand_off("move-1", "h1", "pod1", "h2", "pod2")
    move = lab.wait_move("the move to complete", lambda m: m.get("completed"))
    assert not move.get("failed") and lab.status()["nodeName"] == "h2", move
    lab.wait_clean()
    check_alive(lab)
    ends(lab, "pod2")


run(story, "--vm-user", "root")
