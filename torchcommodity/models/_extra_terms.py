"""Variance terms of the mix that the caller provides, such as those of covariates or of another model.

Legend: B batch, T time, N assets, H horizons, X extra terms.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def extra_terms(
    extra: Tensor,  # (B, L, H, N, X)
    slow: Tensor,  # (B, L, H, N) slow variance
    names: Sequence[str],
    ratios: Sequence[str],
) -> Tensor:  # (B, L, H, N, X)
    """Variances per row: those named in `ratios` are multiples of the slow variance, which also stands for NaN."""
    is_ratio = torch.tensor([name in ratios for name in names], device=extra.device)
    slow = slow.unsqueeze(-1)
    terms = extra.to(slow) * torch.where(is_ratio, slow, 1.0)
    return torch.where(terms.isfinite(), terms, slow)


def check_extra_variances(extra: Tensor | None, prices: Tensor, horizons: int, names: Sequence[str]) -> None:
    """Raise ValueError unless `extra` is (B, T, H, N, X) floating point where there are extra terms, and else None."""
    if extra is None and not names:
        return
    shape, got = (*prices.shape[:2], horizons, prices.shape[2], len(names)), "none"
    if extra is not None:
        if names and extra.is_floating_point() and tuple(extra.shape) == shape:
            return
        got = f"{tuple(extra.shape)} of {extra.dtype}"
    rule = f"(B, T, H, N, X) = {shape}, for the extra terms {', '.join(names)}"
    expected = rule if names else "None: the model has no extra terms"
    raise ValueError(f"Har: extra_variances must be {expected}; got {got}")
