"""Tables and verdicts from what bench/relay.py measured."""
import statistics

TITLES = {
    "1m": "1 connection, writes of 1 MiB", "32k": "1 connection, writes of 32 KiB", "4x": "4 connections, writes of 1 MiB",
    "idle": "round trip of 64 bytes, idle path", "beside": "round trip of 64 bytes beside a saturating stream", "memory": "resident memory, idle",
}
BULK, PINGS = ("1m", "32k", "4x"), ("idle", "beside")
OURS = "ferry/1"
# What is asked of ferry/1: part, figure, peer, bound, and whether more is better.
BARS = (
    ("1m", "cpu", "kubevirt", 0.62, False), ("32k", "cpu", "kubevirt", 0.62, False), ("1m", "MiB/s", "kubevirt", 1.8, True),
    ("1m", "cpu", "haproxy", 0.76, False), ("1m", "MiB/s", "haproxy", 1.1, True), ("idle", "p50_us", "kubevirt", 1.0, False),
    ("beside", "p50_us", "kubevirt", 0.75, False),
)
IDLE_MIB = 8
FIGURES = {"cpu": "CPU per GiB", "MiB/s": "throughput", "p50_us": "p50"}


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def column(rows, key):
    return [r[key] for r in rows]


def ratios(results, name, base, key):
    """One a round: what both met on the machine cancels out."""
    return [a[key] / b[key] for a, b in zip(results[name], results[base]) if b[key]]


def head(*columns):
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))


def show_bulk(results, base):
    head("relay", "MiB/s", "CPU-s/GiB source", "target", "both", f"CPU, ratio to {base}", f"throughput, ratio to {base}", "peak MiB source / target")
    for name, rows in results.items():
        mid = {k: statistics.median(column(rows, k)) for k in rows[0]}
        print(f"| {name} | {spread(column(rows, 'MiB/s'), 0)} | {mid['cpu_source']:.2f} | {mid['cpu_target']:.2f} | {spread(column(rows, 'cpu'))} "
              f"| {spread(ratios(results, name, base, 'cpu'))} | {spread(ratios(results, name, base, 'MiB/s'))} "
              f"| {mid['rss_source']:.1f} / {mid['rss_target']:.1f} |")


def show_pings(results, base):
    bulk = any("bulk" in r for rows in results.values() for r in rows)
    head("relay", "p50 µs", "p99 µs", f"p50, ratio to {base}", f"p99, ratio to {base}", *(["MiB/s beside it"] if bulk else []))
    for name, rows in results.items():
        more = f" {spread(column(rows, 'bulk'), 0)} |" if bulk else ""
        print(f"| {name} | {spread(column(rows, 'p50_us'), 0)} | {spread(column(rows, 'p99_us'), 0)} "
              f"| {spread(ratios(results, name, base, 'p50_us'))} | {spread(ratios(results, name, base, 'p99_us'))} |{more}")


def show_memory(results):
    head("relay", "source MiB", "target MiB")
    for name, rows in results.items():
        print(f"| {name} | {spread(column(rows, 'rss_source'), 1)} | {spread(column(rows, 'rss_target'), 1)} |")


def show_bars(kept):
    head("with `ferry/1` on", "bar", "measured", "")
    for part, key, peer, bound, more in BARS:
        results = kept.get(part, {})
        if OURS not in results or peer not in results:
            continue
        values = ratios(results, OURS, peer, key)
        met = statistics.median(values) >= bound if more else statistics.median(values) <= bound
        print(f"| {FIGURES[key]}, of {peer}'s; {TITLES[part]} | {'≥' if more else '≤'} {bound} | {spread(values)} | {'met' if met else '**missed**'} |")
    if OURS in kept.get("memory", {}):
        mib = max(statistics.median(column(kept["memory"][OURS], f"rss_{s}")) for s in ("source", "target"))
        print(f"| {TITLES['memory']} | ≤ {IDLE_MIB} MiB | {mib:.1f} MiB | {'met' if mib <= IDLE_MIB else '**missed**'} |")


def show_floor(kept):
    """What no relay of this kind can do without: the kernel's part, as the relay without TLS shows it, and the cipher on both sides."""
    f = kept["floor"]
    cipher = 2 * (1 << 30) / f["used"]
    print(f"\nFloor: AES-128-GCM on 16 KiB blocks runs at {f['openssl'] / 1e9:.1f} GB/s in OpenSSL and at {f['used'] / 1e9:.1f} GB/s in what ferry uses here "
          f"({f['by']}), so sealing and opening a GiB is {cipher:.2f} CPU-s.")
    results = kept.get("1m", {})
    if "ferry plain" in results:
        plain = statistics.median(column(results["ferry plain"], "cpu"))
        ours = statistics.median(column(results[OURS], "cpu"))
        base = f", {(plain + cipher) / statistics.median(column(results['kubevirt'], 'cpu')):.2f} of kubevirt's" if "kubevirt" in results else ""
        print(f"The kernel's copies and TCP are what `ferry plain` needs, {plain:.2f}.")
        print(f"Together {plain + cipher:.2f} CPU-s a GiB{base}; `ferry/1` needs {ours:.2f}.")


def show(kept):
    """Markdown, of everything in `kept`: {part: {peer: [row of a round, ...]}, "floor": see bench/gcm_speed.c, "machine": …}."""
    print("## Against the bars")
    show_bars(kept)
    if kept.get("machine"):
        print("\nRuns of {gib:g} GiB by `make bench-relay`; {cores} cores, {cpu}, {openssl}, kernel {kernel}, load average before {load:.1f}.".format(**kept["machine"]))
    if kept.get("floor"):
        show_floor(kept)
    for part, title in TITLES.items():
        results = kept.get(part)
        if not results:
            continue
        base = next(n for n in ("kubevirt", "haproxy", *results) if n in results)
        print(f"\n### {title}; {len(results[base])} runs")
        if part in BULK:
            show_bulk(results, base)
        elif part in PINGS:
            show_pings(results, base)
        else:
            show_memory(results)
