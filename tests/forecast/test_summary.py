"""`summarize`: scores, calibration and coverage, and its JSON."""

import json

import pytest

from torchcommodity.forecast import Backtest, BacktestSummary, summarize


def test_summarize_measures_calibration_and_coverage(backtest: Backtest) -> None:
    summary = summarize(backtest, ("HENRY_HUB",))
    assert (summary.model, summary.excluded, summary.horizons) == ("har-lstm", ("HENRY_HUB",), (5, 21, 63, 126))
    target, quantiles = backtest.targets[:, 1], backtest.quantiles["har-lstm"][:, 1]
    known = target.isfinite()
    below = (target[known][:, None] <= quantiles[known]).double().mean(0)
    assert summary.calibration["21"] == pytest.approx(below.tolist())
    brent = known[:, 1]
    inside = (target >= quantiles[..., 0]) & (target <= quantiles[..., -1])
    assert summary.coverage["BRENT"]["21"] == pytest.approx(inside[brent, 1].double().mean().item())


def test_summary_has_coverage_of_the_80_percent_interval_with_its_sample_size(backtest: Backtest) -> None:
    target, quantiles = backtest.targets[:, 1, 1], backtest.quantiles["har-lstm"][:, 1, 1]
    known = target.isfinite()
    inside = (target >= quantiles[:, 1]) & (target <= quantiles[:, 17])  # levels 0.1 and 0.9
    coverage = summarize(backtest).interval_coverage["BRENT"]["21"]
    assert coverage.share == pytest.approx(inside[known].double().mean().item())
    assert coverage.forecasts == int(known.sum())
    assert coverage.independent == -(-int(known.sum()) // 21)


def test_summary_json_round_trip(backtest: Backtest) -> None:
    summary = summarize(backtest)
    again = BacktestSummary.from_json(summary.to_json())
    assert again.to_json() == summary.to_json()
    assert repr(again.scores) == repr(summary.scores)  # with NaN
    assert again.calibration == summary.calibration
    assert again.interval_coverage == summary.interval_coverage
    assert json.loads(summary.to_json())["symbols"] == ["WTI", "BRENT"]


@pytest.mark.parametrize("text", ['{"first": 1}', "[]", '{"scores": 1}'])
def test_summary_from_json_rejects_other_json(text: str) -> None:
    with pytest.raises(ValueError, match="BacktestSummary: text must be the result of to_json"):
        BacktestSummary.from_json(text)
