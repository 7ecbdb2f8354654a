"""`opkit.check` on a spread of the corpus of foreign operators, before a release on all of it.

`opkit/benchmarks/check_corpus.py` makes the table of the results page.
"""

import pytest

from corpus.entries import Entry, load_entries
from corpus.judge import COMPILED, judge

parts = pytest.mark.parametrize(
    "part",
    [
        pytest.param("spread", marks=pytest.mark.slow),
        pytest.param("all", marks=[pytest.mark.release, pytest.mark.compile]),
    ],
)

EXCUSED = {"shapes.refuses_short"}  # opkit/docs/results/check.md has the reason


def entries(part: str, *, faulty: bool) -> list[Entry]:
    """Those with a fault, of a spread one of each category and make; or the healthy ones, of a spread every fourth."""
    selected = [entry for entry in load_entries().values() if bool(entry.cause) == faulty]
    if part == "all":
        return selected
    selected = [entry for entry in selected if not entry.slow and entry.cause not in COMPILED]
    return list({(entry.category, entry.make): entry for entry in selected}.values()) if faulty else selected[::4]


@parts
def test_check_names_the_causes_of_planted_faults(part: str) -> None:
    judgements = [judge(entry) for entry in entries(part, faulty=True)]
    misjudged = [f"{j.name}: {j.reported or 'nothing'}" for j in judgements if j.verdict != "right"]
    assert len(misjudged) <= 0.1 * len(judgements), "\n".join(misjudged)


@parts
def test_check_passes_healthy_operators(part: str) -> None:
    alarms = [j for j in map(judge, entries(part, faulty=False)) if j.verdict != "clean" and j.name not in EXCUSED]
    assert not alarms, "\n".join(f"{j.name}: {j.reported}" for j in alarms)
