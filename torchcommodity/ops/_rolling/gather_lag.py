"""Gather values by their lag in rows, and the transpose, for gradients of operators that pick a row of a window."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import check_panel, raise_invalid


def gather_lag(
    x: Tensor,  # (..., T, N)
    lag: Tensor,  # (..., T, N) int64
    scatter: bool = False,
) -> Tensor:  # (..., T, N)
    """Value of each column `lag` rows ago: y_t = x_{t - lag_t}, zero where there is no such row.

    Args:
        x: Values in any unit.
        lag: Lags in rows, of the shape of x. A negative lag gathers nothing.
        scatter: Apply the transpose instead: y_s is the sum of the x_t with t - lag_t = s. It looks ahead: for
            gradients only.

    Returns:
        Values in the unit of x. No warm-up. A NaN appears only where it is gathered.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel, or `lag` is not int64 or has another shape.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Linear in x; differentiable to any order, in
    reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.gather_lag(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0], [1], [-1]])).squeeze(-1)
        tensor([1., 1., 0.])
    """
    check_panel("gather_lag", x=x)
    if lag.dtype != torch.int64 or lag.shape != x.shape:
        raise_invalid("gather_lag", "lag must be int64, of the shape of x", dtype=lag.dtype, lag=lag, x=x)
    y: Tensor = operator(x, lag, scatter)
    return y


def _reference(x: Tensor, lag: Tensor, scatter: bool = False) -> Tensor:
    row = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1)
    valid = (lag >= 0) & (lag <= row)
    source = (row - lag).where(valid, 0)
    if scatter:
        return torch.zeros_like(x, memory_format=torch.contiguous_format).scatter_add(-2, source, x.where(valid, 0))
    return x.gather(-2, source).where(valid, 0)


def _backward(grad: Tensor, *, lag: Tensor, scatter: bool) -> tuple[Tensor, None]:
    # gather and scatter are each other's transpose
    return operator(grad, lag, not scatter), None


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    lag = torch.randint(-1, 12, x.shape, generator=generator)
    column = torch.arange(1.0, 5.0).double().reshape(4, 1)
    column_lag = torch.tensor([[1], [0], [2], [-1]])
    gathered, scattered = (torch.tensor(y).double().reshape(4, 1) for y in ([0, 2, 1, 0], [3, 2, 0, 0]))
    return Cases(
        function=gather_lag,
        samples=(Sample(x, lag), Sample(x, lag, scatter=True), Sample(x[0], lag[0])),
        bad=(
            Bad(Sample(x[0, 0], lag), r"gather_lag: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, lag[0]), r"lag must be int64, of the shape of x; got .*lag \(11, 3\), x \(2, 11, 3\)"),
            Bad(Sample(x, lag.int()), "lag must be int64"),
        ),
        golden=(
            Golden(Sample(column, column_lag), gathered, "by hand"),
            Golden(Sample(column, column_lag, scatter=True), scattered, "by hand"),
        ),
    )


operator = Op(
    "commodity::gather_lag",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=lambda scatter: not scatter,
)
