"""Split-conformal correction of the quantiles of a backtest.

    E = max(q_lo - y, y - q_hi) / s,   s the width between the outermost levels     score of a past forecast
    q_lo - s Q(E),  q_hi + s Q(E)      Q the ceil((n + 1) c)-th smallest of n scores, c = 1 - 2 tau the nominal coverage

Each pair of levels (tau, 1 - tau) is corrected separately; the median does not change. Scores are pooled over symbols,
whose scales s removes. The coverage would be exact for exchangeable rows; overlapping targets are not
exchangeable, and a window of W rows has only W / h independent ones. No forecaster of this package uses it,
because it increased the loss on ten futures (`benchmarks/conformal.py`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from torchcommodity.forecast._score import Backtest
from torchcommodity.training import one_thread

MIN_SCORES = 100  # past scores required for a correction


@one_thread()
def conformal(backtest: Backtest, model: str | None = None, *, window: int = 504, step: int = 21) -> Backtest:
    """Add the model "`model` conformal" to a backtest: quantiles corrected by past forecast errors.

    Every `step` rows the correction is re-estimated on the last `window` forecasts whose targets have ended (an embargo
    of one horizon). The quantiles of a horizon with fewer than 100 such targets are not changed.

    Args:
        backtest: forecasts and targets, starting some years before the rows to evaluate.
        model: name of the model to correct; the tested model if None. The levels must be symmetric about 1/2.
        window: rows on which a correction is estimated; longer windows adapt more slowly.
        step: rows between estimates.

    Returns:
        A Backtest for `score`; the variance forecasts are those of `model`.

    Raises:
        ValueError: an unknown model, levels that are not symmetric, `window` or `step` below 1.

    References:
        Romano, Patterson, Candès (2019). Conformalized quantile regression. NeurIPS 32. arXiv:1905.03222.
        Sesia, Candès (2020). A comparison of some conformal quantile regression methods. Stat 9(1).
        doi:10.1002/sta4.261.

    Example:
        >>> import torchcommodity as tc
        >>> wti = tc.data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> result = tc.forecast.backtest(wti, first_year=2015)
        >>> list(conformal(result, "har").quantiles)[-1]
        'har conformal'
    """
    model = backtest.model if model is None else model
    if model not in backtest.quantiles:
        raise ValueError(f"conformal: model must be one of {', '.join(backtest.quantiles)}; got {model!r}")
    if min(window, step) < 1:
        raise ValueError(f"conformal: window and step must be at least 1; got {window=}, {step=}")
    raw, name = backtest.quantiles[model], f"{model} conformal"
    parts = []
    for start in range(0, len(raw), step):
        by_horizon = []
        for i, h in enumerate(backtest.horizons):
            past = slice(max(start + 1 - h - window, 0), max(start + 1 - h, 0))
            # a symbol may trade on fewer rows, so that its target ends later; False for NaT
            ended = torch.from_numpy(backtest.target_dates[past, i] <= backtest.origins[start])
            targets = torch.where(ended, backtest.targets[past, i], torch.nan)
            by_horizon.append(corrections(raw[past, i], targets, backtest.levels))
        parts.append(corrected(raw[start : start + step], torch.stack(by_horizon)[:, None]))
    return replace(
        backtest,
        quantiles=backtest.quantiles | {name: torch.cat(parts)},
        variances=backtest.variances | {name: backtest.variances[model]},
    )


def corrections(
    quantiles: Tensor,  # (..., Q) past forecasts
    targets: Tensor,  # (...) realized values; NaN is skipped
    levels: Sequence[float],  # (Q,) symmetric about 1/2
) -> Tensor:  # (Q // 2,)
    """Outward shift of each pair of levels, outermost first, in units of the outermost width; 0 with too few scores.

    Example:
        >>> constant = torch.tensor([-1.0, 0.0, 1.0]).expand(200, -1)
        >>> corrections(constant, torch.linspace(-2, 2, 200), (0.05, 0.5, 0.95))  # 90 % within 1.82
        tensor([0.4095])
    """
    if not np.allclose(np.add(levels, levels[::-1]), 1):
        raise ValueError(f"conformal: levels must be symmetric about 1/2; got {tuple(levels)}")
    pairs = len(levels) // 2
    valid = torch.isfinite(targets) & torch.isfinite(quantiles).all(-1)
    q, y = quantiles[valid], targets[valid].unsqueeze(-1)
    lower, upper = q[:, :pairs], q.flip(-1)[:, :pairs]
    scores = torch.maximum(lower - y, y - upper) / _width(q)  # (n, P)
    n = len(scores)
    if n < MIN_SCORES:
        return quantiles.new_zeros(pairs)
    coverage = 1 - 2 * np.array(levels[:pairs])
    # 1e-9: 0.9 * 110 is 99.00000000000001
    rank = np.ceil((n + 1) * coverage - 1e-9).astype(int).clip(max=n) - 1
    return scores.sort(0).values[torch.from_numpy(rank), torch.arange(pairs)]


def corrected(
    quantiles: Tensor,  # (..., Q)
    corrections: Tensor,  # (..., Q // 2), broadcasts
) -> Tensor:  # (..., Q)
    """Quantiles shifted outwards by `corrections`, and sorted, so that they cannot cross.

    Example:
        >>> corrected(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([0.5]))
        tensor([-2.,  0.,  2.])
    """
    shift = corrections * _width(quantiles)
    middle = quantiles.new_zeros(*shift.shape[:-1], quantiles.shape[-1] - 2 * shift.shape[-1])
    return (quantiles + torch.cat([-shift, middle, shift.flip(-1)], -1)).sort(-1).values


def _width(quantiles: Tensor) -> Tensor:
    return quantiles[..., -1:] - quantiles[..., :1]
