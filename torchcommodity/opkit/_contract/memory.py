"""Inputs stay unchanged, outputs are new and fully written, and results do not depend on the number of threads."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from torchcommodity.opkit._contract.case import Case, SkipCheck, Tensors
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_bitwise_equal
from torchcommodity.opkit._contract.resize import resize

M_PERTURB = -6  # option of glibc's mallopt: the byte pattern of newly allocated memory


@register(
    "The kernel or the public function writes to an argument. Compute into a new tensor: no `out=`, `x[...] =`, `add_`."
)
def inputs_unchanged(case: Case) -> None:
    """The call does not change its inputs."""
    case = case.map_tensors(torch.clone)
    tensors = [x for x in case.tensors if isinstance(x, Tensor)]
    copies = [x.detach().clone() for x in tensors]
    case.call()
    assert_bitwise_equal(tensors, copies, "input after the call")


@register("An output is an argument, or a view of one. End with `.clone()` if nothing else makes a new tensor.")
def no_aliasing(case: Case) -> None:
    """Outputs share no memory with inputs or with each other."""
    case = case.map_tensors(torch.clone)
    tensors = [x for x in (*case.tensors, *case.call()) if isinstance(x, Tensor) and x.numel()]
    addresses = [x.untyped_storage().data_ptr() for x in tensors]
    assert len(addresses) == len(set(addresses)), "an output shares memory with an input or with another output"


@register(
    "An output element is never written and shows what was in memory before. Fill warm-up rows with NaN, and run every "
    "loop to the last element.",
    depends_on=("inputs_unchanged", "no_aliasing"),
)
def uninitialized_memory(case: Case) -> None:
    """Outputs and gradients do not depend on what was in their memory before."""
    nan, numbers = (_outputs_and_gradients(case.map_tensors(torch.clone), fill) for fill in (_fill_nan, _fill_numbers))
    assert_bitwise_equal(nan, numbers, "result in memory filled with NaN, against memory filled with numbers")


def _outputs_and_gradients(case: Case, fill: Callable[[Tensors], AbstractContextManager[None]]) -> Tensors:
    leaves, differentiable = case.leaves(), bool(case.op.backward)
    with fill(case.call()):
        outputs = case.outputs(*leaves)
        loss = torch.stack([y.nansum() for y in outputs if y.is_floating_point()] or [torch.zeros(())]).sum()
        gradients = (
            torch.autograd.grad(loss, leaves, allow_unused=True) if differentiable and loss.requires_grad else ()
        )
    return tuple(x.detach() for x in (*outputs, *gradients) if x is not None)


@contextmanager
def _fill_nan(_: Tensors) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


@contextmanager
def _fill_numbers(outputs: Tensors) -> Iterator[None]:
    """Fill with numbers, which reveal an unwritten warm-up row: 32.5 in float64, 3.00 in float32, 2.0 in float16."""
    allocator = ctypes.CDLL(None) if os.name == "posix" else None
    mallopt = getattr(allocator, "mallopt", None)
    if mallopt:
        mallopt(M_PERTURB, 0x40 ^ 0xFF)
    blocks = [torch.full_like(y, 7) for y in outputs for _ in range(32)]
    del blocks  # without glibc: allocators reuse first what was freed last
    try:
        yield
    finally:
        if mallopt:
            mallopt(M_PERTURB, 0)


@register(
    "The result depends on how the work is split. Split over columns, never over the terms of a sum, in blocks whose "
    "size does not depend on the number of threads.",
    depends_on=("uninitialized_memory",),
    first_sample_only=True,
)
def threads(case: Case) -> None:
    """One thread and four give bitwise equal results."""
    if not case.tensors or not isinstance(case.tensors[0], Tensor):
        raise SkipCheck("the sample has no tensor to enlarge")
    assets = None if case.op.vmap == "loop" else 130  # weights determine the length of the last axis
    panels = ((32, 2048, None), (1, 512, assets))  # many panels; one wide panel
    for batch, rows, width in panels if case.op.time else ((2048, None, None),):
        large = resize(case, batch=batch, rows=rows, assets=width)
        assert_bitwise_equal(_on_threads(4, large), _on_threads(1, large), f"{large.sample}: 4 threads against 1")


def _on_threads(count: int, case: Case) -> Tensors:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with torch.no_grad():
            return case.call()
    finally:
        torch.set_num_threads(before)
