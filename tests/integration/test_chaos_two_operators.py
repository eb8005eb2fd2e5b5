"""Two operators on the same jobs, with no coordination at all: what makes outcomes right is
optimistic concurrency and the pods' names, not that only one of them acts."""

import pytest

from chaos import (Feeder, Killer, check_run, lapses, look_again, mixed_jobs, names_of, operator_pair, seeded, summary)
from record import STORE_AS_JSON, Recorder

pytestmark = pytest.mark.long

JOBS = 200
KILLS = 12
# An intent whose writer was killed is given up 17 s after another saw it, and the attempts that
# follow take their time: on a busy machine a few times what they take here.
END_LIMIT = 180
CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}


def test_two_uncoordinated_operators_killed_at_random_end_each_job_once(cluster, jobs):
    rng = seeded("two operators")
    made = mixed_jobs(JOBS, rng)
    operators = operator_pair(cluster)
    try:
        with Recorder(cluster, jobs.namespace) as record:
            for operator in operators:
                operator.start()
            killer = Killer(record, rng, operators)
            with Feeder(jobs, record, made, in_flight=60) as feeder:
                for _ in range(KILLS):
                    killer.strike(most_versions=150, limit=10)
                record.wait_ended(names_of(made), END_LIMIT)
                assert feeder.error is None, feeder.error
            look_again(operators)
            record.wait_ended(names_of(made), END_LIMIT)
            print(summary(record, killer.kills))
            check_run(record, names_of(made), killer.kills + lapses(operators))
    finally:
        for operator in operators:
            operator.kill()
