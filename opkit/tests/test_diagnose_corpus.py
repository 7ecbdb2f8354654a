"""A spread of the corpus of training set-ups, before a release all of it.

`opkit/benchmarks/diagnose_corpus.py` makes the table of the results page.
"""

import pytest
from diagnose_corpus import judge

from corpus.models.entries import Entry, corpus

ENTRIES = list(corpus())
SPREAD = ENTRIES[::20]
EXCUSED = {  # opkit/docs/results/diagnose.md has the reasons
    "empty_slice", "layer_norm_of_one_feature", "penalty_on_once_differentiable",
}  # fmt: skip


def test_corpus_names_are_unique() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", SPREAD, ids=lambda entry: f"{entry.category}-{entry.name}")
def test_diagnose_names_the_cause(entry: Entry) -> None:
    judgement = judge(entry)
    assert judgement.outcome in {"right", "quiet"} or entry.name in EXCUSED, judgement.report


@pytest.mark.release
def test_diagnose_names_every_cause() -> None:
    judgements = [judge(entry) for entry in ENTRIES if entry.name not in EXCUSED]
    misjudged = [f"{j.entry.name}: {j.report}" for j in judgements if j.outcome not in {"right", "quiet"}]
    assert not misjudged, "\n".join(misjudged)
