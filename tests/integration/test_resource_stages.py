"""Stages at the API server: which specs it takes, and which changes of `status.stages` it refuses."""

import copy

import pytest
from resource_api import JOBS, accepted, job, refused, status

POD = {"spec": {"containers": [{"name": "main", "image": "busybox:1.36", "command": ["true"]}]}}


def stage(name="next", **fields):
    return {"name": name, "template": copy.deepcopy(POD), **copy.deepcopy(fields)}


def without_command():
    found = stage(heartbeat={"leaseDurationSeconds": 30})
    del found["template"]["spec"]["containers"][0]["command"]
    return found


def failure_policy(**rule):
    return {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}, **rule}]}


def success(indexes):
    return {"rules": [{"succeededIndexes": indexes}]}


RIGHT = {
    "one": [stage()],
    "sixteen": [stage(f"s-{number}") for number in range(16)],
    "tolerated-and-always": [stage("a", onFailure="Continue"), stage("b", when="Always", activeDeadlineSeconds=5)],
    "many-runs": [stage(completions=5, parallelism=5, completionMode="Indexed", indexes="0,2-4", backoffLimitPerIndex=1,
                        maxFailedIndexes=2, successPolicy={"rules": [{"succeededCount": 2}]},
                        podFailurePolicy=failure_policy(action="FailIndex"))],
    "heartbeat": [stage(heartbeat={"leaseDurationSeconds": 30})],
    "polls": [stage(podFailurePolicy=failure_policy(action="Defer", deferSeconds=10))],
}
# What is wrong: (stages, what the message says).
WRONG = {
    "main": ([stage("main")], "main is the job's own template: give the stage another name"),
    "twice": ([stage("a"), stage("a")], "each stage needs a name of its own"),
    "capitals": ([stage("Next")], "spec.stages[0].name in body should match"),
    "no-template": ([{"name": "next"}], "a stage has either a template or a workerPool"),
    "no-image": ([{"name": "a", "template": {"spec": {"containers": [{"name": "m"}]}}}],
                 "spec.stages[0].template.spec.containers[0].image: Required value"),
    "unknown-field": ([stage(template={"spec": {**POD["spec"], "nodeNam": "x"}})],
                      'unknown field "spec.stages[0].template.spec.nodeNam"'),
    "restarts": ([stage(template={"spec": {**POD["spec"], "restartPolicy": "Always"}})], "restartPolicy must be Never"),
    "suspend": ([stage(suspend=True)], 'unknown field "spec.stages[0].suspend"'),
    "work-queue": ([stage(parallelism=2)], "set completions of that stage to its number of runs"),
    "indexes-without-indexed": ([stage(completions=3, indexes="1")], "need completionMode Indexed in the same stage"),
    "indexes-in-words": ([stage(completions=3, completionMode="Indexed", indexes="one")],
                         "spec.stages[0].indexes in body should match"),
    "indexes-twice": ([stage(completions=3, completionMode="Indexed", indexes="1,1")], "in rising order"),
    "success-of-a-falling-range": ([stage(completions=6, completionMode="Indexed", successPolicy=success("0,5-3"))],
                                   "in successPolicy of a stage, succeededIndexes are"),
    "success-with-a-space": ([stage(completions=6, completionMode="Indexed", successPolicy=success("0, 1-3"))],
                             "succeededIndexes in body should match"),
    "success-beyond": ([stage(completions=3, completionMode="Indexed", successPolicy=success("0-3"))],
                       "in successPolicy of a stage, succeededIndexes are"),
    "success-of-too-many": ([stage(completions=3, completionMode="Indexed",
                                   successPolicy={"rules": [{"succeededCount": 4}]})],
                            "succeededCount is at most completions"),
    "indexes-beyond": ([stage(completions=3, completionMode="Indexed", indexes="3")], "from 0 to completions - 1"),
    "fail-index": ([stage(podFailurePolicy=failure_policy(action="FailIndex"))],
                   "FailIndex needs the stage's backoffLimitPerIndex"),
    "no-such-container": ([stage(podFailurePolicy=failure_policy(onExitCodes={
        "containerName": "other", "operator": "In", "values": [1]}))], "is a container or an init container of its"),
    "defer-seconds": ([stage(podFailurePolicy=failure_policy(deferSeconds=5))], "are for the action Defer"),
    "no-command": ([without_command()], "needs the command of its template's first container"),
    "backoff": ([stage(retryBackoff={"initialSeconds": 9, "maxSeconds": 3})], "maxSeconds must be at least"),
}


@pytest.mark.parametrize("how", RIGHT)
def test_right_stages_are_taken(api, how):
    api.create(job(stages=RIGHT[how]))


@pytest.mark.parametrize("how", WRONG)
def test_wrong_stages_are_refused_with_what_to_do(api, how):
    stages, words = WRONG[how]
    code, answer = api.cluster.api("POST", f"{JOBS}?fieldValidation=Strict", job(stages=stages))
    assert code in (400, 422), answer
    assert words in answer["message"], answer["message"]


@pytest.mark.parametrize("stages", [None, [stage("b")], [stage("a", backoffLimit=1)], [stage("a"), stage("b")]],
                         ids=["removed", "renamed", "changed", "longer"])
def test_stages_never_change(api, stages):
    name = api.create(job(stages=[stage("a")]))["metadata"]["name"]
    refused(api.patch(name, {"spec": {"stages": stages}}), "the stages are immutable as a whole")


def test_the_order_of_a_stages_containers_never_changes(api):
    two = stage("a")
    two["template"]["spec"]["containers"].append({"name": "side", "image": "busybox:1.36"})
    name = api.create(job(stages=[two]))["metadata"]["name"]
    other = copy.deepcopy(two)
    other["template"]["spec"]["containers"].reverse()
    refused(api.patch(name, {"spec": {"stages": [other]}}), "the stages are immutable as a whole")


def test_a_job_without_stages_has_none_in_its_status(api):
    current = api.job_in("Running")
    code, answer = api.put_status(current, status("Running", stage="main", stages=[ENDED]))
    assert code == 422 and "for each stage of the job, and no other" in answer["message"], answer


def test_stages_are_not_added_later(api):
    name = api.create(job())["metadata"]["name"]
    refused(api.patch(name, {"spec": {"stages": [stage()]}}), "the stages are immutable as a whole")


# -- status ---------------------------------------------------------------------------------------

ENDED = {"name": "main", "phase": "Succeeded", "startTime": "2026-01-02T03:04:05Z",
         "completionTime": "2026-01-02T03:05:05Z", "failures": 1, "result": "42"}
NEXT = {"name": "next", "phase": "Running", "startTime": "2026-01-02T03:05:05Z", "failures": 2}
LAST = {"name": "last", "phase": "Pending"}


def in_stage(phase="Running", **fields):
    return status(phase, stage="next", stages=[ENDED, NEXT, LAST], succeeded=0, failed=2, **fields)


@pytest.fixture()
def moved(api):
    """A job in the second of its three stages."""
    current = api.create(job(stages=[stage("next"), stage("last")]))
    answer = accepted(api.put_status(current, in_stage()))
    return answer


def put(api, current, **fields):
    return api.put_status(current, {key: value for key, value in {**current["status"], **fields}.items()
                                    if value is not None})


@pytest.mark.parametrize("fields,words", [
    ({"stages": [{**ENDED, "result": "43"}, NEXT, LAST]}, "a stage that has ended never changes"),
    ({"stages": [ENDED, {**NEXT, "phase": "Pending"}, LAST]}, "a stage that has begun runs until it ends"),
    ({"stages": [ENDED, {**NEXT, "failures": 1}, LAST]}, "failures and disruptions of a stage never fall"),
    ({"stages": [ENDED, NEXT]}, "no stage leaves the list"),
    ({"stage": None, "stages": None}, "stage and stages belong together and stay"),
    ({"stage": None}, "stage and stages belong together"),
    ({"stage": "last"}, "a job leaves a stage only once that has ended"),
    ({"stage": "main", "stages": [ENDED, {**NEXT, "phase": "Failed"}, LAST]}, "do not go back"),
    ({"stages": [ENDED, NEXT, LAST, {"name": "another", "phase": "Pending"}]}, "for each stage of the job, and no other"),
    ({"history": [{"attempt": 1, "outcome": "Succeeded", "stage": "main"}]}, "names its run too"),
    ({"failed": 1}, "failed never falls within a stage"),
    ({"phase": "Succeeded", "waiting": None, "completionTime": "2026-01-02T04:04:05Z"},
     "a job that has ended has no stage that has not"),
], ids=["ended-changes", "begins-again", "budget-falls", "leaves", "both-gone", "one-gone", "left-too-early", "back",
        "another", "entry-without-index", "failed-falls", "outlived"])
def test_what_a_stage_has_come_to_stays(api, moved, fields, words):
    refused(put(api, moved, **fields), words)


def test_the_next_stage_counts_anew(api, moved):
    ended = {**NEXT, "phase": "Failed", "message": "why"}
    accepted(put(api, moved, stage="last", stages=[ENDED, ended, {**LAST, "phase": "Running"}], failed=0))


@pytest.mark.parametrize("end", ["Cancelled", "Succeeded"])
def test_a_cancelling_job_with_stages_may_go_on(api, moved, end):
    current = accepted(put(api, moved, phase="Cancelling"))
    current = accepted(put(api, current, phase="Running"))
    skipped = [ENDED, {**NEXT, "phase": "Failed"}, {**LAST, "phase": "Skipped"}]
    accepted(put(api, current, phase=end, stages=skipped, waiting=None, completionTime="2026-01-02T04:04:05Z"))


def test_a_job_without_stages_does_not_come_back_from_cancelling(api):
    current = api.job_in("Cancelling")
    code, answer = api.put_status(current, status("Running"))
    assert code == 422 and "must not go from Cancelling to Running, because only a job with stages does" in answer["message"], answer


def test_a_result_that_is_ready_stays_ready(api, moved):
    ready = {"type": "ResultReady", "status": "True", "reason": "StagesSucceeded", "message": "m",
             "lastTransitionTime": "2026-01-02T03:05:05Z"}
    current = accepted(put(api, moved, conditions=[ready]))
    refused(put(api, current, conditions=[{**ready, "status": "False"}]), "an outcome that is decided stays decided")
