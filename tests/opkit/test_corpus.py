"""`opkit.check` on a spread of the corpus of foreign operators; `benchmarks/opkit_corpus.py` runs all of it."""

import pytest

from corpus.entries import load_entries
from corpus.judge import COMPILED, judge

ENTRIES = [entry for entry in load_entries().values() if not entry.slow and entry.cause not in COMPILED]
FAULTY = {(entry.category, entry.make): entry for entry in ENTRIES if entry.cause}  # one for each category and make
HEALTHY = [entry for entry in ENTRIES if not entry.cause]


@pytest.mark.slow
def test_check_names_the_causes_of_planted_faults() -> None:
    judgements = [judge(entry) for entry in FAULTY.values()]
    misjudged = [f"{j.name}: {j.reported or 'nothing'}" for j in judgements if j.verdict != "right"]
    assert len(misjudged) <= 0.1 * len(judgements), "\n".join(misjudged)


@pytest.mark.slow
def test_check_passes_healthy_operators() -> None:
    alarms = [j for j in map(judge, HEALTHY[::4]) if j.verdict != "clean"]
    assert not alarms, "\n".join(f"{j.name}: {j.reported}" for j in alarms)
