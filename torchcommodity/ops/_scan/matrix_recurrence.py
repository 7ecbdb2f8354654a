"""y_t = A_t y_{t-1} + b_t along time with square matrices A_t, for the gradients of filters with several states."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import raise_invalid


def matrix_recurrence(
    a: Tensor,  # (..., T, K * K, N)
    b: Tensor,  # (..., T, K, N)
    initial: Tensor | None = None,  # (..., K, N)
) -> Tensor:  # (..., T, K, N)
    """Linear recurrence of K states: y_t = A_t y_{t-1} + b_t, with y_{-1} = `initial` or zero.

    Args:
        a: Matrices, flattened row by row: A_ij at index K i + j; dimensionless.
        b: Term added in each row, in the unit of y.
        initial: y before the first row, in the unit of y.

    Returns:
        y, of the shape of `b`. Causal, no warm-up. A NaN makes all later rows of its asset NaN; the gradients of these
        rows are ignored.

    Raises:
        ValueError: If the shapes do not match.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors to any order, in
    reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity.ops._scan.matrix_recurrence import matrix_recurrence
        >>> swap = torch.tensor([0.0, 1.0, 1.0, 0.0]).reshape(1, 4, 1).expand(3, 4, 1)
        >>> matrix_recurrence(swap, torch.zeros(3, 2, 1), torch.tensor([[1.0], [2.0]])).squeeze(-1)
        tensor([[2., 1.],
                [1., 2.],
                [2., 1.]])
    """
    valid = b.dim() > 2 and a.shape == (*b.shape[:-2], b.shape[-2] ** 2, b.shape[-1])
    if not valid or (initial is not None and initial.shape != (*b.shape[:-3], *b.shape[-2:])):
        tensors = {"a": a, "b": b} | ({} if initial is None else {"initial": initial})
        raise_invalid(
            "matrix_recurrence", "b must be (..., T, K, N), a (..., T, K * K, N), initial (..., K, N)", **tensors
        )
    y: Tensor = operator(a, b, initial)
    return y


def _reference(a: Tensor, b: Tensor, initial: Tensor | None = None) -> Tensor:
    y, rows = b.new_zeros((*b.shape[:-3], *b.shape[-2:])) if initial is None else initial, []
    matrices = a.unflatten(-2, (b.shape[-2], b.shape[-2]))
    for t in range(b.shape[-3]):
        y = (matrices[..., t, :, :, :] * y.unsqueeze(-3)).sum(-2) + b[..., t, :, :]
        rows.append(y)
    return torch.stack(rows, dim=-3) if rows else b.new_empty(b.shape)


def _fake(b: Tensor) -> Tensor:
    return b.new_empty(b.shape)


def _previous_rows(y: Tensor, initial: Tensor | None) -> Tensor:
    first = torch.zeros_like(y[..., :1, :, :]) if initial is None else initial.unsqueeze(-3)
    return torch.cat([first, y], dim=-3)[..., : y.shape[-3], :, :]


def _backward(
    grad: Tensor, *, a: Tensor, initial: Tensor | None, output: Tensor, needs_input_grad: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    # L_t = grad_t + A_{t+1}' L_{t+1}: the same recurrence backward in time, with transposed matrices
    # dA_t = L_t y_{t-1}'    db_t = L_t    dinitial = A_0' L_0
    states = grad.shape[-2]
    a = a.masked_fill(a.isnan(), 0)  # later rows are NaN and their gradient zero, but 0 * NaN is NaN
    matrices = a.unflatten(-2, (states, states)).transpose(-2, -3)
    sensitivity = operator(_previous_rows(matrices.flatten(-3, -2).flip(-3), None), grad.flip(-3), None).flip(-3)
    d_a = None
    if needs_input_grad[0]:
        d_a = (sensitivity.unsqueeze(-2) * _previous_rows(output, initial).unsqueeze(-3)).flatten(-3, -2)
    if not needs_input_grad[2]:
        return d_a, sensitivity, None
    return d_a, sensitivity, (matrices * sensitivity.unsqueeze(-3)).sum(-2)[..., :1, :, :].sum(-3)


def _jvp(
    d_a: Tensor, d_b: Tensor, d_initial: Tensor | None, *, a: Tensor, initial: Tensor | None, output: Tensor
) -> Tensor:
    # dy_t = A_t dy_{t-1} + (dA_t y_{t-1} + db_t)
    products = d_a.unflatten(-2, (d_b.shape[-2],) * 2) * _previous_rows(output, initial).unsqueeze(-3)
    y: Tensor = operator(a, products.sum(-2) + d_b, d_initial)
    return y


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    a = torch.rand(2, 9, 4, 3, dtype=torch.double, generator=generator) / 2
    b = torch.randn(2, 9, 2, 3, dtype=torch.double, generator=generator)
    initial = torch.randn(2, 2, 3, dtype=torch.double, generator=generator)
    fibonacci = torch.tensor([1.0, 1, 1, 0], dtype=torch.double).reshape(1, 4, 1).expand(6, 4, 1)
    numbers = torch.tensor([[1.0, 1, 2, 3, 5, 8], [0, 1, 1, 2, 3, 5]], dtype=torch.double).T.unsqueeze(-1)
    return Cases(
        function=matrix_recurrence,
        samples=(Sample(a, b, initial), Sample(a, b)),
        bad=(
            Bad(Sample(a[:, :, :3], b), r"matrix_recurrence: .* a \(\.\.\., T, K \* K, N\).*got a \(2, 9, 3, 3\), b"),
            Bad(Sample(a, b, initial[0]), r"initial \(\.\.\., K, N\); got .*initial \(2, 3\)"),
        ),
        golden=(
            Golden(
                Sample(fibonacci, torch.zeros(6, 2, 1).double(), torch.tensor([[0.0], [1.0]]).double()),
                numbers,
                "Fibonacci numbers",
            ),
        ),
    )


operator = Op(
    "commodity::matrix_recurrence",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
    cases=_cases,
    time=(-3, -3),
)
