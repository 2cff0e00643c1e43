"""What is broken when, and what may become of it. Nothing here touches the world.

A cell is a phase of a move and a fault that strikes in it. `judge()` holds what was seen from outside against the
invariants of docs/architecture.md and against the outcomes that the cell may have.
"""
import dataclasses
import random

# In the order in which a move goes through them. Each is an instant that can be held: `move.py` says by what.
PHASES = {
    "Pending": "the move is queued: the site's limit of moves lets none begin",
    "Scheduling": "the target pod is made, and no node takes it",
    "Scheduled": "the target pod is ready; the nodes have not been told yet",
    "PreparingTarget": "the nodes have been told; nobody has prepared the target yet",
    "TargetReady": "the target listens; the source has not begun",
    "Running": "memory is being copied, the guest runs on the source",
    "Switch-over": "the guest is stopped on the source and complete on the target, which has not been told to start it",
    "Confirmation": "the guest runs on the target; the answer that says so does not reach the source, whose QEMU still has all of it",
    "Post-copy": "the guest runs on the target, part of its memory is still on the source",
    "Finishing": "the guest runs on the target, and nobody has written that down",
}

PROGRAMS = ("api", "controller")
NODE_PROGRAMS = ("handler", "relay", "pods")
POD_PROGRAMS = ("launcher", "libvirtd", "qemu")
SIDES = ("source", "target")
# The filter judges what the source asks of the target's libvirtd: the target alone has one.
VICTIMS = PROGRAMS + tuple(f"{side}-{name}" for name in NODE_PROGRAMS + POD_PROGRAMS for side in SIDES) + ("target-filter",)

STOP_S = 10
RESUME_WINDOW_S = 40  # of the sites under test
CLOCK_BACK_S = 240  # certificates are good from five minutes before they were made
BEYOND_S = 60  # the target waits ten seconds longer than the window


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    kind: str  # kill, stop, link, api, disk, clock
    what: str = ""  # victim
    seconds: float = 0  # how long it lasts; of a clock: by how much it is set


def all_faults():
    found = [Fault(f"kill {v}", "kill", v) for v in VICTIMS]
    found += [Fault(f"stop {v}", "stop", v, STOP_S) for v in VICTIMS]
    found += [Fault("link 2 s", "link", "", 2), Fault("link 30 s", "link", "", 30),
              Fault("link beyond", "link", "", BEYOND_S), Fault("api unreachable", "api", "", 15)]
    found += [Fault("disk full", "disk", "", 10), Fault("clock forward", "clock", "", 3600), Fault("clock back", "clock", "", -CLOCK_BACK_S)]
    return {f.name: f for f in found}


FAULTS = all_faults()


def missing(phase, fault):
    """Why there is nothing to break in that cell; None when there is."""
    if fault.kind not in ("kill", "stop"):
        return None
    if phase in ("Pending", "Scheduling") and fault.what in ("target-launcher", "target-libvirtd", "target-qemu"):
        return "there is no target pod yet"
    if phase in ("Scheduled", "PreparingTarget", "TargetReady") and fault.what == "target-qemu":
        return "there is no QEMU on the target yet"
    if phase in ("Pending", "Scheduling", "Scheduled", "PreparingTarget") and fault.what == "target-filter":
        return "nobody has prepared the target yet"
    if phase == "Finishing" and fault.what == "target-filter":
        return "the source's libvirt has said all it had to say"
    if phase == "Finishing" and fault.what == "source-qemu":
        return "QEMU on the source is gone by then"
    return None


def all_cells():
    return [(p, f) for p in PHASES for f in FAULTS if not missing(p, FAULTS[f])]


MOVED, STAYED, LOST = "moved", "stayed", "lost"
# The guest has run on the target: there is no way back.
BEYOND = ("Confirmation", "Post-copy", "Finishing")
BEFORE = ("Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running")


def must_go_on(phase, fault):
    """What a move does not fail for: none of its own parts is touched, or it is there again in time."""
    if fault.kind in ("kill", "stop"):
        return fault.what in PROGRAMS or fault.what.endswith(("-handler", "-pods"))
    if fault.kind == "link":
        return phase not in BEFORE[:-1] and fault.seconds < RESUME_WINDOW_S
    return fault.kind in ("api", "clock")


def may_end(phase, fault):
    """Outcomes that are right in a cell."""
    if fault.kind == "kill" and fault.what == "source-qemu":
        # The guest's own QEMU dies; after the last byte the target has all of it.
        return {LOST} if phase in BEFORE + ("Post-copy",) else {MOVED} if phase == "Confirmation" else {MOVED, LOST}
    if fault.kind == "kill" and fault.what == "target-qemu":
        return {LOST} if phase in BEYOND else {STAYED}
    if phase in BEYOND or must_go_on(phase, fault):
        return {MOVED}
    return {MOVED, STAYED}


def group(phase):
    """Cells of one group are run with the same guest."""
    return "busy" if phase == "Post-copy" else "calm"


def order(cells, seed):
    """The sequence of a run: guests change seldom, all else is shuffled."""
    shuffled = list(cells)
    random.Random(seed).shuffle(shuffled)
    return sorted(shuffled, key=lambda c: group(c[0]))


def dice(seed, phase, fault):
    """The randomness of one cell, the same whatever ran before it."""
    return random.Random(f"{seed}/{phase}/{fault}")


@dataclasses.dataclass
class Seen:
    """One cell as it was seen from outside."""
    phase: str = ""  # of the migration object, at its end or when it was no longer waited for
    reason: str = ""  # of its failure
    vmi_phase: str = ""
    object_node: str = ""  # which of the two the VMI names: source, target
    runs_on: tuple = ()  # sides whose QEMU runs at the end, by its own word
    both_s: float = 0  # for how long both ran
    broken: list = dataclasses.field(default_factory=list)  # heartbeats out of sequence
    bad_pages: int = 0
    silent: bool = False  # no heartbeat at the end
    leftovers: list = dataclasses.field(default_factory=list)
    complaints: list = dataclasses.field(default_factory=list)  # of the sanitizers


def outcome(seen):
    if not seen.runs_on:
        return LOST
    return MOVED if "target" in seen.runs_on else STAYED


def judge(phase, fault, seen):
    """(outcome, list of what is wrong)"""
    how, wrong = outcome(seen), []
    if seen.both_s > 0:
        wrong.append(f"two guests ran for {seen.both_s * 1000:.1f} ms")
    if len(seen.runs_on) > 1:
        wrong.append("two guests run")
    if how not in may_end(phase, fault):
        wrong.append(f"{how}, but may only be {' or '.join(sorted(may_end(phase, fault)))}")
    if seen.phase not in ("Succeeded", "Failed"):
        wrong.append(f"the move never ended, it is {seen.phase or 'without a phase'}")
    if seen.phase == "Failed" and not seen.reason:
        wrong.append("the move failed without a reason")
    if how == LOST:
        if seen.vmi_phase != "Failed":
            wrong.append(f"the guest is lost, and its object says {seen.vmi_phase}")
    else:
        wrong += judge_guest(how, fault, seen)
    wrong += [f"left behind: {x}" for x in seen.leftovers]
    wrong += [f"sanitizer: {x}" for x in seen.complaints]
    return how, wrong


def judge_guest(how, fault, seen):
    """What is wrong with a guest that runs."""
    # A heartbeat that finds the disk full is not in the log; it is missing there, but none can come twice.
    broken = [pair for pair in seen.broken if fault.kind != "disk" or pair[1] <= pair[0]]
    wrong = []
    if seen.silent:
        wrong.append("the guest is not heard of")
    if broken:
        wrong.append(f"heartbeats do not follow each other: {broken[:3]}")
    if seen.bad_pages:
        wrong.append(f"{seen.bad_pages} pages of the guest are wrong")
    if (how == MOVED) != (seen.phase == "Succeeded"):
        wrong.append(f"the guest {how}, and the move says {seen.phase}")
    if (how == MOVED) != (seen.object_node == "target"):
        wrong.append(f"the guest {how}, and its object names the {seen.object_node}")
    return wrong
