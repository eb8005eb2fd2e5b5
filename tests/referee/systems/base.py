"""What the referee asks of a job system: to be installed as its docs say, to run a job of some indexes, and to say at
the end what it thinks has become of each."""

import json
import pathlib

from referee.checker import GONE, Claim
from referee.ledger import Unit
from localcluster import ClusterError, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
IMAGE = "holdfast-referee:local"
IMAGE_FOLDER = ROOT / "tests/referee/images"
PROBED = "/probed"
INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "jobset.sigs.k8s.io/job-index", "holdfast.dev/index")
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
# Controllers run there: the nemesis takes workers away, and controllers it kills by themselves.
BESIDE_THE_CONTROL_PLANE = {
    "nodeSelector": {CONTROL_PLANE: ""},
    "tolerations": [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}]}


def worker_pod(system, job, index, seconds, **more):
    """The pod's spec: the worker, with the folder of the ledger."""
    fields = {"POD_UID": "metadata.uid", "NODE_NAME": "spec.nodeName"}
    return {
        "terminationGracePeriodSeconds": 5,
        "containers": [{
            "name": "main", "image": IMAGE, "imagePullPolicy": "Never",
            "command": ["/worker", system, job, index, str(seconds)],
            "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()],
            "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}},
            "volumeMounts": [{"name": "referee", "mountPath": "/referee"}]}],
        "volumes": [{"name": "referee", "hostPath": {"path": "/referee", "type": "Directory"}}], **more}


def probed(pod):
    """The same with what Kubernetes offers against a program that hangs: a liveness probe of the file that it touches.
    It finds a hang in 30 to 40 s."""
    [container] = pod["containers"]
    probe = {"exec": {"command": ["/worker", "check", f"{PROBED}/beat", "10"]}, "periodSeconds": 10, "failureThreshold": 3,
             "timeoutSeconds": 5}
    container = container | {
        "livenessProbe": probe, "env": container["env"] + [{"name": "PROBED_FILE", "value": f"{PROBED}/beat"}],
        "volumeMounts": container["volumeMounts"] + [{"name": "probed", "mountPath": PROBED}]}
    return pod | {"containers": [container], "volumes": pod["volumes"] + [{"name": "probed", "emptyDir": {}}]}


def unit_of(pod):
    """(job, index) of a worker's pod, by its command; None: it is none, or a warm one."""
    container = pod["spec"]["containers"][-1] if pod["spec"]["containers"][0]["name"] == "wait" else pod["spec"]["containers"][0]
    words = [*container.get("command", []), *container.get("args", [])]
    if "/worker" not in words or len(words) < words.index("/worker") + 4:
        return None
    job, index = words[words.index("/worker") + 2:][:2]
    if not index.isdigit():
        labels = pod["metadata"].get("labels", {})
        index = next((labels[key] for key in INDEX_LABELS if key in labels), "")
    return (job, int(index)) if job != "-" and index.isdigit() else None


def has_ended(pod):
    """Whether the API server says that the worker's container has ended, or the pod."""
    status = pod.get("status", {})
    return status.get("phase") in ("Succeeded", "Failed") or any(
        container["name"] == "main" and "terminated" in container.get("state", {})
        for container in status.get("containerStatuses", []))


def is_ready(pod):
    """Whether it takes work, as far as the API server knows."""
    return "deletionTimestamp" not in pod["metadata"] and any(
        found["type"] == "Ready" and found["status"] == "True" for found in pod.get("status", {}).get("conditions", []))


def why_of(pod):
    """What a pod says that it waits for, or why it goes."""
    status = pod.get("status", {})
    for found in status.get("conditions", []):
        if found.get("message") and (found["type"], found["status"]) in (("PodScheduled", "False"), ("DisruptionTarget", "True")):
            return f"{found.get('reason', '')}: {found['message']}"
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason"):
            return f"{waiting['reason']}: {waiting.get('message', '')}"
    return ""


def indexes_of(text):
    """{0, 1, 2, 5} of "0-2,5"."""
    found = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def condition(status, *types):
    """The first of these conditions that is true, or None."""
    for kind in types:
        for found in status.get("conditions", []):
            if found["type"] == kind and found["status"] == "True":
                return found
    return None


def keep_webhooks_to(cluster, name, namespace):
    """This system's webhooks see this namespace alone, whatever they say of others."""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}"
        for found in cluster.api("GET", path)[1]["items"]:
            own = found["metadata"]["name"]
            if name in own:
                # The system's own controller writes its certificate into it meanwhile.
                wait_for(f"{own} to be kept to {namespace}",
                         lambda own=own, path=path: _keep_webhook_to(cluster, f"{path}/{own}", namespace), 60, poll=1)


def _keep_webhook_to(cluster, path, namespace):
    """Whether the write met no other."""
    only = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}]}
    found = cluster.api("GET", path)[1]
    for hook in found["webhooks"]:
        rules = [resource for rule in hook["rules"] for resource in rule["resources"]]
        if any(resource.split("/")[0] in ("jobs", "pods", "jobsets") for resource in rules):
            hook["namespaceSelector"] = only
    status, answer = cluster.api("PUT", path, found)
    assert status in (200, 409), answer
    return status == 200


class System:
    """name: what users of the referee call it, also its namespace's end. version: shown in the report."""
    name = ""
    by_pod = True        # each attempt has a pod of its own
    slots = 0            # of a warm worker
    agents = False       # its attempts prove by themselves that they live
    vendor = ""          # whose it is: the nemesis chooses nodes by vendors
    version = ""
    resource = ""        # what kubectl deletes
    listing = ""         # group/version/plural of its jobs
    promise = ("", "")   # what it says of itself, and where
    settings = ""        # in a few words
    controllers = ()     # (namespace, selector of labels) of pods whose process the nemesis kills

    def __init__(self, cluster, indexes, seconds):
        self.cluster, self.indexes, self.seconds = cluster, indexes, seconds
        self.namespace = f"referee-{self.name}"

    def install(self):
        """Once for each cluster, before any run."""

    def prepare(self):
        """Once for each run, when the namespace is empty."""

    def job(self, name):
        """The object."""
        raise NotImplementedError

    def clear(self):
        """Takes away what an earlier run has left; the namespace stays, with the rights in it."""
        self.cluster.kubectl("-n", self.namespace, "delete", self.resource, "--all", "--timeout=300s", timeout=320)
        wait_for(f"the pods of {self.name} to be gone", lambda: not self.cluster.pods_of(self.namespace), 300, poll=1)

    def submit(self, name):
        """A second time, after a call of which nobody knows the end, changes nothing."""
        body = self.job(name)
        path = f"/apis/{body['apiVersion']}/namespaces/{self.namespace}/{body['kind'].lower()}s"
        status, answer = self.cluster.api("POST", path, body)
        if status not in (201, 409):
            raise ClusterError(f"{self.name} takes no job: {answer}")

    def listed(self, resource):
        """All objects of one `group/version/plural` in its namespace."""
        prefix = "/api" if resource.startswith("v1/") else "/apis"
        group, _, plural = resource.rpartition("/")
        status, found = self.cluster.api("GET", f"{prefix}/{group}/namespaces/{self.namespace}/{plural}")
        if status != 200:
            raise ClusterError(f"{self.name}: {found}")
        return found["items"]

    def pod_reasons(self):
        """{(job, index): what the newest of its pods that says something says}."""
        found = {}
        for pod in sorted(self.listed("v1/pods"), key=lambda one: one["metadata"]["creationTimestamp"]):
            why = why_of(pod)
            if why and unit_of(pod):
                found[unit_of(pod)] = why
        return found

    def objects(self):
        """All its jobs by name, each with what else says something about it."""
        return {item["metadata"]["name"]: item for item in self.listed(self.listing)}

    def claim_of(self, found, index):
        """(outcome, how often its success is counted, why) of one index of this object."""
        raise NotImplementedError

    def has_ended(self, found):
        """Whether the job as a whole has an outcome."""
        raise NotImplementedError

    def pod_of(self, found, index):  # pylint: disable=unused-argument
        """The UID of the pod whose success is counted, or "" where the system does not say."""
        return ""

    def claims(self, names, objects):
        """Of all units of these jobs; pure."""
        claims = []
        for name in names:
            for index in range(self.indexes):
                found = objects.get(name)
                unit = Unit(self.name, name, index)
                if found:
                    claims.append(Claim(unit, *self.claim_of(found, index), by=self.pod_of(found, index),
                                        ended=self.has_ended(found)))
                else:
                    claims.append(Claim(unit, None, 0, GONE))
        return claims

    def bound(self, kind):
        """The longest recovery after a strike of this kind that it promises, or None."""
        return None

    def bound_of_most(self, kind):
        """The same where the strike silenced most of its attempts."""
        return self.bound(kind)

    def bound_after_the_end(self, kind):
        """The same where the program had come to its end before the strike, and that was not known yet."""
        return self.bound(kind)


def waiting_of(status):
    """What the conditions of a batch/v1 Job, a JobSet or a Workload say that it waits for."""
    for found in status.get("conditions", []):
        waits = found["status"] == "True" if found["type"] in ("Suspended", "Evicted") else (
            found["status"] == "False" and found["type"] in ("QuotaReserved", "Admitted", "PodsReady"))
        if waits and found.get("message"):
            return f"{found['reason']}: {found['message']}"
    return ""


def job_has_ended(job):
    """Of a batch/v1 Job."""
    return condition(job.get("status", {}), "Complete", "Failed") is not None


def of_indexed_job(job, index):
    """What a batch/v1 Job says, whoever runs it."""
    status = job.get("status", {})
    if index in indexes_of(status.get("completedIndexes")):
        return "Succeeded", 1, ""
    failed = condition(status, "Failed", "FailureTarget")
    if failed or index in indexes_of(status.get("failedIndexes")):
        return "Failed", 0, failed["reason"] if failed else "FailedIndexes"
    return None, 0, waiting_of(status)
