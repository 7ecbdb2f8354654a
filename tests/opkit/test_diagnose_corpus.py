"""A spread of the corpus of training set-ups; benchmarks/diagnose_corpus.py judges all of them."""

from corpus.models.entries import corpus

ENTRIES = list(corpus())


def test_corpus_names_are_unique() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
