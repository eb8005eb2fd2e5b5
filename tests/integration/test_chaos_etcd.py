"""etcd dies and comes back, and forgets history under the operator's watches (410)."""

import signal

import pytest

from chaos import judge_undisturbed, names_of, ride_out, seeded
from holdfast import Operator, job, runs
from localcluster import wait_for
from record import STORE_AS_JSON, Recorder

# etcd is killed here: what it has acknowledged must be on the disk.
CLUSTER = {"fsync": True, "apiserver_flags": [STORE_AS_JSON]}
END_LIMIT = 180


@pytest.fixture()
def operator(cluster):
    with Operator(cluster) as operator:
        yield operator


@pytest.fixture()
def record(cluster, jobs):
    with Recorder(cluster, jobs.namespace) as record:
        yield record


def test_all_jobs_end_once_though_etcd_is_killed(cluster, operator, jobs, record):
    def outage():
        cluster.kill_etcd()
        cluster.start_etcd()
        cluster.wait_apiserver_ready()

    ride_out(jobs, record, seeded("etcd killed"), outage, count=90, outages=3, limit=END_LIMIT)


def test_an_expired_watch_is_listed_anew_and_nothing_that_happened_meanwhile_is_missed(cluster, operator, jobs, record):
    """410: the operator stands still while its jobs' pods end and new jobs come; the server that it
    wakes up to knows nothing of that time any more, neither in its cache nor in etcd."""
    ends = [job(f"ends-{n}", annotations=runs(8, "0" if n % 2 else "1,0"), backoffLimit=2,
                retryBackoff={"initialSeconds": 1, "maxSeconds": 1}) for n in range(10)]
    for body in ends:
        jobs.apply(body)
    for name in names_of(ends):
        jobs.wait_started(name)
    operator.signal(signal.SIGSTOP)
    late = [job(f"late-{n}", annotations=runs(0)) for n in range(10)]
    for body in late:
        jobs.apply(body)
    wait_for("the pods to end while nobody looks", lambda: all(
        pod["status"]["phase"] in ("Succeeded", "Failed") for pod in jobs.pods()), 60)
    cluster.kill_apiserver()
    cluster.compact_etcd()
    cluster.start_apiserver()
    before = len(operator.log())
    operator.signal(signal.SIGCONT)
    record.wait_ended(names_of(ends + late), END_LIMIT)
    log = operator.log()[before:]
    # The 410 was met: listed anew at once, or after a back-off that tells the server's words.
    assert "version expired" in log or "too old resource version" in log, log
    judge_undisturbed(record, names_of(ends + late))
    for name in names_of(ends):
        assert record.status(name)["phase"] == "Succeeded"
