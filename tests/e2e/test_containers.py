"""What a container does is what its job's status and `kubectl describe` tell."""

import base64
import json

from holdfast import place
from real_jobs import (container, describe, dump, end_of, logs_of, outcomes, shell_job, sleeps)
from test_many_runs import run_example

ONE_TRY = {"backoffLimit": 0}


def failure_of(jobs, name):
    """What the job's condition Failed says to people."""
    return jobs.conditions(name)["Failed"]["message"]


def test_a_command_that_exits_0_succeeds(cluster, jobs):
    jobs.apply(shell_job(cluster, "fine", "echo attempt $HOLDFAST_ATTEMPT; exit 0"))
    status = end_of(jobs, "fine")
    assert status["phase"] == "Succeeded"
    assert (status["attempt"], status.get("failures", 0), status.get("disruptions", 0)) == (1, 0, 0)
    assert logs_of(cluster, jobs.namespace, place(status)["podName"]) == "attempt 1\n"
    assert "Succeeded" in describe(cluster, jobs.namespace, "fine")


def test_a_command_that_exits_3_is_tried_again_and_then_fails_with_its_exit_code(cluster, jobs):
    jobs.apply(shell_job(cluster, "three", "echo '    no input'; echo attempt $HOLDFAST_ATTEMPT gives up; exit 3", backoffLimit=1,
                         retryBackoff={"initialSeconds": 1}))
    status = end_of(jobs, "three")
    assert (status["phase"], status["attempt"], status["failures"]) == ("Failed", 2, 2)
    assert [entry["exitCode"] for entry in status["history"]] == [3, 3], dump(status)
    # The kubelet takes the last lines from the log, and they stay after the pod is gone.
    assert [entry["message"].split("\n")[-2:] for entry in status["history"]] == [
        ["    no input", f"attempt {attempt} gives up"] for attempt in (1, 2)], dump(status)
    told = describe(cluster, jobs.namespace, "three")
    assert "BackoffLimitExceeded" in told and "Exit Code:" in told


def test_a_container_that_needs_more_memory_than_it_may_have_is_called_oom_killed(cluster, jobs):
    jobs.apply(shell_job(cluster, "greedy", "exec tail /dev/zero", **ONE_TRY, container_fields={
        "resources": {"limits": {"memory": "32Mi"}}}))
    status = end_of(jobs, "greedy")
    assert status["phase"] == "Failed"
    [entry] = status["history"]
    assert entry["exitCode"] == 137, dump(entry)
    assert entry["reason"] == "OOMKilled", dump(entry)
    assert "OOMKilled" in describe(cluster, jobs.namespace, "greedy")


def test_an_image_that_cannot_be_pulled_is_named_until_the_start_deadline(cluster, jobs):
    jobs.apply(shell_job(cluster, "nowhere", "true", disruptionLimit=0, startDeadlineSeconds=40,
                         container_fields={"image": "127.0.0.1:1/no/such:image"}))
    waiting = jobs.wait("nowhere", lambda s: "127.0.0.1:1/no/such:image" in s.get(
        "waiting", {}).get("message", ""), 60, "the image to be named")["waiting"]
    assert "Pull" in waiting["reason"] + waiting["message"], dump(waiting)
    status = end_of(jobs, "nowhere")
    assert outcomes(status)[0][1] == "StartTimeout", dump(status)
    assert (status["phase"], status.get("failures", 0), status["disruptions"]) == ("Failed", 0, 1)


def test_an_init_container_that_fails_fails_the_attempt_and_is_named(cluster, jobs):
    jobs.apply(shell_job(cluster, "unprepared", "echo never; exit 0", **ONE_TRY, pod={
        "initContainers": [container(cluster, "echo no input >&2; exit 4", name="prepare")]}))
    status = end_of(jobs, "unprepared")
    assert status["phase"] == "Failed"
    [entry] = status["history"]
    assert entry["exitCode"] == 4, dump(entry)
    assert "init container prepare ended with exit code 4" in failure_of(jobs, "unprepared")


def test_a_native_sidecar_ends_with_the_main_container(cluster, jobs):
    jobs.apply(shell_job(cluster, "accompanied", "sleep 1", pod={
        "initContainers": [container(cluster, sleeps(1000), name="proxy", restartPolicy="Always")]}))
    assert end_of(jobs, "accompanied")["phase"] == "Succeeded"


def test_the_example_of_a_sidecar_ends_with_its_main_container_which_is_killed_once(cluster, nodes, jobs):
    run_example(cluster, jobs, "sidecar")
    pod = jobs.wait_running("sidecar")
    _, pid = cluster.container_of(pod["spec"]["nodeName"], pod)
    cluster.on_node(pod["spec"]["nodeName"], "kill", "-9", str(pid))
    status = end_of(jobs, "sidecar")
    assert [(attempt, outcome) for attempt, outcome, _ in outcomes(status)] == [(1, "Failed"), (2, "Succeeded")]
    said = logs_of(cluster, jobs.namespace, place(status)["podName"], "logs")
    assert said == "attempt 2 works\ndone\n"


def test_a_volume_keeps_what_an_attempt_wrote_for_the_next(cluster, jobs):
    jobs.api("POST", f"/api/v1/namespaces/{jobs.namespace}/persistentvolumeclaims", {
        "metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                               "resources": {"requests": {"storage": "1Mi"}}}})
    jobs.apply(shell_job(
        cluster, "resumes", "cat /data/done && exit 0; echo half >/data/done; exit 1",
        retryBackoff={"initialSeconds": 1},
        container_fields={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        pod={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}))
    status = end_of(jobs, "resumes", limit=180)
    assert (status["phase"], status["attempt"]) == ("Succeeded", 2), dump(status)
    assert logs_of(cluster, jobs.namespace, place(status)["podName"]) == "half\n"


def test_a_service_account_of_its_own_is_what_the_pod_runs_as(cluster, jobs):
    jobs.api("POST", f"/api/v1/namespaces/{jobs.namespace}/serviceaccounts", {"metadata": {"name": "encoder"}})
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    jobs.apply(shell_job(cluster, "someone", f"cut -d. -f2 {token}", pod={"serviceAccountName": "encoder"}))
    status = end_of(jobs, "someone")
    assert status["phase"] == "Succeeded"
    claims = logs_of(cluster, jobs.namespace, place(status)["podName"]).strip()
    claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert claims["sub"] == f"system:serviceaccount:{jobs.namespace}:encoder"
    [pod] = jobs.pods("someone")
    assert pod["spec"]["serviceAccountName"] == "encoder"


def test_a_termination_message_is_in_the_history(cluster, jobs):
    jobs.apply(shell_job(cluster, "eloquent", "echo no more quota >/dev/termination-log; exit 7", **ONE_TRY))
    status = end_of(jobs, "eloquent")
    [entry] = status["history"]
    assert entry["exitCode"] == 7
    # Targets of notifications get this text, so it has no words of the container.
    assert failure_of(jobs, "eloquent").endswith("container main ended with exit code 7")
    assert entry["message"] == "container main ended with exit code 7\nno more quota", dump(entry)
    assert "no more quota" in describe(cluster, jobs.namespace, "eloquent")


def test_a_job_that_pod_security_refuses_says_so_and_goes_on_when_it_may(cluster, jobs):
    body = shell_job(cluster, "rootly", "exit 0")
    body["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    jobs.apply(body)
    waiting = jobs.wait("rootly", lambda s: "privileged" in s.get("waiting", {}).get("message", ""),
                        60, "the refusal to be told")["waiting"]
    assert "PodSecurity" in waiting["message"], dump(waiting)
    cluster.kubectl("label", "--overwrite", "namespace", jobs.namespace,
                    "pod-security.kubernetes.io/enforce=privileged")
    assert end_of(jobs, "rootly", limit=180)["phase"] == "Succeeded"
