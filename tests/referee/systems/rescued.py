"""Systems whose pods have the label of docs/rescue.md, so that Holdfast frees them from silent nodes. All else is as
without it. Kueue and JobSet are each kept to one namespace: judge them with and without the label in runs of their own,
with the same seed."""

from referee.systems.argo import Argo
from referee.systems.batch import Batch, Kueue
from referee.systems.holdfast import CREATED, NODES, Holdfast
from referee.systems.jobset import JobSet

WINDOW = 60
# Then Holdfast waits for Kubernetes to mark the node, at most so long.
MARKED = 10
# The Job controller waits for so long before it replaces a pod that has failed.
BACKOFF = 10
LABEL = {"labels": {"holdfast.dev/rescue": "true"}, "annotations": {"holdfast.dev/lostAfterSeconds": str(WINDOW)}}
PROMISE = (f"a pod on a silent node is freed after {WINDOW + 1} to {WINDOW + MARKED + 1} s; then its controller replaces it", "rescue.md")


class Rescued:
    """Before the system's own class."""
    promise = PROMISE
    settings = f"as without it; the label `holdfast.dev/rescue`, `lostAfterSeconds: {WINDOW}`"

    def install(self):
        super().install()
        Holdfast(self.cluster, self.indexes, self.seconds).install()

    def job(self, name):
        job = super().job(name)
        self.template_of(job)["metadata"] = LABEL
        return job

    def template_of(self, job):
        return job["spec"]["template"]

    def bound(self, kind):
        return WINDOW + MARKED + 1 + BACKOFF + CREATED if kind in NODES else super().bound(kind)


class BatchRescue(Rescued, Batch):
    name = "batch-rescue"


class KueueRescue(Rescued, Kueue):
    name = "kueue-rescue"


class JobSetRescue(Rescued, JobSet):
    name = "jobset-rescue"

    def template_of(self, job):
        return job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]


class ArgoRescue(Rescued, Argo):
    name = "argo-rescue"

    def template_of(self, job):
        return job["spec"]["templates"][1]
