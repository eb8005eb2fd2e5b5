"""The examples are accepted, and a batch/v1 Job becomes a DurableJob by two lines."""

import json

import pytest
import yaml
from resource_api import ROOT

EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))
BATCH_JOB = EXAMPLES / "from-batch-job/job.yaml"
TWO_LINES = {"apiVersion: batch/v1": "apiVersion: holdfast.dev/v1alpha1", "kind: Job": "kind: DurableJob"}


def converted(text):
    """The text with the two lines changed, each found once."""
    lines = text.splitlines()
    for old, new in TWO_LINES.items():
        assert lines.count(old) == 1
        lines[lines.index(old)] = new
    return "\n".join(lines) + "\n"


def test_there_are_examples_of_each_kind():
    names = {str(path.relative_to(EXAMPLES)) for path in FILES}
    assert names >= {
        "one-shot.yaml",
        "retries.yaml",
        "deadlines.yaml",
        "indexed-files.yaml",
        "sweep.yaml",
        "fail-index.yaml",
        "rendezvous.yaml",
        "not-yet.yaml",
        "workerpool.yaml",
        "from-batch-job/job.yaml",
        "from-batch-job/durablejob.yaml",
        "workers/pool.yaml",
        "workers/job.yaml",
        "s3-publish/job.yaml",
        "queue-consumer/job.yaml",
        "checkpoints/job.yaml",
        "gpu-spot.yaml",
        "sidecar.yaml",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_an_example_is_accepted_as_it_is(api, path):
    result = api.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", path)
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr


def test_all_examples_can_be_applied_together(api):
    result = api.kubectl("apply", "--dry-run=server", "-f", EXAMPLES)
    assert result.returncode == 0, result.stderr


def test_the_converted_example_differs_in_two_lines():
    text = (EXAMPLES / "from-batch-job/durablejob.yaml").read_text()
    assert text == converted(BATCH_JOB.read_text())


def test_what_kubectl_create_job_prints_is_accepted_after_two_lines(api):
    command = ["create", "job", "made", "--image=busybox:1.36", "--dry-run=client", "-o", "yaml", "--", "true"]
    printed = api.kubectl(*command)
    assert printed.returncode == 0, printed.stderr
    result = api.kubectl("apply", "-f", "-", stdin=converted(printed.stdout))
    assert result.returncode == 0, result.stderr


def test_a_converted_job_keeps_what_it_said(api):
    before = yaml.safe_load(BATCH_JOB.read_text())
    result = api.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=converted(BATCH_JOB.read_text()))
    assert result.returncode == 0, result.stderr
    after = json.loads(result.stdout)
    assert {key: after["spec"][key] for key in before["spec"]} == before["spec"]
