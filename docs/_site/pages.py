"""Files of the repository as pages of the site, and their links as links between pages."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "CHANGELOG.md": "changelog.md",
    "opkit/README.md": "opkit/index.md",
    "opkit/CHANGELOG.md": "opkit/changelog.md",
}
KIT = ROOT / "opkit" / "docs"
PICTURE = re.compile(
    r"(!\[[^]]*\]\(docs/assets/\w+)(\.png)\)"
)  # the one with "-dark" in its name is for the dark scheme
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> None:
    for source, page in PAGES.items():
        front = "---\nhide: [navigation]\n---\n\n" if page == "index.md" else ""
        files.append(File.generated(config, page, content=front + (ROOT / source).read_text()))
    for path in sorted(KIT.rglob("*.md")):
        files.append(File.generated(config, f"opkit/{path.relative_to(KIT).as_posix()}", content=path.read_text()))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    markdown = PICTURE.sub(r"\1\2#only-light)\1-dark\2#only-dark)", markdown)
    markdown = re.sub(r"^```cpp (\w+)$", r'```cpp title="\1"', markdown, flags=re.MULTILINE)
    return LINK.sub(lambda link: "](" + _target(link[1], page.file.src_uri), markdown)


def _target(link: str, page: str) -> str:
    """A link between files of the repository, as a link between pages."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(_source(page)), link))
    return posixpath.relpath(_page(path), posixpath.dirname(page) or ".")


def _source(page: str) -> str:
    """The file of the repository that a page shows."""
    pages = {page: source for source, page in PAGES.items()}
    if page.startswith("examples/"):
        return page.replace("examples/index.md", "examples/README.md")
    if page in pages:
        return pages[page]
    if page.startswith("opkit/examples/"):
        return page.replace("examples/index.md", "examples/README.md")
    return page.replace("opkit/", "opkit/docs/", 1) if page.startswith("opkit/") else f"docs/{page}"


def _page(path: str) -> str:
    """The page that shows a file of the repository; of a folder, its README."""
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    if path.startswith(("examples/", "opkit/examples/")):
        return re.sub(r"\.py$", ".md", path.replace("examples/README.md", "examples/index.md"))
    return PAGES.get(path, path.removeprefix("docs/").replace("opkit/docs/", "opkit/", 1))
