"""Gradient of the exponentially weighted mean, and the shares on which both depend."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample
from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._scan.linear_recurrence import carried_recurrence
from torchcommodity.ops._scan.linear_recurrence_backward import operator as linear_recurrence_backward

Pullback = Callable[[Tensor], Tensor]  # from the gradient of the shares to the gradient of alpha, row by row


def ewm_mean_backward(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    alpha: Tensor,  # (..., N)
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
) -> Tensor:  # (..., T, N)
    """Gradient of `ewm_mean` with respect to x.

    L_t = grad_t + (1 - b_{t+1}) L_{t+1} and dx_t = b_t L_t, where b_t is the share of x_t in row t. It looks ahead. It
    depends on x only through the mask of missing values.

    Args:
        grad: Gradient of the mean; ignored in the rows before `min_periods` valid values, where the mean is NaN.
        x, alpha, adjust, ignore_na, min_periods: As in `ewm_mean`.

    Raises:
        ValueError, TypeError: If `grad` and `x` are not floating-point panels of one shape or alpha is not (..., N).

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in grad and alpha to any order, in
    reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity.ops._exponential.ewm_mean_backward import ewm_mean_backward
        >>> ewm_mean_backward(torch.ones(3, 1), torch.ones(3, 1), torch.full((1,), 0.5), adjust=False).squeeze(-1)
        tensor([1.7500, 0.7500, 0.5000])
    """
    check_panel("ewm_mean_backward", grad=grad, x=x)
    if grad.shape != x.shape or alpha.shape != (*x.shape[:-2], x.shape[-1]):
        raise_invalid(
            "ewm_mean_backward", "grad and x must be (..., T, N) and alpha (..., N)", grad=grad, x=x, alpha=alpha
        )
    dx: Tensor = operator(grad, x, alpha, adjust, ignore_na, min_periods, True)
    return dx


def shares(x: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool) -> Tensor:
    """b_t, the share of x_t in the mean of row t, zero where x_t is missing: the definition, row by row."""
    weight, rows = torch.zeros_like(alpha), []  # weight: of all values so far
    for t in range(x.shape[-2]):
        valid = x[..., t, :].isfinite()
        decayed = weight if ignore_na else weight * (1 - alpha)
        decayed = torch.where(valid, weight * (1 - alpha), decayed)
        new = torch.ones_like(alpha) if adjust else torch.where(weight == 0, 1, alpha)
        rows.append(torch.where(valid, new / (decayed + new), 0))
        weight = torch.where(valid, decayed + new if adjust else 1, decayed)
    return torch.stack(rows, -2) if rows else x.new_empty(x.shape)


def has_min_periods(x: Tensor, min_periods: int) -> Tensor:
    """Mask of the rows with at least `min_periods` valid values so far; the mean of the others is NaN."""
    return x.isfinite().cumsum(-2) >= max(min_periods, 1)


def _reference(
    grad: Tensor, x: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool, min_periods: int, learned: bool
) -> Tensor:
    share, grad = shares(x, alpha, adjust, ignore_na), grad.where(has_min_periods(x, min_periods), 0)
    later, rows = torch.zeros_like(alpha), []
    for t in reversed(range(x.shape[-2])):
        total = grad[..., t, :] + later
        rows.append(share[..., t, :] * total)
        later = total - rows[-1]
    return torch.stack(rows[::-1], -2) if rows else x.new_empty(x.shape)


def alpha_gradient(grad: Tensor, x: Tensor, y: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool) -> Tensor:
    """Gradient with respect to alpha of y = ewm_mean(x), with zeros in y before the first valid value."""
    # y_t = y_{t-1} + b_t (x_t - y_{t-1}), so db_t = L_t (x_t - y_{t-1}); then b_t as a function of alpha
    valid, keep = x.isfinite(), 1 - alpha.unsqueeze(-2)
    share, pullback = (_adjusted_shares if adjust else _plain_shares)(valid, keep, ignore_na, Past(), "")
    d_keep, total = linear_recurrence_backward(grad, 1 - share, y, None)
    d_share = (total * x.where(valid, 0) - d_keep).where(valid, 0)
    return pullback(d_share).sum(-2)


def fast_shares(
    valid: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool, past: Past | None = None, name: str = ""
) -> Tensor:
    """b_t as in `shares`, from the mask of valid values, without a loop over time; alpha is (..., 1, N)."""
    return (_adjusted_shares if adjust else _plain_shares)(valid, 1 - alpha, ignore_na, past or Past(), name)[0]


def _adjusted_shares(valid: Tensor, keep: Tensor, ignore_na: bool, past: Past, name: str) -> tuple[Tensor, Pullback]:
    # b_t = 1 / W_t with W_t = decay_t W_{t-1} + 1 where x_t is valid
    decays = valid if ignore_na else torch.ones_like(valid)
    decay, new = keep.where(decays, 1), valid.to(keep.dtype)
    weight = carried_recurrence(past, f"{name}weight", decay, new)
    positive = weight.where(weight > 0, 1)

    def pullback(d_share: Tensor) -> Tensor:
        d_decay: Tensor = linear_recurrence_backward(-d_share * new / positive.square(), decay, weight, None)[0]
        return -d_decay.where(decays, 0)

    return new / positive, pullback


def _plain_shares(valid: Tensor, keep: Tensor, ignore_na: bool, past: Past, name: str) -> tuple[Tensor, Pullback]:
    # b_t = alpha / (keep^k + alpha), where the last valid value is k rows ago; the first valid value has share 1
    rows = past.count_rows(f"{name}row", valid).unsqueeze(-1)
    last = torch.where(valid, rows, -1).cummax(-2).values
    before = past.get(f"{name}last")
    last = last if before is None else torch.maximum(last, before.unsqueeze(-2))
    last = past.lag(f"{name}last", last, first=-1)
    age = torch.ones_like(keep) if ignore_na else (rows - last).to(keep.dtype)
    weight, alpha = keep**age, 1 - keep
    share = torch.where(last < 0, 1, alpha / (weight + alpha)).where(valid, 0)

    def pullback(d_share: Tensor) -> Tensor:
        slope = (weight + alpha * age * keep ** (age - 1)) / (weight + alpha).square()
        return d_share * slope.where(valid & (last >= 0), 0)

    return share, pullback


def _backward(
    grad_dx: Tensor,
    *,
    grad: Tensor,
    x: Tensor,
    alpha: Tensor,
    adjust: bool,
    ignore_na: bool,
    min_periods: int,
    learned: bool,
) -> tuple[Tensor | None, ...]:
    # linear in grad; the transpose is the mean itself, of u
    u, valid = grad_dx.where(x.isfinite(), torch.nan), has_min_periods(x, min_periods)
    y = torch.ops.commodity.ewm_mean(u, alpha, adjust, ignore_na, 0, learned).nan_to_num(0)
    d_alpha = None
    if learned:
        d_alpha = alpha_gradient(grad.where(valid & ~grad.isnan(), 0), u, y, alpha, adjust, ignore_na)
    return y.where(valid, 0), None, d_alpha


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x = torch.randn(2, 2, 9, 3, dtype=torch.double, generator=generator)
    alpha = 0.1 + 0.8 * torch.rand(2, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, :3, 1] = x_nan[0, 5:7, 1] = x_nan[1, 4, 2] = torch.nan
    ones, half = torch.ones(3, 1, dtype=torch.double), torch.full((1,), 0.5, dtype=torch.double)
    return Cases(
        function=ewm_mean_backward,
        samples=(
            Sample(grad, x_nan, alpha),
            Sample(grad, x_nan, alpha, adjust=False, min_periods=3),
            Sample(grad, x_nan, alpha, ignore_na=True),
            Sample(grad, x, alpha, adjust=False, ignore_na=True),
        ),
        bad=(Bad(Sample(grad, x, alpha[0]), r"alpha \(\.\.\., N\); got .*alpha \(3,\)"),),
        golden=(
            Golden(Sample(ones, ones, half, adjust=False), torch.tensor([[1.75], [0.75], [0.5]]).double(), "by hand"),
        ),
    )


operator = Op(
    "commodity::ewm_mean_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)
