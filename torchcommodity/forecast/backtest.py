"""Walk-forward: every year everything is fitted again on the past alone and forecasts the year."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, refuse_synthetic, walk_forward
from torchcommodity.forecast.baselines import BASELINES, Prediction
from torchcommodity.forecast.calibrate import calibrate, targets
from torchcommodity.forecast.fit import FitConfig
from torchcommodity.forecast.quotes import Quotes, quotes
from torchcommodity.forecast.threads import one_thread
from torchcommodity.forecast.train import Progress, train
from torchcommodity.models import HarConfig, build

OURS, UNTRAINED = "har-lstm", "untrained"


@dataclass(frozen=True)
class Backtest:
    """Forecasts of every row of the test years and what came true; NaN where there is no forecast or no target."""

    origins: np.ndarray  # (T,) datetime64[D]
    symbols: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    targets: Tensor  # (T, H, N) cumulative log-returns
    quantiles: dict[str, Tensor]  # (T, H, N, Q) of each model
    variances: dict[str, Tensor]  # (T, H, N) of each model
    fits: tuple[str, ...]  # what became of each year's network, in words
    mix: dict[str, Tensor]  # year: (H, K) coefficients of the variance terms

    def between(self, first: int, last: int) -> "Backtest":
        """Only origins of the years first..last, and only targets that end by the end of year `last`."""
        keep = _year(self.origins) <= last
        ahead = self.targets.clone()
        stop = int(keep.sum())
        for i, h in enumerate(self.horizons):
            ahead[max(stop - h, 0) :, i] = torch.nan
        rows = slice(int((_year(self.origins) < first).sum()), stop)
        return replace(
            self,
            origins=self.origins[rows],
            targets=ahead[rows],
            quantiles={name: q[rows] for name, q in self.quantiles.items()},
            variances={name: v[rows] for name, v in self.variances.items()},
        )


@one_thread()
def backtest(
    panel: Panel,
    config: FitConfig | None = None,
    *,
    first: int | None = None,
    refit_network: int = 2,
    seed: int = 0,
    progress: Progress | None = None,
) -> Backtest:
    """Walk forward through the calendar years from `first` to the end of the panel.

    At the first row of each year the econometric part and every baseline are fitted on the rows before it, and the
    network every `refit_network` years (between them it is carried on). A training target is used only if it ended
    before that row: an embargo of one horizon.

    Args:
        panel: raw prices.
        config: settings of the fit; the defaults if None.
        first: the first test year; by default the last seven years are tested.
        refit_network: years between two trainings of the network.
        seed: of the network.
        progress: called as progress(done, of, what) after every year.

    Raises:
        ValueError: a symbol without a positive price, no row to test, or too few rows before the first; the panel is
            synthetic.
    """
    refuse_synthetic("backtest", panel)
    config = config or FitConfig()
    quoted = quotes(panel)
    blocks = _blocks(panel, quoted.prices, first, config.model.har)
    model = build(config.model, len(panel.symbols), seed)
    pieces: dict[str, list[Prediction]] = {name: [] for name in (OURS, UNTRAINED, *BASELINES)}
    fits, mix = [], {}
    for done, test in enumerate(blocks):
        past, year = quoted.before(test.start), str(panel.dates[test.start])[:4]
        if done % refit_network == 0:
            model = build(config.model, len(panel.symbols), seed)
            fits.append(f"{year}: {train(model, past, config.train, config.symmetry, seed).note}")
        calibrate(model.har, past, config.symmetry)
        mix[year] = model.har.mix.clone()
        for name, prediction in _forecast(model, quoted.before(test.stop), test.start).items():
            pieces[name].append(prediction)
        if progress is not None:
            progress(done + 1, len(blocks), year)
    rows = slice(blocks[0].start, len(panel))
    return Backtest(
        origins=panel.dates[rows],
        symbols=panel.symbols,
        horizons=config.model.har.horizons,
        levels=config.model.har.levels,
        targets=targets(quoted.prices, config.model.har.horizons)[rows],
        quantiles={name: torch.cat([p.quantiles for p in found]) for name, found in pieces.items()},
        variances={name: torch.cat([p.variance for p in found]) for name, found in pieces.items()},
        fits=tuple(fits),
        mix=mix,
    )


@torch.no_grad()
def _forecast(model: Any, quoted: Quotes, start: int) -> dict[str, Prediction]:
    """Every model's forecasts of the rows from `start` on; ours with the network and without it."""
    model.eval()
    market = model.har(*quoted.batch())
    found = {}
    for name, raw in ((OURS, model.correction(market)), (UNTRAINED, None)):
        variance = (2 * model.har.bent(market, raw)).exp()
        found[name] = Prediction(model.har.quantiles(market, raw)[0, start:], variance[0, start:])
    config = model.har.config
    return found | {name: baseline(quoted.prices, start, config) for name, baseline in BASELINES.items()}


def _year(dates: np.ndarray) -> np.ndarray:
    return dates.astype("datetime64[Y]").astype(int) + 1970


def _blocks(panel: Panel, prices: Tensor, first: int | None, config: HarConfig) -> list[range]:
    """The test rows of each year, after a check that every symbol has prices and the first year enough before it."""
    known = torch.isfinite(prices) & (prices > 0)
    if empty := [s for s, any_price in zip(panel.symbols, known.any(0).tolist()) if not any_price]:
        raise ValueError(f"backtest: every symbol must have positive prices; got none for {', '.join(empty)}")
    years, least = _year(panel.dates), config.warmup + 2 * config.horizons[-1]
    if len(years) <= least:
        raise ValueError(f"backtest: the panel must have more than {least} rows; got {len(years)}")
    first = max(int(years[-1]) - 6, int(years[least - 1]) + 1) if first is None else first
    before = int((years < first).sum())
    if before < least or before == len(years):
        raise ValueError(
            f"backtest: first must be a year of {years[0]} to {years[-1]} with at least {least} rows before it; "
            f"got first={first} with {before}"
        )
    return [block.test for block in walk_forward(panel.dates, first=first, horizon=config.horizons[-1])]
