"""Whose pod it is: forged ones, some without an owner, and a name that only looks like one.

The tests forge as a cluster admin, whom the policy on owners lets through: so they show what the operator
itself makes of it, as where that policy is switched off."""

import copy

from holdfast import QUICK_LEASES, job, place, runs
from localcluster import wait_for
from losses import pod_name, wait_attempt

OPERATOR_LEASES = QUICK_LEASES
LONG = runs(300)
SOON = 60


def forged(made, attempt, *, owned, uid_of=None):
    """A pod as the operator would make it, or a copy of one that it made, without what the API server adds."""
    if uid_of:
        body = copy.deepcopy(uid_of)
        for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
            body["metadata"].pop(key, None)
        body["spec"].pop("nodeName", None)
        body.pop("status", None)
        return body
    meta = made["metadata"]
    owner = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": meta["name"],
             "uid": meta["uid"], "controller": True}
    labels = {"holdfast.dev/job-uid": meta["uid"], "holdfast.dev/job-name": meta["name"],
              "holdfast.dev/attempt": str(attempt)}
    return {"metadata": {"name": pod_name(made, attempt), "labels": labels if owned else {},
                         **({"ownerReferences": [owner]} if owned else {})},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "main", "image": "x"}]}}


def strip_owner(jobs, pod):
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    jobs.api("PATCH", path, {"metadata": {"ownerReferences": None}}, content_type="merge")


def delete_by_force(jobs, pod):
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    jobs.api("PATCH", path, {"metadata": {"finalizers": None}}, content_type="merge")
    jobs.api("DELETE", path, {"gracePeriodSeconds": 0})
    wait_for("the pod to be gone", lambda: jobs.cluster.api("GET", path)[0] == 404, SOON)


def uid(pod):
    return pod["metadata"]["uid"]


def squat(jobs, name):
    """The UID of a forged pod that ended well under the first attempt's name; None: the operator was quicker."""
    made = jobs.apply(job(name, annotations=LONG, suspend=True))
    jobs.wait_phase(name, "Suspended")
    squatter = jobs.api("POST", jobs.pods_path, forged(made, 1, owned=False))
    jobs.patch(name, suspend=False)
    jobs.wait(name, lambda status: status.get("waiting", {}).get("reason") == "PodNameTaken", SOON)
    delete_by_force(jobs, squatter)
    try:
        forgery = jobs.api("POST", jobs.pods_path, forged(made, 1, owned=True))
        jobs.end_pod(forgery)
    except AssertionError:  # its own pod is there already, or the forged one is gone
        return None
    return uid(forgery)


def test_a_squatter_that_puts_a_pod_of_the_job_in_its_place_gives_it_no_outcome(jobs, operator):
    tries = ((name, squat(jobs, name)) for name in ("squatted", "squatted-again", "squatted-once-more"))
    name, forgery = next((name, forgery) for name, forgery in tries if forgery)
    running = jobs.wait(name, lambda status: place(status).get("podUID"), 120)
    assert place(running)["podUID"] != forgery
    assert running["phase"] == "Running"
    jobs.end_pod(jobs.wait_running(name))
    jobs.wait_phase(name, "Succeeded")
    assert jobs.status(name)["history"][-1]["podUID"] == place(running)["podUID"]


def test_the_running_attempts_pod_made_anew_under_its_name_gives_no_outcome(jobs, operator):
    jobs.apply(job("replaced", annotations=LONG))
    pod = jobs.wait_running("replaced")
    jobs.wait("replaced", lambda status: place(status).get("podUID") == uid(pod), SOON)
    operator.kill()
    delete_by_force(jobs, pod)
    forgery = jobs.api("POST", jobs.pods_path, forged(None, 1, owned=True, uid_of=pod))
    jobs.end_pod(forgery)
    operator.start()
    status = wait_attempt(jobs, "replaced", 2)
    assert (status["history"][0]["outcome"], status["history"][0]["reason"]) == ("Lost", "PodGone")
    assert status["history"][0]["podUID"] == uid(pod)
    jobs.end_pod(jobs.wait_running("replaced"))
    jobs.wait_phase("replaced", "Succeeded")


def test_a_pod_whose_owner_is_taken_off_is_stopped_and_no_second_attempt_runs_beside_it(jobs, operator):
    jobs.apply(job("disowned", annotations=LONG, podReplacementPolicy="Failed"))
    pod = jobs.wait_running("disowned")
    jobs.wait("disowned", lambda status: place(status).get("podUID") == uid(pod), SOON)
    strip_owner(jobs, pod)
    beside = []

    def second_attempt():
        alive = [one for one in jobs.pods("disowned") if one["status"]["phase"] in ("Pending", "Running")]
        beside.append(len(alive))
        return jobs.status("disowned").get("attempt") == 2 and jobs.pod("disowned")

    wait_for("the second attempt", second_attempt, 180)
    assert max(beside) == 1
    assert jobs.status("disowned")["history"][0]["reason"] == "OwnerRemoved"
    wait_for("the first pod to be gone", lambda: jobs.cluster.api(
        "GET", f"{jobs.pods_path}/{pod['metadata']['name']}")[0] == 404, 60)


def test_a_pod_that_only_bears_a_jobs_uid_loses_our_finalizer_and_lists_nothing(cluster, jobs, operator):
    """It is not of a name of ours, and says neither an owner nor a job's name."""
    made = jobs.apply(job("named", suspend=True))
    offset = cluster.audit_offset()
    stray = jobs.api("POST", jobs.pods_path, {
        "metadata": {"name": "stray", "labels": {"holdfast.dev/job-uid": made["metadata"]["uid"]},
                     "finalizers": ["holdfast.dev/outcome"]},
        "spec": {"containers": [{"name": "main", "image": "x"}]}})
    # What comes after it has been through the operator's queue, too.
    jobs.apply(job("after", annotations=runs(0)))
    jobs.wait_phase("after", "Succeeded")
    there = jobs.api("GET", f"{jobs.pods_path}/stray")
    assert "finalizers" not in there["metadata"] and there["metadata"]["uid"] == stray["metadata"]["uid"]
    asked = [event for event in cluster.audit_events(offset)[0]
             if event["verb"] == "list" and event["objectRef"].get("namespace") == jobs.namespace
             and event["user"]["username"] == "holdfast-operator"]
    assert asked == []


def test_a_running_pod_that_lost_owner_and_job_name_keeps_its_finalizer_until_its_end_is_on_record(jobs, operator):
    jobs.apply(job("nameless", annotations=LONG))
    pod = jobs.wait_running("nameless")
    jobs.wait("nameless", lambda status: place(status).get("podUID") == uid(pod), SOON)
    jobs.api("PATCH", f"{jobs.pods_path}/{pod['metadata']['name']}", {"metadata": {
        "ownerReferences": None, "labels": {"holdfast.dev/job-name": None}}}, content_type="merge")
    status = wait_attempt(jobs, "nameless", 2)
    assert status["history"][0]["podUID"] == uid(pod)
