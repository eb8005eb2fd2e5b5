"""Ways in which an API server refuses pods of one namespace: each a context in which it does, that
begins when the refusal is in force and after which it is lifted."""

import contextlib

from localcluster import wait_for

ADMISSION = "/apis/admissionregistration.k8s.io"


def wait_dry_run(jobs, accepted, labels=None):
    """Until the admission of a pod in this namespace answers as expected."""
    pod = {
        "metadata": {"name": "probe", "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    wait_for(
        "the admission to be in force",
        lambda: (jobs.cluster.api("POST", jobs.pods_path + "?dryRun=All", pod)[0] == 201)
        == accepted,
        60,
    )


@contextlib.contextmanager
def no_pods_by_quota(jobs):
    """A ResourceQuota of no pods, raised at the end."""
    path = f"/api/v1/namespaces/{jobs.namespace}/resourcequotas"

    def wait_hard(pods):
        wait_for(
            "the quota to be in force",
            lambda: jobs.api("GET", f"{path}/none").get("status", {}).get("hard", {}).get("pods")
            == pods,
            60,
        )

    jobs.api("POST", path, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    wait_hard("0")
    wait_dry_run(jobs, accepted=False)
    yield
    jobs.api("PATCH", f"{path}/none", {"spec": {"hard": {"pods": "100"}}}, content_type="merge")
    wait_hard("100")


@contextlib.contextmanager
def no_pods_by_policy(jobs):
    """A ValidatingAdmissionPolicy that answers as it does by default: 422, no field named."""
    name = jobs.namespace
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}}
    jobs.api(
        "POST",
        f"{ADMISSION}/v1/validatingadmissionpolicies",
        {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ]
                },
                "validations": [{"expression": "false", "message": "not on a Friday"}],
            },
        },
    )
    jobs.api(
        "POST",
        f"{ADMISSION}/v1/validatingadmissionpolicybindings",
        {
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": here},
        },
    )
    wait_dry_run(jobs, accepted=False)
    yield
    jobs.api("DELETE", f"{ADMISSION}/v1/validatingadmissionpolicybindings/{name}")
    wait_dry_run(jobs, accepted=True)


@contextlib.contextmanager
def no_pods_by_webhook(jobs):
    """A webhook that nobody answers for."""
    path = f"{ADMISSION}/v1/validatingwebhookconfigurations"
    here = {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}
    jobs.api(
        "POST",
        path,
        {
            "metadata": {"name": jobs.namespace},
            "webhooks": [
                {
                    "name": "nobody.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 1,
                    "namespaceSelector": here,
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                }
            ],
        },
    )
    wait_dry_run(jobs, accepted=False)
    yield
    jobs.api("DELETE", f"{path}/{jobs.namespace}")
    wait_dry_run(jobs, accepted=True)


@contextlib.contextmanager
def no_pods_by_pod_security(jobs):
    """Pod Security: containers that may run as root are refused."""
    path, label = f"/api/v1/namespaces/{jobs.namespace}", "pod-security.kubernetes.io/enforce"
    jobs.api("PATCH", path, {"metadata": {"labels": {label: "restricted"}}}, content_type="merge")
    wait_dry_run(jobs, accepted=False)
    yield
    jobs.api("PATCH", path, {"metadata": {"labels": {label: None}}}, content_type="merge")
    wait_dry_run(jobs, accepted=True)


@contextlib.contextmanager
def no_deletion_of_pods(jobs):
    """A policy that lets nobody but the garbage collector delete a pod."""
    name = f"keep-{jobs.namespace}"
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}
    jobs.api(
        "POST",
        f"{ADMISSION}/v1/validatingadmissionpolicies",
        {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [
                    {"expression": "request.userInfo.username.startsWith('system:')", "message": "pods are kept here"}
                ],
            },
        },
    )
    jobs.api(
        "POST",
        f"{ADMISSION}/v1/validatingadmissionpolicybindings",
        {
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": here},
        },
    )
    pod = {"metadata": {"name": "kept"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    jobs.api("POST", jobs.pods_path, pod)
    path = f"{jobs.pods_path}/kept?dryRun=All"
    wait_for("the policy to be in force", lambda: jobs.cluster.api("DELETE", path)[0] == 422, 60)
    yield
    jobs.api("DELETE", f"{ADMISSION}/v1/validatingadmissionpolicybindings/{name}")
    wait_for("the policy to be gone", lambda: jobs.cluster.api("DELETE", path)[0] == 200, 60)


def mutate_pods(jobs, version, name, patch):
    """A MutatingAdmissionPolicy for the pods that are created in this namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}}
    jobs.api("POST", f"{ADMISSION}/{version}/mutatingadmissionpolicies", {
        "metadata": {"name": name},
        "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never",
                 "matchConstraints": {"resourceRules": [rule]},
                 "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}]}})
    jobs.api("POST", f"{ADMISSION}/{version}/mutatingadmissionpolicybindings", {
        "metadata": {"name": name}, "spec": {"policyName": name, "matchResources": here}})


@contextlib.contextmanager
def pods_broken_in_passing(jobs, version):
    """A mutation that makes each pod invalid: 422, and the cause names a field."""
    name = f"breaks-{jobs.namespace}"
    mutate_pods(jobs, version, name, "Object{spec: Object.spec{activeDeadlineSeconds: 0}}")
    wait_dry_run(jobs, accepted=False)
    yield
    jobs.api("DELETE", f"{ADMISSION}/{version}/mutatingadmissionpolicybindings/{name}")
    wait_dry_run(jobs, accepted=True)
