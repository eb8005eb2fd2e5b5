"""What the referee says of a run: pure, over the ledger, the strikes and what each system says. It trusts no status
but as a claim.

    judge(run)  ->  {system: Verdict}
"""

import dataclasses
from collections import defaultdict

from referee.ledger import BEAT, STILL

# An attempt that ends so soon after a strike's undo still ends because of it: nodes and controllers catch up then.
AFTERMATH = 60
# Strikes on nodes that began so long before a loss may still take the next attempt: it is not known yet that they are
# silent (docs/bounds.md, The dead node again).
UNKNOWN = 60
GONE = "gone"
UNENDED = "all its runs have ended, and it has not"
# A run without a beat for so long waits, and its system can be expected to say why.
IDLE = 10


@dataclasses.dataclass(frozen=True)
class Struck:
    """A strike as it was: `nodes` are names; `keys` are the attempts whose process was struck."""
    kind: str
    begin: float
    end: float
    nodes: tuple = ()
    keys: tuple = ()


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a system says of one unit. outcome: "Succeeded", "Failed" or None: it has not ended. counted: how often it
    counts a success of it. why: what its status says it waits for. by: the pod whose success it counts, where it says
    so. ended: its job has an outcome."""
    unit: object
    outcome: str | None
    counted: int = 0
    why: str = ""
    by: str = ""
    ended: bool = True


@dataclasses.dataclass(frozen=True)
class Wait:
    """What a system said during the run, at a time, of a unit that had not ended."""
    at: float
    unit: object
    why: str


@dataclasses.dataclass
class Run:
    """All that is judged. claims: of all units that were asked for, at the time `over`; where the object is gone, the
    outcome is None and why is GONE. submitted: {(system, job): when the API server took it}."""
    attempts: list
    strikes: list
    claims: list
    over: float
    submitted: dict = dataclasses.field(default_factory=dict)
    waits: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Recovery:
    """From the last sign of life of an attempt to its successor's first."""
    unit: object
    kind: str           # of the strike that ended the attempt; "" where none did
    seconds: float
    at: float
    beside: tuple = ()  # (kind, from, to) of other strikes on nodes or the control plane; seconds after `at`
    row: int = 1        # how many attempts of this unit have ended so in a row, this one included


@dataclasses.dataclass
class Verdict:
    units: int = 0
    succeeded: int = 0
    struck: int = 0                                              # attempts that a strike met at work
    failed: list = dataclasses.field(default_factory=list)       # units that ended as failures
    stuck: list = dataclasses.field(default_factory=list)        # (unit, why)
    lost: list = dataclasses.field(default_factory=list)
    double: list = dataclasses.field(default_factory=list)
    repeated: list = dataclasses.field(default_factory=list)     # units whose program came to its end twice
    overlaps: list = dataclasses.field(default_factory=list)     # (unit, seconds, kind)
    recoveries: list = dataclasses.field(default_factory=list)
    waste: list = dataclasses.field(default_factory=list)        # attempts
    thrown_away: float = 0.0                                     # seconds of work that no outcome has
    starts: list = dataclasses.field(default_factory=list)       # seconds from a job's creation to a unit's first sign
    waits: list = dataclasses.field(default_factory=list)        # (unit, at, why) of units that waited


def judge(run):
    """{system: Verdict} of all systems that were asked for something."""
    by_unit = defaultdict(list)
    for attempt in run.attempts:
        by_unit[attempt.unit].append(attempt)
    asked = {claim.unit for claim in run.claims}
    strange = set(by_unit) - asked
    if strange:
        raise ValueError(f"the ledger has {strange.pop()}, which nobody asked for")
    verdicts = defaultdict(Verdict)
    for claim in run.claims:
        verdict, own = verdicts[claim.unit.system], by_unit[claim.unit]
        _judge_claim(claim, own, verdict)
        _judge_attempts(own, run, verdict)
        created = run.submitted.get((claim.unit.system, claim.unit.job))
        if own and created is not None:
            verdict.starts.append(own[0].start - created)
    for wait in run.waits:
        if _waited(wait, by_unit[wait.unit], run):
            verdicts[wait.unit.system].waits.append((wait.unit, wait.at, wait.why))
    return dict(verdicts)


def _judge_claim(claim, own, verdict):
    verdict.units += 1
    ends = [attempt for attempt in own if attempt.end is not None]
    if len(ends) > 1:
        verdict.repeated.append(claim.unit)
    if claim.outcome is None or not claim.ended:
        where = verdict.lost if claim.why == GONE else verdict.stuck
        where.append(claim.unit if claim.why == GONE else (claim.unit, claim.why or (claim.outcome and UNENDED) or ""))
    if claim.outcome == "Succeeded":
        verdict.succeeded += 1
        if not any(claim.by in ("", attempt.pod) for attempt in ends):
            verdict.lost.append(claim.unit)
    elif claim.outcome == "Failed":
        verdict.failed.append((claim.unit, claim.why))
    if claim.counted > 1:
        verdict.double.append(claim.unit)


def _judge_attempts(own, run, verdict):
    ended = False
    for number, attempt in enumerate(own):
        cause = _cause(attempt, run.strikes)
        verdict.struck += any(_met(attempt, strike) for strike in run.strikes)
        for other in own[number + 1:]:
            seconds = _together(attempt, other)
            if seconds > 0:
                verdict.overlaps.append((attempt.unit, seconds, cause.kind if cause else ""))
        if attempt.end is not None:
            verdict.thrown_away += attempt.worked if ended else 0
            ended = True
            continue
        still_runs = attempt.last > run.over - 2 * STILL
        verdict.thrown_away += 0 if still_runs else attempt.worked
        if cause is None and not still_runs:
            verdict.waste.append(attempt)
        if number + 1 < len(own):
            recovery = _recovery(attempt, own[number + 1], cause, run.strikes, number + 1)
            if recovery:
                verdict.recoveries.append(recovery)


def _recovery(attempt, follower, cause, strikes, row):
    """None where the attempt still ran when its successor began: that is an overlap."""
    last = max(min(end, follower.start) for begin, end in attempt.alive() if begin <= follower.start)
    seconds = follower.start - last
    if seconds <= STILL and attempt.last > follower.start:
        return None
    beside = sorted((strike.kind, strike.begin - last, strike.end - last) for strike in strikes
                    if strike is not cause and not strike.keys
                    and strike.begin <= follower.start and strike.end >= last - UNKNOWN)
    return Recovery(attempt.unit, cause.kind if cause else "", seconds, last, tuple(beside), row)


def _waited(wait, own, run):
    """Whether nothing of this unit was at work, for a while already."""
    created = run.submitted.get((wait.unit.system, wait.unit.job), wait.at)
    return created < wait.at - IDLE and not any(
        begin <= wait.at and end > wait.at - IDLE for attempt in own for begin, end in attempt.alive())


def _together(one, other):
    """Seconds in which both ran."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in one.alive() for b in other.alive())


def _met(attempt, strike):
    """Whether the strike found the attempt at work."""
    return attempt.key in strike.keys or (attempt.node in strike.nodes and any(
        begin - BEAT <= strike.begin <= end + 2 * BEAT for begin, end in attempt.alive()))


def _cause(attempt, strikes):
    """The strike on its process or its node that the end of an attempt is due to, or None. Strikes on the control
    plane excuse nothing: they touch no worker."""
    found = [strike for strike in strikes
             if (attempt.key in strike.keys or attempt.node in strike.nodes)
             and strike.begin - BEAT <= attempt.last + 2 * BEAT and attempt.start <= strike.end
             and attempt.last <= strike.end + AFTERMATH]
    # What began last, before the attempt's last sign of life.
    return max(found, key=lambda strike: (bool(strike.keys), strike.begin), default=None)
