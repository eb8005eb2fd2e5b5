"""etcd is SIGKILLed fifty times: no attempt is lost by that, and every job ends once."""

import pytest

from chaos import ride_out, seeded
from holdfast import Operator
from record import STORE_AS_JSON, Recorder

pytestmark = pytest.mark.long

# etcd is killed here: what it has acknowledged must be on the disk.
CLUSTER = {"fsync": True, "apiserver_flags": [STORE_AS_JSON]}
KILLS = 50


def test_all_jobs_end_once_though_etcd_is_killed_fifty_times(cluster, jobs):
    def outage():
        cluster.kill_etcd()
        cluster.start_etcd()
        cluster.wait_apiserver_ready()

    with Recorder(cluster, jobs.namespace) as record, Operator(cluster):
        ride_out(jobs, record, seeded("etcd killed often"), outage, count=150, outages=KILLS, limit=180, growth=(5, 40))
