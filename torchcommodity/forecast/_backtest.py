"""Walk-forward: every year everything is fitted again on the past alone and forecasts the year."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, check_not_synthetic, walk_forward
from torchcommodity.forecast._baselines import BASELINES
from torchcommodity.models import HarConfig, model_name
from torchcommodity.training import (
    LOCAL,
    Baseline,
    Executor,
    FitConfig,
    Fold,
    Progress,
    model_inputs,
    one_thread,
    run_fold,
    targets,
)

TESTED = 7  # years, the last ones, unless a first is given


@dataclass(frozen=True)
class Backtest:
    """Forecasts of every row of the test years and what came true; NaN where there is no forecast or no target."""

    model: str  # the registered name of the model that was fitted; the other models are its baselines
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
    baselines: Mapping[str, Baseline] = BASELINES,
    progress: Progress | None = None,
    executor: Executor = LOCAL,
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
        baselines: the forecasts to beat, by name; `forecast.statistical` has more.
        progress: called as progress(done, of, what) after every training of the network and its years.
        executor: where these are computed, see `training.make_executor`; the result is the same.

    Raises:
        ValueError: a symbol without a positive price, no row to test, or too few rows before the first;
            `refit_network` below 1; the panel is synthetic.
    """
    check_not_synthetic("backtest", panel)
    if refit_network < 1:
        raise ValueError(f"backtest: refit_network must be at least 1; got {refit_network}")
    config = config or FitConfig()
    quoted = model_inputs(panel, config.model.har.horizons[-1])
    blocks = _blocks(panel, quoted.prices, first, config.model.har)
    years = [(str(panel.dates[test.start])[:4], test) for test in blocks]
    folds = [
        Fold(quoted.before(part[-1][1].stop), dict(part), config, seed, baselines)
        for part in (years[i : i + refit_network] for i in range(0, len(years), refit_network))
    ]
    walked = []
    for found in executor.map(run_fold, folds):
        walked.append(found)
        if progress is not None:
            done = min(len(walked) * refit_network, len(years))
            progress(done, len(years), years[done - 1][0])
    predictions = {name: [found.predictions[name] for found in walked] for name in walked[0].predictions}
    rows = slice(blocks[0].start, len(panel))
    return Backtest(
        model=model_name(config.model),
        origins=panel.dates[rows],
        symbols=panel.symbols,
        horizons=config.model.har.horizons,
        levels=config.model.har.levels,
        targets=targets(quoted.prices, config.model.har.horizons)[rows],
        quantiles={name: torch.cat([p.quantiles for p in found]) for name, found in predictions.items()},
        variances={name: torch.cat([p.variance for p in found]) for name, found in predictions.items()},
        fits=tuple(found.fit_note for found in walked),
        mix={year: mix for found in walked for year, mix in found.mix.items()},
    )


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
    first = max(int(years[-1]) - TESTED + 1, int(years[least - 1]) + 1) if first is None else first
    before = int((years < first).sum())
    if before < least or before == len(years):
        raise ValueError(
            f"backtest: first must be a year of {years[0]} to {years[-1]} with at least {least} rows before it; "
            f"got first={first} with {before}"
        )
    return [block.test for block in walk_forward(panel.dates, first=first, horizon=config.horizons[-1])]
