"""The corpus: good tables pass without findings, doubtful ones with theirs, bad ones are refused in words."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from table_corpus import Case, cases

from torchcommodity import data

ALLOWED = {("origin not stated", ""), ("ended", "")}  # of tables that are only old, and whose publisher nobody states


@pytest.fixture(scope="module")
def corpus() -> list[Case]:
    daily = data.embedded(data.embedded_symbols()).to_pandas()
    return cases(daily, data.embedded(frequency="monthly").to_pandas())


def load(case: Case, folder: Path) -> data.Panel:
    folder.mkdir()
    source = case.source(folder)
    return data.read(source) if isinstance(source, Path) else data.to_panel(source)


def failures(corpus: list[Case], category: str, folder: Path) -> Iterator[str]:
    """Name and reason of the cases of a category that do not pass."""
    for n, case in enumerate(case for case in corpus if case.category == category):
        try:
            found = {(finding.kind, finding.symbol) for finding in load(case, folder / str(n)).findings}
        except data.DataError as error:
            if category != "bad" or case.expected not in str(error) or not str(error).isprintable():
                yield f"{case.name}: {error}"
            continue
        if category == "bad":
            yield f"{case.name}: accepted"
        elif category == "good" and (more := found - ALLOWED):
            yield f"{case.name}: {more}"
        elif category == "doubtful" and case.expected not in {kind for kind, _ in found}:
            yield f"{case.name}: {found}"


@pytest.mark.parametrize("category", ["good", "doubtful", "bad"])
def test_corpus(category: str, corpus: list[Case], tmp_path: Path) -> None:
    assert sum(case.category == category for case in corpus) > 90
    assert list(failures(corpus, category, tmp_path)) == []
