"""What the CRDs' rules are made from, said a second time: a slip in the table of edges or in a limit is in every file
that is generated from it, and in the tests that read it."""

import re

import pytest
import yaml
from chart import ROOT
from edges import EDGES, ends

PHASES = {
    "": {"Pending", "Running", "Suspended", "Cancelled", "Failed"},
    "Pending": {"Running", "Suspended", "Cancelling", "Succeeded", "Cancelled", "Failed"},
    "Running": {"Pending", "Backoff", "Suspended", "Cancelling", "Succeeded", "Failed"},
    "Backoff": {"Pending", "Running", "Suspended", "Cancelling", "Succeeded", "Cancelled", "Failed"},
    "Suspended": {"Pending", "Cancelling", "Cancelled", "Failed"},
    "Cancelling": {"Cancelled"},
    "Succeeded": set(), "Failed": set(), "Cancelled": set(),
}
WITH_STAGES = {"Running": {"Cancelled"}, "Cancelling": {"Pending", "Running", "Succeeded"}}

# By resource and field: (word of the schema, limit, constant of api/*.h with the same limit).
LIMITS = {
    "durablejobs": {
        "spec.completions": ("maximum", 100_000, "kCompletionsLimit"),
        "spec.parallelism": ("maximum", 1000, "kParallelismLimit"),
        "spec.stages": ("maxItems", 16, "kStageLimit"),
        "spec.notify": ("maxItems", 4, "kNotifyLimit"),
        "spec.podFailurePolicy.rules": ("maxItems", 20, None),
        "spec.podFailurePolicy.rules.deferSeconds": ("maximum", 86_400, None),
        "spec.successPolicy.rules": ("maxItems", 20, None),
        "spec.retryBackoff.jitterPercent": ("maximum", 100, None),
        "spec.retryBackoff.factor": ("maximum", 10, None),
        "spec.heartbeat.leaseDurationSeconds": ("maximum", 3600, "kMaxLeaseSeconds"),
        "spec.lostAfterSeconds": ("minimum", 15, None),
        "spec.queue.priority": ("maximum", 1_000_000, None),
        "spec.payload": ("maxLength", 65_536, None),
        "status.runs": ("maxItems", 1000, "kRunLimit"),
        "status.runs.refused": ("maxLength", 1024, "kRefusedLimit"),
        "status.history": ("maxItems", 10, "kHistoryLimit"),
        "status.conditions": ("maxItems", 16, "kConditionLimit"),
        "status.outbox": ("maxItems", 32, "kOutboxLimit"),
        "status.outbox.message": ("maxLength", 256, "kNotifyTextLimit"),
        "status.failures": ("maximum", 2**31, "kCountLimit"),
        "status.suspendedSeconds": ("maximum", 2**31 - 1, "kSuspendedLimit"),
    },
    "jobqueues": {
        "status.head": ("maxItems", 100, "kHeadLimit"),
        "status.admitting": ("maxItems", 500, "kAdmissionLimit"),
    },
    "workerpools": {
        "spec.maxWorkers": ("maximum", 500, "kMaxWorkers"),
        "spec.slotsPerWorker": ("maximum", 16, "kMaxSlots"),
        "spec.leaseDurationSeconds": ("minimum", 5, "kMinLeaseSeconds"),
        "spec.startDeadlineSeconds": ("maximum", 31_536_000, "kMaxStartSeconds"),
        "spec.stopGraceSeconds": ("maximum", 3600, "kMaxStopSeconds"),
    },
}


def test_the_table_has_these_edges_and_no_others():
    assert {start: set(ends(start, has_stages=False)) for start in PHASES} == PHASES
    assert {start: set(ends(start)) for start in PHASES} == {
        start: after | WITH_STAGES.get(start, set()) for start, after in PHASES.items()}
    assert {edge.start for edge in EDGES} <= PHASES.keys()


def field(schema, path):
    """The schema of a field; a path leads through lists."""
    for name in path.split("."):
        schema = schema.get("items", schema)["properties"][name]
    return schema


@pytest.mark.parametrize("plural", LIMITS)
def test_a_limit_is_the_same_in_the_crd_and_in_the_code(plural):
    crd = yaml.safe_load((ROOT / f"crds/holdfast.dev_{plural}.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    code = "".join(path.read_text() for path in sorted((ROOT / "api").glob("*.h")))
    constants = {name: int(number.replace("'", ""))
                 for name, number in re.findall(r"inline constexpr [\w:]+ (k\w+)(?: = |\{)([\d']+)[;}]", code)}
    for path, (word, limit, constant) in LIMITS[plural].items():
        assert field(schema, path)[word] == limit, path
        assert constant is None or constants[constant] == limit, constant
