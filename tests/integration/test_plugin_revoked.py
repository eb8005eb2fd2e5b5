"""What waits for a job ends once the API server has refused its credentials for a minute, whichever verb it is."""

import json
import time

import pytest
from fake_api import JOBS, FakeApi, durable_job
from localcluster import wait_for
from plugin import Plugin
from resource_api import job

REFUSED_FOR = 60
MANIFEST = json.dumps(job("film-18"))


def condition(kind):
    return [{"type": kind, "status": "True", "reason": "X", "message": "x"}]


@pytest.fixture()
def server(tmp_path):
    with FakeApi() as api:
        api.objects[f"{JOBS}/film-17"] = durable_job("film-17")
        api.objects[f"{JOBS}/done"] = durable_job("done", phase="Failed", conditions=condition("Failed"))
        path = tmp_path / "config"
        path.write_text(json.dumps(api.kubeconfig()))
        yield api, Plugin(kubeconfig=path)


def watches(api):
    return sum("watch=1" in path for _, path, _ in api.seen)


# Each in one minute, all at the same time.
@pytest.mark.parametrize("status,words", [(401, "does not accept your credentials"), (403, "you have no right to")])
def test_a_wait_ends_with_an_error_once_credentials_are_revoked(server, status, words):
    api, kubectl = server
    waits = [kubectl.start("submit", "-f", "-", "--wait", input=MANIFEST),
             kubectl.start("cancel", "film-17", "--wait"),
             kubectl.start("retry", "done", "--wait"),
             kubectl.start("explain", "film-17", "--watch")]
    wait_for("the watches", lambda: watches(api) >= len(waits), 30)
    begun = time.monotonic()
    api.refuse(status)
    for wait in waits:
        _, errors = wait.communicate(timeout=REFUSED_FOR + 60)
        assert wait.returncode == 2, errors
        assert time.monotonic() - begun > REFUSED_FOR - 1
        assert f"for 1m, {words}" in errors.splitlines()[-1] or f"for 1m, the API server {words}" in errors, errors


def test_a_wait_outlasts_a_refusal_of_some_seconds(server):
    api, kubectl = server
    wait = kubectl.start("cancel", "film-17", "--wait")
    wait_for("the watch", lambda: watches(api), 30)
    api.refuse(401)
    before = len(api.seen)
    wait_for("some refusals", lambda: len(api.seen) >= before + 3, 30)
    api.refusal = None
    api.put(f"{JOBS}/film-17", durable_job("film-17", phase="Cancelled", conditions=condition("Cancelled")))
    _, errors = wait.communicate(timeout=90)
    assert wait.returncode == 0, errors
