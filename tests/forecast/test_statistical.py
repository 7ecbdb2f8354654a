"""Baselines of statsforecast: fitted on the past, updated row by row, without look-ahead."""

import sys
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import statistical
from torchcommodity.forecast._statistical import INTERVALS, MAX_PAST, MIN_PAST, MODELS, Z, fit_and_update
from torchcommodity.models import HarConfig
from torchcommodity.training import Baseline, ModelInputs, Prediction

CONFIG = HarConfig()


class RandomWalk:
    """statsforecast's protocol with a closed form: no drift, the standard deviation of the rows fitted."""

    fitted: ClassVar[list[np.ndarray]] = []

    def fit(self, y: np.ndarray) -> "RandomWalk":
        self.fitted.append(y)
        self.step = float(np.diff(y).std())
        return self

    def forward(self, y: np.ndarray, h: int, *, level: list[int]) -> dict[str, np.ndarray]:
        deviation = self.step * np.sqrt(np.arange(1, h + 1))
        paths = {"mean": np.full(h, y[-1])}
        for interval, z in zip(INTERVALS, Z):
            paths |= {f"lo-{interval}": y[-1] - z * deviation, f"hi-{interval}": y[-1] + z * deviation}
        return {key: paths[key] for key in ["mean", *(f"{side}-{x}" for side in ("lo", "hi") for x in level)]}


@pytest.fixture
def random_walk() -> Baseline:
    RandomWalk.fitted = []
    return partial(fit_and_update, RandomWalk, 1)


def test_random_walk_is_its_formula(backtest_panel: Panel, random_walk: Baseline) -> None:
    prices, start = backtest_panel.values.plain(), 1500
    result = random_walk(ModelInputs(prices), start, CONFIG)
    assert result.quantiles.shape == (len(prices) - start, 4, 2, 19)
    past = np.log(prices[:start, 1][prices[:start, 1] > 0].numpy())
    np.testing.assert_array_equal(RandomWalk.fitted[1], past[-MAX_PAST:])
    step = np.diff(past[-MAX_PAST:]).std()
    expected = step * np.sqrt(63) * torch.special.ndtri(torch.tensor(CONFIG.levels, dtype=torch.double))
    torch.testing.assert_close(result.quantiles[7, 2, 1], expected)
    assert result.variance[7, 2, 1].item() == pytest.approx(63 * step**2)


def test_fit_and_update_skips_missing_prices(random_walk: Baseline) -> None:
    wti = data.embedded(["WTI"]).between("2010-01-01", "2014-12-31").values.plain()
    dense = wti[torch.isfinite(wti[:, 0])]
    sparse = torch.cat([dense[:600], torch.tensor([[torch.nan], [-37.63], [0.0]]).double(), dense[600:]])
    expected, result = (random_walk(ModelInputs(prices), 500, CONFIG) for prices in (dense, sparse))
    torch.testing.assert_close(result.quantiles[103:], expected.quantiles[100:])
    assert torch.equal(result.quantiles[100:103], result.quantiles[99].expand(3, -1, -1, -1))


def test_fit_and_update_of_a_symbol_that_starts_too_late_is_nan(backtest_panel: Panel, random_walk: Baseline) -> None:
    prices = backtest_panel.values.plain().clone()
    prices[: 1500 - MIN_PAST + 1, 0] = torch.nan
    result = random_walk(ModelInputs(prices), 1500, CONFIG)
    assert result.quantiles[:, :, 0].isnan().all()
    assert result.quantiles[:, :, 1].isfinite().all()


def test_statistical_step_leaves_the_other_rows_unscored(backtest_panel: Panel) -> None:
    sparse = partial(fit_and_update, RandomWalk, 5)
    baselines = {"unconditional": forecast.baselines()["unconditional"], "random walk": sparse}
    result = forecast.backtest(backtest_panel, first_year=2014, baselines=baselines)
    valid = result.quantiles["random walk"].isfinite().all(-1).all(-1).all(-1)
    assert valid.nonzero()[:, 0].tolist() == list(range(0, len(valid), 5))
    n = {row.n for row in result.scores.rows if row.horizon == 21}
    assert n == {int(result.targets[::5, 1].isfinite().sum())}


def other_futures(prices: torch.Tensor, cut: int) -> list[torch.Tensor]:
    """The prices with nothing after row `cut`, with later rows shuffled, scaled, and missing."""
    past, later = prices[:cut], prices[cut:]
    order = torch.randperm(len(later), generator=torch.Generator().manual_seed(0))
    return [past, *(torch.cat([past, rows]) for rows in (later[order], 9 * later, torch.full_like(later, torch.nan)))]


def looks_ahead(baseline: Baseline, prices: torch.Tensor, start: int, cut: int) -> bool:
    expected, *others = (
        baseline(ModelInputs(rows), start, CONFIG).quantiles[: cut - start].nan_to_num()
        for rows in [prices, *other_futures(prices, cut)]
    )
    assert expected[0].any()
    return not all(torch.equal(other, expected) for other in others)


@pytest.mark.parametrize("name", ["random walk", *MODELS])
def test_statistical_does_not_look_ahead(backtest_panel: Panel, name: str, random_walk: Baseline) -> None:
    if name != "random walk":
        pytest.importorskip("statsforecast")
    baseline = random_walk if name == "random walk" else statistical(name, step=20)
    assert not looks_ahead(baseline, backtest_panel.values.plain()[:400, 1:], 300, 360)


def test_looks_ahead_detects_a_scale_of_all_rows(backtest_panel: Panel, random_walk: Baseline) -> None:
    def leaky(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
        result, scale = random_walk(inputs, start, config), inputs.prices.log().diff(dim=0).nan_to_num().std()
        return Prediction(result.quantiles * scale, result.variance)

    assert looks_ahead(leaky, backtest_panel.values.plain()[:400, 1:], 300, 360)


@pytest.mark.parametrize("name", MODELS)
def test_statistical_first_forecast_is_that_of_statsforecast(backtest_panel: Panel, name: str) -> None:
    models = pytest.importorskip("statsforecast.models")
    prices, start = backtest_panel.values.plain()[:400, 1:], 300
    y = np.log(prices[: start + 1][prices[: start + 1] > 0].numpy())
    kind, settings = MODELS[name]
    forward = getattr(models, kind)(**settings).fit(y[:-1]).forward(y, 63, level=[90])
    expected = {key: np.asarray(path) for key, path in forward.items()}
    quantiles = statistical(name, step=1000)(ModelInputs(prices), start, HarConfig(horizons=(63,))).quantiles[0, 0, 0]
    tolerance = 0.12 if name == "theta" else 1e-6  # Theta's intervals are quantiles of 200 random paths
    width = expected["hi-90"][-1] - expected["lo-90"][-1]
    assert quantiles[9].item() == pytest.approx(expected["mean"][-1] - y[-1], abs=1e-12)
    assert (quantiles[-1] - quantiles[0]).item() == pytest.approx(width, rel=tolerance)


def test_statistical_without_statsforecast_names_the_extra(
    backtest_panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast.models", None)
    with pytest.raises(
        ImportError, match=r"autoets: needs statsforecast; pip install 'torchcommodity\[statsforecast\]'"
    ):
        statistical("autoets")(ModelInputs(backtest_panel.values.plain()), 1500, CONFIG)


def test_statistical_rejects_bad_arguments() -> None:
    with pytest.raises(ValueError, match="must be one of autoarima, autoets, theta; got 'arima'"):
        statistical("arima")
    with pytest.raises(ValueError, match="step must be at least 1; got 0"):
        statistical("theta", step=0)
