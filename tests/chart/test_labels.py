"""docs/labels-annotations-variables.md has each label, annotation, finalizer and variable of the code, and no other."""

import re

from chart import CHART, ROOT

PAGE = (ROOT / "docs/labels-annotations-variables.md").read_text()
FOLDERS = ("core", "api", "agent", "client", "lane", "operator", "plugin", "reconciler")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# The version of the API, and names of objects in the plug-in's words.
NO_KEYS = {"holdfast.dev/v1alpha1"}


def literals():
    """All strings of the programs."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.[ch]*")):
            for line in path.read_text().splitlines():
                yield from LITERAL.findall(line.partition("// ")[0])


def keys_of_the_code():
    words = {key for text in literals() for key in re.findall(r"(?<![\w./])holdfast\.dev/[\w-]+", text)}
    fields = re.search(r"kFields = (.*?)\}\}\};", (ROOT / "lane/annotations.cc").read_text(), re.DOTALL)[1]
    words |= {f"holdfast.dev/{name}" for name in re.findall(r'\{"(\w+)", Form::', fields)}
    for path in sorted(CHART.rglob("*.yaml")):
        if "crds" not in path.parts:
            words |= set(re.findall(r"(?<![\w./])holdfast\.dev/[a-z-]+\b", re.sub("#.*", "", path.read_text())))
    return words - NO_KEYS


def test_the_page_has_each_label_annotation_and_finalizer_of_the_code():
    found = keys_of_the_code()
    assert {"holdfast.dev/job-name", "holdfast.dev/outbox", "holdfast.dev/lostAfterSeconds"} <= found
    assert sorted(found) == sorted(set(re.findall(r"`(?:spec\.managedBy: )?(holdfast\.dev/[\w-]+)`", PAGE)))


def test_the_page_has_each_variable_of_the_code():
    found = {name.rstrip("_") for text in literals() for name in re.findall(r"HOLDFAST_[A-Z_]+", text)}
    assert {"HOLDFAST_ATTEMPT", "HOLDFAST_QPS", "HOLDFAST_RESULT"} <= found
    assert sorted(found) == sorted({name.rstrip("_") for name in re.findall(r"HOLDFAST_[A-Z_]+", PAGE)})
