"""README and docs: Python blocks run and print what the page shows, commands parse, links and tables are complete."""

import contextlib
import inspect
import io
import math
import re
import runpy
import shlex
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd
import pytest
import typer

from torchcommodity import data
from torchcommodity.cli._application import app

ROOT = Path(__file__).parents[2]
DOCS = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "opkit" / "docs").rglob("*.md")])
PROJECT = (
    "README.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "CHANGELOG.md",
    "examples/README.md",
    "examples/deploy/README.md",
    "opkit/README.md",
    "opkit/CHANGELOG.md",
    "opkit/examples/README.md",
)
PAGES = [ROOT / name for name in PROJECT] + DOCS
NOT_RUN = "No GPU has run this part.\n"  # a part of `make test-cuda` that is newer than the last GPU
KERNELS = ROOT / "opkit" / "docs" / "kernels"  # test_kernels.py runs these pages with their C++
SLOW = {  # runs many indicators; exports; compiles three libraries; backtests twice; Inductor; trains
    "own-indicators.md",
    "serving.md",
    "porting.md",
    "scoreboard.md",
    "own-network.md",
    "own-forecaster.md",
    "windows.md",
    "sharpe-loss.md",
}
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:torchrun .* -m )?torchcommodity (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
ANYTHING = re.compile(r"\.\.\.")


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*match) for match in FENCE.findall(page.read_text("utf-8"))]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def same_output(expected: str, actual: str) -> bool:
    """Compare texts: `...` matches anything, numbers to 1e-6 relative, runs of spaces are one space."""
    expected, actual = (
        re.sub(r"[ \t]*\n", "\n", re.sub(r" +", " ", text + "\n")).strip() for text in (expected, actual)
    )
    number = rf"({NUMBER.pattern})"
    parts = [
        ".*?" if ANYTHING.fullmatch(part) else number if NUMBER.fullmatch(part) else re.escape(part)
        for part in re.split(rf"({ANYTHING.pattern}|{NUMBER.pattern})", expected)
    ]
    match = re.fullmatch("".join(parts), actual, re.DOTALL)
    numbers = NUMBER.findall(ANYTHING.sub("", expected))
    return match is not None and all(map(_close, numbers, match.groups()))


def _close(expected: str, actual: str) -> bool:
    return math.isclose(*(float(text.replace(",", "")) for text in (expected, actual)), rel_tol=1e-6)


@pytest.mark.parametrize(
    ("expected", "actual", "equal"),
    [
        ("a 1.0000001 b", "a  1.0 b\n", True),
        ("a 1.001 b", "a 1.0 b", False),
        ("2018-12-31 ...", "2018-12-31 anything\nat all", True),
        ("8,340 rows", "8,341 rows", False),
        ("x", "y", False),
    ],
)
def test_same_output(expected: str, actual: str, equal: bool) -> None:
    assert same_output(expected, actual) is equal


def _runs(page: Path) -> bool:
    return KERNELS not in page.parents and any(block.language == "python" for block in blocks(page))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a page, with the files that the pages read: embedded prices of WTI, twice as a curve."""
    closes = data.read("embedded", symbols=["WTI"]).between("2016-01-01", "2019-01-03").to_pandas().dropna()
    closes.to_csv(tmp_path / "prices.csv")
    front = closes.rename_axis(columns="symbol").stack().rename("close").reset_index()
    pd.concat([front.assign(nth=1), front.assign(nth=2)]).to_csv(tmp_path / "curve.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _page(page: Path) -> Any:
    return pytest.param(page, marks=pytest.mark.slow) if page.name in SLOW else page


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # from Inductor
@pytest.mark.parametrize("page", [_page(page) for page in PAGES if _runs(page)], ids=name)
def test_page_python_runs_and_prints_what_it_shows(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # records are pickled by name
    for block, following in pairwise([*blocks(page), Block("", "")]):
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(block.text, name(page), "exec"), module.__dict__)
            if following.language == "text":
                assert same_output(following.text, output.getvalue()), output.getvalue()


def commands(page: Path) -> list[str]:
    """The commands in the console blocks of a page, with continued lines joined."""
    consoles = (block.text.replace("\\\n", "") for block in blocks(page) if block.language in ("", "console"))
    return COMMAND.findall("".join(consoles))


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands(page)}))
def test_page_command_has_known_options(line: str) -> None:
    words = shlex.split(re.split(r" [>|] ", line)[0], comments=True)
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"unknown command {words[0]}"
        command, words = command.get_command(None, words[0]), words[1:]
    context = command.context_class(command)
    command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_links_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text("utf-8"))
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_page_scripts_exist(page: Path) -> None:
    scripts = re.findall(r"^python (\S+\.py)", page.read_text("utf-8"), re.MULTILINE)
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "<!-- /" in page.read_text("utf-8")], ids=name)
def test_page_tables_are_complete(page: Path) -> None:
    text = page.read_text("utf-8")
    for marker in re.findall(r"<!-- /(\w+) -->", text):
        table = re.search(rf"<!-- {marker} -->\n(.*?)<!-- /{marker} -->", text, re.DOTALL)
        assert table, marker
        assert len(table[1]) > 200 or table[1] == NOT_RUN, marker


def test_every_marker_of_a_table_is_closed() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        assert sorted(re.findall(r"<!-- (\w+) -->", text)) == sorted(re.findall(r"<!-- /(\w+) -->", text)), page


def test_contributing_states_the_level_of_every_package() -> None:
    levels = runpy.run_path(str(ROOT / "tests" / "test_packages.py"))["LEVELS"]
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text("utf-8").split())
    groups = re.findall(r"((?:`\w+`(?:, )?)+) (\d+)(?= ·|\.)", text)
    stated = {package: int(level) for names, level in groups for package in re.findall(r"`(\w+)`", names)}
    assert stated == levels


def test_panels_page_lists_every_finding_with_its_rule_and_treatment() -> None:
    page = (ROOT / "docs" / "concepts" / "panels.md").read_text("utf-8")
    table = page.partition("<!-- findings -->\n")[2].partition("<!-- /findings -->")[0]
    assert table == findings_table()


def findings_table() -> str:
    """The table of kinds, from the docstrings that state the rules and from the treatments."""
    rows = [
        row.split(" | ", 1)
        for documented in (data.Finding, data.inspect, data.compare_with_training)
        for row in re.findall(r"^ *\| ([a-z].*) \|$", inspect.cleandoc(documented.__doc__ or ""), re.MULTILINE)
    ]
    rules = {kind: rule for kinds, rule in rows for kind in kinds.split(", ") if kind != "kind"}
    assert rules.keys() == data.TREATMENTS.keys()
    lines = [f"| {kind} | {rule} | {data.TREATMENTS[kind]} |" for kind, rule in rules.items()]
    return "\n".join(["| kind | rule | treatment |", "|---|---|---|", *lines]) + "\n"
