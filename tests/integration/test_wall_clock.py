"""A wall clock that jumps by an hour, on one of two replicas, in either direction: nothing changes.
Times are the API server's, and silence is judged by the steady clock."""

import calendar
import glob
import pathlib
import time

import pytest
import yaml

from holdfast import job, runs
from localcluster import wait_for
from replicas import Replicas, ownership

HOUR = 3600
PACE = {"initialSeconds": 2, "factor": 1, "maxSeconds": 2, "jitterPercent": 0}


@pytest.fixture()
def clock(tmp_path):
    """(the file that sets a process's wall clock, its environment)"""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    assert found, "libfaketime is not there: run `make setup`"
    offset = tmp_path / "offset"
    offset.write_text("+0")
    return offset, {"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": str(offset),
                    "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def without_certificate_times(kubeconfig):
    """A certificate of an hour ago is not valid two hours ago, and that is not the matter here."""
    config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
    for cluster in config["clusters"]:
        cluster["cluster"].pop("certificate-authority-data", None)
        cluster["cluster"]["insecure-skip-tls-verify"] = True
    path = pathlib.Path(f"{kubeconfig}-jumps")
    path.write_text(yaml.safe_dump(config))
    return path


def flow(prefix):
    """Jobs that hang on time: back-offs, deadlines, ends of their own."""
    return [job(f"{prefix}-retries", annotations=runs(1, "1,1,0"), retryBackoff=PACE),
            job(f"{prefix}-in-time", annotations=runs(10), activeDeadlineSeconds=600,
                attemptDeadlineSeconds=300, lostAfterSeconds=15),
            job(f"{prefix}-too-long", annotations=runs(600), attemptDeadlineSeconds=5,
                backoffLimit=0)]


def settle_all(jobs, prefix):
    succeeded = jobs.wait_phase(f"{prefix}-retries", "Succeeded", limit=60)
    assert (succeeded["attempt"], succeeded["disruptions"]) == (3, 0)
    succeeded = jobs.wait_phase(f"{prefix}-in-time", "Succeeded", limit=60)
    assert (succeeded["attempt"], succeeded["disruptions"]) == (1, 0)
    failed = jobs.wait_phase(f"{prefix}-too-long", "Failed", limit=60)
    assert [end["outcome"] for end in failed["history"]] == ["DeadlineExceeded"]


def test_a_wall_clock_that_jumps_by_an_hour_changes_nothing(cluster, jobs, clock):
    offset, environment = clock
    with Replicas(cluster, 2, kubeconfigs={0: without_certificate_times}) as replicas:
        jumping = replicas[0]
        jumping.stop()
        jumping.env = environment
        jumping.start()
        replicas.wait_shared()
        member = ownership(jumping)["member"]
        for seconds in (HOUR, -HOUR, 0):
            for body in flow(f"at{seconds}"):
                jobs.apply(body)
            jobs.wait_started(f"at{seconds}-in-time")
            # In the middle of back-offs, deadlines and leases.
            offset.write_text(f"{seconds:+d}")
            said = len(jumping.log())
            settle_all(jobs, f"at{seconds}")
            # One of them is the jumping replica's, which logs what it does.
            for number in range(12):
                jobs.apply(job(f"at{seconds}-tick-{number}", annotations=runs(0)))
            wait_for("the jump to be seen in the times of the log", lambda: times_off(
                jumping.log()[said:], seconds), 60)
            # No lapse, no new tenure, no job that changed hands.
            assert ownership(jumping)["member"] == member
            assert "stops acting" not in jumping.log()
        wait_for("nothing to be overdue", lambda: jumping.metric("holdfast_oldest_overdue_seconds") == 0, 60)


def times_off(log, seconds):
    """Whether the last line's time is off by that much: the clock did jump."""
    lines = [line for line in log.splitlines() if line[:2] == "20"]
    if not lines:
        return False
    told = calendar.timegm(time.strptime(lines[-1][:19], "%Y-%m-%dT%H:%M:%S"))
    return abs(told - time.time() - seconds) < 60

