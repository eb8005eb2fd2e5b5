"""The pages of docs/ without mdBook: their links, blocks and table of contents, and what becomes of them on the site.
`make docs` checks the same, and the site besides."""

import importlib.machinery
import importlib.util
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml
from chart import ROOT
from doc_pages import DOCS, SUMMARY, Page, broken_links, broken_links_of_site, lost_words, orphans, pages, wrong_blocks


@pytest.fixture(scope="module")
def known():
    return pages()


def test_every_link_within_the_tree_leads_somewhere(known):
    assert list(broken_links(known)) == []


def test_every_block_has_a_language(known):
    assert list(wrong_blocks(known)) == []
    assert sum(len(page.blocks) for page in known.values()) > 50


def test_no_word_is_lost_as_a_tag(known):
    assert list(lost_words(known)) == []


def test_the_table_of_contents_has_every_page():
    assert list(orphans()) == []


# ---- that the checks can fail


def page(tmp_path, text, name="page.md"):
    path = tmp_path / name
    path.write_text(text)
    return Page(path)


@pytest.mark.parametrize(("text", "words"), [
    ("```\nx\n```\n", "missing"),
    ("```bash\nx\n```\n", "the language of this block is bash"),
    ("```sh,run\nx\n```\n", "no option 'run'"),
    ("```sh,values\nx\n```\n", "no option 'values'"),
    ("```sh\nx\n", "has no end"),
    ("Words:\n\n    kubectl get dj\n", "indented"),
])
def test_a_wrong_block_is_found(tmp_path, text, words):
    [problem] = wrong_blocks({0: page(tmp_path, text)})
    assert words in problem


@pytest.mark.parametrize("text", [
    "```sh,example\nx\n```\n", "```yaml,values\nx: 1\n```\n", "- item\n\n    its second paragraph\n",
    "- item\n\n  ```sh\n  x\n  ```\n", "````text\n```\n````\n"])
def test_a_right_block_is_none(tmp_path, text):
    assert list(wrong_blocks({0: page(tmp_path, text)})) == []


def test_a_block_is_read_as_it_stands(tmp_path):
    [block] = page(tmp_path, "# A\n\n## B `c`\n\n- x:\n\n  ```sh,example\n  # no heading\n    y\n  ```\n").blocks
    assert (block.heading, block.line, block.language, block.options) == ("B `c`", 7, "sh", ["example"])
    assert block.text == "# no heading\n  y\n"


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    text = "# One\n\n## Two `x_y`, [three](other.md)\n\n## One\n\n```sh\n# Four\n[a](gone.md)\n```\n"
    first, other = page(tmp_path, text), page(tmp_path, "# Other\n", "other.md")
    assert first.anchors == {"one", "two-x_y-three", "one-1"}
    text += "[a](#one-1) [b](other.md#other) [c\nd](gone.md) `[e](gone.md)` [f](#four) [g](https://x.example/y)\n"
    first = page(tmp_path, text)
    found = [problem.split(": ", 1) for problem in broken_links({item.path: item for item in (first, other)})]
    assert found == [["page.md:12", "gone.md: there is no such file"],
                     ["page.md:12", "#four: there is no such heading"]]


def test_a_word_that_would_be_taken_for_a_tag_is_found(tmp_path):
    text = "A <name> `<code>` \\<job> 1 < 2 > 1\n\n```text\n<none>\n```\n"
    assert [problem.split(" is ")[0] for problem in lost_words({0: page(tmp_path, text)})] == ["page.md:1: <name>"]


def test_a_page_that_is_not_listed_is_found(tmp_path):
    less = page(tmp_path, SUMMARY.read_text().replace("hang.md", "api.md"))
    assert "docs/hang.md: docs/SUMMARY.md does not list this page" in [*orphans(less)]


def test_a_broken_link_of_the_site_is_found(tmp_path):
    site = tmp_path / "next"
    site.mkdir()
    (site / "a.html").write_text('<h1 id="x"><a href="#x">x</a><a href="b.html#y">y</a><a href="../index.html">v</a>')
    (site / "b.html").write_text('<img src="gone.svg"><a href="a.html#gone"></a><a href="https://x.example"></a>')
    assert list(broken_links_of_site(site)) == [
        "a.html: b.html#y leads nowhere", "b.html: gone.svg leads nowhere", "b.html: a.html#gone leads nowhere"]


# ---- the parts of the site


def script(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "hack" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_a_link_out_of_the_site_leads_to_the_repository():
    text = ("[a](../examples/hang.yaml) [b](../examples) [c](hang.md#x) [d](#y) [e](https://x.example) "
            "![f](pictures/lane.svg) [g](../README.md#status)\n```sh,example\nx\n```\n")
    base = "https://git.example/h", "v1"
    made = script("docs-links").rewritten(text, "", DOCS, base)
    assert made == (
        "[a](https://git.example/h/blob/v1/examples/hang.yaml) [b](https://git.example/h/tree/v1/examples) "
        "[c](hang.md#x) [d](#y) [e](https://x.example) ![f](pictures/lane.svg) "
        "[g](https://git.example/h/blob/v1/README.md#status)\n```sh\nx\n```\n")
    assert script("docs-links").rewritten("[a](../../crds) [b](../hang.md)", "internals", DOCS, base) == (
        "[a](https://git.example/h/tree/v1/crds) [b](../hang.md)")


def test_the_repositorys_address_is_in_one_place():
    address = tomllib.loads((DOCS / "book.toml").read_text())["output"]["html"]["git-repository-url"]
    files = subprocess.run(["grep", "-rlI", "--exclude-dir=build", "--exclude-dir=.git", address, ROOT],
                           capture_output=True, text=True, check=False).stdout.split()
    assert files == [str(DOCS / "book.toml")]


def test_versions_are_published_side_by_side(tmp_path):
    site, folder, publish = tmp_path / "site", tmp_path / "pages", script("publish-docs").publish
    for version in ("next", "v0.9.0", "v0.10.0-rc.1", "v0.10.0", "next"):
        made = site / version
        made.mkdir(parents=True, exist_ok=True)
        (made / "index.html").write_text(version)
        publish(made, folder)
    listed = re.findall(r'<a href="([^"]*)/">([^<]*)</a>', (folder / "index.html").read_text())
    assert [name for name, _ in listed] == ["v0.10.0", "v0.10.0-rc.1", "v0.9.0", "next"]
    assert listed[0][1] == "v0.10.0, the newest release"
    assert {path.name for path in folder.iterdir()} == {"index.html", *(name for name, _ in listed)}
    with pytest.raises(SystemExit, match="site is no version"):
        publish(site, folder)


def test_a_release_is_published_where_its_operator_links_to():
    """The name of the tag is the folder's, and the address that the chart has ends with v and its version."""
    text = (ROOT / ".github/workflows/docs.yaml").read_text()
    assert "github.ref_type == 'tag' && github.ref_name || 'next'" in text
    assert 'hack/publish-site "build/docs/$VERSION"' in text


def test_sites_are_published_on_a_branch(tmp_path):
    """On one that is not there yet, and beside another version. What builds the site has no right to write."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]

    def run(*command, cwd=tmp_path):
        return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout

    run("git", "init", "-q", "--bare", "remote")
    for name in ("one", "two"):
        run("git", "init", "-q", name)
        (tmp_path / name / "hack").mkdir()
        for script_name in ("publish-site", "publish-docs"):
            shutil.copy(ROOT / "hack" / script_name, tmp_path / name / "hack")
        site = tmp_path / name / "build" / {"one": "v0.9.0", "two": "next"}[name]
        site.mkdir(parents=True)
        (site / "index.html").write_text(name)
        run(*git, "add", "hack", cwd=tmp_path / name)
        run(*git, "commit", "-qm", "x", cwd=tmp_path / name)
        run("git", "remote", "add", "origin", str(tmp_path / "remote"), cwd=tmp_path / name)
        run("hack/publish-site", f"build/{site.name}", cwd=tmp_path / name)
    files = run("git", "ls-tree", "-r", "--name-only", "gh-pages", cwd=tmp_path / "remote").split()
    assert files == [".nojekyll", "docs/index.html", "docs/next/index.html", "docs/v0.9.0/index.html"]
    [site_job, publish_job] = yaml.safe_load((ROOT / ".github/workflows/docs.yaml").read_text())["jobs"].values()
    assert "permissions" not in site_job and publish_job["needs"] == "site"
