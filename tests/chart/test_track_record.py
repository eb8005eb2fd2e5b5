"""tests/track-record.toml: each bug of it is one that the history shows, and the page is made from it."""

import re
import subprocess
import tomllib

import pytest
from chart import ROOT

BUGS = tomllib.loads((ROOT / "tests/track-record.toml").read_text())["bug"]
FINDERS = {"simulator seed", "crash points", "model", "fuzzer", "mutant", "unit test", "integration test", "chaos test",
           "real nodes", "reader", "benchmark", "browser"}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def history():
    """The tests that ask it need all of it."""
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("this clone has no whole history: git fetch --unshallow")


def test_the_page_is_made_from_it():
    done = subprocess.run([ROOT / "tests/track/page", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_bugs_are_numbered_and_say_who_found_them():
    assert [bug["number"] for bug in BUGS] == list(range(1, len(BUGS) + 1))
    assert {bug["found-by"] for bug in BUGS} <= FINDERS
    assert len(BUGS) >= 60 and sum(bug.get("replay", False) for bug in BUGS) >= 25


def test_each_commit_is_in_the_history(history):
    wanted = {commit for bug in BUGS for commit in (bug["introduced"], bug["mended"]) if commit}
    known = {line[:10] for line in git("rev-list", "HEAD").stdout.split()}
    assert wanted <= known


def test_each_test_is_in_the_tree_that_mended_it(history):
    for bug in BUGS:
        for file in bug["files"]:
            assert git("cat-file", "-e", f"{bug['mended']}:{file}").returncode == 0, (bug["number"], file)
        program, test = bug["test"]
        if program in ("", "simulate", "pytest"):
            continue
        name = re.split(r"[./:]+", test.strip("*"))[-1]
        found = git("grep", "-q", name, bug["mended"], "--", *bug["files"])
        assert found.returncode == 0 or "/" in test, (bug["number"], test)
