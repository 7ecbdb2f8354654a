"""Comparison of the tested model with the others, in words."""

import math
from typing import NamedTuple

from torchcommodity.forecast import BacktestSummary, Score

SIGNIFICANCE = 0.05


class Comparison(NamedTuple):
    """Whether the tested model has the lower loss than another, and whether the difference is significant at 5 %."""

    better: bool
    significant: bool


def compare(score: Score) -> Comparison | None:
    """The tested model against the row's model; None for identical forecasts and for too few dates."""
    return None if math.isnan(score.dm) else Comparison(score.dm < 0, score.dm_p < SIGNIFICANCE)


def describe_comparison(score: Score, model: str) -> str:
    """The tested model against the row's model in words, with the p-value; "" for the tested model itself."""
    if score.model == model:
        return ""
    comparison = compare(score)
    if comparison is None:
        return "too few dates" if score.dates < 5 else "identical"
    p = "p < 0.001" if score.dm_p < 0.001 else f"p = {score.dm_p:.3f}"
    word = "better" if comparison.better else "worse"
    return f"{word}{'' if comparison.significant else ', not significant'} ({p})"


def describe_scores(summary: BacktestSummary) -> str:
    """Summarize all comparisons of a backtest in one sentence, and the mean skill of symbols with spreads."""
    comparisons = [compare(score) for score in summary.scores if score.model != summary.model]
    better, worse = ([c.significant for c in comparisons if c and c.better is side] for side in (True, False))
    text = (
        f"In {len(comparisons)} comparisons {summary.model} has the lower loss in {len(better)} ({sum(better)} "
        f"significant at 5 %) and the higher loss in {len(worse)} ({sum(worse)} significant)"
    )
    untested = comparisons.count(None)
    text = f"{text}; {untested} could not be tested." if untested else f"{text}."
    if not summary.mean_skill:
        return text
    skills = ", ".join(f"{skill:+.1f} % over {rows}" for rows, skill in summary.mean_skill.items())
    return f"{text} The mean of the symbols' skills is {skills} rows."
