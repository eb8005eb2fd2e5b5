"""A thousand jobs at once: correctness only; how fast it goes is measured by tests/bench."""

import concurrent.futures

import pytest

from chaos import check_run, names_of, summary
from holdfast import Operator, job, runs
from record import STORE_AS_JSON, Recorder

pytestmark = pytest.mark.long

CLUSTER = {"nodes": 5, "apiserver_flags": [STORE_AS_JSON]}
JOBS = 1000
END_LIMIT = 400


def test_a_thousand_jobs_applied_at_once_all_end_once(cluster, jobs):
    # Every tenth fails first.
    made = [job(f"job-{n}", annotations=runs(0, "1,0" if n % 10 == 0 else "0"),
                retryBackoff={"initialSeconds": 1, "maxSeconds": 1}) for n in range(JOBS)]
    with Recorder(cluster, jobs.namespace) as record, Operator(cluster):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(jobs.apply, made))
        record.wait_ended(names_of(made), END_LIMIT)
        print(summary(record))
        check_run(record, names_of(made))
        for number, name in enumerate(names_of(made)):
            status = record.status(name)
            assert status["phase"] == "Succeeded", (name, status)
            assert status["attempt"] == (2 if number % 10 == 0 else 1), (name, status)
            assert status["disruptions"] == 0, (name, status)
