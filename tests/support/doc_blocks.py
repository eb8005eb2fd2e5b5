"""The fenced blocks of a page of the docs."""

import pathlib
import re
import textwrap

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def blocks(page, language, heading=None):
    """The blocks of this language, also those that no test runs as they stand (`yaml,example`). Below this heading."""
    text = (DOCS / page).read_text()
    if heading:
        text = text.split(f"\n{heading}\n")[1]
    found = re.findall(rf"^ *```{language}(?:,\w+)?\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in found]
