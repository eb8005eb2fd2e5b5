"""The referee's records, and the tables that are made from them; all pure.

    record_of(evidence)  ->  what the tables are made from: one run
"""

import statistics
from collections import Counter

from referee import evidence as evidences
from referee.checker import FAILURES
from referee.strikes import CONTROL, KINDS
from referee.systems import CANARIES

LOST_NODES = ("node-killed", "node-gone")
# Overlaps below two beats say little: a beat is written when its half second is over.
LEAST_OVERLAP = 1.0
# The next controller is up so long after a kill (its kubelet backs off, 10 s and more), and takes over in T
# (docs/bounds.md).
CONTROLLER_BACK, TAKE_OVER = 20, 17
# An outage of the API server up to here is none for Holdfast, which renews each 2 s and forgives 5 s. Counts begin at
# its first renewal after the outage.
FORGIVEN, RENEWS = 3, 2
# From a free worker to the first beat. And for so long a worker that is silent may still be given an attempt: its
# lease, twice where most are silent.
SEEN, UNSEEN = 4, 21
# A loss after another one waits, 10 s at first and twice as long each time (docs/phases.md, retryBackoff). Then the next
# attempt is recorded in R (docs/bounds.md).
BACKOFF, LONGEST_BACKOFF, RECORD = 10, 360, 1


class Mixed(ValueError):
    """Records that one table must not add up."""


def record_of(evidence):
    """One run: what identifies it, and of each system the verdict in numbers. Times count from its begin."""
    begin = evidence["begin"]
    verdicts = evidences.judged(evidence)
    record = {key: evidence[key] for key in ("seed", "minutes", "date", "commit", "machine", "kubernetes", "indexes",
                                             "seconds", "failed_strikes")}
    record["strikes"] = [[one["kind"], round(one["begin"] - begin, 1), round(one["end"] - begin, 1)]
                         for one in sorted(evidence["strikes"], key=lambda one: one["begin"])]
    record["systems"] = {name: _of(name, part, verdicts[name], begin) for name, part in evidence["systems"].items()}
    record["refused"] = {name: part["refused"] for name, part in evidence["systems"].items()
                         if part.get("refused")}
    record["void"] = void(record)
    return record


def _measured(found, begin):
    """[unit, kind, seconds, when, beside, row, ended, most, full] of each; what the tables and allowed() read."""
    return [[f"{one.unit.job}/{one.unit.index}", one.kind, round(one.seconds, 1), round(one.at - begin, 1),
             [[kind, round(start, 1), round(end, 1), met] for kind, start, end, met in one.beside],
             one.row, one.ended, one.most, [[round(start, 1), round(end, 1)] for start, end in one.full]]
            for one in found]


def bounds_of(name, which="bound"):
    """By kind of strike, in seconds."""
    bound = getattr(evidences.KINDS[name](None, 1, 1), which)
    return {kind: bound(kind) for kind in KINDS if bound(kind) is not None}


def _of(name, part, verdict, begin):
    def unit(one):
        return f"{one.job}/{one.index}"

    return {
        "version": part["version"], "settings": part["settings"], "bounds": bounds_of(name),
        "bounds_after_the_end": bounds_of(name, "bound_after_the_end"),
        "bounds_of_most": bounds_of(name, "bound_of_most"),
        "phantoms": verdict.phantoms,
        "units": verdict.units, "succeeded": verdict.succeeded, "struck": verdict.struck,
        "failed": [[unit(one), why] for one, why in verdict.failed],
        "stuck": [[unit(one), why] for one, why in verdict.stuck],
        "lost": [unit(one) for one in verdict.lost], "double": [unit(one) for one in verdict.double],
        "repeated": [unit(one) for one in verdict.repeated],
        "overlaps": [[unit(one), round(seconds, 1), kind] for one, seconds, kind in verdict.overlaps],
        "waste": [[unit(one.unit), round(one.last - begin, 1), one.node, one.term is not None]
                  for one in verdict.waste],
        "thrown_away": round(verdict.thrown_away), "starts": [round(one, 1) for one in verdict.starts],
        "done": [round(one, 1) for one in verdict.done],
        "waits": [[unit(one), round(at - begin, 1), why] for one, at, why in verdict.waits],
        "jobs": len(part["submitted"]),
        "recoveries": _measured(verdict.recoveries, begin), "replaced": _measured(verdict.replaced, begin),
        "decisions": _measured(verdict.decisions, begin), "by_pod": evidences.KINDS[name].by_pod}


def void(record):
    """Why nothing may be concluded from this run, or ""."""
    if record["failed_strikes"]:
        return f"a strike failed: {record['failed_strikes'][0]}"
    missing = set(CANARIES) - set(record["systems"])
    if missing:
        return f"{missing.pop()} did not run"
    if not any(kind == "node-cut-off" and seconds >= LEAST_OVERLAP
               for _, seconds, kind in record["systems"]["canary"]["overlaps"]):
        return "the canary, which has no fence, was not found to overlap"
    slow = record["systems"]["canary-slow"]
    if not late(slow):
        return "the slow canary was not found to be late"
    if in_time := [one for one in judged_by_bound(slow) if one not in late(slow) and not is_excused(slow, one)]:
        return f"the slow canary was found to be in time: {in_time[0]}"
    return ""


def allowed(entry, recovery):
    """The longest that this recovery may take by the system's own bounds, or None where it promises none.

    What strikes while the count still runs starts it anew (docs/bounds.md): an outage of the API server when it is over;
    a kill of the controllers when the next ones have taken over, up to twice the bound; and another node that falls
    silent, on which the next attempt may have been put, when it does. That attempt was lost before it gave a sign. A
    second loss in a row waits, and each further one twice as long; the first failure does too, and the bound has that.
    Where most agents fell silent at once, theirs counts twice; then the node's, which is shorter, as after the end.
    Where no worker is free then, the next attempt waits for one. What hangs on a node that falls silent
    meanwhile has that node's bound: nobody can know whether it still makes no progress."""
    _, kind, _, _, beside, row, ended, most, full = recovery
    bound = entry["bounds_after_the_end" if ended else "bounds_of_most" if most else "bounds"].get(kind)
    if bound is None:
        return None

    def waits(losses):
        if losses <= 1:
            return 0
        if kind in FAILURES:
            return min(LONGEST_BACKOFF, BACKOFF * 2 ** (losses - 1))  # its bound has R
        return min(LONGEST_BACKOFF, BACKOFF * 2 ** (losses - 2)) + RECORD

    own = limit = bound + waits(row)
    back = 0
    for other, begin, end, met in sorted(beside, key=lambda one: one[1]):
        if begin >= limit:
            break
        if other == "controllers-killed":
            # The next ones count from their start; of a warm worker from when they have taken over.
            back = end + CONTROLLER_BACK + (0 if entry["by_pod"] else TAKE_OVER)
            if back >= 0:
                limit = max(limit, min(back + own, 2 * own + TAKE_OVER))
        elif other in CONTROL:
            if end >= 0 and end - begin > FORGIVEN:
                # Who has not taken over when it begins does so after it.
                pause = TAKE_OVER if begin < back and not entry["by_pod"] else 0
                limit = max(limit, end + RENEWS + pause + own)
        elif kind == "process-hung" and begin >= 0 and met and other in entry["bounds"]:
            limit = max(limit, begin + entry["bounds"][other] + waits(row))
        elif begin >= -UNSEEN and other in entry["bounds"] and not entry["by_pod"]:
            row += 1
            own = max(own, entry["bounds"][other] + waits(row))
            limit = max(limit, begin + own)
    for begin, end in full:
        if begin <= limit < end + SEEN:
            limit = end + SEEN
    return round(limit, 1)


def is_excused(entry, recovery):
    """More is allowed than its bound alone, or no bound holds."""
    alone = (entry["bounds"].get(recovery[1]), entry["bounds_after_the_end"].get(recovery[1]))
    most = allowed(entry, recovery)
    return most is None or most not in alone


def judged_by_bound(entry):
    """What a bound is about: the creation of the next pod; where attempts have no pod of their own, the first beat of
    the next attempt, also where the old one worked on."""
    if entry["by_pod"]:
        return entry["decisions"]
    ends = {(one[0], round(one[3] + one[2])) for one in entry["replaced"]}
    return [one for one in entry["recoveries"] if (one[0], round(one[3] + one[2])) not in ends] + entry["replaced"]


def late(entry):
    """What took longer in one record than one system promises."""
    return [one for one in judged_by_bound(entry) if (most := allowed(entry, one)) is not None and one[2] > most]


def names(records):
    """Of all systems, in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record["systems"]))


def counted(records):
    """Those that are not void. They must be runs of one experiment."""
    good = [record for record in records if not record["void"]]
    for key in ("commit", "minutes", "indexes", "seconds", "kubernetes", "machine"):
        if len({str(record[key]) for record in good}) > 1:
            raise Mixed(f"these runs differ in {key}: {sorted({str(record[key]) for record in good})}")
    if len({tuple(record["systems"]) for record in good}) > 1:
        raise Mixed("these runs judge different systems")
    seeds = Counter(record["seed"] for record in good)
    if seeds and max(seeds.values()) > 1:
        raise Mixed(f"seed {seeds.most_common(1)[0][0]} is there twice")
    return good


def _markdown(head, rows):
    lines = [f"| {' | '.join(map(str, line))} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def _spread(times):
    return f"{_times(times)} ({len(times)})" if times else "none"


def _times(times):
    return f"{statistics.median(times):.0f} s, {max(times):.0f} s" if times else "none"


def _thrown_away(entries):
    return f"{sum(entry['thrown_away'] for entry in entries) / 60:.0f} min"


def _beyond(entries):
    """How many were late, or "-" of who promises nothing."""
    return sum(len(late(entry)) for entry in entries) if any(entry["bounds"] for entry in entries) else "-"


def _entries(records, name):
    return [record["systems"][name] for record in records if name in record["systems"]]


def _not_taken(records, name):
    """Runs that a system was asked for and did not take, of its own doing: others took theirs at the same time."""
    total = 0
    for record in (record for record in records if name in record["systems"]):
        missing = max(entry["jobs"] for entry in record["systems"].values()) - record["systems"][name]["jobs"]
        total += missing * record["indexes"]
    return total


def _all(entries, key):
    return [one for entry in entries for one in entry[key]]


def table(records):
    """Whether each run came to one outcome, and how soon it went on."""
    rows = []
    for name in names(records):
        entries = _entries(records, name)
        overlaps = _all(entries, "overlaps")
        long = [seconds for _, seconds, _ in overlaps if seconds >= LEAST_OVERLAP]
        short = len(overlaps) - len(long)
        rows.append([
            name, sum(entry["units"] for entry in entries), _not_taken(records, name),
            sum(entry["struck"] for entry in entries),
            *(len(_all(entries, key)) for key in ("stuck", "lost", "double", "failed", "repeated")),
            f"{sum(long):.0f} s ({len(long)})" + (f", and {short} below 1 s" if short else ""),
            _spread(_all(entries, "done")),
            _spread([one[2] for one in _all(entries, "recoveries")]), _beyond(entries)])
    return _markdown(["system", "runs", "not taken", "attempts struck", "stuck", "lost", "double", "failed", "done twice", "overlap",
                      "done: median, worst", "recovery: median, worst", "beyond its bound"], rows)


def with_control(recovery):
    """The control plane was struck while it lasted."""
    return any(kind in CONTROL and begin < recovery[2] and end > 0 for kind, begin, end, _ in recovery[4])


def _dead_nodes(entries):
    """Recoveries from a node's death while the control plane was left alone, and the others, in seconds."""
    found = [one for one in _all(entries, "recoveries") if one[1] in LOST_NODES]
    return ([one[2] for one in found if not with_control(one)], [one[2] for one in found if with_control(one)])


def short_table(records, shown):
    """The README's. shown: {system: what the README calls it}."""
    rows = []
    for name, words in shown.items():
        entries = _entries(records, name)
        crashed = [one[2] for one in _all(entries, "recoveries") if one[1] == "process-crashed"]
        overlap = sum(seconds for _, seconds, _ in _all(entries, "overlaps") if seconds >= LEAST_OVERLAP)
        units, missing = sum(entry["units"] for entry in entries), _not_taken(records, name)
        rows.append([words, f"{len(_all(entries, 'done'))} of {units}" + (f", {missing} not taken" if missing else ""),
                     *(len(_all(entries, key)) for key in ("stuck", "repeated")), f"{overlap:.0f} s",
                     _thrown_away(entries), _times(_all(entries, "done")), *map(_spread, _dead_nodes(entries)),
                     _spread(crashed), _beyond(entries)])
    return _markdown(["", "runs done", "stuck", "done twice", "two at once", "work thrown away", "done after: median, worst",
                      "its node died", "the control plane was struck, too", "it crashed", "beyond its bound"], rows)


def dead_nodes_table(records):
    """Recoveries from a node's death, apart by whether the control plane was struck meanwhile."""
    systems = [name for name in names(records) if name not in CANARIES]
    return _markdown(["system", "the control plane was left alone", "it was struck meanwhile"],
                     [[name, *map(_spread, _dead_nodes(_entries(records, name)))] for name in systems])


def by_seed_table(records):
    """How far the runs differ: when the median run of each was done, in seconds."""
    rows = [[name, *(f"{statistics.median(entry['done']):.0f}" for entry in _entries(records, name))]
            for name in names(records) if name not in CANARIES]
    return _markdown(["system", *(f"seed {record['seed']}" for record in records)], rows)


def price_table(records):
    """What it cost, and what it said meanwhile."""
    rows = []
    for name in names(records):
        entries = _entries(records, name)
        waits = _all(entries, "waits")
        said = sum(bool(why) for _, _, why in waits)
        rows.append([name, _spread(_all(entries, "starts")), len(_all(entries, "waste")),
                     sum(entry["phantoms"] for entry in entries),
                     _thrown_away(entries),
                     f"{100 * said / len(waits):.0f} % of {len(waits)}" if waits else "none"])
    return _markdown(["system", "first start: median, worst", "waste", "never began", "work thrown away", "waits explained"], rows)


def kinds_table(records):
    """Recovery by what struck: median and worst in seconds, and how many."""
    systems = [name for name in names(records) if name not in CANARIES]
    found = {one[1] for name in systems for one in _all(_entries(records, name), "recoveries")}
    kinds = [kind for kind in (*KINDS, "") if kind in found]
    rows = []
    for name in systems:
        cells = []
        for kind in kinds:
            times = [one[2] for one in _all(_entries(records, name), "recoveries") if one[1] == kind]
            cells.append(f"{statistics.median(times):.0f}, {max(times):.0f} ({len(times)})" if times else "")
        rows.append([name, *cells])
    return _markdown(["system", *(kind or "no strike" for kind in kinds)], rows)


def bounds_table(records):
    """Of who promises anything: how near each recovery came to what was allowed; and, where a bound is about the record
    of the next attempt, how soon that one worked."""
    rows = []
    for name in names(records):
        entries = _entries(records, name)
        for kind in KINDS:
            found = [(one[2], allowed(entry, one), is_excused(entry, one)) for entry in entries
                     for one in judged_by_bound(entry) if one[1] == kind and allowed(entry, one) is not None]
            if not found:
                continue
            bound = entries[0]["bounds"].get(kind)
            beyond = sum(bound is not None and seconds > bound for seconds, _, _ in found)
            works = [one[2] for entry in entries if entry["by_pod"] for one in entry["recoveries"] + entry["replaced"]
                     if one[1] == kind and not is_excused(entry, one)]
            rows.append([name, kind, f"{bound} s" if bound else "none",
                         _spread([one[0] for one in found if not one[2]]), _spread(works),
                         _spread([one[0] for one in found if one[2]]), f"{max(one[1] for one in found):.0f} s", beyond,
                         sum(seconds > most for seconds, most, _ in found)])
    return _markdown(["system", "fault", "bound", "alone: median, worst", "alone, until it works",
                      "with other faults in between", "longest that was allowed then", "beyond the bound alone", "beyond"], rows)


def bounds_in_words(records):
    """How many recoveries the rules excuse."""
    found = [(one[2], allowed(entry, one), entry["bounds"].get(one[1])) for name in names(records)
             if name not in CANARIES for entry in _entries(records, name) for one in judged_by_bound(entry)]
    found = [one for one in found if one[1] is not None]
    longer = sum(bound is None or seconds > bound for seconds, _, bound in found)
    beyond = sum(seconds > most for seconds, most, _ in found)
    return (f"Of {len(found)} recoveries of Holdfast, {longer} took longer than the bound alone. The rules above allow "
            f"{longer - beyond} of them. {beyond or 'None'} took longer than they allow.")


def settings_table(records):
    """Which version of what, and how it was set up."""
    rows = []
    for name in names(records):
        entries = _entries(records, name)
        rows.append([name, ", ".join(dict.fromkeys(entry["version"] for entry in entries)), entries[-1]["settings"]])
    return _markdown(["system", "version", "settings"], rows)


def strikes_table(records):
    """What the nemesis did, over all runs."""
    spans = {}
    for record in records:
        for kind, begin, end in record["strikes"]:
            spans.setdefault(kind, []).append(end - begin)
    return _markdown(["what it does", "times", "seconds in all"],
                     [[kind, len(spans[kind]), f"{sum(spans[kind]):.0f}"] for kind in KINDS if kind in spans])


def _wrong(record):
    entries = [entry for name, entry in record["systems"].items() if name.startswith("holdfast")]
    return ", ".join(str(count) for count in (
        *(len(_all(entries, key)) for key in ("stuck", "lost", "double", "failed")),
        sum(len(late(entry)) for entry in entries)))


def runs_table(records):
    """Which runs are on record, the void ones too, and what was wrong with Holdfast in each."""
    return _markdown(["seed", "date", "commit", "minutes of faults", "Kubernetes", "machine",
                      "Holdfast's stuck, lost, double, failed, beyond", "verdict"], [
        [one["seed"], one["date"], one["commit"], one["minutes"], one["kubernetes"], one["machine"], _wrong(one),
         "; ".join([f"void: {one['void']}" if one["void"] else "counts",
                    *(f"{name} took no job at the end" for name in one["refused"])])]
        for one in records])
