"""Jobs of many runs on real nodes: the examples, and a node that dies under some of the runs."""

import pathlib
import time

import pytest
import yaml

from holdfast import Jobs
from localcluster import wait_for
from real_jobs import POD_SECURITY, RESTRICTED, describe, dump, end_of, logs_of, shell_job, sleeps
from test_node_loss import PATIENT, RECONCILE, last_renewal

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
# PyTorch is not in the workload's image. As init_process_group does, each process waits until it can reach
# all others by their names, and ends after all have.
FINDS_ALL = """
for rank in 0 1 2 3; do
  until getent hosts "rendezvous-$rank.rendezvous"; do sleep 1; done
done
sleep 10
"""


@pytest.fixture()
def jobs(cluster, namespace):
    """Without the record of the other tests, whose judge knows jobs with one run alone."""
    return Jobs(cluster, namespace)


def run_example(cluster, jobs, name, command=None, servers=None):
    """Applies examples/NAME.yaml with the workload's image, under Pod Security `restricted`. `command`: the worker's,
    or {stage: its command}. `servers`: the command of Deployments."""
    for body in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()):
        commands = command if isinstance(command, dict) else {"main": command}
        for part in [body.get("spec", {}), *body.get("spec", {}).get("stages", [])]:
            if "template" not in part:
                continue
            its = servers if body["kind"] == "Deployment" else commands.get(part.get("name", "main"))
            part["template"]["spec"]["securityContext"] = POD_SECURITY
            for container in part["template"]["spec"].get("initContainers", []):
                container |= {"image": cluster.workload, "securityContext": RESTRICTED}
            for container in part["template"]["spec"]["containers"]:
                container |= {"image": cluster.workload, "securityContext": RESTRICTED}
                container["command"] = its or container["command"]
        if body["kind"] == "DurableJob":
            jobs.apply(body)
            continue
        group = "/api/v1" if body["apiVersion"] == "v1" else f"/apis/{body['apiVersion']}"
        answer = cluster.api("POST", f"{group}/namespaces/{jobs.namespace}/{body['kind'].lower()}s", body)
        assert answer[0] == 201, answer


def pods_by_index(jobs, name):
    """{index: its pods, the first attempt first}."""
    found = {}
    for pod in jobs.pods(name):
        index = int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
        found.setdefault(index, []).append(pod)
    return found


def test_the_example_of_a_list_of_files_works_on_each_file_once(cluster, jobs):
    run_example(cluster, jobs, "indexed-files")
    status = end_of(jobs, "indexed-files", 180)
    assert status["phase"] == "Succeeded", dump(status)
    assert status["completedIndexes"] == "0-7"
    for index, [pod] in pods_by_index(jobs, "indexed-files").items():
        told = logs_of(cluster, jobs.namespace, pod["metadata"]["name"])
        assert told.startswith(f"run {index}, attempt ") and f"2026/{index + 1:02}/intake.csv" in told, told
    shown = cluster.kubectl("-n", jobs.namespace, "get", "dj", "indexed-files").stdout
    assert "8/8" in shown, shown


def test_the_example_of_a_sweep_ends_with_its_success_policy(cluster, jobs):
    run_example(cluster, jobs, "sweep")
    status = end_of(jobs, "sweep", 180)
    assert status["phase"] == "Succeeded", dump(status)
    assert jobs.conditions("sweep")["SuccessCriteriaMet"]["reason"] == "SuccessPolicy"
    assert status["succeeded"] < 12
    wait_for("the other runs' pods to end", lambda: all(
        pod["status"]["phase"] in ("Succeeded", "Failed") for pod in jobs.pods("sweep")), 60, poll=1)


def test_the_example_of_failing_indexes_fails_these_alone(cluster, jobs):
    run_example(cluster, jobs, "fail-index")
    status = end_of(jobs, "fail-index", 180)
    assert (status["phase"], status["failedIndexes"]) == ("Failed", "3,5"), dump(status)
    assert status["completedIndexes"] == "0-2,4,6-9"
    assert {index: len(pods) for index, pods in pods_by_index(jobs, "fail-index").items()}[5] == 2
    assert "FailedIndexes" in describe(cluster, jobs.namespace, "fail-index")


def test_the_processes_of_the_example_of_a_rendezvous_find_each_other_by_name(cluster, jobs):
    run_example(cluster, jobs, "rendezvous", ["sh", "-ec", FINDS_ALL])
    status = end_of(jobs, "rendezvous", 240)
    assert status["phase"] == "Succeeded", dump(status)
    assert (status["attempt"], status.get("failures", 0)) == (4, 0)


# Neither wget nor httpd is in the workload's image.
ASKS = r"exec 3<>/dev/tcp/verifier/8080 && printf 'GET /proof-17 HTTP/1.0\r\n\r\n' >&3 && grep -q accepted <&3 || exit 75"
ANSWERS = r'''
my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 9, ReuseAddr => 1) or die; my $from = time + 30;
while (my $c = $s->accept) { my $asked = <$c>; print $c time < $from ? "HTTP/1.0 404 No\r\n\r\n" : "HTTP/1.0 200 OK\r\n\r\naccepted\n" }
'''


def test_the_example_that_waits_for_an_answer_asks_until_it_is_there(cluster, jobs):
    run_example(cluster, jobs, "not-yet", ["bash", "-c", ASKS], ["perl", "-MIO::Socket::INET", "-e", ANSWERS])
    status = end_of(jobs, "not-yet", 240)
    assert status["phase"] == "Succeeded", dump(status)
    assert status.get("failures", 0) == status.get("disruptions", 0) == 0
    deferred, succeeded = status["history"]
    assert (deferred["outcome"], succeeded["outcome"]) == ("Deferred", "Succeeded")
    assert deferred["count"] == status["attempt"] - 1 >= 2, dump(status)


def test_a_node_that_dies_under_three_of_six_runs_costs_each_of_them_one_disruption(cluster, nodes, jobs, measured):
    # All six first attempts run together, however late the last one begins.
    body = shell_job(cluster, "half", f"[ $HOLDFAST_ATTEMPT -le 6 ] || exit 0; {sleeps(45)}", completions=6,
                     parallelism=6, completionMode="Indexed", lostAfterSeconds=PATIENT)
    jobs.apply(body)
    wait_for("all six to run", lambda: sum(
        pod["status"]["phase"] == "Running" for pod in jobs.pods("half")) == 6, 120, poll=0.5)
    first = {index: pods[0] for index, pods in pods_by_index(jobs, "half").items()}
    node = first[0]["spec"]["nodeName"]
    lost = {index for index, pod in first.items() if pod["spec"]["nodeName"] == node}
    with cluster.lost(node, "kill", "start"):
        wait_for("the next attempts", lambda: all(
            len(pods_by_index(jobs, "half")[index]) == 2 for index in lost), PATIENT + 60, poll=0.1)
        seconds = time.monotonic() - last_renewal(cluster, node)
        status = end_of(jobs, "half", 180)
    measured("node dies under some runs of a job: the last next attempt", PATIENT + RECONCILE, seconds)
    assert status["phase"] == "Succeeded", dump(status)
    assert (status["disruptions"], status.get("failures", 0)) == (len(lost), 0)
    assert status["attempt"] == 6 + len(lost)
