"""The tables of bench/migrate.py, and how its figures stand to the bars."""
import statistics

from figures import ratios, spread

MIB = 1 << 20
NAMES = {"plain": "virsh, TCP", "tls": "virsh --tls", "proxy": "virsh, KubeVirt's proxy", "ferry": "Ferry, end to end",
         "before": "Ferry of the build beside it"}


def show(rows):
    ways = [r for r in rows if r["part"] in ("small", "large")]
    for guest in dict.fromkeys(r["step"][0] for r in ways):
        show_ways(guest, [r for r in ways if r["step"][0] == guest])
    busy = [r for r in rows if r["part"] == "busy"]
    if busy:
        show_busy(busy)
    parallel = [r for r in rows if r["part"] == "parallel"]
    if parallel:
        show_parallel(parallel)
    print("\n### Against the bars\n\n| | bar | measured | |\n|---|---|---|---|")
    for what, bar, value, met in bars(ways, busy):
        print(f"| {what} | {bar} | {value} | {'met' if met else '**missed**'} |")


def show_ways(guest, rows):
    rounds = len({r["round"] for r in rows})
    print(f"\n### {guest}, {rows[0]['mbit']} Mbit/s, {rounds} interleaved rounds\n")
    print("| | total s | data phase s | ratio | reported downtime ms | heartbeat gap ms | ratio | MiB on the link | CPU of the transport s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for way, name in NAMES.items():
        mine = [r for r in rows if r["step"][1] == way]
        if not mine:
            continue
        col = lambda key: [r[key] for r in mine]
        print(f"| {name} | {spread(col('total'), 2)} | {spread(col('data'), 2)} | {spread(ratios(rows, way, 'data'), 2)} "
              f"| {spread(col('downtime'))} | {spread(col('gap'))} | {spread(ratios(rows, way, 'gap'), 2)} "
              f"| {spread([b / MIB for b in col('bytes')], 1)} | {spread(col('cpu'), 2)} |")


def show_busy(rows):
    print(f"\n### A guest that dirties memory faster than {rows[0]['mbit']} Mbit/s carry it\n")
    print("| strategy | runs | total s | end | reported downtime ms | heartbeat gap ms |\n|---|---|---|---|---|---|")
    for strategy in ("kubevirt", "ferry"):
        mine = [r for r in rows if r["step"][1] == strategy]
        print(f"| {strategy} | {len(mine)} | {spread([r['total'] for r in mine], 1)} | {', '.join(sorted({r['end'] for r in mine}))} "
              f"| {spread([r['downtime'] for r in mine])} | {spread([r['gap'] for r in mine])} |")


def show_parallel(rows):
    print(f"\n### Moves at once, {rows[0]['mbit']} Mbit/s\n")
    print("Fairness is Jain's index of the bytes that each move sent while the largest number of them was under way (1 = all alike).\n")
    print("| moves | runs | total s | data phase s | MiB/s on the link | under way together | fairness |\n|---|---|---|---|---|---|---|")
    for count in sorted({int(r["step"][1]) for r in rows}):
        mine = [r for r in rows if r["step"][1] == str(count)]
        print(f"| {count} | {len(mine)} | {spread([r['total'] for r in mine], 1)} | {spread([r['data'] for r in mine], 1)} "
              f"| {spread([r['bytes'] / MIB / r['data'] for r in mine], 1)} | {spread([r['together'] for r in mine])} "
              f"| {spread([r['jain'] for r in mine if r['jain'] is not None], 2)} |")


def bars(ways, busy):
    """(what, bar, measured, met) of each bar that there are figures for."""
    for guest in dict.fromkeys(r["step"][0] for r in ways):
        mine = [r for r in ways if r["step"][0] == guest]
        of = {(way, key): ratios(mine, way, key) for way in NAMES for key in ("data", "gap")}
        median = {k: statistics.median(v) for k, v in of.items() if v}
        if ("ferry", "data") not in median:
            continue
        mine_data = median[("ferry", "data")]
        yield f"{guest}: data phase, of plain virsh's", "≤ 1.10", spread(of[("ferry", "data")], 2), mine_data <= 1.10
        for way in ("tls", "proxy"):
            if (way, "data") in median:
                other = median[(way, "data")]
                yield (f"{guest}: data phase ahead of {NAMES[way]}", f"< {other:.2f}", f"{mine_data:.2f}", mine_data < other)
        yield f"{guest}: heartbeat gap, of plain virsh's", "≤ 1.10", spread(of[("ferry", "gap")], 2), median[("ferry", "gap")] <= 1.10
        for key, name in (("total", "time from the object to its end"), ("gap", "heartbeat gap")):
            now, before = ([r[key] for r in mine if r["step"][1] == way] for way in ("ferry", "before"))
            if before:
                share = statistics.median(now) / statistics.median(before)
                yield f"{guest}: {name}, of the build beside it", "≤ 1.05", f"{share:.2f}", share <= 1.05
    of = {s: [r for r in busy if r["step"][1] == s] for s in ("kubevirt", "ferry")}
    if all(of.values()):
        mid = lambda s, key: statistics.median(r[key] for r in of[s])
        times = mid("ferry", "total") / mid("kubevirt", "total")
        yield "busy guest: time, of strategy kubevirt's", "≤ 0.5", f"{times:.2f}", times <= 0.5
        for key, name in (("downtime", "reported downtime"), ("gap", "heartbeat gap")):
            yield (f"busy guest: {name} ms, not above strategy kubevirt's", f"≤ {mid('kubevirt', key):.0f}",
                   f"{mid('ferry', key):.0f}", mid("ferry", key) <= mid("kubevirt", key))
