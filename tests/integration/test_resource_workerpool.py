"""WorkerPools as the API server takes them, and jobs and stages that name one: right and wrong specs, what may change,
what an attempt's place may become, and what kubectl shows."""

import copy
import json
import re

import pytest
import yaml
from resource_api import JOBS, ROOT, TERMINAL, WAY_TO, accepted, explained, fields_of, job, refused, status, unique_name

POOLS = "/apis/holdfast.dev/v1alpha1/namespaces/default/workerpools"
CRD = yaml.safe_load((ROOT / "crds/holdfast.dev_workerpools.yaml").read_text())["spec"]["versions"][0]
SCHEMA = CRD["schema"]["openAPIV3Schema"]["properties"]
POD = {"spec": {"containers": [{"name": "main", "image": "busybox:1.36", "command": ["work"]}]}}
DEFAULTS = {"minWorkers": 1, "maxWorkers": 10, "slotsPerWorker": 1, "idleSeconds": 300, "leaseDurationSeconds": 30,
            "startDeadlineSeconds": 600, "stopGraceSeconds": 30}
WORKERS = {"name": "thumbnails", "key": "customer-7"}


def pod(_metadata=None, _container=None, **fields):
    """A template with these fields of its pod and of its first container (None: left out)."""
    template = copy.deepcopy(POD)
    template["spec"] |= fields
    for key, value in (_container or {}).items():
        template["spec"]["containers"][0][key] = value
        if value is None:
            del template["spec"]["containers"][0][key]
    return template | ({"metadata": _metadata} if _metadata else {})


def pool(name=None, **spec):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool",
            "metadata": {"name": name or unique_name("pool"), "namespace": "default"},
            "spec": {"template": copy.deepcopy(POD), **spec}}


def create(api, body):
    code, answer = api.cluster.api("POST", f"{POOLS}?fieldValidation=Strict", body)
    assert code == 201, answer
    return answer


def patched(api, name, change, subresource=""):
    return api.cluster.api("PATCH", f"{POOLS}/{name}{subresource}", change, "merge")


def of_pool(**spec):
    """A job that runs in a pool."""
    body = job()
    body["spec"] = copy.deepcopy({"workerPool": WORKERS} | spec)
    return body


def stage(name="next", **fields):
    return {"name": name, "workerPool": WORKERS, **fields}


# -- the pool ---------------------------------------------------------------------------------------

RIGHT = {
    "least": {"minWorkers": 0, "maxWorkers": 1, "slotsPerWorker": 1, "idleSeconds": 0, "leaseDurationSeconds": 5,
              "startDeadlineSeconds": 1, "stopGraceSeconds": 1},
    "most": {"minWorkers": 500, "maxWorkers": 500, "slotsPerWorker": 16, "idleSeconds": 2**31 - 1,
             "leaseDurationSeconds": 3600, "startDeadlineSeconds": 31536000, "stopGraceSeconds": 3600},
    "grace-10": {"template": pod(restartPolicy="Never", terminationGracePeriodSeconds=10)},
    "grace-3600": {"template": pod({"labels": {"app": "a"}}, restartPolicy="Never", terminationGracePeriodSeconds=3600)},
    "sidecar": {"template": pod(restartPolicy="Never", initContainers=[
        {"name": "proxy", "image": "a", "restartPolicy": "Always"}])},
    "second-container-without-command": {"template": pod(restartPolicy="Never", containers=[
        *POD["spec"]["containers"], {"name": "second", "image": "a"}])},
}
COMMAND = "set spec.template.spec.containers[0].command"
GRACE = "terminationGracePeriodSeconds is from 10 to 3600"
WRONG = {
    "no-containers": ({"template": {"spec": {}}}, "spec.template.spec.containers: Required value"),
    "no-image": ({"template": pod(_container={"image": None})}, "containers[0].image: Required value"),
    "no-command": ({"template": pod(_container={"command": None})}, COMMAND),
    "empty-command": ({"template": pod(_container={"command": []})}, COMMAND),
    "restarts": ({"template": pod(restartPolicy="Always")}, "restartPolicy must be Never, or be left out"),
    "restarts-in-place": ({"template": pod(_container={"restartPolicy": "Always"})},
                          "a container has no restartPolicy of its own"),
    "grace-too-short": ({"template": pod(terminationGracePeriodSeconds=9)}, GRACE),
    "grace-too-long": ({"template": pod(terminationGracePeriodSeconds=3601)}, GRACE),
    "shared-processes": ({"template": pod(shareProcessNamespace=True)}, "shared process namespace"),
    "unknown-field-of-the-pod": ({"template": pod(nodeNam="x")}, 'unknown field "spec.template.spec.nodeNam"'),
    "more-than-most": ({"minWorkers": 11}, "lower spec.minWorkers or raise spec.maxWorkers"),
    "fewer-than-least": ({"minWorkers": 3, "maxWorkers": 2}, "lower spec.minWorkers or raise spec.maxWorkers"),
}


def test_a_pool_of_nothing_but_a_template_gets_the_documented_defaults(api):
    assert create(api, pool())["spec"] == DEFAULTS | {"template": pod(restartPolicy="Never")}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_pool_is_taken_as_it_is(api, case):
    spec = create(api, pool(**RIGHT[case]))["spec"]
    assert {key: spec[key] for key in RIGHT[case]} == RIGHT[case]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_pool_is_refused_with_what_to_do(api, case):
    spec, fragment = WRONG[case]
    result = api.apply(pool(**spec))
    assert result.returncode != 0, result.stdout
    assert fragment in result.stderr


@pytest.mark.parametrize("name", ["a.b", "a" * 64])
def test_a_name_that_pods_cannot_have_is_refused(api, name):
    refused(api.cluster.api("POST", POOLS, pool(name)), "must have at most 63 characters and no dots")


def test_every_field_of_a_pool_may_change(api):
    name = create(api, pool())["metadata"]["name"]
    for change in (RIGHT["most"], RIGHT["least"], {"template": pod(_container={"image": "other"})},
                   dict.fromkeys(DEFAULTS)):
        answer = accepted(patched(api, name, {"spec": change}))
    assert {key: answer["spec"][key] for key in DEFAULTS} == DEFAULTS


def test_kubectl_scale_sets_the_least_number_of_workers_within_the_most(api):
    made = create(api, pool(maxWorkers=5))
    name = made["metadata"]["name"]
    result = api.kubectl("scale", f"workerpool/{name}", "--replicas=3")
    assert result.returncode == 0, result.stderr
    made = api.cluster.api("GET", f"{POOLS}/{name}")[1]
    assert made["spec"]["minWorkers"] == 3
    result = api.kubectl("scale", f"workerpool/{name}", "--replicas=6")
    assert "lower spec.minWorkers or raise spec.maxWorkers" in result.stderr
    made["status"] = {"workers": 2, "selector": f"holdfast.dev/pool={name}"}
    assert api.cluster.api("PUT", f"{POOLS}/{name}/status", made)[0] == 200
    scale = api.cluster.api("GET", f"{POOLS}/{name}/scale")[1]
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 3}, {"replicas": 2, "selector": f"holdfast.dev/pool={name}"})


CONDITION = {"type": "Available", "status": "True", "reason": "WorkersReady", "message": "m", "observedGeneration": 1,
             "lastTransitionTime": "2026-01-02T03:04:05Z"}
WHOLE = {
    "holderIdentity": "holdfast-0/3", "workers": 7, "starting": 1, "busy": 3, "idle": 2, "draining": 1, "slots": 20,
    "busySlots": 9, "waiting": 4, "oldestWaitingSince": "2026-01-02T03:04:05Z", "failedStarts": 2,
    "nextStart": "2026-01-02T03:04:05.123456Z", "selector": "holdfast.dev/pool=a", "message": "two workers cannot start",
    "observedGeneration": 1, "conditions": [CONDITION],
}


def test_a_whole_status_is_taken_and_kubectl_shows_it(api):
    assert set(WHOLE) == set(SCHEMA["status"]["properties"])
    made = create(api, pool())
    name = made["metadata"]["name"]
    code, answer = api.cluster.api("PUT", f"{POOLS}/{name}/status?fieldValidation=Strict", made | {"status": WHOLE})
    assert code == 200 and answer["status"] == WHOLE, answer
    header, row = api.kubectl("get", "wp", name).stdout.splitlines()
    assert header.split() == ["NAME", "WORKERS", "BUSY", "IDLE", "WAITING", "AGE"]
    assert row.split()[:5] == [name, "7", "3", "2", "4"]
    header, row = api.kubectl("get", "wp", name, "-o", "wide").stdout.splitlines()
    assert re.split(r"\s{2,}", header)[6:] == ["SLOTS", "BUSY SLOTS", "STARTING", "DRAINING", "MESSAGE"]
    assert row.split()[6:10] == ["20", "9", "1", "1"] and row.endswith("two workers cannot start")


def test_a_write_of_the_spec_changes_no_status_and_the_other_way_round(api):
    made = create(api, {**pool(), "status": {"workers": 5}})
    assert "status" not in made
    name = made["metadata"]["name"]
    code, answer = patched(api, name, {"spec": {"minWorkers": 9}, "status": {"workers": 1}}, "/status")
    assert code == 200 and (answer["spec"]["minWorkers"], answer["status"]) == (1, {"workers": 1})


def test_pools_are_in_get_all_and_have_a_short_name(api):
    name = create(api, pool())["metadata"]["name"]
    assert f"workerpool.holdfast.dev/{name}" in api.kubectl("get", "all", "-o", "name").stdout
    assert json.loads(api.kubectl("get", "wp", name, "-o", "json").stdout)["kind"] == "WorkerPool"


@pytest.mark.parametrize("path", dict(fields_of(SCHEMA["spec"], "spec")))
def test_every_spec_field_is_documented_with_unit_and_default(path):
    field = dict(fields_of(SCHEMA["spec"], "spec"))[path]
    text = field["description"]
    assert text.endswith(" Mutable.")
    assert "Required. " in text if path == "spec.template" else f"Default: {field['default']}." in text
    if field["type"] == "integer":
        assert re.search(r"Unit: (seconds|workers|slots)\.", text)
        assert field["minimum"] <= field["default"] <= field["maximum"]


@pytest.mark.parametrize("path", dict(fields_of(SCHEMA["status"], "status")))
def test_every_status_field_is_documented_and_bounded(path):
    field = dict(fields_of(SCHEMA["status"], "status"))[path]
    assert field["description"].endswith(".")
    assert {"maximum", "maxLength", "maxItems", "enum"} & set(field)


def test_kubectl_explain_shows_what_a_field_is_for(api):
    assert "It grows while runs wait for a slot" in explained(api, "workerpool.spec.maxWorkers")
    assert "reads on its standard input" in explained(api, "dj.spec.payload")


# -- a job of a pool ----------------------------------------------------------------------------------

EXIT_CODES = {"rules": [{"action": "Defer", "onExitCodes": {"operator": "In", "values": [75]}}]}
CONTAINERS = {"rules": [{"action": "Count", "onExitCodes": {"containerName": "main", "operator": "In", "values": [1]}}]}
CONDITIONS = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
RIGHT_JOBS = {
    "nothing-else": {},
    "payload-message-and-progress": {"payload": '{"object": "s3://a"}', "message": "slower",
                                     "heartbeat": {"progressDeadlineSeconds": 10}},
    "empty-payload-and-message": {"payload": "", "message": "", "heartbeat": {}},
    "longest-payload": {"payload": "x" * 65536, "message": "x" * 4096},
    "longest-payload-in-bytes": {"payload": "ä" * 32768},
    "budgets-and-deadlines": {"backoffLimit": 1, "disruptionLimit": 1, "attemptDeadlineSeconds": 5,
                              "activeDeadlineSeconds": 50, "suspend": True, "ttlSecondsAfterFinished": 5},
    "what-means-nothing": {"startDeadlineSeconds": 5, "lostAfterSeconds": 15},
    "many-runs": {"completions": 5, "parallelism": 5, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                  "indexes": "1-3", "successPolicy": {"rules": [{"succeededCount": 1}]}},
    "exit-codes": {"podFailurePolicy": EXIT_CODES},
    "queue": {"queue": {"name": "encode", "priority": 0}},
    "stages": {"stages": [stage(payload="1", heartbeat={"progressDeadlineSeconds": 10}), {"name": "pod", "template": pod(
        restartPolicy="Never")}]},
}
EITHER = "a job has either a template or a workerPool"
EITHER_STAGE = "a stage has either a template or a workerPool"
NO_POD = "are about the attempt's own pod, which an attempt in a WorkerPool does not have"
NO_CONTAINER = "use onExitCodes without containerName"
POOLS_LEASE = "with workerPool the WorkerPool's spec.leaseDurationSeconds counts: remove"
NEEDS_POOL = "payload is for the command of a worker, and needs workerPool beside it"
BAD_NAME = "this cannot be the name of a WorkerPool"
WRONG_JOBS = {
    "template-too": ({"template": POD}, EITHER),
    "neither": ({"workerPool": None}, EITHER),
    "empty-name": ({"workerPool": {"name": ""}}, BAD_NAME),
    "capitals": ({"workerPool": {"name": "Thumbs"}}, BAD_NAME),
    "dots": ({"workerPool": {"name": "a.b"}}, BAD_NAME),
    "empty-key": ({"workerPool": {"name": "a", "key": ""}}, "the key is empty: leave it out"),
    "payload-too-long-in-bytes": ({"payload": "ä" * 32769}, "the payload has more than 65536 bytes"),
    "payload-without-a-pool": ({"workerPool": None, "template": POD, "payload": "1"}, NEEDS_POOL),
    "message-without-a-pool": ({"workerPool": None, "template": POD, "message": "1"}, "needs a workerPool in the job or"),
    "lease-duration": ({"heartbeat": {"leaseDurationSeconds": 30}}, POOLS_LEASE),
    "lease-duration-and-progress": ({"heartbeat": {"leaseDurationSeconds": 10, "progressDeadlineSeconds": 20}}, POOLS_LEASE),
    "schedule-deadline": ({"scheduleDeadlineSeconds": 5}, NO_POD),
    "wait-for-the-old-pod": ({"podReplacementPolicy": "Failed"}, NO_POD),
    "a-containers-exit-codes": ({"podFailurePolicy": CONTAINERS}, NO_CONTAINER),
    "pod-conditions": ({"podFailurePolicy": CONDITIONS}, NO_CONTAINER),
    "stage-with-both": ({"stages": [stage(template=POD)]}, EITHER_STAGE),
    "stage-with-neither": ({"stages": [{"name": "next"}]}, EITHER_STAGE),
    "stage-with-payload-alone": ({"stages": [{"name": "next", "template": POD, "payload": "1"}]}, NEEDS_POOL),
    "stage-with-a-long-payload": ({"stages": [stage(payload="ä" * 32769)]}, "the payload has more than 65536 bytes"),
    "stage-with-a-message": ({"stages": [stage(message="1")]}, 'unknown field "spec.stages[0].message"'),
    "stage-with-a-lease-duration": ({"stages": [stage(heartbeat={"leaseDurationSeconds": 30})]}, POOLS_LEASE),
    "stage-with-a-schedule-deadline": ({"stages": [stage(scheduleDeadlineSeconds=5)]}, NO_POD),
    "stage-that-waits-for-the-old-pod": ({"stages": [stage(podReplacementPolicy="Failed")]}, NO_POD),
    "stage-with-pod-conditions": ({"stages": [stage(podFailurePolicy=CONDITIONS)]}, NO_CONTAINER),
    "stage-with-a-bad-name": ({"stages": [stage(workerPool={"name": "A"})]}, BAD_NAME),
}


@pytest.mark.parametrize("case", RIGHT_JOBS)
def test_a_right_job_of_a_pool_is_taken_as_it_is(api, case):
    spec = api.create(of_pool(**RIGHT_JOBS[case]))["spec"]
    assert "template" not in spec and spec["workerPool"] == WORKERS
    for key, value in RIGHT_JOBS[case].items():
        if key == "stages":  # they have defaults of their own
            assert [one | theirs for one, theirs in zip(spec[key], value)] == spec[key]
        elif key == "podFailurePolicy":
            assert spec[key]["rules"][0]["onExitCodes"] == EXIT_CODES["rules"][0]["onExitCodes"]
        else:
            assert spec[key] == value


@pytest.mark.parametrize("case", WRONG_JOBS)
def test_a_wrong_job_of_a_pool_is_refused_with_what_to_do(api, case):
    spec, fragment = WRONG_JOBS[case]
    body = of_pool(**spec)
    body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
    code = 400 if "unknown field" in fragment else 422
    refused(api.cluster.api("POST", f"{JOBS}?fieldValidation=Strict", body), fragment, code=code)


IMMUTABLE_POOL = "the workerPool is immutable, and can neither be added nor removed"
IMMUTABLE_PAYLOAD = "the payload is immutable, and can neither be added nor removed"
CHANGES = {
    "another-pool": ({"workerPool": {"name": "other"}}, IMMUTABLE_POOL),
    "another-key": ({"workerPool": {"key": "other"}}, IMMUTABLE_POOL),
    "no-key": ({"workerPool": {"key": None}}, IMMUTABLE_POOL),
    "no-pool": ({"workerPool": None, "payload": None}, IMMUTABLE_POOL),
    "a-template-instead": ({"workerPool": None, "payload": None, "template": POD}, IMMUTABLE_POOL),
    "another-payload": ({"payload": "2"}, IMMUTABLE_PAYLOAD),
    "no-payload": ({"payload": None}, IMMUTABLE_PAYLOAD),
    "a-schedule-deadline": ({"scheduleDeadlineSeconds": 5}, NO_POD),
    "wait-for-the-old-pod": ({"podReplacementPolicy": "Failed"}, NO_POD),
    "a-lease-duration": ({"heartbeat": {"leaseDurationSeconds": 30}}, "the heartbeat is immutable"),
}


@pytest.mark.parametrize("phase", [None, "Running", "Suspended", "Succeeded"])
@pytest.mark.parametrize("case", CHANGES)
def test_what_a_job_of_a_pool_is_never_changes(api, case, phase):
    change, fragment = CHANGES[case]
    current = in_phase(api, of_pool(payload="1"), phase)
    # The core is asked first: a job has its template or its pool for ever.
    if change.get("template"):
        fragment = "the template is immutable" if phase != "Suspended" else IMMUTABLE_POOL
    if case == "no-pool" and phase == "Suspended":
        fragment = "a job has either a template or a workerPool"
    refused(api.patch(current["metadata"]["name"], {"spec": change}), fragment)


def in_phase(api, body, phase):
    current = api.create(body)
    for step in WAY_TO[phase]:
        current = accepted(api.put_status(current, status(step)))
    return current


@pytest.mark.parametrize("phase", [None, "Running", "Suspended", "Succeeded"])
@pytest.mark.parametrize("change", [{"template": POD}, {"template": POD, "workerPool": None, "payload": None}], ids=str)
def test_a_job_of_a_pool_never_gets_a_template(api, change, phase):
    current = in_phase(api, of_pool(payload="1"), phase)
    assert api.patch(current["metadata"]["name"], {"spec": change})[0] == 422


@pytest.mark.parametrize("phase", [None, "Running", "Suspended", "Succeeded"])
@pytest.mark.parametrize("change", [{"template": None}, {"template": None, "workerPool": WORKERS}], ids=str)
def test_a_job_with_a_template_never_loses_it_to_a_pool(api, change, phase):
    current = in_phase(api, job(), phase)
    assert api.patch(current["metadata"]["name"], {"spec": change})[0] == 422


def test_a_payload_is_not_added_later(api):
    refused(api.patch(api.create(of_pool())["metadata"]["name"], {"spec": {"payload": "1"}}), IMMUTABLE_PAYLOAD)


@pytest.mark.parametrize("phase", [None, "Running", "Backoff", "Suspended", "Succeeded", "Failed", "Cancelled"])
@pytest.mark.parametrize("body", [of_pool(message="a"), job(message="a", stages=[stage()])], ids=["job", "stage"])
def test_the_message_changes_until_the_job_has_ended(api, body, phase):
    body = copy.deepcopy(body)
    body["metadata"]["name"] = unique_name()
    current = in_phase(api, body, phase)
    name = current["metadata"]["name"]
    for message in ("b", None, "x" * 4096):
        answer = api.patch(name, {"spec": {"message": message}})
        if phase in TERMINAL:
            refused(answer, "the job has ended, and nothing reads its message any more")
        else:
            assert answer[0] == 200, answer
    accepted(api.patch(name, {"spec": {"message": current["spec"]["message"]}}))
    if phase in TERMINAL:
        assert api.patch(name, {"spec": {"ttlSecondsAfterFinished": 5}})[0] == 200


def test_the_message_needs_a_pool_somewhere(api):
    name = api.create(job())["metadata"]["name"]
    refused(api.patch(name, {"spec": {"message": "a"}}), "needs a workerPool in the job or in a stage")


def test_a_job_of_a_pool_can_be_applied_again(api):
    body = of_pool(payload="1", message="a", heartbeat={"progressDeadlineSeconds": 60}, stages=[stage(payload="2")])
    for arguments in ([], ["--server-side", "--force-conflicts"]):
        for _ in range(2):
            result = api.apply(body, *arguments)
            assert result.returncode == 0, result.stderr


# -- an attempt's place ---------------------------------------------------------------------------------

RUN = {"index": 0, "attempt": 1, "workerName": "thumbnails-a", "workerUID": "u-1", "nodeName": "node-1",
       "workerLeaseDurationSeconds": 30, "checkpoint": "page 7"}
ONE_PLACE = "an attempt has one place: set either podName and podUID, or workerName and workerUID"
STAYS = "workerUID belongs to the run's attempt: once set, it changes only together with attempt"


@pytest.fixture()
def placed(api):
    """A job whose first attempt has a worker."""
    code, answer = api.put_status(api.create(of_pool()), status("Running", runs=[RUN]))
    assert code == 200 and answer["status"]["runs"] == [RUN], answer
    return answer


def put_run(api, current, attempt=1, **fields):
    run = {key: value for key, value in {**RUN, "attempt": attempt, **fields}.items() if value is not None}
    return api.put_status(current, status("Running", attempt=attempt, runs=[run]))


@pytest.mark.parametrize("fields", [{"workerUID": "u-2"}, {"workerUID": None}, {"workerUID": None, "podUID": "p-1"},
                                    {"workerUID": None, "workerName": None, "podName": "job-1"}], ids=str)
def test_an_attempts_worker_never_changes(api, placed, fields):
    refused(put_run(api, placed, **fields), STAYS)


@pytest.mark.parametrize("fields", [{"podUID": "p-1"}, {"podName": "job-1"}], ids=str)
@pytest.mark.parametrize("attempt", [1, 2])
def test_an_attempt_has_no_second_place(api, placed, attempt, fields):
    refused(put_run(api, placed, attempt, **fields), ONE_PLACE)


@pytest.mark.parametrize("fields", [{"workerUID": "u-2", "workerName": "b"}, {"workerUID": None, "workerName": None},
                                    {"workerUID": None, "workerName": None, "podUID": "p-1", "podName": "a"}], ids=str)
def test_the_next_attempt_has_another_place(api, placed, fields):
    accepted(put_run(api, placed, 2, **fields))


def test_a_place_keeps_while_all_else_changes(api, placed):
    accepted(put_run(api, placed, checkpoint="page 8", progress="8 %", nextAttemptTime="2026-01-02T03:05:05Z"))


def test_a_run_that_is_alone_has_a_worker(api, placed):
    code, answer = put_run(api, placed, alone=True)
    assert code == 200 and answer["status"]["runs"][0]["alone"], answer
    refused(put_run(api, answer, 2, alone=True, workerUID=None, workerName=None, podName="a", podUID="p-1"),
            "alone is about workers")
    # An operator that does not know the field drops it.
    assert put_run(api, answer)[0] == 200


def test_an_attempt_may_end_as_handed_back(api, placed):
    entry = {"attempt": 1, "outcome": "HandedBack", "reason": "Drained", "workerName": "thumbnails-a"}
    code, answer = api.put_status(placed, status("Pending", history=[entry]))
    assert code == 200 and answer["status"]["history"] == [entry], answer
