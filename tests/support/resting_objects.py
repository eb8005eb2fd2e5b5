"""The texts of jobs at rest, of their pods and of their nodes, very many of each. The operator has nothing to do about
them. They are as an API server has them, and jobs have the status that the operator writes itself:

    TEXTS["durablejobs", "running"] % values(7, nodes=3)

Job N has the shard N modulo 32 of 32, and runs or ran on the node N modulo `nodes`. UIDs are as long as real ones, and
a pod has the name that the operator gives it.
"""

import json

SHARDS = 32
BEGAN, STARTED, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:04:07Z", "2026-01-02T03:05:05Z"
INTENT = "2026-01-02T03:04:05.123456789Z"
JOB, POD, NODE, SHARD = "job-%(number)d", "job-%(number)d-1-%(hash)s", "node-%(node)d", "%(shard)d-of-32"
JOB_UID, POD_UID = "%(uid)s", "%(pod_uid)s"
UID_BEGINS, POD_UID_BEGINS = b"62111822-c107-4f21-b185-", b"873778a3-46e4-4633-b8a3-"
MANAGED = [{"manager": f"manager-{i}", "operation": "Update", "apiVersion": "v1", "time": ENDED,
            "fieldsType": "FieldsV1", "fieldsV1": {f"f:field-{i}-{j}": {} for j in range(25)}} for i in range(2)]
ALPHABET = b"bcdfghjklmnpqrstvwxz2456789"
_MASK = (1 << 64) - 1


def _hash64(data, value=14695981039346656037):
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & _MASK
    return value


_BEGUN = _hash64(UID_BEGINS)


def values(number, nodes=1):
    """What is different in the texts of this job, its pod and its node."""
    digits = b"%012d" % number
    rest, letters = _hash64(digits, _BEGUN), []
    for _ in range(5):
        rest, letter = divmod(rest, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return {b"number": number, b"uid": UID_BEGINS + digits, b"pod_uid": POD_UID_BEGINS + digits,
            b"hash": bytes(letters), b"shard": number % SHARDS, b"node": number % nodes}


def _meta(name, uid, **more):
    return {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "%(number)d",
            "creationTimestamp": BEGAN, "managedFields": MANAGED, **more}


def _job(status):
    spec = {"cancel": False, "completionMode": "NonIndexed", "disruptionLimit": 50, "lostAfterSeconds": 40,
            "podReplacementPolicy": "TerminatingOrFailed", "startDeadlineSeconds": 600, "suspend": False,
            "retryBackoff": {"factor": 2, "initialSeconds": 10, "jitterPercent": 20, "maxSeconds": 360},
            "template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "busybox:1.36", "command": ["true"]}]}}}
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": _meta(JOB, JOB_UID, generation=1),
            "spec": spec, "status": {
                "active": 0, "attempt": 1, "failures": 0, "failed": 0, "succeeded": 0, "disruptions": 0, "history": [],
                "notifications": 0, "suspendedSeconds": 0, "observedGeneration": 1, "shard": SHARD, "startTime": BEGAN,
                **status}}


def _condition(type_, status, reason, message=""):
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": ENDED}


def _finished_job():
    reached = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
    return _job({
        "phase": "Succeeded", "settled": True, "completions": "1/1", "succeeded": 1, "completionTime": ENDED,
        "history": [{"attempt": 1, "podName": POD, "podUID": POD_UID, "nodeName": NODE, "outcome": "Succeeded",
                     "reason": "Completed", "exitCode": 0, "startTime": STARTED, "endTime": ENDED}],
        "conditions": [_condition("Reconciling", "False", "Succeeded"), _condition("SuccessCriteriaMet", *reached),
                       _condition("Complete", *reached)]})


def _running_job():
    runs = f"pod {POD} runs on node {NODE}"
    return _job({
        "phase": "Running", "active": 1, "completions": "0/1",
        "runs": [{"attempt": 1, "index": 0, "podName": POD, "podUID": POD_UID, "nodeName": NODE, "startTime": STARTED}],
        "waiting": {"reason": "PodRunning", "message": runs, "nextAction": "attempt 1 ends when the pod does",
                    "since": STARTED},
        "conditions": [_condition("Reconciling", "True", "PodRunning", runs)]})


def _pod_spec():
    token = "kube-api-access-r4w2t"
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
               {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
               {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
                   "apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]
    container = {"name": "main", "image": "busybox:1.36", "command": ["true"], "resources": {},
                 "env": [{"name": "HOLDFAST_JOB_NAME", "value": JOB}, {"name": "HOLDFAST_JOB_UID", "value": JOB_UID},
                         {"name": "HOLDFAST_ATTEMPT", "value": "1"}],
                 "volumeMounts": [{"name": token, "readOnly": True,
                                   "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                 "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent",
                 "terminationMessagePolicy": "FallbackToLogsOnError"}
    return {"nodeName": NODE, "restartPolicy": "Never", "schedulerName": "default-scheduler", "priority": 0,
            "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "enableServiceLinks": True,
            "serviceAccountName": "default", "serviceAccount": "default", "securityContext": {},
            "preemptionPolicy": "PreemptLowerPriority", "containers": [container],
            "volumes": [{"name": token, "projected": {"sources": sources, "defaultMode": 420}}],
            "tolerations": [{"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute",
                             "tolerationSeconds": 300} for what in ("not-ready", "unreachable")]}


def _pod(phase, container, **meta):
    owner = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": JOB, "uid": JOB_UID,
             "controller": True}
    labels = {"holdfast.dev/job-uid": JOB_UID, "holdfast.dev/job-name": JOB, "holdfast.dev/attempt": "1",
              "holdfast.dev/shard": SHARD}
    ready = "True" if phase == "Running" else "False"
    conditions = {"PodReadyToStartContainers": ready, "Initialized": "True", "Ready": ready, "ContainersReady": ready,
                  "PodScheduled": "True"}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": _meta(POD, POD_UID, labels=labels, ownerReferences=[owner],
                              annotations={"holdfast.dev/intent": INTENT}, **meta),
            "spec": _pod_spec(),
            "status": {"phase": phase, "startTime": BEGAN, "hostIP": "10.0.0.1", "podIP": "10.244.0.1",
                       "podIPs": [{"ip": "10.244.0.1"}], "qosClass": "BestEffort", "containerStatuses": [
                           {"name": "main", "image": "busybox:1.36", "imageID": "busybox:1.36", "restartCount": 0,
                            "lastState": {}, **container}],
                       "conditions": [{"type": type_, "status": status, "lastProbeTime": None,
                                       "lastTransitionTime": STARTED} for type_, status in conditions.items()]}}


def _node():
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": NODE, "uid": "node-uid-%(node)d", "resourceVersion": "1", "creationTimestamp": BEGAN},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": BEGAN}]}}


_ended = {"ready": False, "state": {"terminated": {
    "exitCode": 0, "reason": "Completed", "startedAt": STARTED, "finishedAt": ENDED}}}
_runs = {"ready": True, "started": True, "state": {"running": {"startedAt": STARTED}}}
_objects = {("durablejobs", "finished"): _finished_job(), ("durablejobs", "running"): _running_job(),
            ("pods", "finished"): _pod("Succeeded", _ended),
            ("pods", "running"): _pod("Running", _runs, finalizers=["holdfast.dev/outcome"])}
# By plural and state. They have no "%" of their own.
TEXTS = {key: json.dumps(item).encode() for key, item in _objects.items()}
BARE_TEXTS = {key: json.dumps({"metadata": item["metadata"]}).encode() for key, item in _objects.items()}
NODE_TEXT = json.dumps(_node()).encode()
