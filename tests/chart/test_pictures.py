"""The pictures of the docs are what their scripts draw, and each is shown on a page."""

import runpy

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
