"""What a job or the operator says to a person is in docs/troubleshooting.md: taken from the code."""

import re

from chart import ROOT

EVENTS = [r'Event\{\w+, "(\w+)"', r'(?:\? |: )"(Worker\w+)"', r'return "(Attempt\w+)"', r'event\.reason = "(\w+)"']
FAILED = [r"(?<!Event)\{false, to_string\(Reason::k(\w+)"]
FAILED_BY_NAME = [r'(?<!Event)\{false, "(\w+)"(?![^}]*kCancel)']
# Words in the code that look like a reason, and are none that a user sees: kinds, fields and values of Kubernetes, the
# actions of Events, and what the log alone says.
NO_REASONS = {"CreatePod", "DeleteOptions", "DeletePod", "IfNotPresent", "InternalError", "JobQueue", "PodInitializing",
              "PodScheduled", "PodTemplate", "SchedulingGated", "StartWorker", "WorkerPool", "WriteLease", "CutOff",
              "EchoLags", "LeaseChanged"}
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
    text = "\n".join((ROOT / "docs" / page).read_text() for page in pages)
    return {part.strip() for words in re.findall(r"`([^`\n]+)`", text) for part in words.split("...")}


def test_every_reason_is_explained():
    header = (ROOT / "api/reason.h").read_text()
    reasons = set(re.findall(r"^  k(\w+),$", header[:header.index("to_string(Reason")], re.MULTILINE))
    assert len(reasons) > 30
    assert sorted(reasons - quoted("troubleshooting.md")) == []


def test_every_event_and_every_reason_of_failure_is_explained():
    reasons = said(EVENTS, "reconciler", "lane", "operator") | said(FAILED, "reconciler")
    assert len(reasons) > 10
    assert sorted(reasons - quoted("troubleshooting.md")) == []


def section(title):
    """What stands below this heading of troubleshooting.md, until the next of its rank."""
    page = (ROOT / "docs/troubleshooting.md").read_text()
    return re.split(r"^## ", page.split(f"\n## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(text):
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`(\w+)`", row)}


def test_every_reason_that_the_code_can_write_is_on_a_page():
    written = said(REASONS, "reconciler", "lane", "operator")
    assert {"StagesSucceeded", "KeysFull", "WorkersDraining", "TargetUnknown", "JobSuspended"} <= written
    pages = [page.name for page in ROOT.glob("docs/*.md") if page.name != "api.md"]
    known = {word for words in quoted(*pages) for word in re.findall(r"\w+", words)}
    assert sorted(written - known - NO_REASONS) == []
    assert sorted(NO_REASONS - written) == []


def reasons_of_conditions():
    """What stands as a reason in a call that sets or clears a condition, by itself, as a constant or as a Reason. A
    reason that a variable has is one of status.waiting or of an end, and has a row there."""
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


def test_every_reason_of_a_condition_has_its_row():
    found = reasons_of_conditions()
    assert {"IndexesUnreadable", "WorkersAwaitNode", "ChangeTried", "HoldfastUninstalled", "StagesSucceeded",
            "PodTerminating", "JobSuspended"} <= found
    rows = re.findall(r"^\|.*\|$", section("What the other conditions say"), re.MULTILINE)
    known = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    known |= first_cells(section("A job failed: the reason of its condition `Failed`"))
    assert sorted(found - known) == []


def test_each_table_of_reasons_is_whole():
    failed = said(FAILED, "reconciler") | said(FAILED_BY_NAME, "reconciler")
    assert sorted(failed - first_cells(section("A job failed: the reason of its condition `Failed`"))) == []
    described = re.search(r"The reasons of Failed are ([^.]*)\.", (ROOT / "docs/api.md").read_text())[1]
    assert sorted(failed - set(re.findall(r"\w+", described))) == []
    events = said(EVENTS, "reconciler", "lane", "operator")
    assert sorted(events - first_cells(section("What Events say"))) == []


def test_every_warning_of_the_operator_is_explained():
    lines = said(LOG, "operator", "client/cache", "client/kube")
    assert len(lines) > 12
    known = {words for words in quoted("troubleshooting.md", "operations.md") if len(words) >= 12}
    assert sorted(line for line in lines if not any(words in line for words in known)) == []
