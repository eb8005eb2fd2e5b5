"""A replica watches the jobs, pods and Leases of its own shards, and those of a dead replica once it takes over."""

from holdfast import QUICK_LEASES, Jobs, job
from localcluster import wait_for
from replicas import SHARDS, Replicas, holders, shard_of

JOBS = 24
LABEL = "holdfast.dev/shard"


def leases(jobs):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{jobs.namespace}/leases"
    return jobs.api("GET", f"{path}?labelSelector=holdfast.dev/job-uid")["items"]


def cached(operator):
    """How many jobs, and as many pods and Leases of heartbeats; else None."""
    numbers = {operator.metric("holdfast_cache_objects", kind=kind) for kind in ("durablejobs", "pods", "job-leases")}
    return numbers.pop() if len(numbers) == 1 else None


def test_a_replica_caches_what_belongs_to_its_shards_and_to_those_that_it_takes_over(cluster):
    jobs = Jobs(cluster)  # of the namespace where the operator may make Leases
    with Replicas(cluster, 2, "--agent-image=holdfast:test", leases=QUICK_LEASES) as replicas:
        replicas.wait_shared()
        for number in range(JOBS):
            jobs.apply(job(f"job-{number}", lostAfterSeconds=600, heartbeat={"leaseDurationSeconds": 600}))
        wait_for("all Leases to be granted", lambda: sum(
            "holderIdentity" in lease["spec"] for lease in leases(jobs)) == JOBS, 120)
        shards = {item["metadata"]["uid"]: shard_of(item["metadata"]["uid"]) for item in jobs.list()}
        for item in jobs.list():
            assert item["status"]["shard"] == f"{shards[item['metadata']['uid']]}-of-{SHARDS}"
        for pod in jobs.pods():
            shard = shards[pod["metadata"]["ownerReferences"][0]["uid"]]
            assert pod["metadata"]["labels"][LABEL] == f"{shard}-of-{SHARDS}"
        for lease in leases(jobs):
            shard = shards[lease["metadata"]["ownerReferences"][0]["uid"]]
            assert lease["metadata"]["labels"][LABEL] == f"{shard}-of-{SHARDS}"
        held = holders(cluster)
        names = {operator.name: [shard for shard in held if held[shard] == operator.name] for operator in replicas}
        # The one that began alone still has all of them, for a minute.
        wait_for("the later replica to cache what is its own alone", lambda: any(
            cached(operator) == sum(shard in names[operator.name] for shard in shards.values()) < JOBS
            for operator in replicas), 30)

        # A pod that its label hides from its job's replica is found again, and nothing is lost.
        hidden = jobs.pods()[0]
        uid = hidden["metadata"]["ownerReferences"][0]["uid"]
        other = next(shard for operator in replicas if shards[uid] not in names[operator.name]
                     for shard in names[operator.name])
        path = f"{jobs.pods_path}/{hidden['metadata']['name']}"
        jobs.api("PATCH", path, {"metadata": {"labels": {LABEL: f"{other}-of-{SHARDS}"}}}, content_type="merge")
        wait_for("its label to be back", lambda: jobs.api("GET", path)["metadata"]["labels"][LABEL] ==
                 f"{shards[uid]}-of-{SHARDS}", 60)

        replicas[0].kill()
        wait_for("the other to cache all", lambda: cached(replicas[1]) == JOBS, 60)
        assert [item["status"]["attempt"] for item in jobs.list()] == [1] * JOBS
        for pod in jobs.pods():
            jobs.api("DELETE", f"{jobs.pods_path}/{pod['metadata']['name']}")
        wait_for("each job to have its next attempt", lambda: all(
            item["status"]["attempt"] == 2 for item in jobs.list()), 120)
