"""Wrong specs are refused at `kubectl apply`, with a message that says what to do."""

import copy

import pytest
from resource_api import JOBS, job, schema_of

HEARTBEAT = {"leaseDurationSeconds": 30}
MAIN = {"name": "main", "image": "busybox:1.36", "command": ["true"]}
RESTART_RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
MORE_ONE = "should be greater than or equal to 1"
MORE_ZERO = "should be greater than or equal to 0"
INT32 = "should be less than or equal to 2147483647"


def spec(**fields):
    def change(body):
        body["spec"].update(copy.deepcopy(fields))

    return change


def pod(**fields):
    def change(body):
        body["spec"]["template"]["spec"].update(copy.deepcopy(fields))

    return change


def container(**fields):
    def change(body):
        main = body["spec"]["template"]["spec"]["containers"][0]
        main.update(copy.deepcopy(fields))
        for name in [name for name, value in fields.items() if value is None]:
            del main[name]

    return change


def template_metadata(**fields):
    def change(body):
        body["spec"]["template"]["metadata"] = copy.deepcopy(fields)

    return change


def both(*changes):
    def change(body):
        for one in changes:
            one(body)

    return change


def named(name):
    def change(body):
        body["metadata"]["name"] = name

    return change


def missing(*path):
    def change(body):
        node = body
        for key in path[:-1]:
            node = node[key]
        del node[path[-1]]

    return change


# What is wrong: (how, what the message says).
WRONG = {
    # the name
    "name-of-64-characters": (named("x" * 64), "use at most 63 characters"),
    "name-with-a-dot": (named("a.b"), "use lower case letters, digits and '-' only"),
    # the template
    "no-spec": (missing("spec"), "spec: Required value"),
    "no-template": (missing("spec", "template"), "spec.template: Required value"),
    "no-pod-spec": (missing("spec", "template", "spec"), "spec.template.spec: Required value"),
    "no-containers": (
        missing("spec", "template", "spec", "containers"),
        "spec.template.spec.containers: Required value",
    ),
    "empty-containers": (
        pod(containers=[]),
        "spec.template.spec.containers in body should have at least 1 items",
    ),
    "containers-as-a-map": (
        pod(containers={"main": {}}),
        'unknown field "spec.template.spec.containers.main"',
    ),
    "no-image": (container(image=None), "spec.template.spec.containers[0].image: Required value"),
    "empty-image": (
        container(image=""),
        "containers[0].image in body should be at least 1 chars long",
    ),
    "no-container-name": (
        container(name=None),
        "spec.template.spec.containers[0].name: Required value",
    ),
    "empty-container-name": (
        container(name=""),
        "containers[0].name in body should be at least 1 chars long",
    ),
    "init-container-without-image": (
        pod(initContainers=[{"name": "init"}]),
        "spec.template.spec.initContainers[0].image: Required value",
    ),
    "two-containers-of-one-name": (pod(containers=[MAIN, MAIN]), "containers[1]: Duplicate value"),
    "two-volumes-of-one-name": (
        pod(volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
        "volumes[1]: Duplicate value",
    ),
    "two-mounts-in-one-place": (
        container(
            volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]
        ),
        "volumeMounts[1]: Duplicate value",
    ),
    "restart-policy-always": (
        pod(restartPolicy="Always"),
        "restartPolicy must be Never, or be left out",
    ),
    "restart-policy-on-failure": (
        pod(restartPolicy="OnFailure"),
        "set spec.backoffLimit to limit",
    ),
    "container-restart-policy": (
        container(restartPolicy="Always"),
        "a container has no restartPolicy of its own",
    ),
    "container-restart-policy-never": (
        container(restartPolicy="Never"),
        "a container has no restartPolicy of its own",
    ),
    "container-restart-rules": (
        container(restartPolicyRules=RESTART_RULES),
        "set spec.backoffLimit to limit the retries",
    ),
    "init-container-restart-policy": (
        pod(initContainers=[{**MAIN, "name": "init", "restartPolicy": "OnFailure"}]),
        "an init container's restartPolicy must be Always",
    ),
    "init-container-restart-rules": (
        pod(initContainers=[{**MAIN, "name": "init", "restartPolicyRules": RESTART_RULES}]),
        "restartPolicyRules restart a container in place",
    ),
    "command-as-a-string": (
        container(command="true"),
        'command in body must be of type array: "string"',
    ),
    "env-value-as-a-number": (
        container(env=[{"name": "A", "value": 1}]),
        'must be of type string: "integer"',
    ),
    "quantity-with-a-space": (
        container(resources={"limits": {"memory": "1 GB"}}),
        "limits.memory in body should match",
    ),
    "quantity-as-a-fraction": (
        container(resources={"limits": {"cpu": 0.5}}),
        "must be of type integer,string",
    ),
    "misspelt-container-field": (
        container(imge="x"),
        'unknown field "spec.template.spec.containers[0].imge"',
    ),
    "ephemeral-containers": (
        pod(ephemeralContainers=[MAIN]),
        'unknown field "spec.template.spec.ephemeralContainers"',
    ),
    "finalizer-in-the-template": (
        template_metadata(finalizers=["a.example/b"]),
        'unknown field "spec.template.metadata.finalizers"',
    ),
    "label-as-a-number": (template_metadata(labels={"a": 1}), 'must be of type string: "integer"'),
    # budgets and back-off
    "backoff-limit-below-0": (spec(backoffLimit=-1), f"spec.backoffLimit in body {MORE_ZERO}"),
    "backoff-limit-too-large": (spec(backoffLimit=2**31), f"spec.backoffLimit in body {INT32}"),
    "backoff-limit-as-a-string": (
        spec(backoffLimit="3"),
        'spec.backoffLimit in body must be of type integer: "string"',
    ),
    "misspelt-field": (spec(backoffLimits=3), 'unknown field "spec.backoffLimits"'),
    "disruption-limit-below-0": (
        spec(disruptionLimit=-1),
        f"spec.disruptionLimit in body {MORE_ZERO}",
    ),
    "disruption-limit-too-large": (
        spec(disruptionLimit=2**31),
        f"spec.disruptionLimit in body {INT32}",
    ),
    "initial-delay-0": (
        spec(retryBackoff={"initialSeconds": 0}),
        f"retryBackoff.initialSeconds in body {MORE_ONE}",
    ),
    "initial-delay-over-a-day": (
        spec(retryBackoff={"initialSeconds": 86401, "maxSeconds": 86400}),
        "retryBackoff.initialSeconds in body should be less than or equal to 86400",
    ),
    "factor-0": (spec(retryBackoff={"factor": 0}), f"retryBackoff.factor in body {MORE_ONE}"),
    "factor-11": (
        spec(retryBackoff={"factor": 11}),
        "retryBackoff.factor in body should be less than or equal to 10",
    ),
    "factor-with-a-fraction": (
        spec(retryBackoff={"factor": 1.5}),
        'must be of type integer',
    ),
    "longest-delay-0": (
        spec(retryBackoff={"maxSeconds": 0}),
        f"retryBackoff.maxSeconds in body {MORE_ONE}",
    ),
    "longest-delay-over-a-day": (
        spec(retryBackoff={"maxSeconds": 86401}),
        "retryBackoff.maxSeconds in body should be less than or equal to 86400",
    ),
    "longest-delay-below-the-first": (
        spec(retryBackoff={"initialSeconds": 60, "maxSeconds": 30}),
        "raise retryBackoff.maxSeconds or lower retryBackoff.initialSeconds",
    ),
    "first-delay-above-the-default-longest": (
        spec(retryBackoff={"initialSeconds": 600}),
        "raise retryBackoff.maxSeconds or lower retryBackoff.initialSeconds",
    ),
    "jitter-below-0": (
        spec(retryBackoff={"jitterPercent": -1}),
        f"retryBackoff.jitterPercent in body {MORE_ZERO}",
    ),
    "jitter-above-100": (
        spec(retryBackoff={"jitterPercent": 101}),
        "retryBackoff.jitterPercent in body should be less than or equal to 100",
    ),
    "unknown-backoff-field": (
        spec(retryBackoff={"initial": 5}),
        'unknown field "spec.retryBackoff.initial"',
    ),
    # deadlines
    "start-deadline-0": (
        spec(startDeadlineSeconds=0),
        f"spec.startDeadlineSeconds in body {MORE_ONE}",
    ),
    "start-deadline-over-a-year": (
        spec(startDeadlineSeconds=31536001),
        "spec.startDeadlineSeconds in body should be less than or equal to 31536000",
    ),
    "schedule-deadline-0": (
        spec(scheduleDeadlineSeconds=0),
        f"spec.scheduleDeadlineSeconds in body {MORE_ONE}",
    ),
    "schedule-deadline-over-a-year": (
        spec(scheduleDeadlineSeconds=31536001),
        "spec.scheduleDeadlineSeconds in body should be less than or equal to 31536000",
    ),
    "lost-after-14": (
        spec(lostAfterSeconds=14),
        "spec.lostAfterSeconds in body should be greater than or equal to 15",
    ),
    "lost-after-over-a-day": (
        spec(lostAfterSeconds=86401),
        "spec.lostAfterSeconds in body should be less than or equal to 86400",
    ),
    "attempt-deadline-0": (
        spec(attemptDeadlineSeconds=0),
        f"spec.attemptDeadlineSeconds in body {MORE_ONE}",
    ),
    "attempt-deadline-as-a-duration": (
        spec(attemptDeadlineSeconds="10m"),
        'spec.attemptDeadlineSeconds in body must be of type integer: "string"',
    ),
    "active-deadline-0": (
        spec(activeDeadlineSeconds=0),
        f"spec.activeDeadlineSeconds in body {MORE_ONE}",
    ),
    "active-deadline-too-large": (
        spec(activeDeadlineSeconds=2**31),
        f"spec.activeDeadlineSeconds in body {INT32}",
    ),
    "ttl-below-0": (
        spec(ttlSecondsAfterFinished=-1),
        f"spec.ttlSecondsAfterFinished in body {MORE_ZERO}",
    ),
    # policies and switches
    "unknown-replacement-policy": (
        spec(podReplacementPolicy="Always"),
        'supported values: "TerminatingOrFailed", "Failed"',
    ),
    "suspend-as-a-string": (
        spec(suspend="yes"),
        'spec.suspend in body must be of type boolean: "string"',
    ),
    "cancel-as-a-number": (
        spec(cancel=1),
        'spec.cancel in body must be of type boolean: "integer"',
    ),
    # the heartbeat
    "heartbeat-as-a-number": (
        spec(heartbeat=30),
        'spec.heartbeat in body must be of type object: "integer"',
    ),
    "unknown-heartbeat-field": (
        spec(heartbeat={"seconds": 30}),
        'unknown field "spec.heartbeat.seconds"',
    ),
    "lease-of-9-seconds": (
        spec(heartbeat={"leaseDurationSeconds": 9}),
        "heartbeat.leaseDurationSeconds in body should be greater than or equal to 10",
    ),
    "lease-over-an-hour": (
        spec(heartbeat={"leaseDurationSeconds": 3601}),
        "heartbeat.leaseDurationSeconds in body should be less than or equal to 3600",
    ),
    "progress-deadline-of-9-seconds": (
        spec(heartbeat={"leaseDurationSeconds": 10, "progressDeadlineSeconds": 9}),
        "heartbeat.progressDeadlineSeconds in body should be greater than or equal to 10",
    ),
    "progress-deadline-below-the-lease": (
        spec(heartbeat={"progressDeadlineSeconds": 20}),
        "raise it, or lower heartbeat.leaseDurationSeconds",
    ),
    "heartbeat-without-a-command": (
        both(spec(heartbeat=HEARTBEAT), container(command=None)),
        "set spec.template.spec.containers[0].command",
    ),
    "heartbeat-with-an-empty-command": (
        both(spec(heartbeat=HEARTBEAT), container(command=[])),
        "set spec.template.spec.containers[0].command",
    ),
    "heartbeat-with-post-start": (
        both(spec(heartbeat=HEARTBEAT), container(lifecycle={"postStart": {"sleep": {"seconds": 1}}})),
        "heartbeat does not go with postStart in the first container",
    ),
    "heartbeat-with-a-shared-process-namespace": (
        both(spec(heartbeat=HEARTBEAT), pod(shareProcessNamespace=True)),
        "remove spec.template.spec.shareProcessNamespace or spec.heartbeat",
    ),
}

# What batch/v1 Job has and a DurableJob has not.
BATCH_ONLY = {
    "parallelism": 2,
    "completions": 2,
    "completionMode": "Indexed",
    "backoffLimitPerIndex": 1,
    "maxFailedIndexes": 1,
    "podFailurePolicy": {"rules": []},
    "successPolicy": {"rules": []},
    "selector": {"matchLabels": {"a": "b"}},
    "manualSelector": True,
    "managedBy": "example.com/other",
}


def test_there_are_at_least_forty_wrong_specs():
    assert len(WRONG) >= 40


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_spec_is_refused_with_what_to_do(api, case):
    change, fragment = WRONG[case]
    body = job(f"wrong-{case}"[:60].rstrip("-"))
    change(body)
    result = api.apply(body)
    assert result.returncode != 0, result.stdout
    assert fragment in result.stderr
    assert not api.exists(body["metadata"]["name"])


@pytest.mark.parametrize("field", BATCH_ONLY)
def test_a_field_that_only_batch_v1_has_is_refused_by_name(api, field):
    result = api.apply(job(f"batch-{field.lower()}", **{field: BATCH_ONLY[field]}))
    assert result.returncode != 0, result.stdout
    assert f'unknown field "spec.{field}"' in result.stderr


def test_what_is_wrong_is_told_all_at_once(api):
    body = job(backoffLimit=-1, lostAfterSeconds=1, podReplacementPolicy="Never")
    result = api.apply(body)
    assert result.returncode != 0
    for name in ("spec.backoffLimit", "spec.lostAfterSeconds", "spec.podReplacementPolicy"):
        assert name in result.stderr


def integers(schema, body):
    """(path, spec with that integer) for each place below a schema where one may stand."""
    if schema.get("type") == "integer" or schema.get("x-kubernetes-int-or-string"):
        yield "", body
    for name, field in schema.get("properties", {}).items():
        for path, value in integers(field, body):
            yield f".{name}{path}", {name: value}
    for path, value in integers(schema["items"], body) if "items" in schema else ():
        yield f"[0]{path}", [value]
    more = schema.get("additionalProperties")
    for path, value in integers(more, body) if isinstance(more, dict) else ():
        yield f"[x]{path}", {"x": value}


def test_an_integer_beyond_64_bits_is_refused_wherever_one_may_stand(api):
    """The operator takes a list in which there is one for a torn one: nobody may store it."""
    places = list(integers(schema_of("spec"), 10**20))
    assert len(places) > 100
    for path, spec in places:
        body = job("integer") | {"spec": spec}
        code, answer = api.cluster.api("POST", f"{JOBS}?dryRun=All", body)
        field = path.replace("[x]", ".x")
        assert code == 422, (path, answer)
        assert any(f"spec{field}" == cause["field"] or f"spec{path}" == cause["field"]
                   for cause in answer["details"]["causes"]), (path, answer["message"])
