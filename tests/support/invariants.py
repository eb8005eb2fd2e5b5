"""The invariants S1-S6 and S8 of docs/internals/verification.md, checked on the record of a whole run, and
the accounts of every job recomputed from its pods alone.

    violations(record.versions("job"), record.versions("pod"))      -> ["S3 Fence: ...", ...]
"""

from edges import is_edge
from record import ATTEMPT_LABEL, FINALIZER, TERMINAL

SPENDS = {"Failed": "failures", "Hung": "failures", "DeadlineExceeded": "failures",
          "Lost": "disruptions", "StartTimeout": "disruptions"}
# Of a terminal status only these may still change.
MAY_CHANGE = ("conditions", "observedGeneration")
# Fields that a finished job may get later, once.
MAY_COME = {"settled": True}
NEVER_CREATED = "PodNeverCreated"


def violations(jobs, pods):
    """What was broken, each with the invariant's name; `jobs` and `pods` are {uid: versions}."""
    found = []
    by_job = _pods_by_job(pods)
    for uid, versions in jobs.items():
        mine = by_job.get(uid, [])
        for before, after in zip([None, *versions], versions):
            if after.deleted:
                found.append(f"S5 NoLoss: job {after.name} was deleted at {after.revision}")
                continue
            for rule in (_one_outcome, _fence, _legal_edges, _budget):
                found += [f"{line} (job {after.name} at {after.revision})" for line in rule(before, after)]
            found += [f"{line} (job {after.name} at {after.revision})" for line in _fenced_outcome(before, after, mine)]
        found += [f"{line} (job {versions[0].name})" for line in _one_pod(versions, mine)]
    for versions in pods.values():
        found += _tenancy(versions[-1], jobs)
    return found


def accounts(versions, pods):
    """What a job's end must be, from its pods alone: (phase, attempt, failures, disruptions,
    attempts without a pod). `versions` and `pods` are those of one job."""
    spec = versions[-1].object["spec"]
    last_attempt = max(_status(version).get("attempt", 0) for version in versions)
    late = _given_up(versions)
    ends = {_attempt(history): history[-1].object["status"].get("phase") for history in pods
            if _attempt(history) not in late}
    failures = sum(1 for phase in ends.values() if phase == "Failed")
    bare = sorted(set(range(1, last_attempt + 1)) - set(ends))
    succeeded = ends.get(last_attempt) == "Succeeded"
    phase = "Succeeded" if succeeded else "Failed" if failures > spec.get("backoffLimit", 6) else "?"
    return phase, last_attempt, failures, len(bare), bare


def unbalanced(jobs, pods):
    """The jobs whose status does not say what their pods say, and what ran after a success. No pod
    of theirs may have been disturbed: then each lost attempt is one that never had a pod."""
    found = []
    by_job = _pods_by_job(pods)
    for uid, versions in jobs.items():
        mine = by_job.get(uid, [])
        status = _status(versions[-1])
        expected = accounts(versions, mine)
        told = (status.get("phase"), status.get("attempt"), status.get("failures", 0), status.get("disruptions", 0))
        if told != expected[:4]:
            entries = [f"{entry['attempt']}: {entry['outcome']}, {entry.get('reason')}, "
                       f"{entry.get('message')}" for entry in status.get("history", [])]
            ends = [f"{history[-1].name}: {history[-1].object['status']}" for history in mine]
            found.append(f"job {versions[0].name} tells {told}, its pods tell {expected[:4]}: "
                         f"{entries}, {ends}")
        for history in mine:
            succeeded = history[-1].object["status"].get("phase") == "Succeeded"
            if succeeded and _attempt(history) != status.get("attempt") and (
                    _attempt(history) not in _given_up(versions)):
                found.append(f"job {versions[0].name} ran on after attempt {_attempt(history)} "
                             f"had succeeded, to {status.get('attempt')}")
        if status.get("phase") not in TERMINAL:
            found.append(f"job {versions[0].name} has not ended: {status.get('phase')}")
        found += [f"pod {history[-1].name} still has our finalizer" for history in mine
                  if not history[-1].deleted
                  and FINALIZER in history[-1].object["metadata"].get("finalizers", [])]
    return found


def _given_up(versions):
    """The attempts that were lost before their pod existed; one that comes late is fenced, whatever
    becomes of it."""
    return {entry["attempt"] for version in versions for entry in _status(version).get("history", [])
            if entry.get("reason") == NEVER_CREATED}


def lost_intents(jobs):
    """[(job name, attempt, when the intent was seen)] of the attempts that never got a pod."""
    found = []
    for versions in jobs.values():
        seen = {}
        for version in versions:
            seen.setdefault(_status(version).get("attempt", 0), version.seen)
        lost = {}
        for version in versions:
            for entry in _status(version).get("history", []):
                if entry.get("reason") == NEVER_CREATED:
                    lost[entry["attempt"]] = True
        found += [(versions[0].name, attempt, seen[attempt]) for attempt in lost]
    return found


# -- each invariant -------------------------------------------------------------------------------


def _pod_name(status):
    """The pod of a job's run, or its worker's; None: it has not begun, or has ended."""
    runs = status.get("runs") or [{}]
    return _pod_in(runs[0])


def _pod_in(entry):
    return entry.get("podName") or entry.get("workerName")


def _one_outcome(before, after):
    was, now = _status(before), _status(after)
    if was.get("phase") not in TERMINAL:
        return
    for field in sorted(set(was) | set(now)):
        comes = field in MAY_COME and (was.get(field), now.get(field)) == (None, MAY_COME[field])
        if field not in MAY_CHANGE and was.get(field) != now.get(field) and not comes:
            yield (f"S1 OneOutcome: {field} of a finished job changed: "
                   f"{was.get(field)} -> {now.get(field)}")


def _fenced_outcome(before, after, pods):
    """An outcome is of the attempt that was current, and its pod had ended so by then."""
    was, now = _status(before), _status(after)
    for entry in _new_entries(was, now):
        if (entry["attempt"], _pod_in(entry)) != (was.get("attempt"), _pod_name(was)):
            yield (f"S2 FencedOutcome: {entry['outcome']} of attempt {entry['attempt']} was "
                   f"recorded while attempt {was.get('attempt')} was current")
        # A warm worker's Lease says how a command ended, and its pod goes on.
        if entry["outcome"] not in ("Succeeded", "Failed") or entry.get("workerName"):
            continue
        ended = [version for history in pods for version in history
                 if version.name == entry.get("podName") and version.revision < after.revision
                 and version.object["status"].get("phase") == entry["outcome"]]
        if not ended:
            yield f"S2 FencedOutcome: {entry['outcome']} of a pod that had not ended so"
    # The success may be on record before the phase, while a pod of an earlier attempt may still be created.
    on_record = any(one["type"] == "SuccessCriteriaMet" and one["status"] == "True" for one in was.get("conditions", []))
    if now.get("phase") == "Succeeded" != was.get("phase") and not on_record and not any(
            entry["outcome"] == "Succeeded" for entry in _new_entries(was, now)):
        yield "S2 FencedOutcome: Succeeded without an attempt that succeeded"


def _fence(before, after):
    was, now = _status(before), _status(after)
    if now.get("attempt", 0) < was.get("attempt", 0):
        yield f"S3 Fence: attempt fell from {was['attempt']} to {now.get('attempt', 0)}"
    before, after = _pod_name(was), _pod_name(now)
    if before and after and after != before and now.get("attempt", 0) <= was.get("attempt", 0):
        yield f"S3 Fence: attempt {now.get('attempt')} names {before} and {after}"


def _legal_edges(before, after):
    was, now = _status(before).get("phase", ""), _status(after).get("phase", "")
    # A change of the spec alone, or a status write within a phase, is no edge.
    if was != now and not is_edge(was, now, has_stages="stage" in _status(after)):
        yield f"S4 LegalEdges: {was or '(none)'} -> {now or '(none)'}"


def _one_pod(versions, pods):
    """One pod for each attempt, recorded before it exists, under the name that the status gives."""
    recorded = {}
    for version in versions:
        status = _status(version)
        recorded.setdefault(status.get("attempt", 0), (version.revision, _pod_name(status)))
    by_attempt = {}
    for history in pods:
        created, attempt = history[0], _attempt(history)
        if attempt in by_attempt:
            yield f"S6 OnePod: attempt {attempt} has {by_attempt[attempt]} and {created.name}"
        by_attempt[attempt] = created.name
        revision, name = recorded.get(attempt, (None, None))
        if revision is None or revision > created.revision:
            yield f"S8 Budget: pod {created.name} existed before its attempt {attempt} was recorded"
        elif name != created.name:
            yield f"S6 OnePod: attempt {attempt} was given {name} and runs as {created.name}"


def _budget(before, after):
    """Each ended attempt is counted exactly once, and no budget is overspent."""
    was, now = _status(before), _status(after)
    entries = _new_entries(was, now)
    for counter, limit in (("failures", "backoffLimit"), ("disruptions", "disruptionLimit")):
        grown = now.get(counter, 0) - was.get(counter, 0)
        ends = sum(1 for entry in entries if SPENDS.get(entry["outcome"]) == counter)
        if grown != ends:
            yield f"S8 Budget: {counter} grew by {grown}, {ends} attempts ended so"
        budget = after.object["spec"].get(limit, 6)
        if now.get(counter, 0) > budget + 1:
            yield f"S8 Budget: {counter} is {now[counter]}, {limit} is {budget}"
    if len(entries) > 1:
        yield f"S8 Budget: one write ended {len(entries)} attempts"
    attempts = now.get("attempt", 0) - was.get("attempt", 0)
    if attempts > 1:
        yield f"S8 Budget: one write started {attempts} attempts"
    if attempts == 1 and was.get("phase") == "Running" and not entries:
        yield f"S8 Budget: attempt {was['attempt']} was followed without being ended"


def _tenancy(pod, jobs):
    if "holdfast.dev/worker-pool" in pod.object["metadata"].get("labels", {}):
        return  # a worker's, which is its pool's
    owner = _owner(pod)
    if owner not in jobs:
        yield f"S5 NoLoss: pod {pod.name} has no job"
    elif not pod.deleted and jobs[owner][-1].deleted:
        yield f"S5 NoLoss: pod {pod.name} has outlived its job"


# -- reading objects ------------------------------------------------------------------------------


def _status(version):
    return version.object.get("status", {}) if version else {}


def _new_entries(was, now):
    """The attempts that ended between two versions; history keeps the last ten."""
    known = {entry["attempt"] for entry in was.get("history", [])}
    return [entry for entry in now.get("history", []) if entry["attempt"] not in known]


def _owner(pod):
    owners = pod.object["metadata"].get("ownerReferences", [])
    return owners[0]["uid"] if owners else None


def _attempt(history):
    return int(history[0].object["metadata"]["labels"][ATTEMPT_LABEL])


def _pods_by_job(pods):
    found = {}
    for history in pods.values():
        found.setdefault(_owner(history[0]), []).append(history)
    return found
