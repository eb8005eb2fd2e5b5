"""When each pod of each run was created, by the API server's clock: a system's decision, before Kubernetes schedules and
starts the pod in a time of its own. A watch sees also the pods that never begin."""

import contextlib
import threading

from real_cluster import moment
from referee.cluster import AWAY
from referee.systems.base import unit_of

TIMEOUT = 30


class PodWatch:
    """systems: {namespace: name}. `created`: {UID: (system, job, index, when)}, seconds since 1970."""

    def __init__(self, cluster, systems):
        self._cluster, self._systems = cluster, systems
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.created = {}

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
                    self._watch(found["metadata"]["resourceVersion"])
            self._over.wait(0.2)

    def _watch(self, version):
        for event in self._cluster.watch("/api/v1/pods", version, TIMEOUT):
            if self._over.is_set() or event["type"] == "ERROR":
                return
            self._see(event["object"])

    def _see(self, pod):
        meta = pod["metadata"]
        unit = unit_of(pod) if meta["namespace"] in self._systems else None
        if unit:
            self.created[meta["uid"]] = (self._systems[meta["namespace"]], *unit, moment(meta["creationTimestamp"]))
