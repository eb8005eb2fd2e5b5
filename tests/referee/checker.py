"""What the referee says of a run: pure, over the ledger, the strikes and what each system claims. It trusts no status
but as a claim.

    judge(attempts, strikes, claims, over)  ->  {system: Verdict}
"""

import dataclasses
from collections import defaultdict

from referee.ledger import BEAT, STILL

# An attempt that ends so soon after a strike's undo still ends because of it: nodes and controllers catch up then.
AFTERMATH = 60
GONE = "gone"
# Overlaps below two beats say nothing: a beat is written when its half second is over.
LEAST_OVERLAP = 2 * BEAT


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
    """What a system says of one unit at the end. outcome: "Succeeded", "Failed" or None: it has not ended. counted:
    how often it counts a success of it. why: what its status says it waits for."""
    unit: object
    outcome: str | None
    counted: int = 0
    why: str = ""


@dataclasses.dataclass
class Recovery:
    """From the last sign of life of an attempt to its successor's first."""
    unit: object
    kind: str           # of the strike that ended the attempt; "" where none did
    seconds: float
    at: float
    beside: tuple = ()  # kinds of other strikes in between
    row: int = 1        # how many attempts of this unit have ended so in a row, this one included


@dataclasses.dataclass
class Verdict:
    units: int = 0
    succeeded: int = 0
    failed: list = dataclasses.field(default_factory=list)       # units that ended as failures
    stuck: list = dataclasses.field(default_factory=list)        # (unit, why)
    lost: list = dataclasses.field(default_factory=list)
    double: list = dataclasses.field(default_factory=list)
    overlaps: list = dataclasses.field(default_factory=list)     # (unit, seconds, kind)
    recoveries: list = dataclasses.field(default_factory=list)
    waste: list = dataclasses.field(default_factory=list)        # attempts

    @property
    def overlap(self):
        return sum(seconds for _, seconds, _ in self.overlaps)


def judge(attempts, strikes, claims, over):
    """claims: of all units that were asked for, at the time `over`. Where the object is gone, the outcome is None and
    why is GONE."""
    by_unit = defaultdict(list)
    for attempt in attempts:
        by_unit[attempt.unit].append(attempt)
    verdicts = defaultdict(Verdict)
    for claim in claims:
        _judge_claim(claim, by_unit[claim.unit], verdicts[claim.unit.system])
    asked = {claim.unit for claim in claims}
    for unit, own in by_unit.items():
        if unit in asked:
            _judge_attempts(own, strikes, over, verdicts[unit.system])
        elif own:
            raise ValueError(f"the ledger has {unit}, which nobody asked for")
    return dict(verdicts)


def _judge_claim(claim, own, verdict):
    verdict.units += 1
    ends = sum(attempt.end is not None for attempt in own)
    if claim.outcome == "Succeeded":
        verdict.succeeded += 1
        if not ends:
            verdict.lost.append(claim.unit)
    elif claim.outcome == "Failed":
        verdict.failed.append((claim.unit, claim.why))
    elif claim.why == GONE:
        verdict.lost.append(claim.unit)
    else:
        verdict.stuck.append((claim.unit, claim.why))
    if claim.counted > 1:
        verdict.double.append(claim.unit)


def _judge_attempts(own, strikes, over, verdict):
    for number, attempt in enumerate(own):
        cause = _cause(attempt, strikes)
        for other in own[number + 1:]:
            seconds = _together(attempt, other)
            if seconds >= LEAST_OVERLAP:
                verdict.overlaps.append((attempt.unit, seconds, cause.kind if cause else ""))
        still_runs = attempt.last > over - 2 * STILL
        if attempt.end is None and cause is None and not still_runs:
            verdict.waste.append(attempt)
        if attempt.end is None and number + 1 < len(own):
            recovery = _recovery(attempt, own[number + 1], cause, strikes, number + 1)
            if recovery:
                verdict.recoveries.append(recovery)


def _recovery(attempt, follower, cause, strikes, row):
    """None where the attempt still ran when its successor began: that is an overlap."""
    last = max(min(end, follower.start) for begin, end in attempt.alive() if begin <= follower.start)
    seconds = follower.start - last
    if seconds <= STILL and attempt.last > follower.start:
        return None
    beside = {strike.kind for strike in strikes
              if strike is not cause and strike.begin <= follower.start and strike.end + AFTERMATH >= last
              and not strike.keys}
    return Recovery(attempt.unit, cause.kind if cause else "", seconds, last, tuple(sorted(beside)), row)


def _together(one, other):
    """Seconds in which both ran."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in one.alive() for b in other.alive())


def _cause(attempt, strikes):
    """The strike on its process or its node that the end of an attempt is due to, or None. Strikes on the control
    plane excuse nothing: they touch no worker."""
    found = [strike for strike in strikes
             if (attempt.key in strike.keys or attempt.node in strike.nodes)
             and strike.begin - BEAT <= attempt.last + 2 * BEAT and attempt.start <= strike.end
             and attempt.last <= strike.end + AFTERMATH]
    # What began last, before the attempt's last sign of life.
    return max(found, key=lambda strike: (bool(strike.keys), strike.begin), default=None)
