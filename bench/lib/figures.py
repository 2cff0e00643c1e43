"""Medians and ratios of results, as the tables show them."""
import statistics


def spread(values, digits=0):
    if not values:
        return "-"
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def ratios(rows, way, key):
    """To `plain`, within a round."""
    by_round = {(r["round"], r["step"][1]): r for r in rows}
    return [r[key] / by_round[(r["round"], "plain")][key] for r in rows
            if r["step"][1] == way and (r["round"], "plain") in by_round]


def shares_of(looks):
    """(how many moves ran at the same time at most, what each of them sent from the first to the last look at which they did)"""
    most = max((len(look) for look in looks), default=0)
    full = [look for look in looks if len(look) == most]
    if not most:
        return 0, []
    moves = max((frozenset(look) for look in full), key=lambda s: sum(frozenset(look) == s for look in full))
    same = [look for look in full if frozenset(look) == moves]
    return most, [same[-1][m] - same[0][m] for m in moves]


def jain(shares):
    """1 = all alike; 1/n = one has all. None where nothing was sent."""
    squares = sum(s * s for s in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def put_into(document, name, text):
    """Replaces what stands between the marks of that name in a document."""
    begin, end = f"<!-- {name} begins -->\n", f"<!-- {name} ends -->\n"
    before, rest = document.read_text().split(begin)
    document.write_text(before + begin + text + end + rest.split(end)[1])
