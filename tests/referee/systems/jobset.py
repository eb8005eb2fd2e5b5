"""JobSet: batch/v1 Jobs as one group; here one for each index, so that it can start one of them anew."""

import json

from localcluster.tools import ensure_jobset, pinned_version
from referee.systems.base import (BESIDE_THE_CONTROL_PLANE, IMAGE_FOLDER, System, condition, keep_webhooks_to, probed,
                                  waiting_of, worker_pod)
from referee.systems.batch import AT_ONCE

NAMESPACE, CONTROLLER = "jobset-system", "jobset-controller"
IMAGE = "holdfast-referee-jobset:local"
INDEX = "jobset.sigs.k8s.io/job-index"


class JobSet(System):
    name = "jobset"
    vendor = "JobSet"
    resource = "jobsets.jobset.x-k8s.io,jobs.batch"
    listing = "jobset.x-k8s.io/v1alpha2/jobsets"
    settings = ("a Job for each run, `failurePolicy: {maxRestarts: 100}` with the action `RestartJob` (alpha); tolerations of 0 s; a "
                "liveness probe")
    promise = ("Restart the Job individually (i.e., recreate only the failed Job without touching the other Jobs)",
               "https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/api/jobset/v1alpha2/jobset_types.go")
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
        self._open_gate()
        keep_webhooks_to(self.cluster, "jobset", self.namespace)

    def _open_gate(self):
        """Its chart has no value for a feature gate."""
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONTROLLER}-config"
        found = self.cluster.api("GET", path)[1]
        [(key, text)] = found["data"].items()
        if "featureGates" not in text:
            found["data"][key] = text.rstrip() + "\nfeatureGates:\n  RestartJob: true\n"
            status, answer = self.cluster.api("PUT", path, found)
            assert status == 200, answer
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "restart", f"deployment/{CONTROLLER}")
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", f"deployment/{CONTROLLER}")

    def job(self, name):
        pod = probed(worker_pod(self.name, name, "$(INDEX)", self.seconds, restartPolicy="Never", tolerations=AT_ONCE))
        pod["containers"][0]["env"].append(
            {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}})
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": {
            "failurePolicy": {"maxRestarts": 100, "rules": [{"name": "one", "action": "RestartJob"}]}, "replicatedJobs": [{
                "name": "all", "replicas": self.indexes, "template": {"spec": {
                    "completionMode": "Indexed", "completions": 1, "parallelism": 1, "backoffLimit": 0,
                    "template": {"spec": pod}}}}]}}

    def objects(self):
        """The JobSets, each with its Jobs by index, which say what has become of each."""
        jobs = {item["metadata"]["name"]: item.get("status", {}) for item in self.listed("batch/v1/jobs")}
        return {name: item | {"jobs": {str(index): jobs.get(f"{name}-all-{index}", {}) for index in range(self.indexes)}}
                for name, item in super().objects().items()}

    def has_ended(self, found):
        return condition(found.get("status", {}), "Completed", "Failed") is not None

    def claim_of(self, found, index):
        done, failed = (condition(found.get("status", {}), kind) for kind in ("Completed", "Failed"))
        if failed:
            return "Failed", 0, failed["reason"]
        own = found["jobs"].get(str(index), {})
        if done or condition(own, "Complete"):
            return "Succeeded", 1, ""
        return None, 0, waiting_of(found.get("status", {})) or waiting_of(own)
