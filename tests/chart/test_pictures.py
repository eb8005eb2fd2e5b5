"""The pictures of the docs are what their scripts draw, and each is shown on a page."""

import re
import runpy
import xml.etree.ElementTree

import pytest
from chart import ROOT

PICTURES = sorted((ROOT / "docs/pictures").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_each_picture_has_a_script_and_a_page(picture):
    assert (ROOT / "hack/pictures" / picture.stem).is_file()
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    assert any(f"pictures/{picture.name})" in page.read_text() for page in pages)


def test_the_architecture_is_as_its_script_draws_it():
    drawn = runpy.run_path(str(ROOT / "hack/pictures/architecture"))["draw"]()
    assert drawn == (ROOT / "docs/pictures/architecture.svg").read_text()


SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def test_the_state_machine_shows_exactly_the_edges_of_the_product():
    """Graphviz draws it, which is not everywhere: so the edges in the picture are compared, not the picture."""
    table = (ROOT / "reconciler/edge_table.h").read_text()
    edges = re.findall(r'\{\s*Phase::k(\w+),\s*Phase::k(\w+),\s*"([^"]+)"(?:,\s*true)?\s*\}', table)
    assert len(edges) == table.count("{Phase::k") > 0
    picture = xml.etree.ElementTree.parse(ROOT / "docs/pictures/state-machine.svg")
    drawn, said = [], []
    for group in picture.iter(f"{SVG}g"):
        if group.get("class") == "edge":
            drawn.append(tuple(group.find(f"{SVG}title").text.split("->")))
            said.append(group.find(f".//{SVG}a").get(f"{XLINK}title"))
    assert sorted(drawn) == sorted((start, end) for start, end, _ in edges)
    assert sorted(said) == sorted(f"{start} to {end}: {when}" for start, end, when in edges)
