"""What kstatus itself (Helm, Flux, kpt) makes of jobs that a real API server serves: see docs/phases.md."""

import gitops_tools
import pytest
from resource_api import JOBS, PHASES, TERMINAL, accepted, job, status


def kstatus(*objects):
    """The status of each object, by the real library."""
    return [said for said, _ in gitops_tools.kstatus(*objects)]


def test_a_new_job_is_in_progress_before_the_operator_has_looked_at_it(api):
    answer = api.create(job())
    name = answer["metadata"]["name"]
    listed = [item for item in api.cluster.api("GET", JOBS)[1]["items"] if item["metadata"]["name"] == name]
    assert kstatus(answer, api.get(name), *listed) == ["InProgress"] * 3


def test_a_new_job_that_is_applied_again_and_edited_stays_in_progress(api):
    body = job()
    for change in ({}, {"backoffLimit": 3}):
        body["spec"] |= change
        applied = api.apply(body)
        assert applied.returncode == 0, applied.stderr
        assert kstatus(api.get(body["metadata"]["name"])) == ["InProgress"]


def test_a_new_job_says_what_it_waits_for(api):
    new = api.create(job())["status"]
    assert new["phase"] == "Pending"
    assert new["attempt"] == new["observedGeneration"] == 0
    assert new["waiting"]["reason"] == "OperatorAwaited"


def test_the_default_status_shows_in_tables_and_is_owned_by_nobody(api):
    body = job()
    applied = api.apply(body, "--server-side", "--field-manager=team")
    assert applied.returncode == 0, applied.stderr
    name = body["metadata"]["name"]
    assert "Pending" in api.kubectl("get", "dj", name).stdout
    assert all("f:status" not in entry["fieldsV1"] for entry in api.get(name)["metadata"]["managedFields"])


@pytest.mark.parametrize("phase", PHASES)
def test_a_job_that_was_not_observed_since_its_last_edit_is_in_progress(api, phase):
    current = api.job_in(phase)
    edited = accepted(api.patch(current["metadata"]["name"], {"spec": {"backoffLimit": 9}}))
    assert kstatus(edited) == ["InProgress"]


def conditions(phase, stalled):
    """As reconciler/job/kstatus.cc writes them."""
    works = phase not in TERMINAL | {"Suspended"}
    time = "2026-01-02T03:04:05Z"
    return [{"type": name, "status": str(value), "reason": "R", "message": "m", "lastTransitionTime": time}
            for name, value in (("Stalled", stalled or phase == "Failed"), ("Reconciling", works))]


@pytest.mark.parametrize("phase", PHASES)
def test_kstatus_reads_each_phase_as_the_docs_say(api, phase):
    before = phase if phase not in TERMINAL else "Suspended" if phase == "Cancelled" else "Running"
    answer = accepted(api.put_status(api.job_in(before), status(phase, conditions=conditions(phase, False))))
    expected = "Failed" if phase == "Failed" else "Current" if phase in TERMINAL | {"Suspended"} else "InProgress"
    assert kstatus(answer) == [expected]


@pytest.mark.parametrize("phase", sorted(set(PHASES) - TERMINAL - {"Suspended"}))
def test_a_job_that_needs_a_person_is_failed(api, phase):
    current = api.job_in(phase)
    answer = accepted(api.put_status(current, status(phase, conditions=conditions(phase, True))))
    assert kstatus(answer) == ["Failed"]
