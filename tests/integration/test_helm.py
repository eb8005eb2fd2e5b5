"""What Helm's --wait makes of DurableJobs in a release: Helm 3 the program, Helm 4 its code. See docs/gitops.md."""

import json
import subprocess

import pytest
import yaml
from holdfast import job, runs
from localcluster.tools import ensure_gitops, ensure_helm

HOOK = {"helm.sh/hook": "post-install"}


@pytest.fixture()
def helm(cluster, namespace, tmp_path):
    """helm install of a chart with this one object."""
    def install(body, *flags):
        folder = tmp_path / "chart"
        (folder / "templates").mkdir(parents=True)
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: work, version: 1.0.0}")
        (folder / "templates/work.yaml").write_text(yaml.safe_dump(body))
        done = subprocess.run([ensure_helm(), "install", "work", folder, f"--kubeconfig={cluster.kubeconfig}",
                               f"--namespace={namespace}", *flags], capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == 0, done.stderr

    return install


@pytest.fixture()
def helm_4(cluster, jobs):
    """What Helm 4 says when it has waited for these objects: ready, or not, and why."""
    def wait(*names, seconds, hook=False):
        done = subprocess.run([ensure_gitops(), "helm-hook" if hook else "helm", cluster.kubeconfig, str(seconds)],
                              input="\n".join(json.dumps(jobs.get(name)) for name in names), text=True,
                              capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return tuple(done.stdout.rstrip("\n").split("\t"))

    return wait


pytestmark = pytest.mark.usefixtures("operator")


def test_helm_3_does_not_wait_for_a_durablejob(helm, jobs):
    helm(job("work", annotations=runs(900)), "--wait", "--wait-for-jobs")
    assert jobs.status("work")["phase"] in ("Pending", "Running")


def test_helm_3_does_not_wait_for_a_durablejob_that_is_a_hook(helm, jobs):
    body = job("work", annotations=runs(900))
    body["metadata"]["annotations"] = HOOK
    helm(body, "--wait", "--wait-for-jobs")
    assert jobs.status("work")["phase"] in ("Pending", "Running")


def test_helm_4_waits_until_the_job_has_succeeded(helm_4, jobs):
    jobs.apply(job("work", annotations=runs(3)))
    assert helm_4("work", seconds=60) == ("ready", "")
    assert jobs.status("work")["phase"] == "Succeeded"


@pytest.mark.parametrize("name, spec", [
    ("failed", {"annotations": runs(0, 1), "backoffLimit": 0}), ("stalled", {"queue": {"name": "nowhere"}})])
def test_helm_4_says_after_its_timeout_that_a_job_has_failed_or_needs_a_human(helm_4, jobs, name, spec):
    jobs.apply(job(name, **spec))
    verdict, why = helm_4(name, seconds=15)
    assert verdict == "not ready" and "status: Failed" in why and "context deadline exceeded" in why


def test_helm_4_takes_a_suspended_job_for_ready(helm_4, jobs):
    jobs.apply(job("work", suspend=True))
    assert helm_4("work", seconds=60) == ("ready", "")
    assert jobs.status("work")["phase"] == "Suspended"


def test_helm_4_does_not_wait_for_a_hook(helm_4, jobs):
    jobs.apply(job("work", annotations=runs(900)))
    assert helm_4("work", seconds=60, hook=True) == ("ready", "")
    assert jobs.status("work")["phase"] in ("Pending", "Running")
