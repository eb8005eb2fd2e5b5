"""The mutants without a build: each says what it breaks and which test catches it, and each still applies."""

import re
import subprocess

import pytest
from chart import ROOT

MUTANTS = sorted((ROOT / "tests/mutants").glob("*.patch"))
TARGETS = sorted((ROOT / "tests").rglob("*.cmake"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.stem)
def test_a_mutant_has_a_reason_and_a_test_and_applies(mutant):
    head = mutant.read_text().partition("\n--- ")[0]
    assert re.search(r"^Breaks: \S", head, re.MULTILINE)
    [tests] = re.findall(r"^Caught-by: (.+)$", head, re.MULTILINE)
    sources = "\n".join(path.read_text() for path in TARGETS)
    assert [name for name in tests.split() if not re.search(rf"holdfast_test\(\s*{name}\s", sources)] == []
    done = subprocess.run(["patch", "-p1", "--fuzz=0", "--dry-run", "--force", "-i", mutant], cwd=ROOT, text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout
