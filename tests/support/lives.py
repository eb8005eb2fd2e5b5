"""What the tests about a job's ordinary life share: what the operator wrote, as the audit log has
it, pods that the test plays itself, and words for what a job has come to."""

import collections
import copy
import time
import uuid

from holdfast import FINALIZER, OPERATOR_USER, TERMINAL
from localcluster import wait_for
from localcluster.audit import WRITES
from losses import seconds_of

# No scheduler looks at a pod like this, so no node runs it: the test writes its status.
BY_HAND = {"schedulerName": "nobody"}
# A pod that was told to go and does not end by itself.
STAYS = {"holdfast-test/ignore-delete": "true"}
# So long a back-off that nothing but a request ends it in a test.
LONG_BACKOFF = {"initialSeconds": 3600, "maxSeconds": 3600, "jitterPercent": 0}
# Back-off that costs a test as little as the schema allows.
SHORT_BACKOFF = {"initialSeconds": 1, "factor": 1, "maxSeconds": 1, "jitterPercent": 0}

# One write by the operator, accepted or not. `at` is when it arrived.
Write = collections.namedtuple("Write", "verb what name code at body")


def operator_writes(cluster, offset, namespace=None):
    """The operator's writes since then, of all response codes, oldest first."""
    found = []
    for event in cluster.audit_events(offset)[0]:
        about = event.get("objectRef", {})
        if event["user"]["username"] != OPERATOR_USER or event["verb"] not in WRITES:
            continue
        if namespace is not None and about.get("namespace") != namespace:
            continue
        what = "/".join(filter(None, [about.get("resource"), about.get("subresource")]))
        body = event.get("requestObject", {})
        name = about.get("name") or body.get("metadata", {}).get("name", "")
        code = event.get("responseStatus", {}).get("code", 0)
        arrived = seconds_of(event["requestReceivedTimestamp"])
        found.append(Write(event["verb"], what, name, code, arrived, body))
    return found


def flush_audit(cluster, offset):
    """Returns when all that was answered before is in the audit log: what is written now stands
    behind it."""
    name = f"mark-{time.monotonic_ns()}"
    cluster.api("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    # A delete has the name in its address.
    cluster.api("DELETE", f"/api/v1/namespaces/default/configmaps/{name}")

    def marked():
        return any(
            event["verb"] == "delete" and event.get("objectRef", {}).get("name") == name
            for event in cluster.audit_events(offset)[0]
        )

    wait_for("the mark in the audit log", marked, 60)


def recorded(cluster, offset, jobs, name):
    """[(when, status)] of the job's accepted status writes, oldest first."""
    return [
        (write.at, write.body["status"])
        for write in operator_writes(cluster, offset, jobs.namespace)
        if write.what == "durablejobs/status" and write.name == name and write.code < 300
    ]


def finalizers(jobs, name=None):
    """The names of the pods that carry ours."""
    return [pod["metadata"]["name"] for pod in jobs.pods(name) if FINALIZER in pod["metadata"].get("finalizers", [])]


def settle(jobs, *names, limit=60):
    """Until these jobs have ended and their pods are released; returns the last one's status."""
    for name in names:
        status = jobs.wait(name, lambda s: s.get("phase") in TERMINAL, limit, f"{name} to end")
        wait_for(f"the pods of {name} to be released", lambda: not finalizers(jobs, name), 60)
    return status


def outcomes(status):
    return [entry["outcome"] for entry in status.get("history", [])]


def budgets(status):
    return status["attempt"], status["failures"], status["disruptions"]


def wait_told(jobs, name, reason, limit=60):
    """Until the job waits for this; returns the status."""
    return jobs.wait(
        name,
        lambda s: s.get("waiting", {}).get("reason") == reason,
        limit,
        f"{name} to wait for {reason}",
    )


def wait_until(moment, condition=lambda: True):
    """Until that time has come (seconds since the epoch), while `condition` holds all along."""

    def reached():
        assert condition(), "what had to stay has changed"
        return time.time() >= moment

    wait_for("a moment to come", reached, max(0, moment - time.time()) + 30)


def wait_observed(jobs, name):
    """Until the operator has acted on the job's spec as it stands now; returns the status."""
    generation = jobs.get(name)["metadata"]["generation"]
    return jobs.wait(
        name,
        lambda s: s.get("observedGeneration", 0) >= generation,
        60,
        f"generation {generation} of {name} to be observed",
    )


def event_reasons(jobs, name):
    """What was told about the job as Events, by name of the reason."""
    return sorted(event["reason"] for event in jobs.events(name))


def wait_events(jobs, name, *reasons, limit=60):
    """Until exactly these Events tell of the job."""
    wait_for(
        f"the Events about {name} to be {sorted(reasons)}",
        lambda: event_reasons(jobs, name) == sorted(reasons),
        limit,
    )


def remake_name(jobs, name):
    """Deletes the job in the background and returns when its name is free."""
    jobs.delete(name)
    wait_for(f"job {name} to be gone", lambda: jobs.get(name) is None, 60)


def wait_no_pods(jobs, limit=150):
    """Until the namespace has no pod left. The garbage collector looks each 30 s for kinds that are
    new to it."""
    wait_for("all pods to be gone", lambda: not jobs.pods(), limit)


def wait_until_collector_knows(cluster, path, manifest):
    """Until the garbage collector watches the kind at this path. It orphans the dependents that its
    own watch has shown it, and takes the events of a kind in their order: it knows every older object
    once it has collected this one."""
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": str(uuid.uuid4())}
    newest = copy.deepcopy(manifest)
    newest["metadata"]["ownerReferences"] = [absent]
    status, answer = cluster.api("POST", path, newest)
    assert status == 201, answer
    newest_path = f"{path}/{manifest['metadata']['name']}"
    wait_for("the garbage collector to see it", lambda: cluster.api("GET", newest_path)[0] == 404, 60)
