"""What became of batch/v1 Jobs when a node died, from the versions that a record.Recorder has of them and their pods.

All times are seconds since the node's death. `pods` and `batch` are {uid: versions}.
"""

import collections
import datetime

JOB_LABEL = "batch.kubernetes.io/job-name"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
ENDED = ("Succeeded", "Failed")

# When a pod ran; `end` is None while it does. What it did on the dead node after that died is not known.
Run = collections.namedtuple("Run", "node start end")


def runs_of(pods, name, death, node):
    """The runs of this Job's pods that began, the first one first. `death`: time.monotonic() when `node` died."""
    found = []
    for versions in pods.values():
        if versions[0].object["metadata"]["labels"].get(JOB_LABEL) != name:
            continue
        start, end = (_first(versions, death, states) for states in (("Running", *ENDED), ENDED))
        place = versions[-1].object["spec"].get("nodeName")
        if place == node and start is not None and start < 0:
            end = 0.0 if end is None else min(end, 0.0)
        if start is not None and (place != node or start < 0):
            found.append(Run(place, start, end))
    return sorted(found, key=lambda run: run.start)


def _first(versions, death, phases):
    """When a version was seen that is in one of these phases."""
    return next((round(version.seen - death, 1) for version in versions
                 if version.object["status"].get("phase") in phases), None)


def gap(runs):
    """Seconds from the node's death to the next run."""
    return min(run.start for run in runs if run.start > 0)


def is_admitted(job):
    """Whether it uses quota of its queue."""
    return not job["spec"].get("suspend") and not has_ended(job)


def has_ended(job):
    return any(condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
               for condition in job.get("status", {}).get("conditions", []))


def admissions(versions, death):
    """[(start, end)] of one Job: each time that it was admitted. `end` is None while it is."""
    found, since = [], None
    for version in versions:
        admitted = not version.deleted and is_admitted(version.object)
        at = round(version.seen - death, 1)
        if admitted and since is None:
            since = at
        elif not admitted and since is not None:
            found.append((since, at))
            since = None
    return found + ([(since, None)] if since is not None else [])


def most_admitted(batch):
    """How many of these Jobs, versions by name or uid, were admitted at once, at most. It goes by revisions, so no moment
    is missed."""
    admitted, most = set(), 0
    for version in sorted((version for versions in batch.values() for version in versions),
                          key=lambda version: version.revision):
        if not version.deleted and is_admitted(version.object):
            admitted.add(version.uid)
        else:
            admitted.discard(version.uid)
        most = max(most, len(admitted))
    return most


def scheduled(job):
    """When the CronJob had to create this Job, in seconds since 1970; None: no CronJob has made it."""
    at = job["metadata"].get("annotations", {}).get(SCHEDULED)
    return at and datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()
