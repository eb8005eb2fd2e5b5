"""The job systems that the referee judges, by name."""

from referee.systems.argo import Argo
from referee.systems.batch import Batch, BatchTuned, Kueue
from referee.systems.holdfast import Canary, Heartbeat, Holdfast, Lane, Pool
from referee.systems.jobset import JobSet

ALL = {kind.name: kind for kind in (Holdfast, Heartbeat, Pool, Lane, Batch, BatchTuned, Kueue, JobSet, Argo)}
CANARY = Canary
