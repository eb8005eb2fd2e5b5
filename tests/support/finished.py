"""Very many finished DurableJobs with their pods, in a minute.

    copy_finished(cluster, jobs, "job-1000000", [f"job-{number}" for number in range(1_000_001, 1_100_000)])
"""

from localcluster import wait_for

LIMIT = 600


def copy_finished(cluster, jobs, name, names):
    """Copies a job that has ended and its only pod in etcd, where the API server would take 13 minutes for
    50,000. Returns when the API server's caches have the copies. All names are of one length."""
    pod = next(pod["metadata"] for pod in jobs.pods() if pod["metadata"]["name"].startswith(f"{name}-"))
    cluster.copy_in_etcd([f"/registry/holdfast.dev/durablejobs/{jobs.namespace}/{name}",
                          f"/registry/pods/{jobs.namespace}/{pod['name']}"],
                         [jobs.get(name)["metadata"]["uid"], pod["uid"]], name, names)
    for path in (f"{jobs.path}/{names[-1]}", f"{jobs.pods_path}/{pod['name'].replace(name, names[-1])}"):
        # At version 0 the API server answers from its cache.
        wait_for(f"the API server to have {path}",
                 lambda path=path: cluster.api("GET", f"{path}?resourceVersion=0")[0] == 200, LIMIT, poll=1)
