"""Crash points on a real API server: a sample of (job's request, mishap), each on a job of its own, many
jobs in flight. The simulator tries all of them (tests/simulation/crash_test.cc); this shows that the
real API server and the real network are as it takes them to be.

HOLDFAST_SEED chooses another sample; what the machine's scheduler does is not repeated with it.
"""

import collections
import os
import random
import threading
import time

import pytest

from chaos import await_work, lapses, unexplained
from fault_proxy import FAULTS, KILLS, Fault, FaultProxy
from holdfast import OPERATOR_USER, Operator, job, place, runs
from invariants import violations
from localcluster import wait_for
from record import STORE_AS_JSON, TERMINAL, Recorder

pytestmark = pytest.mark.long

CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}
# Of a sample some do not come to pass: a kill takes away the request that was to be hit.
MISHAPS = 120
CRASHES = 18
LEAST_FIRED = 100
IN_FLIGHT = 30
END_LIMIT = 300
NEVER_CREATED = "PodNeverCreated"
# Not the quickest: what the proxy holds up, and a busy machine, must not make the operator lapse. Few
# shards, because each is taken over by a request.
LEASES = ["--lease-duration=3s", "--renew-deadline=2500ms", "--retry-period=400ms", "--shards=8"]

# Which requests about a job of this kind there are: (method, resource) and how many at least.
REQUESTS = {
    "run": {("PUT", "durablejobs.status"): 2, ("POST", "pods"): 1, ("PATCH", "pods"): 1},
    "retry": {("PUT", "durablejobs.status"): 4, ("POST", "pods"): 2, ("PATCH", "pods"): 2},
    "lost": {("PUT", "durablejobs.status"): 4, ("POST", "pods"): 2, ("PATCH", "pods"): 2},
    "cancel": {("PUT", "durablejobs.status"): 3, ("POST", "pods"): 1, ("GET", "pods"): 1,
               ("GET", "durablejobs"): 1, ("DELETE", "pods"): 1, ("PATCH", "pods"): 1},
    "suspend": {("PUT", "durablejobs.status"): 5, ("POST", "pods"): 2, ("GET", "pods"): 1,
                ("DELETE", "pods"): 1, ("PATCH", "pods"): 2},
    "delete": {("PUT", "durablejobs.status"): 1, ("POST", "pods"): 1, ("PATCH", "pods"): 1},
}
# How such a job ends: its phase, and how its attempts did.
ENDS = {
    "run": ("Succeeded", ["Succeeded"]),
    "retry": ("Succeeded", ["Failed", "Succeeded"]),
    "lost": ("Succeeded", ["Lost", "Succeeded"]),
    "cancel": ("Cancelled", ["Cancelled"]),
    "suspend": ("Succeeded", ["Suspended", "Succeeded"]),
}


def sample(rng):
    """[(job's kind, method, resource, nth, mishap)] in the order in which the jobs are applied."""
    points = [(kind, *request, nth) for kind, requests in REQUESTS.items()
              for request, count in requests.items() for nth in range(1, count + 1)]
    drawn = [(*rng.choice(points), KILLS[i % len(KILLS)]) for i in range(CRASHES)]
    while len(drawn) < MISHAPS:
        point = rng.choice(points)
        fault = FAULTS[len(drawn) % len(FAULTS)]
        if not (fault.startswith("duplicate") and point[1] == "GET"):
            drawn.append((*point, fault))
    rng.shuffle(drawn)
    return drawn


def body_of(name, kind):
    pod = {"terminationGracePeriodSeconds": 1}
    spec = {"retryBackoff": {"initialSeconds": 1, "factor": 1, "maxSeconds": 1}, "backoffLimit": 3,
            "lostAfterSeconds": 15}
    # The others run until this test has done to them what it does, and ends them.
    annotations = {"run": runs(0), "retry": {"holdfast-test/run-for": "0s"}}.get(kind)
    if kind == "retry":
        annotations["holdfast-test/exit-code"] = "1,0"
    return job(name, annotations=annotations, pod=pod, **spec)


class Sight(Recorder):
    """Also tells what a pod looks like now."""

    def pod(self, name):
        with self._grown:
            version = self._latest.get(("pod", name))
        return None if version is None or version.deleted else version.object


class Doer(threading.Thread):
    """Applies the jobs, so that always some are in flight, and does to each what its kind calls for
    when its time has come: users and kubelets."""

    def __init__(self, jobs, record, bodies):
        super().__init__(daemon=True)
        self._jobs, self._record = jobs, record
        self._waiting = list(bodies.items())  # (kind, body) by name
        self._busy = {}  # kind by name
        self._done = collections.Counter()  # steps by job
        self.stopping = False
        self.deleted = set()
        self.error = None

    @property
    def finished(self):
        return not self._waiting and not self._busy

    def busy(self):
        return list(self._busy)

    def run(self):
        try:
            while not self.stopping and not self.finished:
                while self._waiting and len(self._busy) < IN_FLIGHT:
                    name, (kind, body) = self._waiting.pop(0)
                    self._jobs.apply(body)
                    self._busy[name] = kind
                for name, kind in list(self._busy.items()):
                    self._look(name, kind)
                time.sleep(0.1)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _look(self, name, kind):
        status = self._record.status(name)
        if status.get("phase") in TERMINAL or name in self.deleted:
            self._busy.pop(name)
            return
        pod = self._record.pod(place(status).get("podName"))
        if status.get("phase") != "Running" or not pod or pod["status"].get("phase") != "Running":
            pod = None
        if kind == "suspend" and self._done[name] == 1 and status.get("phase") == "Suspended":
            self._jobs.patch(name, suspend=False)
        elif kind in ("run", "retry") or not pod or pod["metadata"].get("deletionTimestamp"):
            return
        elif self._done[name] == 0:
            self._disturb(name, kind, pod)
        elif kind in ("lost", "suspend") and any(
                entry.get("reason") != NEVER_CREATED for entry in status.get("history", [])):
            # Not the pod that was disturbed: the one after it.
            self._jobs.end_pod(pod)
        else:
            return
        self._done[name] += 1

    def _disturb(self, name, kind, pod):
        if kind == "lost":
            self._jobs.api("DELETE", f"{self._jobs.pods_path}/{pod['metadata']['name']}")
        elif kind == "cancel":
            self._jobs.patch(name, cancel=True)
        elif kind == "suspend":
            self._jobs.patch(name, suspend=True)
        else:
            self._jobs.delete(name)
            self.deleted.add(name)


class Restarter:
    """Kills the operator when the proxy says so, and starts the next one. On a thread of its own,
    with which the operator ends that it started."""

    def __init__(self, cluster):
        self.proxy = FaultProxy(cluster, OPERATOR_USER, self._kill)
        self.operator = None
        self.kills = []
        self._killed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.stopping = False
        self.error = None

    def start(self, cluster):
        self.operator = Operator(cluster, kubeconfig=self.proxy.kubeconfig(), leases=LEASES, name="crashing")
        self.operator.start()
        await_work(self.operator)
        self._thread.start()

    def stop(self):
        self.stopping = True
        self._thread.join(timeout=10)
        self.operator.kill()

    def _kill(self, _fault):
        self.operator.kill()
        self.kills.append((self.operator.name, time.monotonic()))
        self._killed.set()

    def _run(self):
        try:
            while not self.stopping:
                if not self._killed.wait(0.2):
                    continue
                self._killed.clear()
                self.operator.kill()
                self.proxy.resume()
                self.operator.spawn()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


def ended_as_it_should(name, kind, status):
    """What is wrong with the end of a job, or None."""
    phase, outcomes = ENDS[kind]
    history = status.get("history", [])
    told = [entry["outcome"] for entry in history if entry.get("reason") != NEVER_CREATED]
    never = len(history) - len(told)
    # Whose codes go by attempt succeeds at once when its first attempt never had a pod.
    if kind == "retry" and never and told == ["Succeeded"]:
        outcomes = told
    failures, lost = outcomes.count("Failed"), outcomes.count("Lost")
    spent = (status.get("failures", 0), status.get("disruptions", 0))
    if status.get("phase") != phase or told != outcomes:
        return (f"{name} ended {status.get('phase')} after {told}, not {phase} after {outcomes}: "
                f"{history}")
    if spent != (failures, lost + never):
        return f"S8 Budget: {name} spent {spent} for {failures} failures, {lost} losses, {never} lost intents"
    if status.get("attempt") != len(history):
        return f"S8 Budget: {name} is at attempt {status.get('attempt')} after {len(history)} ends"
    return None


def judge(jobs, record, kinds, doer, kills, copied):
    """All that is wrong, one line each. `copied`: the jobs a pod's creation of which the network
    delivered once more later."""
    wrong = []
    for name, kind in kinds.items():
        if kind != "delete":
            fault = ended_as_it_should(name, kind, record.status(name))
            wrong += [fault] if fault else []
        # What the pods say of it.
        wrong += [f"  {pod['metadata']} {pod['status'].get('containerStatuses')}"
                  for pod in (jobs.pods(name) if fault else [])]
    every, pods = record.versions("job"), record.versions("pod")
    kept = {uid: versions for uid, versions in every.items() if kinds[versions[0].name] != "delete"}
    theirs = {uid: versions for uid, versions in pods.items()
              if versions[0].object["metadata"]["ownerReferences"][0]["uid"] in kept}
    # A copy that arrives when the pod has come and gone makes it anew; it is fenced, and L5 below says
    # that it goes.
    wrong += [line for line in violations(kept, theirs) if not (
        line.startswith("S6 OnePod: attempt") and any(f"(job {name})" in line for name in copied))]
    wrong += [f"S8 Budget: attempt {attempt} of {name} was lost, and no kill explains it"
              for name, attempt in unexplained(record, kills)]
    left = {pod["metadata"]["name"] for pod in jobs.pods() if pod["status"].get("phase") not in ("Succeeded", "Failed")}
    wrong += [f"L5: pod {name} still runs" for name in sorted(left)]
    wrong += [f"L5: {name} was deleted and is there" for name in doer.deleted if jobs.get(name)]
    return wrong


def table(faults, fired):
    """Points by mishap and by request, and how many of each were tried."""
    tried, happened = collections.Counter(), collections.Counter()
    for fault in faults:
        for key in (fault.kind, " ".join(fault.key[1:])):
            tried[key] += 1
            happened[key] += fault in fired
    return "\n".join(f"  {key:28} {happened[key]:3} of {tried[key]:3}" for key in sorted(tried))


def test_a_hundred_crash_points_on_a_real_api_server_end_as_they_should(cluster, jobs):
    seed = int(os.environ.get("HOLDFAST_SEED", 1))
    print(f"crash points: HOLDFAST_SEED={seed}")
    points = sample(random.Random(seed))
    kinds = {f"{point[0]}-{number}": point[0] for number, point in enumerate(points)}
    faults = [Fault(mishap, name, method, resource, nth)
              for name, (_, method, resource, nth, mishap) in zip(kinds, points)]
    restarter = Restarter(cluster)
    with Sight(cluster, jobs.namespace) as record, restarter.proxy as proxy:
        for fault in faults:
            proxy.add(fault)
        doer = Doer(jobs, record, {name: (kind, body_of(name, kind)) for name, kind in kinds.items()})
        try:
            restarter.start(cluster)
            doer.start()
            wait_for("all jobs to have been applied and to end",
                     lambda: doer.finished or doer.error or restarter.error, END_LIMIT)
            assert (doer.error, restarter.error) == (None, None)
            record.wait_ended([n for n, kind in kinds.items() if kind != "delete"], END_LIMIT)
            wait_for("the deleted jobs and their pods to be gone",
                     lambda: not {pod["metadata"]["labels"]["holdfast.dev/job-name"]
                                  for pod in jobs.pods()} & doer.deleted, 60)
            await_work(restarter.operator)
            wait_for("the operator to have nothing to do", lambda: not restarter.operator.metric("workqueue_depth"), 60)
        finally:
            for name in ([] if doer.finished else doer.busy()):
                print(f"  {name} has not ended: {record.status(name)}")
            doer.stopping = True
            fired = proxy.fired()
            print(table(faults, fired))
            print(f"{len(fired)} of {len(faults)} points fired, {len(restarter.kills)} kills, "
                  f"{len(lapses([restarter.operator]))} lapses, "
                  f"{proxy.requests} requests, {record.size()} versions")
            restarter.stop()
        assert (doer.error, restarter.error, proxy.errors) == (None, None, [])
        copied = {fault.key[0] for fault in fired
                  if (fault.kind, fault.key[1:]) == ("duplicate-late", ("POST", "pods"))}
        wrong = judge(jobs, record, kinds, doer, restarter.kills + lapses([restarter.operator]), copied)
        if wrong:
            pytest.fail(f"{len(wrong)} violations:\n" + "\n".join(wrong[:40]), pytrace=False)
    assert len(fired) >= LEAST_FIRED
