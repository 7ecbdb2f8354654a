"""Constant conditional correlation: one correlation matrix, estimated from the rows so far."""

import torch
from torch import Tensor

from torchcommodity.opkit import Past, live, widest
from torchcommodity.opkit.arguments import check_integer, check_panel
from torchcommodity.ops._correlation.running_sum_float32 import running_sum_float32


def _update(past: Past, z: Tensor, min_periods: int = 1) -> Tensor:
    x, valid = widest(torch.where(z.isnan(), 0, z)), ~z.isnan()
    both = (valid.unsqueeze(-1) & valid.unsqueeze(-2)).flatten(-2)
    products = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
    squares = (x.square().unsqueeze(-1).expand(*x.shape, x.shape[-1]).flatten(-2)).where(both, 0)
    totals = [_sum_before(past, name, rows) for name, rows in (("count", both), ("z", products), ("z2", squares))]
    count, product, square = (total.unflatten(-1, (z.shape[-1], z.shape[-1])) for total in totals)
    scale = square * square.mT
    known = (count >= min_periods) & (scale > 0)
    correlation = torch.where(known, product, 0) / torch.where(known, scale, 1).sqrt()
    return correlation.where(known, torch.nan).to(z.dtype)


def _sum_before(past: Past, name: str, rows: Tensor) -> Tensor:
    """Sum of all rows before each row."""
    before = past.get(name)
    total = running_sum_float32(past, name, rows) if rows.dtype == torch.float32 else past.cumsum(name, rows)
    start = torch.zeros_like(total[..., :1, :]) if before is None else before[..., :1, :]
    return torch.cat([start, total], -2)[..., :-1, :]


@live(_update, outputs=-3)
def ccc_correlation(
    z: Tensor,  # (..., T, N)
    *,
    min_periods: int = 1,
) -> Tensor:  # (..., T, N, N)
    """Constant conditional correlation (CCC) of the residuals of each row, estimated from the rows before it.

    R_t,ij = sum z_i z_j / sqrt(sum z_i^2 sum z_j^2) over the rows before t: about zero, the mean of a residual.
    Bollerslev estimates it from the whole sample, which the rows of that sample could not know: pad `z` by one row, of
    whatever values, and take the last matrix.

    Args:
        z: Standardized residuals (dimensionless), such as returns / `garch_variance` ** 0.5; NaN is missing.
        min_periods: Number of rows that a pair must have in common before t, >= 1.

    Returns:
        R, in the dtype of `z`. Causal: row t is known before row t, as in `dcc_correlation`. Each pair uses the rows in
        which both residuals are there, so that R may not be positive definite where some are missing, or after fewer
        than N rows. NaN with fewer than `min_periods` of them, as in the first row, or if one series is zero in all.

    Raises:
        ValueError, TypeError: If `z` is not a floating-point panel, or `min_periods` is not an int >= 1.

    Devices: all. Differentiable to any order, in reverse and forward mode.

    References:
        Bollerslev (1990). Modelling the coherence in short-run nominal exchange rates: a multivariate generalized ARCH
        model. Review of Economics and Statistics 72(3). doi:10.2307/2109358

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> z = torch.tensor([[1.0, 1.0], [1.0, -0.5], [0.0, 0.0]])
        >>> ops.ccc_correlation(z)[:, 0, 1]
        tensor([   nan, 1.0000, 0.3162])
    """
    check_panel("ccc_correlation", z=z)
    check_integer("ccc_correlation", 1, min_periods=min_periods)
    return _update(Past(), z, min_periods)
