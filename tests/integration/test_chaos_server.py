"""The API server dies and comes back under the operator: watches break, and answers are lost after
they were applied."""

from chaos import ride_out, seeded
from record import STORE_AS_JSON, Recorder

CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}
END_LIMIT = 240


def test_all_jobs_end_once_though_the_api_server_is_killed(cluster, operator, jobs):
    def outage():
        cluster.kill_apiserver()
        cluster.start_apiserver()

    with Recorder(cluster, jobs.namespace) as record:
        ride_out(jobs, record, seeded("API server killed"), outage, count=60, outages=3, limit=END_LIMIT)
