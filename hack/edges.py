"""The edges of reconciler/edge_table.h, for all that is not C++: the CRD's rules, the picture, the tests' invariants.

    import edges
    edges.is_edge("Running", "Cancelled", has_stages=True)
"""

import pathlib
import re
import typing

TABLE = pathlib.Path(__file__).resolve().parent.parent / "reconciler/edge_table.h"
LINE = re.compile(r'\{\s*Phase::k(\w+),\s*Phase::k(\w+),\s*"([^"]+)"(,\s*true)?\s*\}')


class Edge(typing.NamedTuple):
    start: str  # "" for a job without a phase
    end: str
    when: str
    needs_stages: bool


def _read():
    text = TABLE.read_text()
    found = [Edge("" if start == "None" else start, end, when, bool(stages))
             for start, end, when, stages in LINE.findall(text)]
    if len(found) != text.count("{Phase::k"):
        raise ValueError(f"{TABLE}: a line does not look like the others")
    return found


EDGES = _read()


def is_edge(start, end, has_stages):
    """As the C++ function of this name: whether a status write may go from `start` to `end`."""
    if start == end:
        return start != ""
    return end in ends(start, has_stages)


def ends(start, has_stages=True):
    """Where a job may go from this phase, in the table's order."""
    return [edge.end for edge in EDGES if edge.start == start and (has_stages or not edge.needs_stages)]


def listed(phases, last="or"):
    """Pending, Running or Failed."""
    return f" {last} ".join(filter(None, [", ".join(phases[:-1]), phases[-1]]))


# ---- The CEL rules of the CRD: {"rule": ..., "message": an expression that gives the message}.


def _only_with_stages():
    """{phase: where only a job with stages goes from it}"""
    found = {}
    for edge in EDGES:
        if edge.needs_stages:
            found.setdefault(edge.start, []).append(edge.end)
    return found


def _map(entries):
    return "{ " + ", ".join(f"'{key}': {value}" for key, value in entries) + "}"


def _next(phase):
    """What a message says of a phase."""
    without = ends(phase, has_stages=False)
    if not without:
        return ": the job has ended; create a new one to run it again"
    more = _only_with_stages().get(phase)
    return f": next is {listed(without)}" + (f", and with stages also {listed(more)}" if more else "")


def phase_rule(phases):
    """On status.phase: the edges of all jobs. `phases` are the values of the field."""
    entries = _map((phase, ends(phase)) for phase in phases)
    return {"rule": f"self == oldSelf || self in {entries}[oldSelf]",
            "message": "'must not go from ' + oldSelf + ' to ' + self + "
                       + _map((phase, f"'{_next(phase)}'") for phase in phases) + "[oldSelf]"}


def stages_rule(_phases):
    """On status, which shows the stages: the edges that only a job with stages takes."""
    only = _only_with_stages()
    taken = " || ".join(f"(oldSelf.phase == '{phase}' && self.phase in {found})" for phase, found in only.items())
    others = _map((phase, f"'{listed(ends(phase, has_stages=False))}'") for phase in only)
    return {"rule": f"has(self.stage) || self.phase == oldSelf.phase || !({taken})",
            "message": "'must not go from ' + oldSelf.phase + ' to ' + self.phase + "
                       f"', because only a job with stages does: next is ' + {others}[oldSelf.phase]"}


RULES = {"phase": phase_rule, "stages": stages_rule}
