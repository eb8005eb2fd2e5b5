"""The requests that the modes send, as chains for holdfast-load (tests/bench/load/load.h): $N is the
number of the chain, $UID and $VERSION are those of its first object. `shape` names a template of templates.py."""

import json

from queues import queue
from templates import template

JOBS_API = "/apis/holdfast.dev/v1alpha1"
BEGAN, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
POD_UID = "5cce1394-28fc-4389-b9d8-da4b1707d713"
STRATEGIC = "application/strategic-merge-patch+json"


def post(path, body):
    return {"method": "POST", "path": path, "body": body}


def _jobs(namespace):
    return f"{JOBS_API}/namespaces/{namespace}/durablejobs"


def _pods(namespace):
    return f"/api/v1/namespaces/{namespace}/pods"


def durable_job(name, shape="tiny", ends=True):
    """A DurableJob; `ends`: its pod does as soon as it runs, else never."""
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"template": template(shape, ends)}}


def ending_jobs(namespace, shape="tiny", queue=None):
    """DurableJobs whose pods end at once, of the JobQueue of this name."""
    body = durable_job("job-$N", shape)
    if queue:
        body["spec"]["queue"] = {"name": queue}
    return [post(_jobs(namespace), body)]


def queues(namespace, **spec):
    """JobQueues."""
    return [post(f"{JOBS_API}/namespaces/{namespace}/jobqueues", queue("queue-$N", **spec))]


def _indexed(body, completions, parallelism):
    body["spec"] |= {"completions": completions, "parallelism": parallelism, "completionMode": "Indexed"}
    return body


def indexed_jobs(namespace, completions, parallelism):
    """DurableJobs of many runs whose pods end at once."""
    return [post(_jobs(namespace), _indexed(durable_job("job-$N"), completions, parallelism))]


def indexed_batch_jobs(namespace, completions, parallelism):
    """The same as batch/v1 Jobs."""
    return [post(f"/apis/batch/v1/namespaces/{namespace}/jobs", _indexed(_batch_job("tiny"), completions, parallelism))]


def running_jobs(namespace, shape="tiny"):
    """DurableJobs whose pods run for ever."""
    return [post(_jobs(namespace), durable_job("job-$N", shape, ends=False))]


def _batch_job(shape):
    pod = template(shape)
    pod["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job-$N"}, "spec": {"template": pod}}


def ending_batch_jobs(namespace, shape="tiny"):
    """The same as batch/v1 Jobs."""
    return [post(f"/apis/batch/v1/namespaces/{namespace}/jobs", _batch_job(shape))]


def ending_lane_jobs(namespace, shape="tiny"):
    """batch/v1 Jobs that Holdfast runs."""
    job = _batch_job(shape)
    job["spec"]["managedBy"] = "holdfast.dev/operator"
    return [post(f"/apis/batch/v1/namespaces/{namespace}/jobs", job)]


def _put(path, body, metadata=None):
    """A write of what the chain has read last."""
    return {"method": "PUT", "path": path, "body": {**body, "metadata": {
        **(metadata or {}), "uid": "$UID", "resourceVersion": "$VERSION"}}}


def _status_write(namespace, status):
    return _put(f"{_jobs(namespace)}/job-$N/status", {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "status": status},
        {"name": "job-$N", "namespace": namespace})


def _condition(kind, status, reason, message):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": BEGAN}


def _started():
    """A DurableJob's status with its first attempt's intent."""
    creating = "pod job-$N-1-abcde is being created and started"
    return {"phase": "Running", "attempt": 1, "failures": 0, "disruptions": 0, "suspendedSeconds": 0, "history": [],
            "observedGeneration": 1, "startTime": BEGAN, "shard": "7-of-32",
            "runs": [{"index": 0, "attempt": 1, "podName": "job-$N-1-abcde", "startTime": BEGAN}],
            "conditions": [_condition("Reconciling", "True", "PodStarting", creating)],
            "waiting": {"reason": "PodStarting", "message": creating, "since": BEGAN,
                        "nextAction": "attempt 1 runs once its pod has started"}}


def _running():
    """The same once its pod has run for a while."""
    runs_on = "pod job-$N-1-abcde runs on node node-1"
    run = {**_started()["runs"][0], "podUID": POD_UID, "nodeName": "node-1"}
    return {**_started(), "runs": [run],
            "conditions": [_condition("Reconciling", "True", "PodRunning", runs_on)],
            "waiting": {"reason": "PodRunning", "message": runs_on, "since": BEGAN,
                        "nextAction": "attempt 1 ends when the pod does"}}


def _succeeded():
    status = {key: value for key, value in _running().items() if key not in ("waiting", "runs")}
    return status | {
        "phase": "Succeeded", "completionTime": ENDED, "settled": True,
        "history": [{"attempt": 1, "podName": "job-$N-1-abcde", "podUID": POD_UID, "nodeName": "node-1",
                     "outcome": "Succeeded", "reason": "Completed", "exitCode": 0, "startTime": BEGAN,
                     "endTime": ENDED}],
        "conditions": [_condition("Reconciling", "False", "Succeeded", ""),
                       _condition("Complete", "True", "CompletionsReached",
                                  "Reached expected number of succeeded pods")]}


def _pod(owner, labels, finalizers=(), shape="tiny"):
    body = {"apiVersion": "v1", "kind": "Pod", **template(shape)}
    body["metadata"] = {**body["metadata"], "name": "job-$N-1-abcde",
                        "labels": {**body["metadata"].get("labels", {}), **labels},
                        "finalizers": list(finalizers), "ownerReferences": [
                            {**owner, "name": "job-$N", "uid": "$UID", "controller": True}]}
    # No scheduler binds it, so that it is nobody's but ours.
    body["spec"] = {**body["spec"], "restartPolicy": "Never", "schedulerName": "nobody"}
    return body


def _durable_pod(finalizers=(), shape="tiny"):
    return _pod({"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob"},
                {"holdfast.dev/job-name": "job-$N", "holdfast.dev/job-uid": "$UID", "holdfast.dev/attempt": "1"},
                finalizers, shape)


def _pod_status(namespace, status):
    return {"method": "PATCH", "path": f"{_pods(namespace)}/job-$N-1-abcde/status", "type": STRATEGIC,
            "body": {"status": status}}


def _container(state, ready):
    return {"name": "main", "image": "x", "imageID": "x", "ready": ready, "restartCount": 0, "state": state}


def _pod_ended(namespace):
    return _pod_status(namespace, {"phase": "Succeeded", "startTime": BEGAN, "containerStatuses": [_container(
        {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": BEGAN, "finishedAt": ENDED}}, False)]})


def _release(namespace):
    return {"method": "PATCH", "path": f"{_pods(namespace)}/job-$N-1-abcde", "type": STRATEGIC,
            "body": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["holdfast.dev/outcome"],
                                  "managedFields": [{}]}}}


def finished_jobs(namespace):
    """DurableJobs that have succeeded, and their pods, as they are left behind."""
    return [post(_jobs(namespace), durable_job("job-$N")),
            _status_write(namespace, _started()),
            post(_pods(namespace), _durable_pod()),
            _pod_ended(namespace),
            _status_write(namespace, _succeeded())]


def _batch_conditions():
    return [{"type": kind, "status": "True", "reason": "CompletionsReached", "message": "",
             "lastProbeTime": ENDED, "lastTransitionTime": ENDED} for kind in ("SuccessCriteriaMet", "Complete")]


def finished_batch_jobs(namespace):
    """The same as batch/v1 Jobs. Their controller must be away while they are made."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    labels = {"batch.kubernetes.io/controller-uid": "$UID", "controller-uid": "$UID",
              "batch.kubernetes.io/job-name": "job-$N", "job-name": "job-$N"}
    return [post(path, _batch_job("tiny")),
            post(_pods(namespace), _pod({"apiVersion": "batch/v1", "kind": "Job"}, labels)),
            _pod_ended(namespace),
            {"method": "PATCH", "path": f"{path}/job-$N/status", "type": STRATEGIC, "body": {"status": {
                "startTime": BEGAN, "completionTime": ENDED, "succeeded": 1, "ready": 0, "terminating": 0,
                "uncountedTerminatedPods": {}, "conditions": _batch_conditions()}}}]


def small_objects(namespace):
    """The cheapest writes that there are."""
    return [post(f"/api/v1/namespaces/{namespace}/configmaps",
                  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "small-$N"}})]


def whole_lives(namespace, shape="tiny"):
    """All that is written for a job from its creation to its end, without anybody who decides."""
    return [post(_jobs(namespace), durable_job("job-$N", shape)),
            _status_write(namespace, _started()),
            post(_pods(namespace), _durable_pod(["holdfast.dev/outcome"], shape)),
            _pod_ended(namespace),
            _status_write(namespace, _succeeded()),
            _release(namespace)]


# ---- One kind of object after the other, for mode g.

def job_writes(namespace, shape):
    """A DurableJob, and each kind of status write of it."""
    return [post(_jobs(namespace), durable_job("job-$N", shape)),
            *(_status_write(namespace, status()) for status in (_started, _running, _succeeded))]


def stage_writes(namespace, shape):
    """The same of a job with two stages after main, which has ended."""
    job = durable_job("staged-$N", shape)
    template = job["spec"]["template"]
    job["spec"]["stages"] = [{"name": name, "template": template} for name in ("verify", "publish")]
    ended = {"phase": "Succeeded", "startTime": BEGAN, "completionTime": BEGAN, "result": "proof-17"}

    def status(fields, phase="Running", result=None):
        last = {"name": "publish", "phase": phase, "startTime": BEGAN, **(result or {})}
        return {**fields, "stage": "publish", "stages": [{"name": "main", **ended}, {"name": "verify", **ended}, last]}

    done = {"completionTime": ENDED}
    writes = [post(_jobs(namespace), job)]
    for fields in (status(_started()), status(_running()), status(_succeeded(), "Succeeded", done)):
        writes.append(json.loads(json.dumps(_status_write(namespace, fields)).replace("job-$N", "staged-$N")))
    return writes


def pod_writes(namespace, shape):
    """An attempt's pod, from its creation to its deletion."""
    created = post(_pods(namespace), _durable_pod(["holdfast.dev/outcome"], shape))
    # There is no job whose UID it could bear.
    created["body"] = json.loads(json.dumps(created["body"]).replace("$UID", POD_UID))
    ready = [{"type": kind, "status": "True", "lastTransitionTime": BEGAN} for kind in (
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")]
    return [created,
            _pod_status(namespace, {"phase": "Running", "startTime": BEGAN, "podIP": "10.0.0.1", "conditions": ready,
                                    "containerStatuses": [_container({"running": {"startedAt": BEGAN}}, True)]}),
            _pod_ended(namespace), _release(namespace),
            {"method": "DELETE", "path": f"{_pods(namespace)}/job-$N-1-abcde"}]


def batch_writes(namespace, shape):
    """A batch/v1 Job and its status writes."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    body = _batch_job(shape)

    def status(fields):
        return _put(f"{path}/job-$N/status", {"apiVersion": "batch/v1", "kind": "Job", "status": {
            "startTime": BEGAN, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, **fields}},
            {"name": "job-$N", "namespace": namespace})

    return [post(path, body), status({"active": 1}), status({
        "active": 0, "succeeded": 1, "completionTime": ENDED, "conditions": _batch_conditions()})]


def lease_writes(namespace, renewals=5):
    """A job's heartbeat Lease: made before the pod, granted to it, and renewed."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    metadata = {"name": "holdfast-$N", "namespace": namespace,
                "labels": {"holdfast.dev/job-name": "job-$N", "holdfast.dev/job-uid": POD_UID},
                "annotations": {"holdfast.dev/granted": POD_UID},
                "ownerReferences": [{"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": "job-$N",
                                     "uid": POD_UID, "controller": True}]}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    spec = {"leaseDurationSeconds": 30, "leaseTransitions": 1}
    granted = {**spec, "holderIdentity": POD_UID, "acquireTime": "2026-01-02T03:04:05.000000Z"}

    def renewed(number):
        # As agents send it: nobody's fields are tracked from then on.
        annotations = {**metadata["annotations"], "holdfast.dev/progress": str(number),
                       "holdfast.dev/progress-age": "0"}
        marked = {**metadata, "managedFields": [{}], "annotations": annotations}
        time = {"renewTime": f"2026-01-02T03:05:{number:02}.000000Z"}
        return _put(f"{path}/holdfast-$N", {**lease, "spec": {**granted, **time}}, marked)

    return [post(path, {**lease, "metadata": metadata, "spec": spec}),
            _put(f"{path}/holdfast-$N", {**lease, "spec": granted}, {**metadata, "managedFields": [{}]}),
            *(renewed(number) for number in range(renewals))]
