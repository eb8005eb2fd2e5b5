"""What the pages show is true. Each manifest is created on a real API server as a dry run, and so are a spec's fields
(`yaml,spec`) in a job. Values of the chart (`yaml,values`) are rendered. The commands of a page are run in their order,
on simulated nodes with a release of the chart and an operator. A block whose language has `,example` is read alone, and `text` is what a program printed."""

import json
import subprocess

import pytest
import yaml

from chart import CHART, NAMESPACE, RELEASE, Helm
from doc_pages import pages
from fake_kubelet import FakeKubelet
from holdfast import Operator, job, remove_guard, wait_for_guard
from lane import LANE
from localcluster.tools import ensure_helm
from page_shell import PageShell

# No other file has these options: the pages change what all of the cluster shares.
CLUSTER = {"nodes": 2}
SERVICE_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:holdfast"
GROUPS = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
INSTALL = f"helm upgrade --install {RELEASE} charts/holdfast -n {NAMESPACE} --set batchJobs.enabled=true --wait"

# What must be there before the commands below a heading (or, for a whole page, before all of them).
BEFORE = {
    ("docs/lane.md", None): "kubectl create job hello --image=busybox:1.36 -- true",
    ("docs/migrate.md", None): "kubectl apply -f examples/from-batch-job/job.yaml",
    ("docs/uninstall.md", "Without Helm"): INSTALL,
}
# They roll Holdfast back, and take it away.
LAST = ["docs/upgrade.md", "docs/uninstall.md"]

PAGES = {page.name: page for page in pages().values()}


def blocks_of(name, language, options=()):
    return [block for block in PAGES[name].blocks if block.language == language and block.options == list(options)]


def names_of(language):
    """Pages that have such blocks without options."""
    return sorted((name for name in PAGES if blocks_of(name, language)),
                  key=lambda name: (LAST.index(name) if name in LAST else -1, name))


def where(name, block):
    return f"{name}:{block.line}"


@pytest.mark.parametrize("name", sorted(name for name, page in PAGES.items() if page.blocks))
def test_each_block_can_be_read(name):
    for block in PAGES[name].blocks:
        place = where(name, block)
        if block.language == "yaml":
            assert all(isinstance(item, (dict, list)) for item in yaml.safe_load_all(block.text)), place
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "python":
            compile(block.text, place, "exec")
        elif block.language == "sh":
            done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
            assert done.returncode == 0, f"{place}: {done.stderr}"


@pytest.mark.parametrize("name", names_of("yaml"))
def test_each_manifest_is_accepted(api, name):
    """A part of one, which no test could apply, is an example."""
    found = []
    for block in blocks_of(name, "yaml"):
        for item in yaml.safe_load_all(block.text):
            assert {"apiVersion", "kind", "metadata"} <= set(item), f"{where(name, block)}: no manifest"
            item["metadata"].pop("namespace", None)  # a dry run does not create it
            found.append(item)
    result = api.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-",
                         stdin=yaml.safe_dump_all(found))
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr


def test_fields_of_a_spec_are_accepted(api):
    found = []
    for name in PAGES:
        for block in blocks_of(name, "yaml", options=["spec"]):
            fields = yaml.safe_load(block.text)
            # Many policies need an Indexed job.
            spec = {"completionMode": "Indexed", "completions": 10, "backoffLimitPerIndex": 1}
            made = job(f"block-{len(found)}", **spec, **fields.get("spec", fields))
            found.append(json.dumps(made))
    result = api.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin="\n---\n".join(found))
    assert found and result.returncode == 0, result.stderr


def test_each_set_of_values_is_rendered(tmp_path):
    helm = Helm(ensure_helm(), tmp_path)
    for name in PAGES:
        for block in blocks_of(name, "yaml", options=["values"]):
            done = helm("template", RELEASE, CHART, values=yaml.safe_load(block.text), check=False)
            assert done.returncode == 0, f"{where(name, block)}: {done.stderr}"


# ---- the commands


class Logs(dict):
    """Any pod has printed this."""

    def get(self, pod):
        return f"the log of {pod}\n"


@pytest.fixture(scope="module")
def shell(cluster, tmp_path_factory):
    """Holdfast is installed by Helm on simulated nodes. What works is a process with that service account."""
    folder = tmp_path_factory.mktemp("shell")
    shell = PageShell(cluster, folder, {**cluster.tools, "helm": ensure_helm()})
    with FakeKubelet(cluster, "node-of-logs", folder) as kubelet:
        kubelet.logs = Logs()
        for number in range(CLUSTER["nodes"]):
            kubelet.answer_for(f"node-{number}")
        remove_guard(cluster)
        shell.begin("install")
        shell.run(INSTALL)
        wait_for_guard(cluster)
        kubeconfig = cluster.kubeconfig_for(SERVICE_ACCOUNT, GROUPS, folder / "operator.yaml")
        with Operator(cluster, *LANE, kubeconfig=kubeconfig):
            yield shell


@pytest.mark.parametrize("name", names_of("sh"))
def test_the_commands_run_in_their_order(shell, name):
    shell.begin(name.removesuffix(".md").removeprefix("docs/").replace("/", "-").lower())
    seen = set()
    for block in blocks_of(name, "sh"):
        for heading in (None, block.heading):
            if heading not in seen and (name, heading) in BEFORE:
                shell.run(BEFORE[name, heading])
            seen.add(heading)
        shell.run(block.text)


def test_what_stands_before_the_commands_is_for_pages_that_are_there():
    assert {name for name, _ in BEFORE} | set(LAST) <= set(names_of("sh"))
