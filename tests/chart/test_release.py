"""The chart on a real API server: each set of values is taken, releases are changed and taken back."""

import json
import re
import subprocess

import pytest
import yaml
from chart import CHART, NAMESPACE, RELEASE, ROOT, VALUES, pick
from localcluster import wait_for

PRIVILEGED = {"containers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]}
LIMIT = "--timeout=60s"
LIMITED = {"watchNamespaces": ["proofs"], "workerNamespaces": []}
SECOND = LIMITED | {"guard": {"enabled": False}}


def pod_of(item):
    """A pod as the workload's controller would make it."""
    template = item["spec"]["template"]
    return {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {**template["metadata"], "name": item["metadata"]["name"], "namespace": NAMESPACE}}


def dry_run(cluster, text, check=True):
    return cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=text, check=check)


@pytest.mark.parametrize("name", VALUES)
def test_the_api_server_takes_what_is_rendered(cluster, helm, name):
    done = dry_run(cluster, helm.template(VALUES[name], "--include-crds"))
    assert done.stderr == ""  # not one warning either


@pytest.mark.parametrize("name", VALUES)
def test_its_pods_are_restricted_ones(cluster, helm, name):
    objects = helm.objects(VALUES[name])
    pods = [pod_of(item) for item in objects if item["kind"] in ("Deployment", "Job")]
    assert pods
    accounts = [item for item in objects if item["kind"] == "ServiceAccount"]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(accounts))
    for pod in pods:
        status, answer = cluster.api("POST", f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", pod)
        assert status == 201, answer
    cluster.kubectl("delete", "-f", "-", input=yaml.safe_dump_all(accounts))


def test_other_pods_are_refused_there(cluster):
    pod = {"metadata": {"name": "x"}, "spec": PRIVILEGED | {"serviceAccountName": "default"}}
    status, answer = cluster.api("POST", f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", pod)
    assert status == 403 and "PodSecurity" in answer["message"]


@pytest.fixture(scope="module")
def release(admin):
    """Installed with the defaults."""
    admin("install", RELEASE, CHART, "--wait", LIMIT)
    yield RELEASE
    admin("uninstall", RELEASE, "--no-hooks", "--wait", LIMIT)


@pytest.mark.parametrize("name", list(VALUES) + ["defaults"])
def test_a_release_is_changed_from_one_set_of_values_to_the_next(admin, release, name):
    """An immutable field that differs would be refused."""
    admin("upgrade", release, CHART, "--wait", LIMIT, values=VALUES[name])


def test_a_release_is_rolled_back(admin, cluster, release):
    admin("upgrade", release, CHART, "--wait", LIMIT, values=VALUES["some-namespaces"])
    roles = cluster.kubectl("get", "role", "-n", "proofs", "-o", "name").stdout
    assert "role.rbac.authorization.k8s.io/holdfast" in roles
    admin("rollback", release, "--wait", LIMIT)
    assert cluster.kubectl("get", "role", "-n", "proofs", "-o", "name").stdout == ""


def test_the_commands_of_the_notes_work_as_they_stand(admin, cluster, release):
    notes = admin("get", "notes", release).stdout
    apply = re.search(r"^kubectl apply -f - <<'JOB'\n.*?^JOB\n", notes, re.MULTILINE | re.DOTALL)[0]
    shell(cluster, apply)
    assert cluster.kubectl("get", "dj", "first", "-o", "name").stdout == "durablejob.holdfast.dev/first\n"
    upgrade = re.search(r"^helm show crds CHART.*$", notes, re.MULTILINE)[0]
    crds = admin("show", "crds", CHART).stdout
    shell(cluster, upgrade.replace("helm show crds CHART", "cat"), crds)


def shell(cluster, script, text=""):
    """As a person types it."""
    path = f"{cluster.tools['kubectl'].parent}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-euc", script], input=text, text=True, capture_output=True, timeout=60,
                          env={"PATH": path, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.folder)},
                          check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def limited(admin, release):
    """The release, limited to namespaces, so that there is room for another."""
    admin("upgrade", release, CHART, "--wait", LIMIT, values=LIMITED | {"watchNamespaces": ["media"]})
    return release


def test_after_uninstall_definition_and_jobs_are_there_and_nothing_else(admin, cluster, limited):
    other = ["--namespace=proofs", "--wait", LIMIT]
    admin("install", "other", CHART, *other, values=SECOND | {"nameOverride": "other"})
    cluster.kubectl("apply", "-f", str(ROOT / "examples/one-shot.yaml"))
    admin("uninstall", "other", *other, "--no-hooks")
    kinds = "deploy,svc,sa,netpol,pdb,role,rolebinding,clusterrole,clusterrolebinding"
    left = json.loads(cluster.kubectl("get", kinds, "-A", "-o", "json",
                                      "-l", "app.kubernetes.io/instance=other").stdout)
    assert left["items"] == []
    assert cluster.kubectl("get", "dj", "-o", "name").stdout
    assert cluster.kubectl("get", "crd", "durablejobs.holdfast.dev").returncode == 0


@pytest.mark.parametrize("namespace,watched,words", [
    (NAMESPACE, ["proofs"], f"of Holdfast is in namespace {NAMESPACE} already, and both would share its Leases"),
    ("proofs", [], "a job must not have two operators: set watchNamespaces in both"),
    ("proofs", ["proofs", "media"], "media is worked on by release holdfast already"),
])  # fmt: skip
def test_a_second_release_that_would_get_in_the_way_is_refused(admin, limited, namespace, watched, words):
    done = admin("install", "second", CHART, f"--namespace={namespace}", check=False,
                 values=SECOND | {"watchNamespaces": watched, "checkOtherNamespaces": namespace != NAMESPACE})
    assert done.returncode != 0
    assert words in done.stderr


def test_a_release_that_works_on_jobs_does_not_turn_to_observing(admin, release):
    done = admin("upgrade", release, CHART, check=False, values=LIMITED | {"rescue": {"mode": "observe"}})
    assert done.returncode != 0
    assert f"release {release} works on jobs, and would leave them" in done.stderr


# What an account needs to install, upgrade and uninstall a release, and no more: docs/install.md.
ACCOUNT = "system:serviceaccount:ci:deployer"


@pytest.fixture
def deployer(helm, cluster):
    """helm as an account that may do everything in the release's namespace, and elsewhere only what the chart makes."""
    rules = [
        {"apiGroups": ["rbac.authorization.k8s.io"], "verbs": ["*"],
         "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]},
        {"apiGroups": ["admissionregistration.k8s.io"], "verbs": ["*"],
         "resources": ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]},
        {"apiGroups": ["flowcontrol.apiserver.k8s.io"], "verbs": ["*"],
         "resources": ["flowschemas", "prioritylevelconfigurations"]},
        {"apiGroups": ["apiextensions.k8s.io"], "verbs": ["*"], "resources": ["customresourcedefinitions"]}]
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"}
    objects = [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "deployer"},
         "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "deployer"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "deployer"},
         "subjects": [subject]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
         "metadata": {"name": "deployer", "namespace": NAMESPACE}, "subjects": [subject],
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))

    class As:
        kubeconfig = cluster.kubeconfig_for(ACCOUNT, ["system:authenticated"], cluster.folder / "deployer")

    yield helm.on(As)
    cluster.kubectl("delete", "-f", "-", input=yaml.safe_dump_all(objects))


def test_an_account_that_may_not_look_into_other_namespaces_installs_upgrades_and_uninstalls(deployer, cluster, release):
    assert cluster.kubectl("auth", "can-i", "list", "deployments", "-A", f"--as={ACCOUNT}", check=False
                           ).stdout == "no\n"
    values = {"nameOverride": "ci", "watchNamespaces": ["proofs"], "workerNamespaces": [],
              "authorPolicy": {"enabled": False}, "flowControl": {"enabled": False}, "guard": {"enabled": False}}
    deployer("upgrade", release, CHART, "--wait", LIMIT, values={"replicas": 1})
    deployer("upgrade", release, CHART, "--wait", LIMIT, values={})
    denied = deployer("install", "ci", CHART, "--dry-run=server", check=False,
                      values=values | {"checkOtherNamespaces": True})
    assert denied.returncode != 0 and "deployments.apps is forbidden" in denied.stderr


def test_a_namespace_with_pods_of_jobs_is_not_taken_off_the_list(admin, cluster, release):
    both = LIMITED | {"watchNamespaces": ["media", "proofs"]}
    admin("upgrade", release, CHART, "--wait", LIMIT, values=both)
    pod = {"metadata": {"name": "left-1", "finalizers": ["holdfast.dev/outcome"]},
           "spec": {"containers": [{"name": "main", "image": "x"}], "automountServiceAccountToken": False}}
    wait_for("the service account", lambda: cluster.api("POST", "/api/v1/namespaces/proofs/pods", pod)[0] == 201, 30)
    less = both | {"watchNamespaces": ["media"]}
    done = admin("upgrade", release, CHART, values=less, check=False)
    assert done.returncode != 0
    assert "pod left-1 of a job is in namespace proofs" in done.stderr
    cluster.api("PATCH", "/api/v1/namespaces/proofs/pods/left-1", {"metadata": {"finalizers": None}},
                "application/merge-patch+json")
    admin("upgrade", release, CHART, "--wait", LIMIT, values=less)


def test_a_namespace_with_a_durablejob_that_an_outbox_holds_is_not_taken_off_the_list(admin, cluster, release):
    both = LIMITED | {"watchNamespaces": ["media", "proofs"]}
    admin("upgrade", release, CHART, "--wait", LIMIT, values=both)
    path = "/apis/holdfast.dev/v1alpha1/namespaces/proofs/durablejobs"
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    status, answer = cluster.api("POST", path, {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "spec": {"template": template},
        "metadata": {"name": "held", "finalizers": ["holdfast.dev/outbox"]}})
    assert status == 201, answer
    less = both | {"watchNamespaces": ["media"]}
    done = admin("upgrade", release, CHART, values=less, check=False)
    assert done.returncode != 0
    assert "DurableJob held is in namespace proofs and has the operator's finalizer" in done.stderr
    cluster.api("PATCH", f"{path}/held", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    admin("upgrade", release, CHART, "--wait", LIMIT, values=less)
    cluster.api("DELETE", f"{path}/held")


def test_two_releases_stand_side_by_side(admin, cluster, limited):
    done = admin("install", "second", CHART, "--namespace=media", check=False, values=LIMITED)
    assert f"release {limited} in namespace {NAMESPACE} has it: set guard.enabled=false" in done.stderr
    second = ["second", CHART, "--namespace=media", "--wait", LIMIT]
    admin("install", *second, values=SECOND)
    deployments = json.loads(cluster.kubectl("get", "deploy", "-A", "-o", "json").stdout)["items"]
    assert {pick(deployments, "Deployment", name=name)["metadata"]["namespace"]
            for name in (limited, "second")} == {NAMESPACE, "media"}
    admin("uninstall", "second", "--namespace=media", "--no-hooks", "--wait", LIMIT)
