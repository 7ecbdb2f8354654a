"""Constant conditional correlation: one correlation matrix, estimated from the rows so far."""

import torch
from torch import Tensor

from torch_opkit import Past, live, widest
from torch_opkit.arguments import check_integer, check_panel


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


def running_sum_float32(past: Past, name: str, x: Tensor) -> Tensor:
    """Sum of all rows so far of `x` (..., T, N), for devices without float64; the sum (..., 2, N) after the last row is
    kept under `name`. To the last digit of float32: each number is the sum of two, `high` and `low`.
    """
    high, low = x.detach(), torch.zeros_like(x)
    rows = 1
    while rows < x.shape[-2]:  # sums over the last 1, 2, 4, ... rows
        earlier = [torch.cat([torch.zeros_like(y[..., :rows, :]), y[..., :-rows, :]], -2) for y in (high, low)]
        high, low = _add_pairs((high, low), (earlier[0], earlier[1]))
        rows *= 2
    before = past.get(name)
    if before is not None:
        first_high, first_low = before.split(1, -2)
        high, low = _add_pairs((high, low), (first_high.expand_as(high), first_low.expand_as(low)))
    if past.live and x.shape[-2]:
        past.keep(name, torch.stack([high[..., -1, :], low[..., -1, :]], -2))
    total = x.cumsum(-2)  # for its gradient
    return total + (high - total).detach()


def _add_pairs(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    # Knuth (1997). The Art of Computer Programming, volume 2, theorem 4.2.2B: a + b = total + error
    total = a[0] + b[0]
    part = total - a[0]
    error = (a[0] - (total - part)) + (b[0] - part) + a[1] + b[1]
    high = total + error
    return high, error - (high - total)
