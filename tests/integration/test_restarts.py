"""An operator that is killed every 30 s: no window ends in one of its lives, and every orphan is found within
twice its bound all the same."""

import time

from holdfast import Jobs, Operator, job
from losses import delete_pod, new_namespace, on_node, wait_renewals

LIFE = 30
LOST_AFTER = 40
# A dead member's lease and a retry period: before that nobody acts. Twice the bound, and a second for a reconcile.
TAKE_OVER = 17
BOUND = 2 * (LOST_AFTER + 1) + TAKE_OVER


def start_jobs(cluster):
    """Jobs of which each has lost something, and the nodes that are silent by now."""
    jobs = Jobs(cluster, new_namespace(cluster, "restarts"))
    dead, gone = "node-0", "node-1"
    stays = {"holdfast-test/ignore-delete": "true"}
    pods = {
        "silent": job("silent", lostAfterSeconds=LOST_AFTER, pod=on_node(dead)),
        "gone": job("gone", lostAfterSeconds=LOST_AFTER, pod=on_node(gone)),
        "stuck": job("stuck", lostAfterSeconds=LOST_AFTER, annotations=stays,
                     pod=dict(on_node("node-2"), terminationGracePeriodSeconds=1)),
        "cancelled": job("cancelled", lostAfterSeconds=LOST_AFTER, annotations=stays,
                         pod=dict(on_node("node-2"), terminationGracePeriodSeconds=1)),
    }
    for manifest in pods.values():
        jobs.apply(manifest)
    running = {name: jobs.wait_running(name) for name in pods}
    for name in pods:
        jobs.wait(name, lambda s: s.get("nodeName"), 15)
    wait_renewals(cluster, (dead, gone))
    cluster.kill_node(dead)
    cluster.kill_node(gone)
    cluster.kubectl("delete", "node", gone, "--wait=false")
    delete_pod(jobs, running["stuck"])
    jobs.patch("cancelled", cancel=True)
    return jobs


def found(jobs):
    """What has been found by now."""
    seen = {name for name in ("silent", "gone", "stuck")
            if any(entry["outcome"] == "Lost" for entry in jobs.status(name).get("history", []))}
    return seen | ({"cancelled"} if jobs.status("cancelled").get("phase") == "Cancelled" else set())


def test_each_kind_of_orphan_is_found_within_twice_its_bound_by_an_operator_that_is_killed_every_30_s(cluster):
    operator = Operator(cluster)
    operator.start()
    try:
        jobs = start_jobs(cluster)
        lost = killed = time.monotonic()
        when = {}
        while len(when) < 4 and time.monotonic() - lost < 2 * BOUND:
            if time.monotonic() - killed >= LIFE:
                operator.kill()
                operator.spawn()
                killed = time.monotonic()
            for name in found(jobs) - set(when):
                when[name] = time.monotonic() - lost
            time.sleep(0.2)
    finally:
        operator.__exit__()
    assert set(when) == {"silent", "gone", "stuck", "cancelled"}, when
    assert max(when.values()) <= BOUND + 5, when
