"""Wrong specs are refused at `kubectl apply`, with a message that says what to do."""

import copy

import pytest
from resource_api import JOBS, job, schema_of

HEARTBEAT = {"leaseDurationSeconds": 30}
MAIN = {"name": "main", "image": "busybox:1.36", "command": ["true"]}
RESTART_RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
INDEXED = {"completionMode": "Indexed", "completions": 5}
NEEDS_INDEXED = "set spec.completionMode to Indexed, or remove them"
EXIT_CODES = {"operator": "In", "values": [1]}
DISRUPTED = [{"type": "DisruptionTarget"}]
NO_LIST = "spec.indexes in body should match"


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


def indexed(**fields):
    return spec(**{**INDEXED, **fields})


def failure_rule(**fields):
    return spec(podFailurePolicy={"rules": [{"action": "Count", **fields}]})


def on_exit_codes(**fields):
    return failure_rule(onExitCodes={**EXIT_CODES, **fields})


def success_rules(*rules):
    return indexed(successPolicy={"rules": list(rules)})


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
    # the targets
    "a-url-for-a-target": (spec(notify=["https://example.com"]), "spec.notify[0]"),
    # the template
    "no-spec": (missing("spec"), "spec: Required value"),
    "no-template": (missing("spec", "template"), "a job has either a template or a workerPool"),
    "no-pod-spec": (missing("spec", "template", "spec"), "spec.template.spec: Required value"),
    "no-containers": (
        missing("spec", "template", "spec", "containers"),
        "spec.template.spec.containers: Required value",
    ),
    "empty-containers": (pod(containers=[]), "spec.template.spec.containers in body should have at least 1 items"),
    "containers-as-a-map": (pod(containers={"main": {}}), 'unknown field "spec.template.spec.containers.main"'),
    "no-image": (container(image=None), "spec.template.spec.containers[0].image: Required value"),
    "empty-image": (container(image=""), "containers[0].image in body should be at least 1 chars long"),
    "no-container-name": (container(name=None), "spec.template.spec.containers[0].name: Required value"),
    "empty-container-name": (container(name=""), "containers[0].name in body should be at least 1 chars long"),
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
        container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]),
        "volumeMounts[1]: Duplicate value",
    ),
    "restart-policy-always": (pod(restartPolicy="Always"), "restartPolicy must be Never, or be left out"),
    "restart-policy-on-failure": (pod(restartPolicy="OnFailure"), "set backoffLimit to limit"),
    "container-restart-policy": (container(restartPolicy="Always"), "a container has no restartPolicy of its own"),
    "container-restart-policy-never": (container(restartPolicy="Never"), "a container has no restartPolicy of its own"),
    "container-restart-rules": (container(restartPolicyRules=RESTART_RULES), "set backoffLimit to limit the retries"),
    "init-container-restart-policy": (
        pod(initContainers=[{**MAIN, "name": "init", "restartPolicy": "OnFailure"}]),
        "an init container's restartPolicy must be Always",
    ),
    "init-container-restart-rules": (
        pod(initContainers=[{**MAIN, "name": "init", "restartPolicyRules": RESTART_RULES}]),
        "restartPolicyRules restart a container in place",
    ),
    "command-as-a-string": (container(command="true"), 'command in body must be of type array: "string"'),
    "env-value-as-a-number": (container(env=[{"name": "A", "value": 1}]), 'must be of type string: "integer"'),
    "quantity-with-a-space": (
        container(resources={"limits": {"memory": "1 GB"}}),
        "limits.memory in body should match",
    ),
    "quantity-as-a-fraction": (container(resources={"limits": {"cpu": 0.5}}), "must be of type integer,string"),
    "misspelt-container-field": (container(imge="x"), 'unknown field "spec.template.spec.containers[0].imge"'),
    "ephemeral-containers": (pod(ephemeralContainers=[MAIN]), 'unknown field "spec.template.spec.ephemeralContainers"'),
    "label-as-a-number": (template_metadata(labels={"a": 1}), 'must be of type string: "integer"'),
    # runs
    "work-queue": (spec(parallelism=2), "set spec.completions to the number of runs, because a 'work queue' job"),
    "indexed-work-queue": (spec(completionMode="Indexed", parallelism=2), "parallelism above 1 needs completions"),
    "indexes-without-indexed": (spec(completions=5, indexes="1,3"), NEEDS_INDEXED),
    "indexes-with-a-space": (indexed(indexes="1, 3"), NO_LIST),
    "indexes-with-a-trailing-comma": (indexed(indexes="1,"), NO_LIST),
    "indexes-with-three-ends": (indexed(indexes="1-2-3"), NO_LIST),
    "indexes-below-0": (indexed(indexes="-1"), NO_LIST),
    "indexes-that-are-huge": (indexed(indexes="9" * 20), NO_LIST),
    "indexes-with-a-leading-0": (indexed(indexes="01"), NO_LIST),
    "indexes-twice": (indexed(indexes="1,1"), "in rising order"),
    "indexes-that-overlap": (indexed(indexes="0-2,2-3"), "in rising order"),
    "indexes-of-a-range-of-one": (indexed(indexes="1-1"), "in rising order"),
    "indexes-in-falling-order": (indexed(indexes="3,1"), "in rising order"),
    "indexes-with-a-range-turned-round": (indexed(indexes="3-1"), "in rising order"),
    "indexes-up-to-completions": (indexed(indexes="1,3-5"), "numbers and ranges from 0 to completions - 1"),
    "indexes-beyond-one-run": (
        spec(completionMode="Indexed", indexes="1"),
        "numbers and ranges from 0 to completions - 1",
    ),
    "per-index-limit-without-indexed": (spec(completions=5, backoffLimitPerIndex=1), NEEDS_INDEXED),
    "max-failed-indexes-without-indexed": (
        spec(completions=5, maxFailedIndexes=1),
        "set spec.backoffLimitPerIndex and spec.completionMode Indexed",
    ),
    "max-failed-indexes-without-a-limit-per-index": (
        indexed(maxFailedIndexes=1),
        "maxFailedIndexes needs backoffLimitPerIndex",
    ),
    "max-failed-indexes-above-completions": (
        indexed(backoffLimitPerIndex=1, maxFailedIndexes=6),
        "lower maxFailedIndexes or raise spec.completions",
    ),
    "indexed-with-a-name-that-leaves-no-room": (
        both(named("x" * 61), spec(completionMode="Indexed", completions=11)),
        "use a shorter one, because the hostname of the last pod",
    ),
    "indexed-with-a-dotted-name": (
        both(named("a.b"), spec(completionMode="Indexed")),
        "use lower case letters, digits and '-' only",
    ),
    # the policies
    "fail-index-without-a-limit-per-index": (
        both(indexed(), failure_rule(action="FailIndex", onExitCodes=EXIT_CODES)),
        "the action FailIndex needs spec.backoffLimitPerIndex: set it",
    ),
    "time-to-defer-without-the-action": (
        failure_rule(action="Count", deferSeconds=5, onExitCodes=EXIT_CODES),
        "deferSeconds and deferLimit are for the action Defer: set that action, or remove them",
    ),
    "failure-rule-that-asks-nothing": (failure_rule(), "a rule has either onExitCodes or onPodConditions"),
    "failure-rule-with-no-conditions": (
        failure_rule(onPodConditions=[]),
        "a rule has either onExitCodes or onPodConditions",
    ),
    "failure-rule-that-asks-both": (
        failure_rule(onExitCodes=EXIT_CODES, onPodConditions=DISRUPTED),
        "split a rule that has both in two",
    ),
    "exit-code-0-with-in": (
        on_exit_codes(values=[0, 1]),
        "0 does not go with the operator In, because a container that ends with 0 has not failed",
    ),
    "unordered-exit-codes": (on_exit_codes(values=[2, 1]), "values must be in rising order: sort them"),
    "container-that-is-not-there": (
        on_exit_codes(containerName="other"),
        "must be a container or an init container of the template: correct it",
    ),
    "condition-with-an-odd-type": (
        failure_rule(onPodConditions=[{"type": "a b"}]),
        "onPodConditions[0].type in body should match",
    ),
    "success-policy-without-indexed": (
        spec(completions=5, successPolicy={"rules": [{"succeededCount": 1}]}),
        NEEDS_INDEXED,
    ),
    "success-rule-that-asks-nothing": (success_rules({}), "a rule needs succeededIndexes, succeededCount or both"),
    "succeeded-count-above-completions": (
        success_rules({"succeededCount": 5}, {"succeededCount": 6}),
        "succeededCount must be at most completions: lower it",
    ),
    "succeeded-indexes-that-are-none": (
        success_rules({"succeededIndexes": "1;2"}),
        "succeededIndexes in body should match",
    ),
    "succeeded-indexes-with-a-space": (
        success_rules({"succeededIndexes": "0, 1-3"}),
        "succeededIndexes in body should match",
    ),
    "succeeded-indexes-of-a-falling-range": (
        success_rules({"succeededIndexes": "1"}, {"succeededIndexes": "0,4-3", "succeededCount": 3}),
        "in rising order",
    ),
    "succeeded-indexes-in-falling-order": (success_rules({"succeededIndexes": "3,1,4"}), "in rising order"),
    "succeeded-indexes-twice": (success_rules({"succeededIndexes": "1,1"}), "in rising order"),
    "succeeded-indexes-up-to-completions": (
        success_rules({"succeededIndexes": "0-1"}, {"succeededIndexes": "1,3-5"}),
        "succeededIndexes are numbers and ranges from 0 to completions - 1",
    ),
    # budgets and back-off
    "misspelt-field": (spec(backoffLimits=3), 'unknown field "spec.backoffLimits"'),
    "longest-delay-below-the-first": (
        spec(retryBackoff={"initialSeconds": 60, "maxSeconds": 30}),
        "raise retryBackoff.maxSeconds or lower retryBackoff.initialSeconds",
    ),
    "first-delay-above-the-default-longest": (
        spec(retryBackoff={"initialSeconds": 600}),
        "raise retryBackoff.maxSeconds or lower retryBackoff.initialSeconds",
    ),
    # the heartbeat
    "progress-deadline-below-the-lease": (
        spec(heartbeat={"leaseDurationSeconds": 30, "progressDeadlineSeconds": 20}),
        "raise it, or lower heartbeat.leaseDurationSeconds",
    ),
    "progress-deadline-below-the-default-lease": (
        spec(heartbeat={"progressDeadlineSeconds": 20}),
        "leaseDurationSeconds, which is 30 if it is left out: raise it, or set heartbeat.leaseDurationSeconds",
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
BATCH_ONLY = {"selector": {"matchLabels": {"a": "b"}}, "manualSelector": True, "managedBy": "example.com/other"}


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
