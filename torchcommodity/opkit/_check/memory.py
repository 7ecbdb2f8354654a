"""What an operator does to memory: its inputs stay, its outputs are new and wholly written, whatever the threads."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from torchcommodity.opkit._check.compare import same_bits, unchanged
from torchcommodity.opkit._check.resize import resized
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Outputs, Skip, Subject

M_PERTURB = -6  # of glibc's mallopt: fill what malloc hands out


def _copied(subject: Subject) -> Subject:
    return subject.mapped(torch.clone)


@row("The kernel or the door writes into an argument. Compute into a new tensor: no `out=`, no `x[...] = `, no `add_`.")
def inputs_kept(subject: Subject) -> None:
    """Inputs come back as they went in."""
    subject = _copied(subject)
    tensors = [x for x in subject.tensors if isinstance(x, Tensor)]
    before = unchanged(tensors)
    subject.call()
    same_bits(tensors, before, "the input after the call")


@row("An output is an argument, or a view of one. End with `.clone()` where nothing else makes a new tensor.")
def no_alias(subject: Subject) -> None:
    """Outputs share no memory with inputs or with each other."""
    subject = _copied(subject)
    outputs = subject.call()
    places = [
        x.untyped_storage().data_ptr() for x in (*subject.tensors, *outputs) if isinstance(x, Tensor) and x.numel()
    ]
    assert len(places) == len(set(places)), "an output shares its memory with an input or with another output"


@row(
    "An element of an output is never written: it shows what lay in memory before. Fill warm-up rows with NaN, and let "
    "every loop run to the last element.",
    after=("inputs_kept", "no_alias"),
)
def memory(subject: Subject) -> None:
    """Outputs and gradients are the same, whatever lay in their memory before."""
    first, second = (_with_gradients(_copied(subject), fill) for fill in (_filled_with_nan, _filled_with_numbers))
    same_bits(first, second, "the result in memory full of NaN, against one in memory full of numbers")


def _with_gradients(subject: Subject, filled: Callable[[Outputs], AbstractContextManager[None]]) -> Outputs:
    leaves, differentiable = subject.leaves(), bool(subject.op.backward)
    with filled(subject.call()):
        outputs = subject.raw_value(*leaves)
        loss = torch.stack([y.nansum() for y in outputs if y.is_floating_point()] or [torch.zeros(())]).sum()
        gradients = (
            torch.autograd.grad(loss, leaves, allow_unused=True) if differentiable and loss.requires_grad else ()
        )
    return tuple(x.detach() for x in (*outputs, *gradients) if x is not None)


@contextmanager
def _filled_with_nan(_: Outputs) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


@contextmanager
def _filled_with_numbers(outputs: Outputs) -> Iterator[None]:
    """NaN cannot betray an unwritten row of warm-up; numbers can. 32.5 in float64, 3.00 in float32, 2.0 in float16."""
    allocator = ctypes.CDLL(None) if os.name == "posix" else None
    mallopt = getattr(allocator, "mallopt", None)
    if mallopt:
        mallopt(M_PERTURB, 0x40 ^ 0xFF)
    blocks = [torch.full_like(y, 7) for y in outputs for _ in range(32)]
    del blocks  # elsewhere an allocator hands out first what was freed last
    try:
        yield
    finally:
        if mallopt:
            mallopt(M_PERTURB, 0)


@row(
    "The result depends on how the work is split. Split over columns, never over the terms of a sum, in blocks whose "
    "size does not depend on the number of threads.",
    after=("memory",),
    once=True,
)
def threads(subject: Subject) -> None:
    """One thread and many give the same bits."""
    if not subject.tensors or not isinstance(subject.tensors[0], Tensor):
        raise Skip("no tensor to enlarge")
    wide = None if subject.op.vmap == "loop" else 130  # weights want it as long as it is
    panels = ((32, 2048, None), (1, 512, wide))  # many panels; one wide panel
    for batch, rows, assets in panels if subject.op.time else ((2048, None, None),):
        large = resized(subject, batch=batch, rows=rows, assets=assets)
        same_bits(_on_threads(4, large), _on_threads(1, large), f"{large.sample}: 4 threads against 1")


def _on_threads(count: int, subject: Subject) -> Outputs:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with torch.no_grad():
            return subject.call()
    finally:
        torch.set_num_threads(before)
