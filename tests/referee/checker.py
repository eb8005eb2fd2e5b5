"""What the referee says of a run: pure, over the ledger, the strikes and what each system says. It trusts no status
but as a claim.

    judge(run)  ->  {system: Verdict}
"""

import dataclasses
import re
from collections import defaultdict

from referee.ledger import BEAT, STILL
from referee.strikes import GONE as NODE_GONE

OUTAGES = ("api-server-paused", "etcd-paused")
CAUGHT_UP = 15  # seconds after an outage
# A node on which its attempts work on, and from which nothing is heard.
SILENT = ("node-cut-off", "kubelet-stopped")
# What ends a process for sure, whatever else strikes it.
DEADLY = ("process-crashed", "node-killed", NODE_GONE)
# What ends an attempt as a failure of its program; all else is a loss.
FAILURES = ("process-crashed", "process-hung")

# An attempt that ends so soon after a strike's undo still ends because of it: nodes and controllers catch up then.
AFTERMATH = 60
# Strikes on nodes that began so long before a loss may still take the next attempt: it is not known yet that they are
# silent (docs/bounds.md, The dead node again).
UNKNOWN = 60
# So many others must be there, and more than this share of them be silent (docs/bounds.md, Mass silence).
MASS_OF, MASS = 3, 0.55
# From the end of a program to its kubelet's report, where nobody saw the report.
REPORTED = 3
GONE = "gone"
UNENDED = "all its runs have ended, and it has not"
# A run without a beat for so long waits, and its system can be expected to know, and to say why.
IDLE = 60


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
    """What a system said during the run, at a time, of a unit that had not ended. why: the job, or what belongs to it.
    pod: the unit's pods."""
    at: float
    unit: object
    why: str
    pod: str = ""


@dataclasses.dataclass(frozen=True)
class Pod:
    """Of one attempt of a unit; it may never have begun. created: by the API server's clock, a whole second. order: of
    creations. reported: when the API server first said that its container had ended, or None."""
    unit: object
    uid: str
    created: float
    order: int = 0
    reported: float | None = None


@dataclasses.dataclass(frozen=True)
class Worker:
    """A warm worker's pod. ready: when the API server first said so; gone: when it no longer did, or None."""
    system: str
    node: str
    ready: float
    gone: float | None = None


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
    pods: list = dataclasses.field(default_factory=list)
    workers: list = dataclasses.field(default_factory=list)
    slots: dict = dataclasses.field(default_factory=dict)  # {system: of each of its workers}
    agents: tuple = ()  # systems whose attempts prove by themselves that they live: a kubelet that stops ends none


@dataclasses.dataclass
class Recovery:
    """From the last sign of life of an attempt to its successor's first."""
    unit: object
    kind: str           # of the strike that ended the attempt; "" where none did
    seconds: float
    at: float
    # (kind, from, to, met) of other strikes on nodes or the control plane; seconds after `at`; met: its own node.
    beside: tuple = ()
    row: int = 1        # how many losses, or failures, of this unit there were in a row, this one included
    ended: bool = False  # the program had come to its end when the strike came
    most: bool = False   # the strike silenced most of the system's attempts, as each outage does
    # (from, to), seconds after `at`: no warm worker that no strike had was free. Of systems with warm workers.
    full: tuple = ()


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
    # As Recovery, of the attempts whose node fell silent, but from the strike on: whether or not they worked on.
    replaced: list = dataclasses.field(default_factory=list)
    # As Recovery, until the next pod was created: a system's own part. From the last beat, or from the strike where the
    # node fell silent. Of systems with a pod for each attempt.
    decisions: list = dataclasses.field(default_factory=list)
    waste: list = dataclasses.field(default_factory=list)        # attempts
    phantoms: int = 0                                            # pods that never began
    thrown_away: float = 0.0                                     # seconds of work that no outcome has
    starts: list = dataclasses.field(default_factory=list)       # seconds from a job's creation to a unit's first sign
    done: list = dataclasses.field(default_factory=list)         # and to the end that its system counts
    waits: list = dataclasses.field(default_factory=list)        # (unit, at, the reason, or "") of units that waited


def judge(run):
    """{system: Verdict} of all systems that were asked for something."""
    by_unit = defaultdict(list)
    for attempt in run.attempts:
        by_unit[attempt.unit].append(attempt)
    pods = defaultdict(list)
    for pod in sorted(run.pods, key=lambda one: (one.created, one.order)):
        pods[pod.unit].append(pod)
    asked = {claim.unit for claim in run.claims}
    strange = set(by_unit) - asked
    if strange:
        raise ValueError(f"the ledger has {strange.pop()}, which nobody asked for")
    verdicts = defaultdict(Verdict)
    for claim in run.claims:
        verdict, own = verdicts[claim.unit.system], by_unit[claim.unit]
        _judge_claim(claim, own, verdict)
        _judge_attempts(own, pods[claim.unit], run, verdict)
        verdict.decisions += _decisions(own, pods[claim.unit], run)
        verdict.phantoms += len({pod.uid for pod in pods[claim.unit]} - {attempt.pod for attempt in own})
        created = run.submitted.get((claim.unit.system, claim.unit.job))
        if own and created is not None:
            verdict.starts.append(own[0].start - created)
            verdict.done += [end - created for end in _counted_end(claim, own)]
    for wait in run.waits:
        if _waited(wait, by_unit[wait.unit], run):
            verdicts[wait.unit.system].waits.append((wait.unit, wait.at, reason_of(wait)))
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


def _counted_end(claim, own):
    """[when the program of the attempt ended whose success is counted], or []. The first one, where nobody says which."""
    ends = [attempt.end for attempt in own if attempt.end is not None and claim.by in ("", attempt.pod)]
    return [min(ends)] if ends and claim.outcome == "Succeeded" else []


def _judge_attempts(own, pods, run, verdict):
    ended = False
    created = {pod.uid: pod.created for pod in pods}
    causes = [_causes(attempt, run, next((other.start for other in own if other.start > attempt.last), run.over))
              for attempt in own]
    for number, attempt in enumerate(own):
        cause = _likeliest(causes[number])
        verdict.struck += any(_met(attempt, strike) for strike in run.strikes)
        verdict.overlaps += [(attempt.unit, seconds, cause.kind if cause else "") for other in own[number + 1:]
                             if (seconds := _together(attempt, other)) > 0]
        if cause and cause.kind in SILENT:
            verdict.replaced += _replaced(own, number, causes, run)
        if attempt.end is not None:
            verdict.thrown_away += attempt.worked if ended else 0
            ended = True
            continue
        still_runs = attempt.last > run.over - 2 * STILL
        verdict.thrown_away += 0 if still_runs else attempt.worked
        if cause is None and not still_runs and not _was_away(attempt, created.get(attempt.pod), run):
            verdict.waste.append(attempt)
        if number + 1 < len(own):
            verdict.recoveries += _recovery(own, number, causes, run)


def _was_away(attempt, created, run):
    """Whether its node was struck when its pod was made, and it began when the node came back: it was replaced by then."""
    return created is not None and any(
        attempt.node in strike.nodes and strike.begin <= created < strike.end <= attempt.start + STILL
        and attempt.start <= strike.end + AFTERMATH for strike in run.strikes)


def _recovery(own, number, causes, run):
    """[it], or [] where an earlier attempt still worked when this one's successor began: that is an overlap."""
    start = own[number + 1].start
    before = own[:number + 1]
    last = max(min(end, start) for attempt in before for begin, end in attempt.alive() if begin <= start)
    if start - last <= STILL and any(attempt.last > start for attempt in before):
        return []
    # Of those before, the one that worked last: another may have begun for a moment on a node that came back.
    number = max(range(number + 1), key=lambda one: own[one].last)
    # What hung or was frozen had given no sign for a while when its node died.
    cause = _likeliest(causes[number])
    hung = cause and cause.kind in DEADLY and cause.begin > last + STILL
    begin = min(cause.begin, start) if hung else last
    return [_measured(own[number].unit, causes, number, begin, start, run)]


def _replaced(own, number, causes, run):
    """[from the strike to the next start], or [] where there is none: it may have worked on, to its end."""
    begin = _likeliest(causes[number]).begin
    start = next((attempt.start for attempt in own[number + 1:] if attempt.start > begin), None)
    return [] if start is None else [_measured(own[number].unit, causes, number, begin, start, run)]


def _decisions(own, pods, run):
    """Of each attempt that a strike ended, or whose node it silenced, and that has a next pod."""
    found = []
    attempts = {attempt.pod: attempt for attempt in own}
    causes = []
    for number, (pod, successor) in enumerate(zip(pods, pods[1:])):
        attempt = attempts.get(pod.uid)
        # One without a sign of life went to a node that was gone: a loss.
        causes.append(_causes(attempt, run, successor.created) if attempt else [])
        cause = _likeliest(causes[number])
        if not attempt or not (cause or _outage(attempt.last, run)):
            continue
        begin, ended = attempt.last, False
        if cause:
            hung = cause.kind in DEADLY and cause.begin > attempt.last + STILL
            works_on = cause.kind in SILENT or successor.created < attempt.last  # a paused node may come back
            begin = cause.begin if hung or works_on else attempt.last
            ended = attempt.end is not None and attempt.end <= cause.begin
            # A program that fails on a node that is well: its kubelet says so, in a time of its own.
            if cause.kind == "process-crashed":
                begin = max(begin, pod.reported or begin + REPORTED)
        measured = _measured(attempt.unit, causes, number, begin, max(begin, successor.created), run)
        found.append(dataclasses.replace(measured, ended=ended))
    return found


def _measured(unit, causes, number, begin, start, run):
    cause = _likeliest(causes[number])
    beside = sorted((strike.kind, strike.begin - begin, strike.end - begin, strike in causes[number]) for strike in run.strikes
                    if strike is not cause and not strike.keys
                    and strike.begin <= start and strike.end >= begin - UNKNOWN)
    row = 1
    while number >= row and _fails(cause) in _classes(causes[number - row]):
        row += 1
    kind = cause.kind if cause else _outage(begin, run)
    most = _silences_most(unit.system, cause, run) if cause else kind in OUTAGES
    return Recovery(unit, kind, start - begin, begin, tuple(beside), row, most=most, full=tuple(_full(unit.system, begin, start, run)))


def _full(system, begin, end, run):
    """(from, to), seconds after `begin`, of each time until `end` in which no slot was free of a worker that is well."""
    slots = run.slots.get(system)
    if not slots or not run.workers:
        return []
    own = [attempt for attempt in run.attempts if attempt.unit.system == system]
    moments = [*(at for worker in run.workers for at in (worker.ready, worker.gone or end)),
               *(at for attempt in own for at in (attempt.start, attempt.last)),
               *(at for strike in run.strikes for at in (strike.begin, strike.end))]
    changes = sorted({begin, end, *(at for at in moments if begin < at < end)})
    spans = []
    for at, until in zip(changes, changes[1:]):
        if _is_free(system, at, own, run):
            continue
        if spans and spans[-1][1] == at - begin:
            spans[-1] = (spans[-1][0], until - begin)
        else:
            spans.append((at - begin, until - begin))
    return spans


def _is_free(system, at, own, run):
    """Whether a worker that no strike had at this moment had a free slot."""
    now = [strike for strike in run.strikes if strike.begin <= at < strike.end]
    struck = {node for strike in now for node in strike.nodes}
    well = [attempt for attempt in own if attempt.node not in struck]
    # A frozen worker has whatever else is in it.
    frozen = {attempt.pod for strike in now if strike.kind == "process-frozen" for attempt in well if attempt.key in strike.keys}
    workers = sum(worker.system == system and worker.node not in struck and worker.ready <= at
                  and (worker.gone is None or worker.gone > at) for worker in run.workers)
    busy = sum(attempt.pod not in frozen and attempt.start <= at < attempt.last for attempt in well)
    return run.slots[system] * (workers - len(frozen)) > busy


def _silences_most(system, strike, run):
    """Whether the strike silenced the nodes of most of the system's agents, and there were at least four: of each of
    them at least three others count (docs/bounds.md, Mass silence). A warm worker has one, also if it has no attempt."""
    at = strike.begin
    agents = [worker.node for worker in run.workers if worker.system == system and worker.ready <= at
              and (worker.gone is None or worker.gone > at)]
    agents = agents or [attempt.node for attempt in run.attempts
                        if attempt.unit.system == system and _at_work(attempt, at)]
    others = sum(node in strike.nodes for node in agents) - 1
    return len(agents) > MASS_OF and others > MASS * (len(agents) - 1)


def _outage(at, run):
    """The kind of the outage of the control plane during or right after which an attempt ended that nothing had struck:
    an agent that cannot renew stops its program. Such an end is waste all the same."""
    return next((strike.kind for strike in run.strikes
                 if strike.kind in OUTAGES and strike.begin <= at <= strike.end + CAUGHT_UP), "")


def _fails(cause):
    return cause is not None and cause.kind in FAILURES


def _classes(causes):
    """Whether its end was a failure or a loss. If a fault of its process and one of its node met it, it may be both."""
    return {_fails(cause) for cause in causes or [None]}


def reason_of(wait):
    """What it says of this unit, or "". That the job runs is no reason why this unit does not, and what is said of
    another run is none either."""
    kind, _, message = wait.why.partition(":")
    other = re.search(r"\brun (\d+)\b", message)
    beside = re.findall(r"; runs? ([\d,-]+): \w", message)
    if any(_has(runs, wait.unit.index) for runs in beside):
        return wait.why
    if not wait.why or kind.endswith("Running") or (other and int(other[1]) != wait.unit.index):
        return wait.pod
    return wait.why


def _has(runs, index):
    """Whether a list such as "1,3-5" has it."""
    spans = [span.split("-") for span in runs.split(",")]
    return any(int(span[0]) <= index <= int(span[-1]) for span in spans)


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
    return (attempt.key in strike.keys or attempt.node in strike.nodes) and _at_work(attempt, strike.begin)


def _at_work(attempt, at):
    return any(begin - BEAT <= at <= end + 2 * BEAT for begin, end in attempt.alive())


def _lived(attempt, strikes, until):
    """Until when there was a process: one that hangs or is frozen gives no sign, and can still be struck."""
    held = [min(strike.end, until) for strike in strikes if attempt.key in strike.keys
            and strike.kind != "process-crashed" and strike.begin <= attempt.last + 2 * BEAT]
    lived = max([attempt.last, *held])
    return lived if attempt.term is None else max(attempt.last, min(lived, attempt.term))


def _causes(attempt, run, until):
    """The strikes on its process or its node that the end of an attempt may be due to. until: the next attempt began
    then. Strikes on the control plane excuse nothing: they touch no worker."""
    lived = _lived(attempt, run.strikes, until)
    # An agent that asked its program to end did not do so because the kubelet had stopped.
    renews = attempt.unit.system in run.agents and attempt.end is None
    return [strike for strike in run.strikes
            if (attempt.key in strike.keys or attempt.node in strike.nodes) and strike.begin <= until
            and not (renews and strike.kind == "kubelet-stopped")
            and strike.begin - BEAT <= lived + 2 * BEAT and attempt.start <= strike.end
            and attempt.last <= strike.end + AFTERMATH]


def _likeliest(causes):
    """The one that the end is due to, or None. A dead node ends what hung on it. Then what struck the process, and what
    began last."""
    return max(causes, key=lambda strike: (strike.kind in DEADLY, bool(strike.keys), strike.begin), default=None)
