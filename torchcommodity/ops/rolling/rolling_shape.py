"""Rolling skewness and kurtosis over what a window holds."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops.rolling.rolling_mean import operator as mean_of
from torchcommodity.ops.rolling.rolling_var import operator as variance_of
from torchcommodity.ops.rolling.window import check_window, present
from torchcommodity.ops.rolling.window_sum import window_spread, window_sum


def rolling_skew(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling skewness, unbiased, pandas' `rolling(window, min_periods).skew()`.

    g_t = n sqrt(n - 1) / (n - 2) M3 / M2^(3/2), with Mk the sum of (x_s - mean_t)^k over the n values of the window.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: values that a window must hold, in [0, W]; by default all.

    Returns:
        Skewness without unit; NaN where values are fewer than `min_periods` or three, or all equal. Missing values are
        skipped. Causal.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU native; elsewhere the reference. Differentiable to any order, in both modes; a missing value gets
    gradient zero, a NaN row takes no part.

    References:
        Joanes, Gill (1998). Comparing measures of sample skewness and kurtosis. doi:10.1111/1467-9884.00122.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_skew(torch.tensor([[1.0], [1.0], [4.0], [1.0]]), 3).squeeze(-1)
        tensor([   nan,    nan, 1.7321, 1.7321])
    """
    least = check_window("rolling_skew", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, 3)
    return y


def rolling_kurt(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling excess kurtosis, unbiased, pandas' `rolling(window, min_periods).kurt()`; as `rolling_skew`, of four
    values at least: k_t = (n - 1) / ((n - 2) (n - 3)) ((n + 1) n M4 / M2^2 - 3 (n - 1)).

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_kurt(torch.tensor([[1.0], [1.0], [4.0], [1.0], [1.0]]), 4).squeeze(-1)
        tensor([nan, nan, nan, 4., 4.])
    """
    least = check_window("rolling_kurt", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, 4)
    return y


def _reference(x: Tensor, window: int, min_periods: int, order: int) -> Tensor:
    rows, finite, n = present(x, window, max(min_periods, order))
    lowest = rows.where(finite, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - lowest).where(finite, 0)  # a constant becomes exactly zero
    moved = (rows - rows.sum(-1, keepdim=True) / n.unsqueeze(-1)).where(finite, 0)
    second, power = moved.square().sum(-1), moved.pow(order).sum(-1)
    second = second.where(second > 0, torch.nan)
    if order == 3:
        return n * (n - 1).sqrt() / (n - 2) * power / second**1.5
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * power / second.square() - 3 * (n - 1))


def _fake(x: Tensor, window: int, min_periods: int, order: int) -> Tensor:
    return x.new_empty(x.shape)


def _backward(grad: Tensor, *, x: Tensor, window: int, min_periods: int, order: int, output: Tensor) -> Tensor:
    # with z = x_s - m:  skew = k M3 / M2^1.5:  dx_s = k 3 (z^2 - M2 / n) / M2^1.5 - 3 skew z / M2
    # kurt = q M4 / M2^2 - r:                   dx_s = q 4 (z^3 - M3 / n) / M2^2 - 4 (kurt + r) z / M2
    finite = x.isfinite()
    z, n, mean, second = _moments(x.double(), finite, window)
    known = (second > 0) & (n >= max(min_periods, order))
    n, second = n.where(known, 4), second.where(known, 1)
    g, y = grad.double().where(known, 0), output.double()
    if order == 3:
        lead = g * 3 * n * (n - 1).sqrt() / (n - 2) / second**1.5
        rest, tilt = lead * second / n, g * 3 * y / second
    else:
        skew = operator(x.double(), window, min_periods, 3).nan_to_num(0)
        third = skew * (n - 2) / (n * (n - 1).sqrt()) * second**1.5
        scale = (n - 1) / ((n - 2) * (n - 3))
        lead = g * 4 * scale * (n + 1) * n / second.square()
        rest, tilt = lead * third / n, g * 4 * (y + 3 * scale * (n - 1)) / second
    dx = _spread(lead, z, mean, window, order - 1) - _total(rest, window) - _spread(tilt, z, mean, window, 1)
    return dx.where(finite, 0).to(x.dtype)


def _moments(x: Tensor, finite: Tensor, window: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values about the mean of their column, zero where missing; count, mean and M2 of each window."""
    level = x.where(finite, 0).sum(-2, keepdim=True) / finite.sum(-2, keepdim=True).clamp(min=1)
    z = (x - level.detach()).where(finite, 0)
    n = window_sum(finite.to(z), window)
    apart = z.where(finite, torch.nan)
    mean = mean_of(apart, window, 1).nan_to_num(0)
    return z, n, mean, variance_of(apart, window, 1, 0, False).nan_to_num(0) * n


def _total(push: Tensor, window: int) -> Tensor:
    return window_spread(push, window)


def _spread(push: Tensor, z: Tensor, mean: Tensor, window: int, power: int) -> Tensor:
    """The sum of push_t (z_s - mean_t)^power over the windows t that hold s."""
    if power == 1:
        return z * _total(push, window) - _total(push * mean, window)
    if power == 2:
        return z.square() * _total(push, window) - 2 * z * _total(push * mean, window) + _total(push * mean**2, window)
    return z * _spread(push, z, mean, window, 2) - _spread(push * mean, z, mean, window, 2)


def _oracle(x: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).skew().to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:6, 1] = holed[1, 5, 2] = torch.nan
    tall = torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 1.0, 4.0, 1.0], dtype=torch.double).reshape(4, 1)
    skew = torch.tensor([torch.nan, torch.nan, 3**0.5, 3**0.5], dtype=torch.double).reshape(4, 1)
    return Cases(
        door=rolling_skew,
        samples=(Sample(x, window=5), Sample(holed, window=6, min_periods=3)),
        bad=(
            Bad(Sample(x[0, 0], window=5), r"rolling_skew: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_skew: window must be >= 1; got window=0"),
            Bad(Sample(x, window=5, min_periods=6), r"min_periods must be in \[0, window\]"),
        ),
        golden=(Golden(Sample(steps, window=3), skew, "by hand"),),
        oracle=_oracle,
        oracle_samples=(Sample(tall, window=60), Sample(gaps, window=20, min_periods=5)),
    )


operator = Op(
    "rolling_shape",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    lookback=lambda window, min_periods, order: max(min_periods, order) - 1,
)
