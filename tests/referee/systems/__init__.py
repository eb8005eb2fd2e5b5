"""The job systems that the referee judges, by name."""

from referee.systems.argo import Argo
from referee.systems.batch import Batch, BatchQuick, BatchTuned, Kueue
from referee.systems.holdfast import Canary, CanarySlow, Heartbeat, Holdfast, Lane, Pool
from referee.systems.jobset import JobSet
from referee.systems.rescued import ArgoRescue, BatchRescue, JobSetRescue, KueueRescue

ALL = {kind.name: kind for kind in (Holdfast, Heartbeat, Pool, Lane, Batch, BatchQuick, BatchTuned, Kueue, JobSet,
                                   Argo)}
# The same with the label of docs/rescue.md. They are asked for by name: two of them are not beside their own kind.
RESCUED = {kind.name: kind for kind in (BatchRescue, KueueRescue, JobSetRescue, ArgoRescue)}
# Both are broken on purpose, and run with the others. A run in which the referee does not see it is void. The second
# needs the first's resource definitions.
CANARIES = {kind.name: kind for kind in (CanarySlow, Canary)}
