"""The chart is upgraded, and rolled back, while a hundred jobs run."""

from conftest import VALUES
from real_cluster import RELEASE, SYSTEM
from real_jobs import dump, end_of, shell_job

JOBS = 100
# A node that starts a hundred containers at once may give one up (StartError), which is a failed attempt.
AT_ONCE = 20
# They end while replicas change: long enough that nearly all of them run when the upgrade begins.
SCRIPT = "trap 'exit 143' TERM; sleep $((180 + NUMBER % 30)) & wait $!"


def spent(status):
    return status["attempt"], status.get("failures", 0), status.get("disruptions", 0)


def test_a_rolling_upgrade_and_a_rollback_during_100_running_jobs_are_not_noticed(cluster, jobs):
    cluster.await_operators()
    names = [f"running-{number}" for number in range(JOBS)]
    for first in range(0, JOBS, AT_ONCE):
        for number in range(first, first + AT_ONCE):
            jobs.apply(shell_job(cluster, names[number], SCRIPT, container_fields={
                "env": [{"name": "NUMBER", "value": str(number)}]}))
        for name in names[first:first + AT_ONCE]:
            jobs.wait_started(name, limit=240)
    # On a slow machine the first ones have ended when the last ones begin.
    assert len([pod for pod in jobs.pods() if pod["status"]["phase"] == "Running"]) >= JOBS / 2
    spent_before = {name: spent(jobs.status(name)) for name in names}
    before = {pod["metadata"]["name"] for pod in cluster.operators()}
    cluster.install(*VALUES, "--set", "podAnnotations.upgraded=yes")
    after = {pod["metadata"]["name"] for pod in cluster.operators()}
    assert not before & after, "the upgrade replaced nothing"
    cluster.helm("rollback", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "5m")
    cluster.await_operators()
    for name in names:
        status = end_of(jobs, name, limit=300)
        assert (status["phase"], spent(status)) == ("Succeeded", spent_before[name]), f"{name}: {dump(status)}"
