"""The chart on a real API server: each set of values is taken, releases are changed and taken back."""

import json
import re
import subprocess

import pytest
import yaml
from chart import CHART, NAMESPACE, RELEASE, ROOT, VALUES, pick

PRIVILEGED = {"containers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]}
LIMIT = "--timeout=60s"


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


def test_after_uninstall_definition_and_jobs_are_there_and_nothing_else(admin, cluster):
    other = ["other", "--namespace=proofs", "--wait", LIMIT]
    admin("install", *other[:1], CHART, *other[1:], values={"nameOverride": "other", "workerNamespaces": []})
    cluster.kubectl("apply", "-f", str(ROOT / "examples/one-shot.yaml"))
    admin("uninstall", *other, "--no-hooks")
    kinds = "deploy,svc,sa,netpol,pdb,role,rolebinding,clusterrole,clusterrolebinding"
    left = json.loads(cluster.kubectl("get", kinds, "-A", "-o", "json",
                                      "-l", "app.kubernetes.io/instance=other").stdout)
    assert left["items"] == []
    assert cluster.kubectl("get", "dj", "-o", "name").stdout
    assert cluster.kubectl("get", "crd", "durablejobs.holdfast.dev").returncode == 0


def test_two_releases_in_one_namespace_are_refused(admin, release):
    done = admin("install", "second", CHART, values={"workerNamespaces": []}, check=False)
    assert done.returncode != 0
    assert f"release {release} of Holdfast is in namespace {NAMESPACE} already" in done.stderr


def test_two_releases_stand_side_by_side(admin, cluster, release):
    second = ["second", CHART, "--namespace=media", "--wait", LIMIT]
    admin("install", *second, values={"workerNamespaces": [], "watchNamespaces": ["proofs"]})
    deployments = json.loads(cluster.kubectl("get", "deploy", "-A", "-o", "json").stdout)["items"]
    assert {pick(deployments, "Deployment", name=name)["metadata"]["namespace"]
            for name in (release, "second")} == {NAMESPACE, "media"}
    admin("uninstall", "second", "--namespace=media", "--no-hooks", "--wait", LIMIT)
