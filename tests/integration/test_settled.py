"""Finished jobs leave the operator's memory, and come back if something has to be done for them."""

import contextlib

from holdfast import QUICK_LEASES, job, runs
from lives import settle, wait_events, wait_observed
from localcluster import wait_for

OPERATOR_LEASES = QUICK_LEASES
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/durablejobs.holdfast.dev"
FIELDS = "/spec/versions/0/selectableFields"
LIMIT = 60
# It tries again each minute.
AGAIN = 90


def cached(operator):
    return operator.metric("holdfast_cache_objects", kind="durablejobs")


def counted(operator, phase):
    return operator.metric("holdfast_jobs", phase=phase)


def watches_all(operator):
    return operator.metric("holdfast_watch_unselected", kind="durablejobs") == 1


@contextlib.contextmanager
def older_definition(cluster):
    """The definition of jobs cannot select by a field."""
    (version,) = cluster.api("GET", CRD)[1]["spec"]["versions"]
    fields = version["selectableFields"]
    path = "/apis/holdfast.dev/v1alpha1/durablejobs?limit=1&fieldSelector=status.settled%3Dtrue"

    def change(operation, code):
        answer = cluster.api("PATCH", CRD, [operation], content_type="json")
        assert answer[0] == 200, answer
        wait_for(f"a list of settled jobs to answer {code}", lambda: cluster.api("GET", path)[0] == code, LIMIT)

    change({"op": "remove", "path": FIELDS}, 400)
    try:
        yield
    finally:
        change({"op": "add", "path": FIELDS, "value": fields}, 200)


def test_a_finished_job_leaves_the_cache_and_is_counted_all_the_same(operator, jobs):
    before = counted(operator, "Succeeded")
    for number in range(3):
        jobs.apply(job(f"ends-{number}", annotations=runs(0)))
    settle(jobs, *(f"ends-{number}" for number in range(3)))
    assert all(each["status"]["settled"] for each in jobs.list())
    wait_for("the jobs to leave the cache", lambda: cached(operator) == 0, LIMIT)
    assert counted(operator, "Succeeded") == before + 3
    operator.kill()
    operator.start()
    wait_for("the walk to count them", lambda: counted(operator, "Succeeded") == before + 3, LIMIT)
    assert cached(operator) == 0


def test_a_finished_job_minds_neither_suspend_nor_cancel(operator, jobs):
    changes = {"suspended": {"suspend": True}, "cancelled": {"cancel": True}}
    for name in changes:
        jobs.apply(job(name, annotations=runs(0)))
    settle(jobs, *changes)
    before = {name: jobs.status(name) for name in changes}
    for name, change in changes.items():
        jobs.patch(name, **change)
    operator.kill()
    operator.start()  # and walks over the finished jobs, as else each ten minutes
    for name in changes:
        assert dict(wait_observed(jobs, name), observedGeneration=0) == dict(before[name], observedGeneration=0)
        wait_events(jobs, name, "Completed")


def test_with_an_older_definition_the_operator_watches_all_jobs_until_it_is_replaced(cluster, operator, jobs):
    operator.kill()
    with older_definition(cluster):
        operator.start()
        jobs.apply(job("ends", annotations=runs(0)))
        settle(jobs, "ends")
        assert watches_all(operator)
        assert "cannot select by a field" in operator.log()
        assert cached(operator) > 0
    wait_for("it to select again", lambda: not watches_all(operator) and cached(operator) == 0, AGAIN)
    jobs.apply(job("ends-too", annotations=runs(0)))
    settle(jobs, "ends-too")
    wait_for("the job to leave the cache", lambda: cached(operator) == 0, LIMIT)
