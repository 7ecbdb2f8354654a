"""From the tutorials to the library: every name can be imported, and every link leads to code that the tests run."""

import importlib
import re
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "from-the-tutorials.md"
EXAMPLES = {*(ROOT / "examples").glob("[0-9]*.py"), *(ROOT / "opkit" / "examples").glob("*.py")}  # both are run
FIRST_OPERATOR = ROOT / "opkit" / "docs" / "first-operator.md"  # test_new.py follows it
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
RUN = re.compile(r"^```(python|cpp)\b", re.MULTILINE)  # `py` is not run
TABLE = re.compile(r"^\| (?!the tutorial \||---)(.+?)(?: \(\*(.+?)\*\))? \| (.+) \| (.+) \|$", re.MULTILINE)


class Row(NamedTuple):
    listing: str
    served: str
    names: list[str]
    links: list[str]


ROWS = [
    Row(listing, served, re.findall(r"`([^`]+)`", names), re.findall(r"\]\(([^)]+)\)", links))
    for listing, served, names, links in TABLE.findall(PAGE.read_text("utf-8"))
]


def sections(page: Path) -> dict[str, str]:
    """The text under each heading, with its subsections, by anchor; the whole page is that of no anchor."""
    text = page.read_text("utf-8")
    outside = FENCE.sub(lambda block: " " * len(block[0]), text)  # of code: its comments are no headings
    headings = [(len(match[1]), match[2], match.start()) for match in HEADING.finditer(outside)]
    result = {"": text}
    for i, (level, title, start) in enumerate(headings):
        end = next((other for depth, _, other in headings[i + 1 :] if depth <= level), len(text))
        result[re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.lower()))] = text[start:end]
    return result


def test_tutorials_table_has_a_row_per_listing() -> None:
    groups = re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(groups) == 5
    assert len(ROWS) > 50
    assert all(row.names and row.links and row.served in ("served", "served as a part", "not served") for row in ROWS)


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row.names}))
def test_tutorials_table_names_can_be_imported(name: str) -> None:
    package, *attributes = (name if name.startswith("torch_opkit.") else f"torchcommodity.{name}").split(".")
    module = importlib.import_module(package)
    assert reduce(getattr, attributes, module) is not None


@pytest.mark.parametrize("link", sorted({link for row in ROWS for link in row.links}))
def test_tutorials_table_links_lead_to_code_that_runs(link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (PAGE.parent / path).resolve() if path else PAGE
    if target.suffix == ".py":
        assert target in EXAMPLES
    elif target != FIRST_OPERATOR:
        assert anchor in sections(target), f"{target.name} must have the anchor {anchor}"
        assert RUN.search(sections(target)[anchor]), f"the section must have a block that runs: {link}"
