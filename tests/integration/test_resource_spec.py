"""What a spec may say, what the server fills in, and what may change after creation."""

import copy

import pytest
import yaml
from resource_api import JOBS, accepted, job, refused, schema_of, status

HEARTBEAT = {"leaseDurationSeconds": 30, "progressDeadlineSeconds": 60}
# Every field that may be changed while the job runs, with a value other than its default.
MUTABLE = {
    "parallelism": 0,
    "backoffLimit": 1,
    "retryBackoff": {"initialSeconds": 1, "factor": 3, "maxSeconds": 5, "jitterPercent": 0},
    "disruptionLimit": 1,
    "startDeadlineSeconds": 60,
    "scheduleDeadlineSeconds": 60,
    "lostAfterSeconds": 15,
    "attemptDeadlineSeconds": 60,
    "activeDeadlineSeconds": 600,
    "podReplacementPolicy": "Failed",
    "suspend": True,
    "cancel": True,
    "ttlSecondsAfterFinished": 0,
    "notify": ["chat"],
    "description": "the clips of one night",
}
INDEXED = {"completionMode": "Indexed", "completions": 5}
PER_INDEX = {**INDEXED, "backoffLimitPerIndex": 1}
FAILURE_POLICY = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
SUCCESS_POLICY = {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}
# What never changes: a spec with the field, and another value for it.
IMMUTABLE = {
    "completions": ({"completions": 5}, 6),
    "completionMode": (INDEXED, "NonIndexed"),
    "indexes": ({**INDEXED, "indexes": "1,3-4"}, "1,3"),
    "backoffLimitPerIndex": (PER_INDEX, 2),
    "podFailurePolicy": ({"podFailurePolicy": FAILURE_POLICY}, {"rules": []}),
    "successPolicy": ({**INDEXED, "successPolicy": SUCCESS_POLICY}, {"rules": [{"succeededCount": 1}]}),
}
# These have tests of their own.
OTHERS = {"queue", "template", "heartbeat", "maxFailedIndexes", "stages", "workerPool", "payload", "message"}


# -- what the server fills in -------------------------------------------------------------------


def test_a_spec_of_nothing_but_a_template_gets_the_documented_defaults(api):
    current = api.create(job())
    assert {key: value for key, value in current["spec"].items() if key != "template"} == {
        "completionMode": "NonIndexed",
        "retryBackoff": {"initialSeconds": 10, "factor": 2, "maxSeconds": 360, "jitterPercent": 20},
        "disruptionLimit": 50,
        "startDeadlineSeconds": 600,
        "lostAfterSeconds": 40,
        "podReplacementPolicy": "TerminatingOrFailed",
        "suspend": False,
        "cancel": False,
    }


def test_the_restart_policy_is_never_by_default_and_nothing_else_is_added_to_the_template(api):
    body = job()
    template = copy.deepcopy(body["spec"]["template"])
    template["spec"]["restartPolicy"] = "Never"
    assert api.create(body)["spec"]["template"] == template


def test_what_retry_backoff_leaves_out_is_filled_in(api):
    current = api.create(job(retryBackoff={"initialSeconds": 1}))
    assert current["spec"]["retryBackoff"] == {"initialSeconds": 1, "factor": 2, "maxSeconds": 360, "jitterPercent": 20}


def test_an_empty_heartbeat_stays_empty_because_the_operator_has_its_default(api):
    """With workerPool the duration is the pool's, and a default here would look like one of the job's own."""
    name = api.create(job(heartbeat={}))["metadata"]["name"]
    assert api.get(name)["spec"]["heartbeat"] == {}
    for duration in (30, None):
        answer = accepted(api.patch(name, {"spec": {"heartbeat": {"leaseDurationSeconds": duration}}}))
    refused(api.patch(name, {"spec": {"heartbeat": {"leaseDurationSeconds": 31}}}), "the heartbeat is immutable")


def test_a_field_given_as_null_counts_as_left_out(api):
    fields = dict.fromkeys(
        ["disruptionLimit", "cancel", "heartbeat", "activeDeadlineSeconds", "retryBackoff", "completions"]
    )
    spec = api.create(job(**fields))["spec"]
    assert spec["disruptionLimit"] == 50
    assert spec["cancel"] is False
    assert "completions" not in spec
    assert "heartbeat" not in spec


# -- what may be said ---------------------------------------------------------------------------


def test_a_description_has_at_most_256_bytes(api):
    for text in ("", "x" * 256, "ä" * 128):
        name = api.create(job(description=text))["metadata"]["name"]
        assert api.get(name)["spec"]["description"] == text
    refused(api.patch(name, {"spec": {"description": "ä" * 129}}), "the description has more than 256 bytes")
    refused(api.patch(name, {"spec": {"description": "x" * 257}}), "spec.description: Too long")


@pytest.mark.parametrize("length", [1, 62, 63])
def test_a_name_of_up_to_63_characters_is_accepted(api, length):
    api.create(job("n" * length))


@pytest.mark.parametrize(
    "fields",
    [
        {"backoffLimit": 0, "disruptionLimit": 0, "ttlSecondsAfterFinished": 0},
        {"backoffLimit": 2**31 - 1, "disruptionLimit": 2**31 - 1, "ttlSecondsAfterFinished": 2**31 - 1},
        {
            "startDeadlineSeconds": 1,
            "scheduleDeadlineSeconds": 1,
            "lostAfterSeconds": 15,
            "attemptDeadlineSeconds": 1,
            "activeDeadlineSeconds": 1,
        },
        {"startDeadlineSeconds": 31536000, "scheduleDeadlineSeconds": 31536000, "lostAfterSeconds": 86400},
        {"attemptDeadlineSeconds": 2**31 - 1, "activeDeadlineSeconds": 2**31 - 1},
        {"retryBackoff": {"initialSeconds": 1, "factor": 1, "maxSeconds": 1, "jitterPercent": 0}},
        {"retryBackoff": {"initialSeconds": 86400, "factor": 10, "maxSeconds": 86400, "jitterPercent": 100}},
        {"heartbeat": {"leaseDurationSeconds": 10, "progressDeadlineSeconds": 10}},
        {"heartbeat": {"leaseDurationSeconds": 3600, "progressDeadlineSeconds": 31536000}},
        {"parallelism": 0},
        {"parallelism": 1},
        {"completions": 1, "parallelism": 1000},
        {"completions": 100000, "parallelism": 1000},
        {"completionMode": "Indexed"},
        {"completionMode": "Indexed", "indexes": "0"},
        {"completionMode": "Indexed", "completions": 100000, "indexes": "0-99999"},
        {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0},
        {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 2**31 - 1, "maxFailedIndexes": 2},
        {"podFailurePolicy": {"rules": []}},
        {"podFailurePolicy": FAILURE_POLICY},
        {"successPolicy": SUCCESS_POLICY, "completionMode": "Indexed"},
        {"successPolicy": {"rules": [{"succeededCount": 5}] * 20}, **INDEXED},
    ],
)
def test_the_ends_of_every_range_are_accepted(api, fields):
    spec = api.create(job(**fields))["spec"]
    assert {key: spec[key] for key in fields} == fields


POD = yaml.safe_load("""
metadata:
  name: ignored
  creationTimestamp: null
  labels: {app: a}
  annotations: {note: b}
  finalizers: [example.com/a]
spec:
  serviceAccountName: worker
  terminationGracePeriodSeconds: 5
  nodeSelector: {disk: ssd}
  tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}]
  imagePullSecrets: [{name: a}]
  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]
  securityContext: {runAsUser: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: a}}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]
  initContainers:
  - {name: sidecar, image: a, restartPolicy: Always}
  - {name: init, image: a}
  containers:
  - name: main
    image: a
    command: [run]
    args: ["--once"]
    env:
    - {name: A, value: "1"}
    - {name: A, value: "2"}
    - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    envFrom: [{configMapRef: {name: a, optional: true}}]
    ports: [{containerPort: 80}, {containerPort: 80, name: again}]
    resources:
      requests: {cpu: 100m, memory: 1Gi}
      limits: {cpu: 2, memory: "1.5Gi", example.com/gpu: 1}
    livenessProbe: {httpGet: {path: /, port: http}, periodSeconds: 5}
    readinessProbe: {tcpSocket: {port: 80}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
  volumes:
  - {name: tmp, emptyDir: {sizeLimit: 1Gi}}
  - name: data
    ephemeral:
      volumeClaimTemplate:
        metadata: {labels: {app: a}}
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
""")


def test_a_rich_pod_template_is_kept_as_written(api):
    body = job()
    body["spec"]["template"] = copy.deepcopy(POD)
    expected = copy.deepcopy(POD)
    expected["spec"]["restartPolicy"] = "Never"
    assert api.create(body)["spec"]["template"] == expected


@pytest.mark.parametrize("of", ["a job without a heartbeat", "another container", "preStop"])
def test_hooks_that_leave_the_lease_alone_are_accepted(api, of):
    body = job(**({} if of == "a job without a heartbeat" else {"heartbeat": HEARTBEAT}))
    containers = body["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "second", "image": "a"})
    hook = {"preStop" if of == "preStop" else "postStart": {"exec": {"command": ["true"]}}}
    containers[1 if of == "another container" else 0]["lifecycle"] = hook
    api.create(body)


@pytest.mark.parametrize("size, completions", [(63, None), (61, 10), (60, 100), (58, 10_000), (57, 100_000)])
def test_an_indexed_job_has_a_name_that_leaves_room_for_its_last_index(api, size, completions):
    spec = {"completionMode": "Indexed", **({"completions": completions} if completions else {})}
    code, answer = api.cluster.api("POST", f"{JOBS}?dryRun=All", job("m" * size, **spec))
    if size + 1 + len(str((completions or 1) - 1)) <= 63:
        assert code == 201, answer
    else:
        refused((code, answer), "metadata.name", "the hostname of the last pod")
    code, answer = api.cluster.api("POST", f"{JOBS}?dryRun=All", job("m" * size, completions=completions or 1))
    assert code == 201, answer


@pytest.mark.parametrize(
    "indexes",
    ["0", "4", "0-4", "0,1,2,3,4", "1,3-4", "0-1,3-4", ",".join(map(str, range(0, 99999, 5))),
     ",".join(map(str, range(1, 99999, 2)))[:131072].rsplit(",", 1)[0]],
    ids=lambda indexes: indexes[:20],
)
def test_indexes_are_kept_as_written(api, indexes):
    spec = {"completionMode": "Indexed", "completions": 5 if len(indexes) < 20 else 100_000, "indexes": indexes}
    assert api.create(job(**spec))["spec"]["indexes"] == indexes


def test_the_longest_lists_of_a_success_policy_are_kept_as_written(api):
    longest = ",".join(map(str, range(1, 99999, 2)))[:65536].rsplit(",", 1)[0]
    short = ",".join(map(str, range(0, 200, 2)))
    rules = [{"succeededIndexes": longest, "succeededCount": 7}] * 3 + [{"succeededIndexes": short}] * 17
    spec = {"completionMode": "Indexed", "completions": 100_000, "successPolicy": {"rules": rules}}
    assert api.create(job(**spec))["spec"]["successPolicy"]["rules"] == rules


def test_a_failure_policy_is_kept_as_written_with_the_default_status(api):
    body = job(**PER_INDEX)
    body["spec"]["template"]["spec"]["initContainers"] = [{"name": "init", "image": "a"}]
    rules = [
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [1, 42]}},
        {"action": "FailIndex", "onExitCodes": {"containerName": "init", "operator": "NotIn", "values": [0, 3]}},
        {"action": "Count", "onExitCodes": {"operator": "In", "values": list(range(1, 256))}},
        {"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}, "onPodConditions": []},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "a.b/C_d", "status": "False"}]},
    ]
    body["spec"]["podFailurePolicy"] = {"rules": rules}
    kept = api.create(body)["spec"]["podFailurePolicy"]["rules"]
    rules[-1]["onPodConditions"][0]["status"] = "True"
    assert kept == rules


def test_a_success_policy_is_kept_as_written(api):
    rules = [{"succeededIndexes": "0,2-4"}, {"succeededCount": 3}, {"succeededIndexes": "1-4", "succeededCount": 2}]
    spec = api.create(job(**INDEXED, successPolicy={"rules": rules}))["spec"]
    assert spec["successPolicy"]["rules"] == rules


def test_the_container_of_a_rule_stays_in_the_template(api):
    policy = {"rules": [{"action": "Ignore", "onExitCodes": {"containerName": "main", "operator": "In", "values": [1]}}]}
    name = api.job_in("Suspended", podFailurePolicy=policy)["metadata"]["name"]
    path = "/spec/template/spec/containers/0"
    assert api.patch(name, [{"op": "add", "path": f"{path}/image", "value": "other"}])[0] == 200
    refused(
        api.patch(name, [{"op": "add", "path": f"{path}/name", "value": "other"}]),
        "onExitCodes.containerName must be a container or an init container of the template",
    )


# -- what may change ----------------------------------------------------------------------------


def test_every_field_of_the_spec_is_tried():
    assert set(MUTABLE) | set(IMMUTABLE) | OTHERS == set(schema_of("spec")["properties"])


@pytest.mark.parametrize("field", MUTABLE)
@pytest.mark.parametrize("phase", [None, "Running", "Succeeded"])
def test_a_mutable_field_may_change_in_every_stage_of_a_job(api, field, phase):
    name = api.job_in(phase)["metadata"]["name"]
    answer = accepted(api.patch(name, {"spec": {field: MUTABLE[field]}}))
    assert answer["spec"][field] == MUTABLE[field]


@pytest.mark.parametrize("field", [field for field in MUTABLE if field != "cancel"])
def test_a_mutable_field_may_be_taken_back(api, field):
    current = api.create(job())
    name = current["metadata"]["name"]
    assert api.patch(name, {"spec": {field: MUTABLE[field]}})[0] == 200
    answer = accepted(api.patch(name, {"spec": {field: None}}))
    assert answer["spec"] == current["spec"]


def test_cancel_is_never_taken_back(api):
    name = api.create(job(cancel=True))["metadata"]["name"]
    refused(api.patch(name, {"spec": {"cancel": False}}), "spec.cancel: Forbidden: cancel is one way")


def test_cancel_is_never_removed(api):
    current = api.create(job(cancel=True))
    name = current["metadata"]["name"]
    refused(api.patch(name, {"spec": {"cancel": None}}), "spec.cancel: Forbidden: cancel is one way")
    refused(api.patch(name, [{"op": "remove", "path": "/spec/cancel"}]), "spec.cancel: Forbidden")
    result = api.apply(job(name))
    assert result.returncode == 0, ("an apply that never named cancel leaves it alone: " + result.stderr)
    assert api.get(name)["spec"]["cancel"] is True


@pytest.mark.parametrize("field", IMMUTABLE)
@pytest.mark.parametrize("phase", [None, "Running", "Suspended", "Succeeded"])
def test_what_the_runs_are_is_never_changed(api, field, phase):
    if (field, phase) == ("completions", "Suspended"):
        pytest.skip("it may change then")
    spec, other = IMMUTABLE[field]
    name = api.job_in(phase, **spec)["metadata"]["name"]
    refused(api.patch(name, {"spec": {field: other}}), f"spec.{field}: Forbidden: {field} is immutable")


@pytest.mark.parametrize("field", [field for field in IMMUTABLE if field != "completionMode"])
def test_what_the_runs_are_is_never_added_or_removed(api, field):
    spec, _ = IMMUTABLE[field]
    rule = (f"spec.{field}: Forbidden: {field} ", "can neither be added nor removed")
    name = api.create(job(**spec))["metadata"]["name"]
    refused(api.patch(name, {"spec": {field: None}}), *rule)
    name = api.create(job(**{key: value for key, value in spec.items() if key != field}))["metadata"]["name"]
    refused(api.patch(name, {"spec": {field: spec[field]}}), *rule)


def test_completions_changes_while_suspended_and_what_is_counted_falls_with_it(api):
    current = api.job_in("Suspended", completionMode="Indexed", completions=5, parallelism=5)
    done = {"attempt": 5, "succeeded": 3, "completions": "3/5", "completedIndexes": "0-1,4"}
    current = accepted(api.put_status(current, status("Suspended", **done)))
    name = current["metadata"]["name"]
    fewer = status("Suspended", **done | {"succeeded": 2, "completions": "2/5", "completedIndexes": "0-1"})
    refused(api.put_status(current, fewer), "succeeded never falls")
    current = accepted(api.patch(name, {"spec": {"completions": 3, "parallelism": 3, "suspend": False}}))
    code, current = api.put_status(current, status("Pending", **done | {
        "succeeded": 2, "completions": "2/3", "completedIndexes": "0-1"}))
    assert code == 200, current
    refused(api.patch(name, {"spec": {"completions": 4}}), "completions is immutable unless the job is suspended")


def test_what_names_indexes_binds_completions_while_suspended(api):
    limits = {"indexes": "4", "successPolicy": {"rules": [{"succeededIndexes": "4"}]}, "maxFailedIndexes": 5}
    for field, value in limits.items():
        current = api.job_in("Suspended", **PER_INDEX | {field: value})
        refused(api.patch(current["metadata"]["name"], {"spec": {"completions": 4}}), f"spec.{field}")
    current = api.create(job("z" * 61, suspend=True, completionMode="Indexed", completions=5))
    accepted(api.put_status(current, status("Suspended")))
    refused(api.patch("z" * 61, {"spec": {"completions": 11}}), "the name is too long for an Indexed job")


def test_the_number_of_failed_indexes_may_change_up_to_completions(api):
    name = api.create(job(**PER_INDEX))["metadata"]["name"]
    for number in (1, 5, None, 0):
        answer = accepted(api.patch(name, {"spec": {"maxFailedIndexes": number}}))
        assert answer["spec"].get("maxFailedIndexes") == number
    refused(api.patch(name, {"spec": {"maxFailedIndexes": 6}}), "lower maxFailedIndexes or raise spec.completions")


def test_parallelism_rises_only_with_completions(api):
    name = api.create(job())["metadata"]["name"]
    refused(api.patch(name, {"spec": {"parallelism": 2}}), "parallelism above 1 needs completions")
    name = api.create(job(completions=10))["metadata"]["name"]
    for number in (2, 1000, 0):
        assert api.patch(name, {"spec": {"parallelism": number}})[0] == 200


TEMPLATE_CHANGES = {
    "image": [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other"}],
    "command": [{"op": "remove", "path": "/spec/template/spec/containers/0/command"}],
    "label": [{"op": "replace", "path": "/spec/template/metadata/labels/app", "value": "c"}],
    "label added": [{"op": "add", "path": "/spec/template/metadata/labels/new", "value": "c"}],
    "annotations removed": [{"op": "remove", "path": "/spec/template/metadata/annotations"}],
    "metadata removed": [{"op": "remove", "path": "/spec/template/metadata"}],
    "container added": [
        {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "b", "image": "b"}}
    ],
    "init container removed": [{"op": "remove", "path": "/spec/template/spec/initContainers/1"}],
    "init containers removed": [{"op": "remove", "path": "/spec/template/spec/initContainers"}],
    "init containers reordered": [
        {"op": "move", "from": "/spec/template/spec/initContainers/0", "path": "/spec/template/spec/initContainers/1"}
    ],
    "environment reordered": [
        {
            "op": "move",
            "from": "/spec/template/spec/containers/0/env/0",
            "path": "/spec/template/spec/containers/0/env/1",
        }
    ],
    "quantity": [{"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/cpu", "value": 3}],
    "label changed": [{"op": "replace", "path": "/spec/template/metadata/labels/app", "value": "b"}],
    "labels removed": [{"op": "remove", "path": "/spec/template/metadata/labels"}],
    "annotation added": [{"op": "add", "path": "/spec/template/metadata/annotations/x", "value": "y"}],
    "metadata removed": [{"op": "remove", "path": "/spec/template/metadata"}],
    "finalizer added": [{"op": "add", "path": "/spec/template/metadata/finalizers/-", "value": "example.com/b"}],
    "volume removed": [{"op": "remove", "path": "/spec/template/spec/volumes/0"}],
    "service account added": [{"op": "add", "path": "/spec/template/spec/priorityClassName", "value": "high"}],
}


@pytest.mark.parametrize("change", TEMPLATE_CHANGES)
def test_the_template_is_never_changed(api, change):
    body = job()
    body["spec"]["template"] = copy.deepcopy(POD)
    name = api.create(body)["metadata"]["name"]
    refused(api.patch(name, TEMPLATE_CHANGES[change]), "spec.template: Forbidden: the template is immutable")


def test_containers_are_never_reordered(api):
    body = job()
    body["spec"]["template"]["spec"]["containers"].append({"name": "second", "image": "busybox:1.36"})
    name = api.create(body)["metadata"]["name"]
    path = "/spec/template/spec/containers"
    changes = [{"op": "move", "from": f"{path}/0", "path": f"{path}/1"}]
    refused(api.patch(name, changes), "spec.template: Forbidden: the template is immutable")


@pytest.mark.parametrize(
    "before, after",
    [
        (None, HEARTBEAT),
        (None, {}),
        (HEARTBEAT, None),
        (HEARTBEAT, {"leaseDurationSeconds": 20}),
        (HEARTBEAT, {"progressDeadlineSeconds": 90}),
        (HEARTBEAT, {"progressDeadlineSeconds": None}),
        (HEARTBEAT, {"leaseDurationSeconds": None, "progressDeadlineSeconds": 90}),
    ],
)
def test_the_heartbeat_is_never_added_removed_or_changed(api, before, after):
    name = api.create(job(heartbeat=before) if before else job())["metadata"]["name"]
    refused(api.patch(name, {"spec": {"heartbeat": after}}), "spec.heartbeat: Forbidden: the heartbeat is immutable")


def test_an_unchanged_job_can_be_applied_again(api):
    body = job(heartbeat=HEARTBEAT, backoffLimit=2)
    body["spec"]["template"] = copy.deepcopy(POD)
    assert api.apply(body).returncode == 0
    second = api.apply(body)
    assert second.returncode == 0, second.stderr
    assert "unchanged" in second.stdout


def test_server_side_apply_takes_a_job_and_takes_it_again(api):
    body = job()
    body["spec"]["template"] = copy.deepcopy(POD)
    for _ in range(2):
        result = api.apply(body, "--server-side")
        assert result.returncode == 0, result.stderr
