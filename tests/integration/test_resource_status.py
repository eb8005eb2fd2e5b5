"""What was recorded stays: the API server refuses to lower, change, remove or rewrite it."""

import copy

import pytest
from resource_api import JOBS, PHASES, TERMINAL, accepted, job, refused, schema_of, status

FREE_AT_THE_END = {"conditions", "observedGeneration", "outbox", "shard"}
CONDITION = {
    "type": "Complete",
    "status": "True",
    "reason": "Succeeded",
    "message": "",
    "lastTransitionTime": "2026-01-02T04:04:05Z",
}
ATTEMPT = {
    "index": 0,
    "attempt": 1,
    "podName": "job-1-abcde",
    "nodeName": "node-1",
    "outcome": "Succeeded",
    "reason": "Completed",
    "exitCode": 0,
    "startTime": "2026-01-02T03:04:05Z",
    "endTime": "2026-01-02T04:04:05Z",
}
RUN = {
    "index": 0,
    "attempt": 1,
    "podName": "job-1-abcde",
    "podUID": "00000000-0000-0000-0000-000000000001",
    "nodeName": "node-1",
    "startTime": "2026-01-02T03:04:05.123456789Z",
    "failures": 1,
    "disruptions": 1,
    "nextAttemptTime": "2026-01-02T03:10:05Z",
    "progress": "99 %",
    "refused": "quota exceeded",
}
EVENT = {
    "number": 2,
    "event": "Succeeded",
    "time": "2026-01-02T04:04:05Z",
    "reason": "Completed",
    "message": "all runs have succeeded",
    "targets": ["chat", "tickets"],
}
# A finished job's status with every field that it can have, and another value for each field.
FULL = status(
    "Succeeded",
    suspendedSeconds=10,
    history=[ATTEMPT],
    conditions=[CONDITION],
    completions="1/2",
    active=1,
    succeeded=1,
    failed=1,
    completedIndexes="0",
    failedIndexes="1",
    notifications=2,
    outbox=[EVENT],
    settled=True,
    shard="7-of-32",
)
CHANGED = {
    "phase": "Failed",
    "settled": False,
    "attempt": 2,
    "failures": 2,
    "disruptions": 2,
    "runs": [RUN],
    "startTime": "2026-01-02T03:04:06Z",
    "completionTime": "2026-01-02T04:04:06Z",
    "suspendedSeconds": 11,
    "history": [{**ATTEMPT, "exitCode": 1}],
    "stage": "other",
    "stages": [{"name": "main", "phase": "Failed"}],
    "completions": "2/2",
    "active": 2,
    "succeeded": 2,
    "failed": 2,
    "completedIndexes": "0,1",
    "failedIndexes": "2",
    "notifications": 3,
    "waiting": {"reason": "Retry", "message": "", "nextAction": "start an attempt"},
}


@pytest.fixture(scope="module")
def finished(api):
    """A finished job with every field set; no test may change it."""
    answer = accepted(api.put_status(api.job_in("Running"), FULL))
    return answer


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


# -- never less ---------------------------------------------------------------------------------


COUNTERS = ["attempt", "failures", "disruptions", "succeeded", "failed", "notifications"]


def counted(api, counter):
    """A running job whose counter is 1."""
    answer = accepted(api.put_status(api.job_in("Running"), status("Running", **{counter: 1})))
    return answer


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_counter_is_never_lowered(api, counter):
    current = counted(api, counter)
    refused(api.put_status(current, status("Running", **{counter: 0})), f"status.{counter}: Forbidden", "never fall")


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_counter_is_never_removed(api, counter):
    current = counted(api, counter)
    refused(api.put_status(current, status("Running", **{counter: None})), f"status.{counter}: Forbidden")
    changes = [{"op": "remove", "path": f"/status/{counter}"}]
    refused(api.patch(current["metadata"]["name"], changes, "/status"), f"status.{counter}: Forbidden")


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_counter_is_never_lowered_along_a_legal_edge_either(api, counter):
    for phase in ("Pending", "Backoff", "Succeeded", "Failed"):
        current = counted(api, counter)
        refused(api.put_status(current, status(phase, **{counter: 0})), f"status.{counter}: Forbidden")


def test_counters_start_at_zero(api):
    fields = dict.fromkeys([*COUNTERS, "active"])
    answer = accepted(api.put_status(api.job_in(None), status("Pending", **fields)))
    assert [answer["status"][name] for name in fields] == [0] * len(fields)


def test_active_rises_and_falls(api):
    current = api.job_in("Running")
    for active in (3, 1, 2, None):
        current = accepted(api.put_status(current, status("Running", active=active)))


# -- set once -----------------------------------------------------------------------------------


def test_start_time_never_changes(api):
    current = api.job_in("Running")
    new = status("Running", startTime="2026-01-02T03:04:06Z")
    refused(api.put_status(current, new), "status.startTime: Forbidden: startTime never changes")


def test_start_time_is_never_removed(api):
    current = api.job_in("Running")
    refused(api.put_status(current, status("Running", startTime=None)), "status.startTime: Forbidden")
    refused(api.put_status(current, status("Succeeded", startTime=None)), "status.startTime: Forbidden")


def test_start_time_may_be_set_later(api):
    current = accepted(api.put_status(api.job_in(None), status("Pending", startTime=None)))
    accepted(api.put_status(current, status("Running")))


def test_start_time_is_not_set_after_the_end(api):
    current = accepted(api.put_status(api.job_in(None), status("Cancelled", startTime=None)))
    refused(api.put_status(current, status("Cancelled")), "final")


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_completion_time_never_changes(api, phase):
    current = api.job_in(phase)
    new = status(phase, completionTime="2026-01-02T04:04:06Z")
    refused(api.put_status(current, new), "status.completionTime: Forbidden: completionTime never changes")


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_completion_time_is_never_removed(api, phase):
    refused(api.put_status(api.job_in(phase), status(phase, completionTime=None)), "status.completionTime")


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_a_terminal_phase_needs_completion_time(api, phase):
    current = api.job_in("Suspended" if phase == "Cancelled" else "Running")
    new = status(phase, completionTime=None)
    refused(api.put_status(current, new), "status.completionTime: Required value", "in the same write")


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase not in TERMINAL])
def test_a_phase_that_is_not_terminal_has_no_completion_time(api, phase):
    new = status(phase, completionTime="2026-01-02T04:04:05Z")
    refused(api.put_status(api.job_in(phase), new), "status.completionTime: Forbidden", "until the job ends")


# -- waiting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase not in TERMINAL])
def test_a_job_that_has_not_ended_says_what_it_waits_for(api, phase):
    current = api.job_in(phase)
    refused(api.put_status(current, status(phase, waiting=None)), "status.waiting: Required value")


def test_a_job_that_has_ended_waits_for_nothing(api):
    new = status("Succeeded", waiting=CHANGED["waiting"])
    refused(api.put_status(api.job_in("Running"), new), "status.waiting: Forbidden", "waits for nothing")


# -- the end is the end -------------------------------------------------------------------------


def test_every_field_of_a_status_is_tried_on_a_finished_job():
    assert set(CHANGED) | FREE_AT_THE_END == set(schema_of("status")["properties"])
    assert set(FULL) | {"waiting", "runs", "stage", "stages"} == set(schema_of("status")["properties"])


@pytest.mark.parametrize("field", CHANGED)
def test_no_field_of_a_finished_job_is_changed(api, finished, field):
    refused(api.put_status(finished, {**FULL, field: CHANGED[field]}), "Forbidden")


@pytest.mark.parametrize("field", [field for field in CHANGED if field in FULL and field != "phase"])
def test_no_field_of_a_finished_job_is_removed(api, finished, field):
    refused(api.put_status(finished, without(FULL, field)), "status")


@pytest.mark.parametrize(
    "field",
    [field for field in CHANGED if field in FULL and field not in ("phase", "completionTime", "settled")],
)
def test_no_field_is_added_to_a_finished_job(api, field):
    counters = {"attempt": 0, "failures": 0, "disruptions": 0}
    absent = dict.fromkeys(["startTime", "observedGeneration", "completions"])
    current = accepted(api.put_status(api.job_in(None), status("Failed", **counters, **absent)))
    new = {**current["status"], field: FULL[field]}
    refused(api.put_status(current, new), "the job has ended as Failed and its status is final")


# -- the shard ----------------------------------------------------------------------------------


def test_a_shard_changes_with_the_number_of_shards_alone(api):
    current = accepted(api.put_status(api.job_in("Running"), status("Running", shard="7-of-32")))
    refused(api.put_status(current, status("Running", shard="8-of-32")), "changes only with the number of shards")
    current = accepted(api.put_status(current, status("Running", shard="8-of-64")))
    accepted(api.put_status(current, status("Running")))


def test_the_shard_of_a_job_with_a_queue_is_corrected(api):
    current = accepted(api.put_status(api.job_in(None, queue={"name": "q"}), status("Pending", shard="7-of-32")))
    accepted(api.put_status(current, status("Pending", shard="8-of-32")))


def test_a_shard_that_is_not_there_is_replaced(api):
    current = accepted(api.put_status(api.job_in("Running"), status("Running", shard="99-of-32")))
    current = accepted(api.put_status(current, status("Running", shard="7-of-32")))
    refused(api.put_status(current, status("Running", shard="99-of-32")), "changes only with the number of shards")


@pytest.mark.parametrize("shard", ["", "7", "7-of-", "-of-32", "7-of-32-", "10000-of-10000", "07-of-32", "7-of-032"])
def test_a_shard_says_its_number_and_how_many_there_are(api, shard):
    refused(api.put_status(api.job_in("Running"), status("Running", shard=shard)), "status.shard")


# -- the outbox ---------------------------------------------------------------------------------


def test_the_outbox_of_a_finished_job_only_shrinks(api):
    current = accepted(api.put_status(api.job_in("Running"), FULL))
    for more in ([{**EVENT, "targets": ["chat", "tickets", "other"]}], [EVENT, {**EVENT, "number": 1}],
                 [{**EVENT, "event": "Failed"}], [{**EVENT, "time": "2026-01-02T04:04:06Z"}]):
        refused(api.put_status(current, {**FULL, "outbox": more}), "Forbidden")
    refused(api.put_status(current, {**FULL, "outbox": [EVENT, {**EVENT, "number": 3}]}), "notifications")
    current = accepted(api.put_status(current, {**FULL, "outbox": [{**EVENT, "targets": ["tickets"]}]}))
    refused(api.put_status(current, FULL), "its targets only become fewer")
    current = accepted(api.put_status(current, without(FULL, "outbox")))
    refused(api.put_status(current, FULL), "does not come back")


def test_an_event_goes_into_the_outbox_with_its_number(api):
    current = api.job_in("Running")
    refused(api.put_status(current, status("Running", outbox=[{**EVENT, "number": 1}])), "raise notifications")
    told = status("Running", notifications=1, outbox=[{**EVENT, "number": 1, "event": "Stalled"}])
    current = accepted(api.put_status(current, told))
    again = status("Running", notifications=2, outbox=[{**EVENT, "number": 1, "event": "Stalled"}, EVENT])
    accepted(api.put_status(current, again))


def test_a_full_outbox_is_accepted_and_one_more_entry_is_not(api):
    long = {**EVENT, "message": "m" * 256, "reason": "r" * 256, "targets": [c * 63 for c in "abcd"]}
    current = api.job_in("Running")
    entries = [{**long, "number": n} for n in range(1, 34)]
    refused(api.put_status(current, status("Running", notifications=33, outbox=entries)), "Too many")
    current = accepted(api.put_status(current, status("Running", notifications=33, outbox=entries[1:])))
    accepted(api.put_status(current, status("Succeeded", notifications=33, outbox=entries[1:])))


@pytest.mark.parametrize("field", ATTEMPT)
def test_no_history_of_a_finished_job_is_changed(api, finished, field):
    entry = (without(ATTEMPT, field) if field not in ("attempt", "outcome") else {**ATTEMPT, "attempt": 9})
    refused(api.put_status(finished, {**FULL, "history": [entry]}), "status.history: Forbidden: history only grows")


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_other_conditions_and_observed_generation_of_a_finished_job_may_change(api, phase):
    current = api.job_in(phase)
    stalled = {**CONDITION, "type": "Stalled"}
    current = accepted(api.put_status(current, {**current["status"], "conditions": [stalled]}))
    stalled = {**stalled, "status": "False"}
    current = accepted(api.put_status(current, {**current["status"], "conditions": [stalled]}))
    current = accepted(api.put_status(current, {**current["status"], "observedGeneration": 7}))
    new = without(without(current["status"], "conditions"), "observedGeneration")
    answer = accepted(api.put_status(current, new))
    assert answer["status"] == new


def test_the_spec_of_a_finished_job_may_change(api):
    name = api.job_in("Succeeded")["metadata"]["name"]
    accepted(api.patch(name, {"spec": {"ttlSecondsAfterFinished": 5}}))


# -- the status as a whole ----------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_a_status_is_never_removed(api, phase):
    current = api.job_in(phase)
    name = current["metadata"]["name"]
    # What comes in its place is a new job's, and the fencing token does not fall.
    refused(api.put_status(current, None), "status.attempt: Forbidden")
    refused(api.patch(name, {"status": None}, "/status"), "status.attempt: Forbidden")
    refused(api.patch(name, [{"op": "remove", "path": "/status"}], "/status"), "status.attempt: Forbidden")
    refused(api.put_status(current, {}), "status.phase: Required value")


def test_a_replace_of_the_job_without_status_keeps_the_status(api):
    current = api.job_in("Running")
    path = f"{JOBS}/{current['metadata']['name']}"
    answer = accepted(api.cluster.api("PUT", path, without(current, "status")))
    assert answer["status"] == current["status"]


def test_a_status_write_with_identity_and_version_alone_keeps_spec_and_labels(api):
    body = job(backoffLimit=3)
    body["metadata"]["labels"] = {"team": "a"}
    current = api.create(body)
    answer = accepted(api.put_status(current, status("Running")))
    assert answer["spec"] == current["spec"]
    assert answer["metadata"]["labels"] == {"team": "a"}
    assert answer["metadata"]["generation"] == current["metadata"]["generation"]


def test_a_status_write_from_an_old_version_is_a_conflict(api):
    current = api.job_in("Running")
    assert api.put_status(current, status("Running", runs=[RUN]))[0] == 200
    assert api.put_status(current, status("Running", runs=[]))[0] == 409


def test_a_status_write_to_a_job_of_another_uid_is_a_conflict(api):
    current = copy.deepcopy(api.job_in("Running"))
    current["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    assert api.put_status(current, status("Running"))[0] == 409


def test_a_condition_without_a_message_gets_an_empty_one(api):
    condition = without(CONDITION, "message")
    answer = accepted(api.put_status(api.job_in(None), status("Running", conditions=[condition])))
    assert answer["status"]["conditions"] == [CONDITION]


# -- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["startTime", "nextAttemptTime"])
@pytest.mark.parametrize(
    "time",
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123456789Z"],
)
def test_times_may_have_fractions_of_a_second_and_are_kept_as_written(api, field, time):
    answer = accepted(api.put_status(api.job_in(None), status("Running", runs=[{**RUN, field: time}])))
    assert answer["status"]["runs"][0][field] == time


@pytest.mark.parametrize("field, value, fragment", [
    ("runs", [{**RUN, "attempt": 2}], "no run has an attempt above status.attempt"),
    ("completions", "3", "status.completions: Invalid value"),
    ("completions", "3/x", "status.completions: Invalid value"),
])
def test_a_wrong_value_is_refused(api, field, value, fragment):
    refused(api.put_status(api.job_in(None), status("Running", **{field: value})), fragment)


def test_the_longest_values_are_accepted(api):
    attempt = {**ATTEMPT, "podName": "p" * 253, "nodeName": "n" * 253, "reason": "r" * 1024}
    waiting = {"reason": "r" * 128, "message": "m" * 32768, "nextAction": "a" * 1024}
    fields = {
        "attempt": 10000,
        "failures": 2147483648,
        "disruptions": 2147483648,
        "observedGeneration": 2**53 - 1,
        "history": [{**attempt, "attempt": n} for n in range(10)],
        "conditions": [{**CONDITION, "type": f"T{n}", "message": "m" * 32768} for n in range(16)],
        "waiting": waiting,
        "runs": [{**without(RUN, "refused"), "index": n, "podName": "p" * 253, "nodeName": "n" * 253,
                  "progress": "x" * 256} for n in range(1000)],
        "active": 1000,
        "failed": 2**31 - 1,
    }
    current = accepted(api.put_status(api.job_in(None), status("Running", **fields)))
    current = accepted(api.put_status(current, status("Succeeded", **{**fields, "waiting": None, "runs": None})))
    accepted(api.put_status(current, {**current["status"], "conditions": []}))


def test_a_job_of_100000_indexes_with_every_second_one_failed_still_ends(api):
    current = api.job_in("Running", completions=100_000, completionMode="Indexed", backoffLimitPerIndex=0)
    fields = {
        "completions": "50000/100000",
        "succeeded": 50_000,
        "failed": 50_000,
        "completedIndexes": ",".join(str(n) for n in range(0, 100_000, 2)),
        "failedIndexes": ",".join(str(n) for n in range(1, 100_000, 2)),
    }
    current = accepted(api.put_status(current, status("Running", **fields)))
    current = accepted(api.put_status(current, status("Failed", **fields)))
    refused(api.put_status(current, {**current["status"], "failedIndexes": "1"}), "final")


@pytest.mark.parametrize("field", ["completedIndexes", "failedIndexes"])
@pytest.mark.parametrize("indexes", ["0, 1", "1,", "one", "-1", "01"])
def test_a_list_of_ended_indexes_can_be_read_whole(api, field, indexes):
    current = api.job_in("Running", completions=5, completionMode="Indexed", backoffLimitPerIndex=0)
    refused(api.put_status(current, {**current["status"], field: indexes}), f"status.{field}", "should match")


def test_waiting_and_each_condition_are_one_field_to_server_side_apply(api):
    """Else managedFields has an entry for each field in them, which every write would decode and encode. A condition
    of another manager stays that manager's through the operator's writes."""
    checked = {**CONDITION, "type": "Checked"}
    current = api.job_in("Running")
    applied = api.apply({
        "apiVersion": current["apiVersion"], "kind": current["kind"],
        "metadata": {key: current["metadata"][key] for key in ("name", "namespace")},
        "status": {"conditions": [checked]}},
        "--server-side", "--subresource=status", "--field-manager=checker")
    assert applied.returncode == 0, applied.stderr
    current = api.get(current["metadata"]["name"])
    own = {**CONDITION, "type": "Stalled"}
    current = accepted(api.put_status(current, {**current["status"], "conditions": [checked, own]}))
    owned = {entry["manager"]: entry["fieldsV1"]["f:status"] for entry in current["metadata"]["managedFields"]
             if entry.get("subresource") == "status"}
    [operator] = owned.keys() - {"checker"}
    assert owned["checker"]["f:conditions"] == {'k:{"type":"Checked"}': {}}
    assert owned[operator]["f:waiting"] == {}
    assert owned[operator]["f:conditions"]['k:{"type":"Stalled"}'] == {}
