"""The nightly runs: the page is made from their lines, and their lines reach a branch of their own."""

import json
import os
import shutil
import subprocess

import pytest
from chart import ROOT

LINE = {
    "date": "2026-11-29", "commit": "0123456789", "by": "nightly", "seed": 7, "machine": "2 cores", "minutes": 60,
    "simulator": {"runs": 400, "hours": 310, "red": []},
    "mutants": {"tried": 10, "killed": 10, "survived": []}, "broken": [],
    "referee": {"minutes": 12, "void": "", "runs": 96, "strikes": {"node-killed": 2, "etcd-paused": 1}, "red": []}}
RED = LINE | {"date": "2026-11-30", "simulator": {"runs": 40, "hours": 31, "red": ["--profile swarm --seed 9 --only 2,3:55 --trace -"]},
              "mutants": {"tried": 10, "killed": 9, "survived": ["a-rule"]},
              "referee": {"minutes": 12, "void": "a strike failed", "strikes": {"node-killed": 5}, "red": []},
              "broken": ["make: exit 2"]}


def page(tmp_path, *lines):
    path = tmp_path / "ledger.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return subprocess.run([ROOT / "tests/nightly/page", path], capture_output=True, text=True, check=True).stdout


def test_the_page_says_what_was_red_newest_first(tmp_path):
    text = page(tmp_path, LINE, RED)
    first, second = [line for line in text.splitlines() if line.startswith("| 2026-")]
    assert second == ("| 2026-11-29 | `0123456789` | nightly, 2 cores | 310 h, 400 seeds | 10 of 10 | 3 faults, 96 runs, "
                      "canaries found; seed 7 | nothing |")
    assert "void: a strike failed" in first and "did not run: make: exit 2; `--profile swarm --seed 9`; mutant `a-rule`" in first
    assert "| node-killed | 2 |" in text, "a void run counts no faults"


def git(*arguments, cwd):
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True).stdout


@pytest.fixture()
def tree(tmp_path):
    """A small repository with the scripts, and a remote of it."""
    tree, remote = tmp_path / "tree", tmp_path / "remote.git"
    for name in ("page", "publish"):
        (tree / "tests/nightly").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / f"tests/nightly/{name}", tree / f"tests/nightly/{name}")
    git("init", "-q", "--bare", remote, cwd=tmp_path)
    git("init", "-q", cwd=tree)
    git("config", "user.name", "test", cwd=tree)
    git("config", "user.email", "test@example.com", cwd=tree)
    git("add", ".", cwd=tree)
    git("commit", "-qm", "Begin", cwd=tree)
    git("remote", "add", "origin", remote, cwd=tree)
    return tree


def publish(tree, line):
    (tree / "build/nightly").mkdir(parents=True, exist_ok=True)
    (tree / "build/nightly/ledger.ndjson").write_text(json.dumps(line) + "\n")
    subprocess.run([tree / "tests/nightly/publish"], check=True, capture_output=True, env=dict(os.environ, TZ="UTC"))


def test_lines_are_added_to_a_branch_that_has_nothing_else(tree):
    publish(tree, LINE)
    publish(tree, RED)
    remote = tree.parent / "remote.git"
    assert git("ls-tree", "--name-only", "ledger", cwd=remote).split() == ["README.md", "ledger.ndjson"]
    assert git("show", "ledger:ledger.ndjson", cwd=remote).splitlines() == [json.dumps(LINE), json.dumps(RED)]
    assert "void: a strike failed" in git("show", "ledger:README.md", cwd=remote)
    assert git("status", "--porcelain", "--untracked-files=no", cwd=tree) == ""
    assert len(git("worktree", "list", cwd=tree).splitlines()) == len(git("branch", cwd=tree).splitlines()) == 1


def test_without_a_line_nothing_is_published(tree):
    done = subprocess.run([tree / "tests/nightly/publish"], check=False, capture_output=True, text=True)
    assert done.returncode == 1 and "has no line" in done.stderr
