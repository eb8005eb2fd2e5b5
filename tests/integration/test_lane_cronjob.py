"""A CronJob of the real CronJob controller, whose Jobs Holdfast runs."""

import datetime
import time

from holdfast import QUICKEST_LEASES, runs
from lane import LANE, QUICK_RETRY, batch_spec
from localcluster import wait_for

OPERATOR_FLAGS, OPERATOR_LEASES = LANE, QUICKEST_LEASES
MINUTE = 60


def cron_job(name, seconds, policy="Allow", exit_code=None, schedule="* * * * *", **spec):
    template = batch_spec(runs(seconds, exit_code), backoffLimit=0)
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": schedule, "concurrencyPolicy": policy, **spec,
                     "jobTemplate": {"metadata": {"annotations": QUICK_RETRY}, "spec": template}}}


def create(batch, body):
    path = f"/apis/batch/v1/namespaces/{batch.namespace}/cronjobs"
    batch.api("POST", path, body)
    return f"{path}/{body['metadata']['name']}"


def jobs_of(batch, name):
    jobs = batch.api("GET", batch.path)["items"]
    return sorted((job for job in jobs if job["metadata"]["name"].startswith(name + "-")),
                  key=lambda job: job["metadata"]["creationTimestamp"])


def is_over(job, condition):
    return any(one["type"] == condition and one["status"] == "True" for one in job["status"].get("conditions", []))


def test_schedules_tick_under_each_policy(batch, operator):
    """All at once, since each tick takes a minute: overlapping Jobs, one that fails, and a time zone."""
    now = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=9)))  # Asia/Tokyo has no summer time
    soon = now + datetime.timedelta(minutes=2)
    paths = {name: create(batch, body) for name, body in {
        "allow": cron_job("allow", 600),
        "forbid": cron_job("forbid", 600, "Forbid"),
        "replace": cron_job("replace", 600, "Replace"),
        "fails": cron_job("fails", 0, exit_code=1),
        "tokyo": cron_job("tokyo", 0, schedule=f"{soon.minute} {soon.hour} * * *", timeZone="Asia/Tokyo"),
    }.items()}
    wait_for("two Jobs at once", lambda: sum(job["status"].get("active", 0) for job in jobs_of(batch, "allow")) >= 2,
             4 * MINUTE)
    wait_for("the first Job to be replaced", lambda: len(jobs_of(batch, "replace")) == 1
             and jobs_of(batch, "replace")[0]["status"].get("active") == 1
             and jobs_of(batch, "replace")[0]["metadata"]["creationTimestamp"]
             > jobs_of(batch, "allow")[0]["metadata"]["creationTimestamp"], MINUTE)
    assert len(jobs_of(batch, "forbid")) == 1
    wait_for("a Job that fails", lambda: any(is_over(job, "Failed") for job in jobs_of(batch, "fails")), MINUTE)
    wait_for("a Job of Tokyo's minute", lambda: any(
        is_over(job, "Complete") for job in jobs_of(batch, "tokyo")), 2 * MINUTE)
    # The CronJob controller sees the end of each Job as that of any other.
    wait_for("the CronJob to know its last success", lambda: batch.api(
        "GET", paths["tokyo"])["status"].get("lastSuccessfulTime"), MINUTE)
    replaced = {job["metadata"]["uid"] for job in jobs_of(batch, "replace")}
    wait_for("no DurableJob of a replaced Job", lambda: {
        owner["uid"] for one in batch.durable.list() if one["metadata"]["name"].startswith("replace-")
        for owner in one["metadata"]["ownerReferences"]} == replaced, MINUTE)


def test_a_tick_while_no_operator_runs_is_made_up_for(batch, operator):
    create(batch, cron_job("away", 0))
    operator.kill()
    wait_for("the tick", lambda: jobs_of(batch, "away"), 2 * MINUTE)
    name = jobs_of(batch, "away")[0]["metadata"]["name"]
    assert batch.status(name) == {} and batch.durable_of(name) is None
    began = time.monotonic()
    operator.start()
    batch.wait_condition(name, "Complete", MINUTE)
    assert time.monotonic() - began < MINUTE
