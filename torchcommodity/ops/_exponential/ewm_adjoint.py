"""What an exponentially weighted mean makes of a gradient."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._scan.linear_recurrence import operator as recurrence
from torchcommodity.ops._scan.linear_recurrence_adjoint import operator as recurrence_adjoint

Pull = Callable[[Tensor], Tensor]


def ewm_adjoint(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    alpha: Tensor,  # (..., N)
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
) -> Tensor:  # (..., T, N)
    """The gradient of `ewm_mean` with respect to x, for a gradient of it: each value gets its share of every later row.

    L_t = grad_t + (1 - b_{t+1}) L_{t+1} and dx_t = b_t L_t, where b_t is the share of x_t in row t; of x it reads only
    where values are missing. Rows before `min_periods` values, where the mean is NaN, take no part. It looks ahead.

    Raises:
        ValueError, TypeError: these are no floating-point panels of one shape, alpha is not (..., N).

    Devices: CPU and CUDA; elsewhere the reference. Differentiable in grad and alpha to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity.ops.exponential.ewm_adjoint import ewm_adjoint
        >>> ewm_adjoint(torch.ones(3, 1), torch.ones(3, 1), torch.full((1,), 0.5), adjust=False).squeeze(-1)
        tensor([1.7500, 0.7500, 0.5000])
    """
    check_panel("ewm_adjoint", grad=grad, x=x)
    if grad.shape != x.shape or alpha.shape != (*x.shape[:-2], x.shape[-1]):
        raise_invalid("ewm_adjoint", "grad and x must be (..., T, N) and alpha (..., N)", grad=grad, x=x, alpha=alpha)
    dx: Tensor = operator(grad, x, alpha, adjust, ignore_na, min_periods, True)
    return dx


def shares(x: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool) -> Tensor:
    """b_t, the share of row t in the mean of row t, zero where it is missing: the definition, row by row."""
    old, rows = torch.zeros_like(alpha), []
    for t in range(x.shape[-2]):
        present = x[..., t, :].isfinite()
        faded = old if ignore_na else old * (1 - alpha)
        faded = torch.where(present, old * (1 - alpha), faded)
        fresh = torch.ones_like(alpha) if adjust else torch.where(old == 0, 1, alpha)
        rows.append(torch.where(present, fresh / (faded + fresh), 0))
        old = torch.where(present, faded + fresh if adjust else 1, faded)
    return torch.stack(rows, -2) if rows else x.new_empty(x.shape)


def known_rows(x: Tensor, min_periods: int) -> Tensor:
    """The rows by which a column has had enough values; before them the mean is NaN."""
    return x.isfinite().cumsum(-2) >= max(min_periods, 1)


def _reference(
    grad: Tensor, x: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool, min_periods: int, learned: bool
) -> Tensor:
    share, grad = shares(x, alpha, adjust, ignore_na), grad.where(known_rows(x, min_periods), 0)
    carried, rows = torch.zeros_like(alpha), []
    for t in reversed(range(x.shape[-2])):
        total = grad[..., t, :] + carried
        rows.append(share[..., t, :] * total)
        carried = total - rows[-1]
    return torch.stack(rows[::-1], -2) if rows else x.new_empty(x.shape)


def pull_alpha(grad: Tensor, x: Tensor, y: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool) -> Tensor:
    """The gradient with respect to alpha of y = ewm_mean(x), for a gradient of y; y is zero before the first value."""
    # y_t = y_{t-1} + b_t (x_t - y_{t-1}), so db_t = L_t (x_t - y_{t-1}); then b_t, a formula of alpha
    present, keep = x.isfinite(), 1 - alpha.unsqueeze(-2)
    weigh = _adjusted if adjust else _plain
    share, pull = weigh(present, keep, ignore_na)
    pushed, total = recurrence_adjoint(grad, 1 - share, y, None)
    d_share = (total * x.where(present, 0) - pushed).where(present, 0)
    return pull(d_share).sum(-2)


def shares_by_formula(present: Tensor, alpha: Tensor, adjust: bool, ignore_na: bool) -> Tensor:
    """b_t as in `shares`, made of operators; alpha is (..., 1, N)."""
    weigh = _adjusted if adjust else _plain
    return weigh(present, 1 - alpha, ignore_na)[0]


def _adjusted(present: Tensor, keep: Tensor, ignore_na: bool) -> tuple[Tensor, Pull]:
    # b_t = 1 / W_t with W_t = decay_t W_{t-1} + 1 where there is a value
    fades = present if ignore_na else torch.ones_like(present)
    decay, one = keep.where(fades, 1), present.to(keep.dtype)
    weight = recurrence(decay, one, None)
    held = weight.where(weight > 0, 1)

    def pull(d_share: Tensor) -> Tensor:
        d_decay: Tensor = recurrence_adjoint(-d_share * one / held.square(), decay, weight, None)[0]
        return -d_decay.where(fades, 0)

    return one / held, pull


def _plain(present: Tensor, keep: Tensor, ignore_na: bool) -> tuple[Tensor, Pull]:
    # b_t = alpha / (keep^k + alpha), the last value k rows ago; the first value has all
    rows = torch.arange(present.shape[-2], device=present.device).unsqueeze(-1)
    last = torch.where(present, rows, -1).cummax(-2).values
    last = torch.cat([torch.full_like(last[..., :1, :], -1), last], -2)[..., :-1, :]
    age = torch.ones_like(keep) if ignore_na else (rows - last).to(keep.dtype)
    old, alpha = keep**age, 1 - keep
    share = torch.where(last < 0, 1, alpha / (old + alpha)).where(present, 0)

    def pull(d_share: Tensor) -> Tensor:
        slope = (old + alpha * age * keep ** (age - 1)) / (old + alpha).square()
        return d_share * slope.where(present & (last >= 0), 0)

    return share, pull


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
    # linear in grad, and the transpose is the mean itself, of what comes in
    pulled, known = grad_dx.where(x.isfinite(), torch.nan), known_rows(x, min_periods)
    y = torch.ops.commodity.ewm_mean(pulled, alpha, adjust, ignore_na, 0, learned).nan_to_num(0)
    d_alpha = pull_alpha(grad.where(known & ~grad.isnan(), 0), pulled, y, alpha, adjust, ignore_na) if learned else None
    return y.where(known, 0), None, d_alpha


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x = torch.randn(2, 2, 9, 3, dtype=torch.double, generator=generator)
    alpha = 0.1 + 0.8 * torch.rand(2, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, :3, 1] = holed[0, 5:7, 1] = holed[1, 4, 2] = torch.nan
    ones, half = torch.ones(3, 1, dtype=torch.double), torch.full((1,), 0.5, dtype=torch.double)
    return Cases(
        function=ewm_adjoint,
        samples=(
            Sample(grad, holed, alpha),
            Sample(grad, holed, alpha, adjust=False, min_periods=3),
            Sample(grad, holed, alpha, ignore_na=True),
            Sample(grad, x, alpha, adjust=False, ignore_na=True),
        ),
        bad=(Bad(Sample(grad, x, alpha[0]), r"alpha \(\.\.\., N\); got .*alpha \(3,\)"),),
        golden=(
            Golden(Sample(ones, ones, half, adjust=False), torch.tensor([[1.75], [0.75], [0.5]]).double(), "by hand"),
        ),
    )


operator = Op(
    "ewm_adjoint",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)
