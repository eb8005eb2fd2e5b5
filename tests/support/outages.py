"""What the tests of outages share: a job on each node, an outage that is long enough, and what must
not have come of it."""

import time

from holdfast import job, place, runs
from localcluster import wait_for
from losses import REACTION, finish, on_node, seconds_of

NODES = ["node-0", "node-1", "node-2"]
# Three times as long as it takes a simulated node to renew: after an outage it may miss once, when the answer
# to its last renewal was lost and the next is a conflict.
WINDOW = 30


def run_on_each_node(jobs):
    """One running job on each node, named like it and on record as such."""
    for node in NODES:
        jobs.apply(job(node, lostAfterSeconds=WINDOW, pod=on_node(node)))
    for node in NODES:
        jobs.wait_running(node)
        jobs.wait(node, lambda s: place(s).get("nodeName"), 60)


def outlast_the_window():
    """Waits, from now on, for longer than the jobs' lostAfterSeconds."""
    began = time.monotonic()
    wait_for(
        "the outage to outlast lostAfterSeconds",
        lambda: time.monotonic() - began > WINDOW + REACTION + 1,
        2 * WINDOW,
    )


def come_back(cluster):
    """Starts the API server, and anew what may wait for seconds before it asks again: how soon the cluster's
    other parts look is not the matter here."""
    cluster.start_apiserver()
    cluster.kill_kwok()
    cluster.start_kwok()
    cluster.kill_scheduler()
    cluster.start_scheduler()


def assert_nothing_lost(cluster, jobs, nodes, restored):
    """All these nodes renewed after the outage: whoever still counted the time before would have
    given its verdict by then, or never will."""
    wait_for(
        "the nodes to renew their Leases",
        lambda: all(seconds_of(cluster.node_lease(node)["spec"]["renewTime"]) > restored for node in nodes),
        60,
    )
    for node in nodes:
        status = jobs.status(node)
        assert (status["attempt"], status["disruptions"]) == (1, 0), (status, restored)
        assert finish(jobs, node)["attempt"] == 1


# Everything goes on so soon after the API server's return.
GOES_ON = 60
PACE = {"initialSeconds": 20, "factor": 1, "maxSeconds": 20, "jitterPercent": 0}


def outlast_minutes_without_an_api_server(cluster, jobs, minutes):
    """It is killed for so long, with attempts running on all nodes, a back-off that ends meanwhile, and
    a job that is asked for afterwards."""
    run_on_each_node(jobs)
    jobs.apply(job("retries", annotations=runs(0, "1,0"), retryBackoff=PACE))
    jobs.apply(job("sleeps", suspend=True, annotations=runs(0)))
    jobs.wait_phase("retries", "Backoff")
    jobs.wait_phase("sleeps", "Suspended")
    cluster.kill_apiserver()
    began = time.monotonic()
    wait_for("the outage to last", lambda: time.monotonic() - began > 60 * minutes, 60 * minutes + 30, poll=0.5)
    come_back(cluster)
    restored = time.time()
    jobs.patch("sleeps", suspend=False)
    jobs.apply(job("late", annotations=runs(0)))
    for name in ("retries", "sleeps", "late"):
        assert jobs.wait_phase(name, "Succeeded", limit=GOES_ON)["disruptions"] == 0, name
    print(f"after {minutes} min: all goes on within {time.time() - restored:.1f} s")
    assert_nothing_lost(cluster, jobs, NODES, restored)
