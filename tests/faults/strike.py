"""The faults themselves: each begins, lasts, and is taken back."""
import contextlib
import os
import signal
import threading
import time

import faultsite
import move
from ferrysite import wait_for


class NoVictim(Exception):
    """What was to be broken is not there."""


def victim(m, what):
    """Pid of a program, by its name in the table."""
    if what in ("api", "controller"):
        return m.site.running(what)
    side, name = what.split("-")
    if name in ("handler", "relay", "pods"):
        return m.site.running(f"{m.side(side).node}-{name}")
    try:
        return wait_for(what, lambda: m.side(side).process(name), 10)  # a pod that is new has not started all of it yet
    except AssertionError as e:
        raise NoVictim(what) from e


def kill(m, fault):
    fd = os.pidfd_open(victim(m, fault.what))
    faultsite.send(fd, signal.SIGKILL)
    os.close(fd)
    return move.Hold()


def stop(m, fault):
    return move.Freeze(victim(m, fault.what))


def cut(interface):
    def begin(m, _):
        name = interface.format(m.source.node[4:])
        m.site.fabric("link", "set", name, "down")
        return move.Hold(lambda: m.site.fabric("link", "set", name, "up"))
    return begin


def disk(m, _):
    filler = m.site.fill()

    def end():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(filler)
    return move.Hold(end)


def clock(m, fault):
    m.site.set_clock(int(fault.seconds))
    return move.Hold()  # it is set right after the cell


STRIKES = {"kill": kill, "stop": stop, "link": cut("m{}"), "api": cut("nodes"), "disk": disk, "clock": clock}


def through(m, fault, hold):
    """Breaks it, lets the move go on, and takes the fault back when its time is over."""
    broken = STRIKES[fault.kind](m, fault)
    same = broken.pid and broken.pid == hold.pid  # what held the move is what stands still now
    go_on = threading.Thread(target=hold.release)  # which may take until the fault is over: it needs the API
    if not same:
        go_on.start()
    time.sleep(0 if fault.kind in ("kill", "clock") else fault.seconds)  # the fault itself
    broken.release()
    if same:
        go_on.start()
    go_on.join()
