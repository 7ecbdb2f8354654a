"""Exponentially weighted covariance in the arithmetic of float32, for devices without float64."""

import torch
from torch import Tensor

from torch_opkit import Past, widest

STATE = 8  # tensors that a row needs of the rows before, see `_rows`


def ewm_covariance_float32(
    past: Past,
    name: str,
    x: Tensor,  # (..., T, N)
    y: Tensor,  # (..., T, N)
    alpha: Tensor,  # (..., N)
    adjust: bool,
    ignore_na: bool,
    min_periods: int,
    bias: bool,
) -> Tensor:  # (..., T, N)
    """The covariance of `ewm_var` after the rows before, whose state (..., 8, N) is kept under `name`."""
    if not x.shape[-2]:
        return x.new_empty(x.shape)
    state = past.get(name)
    if state is None:
        state = widest(x).new_zeros((*x.shape[:-2], STATE, x.shape[-1]))
    covariance, correction, count, state = _rows(widest(x), widest(y), widest(alpha), state, adjust, ignore_na)
    past.keep(name, state)
    valid = count >= max(min_periods, 1)
    if not bias:
        valid = valid & (correction > 1e-12) & (count > 1)
        covariance = covariance / correction.where(valid, 1)
    return covariance.where(valid, torch.nan).to(x.dtype)


def _rows(
    x: Tensor, y: Tensor, alpha: Tensor, state: Tensor, adjust: bool, ignore_na: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Covariance, one minus the sum of the squared weights and number of valid values of each row; the last state."""
    # A mean at a large level has lost the digits of the noise; the difference of two neighbors has not:
    # x_t - m_{t-1} = r_{t-1} + (x_t - x_{t-1}) with r_t = x_t - m_t = (1 - b_t) (x_t - m_{t-1}).
    weight, count, last_x, last_y, r_x, r_y, c, u = state.unbind(-2)
    rows = []
    for a, b in zip(x.unbind(-2), y.unbind(-2)):
        valid = a.isfinite() & b.isfinite()
        decayed = torch.where(valid | (not ignore_na), _decay(weight, alpha, 1 - alpha), weight)
        new = torch.ones_like(alpha) if adjust else torch.where(count == 0, 1, alpha)
        total, later = decayed + new, valid & (count > 0)
        share, keep = new / total, decayed / total
        d_x, d_y = (torch.where(later, r + (z - last), 0) for r, z, last in ((r_x, a, last_x), (r_y, b, last_y)))
        c = torch.where(valid, _decay(c, share, keep) + share * keep * d_x * d_y, c)
        u = torch.where(valid, _decay(_decay(u, share, keep), share, keep) + 2 * share * keep, u)
        r_x, r_y = (torch.where(valid, _decay(d, share, keep), r) for d, r in ((d_x, r_x), (d_y, r_y)))
        last_x, last_y = torch.where(valid, a, last_x), torch.where(valid, b, last_y)
        weight = torch.where(valid, total if adjust else 1, decayed)
        count = count + valid
        rows.append(torch.stack([c, u, count], -2))
    covariance, correction, counts = torch.stack(rows, -3).unbind(-2)
    return covariance, correction, counts, torch.stack([weight, count, last_x, last_y, r_x, r_y, c, u], -2)


def _decay(x: Tensor, share: Tensor, keep: Tensor) -> Tensor:
    """x (1 - share) = x keep: a small share must not be rounded in `keep`, nor a small `keep` in the share."""
    return torch.where(share > 0.5, keep * x, x - share * x)
