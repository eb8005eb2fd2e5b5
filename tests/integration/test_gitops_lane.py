"""What Argo CD, Flux, kstatus and Helm have built in for batch/v1 Jobs, on Jobs that Holdfast runs: docs/gitops.md."""

import re
import subprocess

import pytest
import yaml
from gitops_tools import argo_cd, flux, kstatus
from holdfast import ROOT, runs
from lane import LANE, batch_job
from localcluster.tools import ensure_helm

OPERATOR_FLAGS = LANE
STATES = {
    "its pods run": ("running", "active"),
    "`Suspended`": ("suspended", "Suspended"),
    "`Complete`": ("complete", "Complete"),
    "`Failed`": ("failed", "Failed"),
}
JOBS = {
    "running": batch_job("running", annotations=runs(900)),
    "suspended": batch_job("suspended", suspend=True),
    "complete": batch_job("complete", annotations=runs(0)),
    "failed": batch_job("failed", annotations=runs(0, 1), backoffLimit=0),
}


def rows():
    section = (ROOT / "docs/gitops.md").read_text().partition("## Jobs of batch/v1")[2]
    found = re.findall(r"^\| (.*?) \| `(\w+)` \| `(\w+)` \| `(\w+)` \|$", section, re.MULTILINE)
    return {cells[0]: list(cells[1:]) for cells in found}


def test_the_table_has_all_states():
    assert sorted(rows()) == sorted(STATES)


@pytest.mark.parametrize("row", STATES)
def test_each_row_of_the_table_is_what_the_tools_say(batch, row):
    name, condition = STATES[row]
    batch.apply(JOBS[name])
    if condition == "active":
        batch.wait(name, "active", lambda status: status.get("active") == 1)
    else:
        batch.wait_condition(name, condition)
    found = {"apiVersion": "batch/v1", "kind": "Job", **batch.get(name)}
    assert [tool(found)[0][0] for tool in (argo_cd, flux, kstatus)] == rows()[row]


@pytest.fixture()
def helm(cluster, batch, tmp_path):
    """helm install --wait --wait-for-jobs of a chart with this one object; the process."""
    def install(body):
        folder = tmp_path / "chart"
        (folder / "templates").mkdir(parents=True)
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: work, version: 1.0.0}")
        (folder / "templates/work.yaml").write_text(yaml.safe_dump(body))
        return subprocess.Popen([ensure_helm(), "install", "work", folder, f"--kubeconfig={cluster.kubeconfig}",
                                 f"--namespace={batch.namespace}", "--wait", "--wait-for-jobs", "--timeout=90s"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return install


def end(process):
    """(exit code, output)."""
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


@pytest.mark.parametrize("hook", [{}, {"helm.sh/hook": "post-install"}])
def test_helm_3_waits_until_the_job_is_complete(helm, batch, hook):
    code, output = end(helm(batch_job("work", annotations=runs(3), fields=hook)))
    assert code == 0, output
    assert batch.holds("work", "Complete")


def test_helm_3_says_that_the_job_has_failed(helm, batch):
    code, output = end(helm(batch_job("work", annotations=runs(0, 1), backoffLimit=0)))
    assert code != 0 and "job is failed" in output, output


def test_helm_3_waits_on_when_a_pod_is_lost(helm, batch, cluster):
    process = helm(batch_job("work", annotations=runs(600), backoffLimit=0))
    lost = batch.durable.wait_running("work")["metadata"]["name"]
    cluster.kubectl("delete", "pod", lost, "-n", batch.namespace, "--grace-period=0", "--force")
    batch.durable.end_pod(batch.durable.wait_running("work"))
    code, output = end(process)
    assert code == 0, output
    assert batch.durable_of("work")["status"]["disruptions"] == 1
    assert not batch.wait_condition("work", "Complete").get("failed")
