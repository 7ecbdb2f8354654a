"""Scores against their definitions, and the Diebold-Mariano test."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.fft import dct

from torchcommodity import data, forecast
from torchcommodity.forecast import Backtest, diebold_mariano
from torchcommodity.forecast._score import _overlap


def wti_returns(rows: int) -> np.ndarray:
    prices = data.embedded(["WTI"]).between(None, "2019-01-03").values.plain()[:, 0].numpy()
    return np.diff(np.log(prices[np.isfinite(prices)]))[:rows]


def test_score_is_its_definition(backtest: Backtest) -> None:
    table = forecast.score(backtest).to_pandas().set_index(["model", "horizon"])
    target = backtest.targets[:, 1]
    use = target.isfinite()
    q, tau = backtest.quantiles["garch"][:, 1], torch.tensor(backtest.levels, dtype=torch.double)
    loss = torch.maximum(tau * (target[..., None] - q), (tau - 1) * (target[..., None] - q)).mean(-1)
    row = table.loc[("garch", 21)]
    assert row.pinball == pytest.approx(loss[use].mean().item())
    assert row.crps == 2 * row.pinball
    assert row.n == int(use.sum())
    assert row.skill == pytest.approx(100 * (1 - row.pinball / table.loc[("unconditional", 21)].pinball))
    assert row.coverage90 == pytest.approx(((target >= q[..., 0]) & (target <= q[..., -1]))[use].double().mean().item())
    h = backtest.variances["garch"][:, 1]
    assert row.qlike == pytest.approx((h.log() + target.square() / h)[use].mean().item())
    assert table.loc[("unconditional", 5)].skill == 0
    assert math.isnan(table.loc[("har-lstm", 5)].dm_p)


def test_score_uses_only_rows_that_every_model_forecasts(backtest: Backtest) -> None:
    quantiles = {name: q.clone() for name, q in backtest.quantiles.items()}
    quantiles["garch"][:100] = torch.nan
    part = replace(backtest, quantiles=quantiles)
    assert {row.n for row in forecast.score(part).rows if row.horizon == 5} == {
        int(backtest.targets[100:, 0].isfinite().sum())
    }


def test_score_of_too_few_dates_is_nan(backtest: Backtest) -> None:
    short = replace(backtest, targets=backtest.targets.clone())
    short.targets[4:, 0] = torch.nan
    short.targets[:, 3] = torch.nan
    scores = {(row.model, row.horizon): row for row in forecast.score(short).rows}
    few, none = scores["garch", 5], scores["garch", 126]
    assert (few.n, few.dates, math.isfinite(few.pinball), math.isnan(few.dm_p)) == (8, 4, True, True)
    assert (none.n, none.dates, math.isnan(none.pinball), math.isnan(none.dm_p)) == (0, 0, True, True)


def test_score_rejects_an_unknown_model(backtest: Backtest) -> None:
    for argument in ("reference", "model"):
        with pytest.raises(ValueError, match=rf"score: {argument} must be one of har-lstm, .*; got 'hare'"):
            forecast.score(backtest, **{argument: "hare"})


def test_scores_print_as_a_table_of_skill(backtest: Backtest) -> None:
    text = repr(backtest.scores)
    assert text.startswith("Skill in percent by horizon, 2013-01-02 to 2014-12-31\n")
    assert len(text.splitlines()) == 3 + 7


@pytest.mark.parametrize(("horizon", "windows"), [(1, 4), (5, 4)])
def test_diebold_mariano_by_hand(horizon: int, windows: int) -> None:
    d = [1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 2.0, 1.0, -1.0, 0.5]
    L = [
        math.sqrt(2 / 10) * sum(x * math.cos(math.pi * j * (t - 0.5) / 10) for t, x in enumerate(d, 1))
        for j in range(1, 5)
    ]
    t = math.sqrt(10) * (sum(d) / 10) / math.sqrt(sum(x * x for x in L) / windows)
    assert diebold_mariano(np.array([*d, math.nan]), horizon) == pytest.approx((t, 2 * stats.t.sf(t, windows)))


@pytest.mark.parametrize("every", [1, 5])
def test_diebold_mariano_is_a_cosine_transform_that_counts_rows_between_dates(every: int) -> None:
    d = wti_returns(1500)
    sparse = np.full(len(d), math.nan)
    sparse[::every] = d[::every]
    dense = d[::every]
    B = int(min(0.41 * len(dense) ** (2 / 3), (every * (len(dense) - 1) + 1) / (2 * 21)))
    waves = dct(dense, norm="ortho")
    t = waves[0] / math.sqrt((waves[1 : B + 1] ** 2).mean())  # waves[0] is the sum over the root of the number
    assert diebold_mariano(sparse, 21) == pytest.approx((t, 2 * stats.t.sf(abs(t), B)))


def test_diebold_mariano_allows_for_overlap() -> None:
    d = wti_returns(1600)
    overlapping = np.convolve(d, np.ones(126), "valid")  # 1600 rows are few windows of 126
    assert diebold_mariano(overlapping, 126)[1] > diebold_mariano(overlapping, 1)[1]
    assert diebold_mariano(-d, 1)[0] == -diebold_mariano(d, 1)[0]


def test_diebold_mariano_without_differences_or_dates() -> None:
    assert all(map(math.isnan, diebold_mariano(np.zeros(20), 1)))
    with pytest.raises(ValueError, match="diebold_mariano: differences must be finite on at least 5 dates; got 3"):
        diebold_mariano(wti_returns(3), 1)


def test_overlap_of_targets_counts_the_rows_of_the_calendar() -> None:
    origins = np.arange("2024-01-01", "2024-01-07", dtype="datetime64[D]")
    ends = np.full((6, 2), np.datetime64("NaT", "D"), dtype="datetime64[D]")
    ends[0], ends[1, 0] = origins[[2, 5]], origins[3]  # two rows of the panel ahead, and five
    assert _overlap(origins, ends) == 5
