"""The mutants without a build: each says what it breaks and which test catches it, and each still applies."""

import re
import tomllib

import pytest
from chart import ROOT

MUTANTS = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text())
TARGETS = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.cmake")))
TESTS = {f"{suite}.{name}" for path in sorted((ROOT / "tests").rglob("*.cc"))
         for suite, name in re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_has_a_reason_and_a_test_and_applies(name):
    mutant = MUTANTS[name]
    assert set(mutant) <= {"breaks", "caught-by", "tests", "file", "old", "new"}
    assert mutant["breaks"] and mutant["caught-by"]
    assert [name for name in mutant["caught-by"] if not re.search(rf"holdfast_test\(\s*{name}\s", TARGETS)] == []
    # All/Suite.Rule/parameter names the test Suite.Rule.
    assert [name for name in mutant.get("tests", []) if re.sub(r"^All/|/\w+$", "", name) not in TESTS] == []
    source = (ROOT / mutant["file"]).read_text()
    assert source.count(mutant["old"]) == 1
    assert mutant["new"] != mutant["old"]
