"""Summary of a backtest for reports: scores, calibration, coverage of each symbol."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from torchcommodity.forecast._intervals import Coverage, count_independent, inside, level_index, main_interval
from torchcommodity.forecast._score import Backtest, Score, score, symbol_skills


@dataclass(frozen=True)
class BacktestSummary:
    """Scores, calibration and coverage of a backtest, without its quantiles.

    Args:
        model: name of the tested model.
        first, last: dates of the first and the last origin.
        symbols: tested symbols.
        excluded: symbols without enough history.
        scores: one row per horizon and model.
        levels: nominal quantile levels `(Q,)`.
        calibration: horizon in rows -> share of targets at or below each quantile of `model`, `(Q,)`.
        coverage: symbol -> horizon in rows -> share of targets in the 90 % interval of `model`; NaN without one.
        fits: outcome of each training of the network, in words.
        interval_coverage: symbol -> horizon in rows -> coverage of the `main_interval`, with the size of the sample.
        mean_skill: horizon in rows -> mean of the symbols' skills in percent, where spreads are among them: the pooled
            loss adds changes of asinh(P / S) and log-returns. Otherwise empty.
    """

    model: str
    first: str
    last: str
    symbols: tuple[str, ...]
    excluded: tuple[str, ...]
    scores: tuple[Score, ...]
    levels: tuple[float, ...]
    calibration: dict[str, tuple[float, ...]]
    coverage: dict[str, dict[str, float]]
    fits: tuple[str, ...]
    interval_coverage: dict[str, dict[str, Coverage]]
    mean_skill: dict[str, float] = field(default_factory=dict)

    @property
    def horizons(self) -> tuple[int, ...]:
        """Horizons in rows."""
        return tuple(map(int, self.calibration))

    def to_json(self) -> str:
        """Convert to JSON; undefined numbers are written as NaN."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "BacktestSummary":
        """Parse the JSON of `to_json`; ValueError for anything else."""
        try:
            fields: dict[str, Any] = json.loads(text)
            fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
            fields["scores"] = tuple(Score(**row) for row in fields["scores"])
            fields["calibration"] = {h: tuple(shares) for h, shares in fields["calibration"].items()}
            fields["interval_coverage"] = {
                symbol: {h: Coverage(**record) for h, record in records.items()}
                for symbol, records in fields["interval_coverage"].items()
            }
            return cls(**fields)
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"BacktestSummary: text must be the result of to_json; got {text[:60]!r}") from error


def summarize(backtest: Backtest, excluded: tuple[str, ...] = ()) -> BacktestSummary:
    """Score a backtest and measure calibration and coverage of its model.

    Args:
        backtest: quantiles and targets.
        excluded: symbols without enough history, for reports.
    """
    scores = score(backtest)
    quantiles = backtest.quantiles[backtest.model]  # (T, H, N, Q)
    valid = torch.isfinite(backtest.targets) & torch.isfinite(quantiles).all(-1)
    below = (backtest.targets.unsqueeze(-1) <= quantiles) & valid.unsqueeze(-1)
    calibration = below.sum((0, 2)) / valid.sum((0, 2)).unsqueeze(-1)  # (H, Q)
    coverage = inside(backtest.targets, quantiles, backtest.levels).nanmean(0)  # (H, N)
    return BacktestSummary(
        model=backtest.model,
        first=scores.first,
        last=scores.last,
        symbols=backtest.symbols,
        excluded=excluded,
        scores=scores.rows,
        levels=backtest.levels,
        calibration={str(h): tuple(calibration[i].tolist()) for i, h in enumerate(backtest.horizons)},
        coverage={
            symbol: {str(h): coverage[i, n].item() for i, h in enumerate(backtest.horizons)}
            for n, symbol in enumerate(backtest.symbols)
        },
        fits=backtest.fits,
        interval_coverage=_interval_coverage(backtest),
        mean_skill=dict(zip(map(str, backtest.horizons), symbol_skills(backtest).nanmean(1).tolist()))
        if backtest.signed
        else {},
    )


def _interval_coverage(backtest: Backtest) -> dict[str, dict[str, Coverage]]:
    """Coverage of the tested model's `main_interval`: symbol -> horizon in rows -> Coverage.

    Empty where the levels have no such interval; horizons without an outcome are left out.
    """
    index, interval = level_index(backtest.levels), main_interval(backtest.levels)
    if interval is None:
        return {}
    quantiles = backtest.quantiles[backtest.model]
    low, high = (quantiles[..., index[level]] for level in interval)  # (T, H, N)
    valid = torch.isfinite(backtest.targets) & torch.isfinite(quantiles).all(-1)
    inside = (backtest.targets >= low) & (backtest.targets <= high)
    ends = np.searchsorted(backtest.origins, backtest.target_dates)

    def coverage(i: int, n: int) -> Coverage:
        rows = np.flatnonzero(valid[:, i, n].numpy())
        periods = zip(rows.tolist(), ends[rows, i, n].tolist())
        return Coverage(float(inside[:, i, n].numpy()[rows].mean()), len(rows), count_independent(periods))

    return {
        symbol: {str(h): coverage(i, n) for i, h in enumerate(backtest.horizons) if valid[:, i, n].any()}
        for n, symbol in enumerate(backtest.symbols)
    }
