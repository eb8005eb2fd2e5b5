"""What Argo CD, Flux and kstatus, by their own code, make of objects that a real operator has written: docs/gitops.md."""

import re
import subprocess

import pytest
import yaml
from doc_blocks import blocks
from gitops_states import CUSTOMIZATIONS, make, shape, stored
from gitops_tools import CONFIG_MAP, KUSTOMIZATION, argo_cd, flux, kstatus
from holdfast import ROOT

DOCS = (ROOT / "docs/gitops.md").read_text()
# The states of the tables in docs/gitops.md, by their first cell.
STATES = {
    "new, or just edited": ("DurableJob", "new", "edited"),
    "its pods start or run": ("DurableJob", "running"),
    "waits: for a queue, a gate, its back-off": ("DurableJob", "queued", "gated", "backoff"),
    "is cancelled, its pods still run": ("DurableJob", "cancelling"),
    "outcome decided, `Always` stages run": ("DurableJob", "decided"),
    "`Stalled`: only a human can fix it": ("DurableJob", "stalled"),
    "`Suspended`": ("DurableJob", "suspended"),
    "`Succeeded`, also with `Partial`": ("DurableJob", "succeeded", "partial"),
    "`Failed`": ("DurableJob", "failed"),
    "`Cancelled`": ("DurableJob", "cancelled"),
    "JobQueue": ("JobQueue", "open"),
    "JobQueue with `hold: true`": ("JobQueue", "held"),
    "JobQueue, new": ("JobQueue", "new"),
    "WorkerPool with `minWorkers` live workers": ("WorkerPool", "available"),
    "WorkerPool whose workers start": ("WorkerPool", "starting"),
    "WorkerPool whose workers cannot start": ("WorkerPool", "stalled"),
    "WorkerPool, new": ("WorkerPool", "new"),
}


@pytest.fixture(scope="module")
def objects(cluster):
    return make(cluster)


def rows():
    """The rows of both tables: first cell, and what Argo CD, Flux and kstatus say."""
    found = {}
    for line in DOCS.partition("## Jobs of batch/v1")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"`\w+`", cells[1]):
            found[cells[0]] = [cell.strip("`") for cell in cells[1:]]
    return found


def test_the_tables_have_all_states():
    assert sorted(rows()) == sorted(STATES)


@pytest.mark.parametrize("row", STATES)
def test_each_row_of_the_tables_is_what_the_tools_say(objects, row):
    kind, *names = STATES[row]
    said = [[tool(objects[kind, name])[0][0] for tool in (argo_cd, flux, kstatus)] for name in names]
    assert said == [rows()[row]] * len(names)


def test_a_job_that_is_being_deleted_is_on_its_way(objects):
    leaving = dict(objects["DurableJob", "succeeded"])
    leaving["metadata"] = leaving["metadata"] | {"deletionTimestamp": "2026-01-02T03:04:05Z"}
    assert argo_cd(leaving) == [("Progressing", "Pending deletion")]
    assert kstatus(leaving)[0][0] == "Terminating"


def test_the_test_data_is_what_the_operator_writes(objects):
    paths = {path for path in CUSTOMIZATIONS.glob("*/testdata/*.yaml")}
    assert paths == {stored(*which) for which in objects}
    for which, found in objects.items():
        assert shape(yaml.safe_load(stored(*which).read_text())) == shape(found), which


def health_tests():
    for path in sorted(CUSTOMIZATIONS.glob("*/health_test.yaml")):
        for test in yaml.safe_load(path.read_text())["tests"]:
            yield pytest.param(path.parent, test, id=f"{path.parent.name}/{test['inputPath']}")


@pytest.mark.parametrize("folder, test", health_tests())
def test_argo_cd_reads_the_test_data_as_its_own_tests_would(folder, test):
    found = yaml.safe_load((folder / test["inputPath"]).read_text())
    assert argo_cd(found) == [(test["healthStatus"]["status"], test["healthStatus"]["message"])]


@pytest.mark.parametrize("folder", sorted(CUSTOMIZATIONS.iterdir()), ids=lambda folder: folder.name)
def test_no_test_data_is_left_out(folder):
    tested = [test["inputPath"] for test in yaml.safe_load((folder / "health_test.yaml").read_text())["tests"]]
    assert sorted(tested) == sorted(f"testdata/{path.name}" for path in (folder / "testdata").iterdir())


def test_the_config_map_has_the_scripts_as_they_are():
    done = subprocess.run([ROOT / "hack/render-gitops", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = yaml.safe_load(CONFIG_MAP.read_text())["data"]
    for kind in ("DurableJob", "JobQueue", "WorkerPool"):
        assert data[f"resource.customizations.health.holdfast.dev_{kind}"] == (
            CUSTOMIZATIONS / kind / "health.lua").read_text()


def test_the_config_map_is_a_patch_that_the_api_server_takes(cluster, tmp_path):
    """As docs/gitops.md says, into a ConfigMap with settings of its own."""
    namespace = "argocd"
    cluster.kubectl("create", "namespace", namespace)
    cluster.kubectl("create", "configmap", "argocd-cm", "-n", namespace, "--from-literal=url=https://example.com")
    cluster.kubectl("patch", "configmap", "argocd-cm", "-n", namespace, "--patch-file", str(CONFIG_MAP))
    data = cluster.api("GET", f"/api/v1/namespaces/{namespace}/configmaps/argocd-cm")[1]["data"]
    assert data["url"] == "https://example.com" and len(data) == 4


def test_the_docs_show_the_expressions_that_are_tested():
    [checks] = [block for block in blocks("gitops.md", "yaml") if "healthCheckExprs" in block]
    shown = yaml.safe_load(checks)["healthCheckExprs"]
    assert shown == yaml.safe_load(KUSTOMIZATION.read_text())["spec"]["healthCheckExprs"]
