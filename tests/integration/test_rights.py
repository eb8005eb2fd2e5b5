"""Least privilege: what the chart grants the operator is what it uses, each verb of each resource.

One story that makes it use all of its rights, and then the API server's audit log. What it asks for
and has no right to is looked for after every file's tests, in conftest.py."""

from fence import install_fence
from holdfast import GUARD_PATH, QUICK_LEASES, Jobs, Operator, job, remove_guard, runs, wait_for_guard
from lane import LANE, BatchJobs, batch_job
from localcluster import wait_for
from others import LABEL, other_job, wait_running
from pools import Pools, pool
from queues import Queues, queue
from rights import granted

AGENT = "holdfast-operator"
LOST_AFTER = 15


def unused(asked):
    """Of what is granted. A right of a ClusterRole is used where no Role would do."""
    rights = granted()
    own = {right for right in rights if right[3]}

    def used(right):
        if right[3]:
            return right in asked
        return any(which[:3] == right[:3] and which not in own for which in asked)

    return sorted(right for right in rights if not used(right))


def ordinary_troubles(jobs):
    """A job that is deleted when it has ended, one that fails, and one whose template is invalid."""
    jobs.apply(job("deleted", annotations=runs(0), ttlSecondsAfterFinished=1))
    jobs.apply(job("fails", annotations=runs(0, 1), backoffLimit=0))
    jobs.wait_phase("fails", "Failed", limit=60)
    mount = {"name": "nothing", "mountPath": "/data"}
    jobs.apply(job("invalid", pod={"containers": [{"name": "main", "image": "x", "volumeMounts": [mount]}]}))
    jobs.wait_phase("invalid", "Failed", limit=60)
    wait_for("the finished job to be deleted", lambda: jobs.get("deleted") is None, 60)


def hand_over(jobs):
    """A heartbeat whose Lease is made for one attempt and given to the next; then the job is cancelled."""
    jobs.apply(job("beats", heartbeat={"leaseDurationSeconds": 10}))
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{jobs.namespace}/leases"

    def holder():
        return next((lease["spec"].get("holderIdentity") for lease in jobs.api("GET", leases)["items"]), None)

    wait_for("the Lease to be granted", holder, 60)
    first = holder()
    jobs.api("DELETE", f"{jobs.pods_path}/{first.partition('/')[0]}")
    wait_for("the Lease to be taken", lambda: holder() != first, 60)
    jobs.patch("beats", cancel=True)
    jobs.wait_phase("beats", "Cancelled", limit=60)


def end_run(jobs):
    """Each run of a job with many has a Lease of its own, which is deleted when the run is over."""
    jobs.apply(job("parts", completions=2, heartbeat={"leaseDurationSeconds": 10}))
    name = f"holdfast-{jobs.get('parts')['metadata']['uid']}-0"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{jobs.namespace}/leases"

    def is_there():
        return any(lease["metadata"]["name"] == name for lease in jobs.api("GET", leases)["items"])

    wait_for("the first run to have its Lease", is_there, 60)
    jobs.patch("parts", cancel=True)
    wait_for("the Lease to be deleted", lambda: not is_there(), 60)


def take_turns(cluster, jobs):
    """A queue whose metadata is too long for the operator's cache is read live before its status is written."""
    notes = {"example.com/notes": "x" * 100_000}
    body = queue("turns", concurrency=1)
    body["metadata"]["annotations"] = notes
    Queues(cluster, jobs.namespace).apply(body)
    jobs.apply(job("queued", annotations=runs(0), queue={"name": "turns"}))
    jobs.wait_phase("queued", "Succeeded", limit=60)


def keep_warm(cluster, jobs):
    """A pool whose metadata is too long for the cache, too."""
    body = pool("warm")
    body["metadata"]["annotations"] = {"example.com/notes": "x" * 100_000}
    jobs.api("POST", Pools(cluster, jobs.namespace).path, body)
    Pools(cluster, jobs.namespace).wait("warm", "its first worker", lambda status: status.get("starting") == 1)


def run_batch_jobs(cluster, namespace):
    """A batch/v1 Job that is too long for the cache is read live; one that is suspended changes its DurableJob."""
    batch = BatchJobs(cluster, namespace)
    batch.apply(batch_job("lane", fields={"example.com/notes": "x" * 100_000}))
    batch.wait("lane", "active", lambda status: status.get("active") == 1)
    batch.patch("lane", {"spec": {"suspend": True}})
    batch.wait_condition("lane", "Suspended")


def lose_node(cluster, jobs):
    """Its Lease and its object are read live before the verdict. A pod of another controller is there, too."""
    jobs.apply(job("moves", lostAfterSeconds=LOST_AFTER, annotations=runs(300)))
    node = jobs.wait_running("moves")["spec"]["nodeName"]
    others = BatchJobs(cluster, jobs.namespace)
    others.apply(other_job("rescued", LABEL, pod={"nodeName": node}, backoffLimit=0))
    wait_running(others, "rescued")
    cluster.kill_node(node)
    jobs.wait("moves", lambda status: status.get("attempt") == 2, 120)


def refuse_pods(jobs):
    """The same Event again and again: a series, which the next replica reads and goes on with."""
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    jobs.api("POST", f"/api/v1/namespaces/{jobs.namespace}/resourcequotas", quota)
    jobs.apply(job("refused"))

    def is_told():
        # Not "status unknown for quota": that is the answer while the quota is new. The next replica
        # gets another one, which would be another Event.
        return any("exceeded quota" in event["note"] for event in jobs.events("refused"))

    wait_for("the refusal to be told", is_told, 60)


def miss_guard(cluster):
    """It is told in the operator's own namespace, once for each look that misses it."""
    remove_guard(cluster)
    events = "/apis/events.k8s.io/v1/namespaces/holdfast-system/events"
    wait_for("the missing guard to be told", lambda: any(
        event["reason"] == "GuardMissing" for event in cluster.api("GET", events)[1]["items"]), 60)


EVENT_READ = ("events.k8s.io", "events", "get", "")


def test_every_right_that_is_granted_is_used(cluster, namespace):
    install_fence(cluster, ["default"])
    missing = []

    def all_used():
        # A list that the API server denies while it starts may be a stream when it is there.
        missing[:] = unused(set.union(*cluster.audit_rights(AGENT)))
        return not missing

    flags = ("--agent-image=holdfast:test", "--require-guard=true", "--rescue=on", *LANE)
    with Operator(cluster, *flags, leases=QUICK_LEASES) as first:
        ordinary_troubles(Jobs(cluster))
        hand_over(Jobs(cluster))
        end_run(Jobs(cluster))
        take_turns(cluster, Jobs(cluster))
        keep_warm(cluster, Jobs(cluster))
        run_batch_jobs(cluster, namespace)
        lose_node(cluster, Jobs(cluster))
        refuse_pods(Jobs(cluster, namespace))
        miss_guard(cluster)
        first.kill()
    # Takes the shards of a dead replica over, and sees the API server go away: then it lists.
    with Operator(cluster, *flags, leases=QUICK_LEASES):
        # While the API server is new it refuses for another reason, which would be another Event.
        wait_for("the Event of the refusal to be read", lambda: EVENT_READ not in unused(
            set.union(*cluster.audit_rights(AGENT))), 120)
        cluster.kill_apiserver()
        cluster.start_apiserver()
        try:
            wait_for("all rights to be used", all_used, 180)
        except Exception as error:
            raise AssertionError(f"granted and never used (group, resource, verb, namespace): {missing}") from error
        finally:
            cluster.kubectl("apply", "-f", str(GUARD_PATH))
            wait_for_guard(cluster)
