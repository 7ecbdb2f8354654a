"""Missing values and warm-up: NaN stands where it must, and never reaches a gradient."""

from collections.abc import Iterable

import torch
from torch import Tensor

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.gradients import differentiable
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Outputs, Skip, Subject, floats
from torchcommodity.opkit._check.values import VALUES


def _complete(subject: Subject) -> Subject:
    if any(isinstance(x, Tensor) and not x.isfinite().all() for x in subject.tensors):
        raise Skip("the sample has missing values")
    return subject


def _series(subject: Subject, outputs: Outputs) -> list[tuple[Tensor, int]]:
    """Each output with its warm-up, time first; one output may have a warm-up for each entry of its last axis."""
    lookback, axis = subject.warmup, subject.time[1]
    led = [y.movedim(axis, 0) for y in outputs]
    if isinstance(lookback, int):
        return _judged((y, lookback) for y in led)
    pairs = zip(led, lookback) if len(led) == len(lookback) else zip(led[0].unbind(-1), lookback)
    return _judged(pairs)


def _judged(pairs: Iterable[tuple[Tensor, int]]) -> list[tuple[Tensor, int]]:
    """Not what is undefined by nature in all rows, as the correlation of a single asset with the others."""
    return [(y, rows) for y, rows in pairs if y.is_floating_point() and not y.isnan().all()]


@row(
    "The first `warmup` rows must be NaN, and on complete input no later row may be. Mend the warm-up, or what the "
    "record says in `warmup`.",
    after=VALUES,
    timed=True,
)
def warm_up(subject: Subject) -> None:
    """The first `warmup` rows are NaN, and none after them."""
    for i, (y, rows) in enumerate(_series(subject, _complete(subject).call())):
        known = _where(~y[:rows].isnan())
        assert not known, f"output {i}: row {known[0]} is a number, though the warm-up is {rows} rows"
        last = len(y) if subject.causal else len(y) - rows  # what looks ahead lacks as many rows at the end
        lost = _where(y[rows:last].isnan())
        assert not lost, f"output {i}: row {rows + lost[0]} is NaN, though the warm-up is {rows} rows"


def _where(flags: Tensor) -> list[int]:
    """The rows in which a flag is set."""
    flags = flags.unsqueeze(-1).flatten(1)
    return flags.any(1).nonzero().flatten().tolist() if flags.numel() else []


def with_missing(subject: Subject, which: int) -> Subject:
    """One value in the middle of one panel is missing."""

    def remove(x: Tensor) -> Tensor:
        x = x.clone()
        x.movedim(subject.time[0], 0)[(subject.rows // 2,) + (0,) * (x.dim() - 1)] = torch.nan
        return x

    return subject.given([remove(x) if i == which else x for i, x in enumerate(subject.tensors)])


def _holed(subject: Subject) -> list[Subject]:
    if not subject.rows:
        raise Skip("the sample has no rows")
    return [with_missing(subject, i) for i in subject.panels if subject.tensors[i].is_floating_point()]


@row(
    "With a missing value the kernel and the reference part: decide the rule, write it in the docstring, mend one.",
    after=VALUES,
    timed=True,
)
def missing_value(subject: Subject) -> None:
    """A missing value: kernel and reference agree."""
    for holed in _holed(subject):
        same(holed.call(), holed.defined(), 1e-10, "the result with a missing value")


def _pulled(subject: Subject, at_missing: float) -> Outputs:
    """The gradients, when the incoming ones are `at_missing` wherever the output is NaN, and one elsewhere."""
    leaves = subject.leaves()
    outputs = [y for y in floats(subject.raw_value(*leaves)) if y.requires_grad]
    incoming = [torch.ones_like(y).masked_fill(y.isnan(), at_missing) for y in outputs]
    return torch.autograd.grad(outputs, leaves, incoming, materialize_grads=True)


@row(
    "A missing input poisons the gradient: 0 * NaN is NaN. Replace it before it is multiplied: `torch.where`, "
    "`nan_to_num`, not a mask afterwards.",
    after=("missing_value", "gradcheck"),
    timed=True,
)
def missing_gradient(subject: Subject) -> None:
    """A missing value leaves every gradient finite."""
    for holed in _holed(differentiable(subject)):
        for i, gradient in zip(holed.floating, _pulled(holed, 0.0)):
            at = (~gradient.isfinite()).nonzero()
            assert not len(at), (
                f"the gradient of tensor {i} is {gradient[tuple(at[0])].item()} at {tuple(at[0].tolist())}"
            )


@row(
    "A NaN output lets its incoming gradient through. Make NaN inside the operator (the record masks it there), not "
    "with `y + nan` at the door.",
    after=("missing_gradient",),
)
def nan_gradient(subject: Subject) -> None:
    """A NaN output ignores its incoming gradient, whatever it is."""
    differentiable(subject)
    for holed in (subject, *(_holed(subject) if subject.op.time else ())):
        expected = _pulled(holed, 0.0)
        for poison in (torch.nan, 1e30):
            got = _pulled(holed, poison)
            same(got, expected, 1e-12, f"with an incoming gradient of {poison} at NaN outputs: the gradient")
