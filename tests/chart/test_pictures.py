"""The pictures of the docs are what their scripts draw, and each is shown on a page."""

import json
import runpy
import subprocess
import xml.etree.ElementTree

import pytest
from chart import ROOT
from edges import EDGES

PICTURES = sorted((ROOT / "docs/pictures").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_each_picture_has_a_script_and_a_page(picture):
    assert (ROOT / "hack/pictures" / picture.stem).is_file()
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    assert any(f"pictures/{picture.name})" in page.read_text() for page in pages)


def test_the_architecture_is_as_its_script_draws_it():
    drawn = runpy.run_path(str(ROOT / "hack/pictures/architecture"))["draw"]()
    assert drawn == (ROOT / "docs/pictures/architecture.svg").read_text()


def test_the_readme_says_what_was_recorded_of_a_recovery():
    record = json.loads((ROOT / "docs/pictures/recovery.json").read_text())
    said = (ROOT / "README.md").read_text()
    for kind in ("DurableJob", "Job"):
        [again] = [pod["created"] for pod in record["pods"] if pod["kind"] == kind and pod["created"] > record["died"]]
        assert f"{again - record['died']:.0f} s" in said


def test_the_picture_of_the_lane_and_its_pages_say_what_was_recorded():
    assert runpy.run_path(str(ROOT / "hack/pictures/lane"))["draw"]() == (ROOT / "docs/pictures/lane.svg").read_text()
    jobs = json.loads((ROOT / "docs/pictures/lane.json").read_text())["jobs"]
    line, plain = (min(run["start"] for run in jobs[name] if run["start"] > 0) for name in ("line", "plain"))
    said = (ROOT / "docs/lane.md").read_text()
    assert f"{line:.0f} s" in said and f"{plain:.0f} s" in said
    measured = (ROOT / "docs/internals/performance.md").read_text()
    assert f"{line} s" in measured and f"{plain} s: {plain / line:.1f} times" in measured


@pytest.mark.parametrize("script", ["hack/pictures/referee", "hack/recoveries", "tests/nightly/page"])
def test_a_table_of_recorded_runs_is_what_its_script_writes(script):
    done = subprocess.run([ROOT / script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def test_the_state_machine_shows_exactly_the_edges_of_the_product():
    """Graphviz draws it, which is not everywhere: so the edges in the picture are compared, not the picture."""
    picture = xml.etree.ElementTree.parse(ROOT / "docs/pictures/state-machine.svg")
    drawn, said = [], []
    for group in picture.iter(f"{SVG}g"):
        if group.get("class") == "edge":
            drawn.append(tuple(group.find(f"{SVG}title").text.split("->")))
            said.append(group.find(f".//{SVG}a").get(f"{XLINK}title"))
    assert sorted(drawn) == sorted((edge.start or "None", edge.end) for edge in EDGES)
    assert sorted(said) == sorted(f"{edge.start or 'None'} to {edge.end}: {edge.when}" for edge in EDGES)
