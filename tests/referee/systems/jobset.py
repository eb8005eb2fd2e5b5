"""JobSet: batch/v1 Jobs as one group, which starts anew when one of them fails."""

import json

from localcluster.tools import ensure_jobset, pinned_version
from referee.systems.base import (BESIDE_THE_CONTROL_PLANE, IMAGE_FOLDER, System, condition, keep_webhooks_to, of_indexed_job,
                                  waiting_of, worker_pod)
from referee.systems.batch import QUICK

NAMESPACE = "jobset-system"
IMAGE = "holdfast-referee-jobset:local"


class JobSet(System):
    name = "jobset"
    resource = "jobsets.jobset.x-k8s.io,jobs.batch"
    listing = "jobset.x-k8s.io/v1alpha2/jobsets"
    settings = "`failurePolicy: {maxRestarts: 100}`; tolerations of 30 s"
    promise = ("If any job is marked failed, the entire JobSet will be recreated",
               "https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/README.md")
    controllers = ((NAMESPACE, "control-plane=controller-manager"),)

    def install(self):
        program, chart = ensure_jobset()
        self.version = pinned_version("jobset", "sigs.k8s.io/jobset")
        self.cluster.docker("build", "--tag", IMAGE, "--build-arg", f"PROGRAM={program.name}", "--build-arg",
                            "TARGET=/manager", "--file", str(IMAGE_FOLDER / "Dockerfile"), str(program.parent))
        self.cluster.load_image(IMAGE)
        repository, _, tag = IMAGE.rpartition(":")
        values = {"image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
                  "controller.resources": {"requests": {"cpu": "100m"}},
                  **{f"controller.{name}": value for name, value in BESIDE_THE_CONTROL_PLANE.items()}}
        self.cluster.helm("upgrade", "--install", "jobset", str(chart), "--namespace", NAMESPACE, "--create-namespace",
                          "--wait", "--timeout", "3m", *(
                              part for name, value in values.items()
                              for part in ("--set-json", f"{name}={json.dumps(value)}")))
        keep_webhooks_to(self.cluster, "jobset", self.namespace)

    def job(self, name):
        pod = worker_pod(self.name, name, "-", self.seconds, restartPolicy="Never", tolerations=QUICK)
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": {
            "failurePolicy": {"maxRestarts": 100}, "replicatedJobs": [{
                "name": "all", "replicas": 1, "template": {"spec": {
                    "completionMode": "Indexed", "completions": self.indexes, "parallelism": self.indexes,
                    "backoffLimit": 0, "template": {"spec": pod}}}}]}}

    def objects(self):
        """The JobSets, each with its Job, which says what has become of each index."""
        jobs = {item["metadata"]["name"]: item.get("status", {}) for item in self.listed("batch/v1/jobs")}
        return {name: item | {"job": {"status": jobs.get(f"{name}-all-0", {})}} for name, item in super().objects().items()}

    def has_ended(self, found):
        return condition(found.get("status", {}), "Completed", "Failed") is not None

    def claim_of(self, found, index):
        done, failed = (condition(found.get("status", {}), kind) for kind in ("Completed", "Failed"))
        if failed:
            return "Failed", 0, failed["reason"]
        outcome, counted, why = of_indexed_job(found["job"], index)
        if done:
            return "Succeeded", max(1, counted), ""
        return (outcome, counted, why) if outcome == "Succeeded" else (
            None, 0, waiting_of(found.get("status", {})) or waiting_of(found["job"].get("status", {})))
