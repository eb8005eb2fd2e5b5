"""Queues as the API server takes them: right and wrong specs, what may change, what kubectl shows."""

import json

import pytest
from resource_api import accepted, explained, job, refused, unique_name

QUEUES = "/apis/holdfast.dev/v1alpha1/namespaces/default/jobqueues"
RATE = {"jobs": 100, "periodSeconds": 60}
QUEUE = {"name": "encode", "priority": 5, "key": "customer-7"}


def queue(**spec):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "JobQueue",
            "metadata": {"name": unique_name("queue"), "namespace": "default"}, "spec": spec}


def create(api, body):
    code, answer = api.cluster.api("POST", f"{QUEUES}?fieldValidation=Strict", body)
    assert code == 201, answer
    return answer


RIGHT = {
    "nothing": {},
    "least": {"concurrency": 1, "concurrencyPerKey": 1, "rate": {"jobs": 1, "periodSeconds": 1}},
    "most": {"concurrency": 1000000, "concurrencyPerKey": 1000000, "rate": {"jobs": 1000000, "periodSeconds": 86400}},
    "hold": {"hold": True},
}
# What the API server takes as a wrong queue, and a part of what it says then.
NO_JOB = "to start no job at all, set spec.hold to true"
RANGE = "concurrency is from 1 to 1000000"
KEY_RANGE = "concurrencyPerKey is from 1 to 1000000"
PACE = "rate.periodSeconds is from 1 to 86400, one day"
WRONG = {
    "concurrency-0": ({"concurrency": 0}, RANGE),
    "concurrency-0-says-what-to-do": ({"concurrency": 0}, NO_JOB),
    "concurrency-below-0": ({"concurrency": -1}, RANGE),
    "concurrency-too-large": ({"concurrency": 1000001}, RANGE),
    "key-0": ({"concurrencyPerKey": 0}, KEY_RANGE),
    "key-below-0": ({"concurrencyPerKey": -1}, KEY_RANGE),
    "key-too-large": ({"concurrencyPerKey": 1000001}, KEY_RANGE),
    "rate-of-nothing": ({"rate": {"jobs": 0, "periodSeconds": 60}}, "rate.jobs is from 1 to 1000000"),
    "period-0": ({"rate": {"jobs": 5, "periodSeconds": 0}}, PACE),
    "period-over-a-day": ({"rate": {"jobs": 5, "periodSeconds": 90000}}, PACE),
}
# The same of a job's queue.
WRONG_OF_A_JOB = {
    "bad-name": ({"name": "En_code"}, "this cannot be the name of a JobQueue"),
    "empty-name": ({"name": ""}, "this cannot be the name of a JobQueue"),
    "empty-key": ({"name": "encode", "key": ""}, "the key is empty: leave it out"),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_queue_is_taken_as_it_is(api, case):
    assert create(api, queue(**RIGHT[case]))["spec"] == {"hold": False, **RIGHT[case]}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_queue_is_refused_with_what_to_do(api, case):
    spec, fragment = WRONG[case]
    result = api.apply(queue(**spec))
    assert result.returncode != 0, result.stdout
    assert fragment in result.stderr


def test_every_field_of_a_queue_may_change_and_go(api):
    name = create(api, queue(concurrency=5, rate=RATE))["metadata"]["name"]
    for change in ({"concurrency": 1, "concurrencyPerKey": 1, "hold": True}, {"rate": {"jobs": 1}},
                   {"concurrency": None, "concurrencyPerKey": None, "rate": None, "hold": False}):
        answer = accepted(api.cluster.api("PATCH", f"{QUEUES}/{name}", {"spec": change}, "merge"))
    assert answer["spec"] == {"hold": False}


def test_a_job_takes_its_queue_and_has_priority_0(api):
    assert api.create(job(queue={"name": "encode.v2"}))["spec"]["queue"] == {"name": "encode.v2", "priority": 0}
    most = {"name": "a" * 253, "priority": 1000000, "key": "k" * 253}
    assert api.create(job(queue=most))["spec"]["queue"] == most
    least = {"name": "a", "priority": -1000000, "key": "Any text, with ümlauts"}
    assert api.create(job(queue=least))["spec"]["queue"] == least


@pytest.mark.parametrize("case", WRONG_OF_A_JOB)
def test_a_wrong_queue_of_a_job_is_refused_with_what_to_do(api, case):
    of_job, fragment = WRONG_OF_A_JOB[case]
    body = job(queue=of_job)
    result = api.apply(body)
    assert result.returncode != 0, result.stdout
    assert fragment in result.stderr
    assert not api.exists(body["metadata"]["name"])


def test_a_stage_has_no_queue_of_its_own(api):
    body = job(stages=[{"name": "verify", "queue": QUEUE}])
    body["spec"]["stages"][0]["template"] = body["spec"]["template"]
    result = api.apply(body)
    assert result.returncode != 0
    assert 'unknown field "spec.stages[0].queue"' in result.stderr


@pytest.mark.parametrize("change", [{"name": "other"}, {"key": "customer-8"}, {"key": None}], ids=str)
def test_name_and_key_of_a_jobs_queue_never_change(api, change):
    name = api.create(job(queue=QUEUE))["metadata"]["name"]
    code, answer = api.patch(name, {"spec": {"queue": change}})
    assert code == 422
    assert "the queue's name and key are immutable: create a new job" in answer["message"]


def test_a_key_is_not_added_later(api):
    name = api.create(job(queue={"name": "encode"}))["metadata"]["name"]
    refused(api.patch(name, {"spec": {"queue": {"key": "customer-8"}}}), "name and key are immutable")


@pytest.mark.parametrize("before,after", [(None, QUEUE), (QUEUE, None)], ids=["added", "removed"])
def test_a_queue_is_neither_added_nor_removed(api, before, after):
    name = api.create(job(**({"queue": before} if before else {})))["metadata"]["name"]
    code, answer = api.patch(name, {"spec": {"queue": after}})
    assert code == 422
    assert "the queue can neither be added nor removed: create a new job" in answer["message"]


@pytest.mark.parametrize("phase", [None, "Pending", "Running", "Suspended"])
def test_the_priority_may_change_in_every_phase(api, phase):
    current = api.job_in(phase, queue=QUEUE)
    answer = accepted(api.patch(current["metadata"]["name"], {"spec": {"queue": {"priority": -7}}}))
    assert answer["spec"]["queue"] == {**QUEUE, "priority": -7}


def admitting(reason, message):
    return {"type": "Admitting", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-02T03:04:05Z"}


def test_kubectl_shows_what_runs_and_waits_and_why_nothing_starts(api):
    made = create(api, queue(concurrency=2))
    name = made["metadata"]["name"]
    made["status"] = {
        "holderIdentity": "holdfast-0/3", "running": 2, "waiting": 7, "oldestWaitingSince": "2026-01-02T03:04:05Z",
        "head": ["a", "b"], "admitting": [{"uid": "0f", "attempt": 0}],
        "rate": {"tokens": 3, "time": "2026-01-02T03:04:05.123456Z"}, "observedGeneration": 1,
        "conditions": [admitting("Full", "as many jobs run as spec.concurrency allows")]}
    code, answer = api.cluster.api("PUT", f"{QUEUES}/{name}/status?fieldValidation=Strict", made)
    assert code == 200 and answer["status"] == made["status"], answer
    short = api.kubectl("get", "jq", name).stdout.splitlines()
    assert short[0].split() == ["NAME", "RUNNING", "WAITING", "OLDEST", "HOLD", "AGE"]
    assert short[1].split()[:3] == [name, "2", "7"] and short[1].split()[4] == "false"
    wide = api.kubectl("get", "jq", name, "-o", "wide").stdout.splitlines()
    assert wide[0].split()[6:] == ["CONCURRENCY", "REASON", "MESSAGE"]
    assert wide[1].split()[6:8] == ["2", "Full"]
    assert wide[1].endswith("as many jobs run as spec.concurrency allows")


def test_a_write_of_the_spec_changes_no_status_and_the_other_way_round(api):
    made = create(api, {**queue(concurrency=2), "status": {"running": 5}})
    assert "status" not in made
    name = made["metadata"]["name"]
    code, answer = api.cluster.api("PATCH", f"{QUEUES}/{name}/status",
                                   {"spec": {"concurrency": 9}, "status": {"running": 1}}, "merge")
    assert code == 200 and (answer["spec"]["concurrency"], answer["status"]) == (2, {"running": 1})


def test_kubectl_explain_shows_what_a_field_is_for(api):
    text = explained(api, "jobqueue.spec.rate")
    assert "token bucket" in text and "periodSeconds" in text and "-required-" in text
    assert "Jobs with a higher priority start first" in explained(api, "dj.spec.queue.priority")


def test_queues_are_in_get_all_and_have_a_short_name(api):
    name = create(api, queue())["metadata"]["name"]
    assert f"jobqueue.holdfast.dev/{name}" in api.kubectl("get", "all", "-o", "name").stdout
    assert json.loads(api.kubectl("get", "jq", name, "-o", "json").stdout)["kind"] == "JobQueue"
