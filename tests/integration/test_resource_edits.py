"""Edits of a status by hand that would forge an outcome's history, or leave the job stuck, are refused."""

import copy

import pytest
from resource_api import JOBS, accepted, refused, status

TERMINAL_CONDITION = {"Succeeded": "Complete", "Failed": "Failed", "Cancelled": "Cancelled"}


def condition(name, value="True", **fields):
    return {"type": name, "status": value, "reason": "Test", "message": "",
            "lastTransitionTime": "2026-01-02T04:04:05Z", **fields}


def ended(attempt, **fields):
    return {"attempt": attempt, "outcome": "Failed", "reason": "Error", "exitCode": 1,
            "podName": f"job-{attempt}-abcde", "endTime": "2026-01-02T03:04:05Z", **fields}


def put(api, current, **fields):
    """(code, answer) of a write that changes these fields; None takes one away."""
    new = {**current["status"], **fields}
    return api.put_status(current, {key: value for key, value in new.items() if value is not None})


def written(api, current, **fields):
    answer = accepted(put(api, current, **fields))
    return answer


# -- the outcome ----------------------------------------------------------------------------------


@pytest.fixture(params=sorted(TERMINAL_CONDITION))
def over(api, request):
    """A job that has ended, with the condition that says so and one more."""
    phase = request.param
    current = api.job_in("Suspended" if phase == "Cancelled" else "Running")
    fields = status(phase, conditions=[condition(TERMINAL_CONDITION[phase]), condition("Stalled", "False")])
    answer = accepted(api.put_status(current, fields))
    return answer


FINAL = ("status.conditions: Forbidden", "Complete, Failed and Cancelled stay as they are")


def test_the_condition_of_an_outcome_is_never_turned_round(api, over):
    first, other = over["status"]["conditions"]
    refused(put(api, over, conditions=[{**first, "status": "False"}, other]), *FINAL)
    refused(put(api, over, conditions=[{**first, "reason": "Other"}, other]), *FINAL)


def test_the_condition_of_an_outcome_is_never_removed(api, over):
    refused(put(api, over, conditions=over["status"]["conditions"][1:]), *FINAL)
    refused(put(api, over, conditions=[]), *FINAL)
    refused(put(api, over, conditions=None), *FINAL)


def test_no_condition_of_another_outcome_is_added(api, over):
    there = over["status"]["conditions"]
    for name in sorted(set(TERMINAL_CONDITION.values()) - {there[0]["type"]}):
        refused(put(api, over, conditions=[*there, condition(name)]), *FINAL)


def test_other_conditions_come_and_go_after_the_end(api, over):
    first, other = over["status"]["conditions"]
    current = written(api, over, conditions=[condition("NotificationFailed"), first])
    written(api, current, conditions=[{**other, "status": "True"}, first])


DECIDED = ("status.conditions: Forbidden", "an outcome that is decided stays decided")


@pytest.mark.parametrize("name", ["FailureTarget", "SuccessCriteriaMet"])
@pytest.mark.parametrize("phase", ["Pending", "Running", "Backoff", "Suspended", "Cancelling"])
def test_an_outcome_that_is_decided_is_never_taken_back(api, phase, name):
    decided, other = condition(name), condition("Stalled")
    current = written(api, api.job_in(phase), conditions=[condition(name, "False"), other])
    current = written(api, current, conditions=[other, decided])
    refused(put(api, current, conditions=[condition(name, "False"), other]), *DECIDED)
    refused(put(api, current, conditions=[condition(name, "Unknown"), other]), *DECIDED)
    refused(put(api, current, conditions=[other]), *DECIDED)
    refused(put(api, current, conditions=None), *DECIDED)
    written(api, current, conditions=[condition(name, reason="Other")])


def test_an_outcome_that_is_decided_stays_so_after_the_end(api):
    decided = condition("FailureTarget")
    current = written(api, api.job_in("Running"), conditions=[decided])
    fields = status("Failed", conditions=[decided, condition("Failed")])
    current = accepted(api.put_status(current, fields))
    refused(put(api, current, conditions=[condition("Failed")]), *DECIDED)
    refused(put(api, current, conditions=[condition("FailureTarget", "False"), condition("Failed")]), *DECIDED)


# -- the attempt's number -------------------------------------------------------------------------


def test_attempt_never_jumps_to_where_no_number_is_left(api):
    current = api.job_in("Running")
    for number in (10_002, 2**31 - 1):
        refused(put(api, current, attempt=number), "status.attempt: Forbidden", "at most 10000 in one write")


def test_the_first_status_has_no_attempt_far_ahead_either(api):
    refused(api.put_status(api.job_in(None), status("Running", attempt=10_001)),
            "status.attempt: Forbidden", "at most 10000 in one write")


def test_attempt_may_rise_by_more_than_one(api):
    """Later attempts' pods may exist, and one write may open many runs."""
    current = written(api, api.job_in("Running"), attempt=65)
    written(api, current, attempt=10_065)


@pytest.mark.parametrize("phase", ["Running", "Backoff", "Succeeded"])
def test_no_phase_tells_of_an_attempt_that_never_was(api, phase):
    before = {"Running": None, "Backoff": "Pending", "Succeeded": "Pending"}[phase]
    current = api.job_in(None)
    if before:
        current = accepted(api.put_status(current, status(before, attempt=0)))
    # No edge leads to Backoff from what may have no attempt, and the CRD is asked before the guard.
    why = "must not go from Pending to Backoff" if phase == "Backoff" else "status.attempt: Forbidden"
    refused(api.put_status(current, status(phase, attempt=0)), why)


@pytest.mark.parametrize("phase", ["Pending", "Suspended", "Failed", "Cancelled"])
def test_a_job_may_wait_or_end_before_its_first_attempt(api, phase):
    accepted(api.put_status(api.job_in(None), status(phase, attempt=0)))


# -- the attempt's pod ----------------------------------------------------------------------------


def run(attempt, **fields):
    return {"index": 0, "attempt": attempt, **fields}


@pytest.mark.parametrize("field", ["podName", "podUID", "nodeName", "progress", "refused"])
def test_no_text_is_empty(api, field):
    """The operator leaves out what is empty, and so would take it away."""
    refused(put(api, api.job_in("Running"), runs=[run(1, **{field: ""})]), f"status.runs[0].{field}",
            "at least 1 chars long")


def test_the_pods_uid_changes_with_the_attempt_alone_once_it_is_set(api):
    current = written(api, written(api, api.job_in("Running"), runs=[run(1)]), runs=[run(1, podUID="uid-1")])
    rule = ("status.runs: Forbidden", "changes only together with attempt")
    refused(put(api, current, runs=[run(1, podUID="uid-2")]), *rule)
    refused(put(api, current, runs=[run(1)]), *rule)
    written(api, current, runs=[run(2)], attempt=2)


@pytest.mark.parametrize("phase", sorted(TERMINAL_CONDITION))
def test_a_job_that_has_ended_has_no_runs(api, phase):
    """The operator would read it without them, and none of its writes would be taken."""
    rule = ("status.runs: Forbidden", "a job that has ended has no runs")
    before = api.job_in("Suspended" if phase == "Cancelled" else "Running")
    refused(api.put_status(before, status(phase, runs=[run(1)])), *rule)
    refused(api.put_status(api.job_in(phase), status(phase, runs=[run(1)])), *rule)
    answer = accepted(api.put_status(before, status(phase, runs=[])))
    written(api, answer, runs=None, observedGeneration=7)


# -- times ----------------------------------------------------------------------------------------


WHOLE_SECONDS = r"should match '^(19[7-9]\d|20\d\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ$'"
WITH_FRACTION = r"should match '^(19[7-9]\d|20\d\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$'"
# The operator would read another time than is there, or none, and its next write would change it.
ODD_TIMES = ["1969-12-31T23:59:59Z", "2100-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
             "1970-01-01T00:00:00+01:00", "2026-01-02T04:04:05+01:00", "2026-01-02t03:04:05z",
             "2026-01-02T03:04:05.1234567890Z"]
FRACTIONS = ["2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.999999999Z"]
TIMES = ["1970-01-01T00:00:00Z", "2026-01-02T03:04:05Z", "2099-12-31T23:59:59Z"]


@pytest.mark.parametrize("time", ODD_TIMES + FRACTIONS)
@pytest.mark.parametrize("field", ["startTime", "completionTime", "history[0].startTime", "history[0].endTime"])
def test_a_recorded_time_is_a_whole_second_that_the_operator_can_read(api, field, time):
    name = field.rpartition(".")[2]
    fields = {"history": [ended(1, **{name: time})]} if "history" in field else {name: time}
    refused(api.put_status(api.job_in("Running"), status("Failed", **fields)), f"status.{field}", WHOLE_SECONDS)


@pytest.mark.parametrize("time", ODD_TIMES)
@pytest.mark.parametrize("field", ["runs[0].startTime", "runs[0].nextAttemptTime", "conditions[0].lastTransitionTime"])
def test_other_times_are_those_that_the_operator_can_read(api, field, time):
    fields = {"runs": [run(1, **{field.rpartition(".")[2]: time})]}
    if "conditions" in field:
        fields = {"conditions": [condition("Stalled", lastTransitionTime=time)]}
    refused(api.put_status(api.job_in(None), status("Running", **fields)), f"status.{field}", WITH_FRACTION)


@pytest.mark.parametrize("time", TIMES)
def test_times_of_a_century_are_taken(api, time):
    current = written(api, api.job_in("Running"), phase="Backoff", runs=[run(1, startTime=time, nextAttemptTime=time)])
    assert current["status"]["runs"][0]["startTime"] == time
    fields = status("Failed", startTime=time, completionTime=time,
                    history=[ended(1, startTime=time, endTime=time)],
                    conditions=[condition("Failed", lastTransitionTime=time)])
    accepted(api.put_status(api.job_in(None), fields))


def test_suspended_seconds_are_as_many_as_the_operator_reads(api):
    current = api.job_in("Running")
    refused(put(api, current, suspendedSeconds=2**31), "status.suspendedSeconds", "less than or equal to 2147483647")
    written(api, current, suspendedSeconds=2**31 - 1)


def test_suspended_seconds_never_fall(api):
    current = written(api, api.job_in("Running"), suspendedSeconds=10)
    rule = ("status.suspendedSeconds: Forbidden", "never falls")
    refused(put(api, current, suspendedSeconds=9), *rule)
    refused(put(api, current, suspendedSeconds=None), *rule)
    written(api, current, suspendedSeconds=11)


# -- the history ----------------------------------------------------------------------------------

RULE = ("status.history: Forbidden", "history only grows")


@pytest.fixture()
def three(api):
    """A job with three entries."""
    return written(api, api.job_in("Running"), attempt=4, history=[ended(n) for n in (1, 2, 3)])


@pytest.mark.parametrize("change", [
    lambda entries: None,
    lambda entries: [],
    lambda entries: entries[1:],
    lambda entries: entries[:-1],
    lambda entries: entries[::-1],
    lambda entries: [entries[0], {**entries[1], "outcome": "Lost"}, entries[2]],
    lambda entries: [entries[0], {**entries[1], "exitCode": 0}, entries[2]],
    lambda entries: [entries[0], {**entries[1], "attempt": 9}, entries[2]],
    lambda entries: [ended(9), *entries],
    lambda entries: [entries[0], ended(9), *entries[1:]],
    lambda entries: [*entries[1:], ended(9)],
    lambda entries: [*entries[1:], *(ended(n) for n in range(4, 11))],
], ids=["removed", "emptied", "first dropped", "last dropped", "turned round", "another outcome",
        "another exit code", "another attempt", "one put before", "one put between", "shifted too soon",
        "shifted before it was full"])
def test_history_is_never_removed_or_rewritten(api, three, change):
    refused(put(api, three, history=change(three["status"]["history"])), *RULE)


@pytest.mark.parametrize("more", [1, 2, 7])
def test_history_grows_by_what_has_ended(api, three, more):
    written(api, three, history=[*three["status"]["history"], *(ended(n) for n in range(4, 4 + more))])


@pytest.mark.parametrize("more", [1, 2, 9])
def test_the_oldest_entries_go_once_there_are_more_than_ten(api, more):
    full = [ended(n) for n in range(1, 11)]
    current = written(api, api.job_in("Running"), attempt=30, history=full)
    refused(put(api, current, history=full[1:]), *RULE)
    refused(put(api, current, history=[*full[2:], ended(1), ended(11)]), *RULE)
    refused(put(api, current, history=[*full[1:9], ended(10, exitCode=7), ended(11)]), *RULE) if more == 1 else None
    written(api, current, history=[*full, *(ended(n) for n in range(11, 11 + more))][-10:])


def test_deferrals_in_a_row_share_an_entry(api, three):
    before = three["status"]["history"]
    current = written(api, three, attempt=9, history=[*before, ended(4, outcome="Deferred")])
    current = written(api, current, history=[*before, ended(5, outcome="Deferred", count=2)])
    refused(put(api, current, history=[*before[1:], ended(6, outcome="Deferred", count=3)]), *RULE)
    refused(put(api, current, history=[before[0], ended(2, exitCode=9), before[2]]), *RULE)
    written(api, current, history=[*before, ended(5, outcome="Deferred", count=2), ended(6)])


def test_deferrals_push_nothing_out_of_history(api, three):
    newest = three["status"]["history"][-1]
    deferrals = [ended(n, outcome="Deferred") for n in range(10, 19)]
    current = written(api, three, attempt=30)
    refused(put(api, current, history=[newest, *deferrals]), *RULE)
    refused(put(api, current, history=[newest, *deferrals[:5]]), *RULE)


def test_a_full_history_is_never_another_altogether(api):
    full = [ended(n) for n in range(1, 11)]
    current = written(api, api.job_in("Running"), attempt=30, history=full)
    refused(put(api, current, history=[ended(n) for n in range(11, 21)]), *RULE)


def test_ten_entries_come_from_any_number_before(api, three):
    entries = three["status"]["history"]
    written(api, three, history=[*entries, *(ended(n) for n in range(4, 12))][-10:])


@pytest.mark.parametrize("field", ["podName", "podUID", "nodeName", "reason", "progress"])
def test_no_text_of_an_entry_is_empty(api, field):
    refused(put(api, api.job_in("Running"), history=[ended(1, **{field: ""})]),
            f"status.history[0].{field}", "at least 1 chars long")


def test_no_attempt_is_there_twice(api, three):
    """Its place could not be told, and no further entry could be added."""
    entries = three["status"]["history"]
    refused(put(api, three, history=[*entries, entries[2]]), *RULE)
    refused(put(api, api.job_in("Running"), history=[ended(1), ended(1)]), *RULE)
    refused(put(api, three, history=[*entries, ended(3, exitCode=2)]), *RULE)


def test_a_first_history_is_taken(api):
    current = written(api, api.job_in("Running"), history=[])
    written(api, current, history=[ended(1)])


# -- by whatever way ------------------------------------------------------------------------------


def test_an_edit_by_patch_is_refused_too(api, three):
    name = three["metadata"]["name"]
    refused(api.patch(name, {"status": {"history": None}}, "/status"), *RULE)
    refused(api.patch(name, {"status": {"attempt": 2**31 - 1}}, "/status"), "status.attempt: Forbidden")
    refused(api.patch(name, [{"op": "remove", "path": "/status/history/0"}], "/status"), *RULE)


def test_a_write_of_the_job_itself_changes_none_of_it(api, three):
    body = copy.deepcopy(three)
    body["status"] |= {"history": [], "attempt": 2**31 - 1}
    path = f"{JOBS}/{three['metadata']['name']}"
    answer = accepted(api.cluster.api("PUT", path, body))
    assert answer["status"] == three["status"]


def test_a_status_that_is_written_again_is_taken(api, three):
    answer = accepted(api.put_status(three, three["status"]))
    assert answer["metadata"]["resourceVersion"] == three["metadata"]["resourceVersion"]
