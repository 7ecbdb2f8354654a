"""Gradient of the linear recurrence, in one pass backward in time."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import check_panel, raise_invalid


def linear_recurrence_backward(
    grad: Tensor,  # (..., T, N)
    a: Tensor,  # (..., T, N)
    y: Tensor,  # (..., T, N)
    initial: Tensor | None = None,  # (..., N)
) -> tuple[Tensor, Tensor]:  # (..., T, N) each
    """Gradients of y_t = a_t y_{t-1} + b_t with respect to a and b. It looks ahead.

    Args:
        grad: Gradient of y.
        a: Factors.
        y: Output of the recurrence.
        initial: y before the first row; zero if None.

    Returns:
        d_b_t = grad_t + a_{t+1} d_b_{t+1} and d_a_t = d_b_t y_{t-1}, as (d_a, d_b). A missing factor or y counts as
        zero, and the gradient of a missing y is ignored.

    Raises:
        ValueError, TypeError: If the tensors are not floating-point panels of one shape.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode.

    Example:
        >>> import torch
        >>> from torchcommodity.ops._scan.linear_recurrence_backward import linear_recurrence_backward
        >>> half, one = torch.full((3, 1), 0.5), torch.ones(3, 1)
        >>> linear_recurrence_backward(one, half, one)[1].squeeze(-1)
        tensor([1.7500, 1.5000, 1.0000])
    """
    check_panel("linear_recurrence_backward", grad=grad, a=a, y=y)
    if not grad.shape == a.shape == y.shape:
        raise_invalid("linear_recurrence_backward", "grad, a, y must have one shape (..., T, N)", grad=grad, a=a, y=y)
    d_a, d_b = operator(grad, a, y, initial)
    return d_a, d_b


def _reference(grad: Tensor, a: Tensor, y: Tensor, initial: Tensor | None = None) -> tuple[Tensor, Tensor]:
    grad, previous = grad.where(y == y, 0), previous_rows(y, initial)
    later, rows = grad.new_zeros(()), []
    for t in reversed(range(grad.shape[-2])):
        rows.append(grad[..., t, :] + later)
        later = a[..., t, :].masked_fill(a[..., t, :].isnan(), 0) * rows[-1]
    d_b = torch.stack(rows[::-1], dim=-2) if rows else grad.new_empty(grad.shape)
    d_a = d_b * previous.where(previous == previous, 0)
    if initial is None:  # zero even where d_b is infinite
        d_a = torch.cat([torch.zeros_like(d_a[..., :1, :]), d_a[..., 1:, :]], dim=-2)
    return d_a, d_b


def previous_rows(y: Tensor, initial: Tensor | None) -> Tensor:
    """y_{t-1} for every row t, with `initial` or zero before the first row."""
    first = torch.zeros_like(y[..., :1, :]) if initial is None else initial.unsqueeze(-2)
    return torch.cat([first, y], dim=-2)[..., :-1, :]


def next_rows(x: Tensor) -> Tensor:
    """x_{t+1} for every row t, zero in the last."""
    return torch.cat([x[..., 1:, :], torch.zeros_like(x[..., :1, :])], dim=-2)


def _fake(a: Tensor) -> tuple[Tensor, Tensor]:
    return a.new_empty(a.shape), a.new_empty(a.shape)


def _backward(
    g_a: Tensor | None,
    g_b: Tensor | None,
    *,
    a: Tensor,
    y: Tensor,
    initial: Tensor | None,
    output: tuple[Tensor, Tensor],
) -> tuple[Tensor | None, ...]:
    # With L = d_b and G_t = g_a_t y_{t-1} + g_b_t, the transpose runs forward in time: M_t = G_t + a_t M_{t-1}
    # dgrad = M    da_t = M_{t-1} L_t    dy_{t-1} = g_a_t L_t
    d_b = output[1]
    g_a, g_b = (torch.zeros_like(d_b) if g is None else g for g in (g_a, g_b))
    valid_a, valid_y, previous = a.isfinite(), y == y, previous_rows(y, initial)
    b = g_a * previous.masked_fill(previous.isnan(), 0) + g_b
    m = torch.ops.commodity.linear_recurrence(a.where(valid_a, 0), b, None)
    d_y = g_a * d_b
    d_initial = None if initial is None else d_y[..., :1, :].sum(-2)
    d_a = (previous_rows(m, None) * d_b).where(valid_a, 0)
    return m.where(valid_y, 0), d_a, next_rows(d_y).where(valid_y, 0), d_initial


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, a, y = torch.rand(3, 2, 9, 3, dtype=torch.double, generator=generator)
    initial = torch.randn(2, 3, dtype=torch.double, generator=generator)
    y_nan = y.clone()
    y_nan[0, 5:, 1] = torch.nan
    ones = torch.ones(3, 1, dtype=torch.double)
    return Cases(
        function=linear_recurrence_backward,
        samples=(Sample(grad, a, y, initial), Sample(grad, a, y), Sample(grad, a, y_nan)),
        bad=(
            Bad(Sample(grad, a, y[0]), r"grad, a, y must have one shape .*; got .*y \(9, 3\)"),
            Bad(Sample(grad, a.float(), y), "one dtype", TypeError),
        ),
        golden=(
            Golden(
                Sample(ones, ones / 2, ones),
                (torch.tensor([[0.0], [1.5], [1.0]]).double(), torch.tensor([[1.75], [1.5], [1.0]]).double()),
                "by hand",
            ),
        ),
    )


operator = Op(
    "commodity::linear_recurrence_backward",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    causal=False,
)
