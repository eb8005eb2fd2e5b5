"""The referee's records, and the tables that are made from them; all pure.

    tests/referee/report.py        writes docs/referee.md's tables and picture from tests/referee/runs.ndjson
"""

import statistics

from referee.strikes import GONE, KINDS, NODE

# How much longer a recovery may take where these strike in between: what they take away, and the catching up
# (docs/bounds.md: T is the take-over after a killed replica, 17 s; a server that was away has to be listed anew).
ALLOWANCE = {"api-server-paused": 60, "etcd-paused": 60, "controllers-killed": 40}


# A loss after another one waits, 10 s at first and twice as long each time (docs/phases.md, retryBackoff).
BACKOFF, LONGEST_BACKOFF = 10, 360


def of(system, verdict, begin):
    """What a record keeps of one system's verdict. Times count from the begin of the run."""
    def unit(one):
        return f"{one.job}/{one.index}"

    return {
        "version": system.version, "settings": system.settings, "units": verdict.units,
        "bounds": {kind: system.bound(kind) for kind in KINDS if system.bound(kind) is not None},
        "succeeded": verdict.succeeded,
        "failed": [[unit(one), why] for one, why in verdict.failed],
        "stuck": [[unit(one), why] for one, why in verdict.stuck],
        "lost": [unit(one) for one in verdict.lost], "double": [unit(one) for one in verdict.double],
        "overlaps": [[unit(one), round(seconds, 1), kind] for one, seconds, kind in verdict.overlaps],
        "waste": [[unit(one.unit), round(one.last - begin, 1), one.node, one.term is not None]
                  for one in verdict.waste],
        "recoveries": [[unit(one.unit), one.kind, round(one.seconds, 1), round(one.at - begin, 1), list(one.beside),
                        one.row] for one in verdict.recoveries]}


def allowed(entry, recovery):
    """The longest that this recovery may take by the system's own bounds, or None where it promises none."""
    _, kind, _, _, beside, row = recovery
    bound = entry["bounds"].get(kind)
    if bound is None:
        return None
    # The next attempt may get a node that is out as well.
    again = [entry["bounds"].get(other, 0) for other in beside if other in NODE or other == GONE]
    backoff = min(LONGEST_BACKOFF, BACKOFF * 2 ** (row - 2)) if row > 1 else 0
    return bound + sum(ALLOWANCE.get(other, 0) for other in beside) + max(again, default=0) + backoff


def late(entry):
    """The recoveries of one system in one record that took longer than it promises."""
    return [one for one in entry["recoveries"]
            if (most := allowed(entry, one)) is not None and one[2] > most]


def table(records):
    """All systems of these records, one line each."""
    lines = ["| system | runs | stuck | lost | double | failed | overlap | recovery: median, worst | beyond its bound | waste |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name in names(records):
        entries = [record["systems"][name] for record in records if name in record["systems"]]

        def count(key, entries=entries):
            return sum(len(entry[key]) for entry in entries)

        times = [one[2] for entry in entries for one in entry["recoveries"]]
        overlap = sum(one[1] for entry in entries for one in entry["overlaps"])
        spread = f"{statistics.median(times):.0f} s, {max(times):.0f} s ({len(times)})" if times else "none"
        bounded = any(entry["bounds"] for entry in entries)
        lines.append(f"| {name} | {sum(entry['units'] for entry in entries)} | {count('stuck')} | {count('lost')} | "
                     f"{count('double')} | {count('failed')} | {overlap:.0f} s | {spread} | "
                     f"{sum(len(late(entry)) for entry in entries) if bounded else '-'} | {count('waste')} |")
    return "\n".join(lines)


def names(records):
    """Of all systems, in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record["systems"]))


def kinds_table(records):
    """Recovery by what struck: median and worst in seconds, and how many."""
    systems = [name for name in names(records) if name != "canary"]
    kinds = list(dict.fromkeys(one[1] for record in records for name in systems
                               for one in record["systems"].get(name, {"recoveries": []})["recoveries"]))
    lines = ["| system | " + " | ".join(kind or "none" for kind in sorted(kinds)) + " |",
             "|---|" + "---|" * len(kinds)]
    for name in systems:
        cells = []
        for kind in sorted(kinds):
            times = [one[2] for record in records if name in record["systems"]
                     for one in record["systems"][name]["recoveries"] if one[1] == kind]
            cells.append(f"{statistics.median(times):.0f}, {max(times):.0f} ({len(times)})" if times else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def settings_table(records):
    """Which version of what, and how it was set up."""
    lines = ["| system | version | settings |", "|---|---|---|"]
    for name in names(records):
        entries = [record["systems"][name] for record in records if name in record["systems"]]
        versions = ", ".join(dict.fromkeys(entry["version"] for entry in entries))
        lines.append(f"| {name} | {versions} | {entries[-1]['settings']} |")
    return "\n".join(lines)


def strikes_table(records):
    """What the nemesis did, over all runs."""
    lines = ["| what it does | times | seconds in all |", "|---|---|---|"]
    kinds = {}
    for record in records:
        for strike in record["strikes"]:
            kinds.setdefault(strike["kind"], []).append(strike["end"] - strike["begin"])
    for kind, spans in sorted(kinds.items()):
        lines.append(f"| {kind} | {len(spans)} | {sum(spans):.0f} |")
    return "\n".join(lines)
