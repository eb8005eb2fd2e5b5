"""The pages as their readers get them: headings, links and fenced blocks, and what is wrong with them. `make docs` and
the tests share it. It needs nothing but Python.

    page = Page(ROOT / "docs/hang.md")
    [block for block in page.blocks if block.language == "yaml"]
    problems()                      # ["docs/hang.md:12: ...", ...]
"""

import dataclasses
import functools
import html.parser
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SUMMARY = DOCS / "SUMMARY.md"
# `text` is what a program printed.
LANGUAGES = {"sh", "yaml", "json", "python", "go", "text", "cpp", "sql"}
# After a comma: a block that no test can run by itself, fields of a DurableJob's spec, and values of the chart.
OPTIONS = {"example": LANGUAGES, "spec": {"yaml"}, "values": {"yaml"}}
FENCE = re.compile(r"( *)(```+)(.*)")
LIST_ITEM = re.compile(r" *([-*+]|\d+[.)]) ")


@dataclasses.dataclass
class Block:
    """A fenced block: below which heading, in which line its fence is, and what it has."""
    heading: str
    line: int
    language: str
    options: list
    text: str


class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.name = str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else self.path.name
        self.blocks, self.titles, self.indented, self.unclosed = [], [], [], []
        self._prose = []
        self._read(self.path.read_text(encoding="utf-8").splitlines())

    def _read(self, lines):
        heading, fence, before, blank = "", None, "", True
        for number, line in enumerate(lines, 1):
            found = FENCE.fullmatch(line)
            if fence:
                indent, ticks, block = fence
                if found and not found[3] and len(found[2]) >= len(ticks):
                    block.text = "\n".join(block.text) + "\n" if block.text else ""
                    self.blocks.append(block)
                    fence = None
                else:
                    block.text.append(line.removeprefix(indent))
                continue
            if found:
                language, *options = found[3].strip().split(",")
                fence = found[1], found[2], Block(heading, number, language, options, [])
                continue
            if line.startswith("#"):
                heading = line.lstrip("#").strip()
                self.titles.append(heading)
            if line.startswith("    ") and blank and not LIST_ITEM.match(before):
                self.indented.append(number)
            elif line.strip() and not line.startswith("  "):
                before = line
            blank = not line.strip()
            self._prose.append((number, line))
        if fence:
            self.unclosed.append(fence[2].line)

    @functools.cached_property
    def anchors(self):
        """As GitHub and mdBook make them of headings."""
        found, counts = set(), {}
        for title in self.titles:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
            name = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
            count = counts.get(name, 0)
            counts[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        return found

    def _found(self, pattern):
        """(line, match) of each in the text, without code. It may be broken over two lines."""
        text = "\n".join(line for _, line in self._prose)
        # The same length, so that lines are found.
        text = re.sub(r"`[^`]+`", lambda code: re.sub(r"[^\n]", "x", code[0]), text)
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield self._prose[text.count("\n", 0, match.start())][0], match

    @property
    def links(self):
        """[(line, link)], those to other sites too."""
        for line, match in self._found(r"\]\(([^)\s]+)\)|^\[[^\]]+\]:\s*(\S+)"):
            yield line, match[1] or match[2]

    @property
    def tags(self):
        """[(line, tag)] of HTML, which most often is a placeholder that nobody would see."""
        for line, match in self._found(r"(?<!\\)<[A-Za-z][^<>]*>"):
            yield line, match[0]


def pages():
    """All pages of the tree that people read, by path."""
    paths = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    paths += [path for folder in ("agent", "client", "core", "examples", "hack", "tests")
              for path in (ROOT / folder).rglob("*.md")]
    return {path: Page(path) for path in sorted(paths)}


def broken_links(known):
    for path, page in known.items():
        for line, link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists():
                yield f"{page.name}:{line}: {link}: there is no such file"
            elif anchor and target.suffix == ".md" and anchor not in (known.get(target) or Page(target)).anchors:
                yield f"{page.name}:{line}: {link}: there is no such heading"


def wrong_blocks(known):
    for page in known.values():
        for line in page.unclosed:
            yield f"{page.name}:{line}: this block has no end"
        for line in page.indented:
            yield f"{page.name}:{line}: an indented block has no language: put it into a fence"
        for block in page.blocks:
            if block.language not in LANGUAGES:
                yield (f"{page.name}:{block.line}: the language of this block is {block.language or 'missing'}; known: "
                       f"{', '.join(sorted(LANGUAGES))}")
            for option in block.options:
                if block.language not in OPTIONS.get(option, ()):
                    yield f"{page.name}:{block.line}: a {block.language} block has no option '{option}'"


def lost_words(known):
    for page in known.values():
        for line, tag in page.tags:
            yield f"{page.name}:{line}: {tag} is not shown: put it into backticks, or write \\<"


def orphans(summary=None):
    """Pages that the table of contents does not have; it has none that is missing, which is a broken link."""
    listed = {(SUMMARY.parent / link).resolve() for _, link in (summary or Page(SUMMARY)).links}
    for path in sorted({*DOCS.rglob("*.md")} - listed - {SUMMARY}):
        yield f"{path.relative_to(ROOT)}: docs/SUMMARY.md does not list this page"


def problems():
    known = pages()
    return [*broken_links(known), *wrong_blocks(known), *lost_words(known), *orphans()]


class _Html(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.append(value)


def broken_links_of_site(folder):
    """The same of what mdBook made: links that its own rules or the preprocessor broke."""
    folder = pathlib.Path(folder).resolve()
    read = {path: _Html(path) for path in sorted(folder.rglob("*.html")) if path.name not in ("print.html", "404.html")}
    for path, page in read.items():
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if target.is_dir():
                target = target / "index.html"
            # What lists the versions stands one folder up, and print.html has the anchors of all pages.
            if target == folder.parent / "index.html" or target.name == "print.html":
                continue
            if not target.exists() or (anchor and anchor not in read[target].ids):
                yield f"{path.relative_to(folder)}: {link} leads nowhere"
