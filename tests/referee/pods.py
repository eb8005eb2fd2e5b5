"""When each pod of each run was created, by the API server's clock: a system's decision, before Kubernetes schedules and
starts the pod in a time of its own. A watch sees also the pods that never begin."""

import contextlib
import threading

from real_cluster import moment
from referee.cluster import AWAY
from referee.nemesis import clock
from referee.systems.base import has_ended, is_ready, unit_of

TIMEOUT = 30


class PodWatch:
    """systems: {namespace: name}. `created`: {UID: (system, job, index, when, order)}, `when` in seconds since 1970.
    `ended`: {UID: when the API server first said that the worker's container had}, `workers`: {UID: [system, node, since
    when it was ready, until when]} of pods without a unit; both by the referee's clock."""

    def __init__(self, cluster, systems):
        self._cluster, self._systems = cluster, systems
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.created, self.ended, self.workers = {}, {}, {}

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.is_set():
            with contextlib.suppress(*AWAY):
                status, found = self._cluster.api("GET", "/api/v1/pods")
                if status == 200:
                    for pod in found["items"]:
                        self._see(pod)
                    there = {pod["metadata"]["uid"] for pod in found["items"]}
                    for uid in self.workers.keys() - there:
                        self._worker_is_gone(uid)
                    self._watch(found["metadata"]["resourceVersion"])
            self._over.wait(0.2)

    def _watch(self, version):
        for event in self._cluster.watch("/api/v1/pods", version, TIMEOUT):
            if self._over.is_set() or event["type"] == "ERROR":
                return
            self._see(event["object"])
            if event["type"] == "DELETED":
                self._worker_is_gone(event["object"]["metadata"]["uid"])

    def _see(self, pod):
        meta = pod["metadata"]
        system = self._systems.get(meta["namespace"])
        unit = unit_of(pod) if system else None
        if unit:
            order = self.created.get(meta["uid"], (0,) * 4 + (len(self.created),))[4]
            self.created[meta["uid"]] = (system, *unit, moment(meta["creationTimestamp"]), order)
            if has_ended(pod):
                self.ended.setdefault(meta["uid"], clock())
        elif system and is_ready(pod):
            self.workers.setdefault(meta["uid"], [system, pod["spec"].get("nodeName", ""), clock(), None])
        elif system:
            self._worker_is_gone(meta["uid"])

    def _worker_is_gone(self, uid):
        if uid in self.workers and self.workers[uid][3] is None:
            self.workers[uid][3] = clock()
