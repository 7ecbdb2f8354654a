"""Pages of the site that are files of the repository; their links lead to pages where the files have one."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> None:
    for source, page in PAGES.items():
        alone = "---\nhide: [navigation]\n---\n\n" if page == "index.md" else ""
        files.append(File.generated(config, page, content=alone + (ROOT / source).read_text()))
    _list_the_rest(files, config)


def _list_the_rest(files: Files, config: MkDocsConfig) -> None:
    """A page of docs/ that the navigation does not name is one of the guide."""
    named = str(config.nav)
    (guide,) = [entry["Guide"] for entry in config.nav if "Guide" in entry]
    guide += [file.src_uri for file in files.documentation_pages() if f"'{file.src_uri}'" not in named]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    markdown = re.sub(r"^```cpp (\w+)$", r'```cpp title="\1"', markdown, flags=re.MULTILINE)
    return LINK.sub(lambda link: "](" + _target(link[1], page.file.src_uri), markdown)


def _target(link: str, page: str) -> str:
    """The link of a file of the repository, as one from page to page."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(_source(page)), link))
    return posixpath.relpath(_page(path), posixpath.dirname(page) or ".")


def _source(page: str) -> str:
    pages = {page: source for source, page in PAGES.items()}
    if page.startswith("examples/"):
        return page.replace("examples/index.md", "examples/README.md")
    return pages.get(page, f"docs/{page}")


def _page(path: str) -> str:
    if path.startswith("examples/"):
        return re.sub(r"\.py$", ".md", path.replace("examples/README.md", "examples/index.md"))
    return PAGES.get(path, path.removeprefix("docs/"))
