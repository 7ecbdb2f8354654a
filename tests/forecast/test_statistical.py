"""Baselines fit_and_update by another library's models: fitted on the past, stepped through the rest, nothing ahead."""

import sys
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import statistical
from torchcommodity.forecast._baselines import unconditional
from torchcommodity.forecast._statistical import INTERVALS, MAX_PAST, MIN_PAST, MODELS, Z, fit_and_update
from torchcommodity.models import HarConfig
from torchcommodity.training import Baseline, Prediction

CONFIG = HarConfig()


@pytest.fixture(scope="module")
def panel() -> Panel:
    return data.embedded().select(["WTI", "SP500"]).between("2008-01-01", "2014-12-31")


class RandomWalk:
    """statsforecast's protocol with a forecast that can be written down: no drift, the deviation of the rows fitted."""

    fitted: ClassVar[list[np.ndarray]] = []

    def fit(self, y: np.ndarray) -> "RandomWalk":
        self.fitted.append(y)
        self.step = float(np.diff(y).std())
        return self

    def forward(self, y: np.ndarray, h: int, *, level: list[int]) -> dict[str, np.ndarray]:
        deviation = self.step * np.sqrt(np.arange(1, h + 1))
        found = {"mean": np.full(h, y[-1])}
        for width, z in zip(INTERVALS, Z):
            found |= {f"lo-{width}": y[-1] - z * deviation, f"hi-{width}": y[-1] + z * deviation}
        return {key: found[key] for key in ["mean", *(f"{side}-{w}" for side in ("lo", "hi") for w in level)]}


@pytest.fixture
def walk() -> Baseline:
    RandomWalk.fitted = []
    return partial(fit_and_update, RandomWalk, 1)


def test_a_random_walk_is_its_formula(panel: Panel, walk: Baseline) -> None:
    prices, start = panel.values.plain(), 1500
    found = walk(prices, start, CONFIG)
    assert found.quantiles.shape == (len(prices) - start, 4, 2, 19)
    past = np.log(prices[:start, 1][prices[:start, 1] > 0].numpy())
    np.testing.assert_array_equal(RandomWalk.fitted[1], past[-MAX_PAST:])
    step = np.diff(past[-MAX_PAST:]).std()
    expected = step * np.sqrt(63) * torch.special.ndtri(torch.tensor(CONFIG.levels, dtype=torch.double))
    torch.testing.assert_close(found.quantiles[7, 2, 1], expected)
    assert found.variance[7, 2, 1].item() == pytest.approx(63 * step**2)


def test_a_missing_price_is_skipped(walk: Baseline) -> None:
    wti = data.embedded().select(["WTI"]).between("2010-01-01", "2014-12-31").values.plain()
    dense = wti[torch.isfinite(wti[:, 0])]
    holed = torch.cat([dense[:600], torch.tensor([[torch.nan], [-37.63], [0.0]]).double(), dense[600:]])
    plain, found = walk(dense, 500, CONFIG), walk(holed, 500, CONFIG)
    torch.testing.assert_close(found.quantiles[103:], plain.quantiles[100:])
    assert torch.equal(found.quantiles[100:103], found.quantiles[99].expand(3, -1, -1, -1))


def test_a_symbol_that_begins_too_late_has_no_forecast(panel: Panel, walk: Baseline) -> None:
    prices = panel.values.plain().clone()
    prices[: 1500 - MIN_PAST + 1, 0] = torch.nan
    found = walk(prices, 1500, CONFIG)
    assert found.quantiles[:, :, 0].isnan().all()
    assert found.quantiles[:, :, 1].isfinite().all()


def test_the_other_rows_are_empty_and_are_not_scored(panel: Panel) -> None:
    every = forecast.backtest(
        panel,
        first_year=2014,
        baselines={"unconditional": unconditional, "walk": partial(fit_and_update, RandomWalk, 5)},
    )
    known = every.quantiles["walk"].isfinite().all(-1).all(-1).all(-1)
    assert known.nonzero()[:, 0].tolist() == list(range(0, len(known), 5))
    n = {row.n for row in forecast.score(every).rows if row.horizon == 21}
    assert n == {int(every.targets[::5, 1].isfinite().sum())}


def futures_of(prices: torch.Tensor, cut: int) -> list[torch.Tensor]:
    """The prices with nothing after row `cut`, with its dates shuffled, with other prices, with none known."""
    past, later = prices[:cut], prices[cut:]
    order = torch.randperm(len(later), generator=torch.Generator().manual_seed(0))
    return [past, *(torch.cat([past, rows]) for rows in (later[order], 9 * later, torch.full_like(later, torch.nan)))]


def looks_ahead(baseline: Baseline, prices: torch.Tensor, start: int, cut: int) -> bool:
    found, *others = (
        baseline(rows, start, CONFIG).quantiles[: cut - start].nan_to_num()
        for rows in [prices, *futures_of(prices, cut)]
    )
    assert found[0].any()
    return not all(torch.equal(other, found) for other in others)


@pytest.mark.parametrize("name", ["walk", *MODELS])
def test_nothing_ahead_is_seen(panel: Panel, name: str, walk: Baseline) -> None:
    if name != "walk":
        pytest.importorskip("statsforecast")
    baseline = walk if name == "walk" else statistical(name, every=20)
    assert not looks_ahead(baseline, panel.values.plain()[:400, 1:], 300, 360)


def test_a_scale_of_all_rows_would_be_found_out(panel: Panel, walk: Baseline) -> None:
    def leaky(prices: torch.Tensor, start: int, config: HarConfig) -> Prediction:
        found, scale = walk(prices, start, config), prices.log().diff(dim=0).nan_to_num().std()
        return Prediction(found.quantiles * scale, found.variance)

    assert looks_ahead(leaky, panel.values.plain()[:400, 1:], 300, 360)


@pytest.mark.parametrize("name", MODELS)
def test_the_first_forecast_is_that_of_statsforecast(panel: Panel, name: str) -> None:
    models = pytest.importorskip("statsforecast.models")
    prices, start = panel.values.plain()[:400, 1:], 300
    y = np.log(prices[: start + 1][prices[: start + 1] > 0].numpy())
    kind, settings = MODELS[name]
    forward = getattr(models, kind)(**settings).fit(y[:-1]).forward(y, 63, level=[90])
    expected = {key: np.asarray(path) for key, path in forward.items()}
    found = statistical(name, every=1000)(prices, start, HarConfig(horizons=(63,))).quantiles[0, 0, 0]
    drawn = 0.12 if name == "theta" else 1e-6  # Theta's intervals are quantiles of 200 paths
    width = expected["hi-90"][-1] - expected["lo-90"][-1]
    assert found[9].item() == pytest.approx(expected["mean"][-1] - y[-1], abs=1e-12)
    assert (found[-1] - found[0]).item() == pytest.approx(width, rel=drawn)


def test_without_statsforecast_the_error_names_the_extra(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast.models", None)
    with pytest.raises(
        ImportError, match=r"autoets: needs statsforecast; pip install 'torchcommodity\[statsforecast\]'"
    ):
        statistical("autoets")(panel.values.plain(), 1500, CONFIG)


def test_what_cannot_be_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="must be one of autoarima, autoets, theta; got 'arima'"):
        statistical("arima")
    with pytest.raises(ValueError, match="every must be at least 1; got 0"):
        statistical("theta", every=0)
