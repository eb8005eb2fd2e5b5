"""Jobs that have each lost something in another way, and operators of which one is killed every 30 s."""

import datetime
import itertools
import threading
import time

from fence import expect, lease_path, renewed
from holdfast import Jobs, job, place
from localcluster import wait_for
from losses import bind, delete_pod, on_node, set_pod_status, set_running, wait_renewals

# An operator that knows no image makes no worker with a heartbeat.
AGENT_IMAGE = "--agent-image=holdfast/agent:test"
LIFE = 30
WINDOW = 40
REACTION = 1
# A dead member's lease and a retry period: before that nobody acts.
TAKE_OVER = 17
# No life is as long as a window, so what the operators count is found in the second life.
COUNTED = 2 * (WINDOW + REACTION) + TAKE_OVER
# An agent counts how long its worker has made no progress, whatever becomes of operators.
TOLD = WINDOW + REACTION + TAKE_OVER
BOUND = {
    "silent": COUNTED,  # the node does not renew its Lease
    "unready": COUNTED,  # the node has no Lease, and its Ready condition is Unknown
    "gone": COUNTED,  # the node's object is deleted
    "stuck": COUNTED,  # the pod is deleted, and does not end
    "cancelled": COUNTED,  # the job is cancelled, and its pod does not end
    "next": COUNTED,  # the pod's next container never starts
    "holder": COUNTED,  # the agent renews the job's Lease no more
    "granted": COUNTED,  # the next pod waits for a Lease whose last holder may still run
    "hung": TOLD,  # the agent renews it, and the worker makes no progress
}
KINDS = set(BOUND)
STAYS = {"annotations": {"holdfast-test/ignore-delete": "true"}}
RENEWAL = 2
# What a busy machine may add, and this look from outside.
NOISE = 8

_numbers = itertools.count(1)


class Orphans:
    """A job of each kind. Their nodes are those of kwok; what a scheduler, a kubelet or an agent would have to say of
    the others, the test says. In the namespace `default`, where all operators may write Leases of jobs."""

    def __init__(self, cluster):
        self.cluster, self.jobs = cluster, Jobs(cluster, "default")
        number = next(_numbers)
        self.names = {kind: f"{kind}-{number}" for kind in KINDS}
        self.bare = f"bare-{number}"  # a node that nobody plays
        self.dead, self.gone = f"dead-{number}", f"gone-{number}"
        self.since = {}  # when each lost what it lost
        self._over = threading.Event()

    def __enter__(self):
        self._start()
        self._lose()
        return self

    def __exit__(self, *_):
        self._over.set()
        for name in self.names.values():
            self.jobs.delete(name)
        for node in (self.dead, self.bare):
            self.cluster.delete_node(node)

    def status(self, kind):
        return self.jobs.status(self.names[kind])

    def found(self):
        """What has been found by now."""
        ended = {kind for kind in KINDS - {"cancelled", "granted"} if self.status(kind).get("history")}
        cancelled = {"cancelled"} if self.status("cancelled").get("phase") == "Cancelled" else set()
        return ended | cancelled | ({"granted"} if self._holds("granted", 2) else set())

    def outcomes(self):
        """How the first attempts ended."""
        return {kind: self.status(kind)["history"][0]["outcome"] for kind in KINDS if self.status(kind).get("history")}

    # -- what is lost ---------------------------------------------------------------------------

    def _start(self):
        heartbeat = {"leaseDurationSeconds": WINDOW}
        there = {"pod": on_node("node-2")}
        quick = {"pod": on_node("node-2") | {"terminationGracePeriodSeconds": 1}}
        prepares = {"pod": on_node("node-2") | {"initContainers": [{"name": "prepare", "image": "busybox:1.36"}]}}
        specs = {
            "silent": {"pod": on_node(self.dead)},
            "unready": {"pod": {"schedulerName": "nobody"}},
            "gone": {"pod": on_node(self.gone)},
            "stuck": quick | STAYS,
            "cancelled": quick | STAYS,
            "next": prepares | {"startDeadlineSeconds": WINDOW, "annotations": {"holdfast-test/start-after": "600s"}},
            "holder": there | STAYS | {"heartbeat": heartbeat},
            "granted": there | {"heartbeat": heartbeat},
            "hung": there | {"heartbeat": heartbeat | {"progressDeadlineSeconds": WINDOW}},
        }
        for node in (self.dead, self.gone):
            self.cluster.add_node(node)
        for kind, spec in specs.items():
            self.jobs.apply(job(self.names[kind], lostAfterSeconds=WINDOW, **spec))
        expect(self.cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": self.bare}}))
        self._say_ready("True")
        pod = self.jobs.wait_pod(self.names["unready"], lambda pod: True)
        bind(self.jobs, pod, self.bare)
        set_running(self.jobs, pod)
        for kind in KINDS - {"next"}:
            self.jobs.wait_running(self.names[kind])
            self.jobs.wait(self.names[kind], lambda s: place(s).get("nodeName"), 60)
        for kind in ("holder", "granted", "hung"):
            wait_for(f"the Lease of {kind}", lambda one=kind: self._holds(one, 1), 60)
            self._renew(kind)
        wait_renewals(self.cluster, (self.dead, self.gone))

    def _lose(self):
        """All at the same time."""
        self._lost("holder", lambda: self._renew("holder"))
        self._lost("hung", lambda: self._renew("hung", progress=1))
        threading.Thread(target=self._hang, daemon=True).start()
        # Its kubelet says nothing of how the container ended.
        evicted = {"phase": "Failed", "reason": "Evicted", "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]}
        self._lost("granted", lambda: set_pod_status(self.jobs, self._pod("granted"), **evicted))
        self._lost("unready", lambda: self._say_ready("Unknown"))
        self._lost("next", self._end_the_first_container)
        self._lost("stuck", lambda: delete_pod(self.jobs, self._pod("stuck")))
        self._lost("cancelled", lambda: self.jobs.patch(self.names["cancelled"], cancel=True))
        self._lost("silent", lambda: self.cluster.kill_node(self.dead))
        self._lost("gone", lambda: self.cluster.delete_node(self.gone))

    def _lost(self, kind, happens):
        happens()
        self.since[kind] = time.monotonic()

    def _pod(self, kind):
        return self.jobs.pod(self.names[kind])

    def _end_the_first_container(self):
        pod = self.jobs.wait_pod(self.names["next"], lambda pod: pod["spec"].get("nodeName"))
        began = pod["metadata"]["creationTimestamp"]
        fields = {"image": "x", "imageID": "x", "ready": False, "restartCount": 0}
        set_pod_status(
            self.jobs, pod,
            initContainerStatuses=[fields | {"name": "prepare", "state": {"terminated": {
                "exitCode": 0, "startedAt": began, "finishedAt": began}}}],
            containerStatuses=[fields | {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}])

    def _say_ready(self, status):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {"type": "Ready", "status": status, "reason": "Test", "message": "", "lastHeartbeatTime": now,
                     "lastTransitionTime": now}
        expect(self.cluster.api("PATCH", f"/api/v1/nodes/{self.bare}/status",
                                {"status": {"conditions": [condition]}}, "strategic"))

    # -- what agents do -------------------------------------------------------------------------

    def _lease_path(self, kind):
        return lease_path(self.jobs.namespace, "holdfast-" + self.jobs.get(self.names[kind])["metadata"]["uid"])

    def _holds(self, kind, attempt):
        """Whether this attempt's pod has been granted the Lease."""
        code, lease = self.cluster.api("GET", self._lease_path(kind))
        return (code == 200 and lease["spec"].get("leaseTransitions") == attempt
                and bool(lease["spec"].get("holderIdentity")))

    def _renew(self, kind, progress=0, age=0):
        """As the agent of the first attempt; False: it is not its Lease any more."""
        while self._holds(kind, 1):
            lease = expect(self.cluster.api("GET", self._lease_path(kind)))
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            body = renewed(lease, now, progress=str(progress), age=str(age))
            code, answer = self.cluster.api("PUT", self._lease_path(kind), body)
            if code != 409:
                expect((code, answer))
                return True
        return False

    def _hang(self):
        while not self._over.wait(RENEWAL):
            if not self._renew("hung", progress=1, age=int(time.monotonic() - self.since["hung"])):
                return


def seconds_until_found(cluster, victims):
    """({kind: seconds from its loss until it was found}, how the attempts ended), while one operator after the
    other is killed; the first of `victims` is it again after the last."""
    when, victims = {}, itertools.cycle(victims)
    with Orphans(cluster) as orphans:
        began = killed = time.monotonic()
        while len(when) < len(KINDS) and time.monotonic() - began < 2 * COUNTED:
            if time.monotonic() - killed >= LIFE:
                victim = next(victims)
                victim.kill()
                victim.spawn()
                killed = time.monotonic()
            for kind in orphans.found() - set(when):
                when[kind] = round(time.monotonic() - orphans.since[kind], 1)
            time.sleep(0.2)
        return when, orphans.outcomes()


def check_found_in_time(when, outcomes):
    print("seconds until each was found:", when)
    assert set(when) == KINDS, when
    late = {kind: seconds for kind, seconds in when.items() if seconds > BOUND[kind] + NOISE}
    assert not late, when
    expected = dict.fromkeys(KINDS, "Lost") | {"next": "StartTimeout", "hung": "Hung", "cancelled": "Cancelled"}
    assert outcomes == expected
