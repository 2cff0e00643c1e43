"""Results of cells, one JSON object a line, and the page that is made of them."""
import collections
import json
import os

import cells

HEAD = """# What breaks, and what becomes of it

This page is generated: `tests/faults/run.py --page docs/faults.md --into FILE` writes it from the results in FILE.

Each cell is a real move of a real guest on a site of its own (two nodes, all programs, libvirt and QEMU), in which one thing is broken at one instant.
What is asserted of every cell: never two running copies of the guest; a guest that ran goes on running, unless its own QEMU was killed (in post-copy: either of its two); every heartbeat follows the one before it and all of its memory is right; the move ends, with a reason if it failed, and says the same as the guest does; nothing is left of it, neither processes, sockets, listeners, pods nor directories.
All of it is observed from outside: both QEMUs are asked themselves (a monitor of their own), the guest is listened to on its serial line, and processes, sockets and files are looked for in the system.

`make check-faults` runs all cells, which takes one to two hours (`--part 1/3` to `--part 3/3` side by side: one); the results are added to `build-asan/faults.jsonl`, and what has passed there is not run again, so it can be done in pieces.
`tests/faults/run.py build-asan/bin --seed N --phase Running --fault 'kill target-relay'` runs one cell; the same seed breaks at the same place.
A few cells are part of `make check`.
"""


def read(path):
    if not path or not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def passed(rows):
    """Cells whose last result is a good one."""
    last = {(r["phase"], r["fault"]): r for r in rows}
    return {cell for cell, r in last.items() if not r["wrong"]}


def shown(rows):
    """One cell of the page: every outcome that was seen, and why a move failed."""
    if not rows:
        return ""
    if rows[-1]["wrong"]:
        return "**" + rows[-1]["wrong"][0].replace("|", "/") + "**"
    counts = collections.Counter((r["outcome"], r["code"]) for r in rows if not r["wrong"])
    return "; ".join(f"{how}{f' ({code})' if code else ''}{f' ×{n}' if n > 1 else ''}"
                     for (how, code), n in counts.most_common())


def page(rows):
    by_cell = collections.defaultdict(list)
    for r in rows:
        by_cell[(r["phase"], r["fault"])].append(r)
    wanted = cells.all_cells()
    good = passed(rows)
    lines = [HEAD, "## Phases\n", "| phase | when the fault strikes |\n|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in cells.PHASES.items()]
    lines += ["", "## Faults\n", FAULT_TEXT, "## Outcomes\n", OUTCOME_TEXT,
              f"{sum(1 for c in wanted if c in good)} of {len(wanted)} cells have passed"
              f"{'' if all(c in by_cell for c in wanted) else '; an empty cell has not been run'}.\n"]
    lines += ["| fault | " + " | ".join(cells.PHASES) + " |", "|---" * (len(cells.PHASES) + 1) + "|"]
    for name, fault in cells.FAULTS.items():
        row = ["–" if cells.missing(p, fault) else shown(by_cell[(p, name)]) for p in cells.PHASES]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


FAULT_TEXT = f"""- *kill*: SIGKILL.
  *stop*: SIGSTOP, for {cells.STOP_S} s.
  Programs of Ferry are started again by the site's supervisor, a launcher by the first process of its pod, libvirtd by its launcher.
- *link*: the migration network of the source goes down, for 2 s, for 30 s, and for {cells.BEYOND_S} s, which is longer than these sites' resume window of {cells.RESUME_WINDOW_S} s (`ferry-handler --resume-window`).
- *api unreachable*: the nodes' network is down for 15 s.
  The controller, which is beside the API server, still reaches it.
- *disk full*: for 10 s no program of the site, on any node, can write a byte to a file.
- *clock*: the clock of all daemons is set, an hour forward or {cells.CLOCK_BACK_S} s back (certificates are dated back by five minutes: a step beyond that makes those of a young site invalid), and set right again after the cell.
  Launchers, libvirtd and QEMU keep theirs.
"""

OUTCOME_TEXT = """*moved*: the guest runs on the target and the move succeeded.
*stayed*: it runs on the source, and the move failed with the reason in brackets.
*lost*: its own QEMU was killed; the object says so, and nothing was started from stale memory.
×2: seen twice.
A cell with two outcomes depends on the instant.
–: the victim does not exist in that phase.
"""
