"""The mutants without a build: each says what it breaks and which test catches it, and each still applies."""

import re
import tomllib

import pytest
from chart import ROOT

MUTANTS = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text())


def sources():
    """{target: the files of its tests}."""
    found = {}
    for file in sorted((ROOT / "tests").rglob("*.cmake")):
        for target, words in re.findall(r"holdfast_test\(\s*(\w+)(.*?)\)", file.read_text(), re.DOTALL):
            paths = [file.parent / word for word in re.findall(r"[\w/]+\.cc", words)]
            if "${PLUGIN_TESTS}" in words:
                paths += sorted((file.parent / "plugin").rglob("*_test.cc"))
            found[target] = paths
    return found


def names_in(paths):
    return {f"{suite}.{name}" for path in paths
            for suite, name in re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}


TESTS = {target: names_in(paths) for target, paths in sources().items()}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_has_a_reason_and_a_test_and_applies(name):
    mutant = MUTANTS[name]
    assert set(mutant) <= {"breaks", "caught-by", "tests", "file", "old", "new"}
    assert mutant["breaks"] and mutant["caught-by"]
    assert [target for target in mutant["caught-by"] if target not in TESTS] == []
    # All/Suite.Rule/parameter names the test Suite.Rule, which one of the programs must have: a program that is asked
    # for another's test runs none, and is green.
    there = set().union(*(TESTS[target] for target in mutant["caught-by"]))
    assert [name for name in mutant.get("tests", []) if re.sub(r"^All/|/\w+$", "", name) not in there] == []
    source = (ROOT / mutant["file"]).read_text()
    assert source.count(mutant["old"]) == 1
    assert mutant["new"] != mutant["old"]
