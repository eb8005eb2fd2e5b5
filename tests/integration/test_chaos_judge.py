"""The judge of the chaos tests finds each invariant that was broken, and nothing in a clean run. No
cluster: the records are made up here."""

import copy

import pytest

from invariants import unbalanced, violations
from record import FINALIZER, Version

JOB = "job-uid"


def run(attempt):
    return {"index": 0, "attempt": attempt, "podName": f"j-{attempt}"}


class Story:
    """A run of one job, told version by version."""

    def __init__(self):
        self.revision = 0
        self.jobs = {}
        self.pods = {}
        self.status = {}
        self.job()

    def job(self, deleted=False, **status):
        self.status.update(status)
        body = {"metadata": {"uid": JOB, "name": "j"},
                "spec": {"backoffLimit": 1, "disruptionLimit": 5},
                "status": copy.deepcopy(self.status)}
        self._keep(self.jobs, "job", "j", JOB, body, deleted)
        return self

    def start(self, attempt, **more):
        return self.job(phase="Running", attempt=attempt, runs=[run(attempt)], **more)

    def pod(self, attempt, phase, uid=None, name=None, finalizers=(), owner=JOB):
        uid = uid or f"pod-{attempt}"
        body = {"metadata": {"uid": uid, "labels": {"holdfast.dev/attempt": str(attempt)},
                             "ownerReferences": [{"uid": owner}], "finalizers": list(finalizers)},
                "status": {"phase": phase}}
        self._keep(self.pods, "pod", name or f"j-{attempt}", uid, body, False)
        return self

    def end(self, ended, outcome, phase, **more):
        entry = {"attempt": ended, "podName": f"j-{ended}", "outcome": outcome}
        return self.job(phase=phase, history=self.status.get("history", []) + [entry], **more)

    def found(self):
        return violations(self.jobs, self.pods) + unbalanced(self.jobs, self.pods)

    def _keep(self, where, kind, name, uid, body, deleted):
        self.revision += 1
        where.setdefault(uid, []).append(Version(kind, name, uid, self.revision, deleted, body, float(self.revision)))


def retried():
    """A clean run: one failure, then success."""
    return (Story().start(1).pod(1, "Pending").pod(1, "Failed")
            .end(1, "Failed", "Backoff", failures=1)
            .start(2).pod(2, "Pending").pod(2, "Succeeded").end(2, "Succeeded", "Succeeded"))


def test_a_clean_run_is_clean():
    assert not retried().found()


def test_a_finished_job_is_settled_once():
    assert not retried().job(settled=True).found()
    assert any("settled" in line for line in retried().job(settled=True).job(settled=False).found())


def test_an_intent_that_lost_its_writer_is_accounted_for():
    story = Story().start(1).end(1, "Lost", "Running", attempt=2, runs=[run(2)], disruptions=1)
    story.pod(2, "Succeeded").end(2, "Succeeded", "Succeeded")
    assert not story.found()


@pytest.mark.parametrize("name,story", [
    ("S1 OneOutcome", lambda: retried().job(failures=2)),
    ("S1 OneOutcome", lambda: retried().job(phase="Failed")),
    ("S2 FencedOutcome", lambda: Story().start(1).pod(1, "Running").end(
        1, "Succeeded", "Succeeded")),
    ("S2 FencedOutcome", lambda: Story().start(1).start(2).pod(1, "Succeeded").end(
        1, "Succeeded", "Succeeded")),
    ("S2 FencedOutcome", lambda: Story().start(1).job(phase="Succeeded")),
    ("S3 Fence", lambda: Story().start(2).start(1)),
    ("S3 Fence", lambda: Story().start(1).job(runs=[{**run(1), "podName": "j-other"}])),
    ("S4 LegalEdges", lambda: Story().start(1).job(phase="Cancelled")),
    ("S5 NoLoss", lambda: retried().job(deleted=True)),
    ("S5 NoLoss", lambda: retried().pod(3, "Running", owner="nobody")),
    ("S6 OnePod", lambda: Story().start(1).pod(1, "Running").pod(1, "Running", uid="second")),
    ("S6 OnePod", lambda: Story().start(1).pod(1, "Running", name="j-renamed")),
    ("S8 Budget", lambda: Story().pod(1, "Running").start(1)),
    ("S8 Budget", lambda: Story().start(1).pod(1, "Failed").end(
        1, "Failed", "Backoff", failures=2)),
    ("S8 Budget", lambda: Story().start(1).pod(1, "Failed").end(1, "Failed", "Backoff")),
    ("S8 Budget", lambda: Story().start(1).start(2)),
    ("its pods tell", lambda: Story().start(1).pod(1, "Failed").end(
        1, "Lost", "Failed", disruptions=1)),
    ("had succeeded", lambda: Story().start(1).pod(1, "Succeeded").end(
        1, "Lost", "Running", attempt=2, runs=[run(2)], disruptions=1).pod(2, "Succeeded").end(
        2, "Succeeded", "Succeeded")),
    ("has not ended", lambda: Story().start(1).pod(1, "Running")),
    ("finalizer", lambda: retried().pod(2, "Succeeded", finalizers=[FINALIZER])),
])
def test_what_is_broken_is_found_by_its_name(name, story):
    assert any(name in line for line in story().found()), story().found()
