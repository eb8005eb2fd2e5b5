"""Each reason that a job or the operator gives has its own heading in docs/reasons.md, so that a link leads there. Each
line of the logs is in docs/log-lines.md. Both are taken from the code."""

import re

from chart import ROOT
from doc_pages import Page

EVENTS = [r'Event\{\w+, "(\w+)"', r'(?:\? |: )"(Worker\w+)"', r'return "(Attempt\w+)"', r'event\.reason = "(\w+)"']
FAILED = [r"(?<!Event)\{false, to_string\(Reason::k(\w+)"]
FAILED_BY_NAME = [r'(?<!Event)\{false, "(\w+)"(?![^}]*kCancel)']
# Words in the code that look like a reason, and are none that a user sees: kinds, fields and values of Kubernetes, the
# actions of Events, labels of metrics, and what the log alone says.
NO_REASONS = {"ConfigMap", "CreatePod", "DeleteOptions", "DeletePod", "IfNotPresent", "InternalError", "JobQueue",
              "PodInitializing", "PodScheduled", "PodTemplate", "SchedulingGated", "StartWorker", "WorkerPool",
              "WriteLease", "CutOff", "EchoLags", "LeaseChanged", "NotIn", "DaemonSet", "EphemeralRunner", "RayCluster",
              "ReplicaSet", "StatefulSet", "Workflow", "LostAfterSeconds", "NoController", "NoSchedule", "OwnerKind",
              "StaticPod"}
# Values of the API, variables and words of others, that the reasons' texts name.
VALUES = {"ContainerCreating", "ContainerStatusUnknown", "DurableJob", "FailIndex", "FailJob", "FailureTarget",
          "FallbackToLogsOnError", "KUBERNETES_SERVICE_HOST", "OnFailure", "PodEnded", "ResultReady", "Silent",
          "Succeeded", "SuccessCriteriaMet", "TerminatingOrFailed"}
# Any word of two parts, and any word where a reason stands.
REASONS = [r'"([A-Z][A-Za-z]+[A-Z][a-z][A-Za-z]*)"', r'\{\s*"([A-Z]\w+)",\s*"',
           r'set(?:_condition)?\([^;"]*"\w+",[^;"]*"([A-Z]\w+)"']
LOG = [r'log_?\.(?:warn|error)\(\s*"([^"]{12,})"']


def said(patterns, *folders):
    text = "\n".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.[ch]*")))
    found = [set(re.findall(pattern, text)) for pattern in patterns]
    assert all(found), [pattern for pattern, words in zip(patterns, found) if not words]
    return set().union(*found)


def quoted(*pages):
    """What stands in `these`, without the dots of what is left out."""
    text = "\n".join(path.read_text() for path in ROOT.glob("docs/**/*.md") if path.name in pages)
    return {part.strip() for words in re.findall(r"`([^`\n]+)`", text) for part in words.split("...")}


def entries():
    """What stands below each heading of reasons.md, by the heading."""
    parts = re.split(r"^#+ (.*)$", (ROOT / "docs/reasons.md").read_text(), flags=re.MULTILINE)[1:]
    titles = parts[::2]
    assert len(set(titles)) == len(titles)
    return dict(zip(titles, parts[1::2]))


def entries_of(role):
    return {title for title, text in entries().items() if re.search(rf"\*\*{role}\*\*", text)}


def own_reasons():
    header = (ROOT / "api/reason.h").read_text()
    reasons = set(re.findall(r"^  k(\w+),$", header[:header.index("to_string(Reason")], re.MULTILINE))
    assert len(reasons) > 30
    return reasons


def test_every_reason_has_its_own_heading():
    roles = set().union(*(entries_of(role) for role in ("Waiting", "Ended attempt", "Failed job", "Condition", "Event")))
    assert sorted(own_reasons() - set(entries())) == []
    assert sorted(own_reasons() - roles) == []


def test_the_anchor_of_a_reason_is_the_reason_in_lower_case():
    """As explain and Events link to it (api/docs_link.cc)."""
    reached = Page(ROOT / "docs/reasons.md").anchors
    assert {reason.lower() for reason in own_reasons()} <= reached


def test_every_word_of_a_kubelet_that_the_plugin_explains_is_on_the_page():
    advice = (ROOT / "plugin/explain/advice.cc").read_text().split("kForeign[] = {")[1]
    words = set(re.findall(r'^    \{"(\w+)",', advice[:advice.index("\n};")], re.MULTILINE))
    assert {"ErrImagePull", "RunContainerError"} <= words
    assert sorted(words - quoted("reasons.md") - set(entries()) - {"ContainerStatusUnknown"}) == []


def test_every_reason_of_a_failure_has_its_heading():
    failed = said(FAILED, "reconciler") | said(FAILED_BY_NAME, "reconciler")
    assert sorted(failed - entries_of("Failed job")) == []
    described = re.search(r"The reasons of Failed are ([^.]*)\.", (ROOT / "docs/api.md").read_text())[1]
    assert sorted(failed - set(re.findall(r"\w+", described))) == []


def test_every_event_has_its_heading():
    """The reasons of a failed job are Events, too; their section says so."""
    events = said(EVENTS, "reconciler", "lane", "operator")
    assert len(events) > 10
    assert sorted(events - entries_of("Event") - entries_of("Failed job")) == []


def test_every_reason_that_the_code_can_write_has_its_heading():
    written = said(REASONS, "reconciler", "lane", "operator")
    assert {"StagesSucceeded", "KeysFull", "WorkersDraining", "TargetUnknown", "JobSuspended"} <= written
    assert sorted(written - set(entries()) - NO_REASONS - VALUES) == []
    assert sorted((NO_REASONS | VALUES) - written) == []
    pages = [page.name for page in ROOT.glob("docs/**/*.md") if page.name != "api.md"]
    known = {word for words in quoted(*pages) for word in re.findall(r"\w+", words)}
    assert sorted(VALUES - known) == []


def reasons_of_conditions():
    """What stands as a reason in a call that sets or clears a condition, by itself, as a constant or as a Reason. A
    reason that a variable has is one of status.waiting or of an end, and has a heading there."""
    text = "\n".join(path.read_text() for folder in ("reconciler", "lane", "operator")
                     for path in sorted((ROOT / folder).rglob("*.[ch]*")))
    constants = dict(re.findall(r'constexpr const char\* (k\w+) = "(\w+)"', text))
    found = set(re.findall(r'(?<!Event)\{(?:true|false), "([A-Z]\w+)",', text)) - said(EVENTS, "reconciler", "operator")
    found |= set(re.findall(r'\bfail\(view, "(\w+)"', text))
    for call in re.findall(r"\b(?:set_condition|clear_condition|set)\(([^;]*?)\);", text):
        # The first two are the status and the type.
        reasons = ",".join(re.split(r",(?![^(]*\))", call)[2:])
        found |= set(re.findall(r'"([A-Z]\w+)"', reasons)) | set(re.findall(r"Reason::k(\w+)", reasons))
        found |= {constants[name] for name in re.findall(r"(?<!:)\b(k[A-Z]\w+)", reasons) if name in constants}
    return found


def test_every_reason_of_a_condition_has_its_heading():
    found = reasons_of_conditions()
    assert {"IndexesUnreadable", "WorkersAwaitNode", "ChangeTried", "HoldfastUninstalled", "StagesSucceeded",
            "PodTerminating", "JobSuspended"} <= found
    assert sorted(found - entries_of("Condition") - entries_of("Failed job")) == []


def test_every_warning_of_the_operator_is_explained():
    lines = said(LOG, "operator", "client/cache", "client/kube")
    assert len(lines) > 12
    known = {words for words in quoted("log-lines.md") if len(words) >= 12}
    assert sorted(line for line in lines if not any(words in line for words in known)) == []
