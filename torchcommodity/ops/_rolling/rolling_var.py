"""Rolling variance and standard deviation over what a window holds."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_integer
from torchcommodity.ops._rolling.rolling_adjoint import operator as adjoint
from torchcommodity.ops._rolling.window import check_window, present


def rolling_var(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N)
    """Rolling variance, pandas' `rolling(window, min_periods).var(ddof)`: v_t = sum (x_s - mean_t)^2 / (n_t - ddof).

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: values that a window must hold, in [0, W]; by default all.
        ddof: what is taken off the number n_t of values, >= 0.

    Returns:
        The variance of the values among the last W rows, in the square of the unit of x; exactly zero where they are
        all equal; NaN where they are fewer than `min_periods`, or no more than `ddof`. Missing values are skipped.
        Causal.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable to any order, in both modes; a missing value gets
    gradient zero, a NaN row takes no part.

    References:
        Chan, Golub, LeVeque (1983). Algorithms for computing the sample variance. doi:10.1080/00031305.1983.10483115.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_var(torch.tensor([[1.0], [3.0], [torch.nan], [7.0]]), 3, min_periods=2).squeeze(-1)
        tensor([nan, 2., 2., 8.])
    """
    return _moved("rolling_var", x, window, min_periods, ddof, False)


def rolling_std(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N)
    """Rolling standard deviation, the root of `rolling_var`, in the unit of x. Where it is zero, so is its gradient.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_std(torch.tensor([[1.0], [3.0], [torch.nan], [7.0]]), 3, min_periods=2, ddof=0).squeeze(-1)
        tensor([nan, 1., 1., 2.])
    """
    return _moved("rolling_std", x, window, min_periods, ddof, True)


def _moved(name: str, x: Tensor, window: int, min_periods: int | None, ddof: int, root: bool) -> Tensor:
    least = check_window(name, window, min_periods, x=x)
    check_integer(name, 0, ddof=ddof)
    y: Tensor = operator(x, window, least, ddof, root)
    return y


def _reference(x: Tensor, window: int, min_periods: int, ddof: int, root: bool) -> Tensor:
    rows, finite, count = present(x, window, min_periods)
    lowest = rows.where(finite, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - lowest).where(finite, 0)  # a constant becomes exactly zero
    moved = (rows - rows.sum(-1, keepdim=True) / count.unsqueeze(-1)).where(finite, 0)
    variance = moved.square().sum(-1) / (count - ddof).where(count > ddof, torch.nan)
    return variance.sqrt() if root else variance


def _backward(
    grad: Tensor, *, x: Tensor, window: int, min_periods: int, ddof: int, root: bool, output: Tensor
) -> Tensor:
    # dv_t / dx_s = 2 (x_s - mean_t) / (n_t - ddof),   d sqrt(v_t) = dv_t / (2 sqrt(v_t))
    dx: Tensor = adjoint(grad, x, output if root else None, window, min_periods, ddof, 2)
    return dx


def _oracle(x: Tensor, window: int, min_periods: int | None = None, ddof: int = 1) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).var(ddof=ddof).to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    tall = torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    tall[:, 100:200, 0] = 1.1
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 3.0, 3.0, 7.0], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_var,
        samples=(
            Sample(x, window=4),
            Sample(holed, window=5, min_periods=2),
            Sample(holed, window=3, min_periods=1, ddof=0),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_var: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_var: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, min_periods=3), r"min_periods must be in \[0, window\]"),
            Bad(Sample(x, window=2, ddof=-1), "ddof must be >= 0; got ddof=-1"),
        ),
        golden=(
            Golden(
                Sample(steps, window=2, ddof=0),
                torch.tensor([torch.nan, 1.0, 0.0, 4.0], dtype=torch.double).reshape(4, 1),
                "by hand",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(
            Sample(tall, window=60),
            Sample(gaps, window=20, min_periods=5, ddof=0),
            Sample(gaps, window=400, min_periods=0),
        ),
    )


operator = Op(
    "rolling_var",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    mask_nan_grad=False,  # the adjoint does it
    warmup=lambda window, min_periods, ddof, root: max(min_periods, 1, ddof + 1) - 1,
)
