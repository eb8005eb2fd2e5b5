"""The mutants without a build: each says what it breaks and which test catches it, and each still applies."""

import re
import tomllib

import pytest
from chart import ROOT

MUTANTS = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text())["mutant"]
TARGETS = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.cmake")))
TESTS = {f"{suite}.{name}" for path in sorted((ROOT / "tests").rglob("*.cc"))
         for suite, name in re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}


def test_names_are_unique():
    names = [mutant["name"] for mutant in MUTANTS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_a_mutant_has_a_reason_and_a_test_and_applies(mutant):
    assert set(mutant) <= {"name", "breaks", "caught-by", "tests", "file", "old", "new"}
    assert mutant["breaks"] and mutant["caught-by"]
    assert [name for name in mutant["caught-by"] if not re.search(rf"holdfast_test\(\s*{name}\s", TARGETS)] == []
    # All/Suite.Rule/parameter names the test Suite.Rule.
    assert [name for name in mutant.get("tests", []) if re.sub(r"^All/|/\w+$", "", name) not in TESTS] == []
    source = (ROOT / mutant["file"]).read_text()
    assert source.count(mutant["old"]) == 1
    assert mutant["new"] != mutant["old"]
