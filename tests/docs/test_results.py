"""Results: long tables are CSV files beside their pages, made by the functions of benchmarks/markdown.py."""

import csv
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
FILES = sorted(RESULTS.glob("*.csv"))
ROWS = [["`sma`", "2.53x", "1,000"], ["`asin`", "**0.90x**", "-3e-16"], ["`ht_sine, 63`", "", "inf"]]
TABLE = """\
| function | speedup | difference |
|---|---:|---:|
| `sma` | 2.53x | 1,000 |
| `asin` | **0.90x** | -3e-16 |
| `ht_sine, 63` |  | inf |"""


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """benchmarks/markdown.py, under a name of its own: mkdocs needs a package `markdown`."""
    spec = importlib.util.spec_from_file_location("generated_tables", ROOT / "benchmarks" / "markdown.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_aligns_numbers_to_the_right_and_is_read_back(tables: ModuleType) -> None:
    heads = ["function", "speedup", "difference"]
    assert tables.format_table(heads, ROWS) == TABLE
    assert tables.read_table(f"Words.\n\n{TABLE}\n") == (heads, ROWS)


def test_data_file_has_plain_names_and_numbers(tables: ModuleType, tmp_path: Path) -> None:
    tables.write_csv(tmp_path / "rows.csv", ["function", "speedup", "difference"], ROWS)
    text = (tmp_path / "rows.csv").read_text()
    assert text == 'function,speedup,difference\nsma,2.53,1000\nasin,0.90,-3e-16\n"ht_sine, 63",,inf\n'


def test_rows_are_sorted_by_number_without_those_that_have_none(tables: ModuleType) -> None:
    assert [row[0] for row in tables.sort_by(ROWS, 1)] == ["`asin`", "`sma`"]
    assert [row[0] for row in tables.sort_by(ROWS, 2)] == ["`asin`", "`sma`", "`ht_sine, 63`"]


def test_table_without_its_marks_is_refused(tables: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- speed -->\nold\n<!-- /speed -->\nafter")
    tables.replace_table(page, "speed", "new")
    assert page.read_text() == "<!-- speed -->\nnew\n<!-- /speed -->\nafter"
    with pytest.raises(SystemExit, match=r"no <!-- score --> \.\.\. <!-- /score -->"):
        tables.replace_table(page, "score", "new")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_data_file_is_complete_and_its_page_links_it(file: Path) -> None:
    heads, *rows = csv.reader(file.read_text("utf-8").splitlines())
    assert len(set(heads)) == len(heads)
    assert {len(row) for row in rows} == {len(heads)}
    assert len(set(map(tuple, rows))) == len(rows)
    page = file.with_name(f"{file.stem.partition('-')[0]}.md").read_text("utf-8")
    assert re.search(rf"\[[Aa]ll {len(rows)} [^]]*\]\({file.name}\)", page)


def test_long_tables_of_results_are_data_files() -> None:
    """Rows of a table, its head and rule included."""
    lengths = {
        page.name: max((block.count("\n|") + 1 for block in page.read_text("utf-8").split("\n\n")), default=0)
        for page in RESULTS.glob("*.md")
    }
    assert [name for name, length in lengths.items() if length > 45] == []
    assert {file.stem.partition("-")[0] for file in FILES} == {"cuda", "indicators", "talib"}


def test_readme_states_the_speeds_of_the_results(tables: ModuleType) -> None:
    """Eight operators beside their fastest peers, one of them slower; median and lowest of all; the indicators."""
    parts = map(tables.read_table, section(RESULTS / "speed.md", "speed").split("\n\nLayers, and their cells:"))
    (heads, operators), (_, layers) = parts
    rows = operators + layers
    speedups: dict[tuple[str, str], float] = {}
    for operator, setting, ms, _, _, _, peer_ms, *_ in rows:
        speedups.setdefault((operator, setting), float(peer_ms) / float(ms))
        speedups[operator, setting] = min(speedups[operator, setting], float(peer_ms) / float(ms))
    text = section(ROOT / "README.md", "speed")
    assert f"Of [all {len(speedups)} settings]" in text
    assert f"median speedup is {median(speedups.values()):.1f}x and the lowest {min(speedups.values()):.1f}x" in text
    shown_heads, shown = tables.read_table(text)
    assert shown_heads == heads[:-1]
    assert len(shown) == 8
    assert all(row in [other[:-1] for other in rows] for row in shown)
    assert min(float(tables.number(row[-1])) for row in shown) < 1

    functions = list(csv.DictReader((RESULTS / "indicators.csv").read_text("utf-8").splitlines()))
    sentences = section(ROOT / "README.md", "indicators")
    for columns in ("1000", "1"):
        values = [float(row[f"speedup_{columns}"]) for row in functions]
        for value in (min(values), max(values), median(values)):
            assert f"{value:.2f}x" in sentences
    assert f"The {len(functions)} functions of TA-Lib" in sentences


def test_readme_states_the_scores_of_the_results(tables: ModuleType) -> None:
    (heads, rows), (full_heads, full) = (
        tables.read_table(section(page, name))
        for page, name in {ROOT / "README.md": "score", RESULTS / "skill.md": "embedded"}.items()
    )
    assert heads == full_heads
    for row, expected in zip(rows, full, strict=True):
        skills = [re.sub(r" \((better|worse), p [\d.]+\)", "", cell) for cell in expected]
        assert [cell.removesuffix(r"\*") for cell in row] == skills
        significant = [re.search(r"\(better, p 0\.0[0-4]\)", cell) is not None for cell in expected]
        assert [cell.endswith(r"\*") for cell in row] == significant


def section(page: Path, name: str) -> str:
    """A generated table of a page, with its notes."""
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page.read_text("utf-8"), re.DOTALL)
    assert match
    return match[1]


def test_make_results_knows_every_page_and_benchmark_and_how_long_each_part_takes(tables: ModuleType) -> None:
    heads, rows = tables.read_table(section(RESULTS / "README.md", "parts"))
    minutes = {row[0].strip("`"): row[heads.index("minutes")] for row in rows}
    pages = {(RESULTS / row[1].partition("](")[2].removesuffix(")")).resolve() for row in rows}
    results = [*RESULTS.glob("*.md"), *(ROOT / "opkit" / "docs" / "results").glob("*.md")]
    assert {page for page in results if page.name != "README.md"} <= pages
    command = [sys.executable, "benchmarks/results.py", "--list"]
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[0]: line.split()[1] for line in plan[:-1]} == minutes
    assert all(map(tables.number, minutes.values()))
    script = (ROOT / "benchmarks" / "results.py").read_text("utf-8")
    named = {name for page in pages for name in re.findall(r"benchmarks/(\w+\.py) ", page.read_text("utf-8"))}
    assert sorted(name for name in named if name not in script) == []
