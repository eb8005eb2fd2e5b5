"""A change of the CRD, as each `helm upgrade` of it is one, ends the watches of its kind. It costs two seconds."""

import threading
import time

import pytest

from holdfast import OPERATOR_USER, job
from localcluster import wait_for

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/durablejobs.holdfast.dev"
CHANGES = 10
# After each change a job is created twice a second for so long: the watch may end late, and what it costs
# depends on the moment. Ten changes come in less than two minutes.
WATCHED = 10
BETWEEN_JOBS = 0.5
COSTS = 2
# What a busy machine may add, of whose slowness two hundred jobs show the worst.
NOISE = 3


class Pods:
    """When the first pod of each job was seen."""

    def __init__(self, cluster, path):
        self._seen = {}
        version = cluster.api("GET", path)[1]["metadata"]["resourceVersion"]
        self._events = cluster.watch(path, version, timeout=CHANGES * WATCHED * 3)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for event in self._events:
            name = event["object"]["metadata"].get("labels", {}).get("holdfast.dev/job-name")
            self._seen.setdefault(name, time.monotonic())

    def seen(self, name):
        return self._seen.get(name)


def change_crd(cluster, number):
    change = [{"op": "replace", "path": "/spec/versions/0/additionalPrinterColumns/0/description",
               "value": f"The job's phase. Change {number}."}]
    code, answer = cluster.api("PATCH", CRD, change, content_type="json")
    assert code == 200, answer


def ended_watches(cluster, offset):
    """How many watches of jobs the API server has ended for the operator since then. The operator's own log says
    nothing of a watch that ends cleanly and is opened again at once."""
    return len([event for event in cluster.audit_events(offset)[0] if event["verb"] == "watch"
                and event["user"]["username"] == OPERATOR_USER
                and event.get("objectRef", {}).get("resource") == "durablejobs"])


def create(cluster, jobs, name):
    """When it was taken. The API server refuses creations, too, while it starts the storage anew."""
    wait_for(f"{name} to be taken", lambda: cluster.api("POST", jobs.path, job(name))[0] == 201, 30, 0.05)
    return time.monotonic()


@pytest.mark.long
def test_ten_changes_of_the_crd_in_two_minutes_cost_at_most_two_seconds_each(cluster, operator, jobs):
    pods = Pods(cluster, jobs.pods_path)
    worst, log_end = [], cluster.audit_offset()
    for number in range(CHANGES):
        began = time.monotonic()
        change_crd(cluster, number)
        taken = {}
        while time.monotonic() - began < WATCHED:
            name = f"after-{number}-{len(taken)}"
            taken[name] = create(cluster, jobs, name)
            time.sleep(max(0.0, began + len(taken) * BETWEEN_JOBS - time.monotonic()))
        wait_for(f"the pods after change {number}", lambda made=taken: all(map(pods.seen, made)), 60)
        worst.append(round(max(pods.seen(name) - at for name, at in taken.items()), 2))
        wait_for(f"change {number} to end a watch of the operator", lambda end=log_end: ended_watches(cluster, end), 60)
        log_end = cluster.audit_offset()
    print("worst seconds from a job's creation to its pod, by change:", worst)
    assert max(worst) <= COSTS + NOISE, worst
