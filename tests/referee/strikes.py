"""What the nemesis does in a run, and when: a pure function of the seed."""

import dataclasses
import random

# Seconds that a strike lasts, from its begin to its undo.
NODE = {"node-killed": (70, 110), "node-paused": (20, 100), "node-cut-off": (70, 120), "kubelet-stopped": (70, 110)}
PROCESS = {"process-frozen": (40, 80), "process-crashed": (0, 0), "process-hung": (40, 80)}
CONTROL = {"api-server-paused": (10, 30), "etcd-paused": (10, 30), "controllers-killed": (0, 0)}
# Dead until the faults end: who waits for a node to come back waits long.
GONE = "node-gone"
KINDS = (GONE, *NODE, *PROCESS, *CONTROL)
QUIET = 10      # before the first strike
STILL_RUNS = 2  # seconds since the last beat of an attempt that is taken to run


@dataclasses.dataclass(frozen=True)
class Strike:
    """`at`: seconds from the begin of the run; `choice`: decides between equal victims, 0 to 1. For a process: which
    index of the newest job that runs."""
    kind: str
    at: float
    seconds: float
    choice: float

    @property
    def end(self):
        return self.at + self.seconds


def schedule(seed, minutes, nodes_only=False):
    """The strikes of a run of so many minutes, by their begin. All end when it does.

    One node is killed for good. Beside it, one node at a time is struck by turns. Processes and the control plane are
    struck meanwhile, by a clock of their own, unless `nodes_only`: the nodes have the same strikes then."""
    random_ = random.Random(f"referee {seed}")
    total = 60 * minutes
    # A cut-off first: without one the canary cannot be found.
    nodes = ["node-cut-off", *_shuffled(random_, [kind for kind in NODE if kind != "node-cut-off"])]
    others = _shuffled(random_, [*PROCESS, *CONTROL])
    strikes = _lane(random_, nodes, NODE, QUIET, total, (20, 40))
    meanwhile = _lane(random_, others, PROCESS | CONTROL, 2 * QUIET, total, (15, 40))
    strikes += [] if nodes_only else meanwhile
    gone = random_.uniform(0.2, 0.3) * total
    strikes.append(Strike(GONE, round(gone, 1), round(total - gone, 1), random_.random()))
    return sorted(strikes, key=lambda strike: strike.at)


def _shuffled(random_, kinds):
    return random_.sample(kinds, len(kinds))


def _lane(random_, kinds, lengths, begin, total, pause):
    """One strike after the other, each kind once before any comes again."""
    strikes, at, number = [], begin + random_.uniform(0, 10), 0
    while True:
        kind = kinds[number % len(kinds)]
        seconds = random_.uniform(*lengths[kind])
        if at + seconds > total:
            return strikes
        strikes.append(Strike(kind, round(at, 1), round(seconds, 1), random_.random()))
        at += seconds + random_.uniform(*pause)
        number += 1


def node_for(strike, free, at_work, vendors):
    """The free node on which most vendors have an attempt: however many systems are one's, it has one vote. A node is
    cut off where the canary without a fence is at work, if it is anywhere: it can be found in no other way.
    at_work: (system, node) of attempts. vendors: {system: vendor}."""
    if strike.kind == "node-cut-off":
        free = [node for node in free if ("canary", node) in at_work] or free

    def weight(node):
        return len({vendors[system] for system, where in at_work if where == node})

    most = max(map(weight, free))
    best = [node for node in free if weight(node) == most]
    return best[int(strike.choice * len(best))]
