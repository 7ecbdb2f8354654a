"""For tests of rolling and exponential operators: real prices, and checks against pandas and of gradients."""

from collections.abc import Callable
from typing import Any

import arch.data.nasdaq
import arch.data.sp500
import arch.data.vix
import arch.data.wti
import numpy as np
import pandas as pd
import torch
from torch import Tensor


def load_prices() -> Tensor:
    """(600, 4): oil, two stock indices and a volatility index; oil has missing values."""
    frames = [module.load() for module in (arch.data.wti, arch.data.sp500, arch.data.nasdaq, arch.data.vix)]
    closes = [frame[frame.columns[0] if len(frame.columns) == 1 else "Close"] for frame in frames]
    panel = np.stack([close.to_numpy(dtype=float)[-600:] for close in closes], 1)
    panel[40:47, 0] = panel[300, 0] = np.nan
    return torch.tensor(panel)


def load_oil_prices() -> Tensor:
    """(300, 2): spot oil, and the same with missing, zero and negative prices."""
    oil = torch.tensor(arch.data.wti.load().to_numpy()[-300:])
    gaps = oil.clone()
    gaps[[0, 7, 8, 200]] = torch.nan
    gaps[50], gaps[51] = 0.0, -37.63
    return torch.cat([oil, gaps], 1)


def to_frame(x: Tensor) -> pd.DataFrame:
    return pd.DataFrame(x.double().numpy())


def assert_close(actual: Tensor, expected: Any, rtol: float = 1e-8, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(actual.double().numpy(), np.asarray(expected), rtol=rtol, atol=atol)


def assert_gradient_finite(y: Tensor, x: Tensor) -> None:
    """The gradient of x is finite although the gradient of every NaN output is NaN."""
    (gradient,) = torch.autograd.grad(y, x, torch.full_like(y, torch.nan).where(y.isnan(), 1))
    assert gradient.isfinite().all()


def assert_differentiable_and_causal(function: Callable[[Tensor], Tensor], x: Tensor) -> None:
    assert torch.autograd.gradcheck(lambda x: function(x).nan_to_num(0), x.clone().requires_grad_())
    changed = x.clone()
    changed[12:] = changed[12:].flip(0) * 1e3
    changed[15] = torch.nan
    assert torch.equal(function(x)[:12].nan_to_num(9), function(changed)[:12].nan_to_num(9))
    leaf = x.clone().requires_grad_()
    assert_gradient_finite(function(leaf), leaf)
