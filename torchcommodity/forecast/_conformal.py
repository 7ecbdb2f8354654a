"""Split-conformal correction: past forecasts that held too seldom are widened, those that held too often narrowed.

    E = max(q_lo - y, y - q_hi) / s,   s the width between the outermost levels     the score of a past forecast
    q_lo - s Q(E),  q_hi + s Q(E)      Q the ceil((n + 1) c)-th smallest of n scores, c = 1 - 2 tau the pair's share

Each pair of levels (tau, 1 - tau) has its own correction, so that the median stays where it is. Scores are pooled over
symbols: s takes their different scales out. Exchangeable rows would make the coverage exact; targets that overlap are
not exchangeable, and a window of W rows holds only W / h independent ones. No forecaster of this package corrects its
quantiles so unless asked: on the ten futures it cost more than it brought (`benchmarks/conformal.py`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from torchcommodity.forecast._backtest import Backtest
from torchcommodity.training import one_thread

LEAST = 100  # scores before the first correction


@one_thread()
def conformal(backtest: Backtest, model: str | None = None, *, window: int = 504, every: int = 21) -> Backtest:
    """The backtest with one model more, "`model` conformal": its quantiles, corrected by its own past.

    At each `every`-th row t the correction is found on the last `window` forecasts whose targets had ended by t, an
    embargo of one horizon, and holds for the next `every` rows. As long as a horizon has fewer than 100 such targets,
    its quantiles stay as they are.

    Args:
        backtest: forecasts and what came true. Those before the rows to be judged are the first to learn from, so walk
            from some years earlier.
        model: whose quantiles, by default those of the backtest's model; the levels must be symmetric about 1/2.
        window: rows to learn from; a longer one than needed is slow to notice that the scale is wrong.
        every: rows between two corrections.

    Returns:
        a Backtest, which `score` compares; the variance forecasts are those of `model`.

    Raises:
        ValueError: an unknown model, levels that are not symmetric, `window` or `every` below 1.

    References:
        Romano, Patterson, Candès (2019). Conformalized quantile regression. NeurIPS 32. arXiv:1905.03222.
        Sesia, Candès (2020). A comparison of some conformal quantile regression methods. Stat 9(1).
        doi:10.1002/sta4.261.

    Example:
        >>> import torchcommodity as tc
        >>> wti = tc.data.embedded()["WTI"].between("2012-01-01", "2016-12-31")
        >>> walked = tc.forecast.backtest(wti, first=2015)
        >>> list(conformal(walked).quantiles)[-1]
        'har-garch conformal'
    """
    model = backtest.model if model is None else model
    if model not in backtest.quantiles:
        raise ValueError(f"conformal: model must be one of {', '.join(backtest.quantiles)}; got {model!r}")
    if min(window, every) < 1:
        raise ValueError(f"conformal: window and every must be at least 1; got {window}, {every}")
    raw, name = backtest.quantiles[model], f"{model} conformal"
    parts = []
    for start in range(0, len(raw), every):
        found = [
            corrections(raw[past, i], backtest.targets[past, i], backtest.levels)
            for i, past in enumerate(
                slice(max(start + 1 - h - window, 0), max(start + 1 - h, 0)) for h in backtest.horizons
            )
        ]
        parts.append(corrected(raw[start : start + every], torch.stack(found)[:, None]))
    return replace(
        backtest,
        quantiles=backtest.quantiles | {name: torch.cat(parts)},
        variances=backtest.variances | {name: backtest.variances[model]},
    )


def corrections(
    quantiles: Tensor,  # (..., Q) past forecasts
    targets: Tensor,  # (...) what came true; NaN takes no part
    levels: Sequence[float],  # (Q,) symmetric about 1/2
) -> Tensor:  # (Q // 2,)
    """How far each pair of levels, outermost first, must move outwards, in widths of the outermost; zero if too few.

    Example:
        >>> always = torch.tensor([-1.0, 0.0, 1.0]).expand(200, -1)
        >>> corrections(always, torch.linspace(-2, 2, 200), (0.05, 0.5, 0.95))  # 90 % within 1.82
        tensor([0.4095])
    """
    if not np.allclose(np.add(levels, levels[::-1]), 1):
        raise ValueError(f"conformal: levels must be symmetric about 1/2; got {tuple(levels)}")
    pairs = len(levels) // 2
    use = torch.isfinite(targets) & torch.isfinite(quantiles).all(-1)
    q, y = quantiles[use], targets[use].unsqueeze(-1)
    lower, upper = q[:, :pairs], q.flip(-1)[:, :pairs]
    scores = torch.maximum(lower - y, y - upper) / _width(q)  # (n, P)
    n = len(scores)
    if n < LEAST:
        return quantiles.new_zeros(pairs)
    share = 1 - 2 * np.array(levels[:pairs])
    # 1e-9: 0.9 * 110 is 99.00000000000001
    rank = np.ceil((n + 1) * share - 1e-9).astype(int).clip(max=n) - 1
    return scores.sort(0).values[torch.from_numpy(rank), torch.arange(pairs)]


def corrected(
    quantiles: Tensor,  # (..., Q)
    corrections: Tensor,  # (..., Q // 2), broadcasts
) -> Tensor:  # (..., Q)
    """Quantiles moved outwards by `corrections`, and sorted: they cannot cross.

    `predict` gives log-returns (H, N, Q), which the corrections (H, 1, Q // 2) of a backtest's last rows correct.

    Example:
        >>> corrected(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([0.5]))
        tensor([-2.,  0.,  2.])
    """
    by = corrections * _width(quantiles)
    middle = quantiles.new_zeros(*by.shape[:-1], quantiles.shape[-1] - 2 * by.shape[-1])
    return (quantiles + torch.cat([-by, middle, by.flip(-1)], -1)).sort(-1).values


def _width(quantiles: Tensor) -> Tensor:
    return quantiles[..., -1:] - quantiles[..., :1]
