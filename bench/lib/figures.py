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
