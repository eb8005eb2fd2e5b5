"""Programs that create a job and wait for its end: docs/call-it.md and examples/callers."""

import copy
import runpy

import kubernetes
import pytest
from holdfast import ROOT, runs


@pytest.mark.parametrize("exit_code,phase", [(0, "Succeeded"), (1, "Failed")])
def test_a_program_in_python_creates_a_job_once_and_sees_its_end(cluster, operator, jobs, exit_code, phase):
    example = runpy.run_path(str(ROOT / "examples/callers/submit.py"))
    kubernetes.config.load_kube_config(str(cluster.kubeconfig))
    api = kubernetes.client.CustomObjectsApi()
    spec = copy.deepcopy(example["SPEC"]) | {"backoffLimit": 0}
    spec["template"]["metadata"] = {"annotations": runs(1, exit_code)}
    name = example["job_name"]("report", "2026-07")
    for _ in range(2):  # as by a caller that was started again
        example["submit"](api, jobs.namespace, name, spec)
        assert example["wait"](api, jobs.namespace, name) == phase
    assert jobs.status(name)["attempt"] == 1
