"""A second release that observes (docs/rescue.md), beside the one that frees. Both judge the same nodes at the same time:
one the pods of `batch`, the other those of `batch-rescue`. So what the first writes down must be what the second does."""

import dataclasses
import datetime
import json
import re

from localcluster import wait_for
from real_cluster import CHART, moment
from referee.systems.rescued import MARKED, WINDOW

RELEASE = NAMESPACE = "holdfast-observe"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
JOURNAL = f"/api/v1/namespaces/{NAMESPACE}/configmaps/holdfast-rescue-journal"
# All that it may write. A creation has no name in its path.
OWN = {("leases", "holdfast-observer"), ("configmaps", "holdfast-rescue-journal"), ("leases", None), ("configmaps", None)}
SAME_SILENCE = 45  # seconds between the pods of one silence of a node
CLOSE = 2          # seconds between what is written down and what is done
RENEWS = 11        # seconds between two renewals of a node, on a busy machine

# Of the API server: what the observer writes, and nothing else.
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "Metadata", "users": [ACCOUNT], "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
    {"level": "None"}]}


@dataclasses.dataclass
class Silence:
    """Of one node: when it was over for the pods of each of the two, in seconds since 1970."""
    node: str
    due: float = None
    freed: float = None

    @property
    def apart(self):
        return None if None in (self.due, self.freed) else abs(self.due - self.freed)


def silences(due, freed):
    """due, freed: [(node, time)]. The first of each in each silence of a node."""
    found = []
    for kind, times in (("due", due), ("freed", freed)):
        for node, time in sorted(times, key=lambda one: one[1]):
            near = next((one for one in found if one.node == node
                         and abs(time - (one.due or one.freed)) < SAME_SILENCE), None)
            if near is None:
                found.append(Silence(node, **{kind: time}))
            elif getattr(near, kind) is None:
                setattr(near, kind, time)
    return sorted(found, key=lambda one: one.due or one.freed)


def without_a_strike(times, strikes, window):
    """times: [(node, time)] of pods that were freed. strikes: [(nodes, at, end)]. Those of nodes that nothing had kept
    from renewing for so long. A node has renewed up to RENEWS before it was struck."""
    return [(node, time) for node, time in times if not any(
        node in nodes and at - RENEWS + window <= time <= end + CLOSE for nodes, at, end in strikes)]


def not_written_down(found, attempts, window):
    """found: silences. attempts: [(node, first, last sign of life)] of programs without the label, those that came to
    their end left out. The silences that met one of them, and were not written down."""
    return [one for one in found if one.due is None and any(
        node == one.node and first < one.freed - window - RENEWS and one.freed - window - RENEWS < last < one.freed
        for node, first, last in attempts)]


class Observed:
    """watched: the namespace of pods without the label; freed: that of pods with it. audit: the API server's log."""

    def __init__(self, cluster, watched, freed, audit):
        self.cluster, self.watched, self.freed, self.audit = cluster, watched, freed, audit

    def install(self, *arguments):
        repository, _, tag = self.cluster.image.rpartition(":")
        self.cluster.helm(
            "upgrade", "--install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--create-namespace", "--skip-crds",
            "--wait", "--timeout", "5m", "--set", f"image.repository={repository},image.tag={tag}",
            "--set", "rescue.mode=observe", "--set-json", f"rescue.namespaces={json.dumps([self.watched])}", *arguments)
        wait_for("a replica to observe", self._is_held, 60, poll=1)

    def _is_held(self):
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/holdfast-observer"
        return self.cluster.api("GET", lease)[1].get("spec", {}).get("holderIdentity")

    def entries(self):
        status, found = self.cluster.api("GET", JOURNAL)
        return json.loads(found["data"]["journal.json"]) if status == 200 else []

    def rescues(self):
        """(node, when) of each pod that was freed, from its Event."""
        found = self.cluster.api("GET", f"/apis/events.k8s.io/v1/namespaces/{self.freed}/events?limit=5000")[1]["items"]
        return [(re.match(r"node (\S+) ", event["note"])[1], moment(event["eventTime"])) for event in found
                if event["reason"] == "HoldfastNodeSilent" and event["regarding"]["kind"] == "Pod"]

    def foreign_writes(self):
        """What it wrote that is not its own, by the API server's audit log; and how many writes there were."""
        events = [json.loads(line) for line in self.audit.read_text().splitlines()]
        written = {(event["objectRef"].get("resource"), event["objectRef"].get("name")) for event in events
                   if event["user"]["username"] == ACCOUNT}
        return sorted(map(str, written - OWN)), len(events)

    def report(self, strikes, attempts):
        """(text, all is well). strikes: see without_a_strike(). attempts: see not_written_down()."""
        entries = self.entries()
        due = [(one["node"], moment(one["due"])) for one in entries]
        rescues = self.rescues()
        found = silences(due, rescues)
        wrong = without_a_strike(rescues, strikes, WINDOW)
        missed = not_written_down(found, attempts, WINDOW + MARKED)
        both = [one.apart for one in found if one.apart is not None]
        foreign, writes = self.foreign_writes()
        lines = [f"{len(entries)} pods are written down, {sum('returned' in one for one in entries)} of them false verdicts; "
                 f"{len(found)} silences of nodes, {len(both)} of them met both; at most "
                 f"{max(both, default=0):.1f} s apart; {writes} writes, not its own: {foreign or 'none'}",
                 f"{len(rescues)} pods were freed; from nodes that lived: {wrong or 'none'}; silences that should have been "
                 f"written down and were not: {missed or 'none'}",
                 "| node | would be freed | was freed | apart |", "|---|---|---|---|"]
        for one in found:
            apart = "-" if one.apart is None else f"{one.apart:.1f} s"
            lines.append(f"| {one.node} | {_clock(one.due)} | {_clock(one.freed)} | {apart} |")
        return "\n".join(lines), bool(both) and max(both) <= CLOSE and not foreign and not wrong and not missed


def _clock(time):
    return "-" if time is None else f"{datetime.datetime.fromtimestamp(time, datetime.timezone.utc):%H:%M:%S}"
