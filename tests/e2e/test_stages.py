"""Jobs of several stages on real nodes: the examples, and a result that is ready before the job is over."""

import time

import pytest

from holdfast import Jobs
from localcluster import wait_for
from real_jobs import dump, end_of, logs_of
from test_many_runs import ANSWERS, run_example


@pytest.fixture()
def jobs(cluster, namespace):
    """Without the record of the other tests, whose judge knows jobs of one stage alone."""
    return Jobs(cluster, namespace)


def phases(status):
    return {stage["name"]: stage["phase"] for stage in status["stages"]}


def pods_of_stage(jobs, name, stage):
    return [pod for pod in jobs.pods(name) if pod["metadata"]["labels"]["holdfast.dev/stage"] == stage]


# Neither wget nor httpd is in the workload's image.
SUBMITS = "echo proof-17 >/dev/termination-log"
ASKS = (r"exec 3<>/dev/tcp/verifier/8080 && printf 'GET /verdict-'$HOLDFAST_RESULT_MAIN' HTTP/1.0\r\n\r\n' >&3 "
        "&& grep -q accepted <&3 || exit 75")


def test_the_example_of_a_proof_submits_it_once_and_asks_until_the_verdict_is_there(cluster, jobs):
    run_example(cluster, jobs, "verify-proof", {"main": ["sh", "-c", SUBMITS], "verify": ["bash", "-c", ASKS]},
                ["perl", "-MIO::Socket::INET", "-e", ANSWERS])
    status = end_of(jobs, "verify-proof", 240)
    assert status["phase"] == "Succeeded", dump(status)
    main, verify = status["stages"]
    assert main["result"] == "proof-17"
    assert len(pods_of_stage(jobs, "verify-proof", "main")) == 1, "it was submitted once"
    assert verify["deferrals"] == status["attempt"] - 2 >= 2, dump(status)
    assert status["failures"] == status["disruptions"] == 0


def test_the_example_of_a_video_has_its_result_before_its_thumbnails_and_keeps_it(cluster, jobs):
    run_example(cluster, jobs, "publish-video")
    cluster.kubectl("-n", jobs.namespace, "wait", "--for=condition=ResultReady", "dj/publish-video", "--timeout=90s")
    assert phases(jobs.status("publish-video"))["thumbnails"] != "Succeeded"
    status = end_of(jobs, "publish-video", 120)
    assert status["phase"] == "Succeeded", dump(status)
    assert phases(status) == {"main": "Succeeded", "publish": "Succeeded", "thumbnails": "Failed"}
    assert status["failedIndexes"] == "2"
    assert jobs.conditions("publish-video")["Partial"]["status"] == "True"
    [published] = pods_of_stage(jobs, "publish-video", "publish")
    assert logs_of(cluster, jobs.namespace, published["metadata"]["name"]) == "publishing s3://videos/17.mp4\n"


def test_the_example_of_a_migration_cleans_up_after_its_failure(cluster, jobs):
    run_example(cluster, jobs, "migrate")
    status = end_of(jobs, "migrate", 120)
    assert status["phase"] == "Failed", dump(status)
    assert phases(status) == {"main": "Failed", "clean-up": "Succeeded"}
    assert jobs.conditions("migrate")["Failed"]["reason"] == "BackoffLimitExceeded"
    assert (len(pods_of_stage(jobs, "migrate", "main")), len(pods_of_stage(jobs, "migrate", "clean-up"))) == (2, 1)


def test_a_cancelled_migration_cleans_up_too(cluster, jobs):
    run_example(cluster, jobs, "migrate", {"main": ["sleep", "600"]})
    wait_for("the migration to run", lambda: any(
        pod["status"]["phase"] == "Running" for pod in jobs.pods("migrate")), 60, poll=0.5)
    began = time.monotonic()
    jobs.patch("migrate", cancel=True)
    status = end_of(jobs, "migrate", 120)
    assert status["phase"] == "Cancelled", f"after {time.monotonic() - began:.0f} s: {dump(status)}"
    assert phases(status) == {"main": "Failed", "clean-up": "Succeeded"}
