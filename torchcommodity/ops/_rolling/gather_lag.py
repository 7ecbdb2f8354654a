"""The value so many rows ago, and its transpose: gradients of what picks a row of its window."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_panel, raise_invalid


def gather_lag(
    x: Tensor,  # (..., T, N)
    since: Tensor,  # (..., T, N) int64
    spread: bool = False,
) -> Tensor:  # (..., T, N)
    """Pick from each column the value `since` rows ago: y_t = x_{t - since_t}, zero where there is no such row.

    Args:
        x: values in any unit.
        since: rows, int64, of the shape of x; a negative number picks nothing.
        spread: the transpose instead: each row adds its value to the row that it would pick, so y_s is the sum of the
            x_t with t - since_t = s. That looks ahead: it is for gradients.

    Returns:
        y, in the unit of x. No warm-up. A NaN goes where it is picked, nowhere else.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, `since` is not int64 or of another shape.

    Devices: CPU and CUDA; elsewhere the reference. Linear in x, so differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.gather_lag(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0], [1], [-1]])).squeeze(-1)
        tensor([1., 1., 0.])
    """
    check_panel("gather_lag", x=x)
    if since.dtype != torch.int64 or since.shape != x.shape:
        raise_invalid("gather_lag", "since must be int64, of the shape of x", dtype=since.dtype, since=since, x=x)
    y: Tensor = operator(x, since, spread)
    return y


def _reference(x: Tensor, since: Tensor, spread: bool) -> Tensor:
    rows = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1)
    known = (since >= 0) & (since <= rows)
    there = (rows - since).where(known, 0)
    if spread:
        return torch.zeros_like(x, memory_format=torch.contiguous_format).scatter_add(-2, there, x.where(known, 0))
    return x.gather(-2, there).where(known, 0)


def _backward(grad: Tensor, *, since: Tensor, spread: bool) -> tuple[Tensor, None]:
    # each is the transpose of the other
    return operator(grad, since, not spread), None


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    since = torch.randint(-1, 12, x.shape, generator=generator)
    column = torch.arange(1.0, 5.0).double().reshape(4, 1)
    ago = torch.tensor([[1], [0], [2], [-1]])
    return Cases(
        function=gather_lag,
        samples=(Sample(x, since), Sample(x, since, spread=True), Sample(x[0], since[0])),
        bad=(
            Bad(Sample(x[0, 0], since), r"gather_lag: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, since[0]), r"since must be int64, of the shape of x; got .*since \(11, 3\), x \(2, 11, 3\)"),
            Bad(Sample(x, since.int()), "since must be int64"),
        ),
        golden=(
            Golden(Sample(column, ago), torch.tensor([[0.0], [2.0], [1.0], [0.0]]).double(), "by hand"),
            Golden(Sample(column, ago, spread=True), torch.tensor([[3.0], [2.0], [0.0], [0.0]]).double(), "by hand"),
        ),
    )


operator = Op(
    "gather_lag",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=lambda spread: not spread,
)
