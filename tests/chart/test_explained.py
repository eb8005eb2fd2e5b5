"""What a job or the operator says to a person is in docs/troubleshooting.md: taken from the code. And
the documents' links lead somewhere."""

import re

import pytest
from chart import ROOT

EVENTS = [r'Event\{\w+, "(\w+)"', r'return "(Attempt\w+)"', r'event\.reason = "(\w+)"']
FAILED = [r"\{false, to_string\(Reason::k(\w+)"]
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
    header = (ROOT / "reconciler/reason.h").read_text()
    reasons = set(re.findall(r"^  k(\w+),$", header[:header.index("to_string(Reason")], re.MULTILINE))
    assert len(reasons) > 30
    assert sorted(reasons - quoted("troubleshooting.md")) == []


def test_every_event_and_every_reason_of_failure_is_explained():
    reasons = said(EVENTS, "reconciler", "lane", "operator") | said(FAILED, "reconciler")
    assert len(reasons) > 10
    assert sorted(reasons - quoted("troubleshooting.md")) == []


def test_every_warning_of_the_operator_is_explained():
    lines = said(LOG, "operator", "client/cache", "client/kube")
    assert len(lines) > 12
    known = {words for words in quoted("troubleshooting.md", "operations.md") if len(words) >= 12}
    assert sorted(line for line in lines if not any(words in line for words in known)) == []


def anchors(page):
    """As the usual renderers make them of headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda page: page.name)
def test_every_link_within_the_tree_leads_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
