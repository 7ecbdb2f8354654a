"""Windows row by row, for devices without float64.

Elsewhere gradients of windows expand powers of (x_s - mean_t) into running sums, and float64 bears the cancellation.
In float32 it would not: here the deviations are formed in each window, in W times the memory.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.ops._rolling.window import sliding_windows


def deviations(x: Tensor, window: int) -> Tensor:
    """(..., T, N) -> (..., T, N, W): x_s - mean_t for the rows s of each window t; zero where x_s is missing."""
    rows = sliding_windows(x, window)
    valid = rows.isfinite()
    low = rows.detach().where(valid, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - low).where(valid, 0)  # of the size of the changes, whatever the level
    mean = rows.sum(-1, keepdim=True) / valid.sum(-1, keepdim=True).clamp(min=1)
    return (rows - mean).where(valid, 0)


def overlap_add(terms: Tensor) -> Tensor:
    """(..., T, N, W) -> (..., T, N): for each row, the sum of its terms in all windows that contain it."""
    total, window = terms[..., -1], terms.shape[-1]
    for rows in range(1, window):
        total = total + pad(terms[..., window - 1 - rows], (0, 0, 0, rows))[..., rows:, :]
    return total
