"""What the tests about lost attempts share: when things happened as the API server saw it, what a
loss leaves behind in a job, and pods played by hand."""

import calendar
import datetime
import time

from holdfast import FINALIZER, OPERATOR_USER
from localcluster import wait_for

# A reconcile's own bound, R of the published bounds; and what a loaded machine may add to what the API server saw.
REACTION = 1
SLACK = 6
# The least that the schema allows.
LOST_AFTER = 15
# Moments of a request in the audit log. Which of two came first is told by when they came: on a busy machine the API
# server notes late that it has answered.
CAME, ANSWERED = "requestReceivedTimestamp", "stageTimestamp"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def pod_name(job, attempt):
    """The name of this attempt's pod: "<job>-<attempt>-<five characters of the job UID's hash>"."""
    number = 14695981039346656037
    for byte in job["metadata"]["uid"].encode():
        number = (number ^ byte) * 1099511628211 % 2**64
    suffix = ""
    for _ in range(5):
        suffix += _ALPHABET[number % len(_ALPHABET)]
        number //= len(_ALPHABET)
    return f"{job['metadata']['name']}-{attempt}-{suffix}"


def new_namespace(cluster, name):
    """A namespace that can hold pods; for fixtures that live longer than one test."""
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    wait_for(
        f"the default service account of {name}",
        lambda: cluster.api("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200,
        60,
    )
    return name


def seconds_of(text):
    """Seconds since the epoch of an RFC 3339 time in UTC, with or without a fraction."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return seconds + (float("0." + fraction) if fraction else 0.0)


def time_text(seconds):
    """The kubelet's way to write a time: whole seconds."""
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def scheduled(pod):
    """The pod's condition PodScheduled, or {}."""
    conditions = pod["status"].get("conditions", [])
    return next((found for found in conditions if found["type"] == "PodScheduled"), {})


def on_node(node):
    """Pod fields: this node or none."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def wait_renewals(cluster, nodes, limit=60):
    """Until each of these nodes has renewed its Lease once more. An operator counts a silence from
    the first renewal that it sees, so what is measured from a node's last one starts here."""
    versions = {node: cluster.node_lease(node)["metadata"]["resourceVersion"] for node in nodes}
    wait_for(
        f"renewals by {', '.join(nodes)}",
        lambda: all(cluster.node_lease(node)["metadata"]["resourceVersion"] != versions[node] for node in nodes),
        limit,
    )


def write_times(cluster, offset, verb, name, resource="pods", subresource="", user=None, moment=ANSWERED):
    """When the accepted writes like this were answered (or came), oldest first."""
    times = []
    for event in cluster.audit_events(offset)[0]:
        about = event.get("objectRef", {})
        if (
            event["verb"] == verb
            and about.get("resource") == resource
            and about.get("subresource", "") == subresource
            and about.get("name") == name
            and (user is None or event["user"]["username"] == user)
            and 200 <= event.get("responseStatus", {}).get("code", 0) < 300
        ):
            times.append(seconds_of(event[moment]))
    return times


def write_time(cluster, offset, verb, name, **about):
    """When the first accepted write like this was answered; waits for it to be in the audit log."""
    wait_for(f"{verb} of {name} in the audit log", lambda: write_times(cluster, offset, verb, name, **about), 60)
    return write_times(cluster, offset, verb, name, **about)[0]


def created_at(cluster, offset, name):
    """When the operator created this pod; the only time."""
    first = write_time(cluster, offset, "create", name, user=OPERATOR_USER)
    assert len(write_times(cluster, offset, "create", name, user=OPERATOR_USER)) == 1
    return first


def delete_pod(jobs, pod, grace=None):
    """As a user does it. grace 0: by force."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return jobs.api("DELETE", f"{jobs.pods_path}/{pod['metadata']['name']}", options)


def pod_named(jobs, name):
    """The pod, or None."""
    status, pod = jobs.cluster.api("GET", f"{jobs.pods_path}/{name}")
    return pod if status == 200 else None


def has_finalizer(pod):
    return FINALIZER in pod["metadata"].get("finalizers", [])


def wait_released(jobs, pod, limit=60):
    """Until our finalizer is off this pod, or the pod is gone."""
    name = pod["metadata"]["name"]

    def released():
        found = pod_named(jobs, name)
        return (found is None or found["metadata"]["uid"] != pod["metadata"]["uid"] or not has_finalizer(found))

    wait_for(f"the finalizer of {name} to be taken off", released, limit)


def ended_container(pod, exit_code, finished):
    """containerStatuses of a pod whose container ended like this."""
    return [
        {
            "name": "main",
            "image": "x",
            "imageID": "x",
            "ready": False,
            "restartCount": 0,
            "state": {
                "terminated": {
                    "exitCode": exit_code,
                    "reason": "Completed" if exit_code == 0 else "Error",
                    "startedAt": pod["metadata"]["creationTimestamp"],
                    "finishedAt": time_text(finished),
                }
            },
        }
    ]


def bind(jobs, pod, node):
    """Plays the scheduler."""
    name = pod["metadata"]["name"]
    jobs.api(
        "POST",
        f"{jobs.pods_path}/{name}/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        },
    )


def set_pod_status(jobs, pod, **status):
    """Plays the kubelet."""
    return jobs.api(
        "PATCH",
        f"{jobs.pods_path}/{pod['metadata']['name']}/status",
        {"status": status},
        content_type="strategic",
    )


def set_running(jobs, pod):
    """Plays the kubelet: its container runs."""
    now = time_text(time.time())
    return set_pod_status(
        jobs,
        pod,
        phase="Running",
        startTime=now,
        containerStatuses=[
            {
                "name": "main",
                "image": "x",
                "imageID": "x",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": now}},
            }
        ],
    )


def assert_one_disruption(status, reason, outcome="Lost"):
    """Attempt 1 ended like this and spent one disruption, no failure; attempt 2 is on record."""
    assert status["attempt"] == 2, status
    assert (status["failures"], status["disruptions"]) == (0, 1), status
    assert [(entry["attempt"], entry["outcome"]) for entry in status["history"]] == [(1, outcome)]
    reasons = {reason} if isinstance(reason, str) else set(reason)
    assert status["history"][0]["reason"] in reasons, status["history"]


def wait_attempt(jobs, name, attempt, limit=60):
    """Until this attempt is on record; returns the status."""
    return jobs.wait(name, lambda s: s.get("attempt", 0) >= attempt, limit, f"attempt {attempt} of {name}")


def finish(jobs, name):
    """Lets the current attempt succeed, and so the job; returns the last status."""
    pod = jobs.wait_running(name)
    jobs.end_pod(pod)
    # A pod of an attempt that was lost before it had one may still be created: for 65 s after a take-over.
    return jobs.wait_phase(name, "Succeeded", limit=120)


def recoveries(operator, orphan_class, at_least=0):
    """(how many, in how many seconds altogether) of this class, once there are so many: the operator counts one when
    it has the answer to the creation of the next attempt's pod. By then others may long have seen the pod."""

    def counted():
        samples = operator.metrics()
        count, total = (
            samples.get(f'holdfast_recovery_seconds_{part}{{class="{orphan_class}"}}', 0.0) for part in ("count", "sum")
        )
        return (count, total) if count >= at_least else None

    return wait_for(f"{at_least} recoveries of {orphan_class}", counted, 60)
