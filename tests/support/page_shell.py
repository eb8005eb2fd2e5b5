"""A shell for the commands of a page: in a copy of the tree, so that a page may write files, and in a namespace of its
own. Simulated nodes run the pods for as long as the page does not wait for their end.

    shell = PageShell(cluster, folder, tools)
    shell.begin("hang")
    shell.run(block.text)
"""

import contextlib
import re
import threading

from doc_pages import ROOT
from localcluster import wait_for
from shell import Shell

# What waits for a job's end, and the hook of the chart.
WAITS = re.compile(r"condition=complete|--wait\b.*--timeout|--key.* --wait|^until |helm uninstall", re.I | re.M)
RUN_FOR = "holdfast-test/run-for"
LOOK_SECONDS = 0.3


class PageShell:
    def __init__(self, cluster, folder, tools):
        self.cluster, self.folder = cluster, folder
        self._shell = Shell(folder, cluster.kubeconfig, tools, "default")
        self._namespaces = []
        self._tree = None

    def begin(self, name):
        """A namespace of the page's own, and a folder that looks like the tree."""
        self._tree = self.folder / f"tree-{name}"
        self._tree.mkdir()
        for path in ROOT.iterdir():
            (self._tree / path.name).symlink_to(path)
        namespace = f"page-{name}"
        self.cluster.kubectl("create", "namespace", namespace)
        wait_for(f"the default service account of {namespace}", lambda: self.cluster.api(
            "GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")[0] == 200, 60)
        self._namespaces = [namespace, "holdfast-system"]
        self._shell(f"kubectl config set-context --current --namespace={namespace}")

    def run(self, text):
        """Runs a block; an error of any command fails it. Returns what it printed."""
        with self._pods_end() if WAITS.search(text) else contextlib.nullcontext():
            return self._shell(f"set -o pipefail; cd '{self._tree}'\n{text}")

    @contextlib.contextmanager
    def _pods_end(self):
        done = threading.Event()

        def end():
            while not done.wait(LOOK_SECONDS):
                for path in self._running():
                    self.cluster.api("PATCH", path, {"metadata": {"annotations": {RUN_FOR: "0s"}}}, "merge")

        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _running(self):
        """The paths of the pods of jobs that run for ever: not the operator's."""
        for namespace in self._namespaces:
            status, answer = self.cluster.api("GET", f"/api/v1/namespaces/{namespace}/pods")
            for pod in answer["items"] if status == 200 else []:
                owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])}
                if (owners & {"Job", "DurableJob"} and pod["status"].get("phase") == "Running"
                        and RUN_FOR not in pod["metadata"].get("annotations", {})):
                    yield f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
