"""helm uninstall with jobs running, and what becomes of them when Holdfast is installed again."""

from conftest import VALUES
from holdfast import FINALIZER
from localcluster import wait_for
from real_jobs import dump, end_of, shell_job, sleeps

JOBS = 20


def held(cluster):
    """The pods of the cluster that wait for the operator to let them go."""
    return [pod["metadata"]["name"] for pod in cluster.api("GET", "/api/v1/pods")[1]["items"]
            if FINALIZER in pod["metadata"].get("finalizers", [])]


def test_after_uninstall_nothing_hangs_and_after_install_the_jobs_go_on(cluster, jobs):
    cluster.await_operators()
    short, long = ([f"{kind}-{number}" for number in range(JOBS // 2)] for kind in ("short", "long"))
    for name in short:
        jobs.apply(shell_job(cluster, name, sleeps(75)))
    for name in long:
        jobs.apply(shell_job(cluster, name, sleeps(180)))
    for name in short + long:
        jobs.wait_running(name, limit=120)
    # A namespace that is deleted while there is no operator.
    doomed = "doomed"
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": doomed}})
    wait_for("its service account", lambda: cluster.api(
        "GET", f"/api/v1/namespaces/{doomed}/serviceaccounts/default")[0] == 200, 120)
    cluster.api("POST", f"/apis/holdfast.dev/v1alpha1/namespaces/{doomed}/durablejobs",
                shell_job(cluster, "gone", sleeps(1000)))
    wait_for("its pod", lambda: cluster.api("GET", f"/api/v1/namespaces/{doomed}/pods")[1]["items"], 60)

    # Of other tests' namespaces some may not be gone yet.
    assert len(held(cluster)) >= JOBS + 1
    cluster.uninstall()
    assert not held(cluster)
    kinds = "pods,jobs,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
    wait_for("nothing to be left of the release", lambda: cluster.kubectl(
        "get", kinds, "-A", "-l", "app.kubernetes.io/name=holdfast", "-o", "name").stdout == "", 60)
    cluster.kubectl("delete", "namespace", doomed, "--timeout=120s")
    for name in short:  # nobody records it yet
        wait_for(f"the pod of {name} to end", lambda: jobs.pod(name)["status"]["phase"] == "Succeeded", 180)

    cluster.install(*VALUES)
    for name in short + long:
        status = end_of(jobs, name, limit=240)
        assert (status["phase"], status["attempt"], status.get("disruptions", 0)) == (
            "Succeeded", 1, 0), f"{name}: {dump(status)}"
