"""The job systems that the referee judges, by name."""

from systems.argo import Argo
from systems.batch import Batch, BatchTuned, Kueue
from systems.holdfast import Canary, Heartbeat, Holdfast, Lane, Pool
from systems.jobset import JobSet

ALL = {kind.name: kind for kind in (Holdfast, Heartbeat, Pool, Lane, Batch, BatchTuned, Kueue, JobSet, Argo)}
CANARY = Canary
