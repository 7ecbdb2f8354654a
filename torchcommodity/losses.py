"""Losses of forecasts: pinball and CRPS for quantiles, QLIKE for variances. A target that is NaN takes no part."""

from typing import Literal

import torch
from torch import Tensor, nn

Reduction = Literal["mean", "sum", "none"]


def pinball(
    quantiles: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (..., Q)
    """Pinball (quantile) loss: max(tau (y - q), (tau - 1)(y - q)) for each level tau.

    Args:
        quantiles: forecast quantiles, in the unit of `target`, one per level on the last axis.
        target: what came true. NaN takes no part: its loss is NaN with "none", left out of "mean" and "sum".
        levels: tau, strictly between 0 and 1.
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the loss in the unit of `target`. No gradient reaches the quantiles of a missing target.

    Raises:
        ValueError: shapes do not fit, a level is outside (0, 1), the reduction is unknown.

    References:
        Koenker, Bassett (1978). Regression quantiles. Econometrica 46(1). doi:10.2307/1913643.

    Example:
        >>> pinball(torch.tensor([1.0, 2.0]), torch.tensor(3.0), torch.tensor([0.1, 0.5]), reduction="none")
        tensor([0.2000, 0.5000])
    """
    _check_quantiles("pinball", quantiles, target, levels)
    known = torch.isfinite(target)
    error = torch.where(known, target, 0.0).unsqueeze(-1) - quantiles
    loss = torch.maximum(levels * error, (levels - 1) * error)
    return _reduce("pinball", loss, known.unsqueeze(-1).expand_as(loss), reduction)


def crps(
    quantiles: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Continuous ranked probability score from quantiles: 2 x the mean over the levels of the pinball loss.

    CRPS = integral over tau in (0, 1) of 2 pinball_tau; the sum over evenly spaced levels is its quadrature.

    Args:
        quantiles: forecast quantiles, in the unit of `target`, one per level on the last axis.
        target: what came true. NaN takes no part: its score is NaN with "none", left out of "mean" and "sum".
        levels: tau, strictly between 0 and 1, evenly spaced.
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the score in the unit of `target`; for a forecast of one point, the absolute error.

    Raises:
        ValueError: shapes do not fit, a level is outside (0, 1), the reduction is unknown.

    References:
        Gneiting, Raftery (2007). Strictly proper scoring rules, prediction, and estimation. JASA 102.
        doi:10.1198/016214506000001437.

    Example:
        >>> crps(torch.tensor([2.0, 2.0, 2.0]), torch.tensor(3.0), torch.tensor([0.25, 0.5, 0.75]))
        tensor(1.)
    """
    _check_quantiles("crps", quantiles, target, levels)
    score = 2 * pinball(quantiles, target, levels, reduction="none").mean(-1)
    return _reduce("crps", score, torch.isfinite(target), reduction)


def qlike(
    variance: Tensor,  # (...)
    realized: Tensor,  # (...)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Quasi-likelihood loss of a variance forecast: ln h + s / h, least in expectation where h is the expected s.

    Args:
        variance: forecast h of the variance (not the volatility), > 0.
        realized: what came true: a squared return or a realised variance, in the unit of `variance`, >= 0. NaN takes no
            part: its loss is NaN with "none", left out of "mean" and "sum".
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the loss, robust to noise in `realized`. It is a Gaussian log-likelihood up to constants; only differences mean
        something.

    Raises:
        ValueError: shapes differ, the reduction is unknown. A variance that is not positive gives a NaN or infinite
            loss.

    References:
        Patton (2011). Volatility forecast comparison using imperfect volatility proxies. J. Econometrics 160(1).
        doi:10.1016/j.jeconom.2010.03.034.

    Example:
        >>> qlike(torch.tensor([1.0, 2.0]), torch.tensor([1.0, torch.nan]))
        tensor(1.)
    """
    if variance.shape != realized.shape:
        raise ValueError(
            f"qlike: variance and realized must be of one shape; got {tuple(variance.shape)}, {tuple(realized.shape)}"
        )
    known = torch.isfinite(realized)
    h = torch.where(known, variance, 1.0)
    return _reduce("qlike", h.log() + torch.where(known, realized, 0.0) / h, known, reduction)


class Pinball(nn.Module):
    """Module of `pinball`, which owns its levels (Q,)."""

    levels: Tensor

    def __init__(self, levels: Tensor, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, target: Tensor) -> Tensor:
        return pinball(quantiles, target, self.levels, reduction=self.reduction)


class CRPS(nn.Module):
    """Module of `crps`, which owns its levels (Q,)."""

    levels: Tensor

    def __init__(self, levels: Tensor, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, target: Tensor) -> Tensor:
        return crps(quantiles, target, self.levels, reduction=self.reduction)


class QLIKE(nn.Module):
    """Module of `qlike`."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(self, variance: Tensor, realized: Tensor) -> Tensor:
        return qlike(variance, realized, reduction=self.reduction)


def _check_quantiles(name: str, quantiles: Tensor, target: Tensor, levels: Tensor) -> None:
    if levels.dim() != 1 or quantiles.shape != (*target.shape, *levels.shape):
        shapes = f"{tuple(quantiles.shape)}, {tuple(target.shape)}, {tuple(levels.shape)}"
        raise ValueError(f"{name}: quantiles must be (..., Q) for target (...) and levels (Q,); got {shapes}")
    if not torch.compiler.is_compiling() and not bool(((levels > 0) & (levels < 1)).all()):
        raise ValueError(f"{name}: levels must lie strictly between 0 and 1; got {levels.tolist()}")


def _reduce(name: str, loss: Tensor, known: Tensor, reduction: Reduction) -> Tensor:
    if reduction == "none":
        return torch.where(known, loss, torch.nan)
    # not nansum: a NaN forecast of a known target must show
    total = torch.where(known, loss, 0.0).sum()
    if reduction == "sum":
        return total
    if reduction == "mean":
        return total / known.sum()
    raise ValueError(f'{name}: reduction must be "mean", "sum" or "none"; got {reduction!r}')
