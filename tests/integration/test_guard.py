"""The guard: which rules the API server keeps without the policies, that the policies pass what is right however large
it is, and that the operator starts nothing without them."""

import contextlib
import copy

import pytest
from holdfast import GUARD_PATH, Operator, job, remove_guard, runs, wait_for_guard
from localcluster import wait_for
from resource_api import JOBS, Api, accepted, refused, status, unique_name
from resource_api import job as wrong_or_right

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
EVENTS = "/apis/events.k8s.io/v1/namespaces/holdfast-system/events"
LIMIT = 60


def without(*fields, of):
    return {key: value for key, value in of.items() if key not in fields}


# -- what the API server keeps to -------------------------------------------------------------------


@contextlib.contextmanager
def put_back(cluster):
    """The guard is there again afterwards, whatever the test did to it."""
    try:
        yield
    finally:
        cluster.kubectl("apply", "-f", str(GUARD_PATH))
        wait_for_guard(cluster)


@contextlib.contextmanager
def unguarded(cluster):
    """The API server without the policies."""
    with put_back(cluster):
        remove_guard(cluster)
        api = Api(cluster)
        probe = wrong_or_right(parallelism=2)
        wait_for("the guard to be gone", lambda: cluster.api("POST", f"{JOBS}?dryRun=All", probe)[0] == 201, LIMIT)
        running = api.job_in("Running")
        wrong = {**without("waiting", of=status("Running")), "attempt": 2}
        wait_for("the guard on statuses to be gone", lambda: api.put_status(running, wrong)[0] == 200, LIMIT)
        yield api


def test_the_core_holds_without_the_policies(bare_cluster):
    """An ended job stays ended, an attempt's number never falls, a cancelled job stays so, and neither the template nor
    the completion mode changes."""
    with unguarded(bare_cluster) as api:
        assert_core_holds(api)


def assert_core_holds(api):
    ended = api.job_in("Succeeded")
    refused(api.put_status(ended, status("Running")), "status.phase")
    running = accepted(api.put_status(api.job_in("Running"), status("Running", attempt=3)))
    refused(api.put_status(running, status("Running", attempt=2)), "status.attempt")
    other = copy.deepcopy(running["spec"]["template"])
    other["spec"]["containers"][0]["image"] = "busybox:1.37"
    refused(api.patch(running["metadata"]["name"], {"spec": {"template": other}}), "the template is immutable")
    stage = {"name": "upload", "workerPool": {"name": "p"}}
    staged = api.create(wrong_or_right(stages=[stage]))
    refused(api.patch(staged["metadata"]["name"], {"spec": {"stages": [{**stage, "name": "report"}]}}),
            "the stages are immutable")
    refused(api.patch(running["metadata"]["name"], {"spec": {"completionMode": "Indexed"}}), "spec.completionMode")
    accepted(api.patch(running["metadata"]["name"], {"spec": {"cancel": True}}))
    refused(api.patch(running["metadata"]["name"], {"spec": {"cancel": False}}), "spec.cancel")


def test_what_was_wrong_before_the_guard_came_can_be_stopped(bare_cluster):
    """Its owner may not change it otherwise, but may cancel, suspend and delete it."""
    with unguarded(bare_cluster) as api:
        name = api.create(wrong_or_right(parallelism=2))["metadata"]["name"]
    refused(api.patch(name, {"spec": {"ttlSecondsAfterFinished": 60}}), "spec.parallelism")
    accepted(api.patch(name, {"metadata": {"annotations": {"team": "a"}}}))
    accepted(api.patch(name, {"spec": {"suspend": True}}))
    accepted(api.patch(name, {"spec": {"cancel": True}}))
    accepted(bare_cluster.api("DELETE", f"{JOBS}/{name}"))


def test_a_refusal_names_the_policy_the_field_and_what_to_do(api):
    answer = api.cluster.api("POST", f"{JOBS}?dryRun=All", wrong_or_right(parallelism=2))
    refused(answer, "holdfast-guard-durablejob", "spec.parallelism: parallelism above 1 needs completions: set")
    shown = api.apply(wrong_or_right(unique_name(), parallelism=2), "--dry-run=server")
    assert "spec.parallelism: parallelism above 1 needs completions: set" in shown.stderr
    running = api.job_in("Running")
    refused(api.put_status(running, without("waiting", of=status("Running"))), "holdfast-guard-durablejob-status",
            "status.waiting: Required value: a job that has not ended must say what it waits for")


def large_runs(count, attempt):
    return [{"index": 2 * index, "attempt": attempt, "podName": f"a-job-with-a-long-name-{attempt}-{index}-abcde",
             "podUID": "5cce1394-28fc-4389-b9d8-da4b1707d713", "nodeName": "node-of-some-length.example.com",
             "startTime": "2026-01-02T03:04:05.123456789Z", "failures": 1, "disruptions": 1} for index in range(count)]


def rising(count, step=1):
    return ",".join(str(number) for number in range(0, count * step, step))


def longest_list(bytes_at_most):
    return rising(50_000, 2)[:bytes_at_most].rpartition(",")[0]


def test_the_dearest_rules_of_a_spec_have_a_limit_each(api):
    """The API server limits what an expression may cost. Each of these lists takes a large part of that, or all."""
    def assert_taken(**spec):
        code, answer = api.cluster.api("POST", f"{JOBS}?dryRun=All", wrong_or_right(**spec))
        assert code == 201, answer["message"]

    full = {"completionMode": "Indexed", "completions": 100_000, "indexes": rising(300)}
    rules = [{"succeededIndexes": rising(100)}] * 20
    assert_taken(**full, successPolicy={"rules": rules})
    longest = [{"succeededIndexes": longest_list(65_500)}] * 3 + rules[3:]
    assert_taken(**{**full, "indexes": longest_list(131_000)}, successPolicy={"rules": longest})
    template = wrong_or_right()["spec"]["template"]
    stages = [{**full, "indexes": rising(100), "name": f"stage-{number}", "template": template,
               "successPolicy": {"rules": [{"succeededIndexes": rising(30)}] * 20}} for number in range(16)]
    assert_taken(**full, stages=stages, successPolicy={"rules": rules})


def test_the_largest_status_costs_the_policies_less_than_their_limit(api):
    """1,000 runs, 100,000 indexes in lists without a range, and a full history, outbox and list of conditions."""
    current = api.create(wrong_or_right(completionMode="Indexed", completions=100000, parallelism=1000))
    done = [str(index) for index in range(1, 100000, 2)]
    failed = [str(index) for index in range(2000, 100000, 2)]
    history = [{"index": 1, "attempt": 1000 + number, "outcome": "Failed", "exitCode": 1, "message": "m" * 2000}
               for number in range(10)]
    outbox = [{"number": number, "event": "Stalled", "time": "2026-01-02T03:04:05Z", "reason": "R", "message": "m",
               "targets": ["a", "b", "c", "d"]} for number in range(1, 33)]
    conditions = [{"type": kind, "status": "True", "reason": "R", "message": "m" * 1000,
                   "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1}
                  for kind in ["FailureTarget", *(f"Other{number}" for number in range(14))]]
    full = status("Running", attempt=2000, runs=large_runs(1000, 2000), completedIndexes=",".join(done),
                  failedIndexes=",".join(failed), succeeded=len(done), failed=len(failed), history=history, outbox=outbox,
                  notifications=32, completions=f"{len(done)}/100000", conditions=conditions)
    current = accepted(api.put_status(current, {**full, "history": []}))
    current = accepted(api.put_status(current, full))
    current = accepted(api.put_status(current, {**full, "attempt": 2001}))
    current = accepted(api.put_status(current, {
        **without("runs", "waiting", of=full), "attempt": 2001, "phase": "Failed",
        "completionTime": "2026-01-02T04:04:05Z", "conditions": [*conditions, {**conditions[0], "type": "Failed"}]}))
    accepted(api.put_status(current, {**current["status"], "outbox": outbox[1:]}))
    accepted(api.patch(current["metadata"]["name"], {"spec": {"ttlSecondsAfterFinished": 60}}))


# -- what the operator does without them ------------------------------------------------------------


def missing(operator):
    return operator.metrics()["holdfast_guard_missing"] == 1


def test_no_attempt_starts_without_the_guard_and_ends_still_count(cluster, jobs):
    with put_back(cluster), Operator(cluster, "--require-guard=true") as operator:
        wait_for("the guard to be seen", lambda: "the guard is in the API server" in operator.log(), LIMIT)
        jobs.apply(job("before", annotations=runs(3600)))
        jobs.wait("before", lambda s: s.get("phase") == "Running", LIMIT)
        # As it is after a careless edit: the policy is there, and binds nobody.
        changed = {"spec": {"validationActions": ["Audit"]}}
        assert cluster.api("PATCH", f"{BINDINGS}/holdfast-guard-durablejob-status", changed, "merge")[0] == 200
        wait_for("the operator to miss the guard", lambda: missing(operator), LIMIT)
        jobs.apply(job("after", annotations=runs(0)))
        jobs.wait("after", lambda s: (s.get("waiting") or {}).get("reason") == "GuardMissing", LIMIT)
        assert "holdfast-guard-durablejob-status is not as this version" in jobs.status("after")["waiting"]["message"]
        jobs.patch("before", cancel=True)
        jobs.wait("before", lambda s: s.get("phase") == "Cancelled", LIMIT)
        told = wait_for("the Event", lambda: [event for event in cluster.api("GET", EVENTS)[1]["items"]
                                              if event["reason"] == "GuardMissing"], LIMIT)
        assert {event["regarding"]["name"] for event in told} == {"holdfast-shard-0"}
        cluster.kubectl("apply", "-f", str(GUARD_PATH))
        jobs.wait("after", lambda s: s.get("phase") == "Succeeded", LIMIT)
        assert not missing(operator)


def test_an_operator_that_does_not_require_it_says_so_and_goes_on(cluster, jobs):
    with put_back(cluster), Operator(cluster) as operator:
        assert cluster.api("DELETE", f"{POLICIES}/holdfast-guard-durablejob")[0] == 200
        wait_for("the operator to miss the guard", lambda: missing(operator), LIMIT)
        jobs.apply(job("goes-on", annotations=runs(0)))
        jobs.wait("goes-on", lambda s: s.get("phase") == "Succeeded", LIMIT)
        # Nothing refuses this any more. It ends, and says why.
        empty = job("neither-template-nor-pool")
        del empty["spec"]["template"]
        jobs.apply(empty)
        status = jobs.wait("neither-template-nor-pool", lambda s: s.get("phase") == "Failed", LIMIT)
        [failed] = [condition for condition in status["conditions"] if condition["type"] == "Failed"]
        assert failed["reason"] == "PodTemplateInvalid" and failed["message"] == "the pod template has no spec"
