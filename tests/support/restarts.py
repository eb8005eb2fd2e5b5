"""Jobs that have each lost something in another way, and operators of which one is killed every 30 s."""

import itertools
import time

from holdfast import Jobs, job, place
from losses import delete_pod, new_namespace, on_node, wait_renewals

LIFE = 30
LOST_AFTER = 40
# A dead member's lease and a retry period: before that nobody acts. Twice the bound, and a second for a reconcile.
TAKE_OVER = 17
BOUND = 2 * (LOST_AFTER + 1) + TAKE_OVER
KINDS = {"silent", "gone", "stuck", "cancelled"}


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
        jobs.wait(name, lambda s: place(s).get("nodeName"), 15)
    wait_renewals(cluster, (dead, gone))
    cluster.kill_node(dead)
    cluster.kill_node(gone)
    cluster.kubectl("delete", "node", gone, "--wait=false")
    delete_pod(jobs, running["stuck"])
    jobs.patch("cancelled", cancel=True)
    return jobs


def found(jobs):
    """What has been found by now."""
    seen = {name for name in KINDS - {"cancelled"}
            if any(entry["outcome"] == "Lost" for entry in jobs.status(name).get("history", []))}
    return seen | ({"cancelled"} if jobs.status("cancelled").get("phase") == "Cancelled" else set())


def seconds_until_found(cluster, operators):
    """{kind: seconds from its loss until it was found}, while one operator after the other is killed."""
    jobs = start_jobs(cluster)
    victims = itertools.cycle(operators)
    lost = killed = time.monotonic()
    when = {}
    while len(when) < len(KINDS) and time.monotonic() - lost < 2 * BOUND:
        if time.monotonic() - killed >= LIFE:
            victim = next(victims)
            victim.kill()
            victim.spawn()
            killed = time.monotonic()
        for name in found(jobs) - set(when):
            when[name] = time.monotonic() - lost
        time.sleep(0.2)
    return when
