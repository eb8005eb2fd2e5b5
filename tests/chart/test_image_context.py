"""The image's build gets what it copies: .dockerignore names it, without a build of the image."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def copied():
    lines = re.findall(r"^COPY (?!--from)(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    return {source for line in lines for source in line.split()[:-1]}


def test_what_the_image_copies_is_in_its_build_context():
    context = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied() == context


def test_each_folder_of_the_release_build_is_copied():
    text = (ROOT / "CMakeLists.txt").read_text()
    always = {folder.split("/")[0] for folder in re.findall(r"^add_subdirectory\((\S+)\)", text, re.MULTILINE)}
    assert always and always <= copied()
