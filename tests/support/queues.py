"""JobQueues of a namespace, and how many permits of them were ever out at once."""

import collections
import json

from holdfast import Jobs
from localcluster import wait_for
from record import TERMINAL, Recorder
from replicas import shard_of

HOLDS = {"Running", "Cancelling"}


def queue(name, **spec):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "JobQueue", "metadata": {"name": name}, "spec": spec}


class Queues(Jobs):
    """The same as Jobs, of the namespace's JobQueues."""

    def __init__(self, cluster, namespace="default"):
        super().__init__(cluster, namespace)
        self.path = self.path.removesuffix("durablejobs") + "jobqueues"


def holds_permit(version):
    """Whether this version of a job does: one that is being deleted holds none."""
    phase = version.object.get("status", {}).get("phase")
    return not version.deleted and "deletionTimestamp" not in version.object["metadata"] and phase in HOLDS


# The highest numbers that were ever out at once, and the names of jobs in the order in which they got a permit.
Permits = collections.namedtuple("Permits", "most most_of_key started")


def permits(record):
    """By every version of every job, as etcd has them (record.Recorder)."""
    versions = sorted((version for history in record.versions("job").values() for version in history),
                      key=lambda version: version.revision)
    holders, most, most_of_key, started = {}, 0, collections.Counter(), []
    for version in versions:
        reference = version.object["spec"].get("queue")
        if not reference:
            continue
        holds = holds_permit(version)
        if holds and version.uid not in holders:
            holders[version.uid] = reference.get("key", "")
            started.append(version.name)
        elif not holds:
            holders.pop(version.uid, None)
        most = max(most, len(holders))
        for key, count in collections.Counter(holders.values()).items():
            most_of_key[key] = max(most_of_key[key], count)
    return Permits(most, most_of_key, started)


def said(record, name, reason):
    """In how many versions of the job `waiting` has this reason for the first time."""
    times, before = 0, None
    for history in record.versions("job").values():
        for version in history:
            if version.name != name:
                continue
            now = (version.object.get("status", {}).get("waiting") or {}).get("reason")
            times += now == reason and before != reason
            before = now
    return times


class QueueRecorder(Recorder):
    """Records every version of the JobQueues too, as kind "queue"."""

    KINDS = {**Recorder.KINDS, "queue": "/registry/holdfast.dev/jobqueues/{}/"}


def overdrawn(record):
    """S19 at each revision, by a QueueRecorder: where more permits were out than the queue allows at that revision,
    or more of a key. Jobs that were admitted and have not moved count too. No limit may have been lowered."""
    versions = [version for kind in ("job", "queue")
                for history in record.versions(kind).values() for version in history]
    versions.sort(key=lambda version: version.revision)
    jobs, queues, out, found = {}, {}, collections.defaultdict(set), []
    for version in versions:
        if version.kind == "queue":
            name = version.name
            queues[name] = {} if version.deleted else version.object
        else:
            name = version.object["spec"].get("queue", {}).get("name")
            status = version.object.get("status", {})
            if version.deleted:
                jobs.pop(version.uid, None)
            else:
                jobs[version.uid] = (version.object["spec"].get("queue", {}).get("key", ""), status.get("phase"),
                                     status.get("attempt", 0))
            (out[name].add if holds_permit(version) else out[name].discard)(version.uid)
        found += [f"{name} at {version.revision}, by {version.kind} {version.name}: {text}"
                  for text in _above(queues.get(name, {}), out[name], jobs)]
    return found


def _above(stored, out, jobs):
    """What is above the limits of a queue's version, with these jobs' permits out."""
    spec = stored.get("spec", {})
    admitted = {entry["uid"] for entry in stored.get("status", {}).get("admitting") or []
                if entry["uid"] in jobs and jobs[entry["uid"]][1] not in TERMINAL
                and jobs[entry["uid"]][2] <= entry["attempt"]}
    used = out | admitted
    if len(used) > spec.get("concurrency", len(used)):
        yield f"{len(used)} permits, {len(out)} of them recorded"
    for key, count in collections.Counter(jobs[uid][0] for uid in used).items():
        if key and count > spec.get("concurrencyPerKey", count):
            yield f"{count} permits of key {key}"


def owner(replicas, namespace, limit=60):
    """The replica that admits the namespace's jobs, by its own word. One that was killed has none."""
    shard = shard_of(namespace)

    def holder():
        return next((replica for replica in replicas if replica.process.poll() is None and holds_shard(replica, shard)),
                    None)

    return wait_for(f"a replica to hold shard {shard}", holder, limit, poll=0.05)


def holds_shard(replica, shard):
    status, text = replica.get("/debug/ownership") if replica.find_address() else (0, "")
    return status == 200 and any(it["shard"] == shard and it["held"] for it in json.loads(text)["shards"])
