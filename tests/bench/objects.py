"""The requests that the modes send, as chains for holdfast-load (tests/bench/load/load.h): $N is the
number of the chain, $UID and $VERSION are those of its first object."""

from holdfast import job, runs

JOBS_API = "/apis/holdfast.dev/v1alpha1"
BEGAN, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
STRATEGIC = "application/strategic-merge-patch+json"


def _post(path, body):
    return {"method": "POST", "path": path, "body": body}


def _jobs(namespace):
    return f"{JOBS_API}/namespaces/{namespace}/durablejobs"


def _pods(namespace):
    return f"/api/v1/namespaces/{namespace}/pods"


def ending_jobs(namespace):
    """DurableJobs whose pods end at once."""
    return [_post(_jobs(namespace), job("job-$N", annotations=runs(0)))]


def running_jobs(namespace):
    """DurableJobs whose pods run for ever."""
    return [_post(_jobs(namespace), job("job-$N"))]


def _batch_job(suspend=False):
    template = job("x", annotations=runs(0))["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job-$N"},
            "spec": {"template": template, "suspend": suspend}}


def ending_batch_jobs(namespace):
    """The same as batch/v1 Jobs."""
    return [_post(f"/apis/batch/v1/namespaces/{namespace}/jobs", _batch_job())]


def _status_write(namespace, status):
    return {"method": "PUT", "path": f"{_jobs(namespace)}/job-$N/status", "body": {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
        "metadata": {"name": "job-$N", "namespace": namespace, "uid": "$UID",
                     "resourceVersion": "$VERSION"}, "status": status}}


def _running():
    return {"phase": "Running", "attempt": 1, "failures": 0, "disruptions": 0, "observedGeneration": 1,
            "podName": "job-$N-1-abcde", "startTime": BEGAN, "attemptStartTime": BEGAN,
            "waiting": {"reason": "PodStarting", "message": "pod job-$N-1-abcde is being created and started",
                        "nextAction": "attempt 1 ends as StartTimeout unless a container has run by then",
                        "deadline": ENDED}}


def _succeeded():
    status = {key: value for key, value in _running().items() if key != "waiting"}
    return status | {
        "phase": "Succeeded", "nodeName": "node-1", "completionTime": ENDED,
        "history": [{"attempt": 1, "podName": "job-$N-1-abcde", "nodeName": "node-1", "outcome": "Succeeded",
                     "reason": "Completed", "exitCode": 0, "startTime": BEGAN, "endTime": ENDED}],
        "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached",
                        "message": "Reached expected number of succeeded pods", "lastTransitionTime": ENDED}]}


def _pod(owner, labels, finalizers=()):
    body = {"apiVersion": "v1", "kind": "Pod", **job("x", annotations=runs(0))["spec"]["template"]}
    body["metadata"] = {**body["metadata"], "name": "job-$N-1-abcde", "labels": labels,
                        "finalizers": list(finalizers), "ownerReferences": [
                            {**owner, "name": "job-$N", "uid": "$UID", "controller": True}]}
    # No scheduler binds it, so that it is nobody's but ours.
    body["spec"] = {**body["spec"], "restartPolicy": "Never", "schedulerName": "nobody"}
    return body


def _durable_pod(finalizers=()):
    return _pod({"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob"},
                {"holdfast.dev/job-name": "job-$N", "holdfast.dev/job-uid": "$UID", "holdfast.dev/attempt": "1"},
                finalizers)


def _pod_ended(namespace):
    return {"method": "PATCH", "path": f"{_pods(namespace)}/job-$N-1-abcde/status", "type": STRATEGIC,
            "body": {"status": {"phase": "Succeeded", "startTime": BEGAN, "containerStatuses": [
                {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
                 "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": BEGAN,
                                          "finishedAt": ENDED}}}]}}}


def finished_jobs(namespace):
    """DurableJobs that have succeeded, and their pods, as they are left behind."""
    return [_post(_jobs(namespace), job("job-$N", annotations=runs(0))),
            _status_write(namespace, _running()),
            _post(_pods(namespace), _durable_pod()),
            _pod_ended(namespace),
            _status_write(namespace, _succeeded())]


def finished_batch_jobs(namespace):
    """The same as batch/v1 Jobs. Their controller must be away while they are made."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    conditions = [{"type": kind, "status": "True", "reason": "CompletionsReached", "message": "",
                   "lastProbeTime": ENDED, "lastTransitionTime": ENDED} for kind in ("SuccessCriteriaMet", "Complete")]
    labels = {"batch.kubernetes.io/controller-uid": "$UID", "controller-uid": "$UID",
              "batch.kubernetes.io/job-name": "job-$N", "job-name": "job-$N"}
    return [_post(path, _batch_job()),
            _post(_pods(namespace), _pod({"apiVersion": "batch/v1", "kind": "Job"}, labels)),
            _pod_ended(namespace),
            {"method": "PATCH", "path": f"{path}/job-$N/status", "type": STRATEGIC, "body": {"status": {
                "startTime": BEGAN, "completionTime": ENDED, "succeeded": 1, "ready": 0, "terminating": 0,
                "uncountedTerminatedPods": {}, "conditions": conditions}}}]


def small_objects(namespace):
    """The cheapest writes that there are."""
    return [_post(f"/api/v1/namespaces/{namespace}/configmaps",
                  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "small-$N"}})]


def whole_lives(namespace):
    """All that is written for a job from its creation to its end, without anybody who decides."""
    release = {"method": "PATCH", "path": f"{_pods(namespace)}/job-$N-1-abcde", "type": STRATEGIC,
               "body": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["holdfast.dev/outcome"]}}}
    return [_post(_jobs(namespace), job("job-$N", annotations=runs(0))),
            _status_write(namespace, _running()),
            _post(_pods(namespace), _durable_pod(["holdfast.dev/outcome"])),
            _pod_ended(namespace),
            _status_write(namespace, _succeeded()),
            release]
