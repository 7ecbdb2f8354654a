"""y_t = a_t y_{t-1} + b_t along time: the recurrence behind exponential averages, GARCH and state-space models."""

import torch
from torch import Tensor

from torch_opkit import HALF_DTYPES, Bad, Cases, Golden, Op, Past, Sample, live
from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._scan import linear_recurrence_backward
from torchcommodity.ops._scan.linear_recurrence_backward import previous_rows
from torchcommodity.ops._scan.scan import Tensors, scan


def carried_recurrence(past: Past, name: str, a: Tensor, b: Tensor, initial: Tensor | None = None) -> Tensor:
    """The recurrence after the rows before, whose last y is kept under `name`; `initial` is y before the first row."""
    before = past.get(name)
    y: Tensor = operator(a, b, initial if before is None else before)
    past.keep_last(name, y)
    return y


def _update(past: Past, a: Tensor, b: Tensor, initial: Tensor | None) -> Tensor:
    if not past.tensors:
        linear_recurrence(a, b, initial)  # checks the arguments
    a, b = torch.broadcast_tensors(a, b)
    initial = None if initial is None else initial.to(b).expand(*b.shape[:-2], b.shape[-1])
    wide = torch.float32 if b.dtype in HALF_DTYPES else b.dtype  # y is kept before it is rounded
    initial = None if initial is None else initial.to(wide)
    return carried_recurrence(past, "y", a.to(wide), b.to(wide), initial).to(b.dtype)


@live(_update, panels=2)
def linear_recurrence(
    a: Tensor,  # (..., T, N)
    b: Tensor,  # (..., T, N)
    initial: Tensor | None = None,  # (..., N)
) -> Tensor:  # (..., T, N)
    """Linear recurrence along time: y_t = a_t y_{t-1} + b_t, with y_{-1} = `initial` or zero.

    Args:
        a: Factor of the previous row, dimensionless; broadcasts against `b`.
        b: Term added in each row, in the unit of y.
        initial: y before the first row, in the unit of y; broadcasts to (..., N).

    Returns:
        y, of the broadcast shape of `a` and `b`. Causal, no warm-up. A NaN makes all later rows of its column NaN; the
        gradients of these rows are ignored.

    Raises:
        ValueError, TypeError: If `a` or `b` is not a floating-point panel, shapes do not broadcast or dtypes differ.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors to any order, in
    reverse and forward mode.

    References:
        Martin, Cundy (2018). Parallelizing linear recurrent neural nets over sequence length. ICLR. arXiv:1709.04057.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> half = torch.full((4, 1), 0.5)
        >>> ops.linear_recurrence(half, torch.ones(4, 1)).squeeze(-1)
        tensor([1.0000, 1.5000, 1.7500, 1.8750])
    """
    check_panel("linear_recurrence", a=a, b=b)
    try:
        a, b = torch.broadcast_tensors(a, b)
        initial = None if initial is None else initial.to(b).expand(*b.shape[:-2], b.shape[-1])
    except RuntimeError:
        tensors = {"a": a, "b": b} | ({} if initial is None else {"initial": initial})
        raise_invalid("linear_recurrence", "a, b must broadcast to (..., T, N) and initial to (..., N)", **tensors)
    y: Tensor = operator(a, b, initial)
    return y


def _reference(a: Tensor, b: Tensor, initial: Tensor | None = None) -> Tensor:
    y, rows = b.new_zeros(()) if initial is None else initial, []
    for t in range(b.shape[-2]):
        y = a[..., t, :] * y + b[..., t, :]
        rows.append(y)
    return torch.stack(rows, dim=-2) if rows else b.new_empty(b.shape)


def _decomposition(a: Tensor, b: Tensor, initial: Tensor | None = None) -> Tensor:
    def step(state: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        y = row[0] * state[0] + row[1]
        return (y,), (y.clone(),)

    first = torch.zeros_like(b.select(-2, 0)) if initial is None else initial.clone()
    (rows,) = scan(step, (first,), (a.movedim(-2, 0), b.movedim(-2, 0)))
    return rows.movedim(0, -2).contiguous()


def _backward(grad: Tensor, *, a: Tensor, initial: Tensor | None, output: Tensor) -> tuple[Tensor | None, ...]:
    # L_t = grad_t + a_{t+1} L_{t+1}: the same recurrence backward in time
    # da_t = L_t y_{t-1}    db_t = L_t    dinitial = a_0 L_0
    d_a, d_b = linear_recurrence_backward.operator(grad, a, output, initial)
    d_initial = None if initial is None else (a[..., :1, :].nan_to_num() * d_b[..., :1, :]).sum(-2)
    return d_a, d_b, d_initial


def _jvp(
    d_a: Tensor, d_b: Tensor, d_initial: Tensor | None, *, a: Tensor, initial: Tensor | None, output: Tensor
) -> Tensor:
    # dy_t = a_t dy_{t-1} + (da_t y_{t-1} + db_t)
    previous = previous_rows(output, initial)
    y: Tensor = operator(a, d_a * previous.masked_fill(previous.isnan(), 0) + d_b, d_initial)
    return y


def _oracle(a: Tensor, b: Tensor, initial: Tensor | None = None) -> Tensor:
    # closed form: y_t = sum_s b_s prod_{s < u <= t} a_u + initial prod_{u <= t} a_u
    initial = torch.zeros_like(b[..., 0, :]) if initial is None else initial.expand_as(b[..., 0, :])
    a, b = torch.broadcast_tensors(a, b)
    rows = range(b.shape[-2])
    products = [torch.stack([a[..., s + 1 : t + 1, :].prod(-2) for s in range(t + 1)], -2) for t in rows]
    terms = [(products[t] * b[..., : t + 1, :]).sum(-2) + a[..., : t + 1, :].prod(-2) * initial for t in rows]
    return torch.stack(terms, -2)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 2, 9, 3, dtype=torch.double, generator=generator)
    initial = torch.randn(2, 3, dtype=torch.double, generator=generator)
    ones = torch.ones(5, 1, dtype=torch.double)
    return Cases(
        function=linear_recurrence,
        samples=(Sample(a, b, initial), Sample(a, b), Sample(a[:1, :, :1], b)),
        bad=(
            Bad(Sample(a, b[..., 0]), r"linear_recurrence: a, b must broadcast .*; got a \(2, 9, 3\), b \(2, 9\)"),
            Bad(Sample(a[0, 0], b), r"linear_recurrence: a must be \(\.\.\., T, N\)"),
            Bad(Sample(a, b, initial[:, :2]), r"initial to \(\.\.\., N\); got .*initial \(2, 2\)"),
            Bad(Sample(a.long(), b), "a must be floating-point", TypeError),
            Bad(Sample(a.float(), b), "one dtype", TypeError),
        ),
        golden=(Golden(Sample(ones, ones), torch.arange(1.0, 6.0).double().unsqueeze(-1), "y_t = y_{t-1} + 1"),),
        oracle=_oracle,
    )


operator = Op(
    "commodity::linear_recurrence",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    decomposition=_decomposition,
    cases=_cases,
    mask_nan_grad=False,  # the backward operator masks
)
