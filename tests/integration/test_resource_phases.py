"""The API server itself keeps the table of edges, for a cluster admin too."""

import itertools

import pytest
from edges import ends, listed
from resource_api import PHASES, TERMINAL, accepted, job, status

LEGAL = [(old, new) for old in PHASES for new in ends(old, has_stages=False)]
ILLEGAL = [(old, new) for old, new in itertools.permutations(PHASES, 2) if (old, new) not in LEGAL]


@pytest.mark.parametrize("old, new", LEGAL)
def test_a_legal_edge_is_accepted(api, old, new):
    answer = accepted(api.put_status(api.job_in(old), status(new)))
    assert answer["status"]["phase"] == new


@pytest.mark.parametrize("old, new", ILLEGAL)
def test_an_illegal_edge_is_refused_with_both_phases_named(api, old, new):
    current = api.job_in(old)
    code, answer = api.put_status(current, status(new))
    assert code == 422, answer
    assert f"status.phase: Forbidden: must not go from {old} to {new}" in answer["message"]
    following = ends(old, has_stages=False)
    assert (f"next is {listed(following)}" if following else "the job has ended") in answer["message"]
    assert api.get(current["metadata"]["name"])["status"]["phase"] == old


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase not in TERMINAL])
def test_a_write_that_keeps_a_phase_which_is_not_terminal_is_accepted(api, phase):
    accepted(api.put_status(api.job_in(phase), status(phase, failures=2, attempt=2)))


@pytest.mark.parametrize("phase", ["Pending", *ends("Pending")])
def test_a_first_write_goes_on_from_pending(api, phase):
    accepted(api.put_status(api.job_in(None), status(phase)))


def test_another_first_phase_is_refused_with_both_ends_named(api):
    code, answer = api.put_status(api.job_in(None), status("Backoff"))
    assert code == 422, answer
    assert "status.phase: Forbidden: must not go from Pending to Backoff" in answer["message"]


@pytest.mark.parametrize("phase", PHASES)
def test_an_illegal_edge_is_refused_by_patch_too(api, phase):
    current = api.job_in(phase)
    name = current["metadata"]["name"]
    code, answer = api.patch(name, {"status": {"phase": None}}, "/status")
    assert code == 422, answer
    assert "status.phase: Required value" in answer["message"]


def test_a_write_to_the_job_itself_leaves_its_status_alone(api):
    current = api.job_in("Failed")
    name = current["metadata"]["name"]
    answer = accepted(api.patch(name, {"status": {"phase": "Running"}, "spec": {"backoffLimit": 9}}))
    assert answer["status"] == current["status"]
    assert answer["spec"]["backoffLimit"] == 9


def test_a_status_given_at_creation_is_dropped(api):
    current = api.create({**job(), "status": status("Succeeded")})
    assert current["status"] == api.create(job())["status"]
