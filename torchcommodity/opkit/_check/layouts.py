"""Shapes and strides: short, empty, narrow, with many batch axes or none, transposed, strided, expanded."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Outputs, Skip, Subject
from torchcommodity.opkit._check.values import VALUES

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x,
    "moved": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 1 else x,
    "strided": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "expanded": lambda x: x[:1].expand(x.shape) if x.dim() > 2 else x,
    "one column for all": lambda x: x[..., :1].expand(x.shape) if x.dim() else x,
}


@row("The kernel assumes contiguous memory. Call `.contiguous()` on every argument, or use its strides.", after=VALUES)
def strides(subject: Subject) -> None:
    """Transposed, strided and expanded inputs give the result of contiguous ones, forward and backward."""
    for name, change in LAYOUTS.items():
        strange, plain = subject.mapped(change), subject.mapped(change).mapped(torch.Tensor.contiguous)
        same(strange.call(), plain.call(), 1e-12, f"{name} input: the result")
        if subject.op.backward and subject.floating:
            same(strange.gradients(), plain.gradients(), 1e-12, f"{name} input: the gradient")


def _right_or_refused(subject: Subject, what: str) -> None:
    """The reference answers through the same door; so the form of the outputs is judged on its own."""
    refusal = ""
    try:
        got = subject.call()
    except ValueError as error:
        refusal = str(error)
    if not refusal:
        _formed(subject, got, what)
        same(got, _reference(subject, what), 1e-10, what)
    elif subject.op.name not in refusal:
        raise AssertionError(f"{what}: refused in words that do not name the operator: {refusal}")


def _reference(subject: Subject, what: str) -> Outputs:
    try:
        return subject.defined()
    except Exception as error:
        raise AssertionError(f"{what}: the reference fails, which answers on other devices: {error}") from error


def _formed(subject: Subject, outputs: Outputs, what: str) -> None:
    if not subject.op.time:
        return
    (into, out), first = subject.time, subject.tensors[0]
    for y in outputs:
        right = y.dim() == first.dim() + into - out and y.shape[out] == subject.rows
        assert right, (
            f"{what}: the output is {tuple(y.shape)}, not {subject.rows} rows on axis {out} behind the batches"
        )


def _first(subject: Subject, rows: int) -> Subject:
    return subject.with_panels(lambda x: x.narrow(subject.time[0], 0, rows).contiguous())


@row(
    "A series shorter than the window is all warm-up: give NaN rows, or refuse with the operator's name.",
    after=VALUES,
    timed=True,
)
def short(subject: Subject) -> None:
    """Fewer rows than the window, down to one: right, or refused by the operator's own words."""
    longest = subject.warmup if isinstance(subject.warmup, int) else max(subject.warmup, default=0)
    for rows in sorted({1, 2, longest, longest + 1} & set(range(1, subject.rows))):
        shorter = _first(subject, rows)
        _right_or_refused(shorter, f"T = {rows}")


@row(
    "T = 0 must give an output without rows, or be refused with the operator's name: guard the first row.",
    after=VALUES,
    timed=True,
)
def no_rows(subject: Subject) -> None:
    """T = 0: right, or refused by the operator's own words."""
    empty = _first(subject, 0)
    _right_or_refused(empty, "T = 0")


@row("N = 1 must work as every other number of assets does: do not squeeze.", after=VALUES, timed=True)
def one_asset(subject: Subject) -> None:
    """N = 1: right, or refused by the operator's own words."""
    width, time = subject.tensors[0].shape[-1], subject.time[0]
    if subject.op.vmap == "loop":
        raise Skip("the record says vmap='loop': the last axis is as long as the weights want it")

    def narrow(i: int, x: Tensor) -> Tensor:
        for axis in range(1 + time if i in subject.panels else -1, 0):
            x = x.narrow(axis, 0, 1) if x.dim() >= -axis and x.shape[axis] == width else x
        return x.contiguous()

    tensors = [narrow(i, x) if isinstance(x, Tensor) else x for i, x in enumerate(subject.tensors)]
    _right_or_refused(subject.given(tensors), "N = 1")


def batched(subject: Subject) -> tuple[int, list[int]]:
    """How many batch axes the first tensor has, and which tensors carry the first of them."""
    axes = subject.batch_axes
    if axes < 1:
        raise Skip("the sample has no batch axis")
    length, carriers = subject.tensors[0].shape[0], []
    for i, x in enumerate(subject.tensors):
        led = x is not None and (x.dim() + subject.time[0] == axes if i in subject.panels else x.dim() >= axes)
        if led and x.shape[0] == length and (i in subject.panels or x.dim() > 1):
            carriers.append(i)
    return axes, carriers


def _changed(subject: Subject, which: list[int], change: Callable[[Tensor], Tensor]) -> Subject:
    return subject.given([change(x) if i in which else x for i, x in enumerate(subject.tensors)])


@row(
    "B = 0 must give an output without batches: do not index the first one, do not divide by their number.",
    after=VALUES,
)
def no_batch(subject: Subject) -> None:
    """B = 0: right, or refused by the operator's own words."""
    _, carriers = batched(subject)
    _right_or_refused(_changed(subject, carriers, lambda x: x[:0].contiguous()), "B = 0")


@row("Write axes from the end (-2 is time): leading axes are batches, as many as come.", after=VALUES, timed=True)
def batch_axes(subject: Subject) -> None:
    """Two batch axes and none give what one gives."""
    axes, carriers = batched(subject)
    expected = subject.call()
    doubled = _changed(subject, carriers, lambda x: torch.stack([x, x]))
    same([y[1] for y in doubled.call()], expected, 1e-12, "two batch axes")
    if axes == 1 and len(carriers) == len([x for x in subject.tensors if isinstance(x, Tensor)]):
        single = _changed(subject, carriers, lambda x: x[0])
        same(single.call(), [y[0] for y in expected], 1e-12, "no batch axis")
