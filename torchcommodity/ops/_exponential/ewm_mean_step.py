"""The exponentially weighted mean of more rows, from what it keeps of the rows before."""

import torch
from torch import Tensor

from torchcommodity.opkit import HALF_DTYPES, Past, has_kernel, widest_dtype


def ewm_mean_step(
    past: Past, name: str, x: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool, min_periods: int
) -> Tensor:
    """`ewm_mean` after the rows before: mean, total weight and count (..., 3, N) are kept, in the widest type."""
    state = past.get(name)
    if state is None:
        state = x.new_zeros((*x.shape[:-2], 3, x.shape[-1]), dtype=widest_dtype(x.device))
    if not x.shape[-2]:
        return x.new_empty(x.shape)
    wide = torch.float32 if x.dtype in HALF_DTYPES else x.dtype
    step = torch.ops.commodity.ewm_mean_step if has_kernel("commodity::ewm_mean_step", x.device) else _reference
    y, state = step(x.to(wide), alpha.to(wide), state, adjust, ignore_na, min_periods)
    past.keep(name, state)
    return y.to(x.dtype)


def _reference(
    x: Tensor, alpha: Tensor, state: Tensor, adjust: bool, ignore_na: bool, min_periods: int
) -> tuple[Tensor, Tensor]:
    (mean, weight, count), rows = state.to(x.dtype).unbind(-2), []
    for row in x.unbind(-2):
        valid = row.isfinite()
        decayed = torch.where(valid | (not ignore_na), weight * (1 - alpha), weight)
        new = torch.ones_like(alpha) if adjust else torch.where(weight == 0, 1, alpha)
        weight = torch.where(valid, decayed + new if adjust else 1, decayed)
        mean = mean + torch.where(valid, new / (decayed + new) * (row - mean), 0)
        count = count + valid
        rows.append(mean.where(count >= max(min_periods, 1), torch.nan))
    return torch.stack(rows, -2), torch.stack([mean, weight, count], -2).to(state)
