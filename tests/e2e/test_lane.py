"""A worker dies that has an operator, a batch/v1 Job with the one line of docs/lane.md, the same Job without it, and a
Job of a Kueue queue. Meanwhile a CronJob and the queue go on. All of it is one death, of six minutes."""

import collections
import datetime
import json
import time

import pytest

from conftest import NOISE, ROOT, VALUES
from invariants import violations
from kueue import QUEUE
from lane import MANAGER, BatchJobs
from lane_record import admissions, gap, has_ended, most_admitted, runs_of, scheduled
from localcluster import wait_for
from real_jobs import POD_SECURITY, container, on, sleeps
from real_kueue import RealKueue
from real_record import WatchRecorder

NAMESPACE = "lane"
RECORD = ROOT / "build/e2e/lane.json"
# Longer than Kubernetes takes to mark the node: the next pod does not land on it.
PATIENT, RECONCILE = 60, 1
# A pod is scheduled, and its container starts.
START = 5
FASTER = 5
QUOTA, QUEUED = 2, 8
KUBERNETES_LIMIT = 600
BATCH = f"/apis/batch/v1/namespaces/{NAMESPACE}"


def job_spec(cluster, seconds, pod=None, **spec):
    """Of a batch/v1 Job whose pod sleeps."""
    main = container(cluster, sleeps(seconds), resources={"requests": {"cpu": "10m"}})
    return {"template": {"spec": {"restartPolicy": "Never", "securityContext": POD_SECURITY,
                                  "terminationGracePeriodSeconds": 2, "containers": [main], **(pod or {})}}, **spec}


def metadata(**more):
    return {"annotations": {"holdfast.dev/lostAfterSeconds": str(PATIENT)}, **more}


def batch_job(name, spec, **more):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(name=name, **more), "spec": spec}


def queued(cluster, number, pod=None):
    return batch_job(f"queued-{number}", job_spec(cluster, 45, pod, managedBy=MANAGER), labels={QUEUE: "team"})


def each_minute(cluster):
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": {
        "schedule": "* * * * *", "successfulJobsHistoryLimit": 100, "failedJobsHistoryLimit": 100,
        "jobTemplate": {"metadata": metadata(), "spec": job_spec(cluster, 10, managedBy=MANAGER)}}}


@pytest.fixture(scope="module")
def kueue(cluster, nodes):
    with RealKueue(cluster) as kueue:
        kueue.flavor("linux", {"kubernetes.io/os": "linux"})
        kueue.cluster_queue("team", {"linux": {"cpu": f"{10 * QUOTA}m"}})
        yield kueue


@pytest.fixture(scope="module")
def batch(cluster, kueue):
    """The Jobs of a namespace that has a LocalQueue, on a cluster where Holdfast runs Jobs."""
    cluster.install(*VALUES, "--set", "batchJobs.enabled=true")
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {
        "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    wait_for("its service account", lambda: cluster.api(
        "GET", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default")[0] == 200, 120)
    kueue.local_queue(NAMESPACE, "team", "team")
    yield BatchJobs(cluster, NAMESPACE)
    try:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=150s")
    finally:
        cluster.install(*VALUES)


def wait_running(batch, name, node):
    """Until its pod runs there, and Holdfast has recorded where."""
    def runs():
        return any(pod["status"].get("phase") == "Running" and pod["spec"]["nodeName"] == node
                   for pod in batch.pods(name))

    wait_for(f"Job {name} to run on {node}", runs, 90)
    if batch.get(name)["spec"].get("managedBy") == MANAGER:
        batch.wait_durable(name, lambda durable: any(
            run.get("nodeName") for run in durable.get("status", {}).get("runs", [])))


def set_the_scene(cluster, batch, victim, other):
    """An operator, `line`, `plain` and `queued-1` on the victim, `queued-2` on the other node."""
    cluster.spread_operators()
    cluster.kubectl("cordon", other)
    try:
        plain = job_spec(cluster, 60)
        batch.apply(batch_job("plain", plain))
        batch.apply(batch_job("line", plain | {"managedBy": MANAGER}))
        batch.apply(queued(cluster, 1))
        for name in ("plain", "line", "queued-1"):
            wait_running(batch, name, victim)
    finally:
        cluster.kubectl("uncordon", other)
    batch.api("POST", f"{BATCH}/cronjobs", each_minute(cluster))
    batch.apply(queued(cluster, 2, on(other)))
    wait_running(batch, "queued-2", other)
    for number in range(3, QUEUED + 1):
        batch.apply(queued(cluster, number))


def wait_until_all_go_on(batch, record, victim):
    """Until Kubernetes has replaced the plain Job's pod, and all other Jobs have ended."""
    def runs_again():
        return any(pod["status"].get("phase") == "Running" and pod["spec"]["nodeName"] != victim
                   for pod in batch.pods("plain"))

    wait_for("the plain Job to run again", runs_again, KUBERNETES_LIMIT, poll=0.5)
    batch.api("PATCH", f"{BATCH}/cronjobs/tick", {"spec": {"suspend": True}}, content_type="merge")
    wait_for("the Jobs of Holdfast to end", lambda: all(
        has_ended(job) for job in batch.api("GET", batch.path)["items"] if job["metadata"]["name"] != "plain"),
        KUBERNETES_LIMIT, poll=0.5)
    wait_for("the record to be complete", record._is_complete, 60, poll=0.5)


# pods, batch, durable: {uid: versions}; death: time.monotonic() and time.time() when `victim` died.
Story = collections.namedtuple("Story", "victim death wall pods batch durable end")


@pytest.fixture(scope="module")
def story(cluster, nodes, batch):
    """All versions of the Jobs, DurableJobs and pods."""
    victim, other = nodes
    with WatchRecorder(cluster, NAMESPACE, batch=batch.path) as record:
        set_the_scene(cluster, batch, victim, other)
        death, wall = time.monotonic(), time.time()
        with cluster.lost(victim, "kill", "start"):
            wait_until_all_go_on(batch, record, victim)
            return Story(victim, death, wall, *map(record.versions, ("pod", "batch", "job")),
                         round(time.monotonic() - death, 1))


def runs(story, name):
    return runs_of(story.pods, name, story.death, story.victim)


def jobs(story, prefix):
    """{name: versions} of these Jobs."""
    return {versions[0].name: versions for versions in story.batch.values() if versions[0].name.startswith(prefix)}


def ticks(story):
    """[(when the CronJob had to create it, its runs, its versions)] of each Job of the CronJob; the first one first."""
    return sorted((round(scheduled(versions[0].object) - story.wall, 1), runs(story, name), versions)
                  for name, versions in jobs(story, "tick-").items())


def completed(versions):
    return any(condition["type"] == "Complete" and condition["status"] == "True"
               for condition in versions[-1].object["status"].get("conditions", []))


def budgets(story, name):
    """(failures, disruptions) of this Job's DurableJob."""
    [status] = [versions[-1].object["status"] for versions in story.durable.values()
                if versions[-1].object["metadata"]["ownerReferences"][0]["name"] == name]
    return status.get("failures", 0), status.get("disruptions", 0)


def test_a_job_with_the_line_survives_its_nodes_death_five_times_faster(cluster, story):
    assert {runs(story, name)[0].node for name in ("line", "plain")} == {story.victim}
    line, plain = gap(runs(story, "line")), gap(runs(story, "plain"))
    assert line <= PATIENT + RECONCILE + START + NOISE, cluster.operators_said(story.end)
    assert plain >= FASTER * line, f"{plain} s without the line, {line} s with it"
    assert completed(jobs(story, "line")["line"]) and budgets(story, "line") == (0, 1)


def test_a_cronjob_of_such_jobs_ticks_through_the_death_of_an_operators_node(story):
    found = ticks(story)
    times = [at for at, _, _ in found]
    assert {round(after - before) for before, after in zip(times, times[1:])} == {60}, times
    assert len([at for at in times if at > 0]) >= story.end // 60 - 2, times
    for at, ran, versions in found:
        assert completed(versions), versions[-1].object
        assert ran[-1].start - at <= PATIENT + RECONCILE + START + NOISE, (at, ran)


def test_a_kueue_queue_of_them_keeps_its_quota(story):
    queue = jobs(story, "queued-")
    assert len(queue) == QUEUED and all(map(completed, queue.values()))
    assert most_admitted(queue) == QUOTA
    # The Job of the dead node was admitted once: the quota was its own until it had ended elsewhere.
    assert len(admissions(queue["queued-1"], story.death)) == 1
    first, *_, last = runs(story, "queued-1")
    assert first.node == story.victim != last.node and budgets(story, "queued-1") == (0, 1)
    assert all(budgets(story, name)[0] == 0 for name in queue)


def test_no_invariant_was_broken(story):
    ours = {uid: versions for uid, versions in story.pods.items()
            if versions[0].object["metadata"]["ownerReferences"][0]["kind"] == "DurableJob"}
    broken = violations(story.durable, ours)
    assert not broken, "\n".join(broken[:40])


def test_the_record_of_the_picture_is_complete(cluster, story):
    """The last of this file: hack/pictures/lane draws it."""
    def told(ran):
        return [run._asdict() | {"node": "dead" if run.node == story.victim else "other"} for run in ran]

    record = {
        "date": datetime.date.today().isoformat(), "kubernetes": cluster.api("GET", "/version")[1]["gitVersion"],
        "lostAfterSeconds": PATIENT, "quota": QUOTA, "end": story.end,
        "jobs": {name: told(runs(story, name)) for name in ("line", "plain")},
        "ticks": [{"at": at, "runs": told(ran)} for at, ran, _ in ticks(story)],
        "queue": [{"name": name, "admitted": admissions(versions, story.death), "runs": told(runs(story, name))}
                  for name, versions in sorted(jobs(story, "queued-").items())]}
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    assert len(record["jobs"]["line"]) == len(record["jobs"]["plain"]) == 2
