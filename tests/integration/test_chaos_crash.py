"""The operator dies without a word, again and again: what it had recorded is all that its successor
has, and that is enough."""

import pytest

from chaos import (Feeder, Killer, check_run, lapses, look_again, mixed_jobs, names_of, seeded, summary)
from holdfast import QUICKEST_LEASES, Operator
from record import STORE_AS_JSON, Recorder

pytestmark = pytest.mark.long

JOBS = 200
KILLS = 50
# After the last kill every intent without a pod waits its 17 s, and the attempts that follow run.
END_LIMIT = 180
CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}


def test_an_operator_killed_fifty_times_loses_no_job_and_repeats_no_success(cluster, jobs):
    rng = seeded("crash")
    made = mixed_jobs(JOBS, rng)
    with Recorder(cluster, jobs.namespace) as record, Operator(cluster, leases=QUICKEST_LEASES) as operator:
        killer = Killer(record, rng, [operator])
        with Feeder(jobs, record, made, in_flight=80) as feeder:
            for _ in range(KILLS):
                killer.strike(most_versions=40, limit=2)
            record.wait_ended(names_of(made), END_LIMIT)
            assert feeder.error is None, feeder.error
        look_again([operator])
        record.wait_ended(names_of(made), END_LIMIT)
        print(summary(record, killer.kills))
        check_run(record, names_of(made), killer.kills + lapses([operator]))
