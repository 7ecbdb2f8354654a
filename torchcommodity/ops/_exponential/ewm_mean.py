"""Exponentially weighted mean, of all rows or of more rows after those before."""

import torch
from torch import Tensor

from torch_opkit import HALF_DTYPES, Bad, Cases, Golden, Op, Past, Sample, has_kernel, live, widest_dtype
from torchcommodity.ops._exponential import ewm_mean_backward
from torchcommodity.ops._exponential.decay import Decay, check_decay, live_decay
from torchcommodity.ops._scan.linear_recurrence import operator as linear_recurrence


def update_mean(
    past: Past,
    x: Tensor,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    **decay: Decay,
) -> Tensor:
    """`ewm_mean` of more rows."""
    rate = live_decay(past, "ewm_mean", x, min_periods, **decay)
    return ewm_mean_step(past, "mean", x, rate, adjust, ignore_na, min_periods)


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
    step = torch.ops.commodity.ewm_mean_step if has_kernel("commodity::ewm_mean_step", x.device) else _step_reference
    y, state = step(x.to(wide), alpha.to(wide), state, adjust, ignore_na, min_periods)
    past.keep(name, state)
    return y.to(x.dtype)


def _step_reference(
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


@live(update_mean)
def ewm_mean(
    x: Tensor,  # (..., T, N)
    *,
    com: Decay = None,
    span: Decay = None,
    halflife: Decay = None,
    alpha: Decay = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
) -> Tensor:  # (..., T, N)
    """Exponentially weighted mean, as pandas `ewm(...).mean()`: y_t = y_{t-1} + b_t (x_t - y_{t-1}).

    Exactly one of com, span, halflife and alpha gives the decay: a number, or a Tensor that broadcasts to (..., N) and
    may require a gradient, for a half-life that is learned.

    Args:
        x: Values in any unit. NaN and infinite values count as missing.
        com: Center of mass in rows, >= 0: alpha = 1 / (1 + com).
        span: Length of the simple moving average with the same mean age, >= 1: alpha = 2 / (span + 1).
        halflife: Number of rows after which a value has half its weight, > 0: alpha = 1 - 2^(-1 / halflife).
        alpha: Smoothing factor, in (0, 1].
        adjust: Divide by the sum of the weights so far. Otherwise the mean starts at the first value and b_t = alpha.
        ignore_na: Weights decay with each valid value; otherwise with each row.
        min_periods: Minimum number of valid values so far, >= 0.

    Returns:
        Mean in the unit of x. A missing value leaves it unchanged. NaN before the first valid value and before
        `min_periods` valid values. Causal.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel, an argument is out of range, or not exactly one of
            com, span, halflife and alpha is given.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode, in x and in a Tensor that gives the decay. A missing value has gradient zero; the gradient of a NaN output is
    ignored.

    References:
        Roberts (1959). Control chart tests based on geometric moving averages. doi:10.1080/00401706.1959.10489860.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_mean(torch.tensor([[1.0], [torch.nan], [3.0]]), alpha=0.5, adjust=False).squeeze(-1)
        tensor([1.0000, 1.0000, 2.3333])
    """
    rate, learned = check_decay("ewm_mean", x, com, span, halflife, alpha, min_periods)
    y: Tensor = operator(x, rate, adjust, ignore_na, min_periods, learned)
    return y


def _reference(
    x: Tensor,
    alpha: Tensor,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    learned: bool = True,
) -> Tensor:
    share = ewm_mean_backward.shares(x, alpha, adjust, ignore_na)
    valid, mean, rows = x.isfinite(), torch.zeros_like(alpha), []
    for t in range(x.shape[-2]):
        mean = mean + torch.where(valid[..., t, :], share[..., t, :] * (x[..., t, :] - mean), 0)
        rows.append(mean)
    if not rows:
        return x.new_empty(x.shape)
    return torch.stack(rows, -2).where(ewm_mean_backward.has_min_periods(x, min_periods), torch.nan)


def _decomposition(x: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool, min_periods: int, learned: bool) -> Tensor:
    # y_t = (1 - b_t) y_{t-1} + b_t x_t
    valid = x.isfinite()
    share = ewm_mean_backward.fast_shares(valid, alpha.unsqueeze(-2), adjust, ignore_na)
    mean: Tensor = linear_recurrence(1 - share, share * x.where(valid, 0), None)
    return mean.where(ewm_mean_backward.has_min_periods(x, min_periods), torch.nan)


def _backward(
    grad: Tensor,
    *,
    x: Tensor,
    alpha: Tensor,
    adjust: bool,
    ignore_na: bool,
    min_periods: int,
    learned: bool,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    # L_t = grad_t + (1 - b_{t+1}) L_{t+1},  dx_t = b_t L_t,  db_t = L_t (x_t - y_{t-1})
    dx = None
    if needs_input_grad[0]:
        dx = ewm_mean_backward.operator(grad, x, alpha, adjust, ignore_na, min_periods, learned)
    if not learned:
        return dx, None
    y = operator(x, alpha, adjust, ignore_na, 0, learned).nan_to_num(0)
    grad = grad.where(ewm_mean_backward.has_min_periods(x, min_periods), 0)
    return dx, ewm_mean_backward.alpha_gradient(grad, x, y, alpha, adjust, ignore_na)


def _function(x: Tensor, alpha: Tensor | None = None, **settings: object) -> Tensor:
    return ewm_mean(x, alpha=alpha, **settings)  # type: ignore[arg-type]


def _oracle(x: Tensor, alpha: Tensor | None = None, **settings: object) -> Tensor:
    import pandas as pd

    if alpha is not None:
        settings["alpha"] = alpha.item()
    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.ewm(**settings).mean().to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    alpha = 0.1 + 0.8 * torch.rand(2, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, :3, 1] = x_nan[0, 5:7, 1] = x_nan[1, 4, 2] = torch.nan
    long = 1e6 + 1e-2 * torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    rules = [{"adjust": a, "ignore_na": i} for a in (True, False) for i in (True, False)]
    return Cases(
        function=_function,
        samples=(
            Sample(x, alpha, min_periods=3),
            Sample(x_nan, alpha[:1]),
            Sample(x_nan, alpha, adjust=False),
            Sample(x_nan, alpha, ignore_na=True),
            Sample(x_nan, span=5, min_periods=2),
        ),
        bad=(
            Bad(Sample(x[0, 0], span=5), r"ewm_mean: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x), "exactly one of com, span, halflife, alpha must be given"),
            Bad(Sample(x, alpha, span=5), "exactly one of com, span, halflife, alpha must be given"),
            Bad(Sample(x, com=-1), "com must be >= 0; got com=-1"),
            Bad(Sample(x, span=0.5), "span must be >= 1; got span=0.5"),
            Bad(Sample(x, halflife=0), "halflife must be > 0; got halflife=0"),
            Bad(Sample(x, alpha + 1), r"alpha must be in \(0, 1\]"),
            Bad(Sample(x, alpha[:, :2]), r"alpha must broadcast to \(\.\.\., N\)"),
            Bad(Sample(x, span=5, min_periods=-1), "min_periods must be >= 0"),
        ),
        golden=(
            Golden(
                Sample(torch.tensor([[1.0], [2.0], [3.0]]).double(), com=1, adjust=False),
                torch.tensor([[1.0], [1.5], [2.25]]).double(),
                "by hand",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(
            *(Sample(long_nan, span=20, **rule) for rule in rules),
            Sample(long_nan, halflife=3, min_periods=5),
            Sample(long, com=2.5),
        ),
    )


operator = Op(
    "commodity::ewm_mean",
    reference=_reference,
    backward=_backward,
    decomposition=_decomposition,
    cases=_cases,
    mask_nan_grad=False,  # the backward operator masks
    warmup=lambda min_periods: max(min_periods, 1) - 1,
)
