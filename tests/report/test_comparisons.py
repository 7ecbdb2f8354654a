"""Comparisons of models in words."""

from dataclasses import replace
from math import nan

import pytest

from torchcommodity.forecast import BacktestSummary, Score
from torchcommodity.report import describe_comparison, describe_scores


def row(model: str, dm: float, p: float, dates: int = 100) -> Score:
    return Score(
        model, 5, pinball=0.01, skill=1.0, crps=0.02, coverage90=0.9, qlike=-7.0, dm=dm, dm_p=p, n=100, dates=dates
    )


ROWS = {
    "better (p < 0.001)": row("ewma", -9.0, 1e-9),
    "worse (p = 0.010)": row("ewma", 3.0, 0.01),
    "better, not significant (p = 0.500)": row("ewma", -0.1, 0.5),
    "identical": row("har-garch", nan, nan),
    "too few dates": row("ewma", nan, nan, dates=4),
    "": row("har-lstm", nan, nan),
}


@pytest.mark.parametrize("text", ROWS)
def test_describe_comparison(text: str) -> None:
    assert describe_comparison(ROWS[text], "har-lstm") == text


def test_describe_scores_counts_losses_too(summary: BacktestSummary) -> None:
    text = describe_scores(replace(summary, model="har-lstm", scores=tuple(ROWS.values())))
    assert text == (
        "In 5 comparisons har-lstm has the lower loss in 2 (1 significant at 5 %) and the higher loss in 1 "
        "(1 significant); 2 could not be tested."
    )
