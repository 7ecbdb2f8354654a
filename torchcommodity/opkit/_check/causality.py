"""Row t depends on rows up to t only: by bits, and by gradient."""

from collections.abc import Callable, Iterable
from itertools import product

import torch
from torch import Tensor

from torchcommodity.opkit._check.compare import same_bits
from torchcommodity.opkit._check.gradients import differentiable
from torchcommodity.opkit._check.resize import resized
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Outputs, Skip, Subject
from torchcommodity.opkit._check.values import VALUES

FUTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "other values": lambda later: later.flip(0) + 0.25 * later.abs(),
    "missing values": lambda later: torch.full_like(later, torch.nan),
    "huge values": lambda later: later * 1e8,
}


def _past(subject: Subject, outputs: Outputs, last: int) -> list[Tensor]:
    return [y.narrow(subject.time[1], 0, last + 1) for y in outputs]


def _with_future(subject: Subject, last: int, name: str) -> Subject:
    def change(x: Tensor) -> Tensor:
        ahead = x.clone().movedim(subject.time[0], 0)
        if x.is_floating_point():
            ahead[last + 1 :] = FUTURES[name](ahead[last + 1 :])
        return ahead.movedim(0, subject.time[0])

    return subject.with_panels(change)


@row(
    "Row t reads a row after t: look for a centered window, a `flip`, a mean over all time, an index one too far. "
    "An operator that must look ahead says `causal=False` in its record.",
    after=VALUES,
    timed=True,
)
def causal(subject: Subject) -> None:
    """Rows after t changed: rows up to t are the same, bit for bit. `causal=False` is no idle claim."""
    leaks = _leaks(subject, range(subject.rows - 1))
    if subject.causal:
        large = _large(subject)
        leaks += _leaks(large, (large.rows // 3, large.rows - 2))
    if subject.causal and leaks:
        raise leaks[0]
    assert subject.causal or leaks, "the record says causal=False, but no row looks ahead: say causal=True"


def _large(subject: Subject) -> Subject:
    """Blocks of rows and vectors of columns: a kernel may go another way there, and come to other bits."""
    weights = subject.op.vmap == "loop" or not isinstance(subject.tensors[0], Tensor)
    return resized(subject, rows=300, assets=None if weights else 70)


def _leaks(subject: Subject, cuts: Iterable[int]) -> list[AssertionError]:
    expected, leaks = subject.call(), []
    for last, name in product(cuts, FUTURES):
        got = _with_future(subject, last, name).call()
        try:
            same_bits(
                _past(subject, got, last),
                _past(subject, expected, last),
                f"{name} after row {last} of {subject.rows}: the past",
            )
        except AssertionError as leak:
            leaks.append(leak)
    return leaks


@row(
    "The gradient of a past output reaches a later input: the backward formula looks ahead.",
    after=("causal", "gradcheck"),
    timed=True,
)
def causal_gradient(subject: Subject) -> None:
    """d y[t] / d x[t + k] = 0, exactly."""
    if not differentiable(subject).causal:
        raise Skip("the record says causal=False")
    time_in, time_out = subject.time
    for last in range(subject.rows - 1):
        leaves = subject.leaves()
        past = [y.narrow(time_out, 0, last + 1).sin().sum() for y in subject.value(*leaves)]
        gradients = torch.autograd.grad(torch.stack(past).sum(), leaves, materialize_grads=True)
        for i, gradient in zip(subject.floating, gradients):
            later = (
                gradient.narrow(time_in, last + 1, subject.rows - last - 1)
                if i in subject.panels
                else gradient.new_empty(0)
            )
            largest = later.abs().max().item() if later.numel() else 0.0
            assert largest == 0, f"d y[..{last}] / d (tensor {i})[{last + 1}..] reaches {largest:.3g}, not 0"
