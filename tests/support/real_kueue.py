"""The real Kueue in a kind cluster: its pinned program in an image, installed by its own chart.

    with RealKueue(cluster, waitForPodsReady={...}) as kueue:   # more of Kueue's own configuration
        kueue.cluster_queue("team", ...)                        # as in kueue.py
"""

import json

import yaml
from holdfast import ROOT
from kueue import NAMESPACE, Queues
from localcluster.tools import ensure_kueue

IMAGE = "holdfast-kueue:local"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class RealKueue(Queues):
    """Installed for the `with` block, on the control plane's node: the workers may be taken away. At the end no
    namespace may have objects of Kueue any more."""

    def __init__(self, cluster, **configuration):
        super().__init__(cluster)
        self._configuration = configuration

    def __enter__(self):
        program, chart = ensure_kueue()
        self.cluster.docker("build", "--tag", IMAGE, "--file", str(ROOT / "tests/e2e/kueue/Dockerfile"),
                            str(program.parent))
        self.cluster.load_image(IMAGE)
        repository, _, tag = IMAGE.rpartition(":")
        values = {"featureGates": [{"name": "VisibilityOnDemand", "enabled": False}],
                  "manager.image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
                  "manager.resources": {"requests": {"cpu": "100m"}}, "nodeSelector": {CONTROL_PLANE: ""},
                  "tolerations": [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}]}
        config = yaml.safe_load((chart / "values.yaml").read_text())["managerConfig"]["controllerManagerConfigYaml"]
        config = yaml.safe_load(config) | self._configuration
        self.cluster.helm("upgrade", "--install", "kueue", str(chart), "--namespace", NAMESPACE, "--create-namespace",
                          "--wait", "--timeout", "3m",
                          "--set-json", f"managerConfig.controllerManagerConfigYaml={json.dumps(yaml.safe_dump(config))}",
                          *(part for name, value in values.items()
                            for part in ("--set-json", f"controllerManager.{name}={json.dumps(value)}")))
        # The aggregated API of that feature. While one does not answer, no namespace can be deleted.
        self.cluster.kubectl("delete", "apiservices", "-l", "app.kubernetes.io/name=kueue")
        self.wait_answers()
        return self

    def __exit__(self, *_):
        """Kueue itself has to let its objects go. Then without its webhooks, which would refuse every Job."""
        try:
            self.cluster.kubectl("delete", "clusterqueues,resourceflavors", "--all", "--timeout=60s")
        finally:
            self.cluster.helm("uninstall", "kueue", "--namespace", NAMESPACE, "--wait", "--timeout", "3m")
            self.cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
