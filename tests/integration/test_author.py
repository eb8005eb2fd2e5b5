"""Nobody but the operator makes a DurableJob or a WorkerPool the owner of a pod, so nobody else's pod gives a job its
outcome."""

import copy
import itertools
import json

import pytest
from fence import expect, grant, wait_allowed
from holdfast import OPERATOR_USER, job, runs
from localcluster import wait_for

MESSAGE = "only the operator makes a DurableJob or a WorkerPool the owner of a pod"
TENANT = "mallory"
EDITOR = "eve"
PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create", "delete", "patch", "update"]}]
# More than any role gives: to see that the API server itself keeps owners out of these.
SUBRESOURCES = [{"apiGroups": [""], "verbs": ["get", "patch", "update", "create"],
                 "resources": ["pods/status", "pods/ephemeralcontainers", "pods/resize", "pods/binding"]}]
_numbers = itertools.count(1)


@pytest.fixture()
def tenant(cluster, namespace):
    """Calls as one who may read jobs and do all with pods in the namespace, and no more."""
    jobs = [{"apiGroups": ["holdfast.dev"], "resources": ["durablejobs"], "verbs": ["get"]}]
    grant(cluster, namespace, "tenant", PODS + SUBRESOURCES + jobs, TENANT)
    wait_allowed(cluster, namespace, TENANT, "create", "pods", "")
    wait_for("the policy to stand", lambda: refused_by_policy(*cluster.api(
        "POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod("probe", owner()), user=TENANT)), 60)
    return lambda *args, **options: cluster.api(*args, user=TENANT, **options)


def refused_by_policy(status, answer):
    return status == 403 and MESSAGE in answer["message"]


def owner(of=None, **fields):
    """An owner reference to this job, or to one that there need not be."""
    metadata = of["metadata"] if of else {"name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"}
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": metadata["name"],
            "uid": metadata["uid"], "controller": True, **fields}


def pod(name=None, *owners, **metadata):
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {"metadata": {"name": name or f"pod-{next(_numbers)}", **metadata},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.36"}]}}


def path(jobs, name=None, subresource=""):
    return f"{jobs.pods_path}/{name}{subresource}" if name else jobs.pods_path


def owners_of(cluster, jobs, name):
    return expect(cluster.api("GET", path(jobs, name)))["metadata"].get("ownerReferences", [])


# -- a new pod --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [
    {}, {"controller": False}, {"apiVersion": "holdfast.dev/v1"}, {"blockOwnerDeletion": True}, {"kind": "WorkerPool"},
], ids=["controller", "mere owner", "another version", "blocking", "of a pool"])
def test_a_tenant_creates_no_pod_of_a_job(jobs, tenant, fields):
    made = jobs.apply(job("mine", suspend=True))
    assert refused_by_policy(*tenant("POST", path(jobs), pod(None, owner(made, **fields))))


def test_nor_one_with_a_job_among_other_owners(jobs, tenant, cluster):
    config = expect(cluster.api("POST", f"/api/v1/namespaces/{jobs.namespace}/configmaps",
                                {"metadata": {"name": "other"}}))["metadata"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": config["uid"]}
    assert refused_by_policy(*tenant("POST", path(jobs), pod(None, other, owner(controller=False))))
    expect(tenant("POST", path(jobs), pod(None, other)))


def test_a_pod_with_too_many_owners_to_look_at_is_refused_and_not_let_through(jobs, tenant):
    """An expression that costs too much fails, and a policy that ignored that would be no policy."""
    many = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"{n:0200}", "uid": str(n)} for n in range(3000)]
    status, answer = tenant("POST", path(jobs), pod(None, *many, owner()))
    assert status in (403, 422), answer


def test_neither_by_put_or_apply_of_a_pod_that_is_not_there(jobs, tenant):
    body = pod("new", owner()) | {"apiVersion": "v1", "kind": "Pod"}
    status, answer = tenant("PATCH", f"{path(jobs, 'new')}?fieldManager=me", body,
                            content_type="application/apply-patch+yaml")
    assert refused_by_policy(status, answer)
    assert tenant("PUT", path(jobs, "new"), body)[0] in (403, 404)


def test_other_pods_are_none_of_its_business(jobs, tenant):
    made = expect(tenant("POST", path(jobs), pod()))
    name = made["metadata"]["name"]
    expect(tenant("PATCH", path(jobs, name), {"metadata": {"labels": {"a": "b"}}}, content_type="merge"))
    expect(tenant("DELETE", path(jobs, name)))


# -- a pod that is there ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["merge", "json", "strategic", "apply", "put"])
def test_a_tenant_makes_no_job_the_owner_of_a_pod_that_is_there(jobs, tenant, cluster, way):
    made = expect(tenant("POST", path(jobs), pod()))
    name = made["metadata"]["name"]
    changed = {"metadata": {"ownerReferences": [owner()]}}
    if way == "json":
        answer = tenant("PATCH", path(jobs, name), [
            {"op": "add", "path": "/metadata/ownerReferences", "value": [owner()]}], content_type="json")
    elif way == "apply":
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "ownerReferences": [owner()]}}
        answer = tenant("PATCH", f"{path(jobs, name)}?fieldManager=me", body,
                        content_type="application/apply-patch+yaml")
    elif way == "put":
        answer = (409, {})
        while answer[0] == 409:  # the scheduler writes it, too
            body = expect(tenant("GET", path(jobs, name)))
            body["metadata"]["ownerReferences"] = [owner()]
            answer = tenant("PUT", path(jobs, name), body)
    else:
        answer = tenant("PATCH", path(jobs, name), changed, content_type=way)
    assert refused_by_policy(*answer), answer
    assert owners_of(cluster, jobs, name) == []


def test_a_mere_owner_is_not_made_the_controller(jobs, tenant, cluster):
    made = jobs.apply(job("mine", suspend=True))
    name = expect(cluster.api("POST", path(jobs), pod(None, owner(made, controller=False))))["metadata"]["name"]
    assert refused_by_policy(*tenant("PATCH", path(jobs, name), [
        {"op": "replace", "path": "/metadata/ownerReferences/0/controller", "value": True}], content_type="json"))
    assert owners_of(cluster, jobs, name)[0]["controller"] is False


@pytest.mark.parametrize("subresource", ["/status", "/ephemeralcontainers", "/resize", "/binding"])
def test_no_subresource_of_a_pod_changes_its_owners(jobs, tenant, cluster, subresource):
    """The API server's own doing: the policy looks at pods alone, for kubelets write their status often."""
    made = expect(tenant("POST", path(jobs), pod(schedulingGates=None)))
    name = made["metadata"]["name"]
    before = owners_of(cluster, jobs, name)
    body = {"metadata": {"name": name, "ownerReferences": [owner()]}}
    if subresource == "/binding":
        body |= {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "nowhere"}}
        tenant("POST", path(jobs, name, subresource), body)
    else:
        tenant("PATCH", path(jobs, name, subresource), body, content_type="strategic")
        full = copy.deepcopy(expect(cluster.api("GET", path(jobs, name))))
        full["metadata"]["ownerReferences"] = [owner()]
        tenant("PUT", path(jobs, name, subresource), full)
    assert owners_of(cluster, jobs, name) == before == []


def test_what_a_tenant_may_do_to_a_jobs_pod_it_still_may(jobs, tenant, operator):
    """Labels, the removal of an owner, deletion: as for every pod."""
    jobs.apply(job("mine", annotations=runs(600)))
    name = jobs.wait_running("mine")["metadata"]["name"]
    expect(tenant("PATCH", path(jobs, name), {"metadata": {"labels": {"a": "b"}}}, content_type="merge"))
    answer = (409, {})
    while answer[0] == 409:  # somebody else has written it since
        full = expect(tenant("GET", path(jobs, name)))
        full["metadata"]["annotations"]["c"] = "d"
        answer = tenant("PUT", path(jobs, name), full)
    expect(answer)
    expect(tenant("PATCH", f"{path(jobs, name)}?dryRun=All", {"metadata": {"ownerReferences": None}},
                  content_type="merge"))
    expect(tenant("DELETE", path(jobs, name)))


# -- what it is for -----------------------------------------------------------------------------------


def squat(jobs, tenant, name="mine", **fields):
    """The answer to a pod of the tenant's under the second attempt's name, and that name. Its owner is the
    job, but for these fields. 409: the operator was quicker."""
    made = jobs.apply(job(name, annotations=runs(600)))
    first = jobs.wait_running(name)["metadata"]["name"]
    second = first.replace(f"{name}-1-", f"{name}-2-")
    labels = {"holdfast.dev/job-name": name, "holdfast.dev/job-uid": made["metadata"]["uid"],
              "holdfast.dev/attempt": "2"}
    squatter = pod(second, annotations=runs(600))
    forged = pod(second, owner(made, **fields), labels=labels, annotations=runs(0))
    expect(tenant("POST", path(jobs), squatter))
    expect(tenant("DELETE", f"{path(jobs, first)}?gracePeriodSeconds=0"))
    jobs.wait(name, lambda s: s.get("waiting", {}).get("reason") == "PodNameTaken", 60)
    expect(tenant("DELETE", f"{path(jobs, second)}?gracePeriodSeconds=0"))
    return tenant("POST", path(jobs), forged), second


def test_a_tenant_who_squats_on_the_next_attempts_name_forges_no_outcome(jobs, tenant, operator):
    tried, second = squat(jobs, tenant)
    assert refused_by_policy(*tried), f"{json.dumps(tried)[:300]}; {jobs.status('mine')}"
    running = jobs.wait_running("mine", limit=120)
    assert running["metadata"]["name"] == second
    assert jobs.status("mine")["phase"] == "Running"
    jobs.end_pod(running)
    jobs.wait_phase("mine", "Succeeded")


def test_nor_by_the_jobs_uid_beside_another_kind(jobs, tenant, operator, cluster):
    """No policy knows whose UID it is; the garbage collector takes the pod away after a while."""
    tries = ((name, *squat(jobs, tenant, name, apiVersion="v1", kind="ConfigMap")) for name in ("mine", "mine-too"))
    name, tried, second = next((name, tried, second) for name, tried, second in tries if tried[0] != 409)
    forged = expect(tried)["metadata"]["uid"]
    wait_for("the forged pod to be gone", lambda: cluster.api("GET", path(jobs, second))[1].get(
        "metadata", {}).get("uid") != forged, 120)
    running = jobs.wait_running(name, limit=120)
    assert running["metadata"]["name"] == second and running["metadata"]["uid"] != forged
    assert jobs.status(name)["phase"] == "Running"


def test_the_built_in_role_edit_is_a_tenant_too(cluster, jobs, tenant):
    grant(cluster, jobs.namespace, "editor", "edit", EDITOR)
    wait_allowed(cluster, jobs.namespace, EDITOR, "create", "pods", "")
    assert refused_by_policy(*cluster.api("POST", path(jobs), pod(None, owner()), user=EDITOR))


# -- who else works with pods -------------------------------------------------------------------------


def test_the_operator_and_cluster_admins_make_a_job_the_owner(cluster, jobs, tenant):
    made = jobs.apply(job("mine", suspend=True))
    for user in (OPERATOR_USER, None):
        expect(cluster.api("POST", f"{path(jobs)}?dryRun=All", pod(None, owner(made)), user=user))


def test_a_batch_job_runs_and_its_orphans_are_adopted_as_before(cluster, jobs, tenant):
    spec = {"template": {"metadata": {"annotations": runs(0)}, "spec": pod()["spec"]}}
    batch = f"/apis/batch/v1/namespaces/{jobs.namespace}/jobs"
    expect(cluster.api("POST", batch, {"metadata": {"name": "batch"}, "spec": spec}))
    wait_for("the batch/v1 Job to start its pod", lambda: cluster.api(
        "GET", f"{batch}/batch")[1].get("status", {}).get("active", 0) == 1 or cluster.api(
        "GET", f"{batch}/batch")[1].get("status", {}).get("succeeded", 0) == 1, 60)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_the_garbage_collector_does_its_work(jobs, tenant, operator, cluster, propagation):
    jobs.apply(job("mine", annotations=runs(600)))
    name = jobs.wait_running("mine")["metadata"]["name"]
    jobs.delete("mine", propagation)
    if propagation == "Orphan":
        wait_for("the pod to have no owner", lambda: owners_of(cluster, jobs, name) == [], 120)
    else:
        wait_for("the pod to be gone", lambda: cluster.api("GET", path(jobs, name))[0] == 404, 120)


def test_a_namespace_with_a_jobs_pod_in_it_ends(cluster, jobs, tenant, operator):
    jobs.apply(job("mine", annotations=runs(600)))
    jobs.wait_running("mine")
    expect(cluster.api("DELETE", f"/api/v1/namespaces/{jobs.namespace}"))
    wait_for("the namespace to be gone", lambda: cluster.api(
        "GET", f"/api/v1/namespaces/{jobs.namespace}")[0] == 404, 180)
