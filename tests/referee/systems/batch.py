"""batch/v1 Job: as it comes, as its docs advise for fast recovery, and with Kueue in front."""

from kueue import API
from localcluster.tools import pinned_version
from real_kueue import RealKueue
from referee.systems.base import System, job_has_ended, keep_webhooks_to, of_indexed_job, probed, waiting_of, worker_pod

WORKLOADS = API.removeprefix("/apis/") + "/workloads"
DOCS = "https://kubernetes.io/docs/concepts/workloads/controllers/job/"


def tolerated_for(seconds):
    """Tolerations that end so long after a node was marked NotReady; by default it is 300 s."""
    return [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for taint in ("not-ready", "unreachable")]


AT_ONCE = tolerated_for(0)


class Batch(System):
    name = "batch"
    vendor = "Kubernetes"
    resource = "jobs.batch"
    listing = "batch/v1/jobs"
    settings = "defaults, Indexed, `backoffLimit: 100`"
    promise = ("The Job object will start a new Pod if the first Pod fails or is deleted (for example due to a node "
               "hardware failure or a node reboot). [...] the same program may sometimes be started twice.", DOCS)
    controllers = (("kube-system", "component=kube-controller-manager"),)

    def install(self):
        self.version = self.cluster.kubernetes

    def job(self, name):
        pod = self.pod(worker_pod(self.name, name, "-", self.seconds, restartPolicy="Never"))
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "completionMode": "Indexed", "completions": self.indexes, "parallelism": self.indexes,
            "backoffLimit": 100, "template": {"spec": pod}, **self.fields()}}

    def fields(self):
        return {}

    def pod(self, pod):
        return pod

    def claim_of(self, found, index):
        return of_indexed_job(found, index)

    def has_ended(self, found):
        return job_has_ended(found)


class BatchQuick(Batch):
    """For quick recovery, without another controller."""
    name = "batch-quick"
    settings = "tolerations of 0 s; a liveness probe"

    def pod(self, pod):
        return probed(pod | {"tolerations": AT_ONCE})


class BatchTuned(Batch):
    """For one pod at a time, and no budget for what is not the program's fault."""
    name = "batch-tuned"
    settings = ("`podReplacementPolicy: Failed`, disruptions ignored by `podFailurePolicy`, tolerations of 30 s; a "
                "liveness probe")

    def fields(self):
        return {"podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}}

    def pod(self, pod):
        return probed(pod | {"tolerations": tolerated_for(30)})


class Kueue(Batch):
    """Kubernetes replaces a pod; Kueue evicts a workload for which that does not come in time."""
    name = "kueue"
    vendor = "Kueue"
    settings = ("`waitForPodsReady` with `timeout: 1m`, `recoveryTimeout: 1m`, `backoffBaseSeconds: 5`; tolerations of "
                "0 s; a liveness probe. Its alpha `FailureRecoveryPolicy` is off")
    promise = ("RecoveryTimeout defines a timeout, measured since the last transition to the PodsReady=false condition "
               "[...] After exceeding the timeout the corresponding job gets suspended again and requeued",
               "https://kueue.sigs.k8s.io/docs/reference/kueue-config.v1beta2/")
    controllers = (("kueue-system", "control-plane=controller-manager"),)

    def __init__(self, cluster, indexes, seconds):
        super().__init__(cluster, indexes, seconds)
        self.kueue = None

    def install(self):
        self.kueue = RealKueue(self.cluster, waitForPodsReady={
            "timeout": "1m", "recoveryTimeout": "1m", "requeuingStrategy": {"backoffBaseSeconds": 5}})
        self.kueue.__enter__()  # it stays: the cluster is deleted with it
        self.version = pinned_version("kueue", "sigs.k8s.io/kueue")
        if self.cluster.api("GET", f"{API}/clusterqueues/referee")[0] == 404:
            self.kueue.flavor("any", {})
            self.kueue.cluster_queue("referee", {"any": {"cpu": "100", "memory": "100Gi"}})
        # While it is away its webhooks would refuse the Jobs of all others.
        keep_webhooks_to(self.cluster, "kueue", self.namespace)

    def prepare(self):
        if self.cluster.api("GET", f"{API}/namespaces/{self.namespace}/localqueues/jobs")[0] == 404:
            self.kueue.local_queue(self.namespace, "jobs", "referee")

    def job(self, name):
        job = super().job(name)
        job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "jobs"}
        job["spec"]["suspend"] = True
        return job

    def pod(self, pod):
        return probed(pod | {"tolerations": AT_ONCE})

    def objects(self):
        """The Jobs, each with its Workload, which says what Kueue waits for."""
        owners = {item["metadata"]["ownerReferences"][0]["name"]: item for item in self.listed(WORKLOADS)
                  if item["metadata"].get("ownerReferences")}
        return {name: job | {"workload": owners.get(name, {}).get("status", {})}
                for name, job in super().objects().items()}

    def claim_of(self, found, index):
        outcome, counted, why = super().claim_of(found, index)
        return outcome, counted, why or ("" if outcome else waiting_of(found.get("workload", {})))
