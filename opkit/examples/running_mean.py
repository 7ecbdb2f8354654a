"""m <- c m + (1 - c) x: an operator that writes to its argument.

The running mean m of an exponential average is updated for each new x, without a new tensor. `mutates_args=("mean",)`
says so in the schema, `Tensor(a0!) mean`, and PyTorch draws the conclusions: autograd notices that a saved m changes
(its version counter), and compilers replace the call by one that returns the new m, and write into memory at the end.

For the derivatives the new mean is an output like any other, the first one:

    dL/dm = c dL/dm',   dL/dx = (1 - c) dL/dm'        m' is the new mean

and a missing x leaves m as it is. A formula that needs the old m names it, `mean`, and receives a copy from before the
call. An `autograd.Function` would call `ctx.mark_dirty(mean)` and return it. Here a call that records a gradient
computes a new m, and writes it with `copy_`, so that views, leaves and `torch.func` are treated as in PyTorch's own
operators.
"""

import sys

import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import Cases, Op, Sample


def running_mean_(mean: Tensor, x: Tensor, decay: float = 0.94) -> Tensor:  # (..., N), (..., N) -> (..., N)
    """Update `mean` in place, and return it.

    Example:
        >>> mean = torch.zeros(2)
        >>> for x in torch.tensor([[1.0, 4.0], [1.0, torch.nan]]):
        ...     _ = running_mean_(mean, x, decay=0.5)
        >>> mean
        tensor([0.7500, 2.0000])
    """
    operator(mean, x, decay)
    return mean


def _reference(mean: Tensor, x: Tensor, decay: float) -> None:
    mean.copy_(torch.where(x.isnan(), mean, decay * mean + (1 - decay) * x))


def _backward(grad: Tensor, *, x: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    # dL/dm = c dL/dm', dL/dx = (1 - c) dL/dm'; where x is missing, m' = m
    missing = x.isnan()
    return torch.where(missing, grad, decay * grad), torch.where(missing, 0, (1 - decay) * grad)


def _cases() -> Cases:
    mean, x = torch.randn(2, 4, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return Cases(
        running_mean_,
        samples=(Sample(mean, x), Sample(mean, x, decay=0.5)),
        oracle=lambda mean, x, decay=0.94: mean.lerp(x, 1 - decay),  # the new mean, then the outputs: none
    )


operator = Op(
    "examples::running_mean_",
    reference=_reference,
    mutates_args=("mean",),
    backward=_backward,
    cases=_cases,
    time=None,
)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
