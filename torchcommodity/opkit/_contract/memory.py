"""Inputs stay unchanged, outputs are new and fully written, and results do not depend on the number of threads."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit import _torch_private as private
from torchcommodity.opkit._contract.allocation import fill_nan, fill_numbers
from torchcommodity.opkit._contract.case import Case, SkipCheck, Tensors, float_tensors
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_bitwise_equal, assert_close
from torchcommodity.opkit._contract.fault import Fault
from torchcommodity.opkit._contract.resize import affordable_rows, resize
from torchcommodity.opkit._contract.source import locate, locate_error
from torchcommodity.opkit._contract.support import ignore_refusal
from torchcommodity.opkit._op import Op

WRITES_BACKWARD = "`backward` writes to a tensor of others. Compute into a new one: no `out=`, `mul_`, `x[...] =`."


@register(
    "The kernel or the public function writes to an argument. Compute into a new tensor: no `out=`, `x[...] =`, "
    "`add_`.",
    depends_on=("deterministic",),
)
def inputs_unchanged(case: Case) -> None:
    """The call does not change its inputs, with missing values neither, and backward changes no tensor."""
    _assert_inputs_unchanged(case, "the call")
    for label, change in VARIANTS.items():
        with ignore_refusal():
            _assert_inputs_unchanged(case.map_tensors(change), f"the call with {label}")
    _assert_unchanged_by_backward(case)


def _with_holes(x: Tensor) -> Tensor:
    if not x.is_floating_point() or x.numel() < 2:
        return x
    return x.flatten().where(torch.arange(x.numel(), device=x.device) % 5 != 1, torch.nan).reshape(x.shape)


VARIANTS: dict[str, Callable[[Tensor], Tensor]] = {
    "missing values": _with_holes,
    "transposed inputs": lambda x: x.mT.contiguous().mT if x.dim() > 1 else x,
    "negative numbers": lambda x: -x if x.is_floating_point() else x,
}


def _clone(x: Tensor) -> Tensor:
    return x.detach().clone(memory_format=torch.preserve_format)


def _assert_inputs_unchanged(case: Case, label: str) -> None:
    case, writes = case.map_tensors(_clone), _declared_writes(case)
    indices = [i for i, x in enumerate(case.tensors) if isinstance(x, Tensor) and i not in writes]
    copies = [_clone(case.tensors[i]) for i in indices]
    case.call()
    for i, copy in zip(indices, copies):
        _assert_same(case, case.tensors[i], copy, f"tensor {i} after {label}", "input_changed", "forward")


def _declared_writes(case: Case) -> set[int]:
    """Indices of the tensors that the schema declares as changed by the call."""
    try:
        arguments = case.op.overload._schema.arguments
    except (SkipCheck, AttributeError):  # no schema
        return set()
    tensors = [a for a in arguments if private.is_tensor_like_type(a.type)]
    return {i for i, a in enumerate(tensors) if a.alias_info is not None and a.alias_info.is_write}


def _assert_unchanged_by_backward(case: Case) -> None:
    try:
        leaves = case.leaves()
        outputs = [y for y in float_tensors(case.outputs(*leaves)) if y.requires_grad]
        incoming = [torch.ones_like(y) * 1.25 for y in outputs]
        before = [(x, x.detach().clone()) for x in (*leaves, *outputs)]
        torch.autograd.grad(outputs, leaves, incoming, allow_unused=True, retain_graph=True)
    except Exception as error:
        if "leaf Variable that requires grad" in str(error):
            cause = "the call writes to an input that requires a gradient"
            raise Fault("input_changed", f"{cause}: {error}", location=locate_error(error)) from None
        return  # the finding of the checks of gradients
    for x, copy in before:
        _assert_same(case, x, copy, "an input or output after backward", "saved_tensor_changed", "backward")
    for x in incoming:
        label = "the incoming gradient after backward"
        _assert_same(case, x, torch.full_like(x, 1.25), label, "incoming_gradient_changed", "backward")


def _assert_same(case: Case, actual: Tensor, expected: Tensor, label: str, kind: str, part: str) -> None:
    try:
        assert_bitwise_equal([actual], [expected], label)
    except AssertionError as difference:
        fix = WRITES_BACKWARD if part == "backward" else ""
        raise Fault(kind, str(difference), fix, locate(case.op, part)) from None


@register("An output is an argument, or a view of one. End with `.clone()` if nothing else makes a new tensor.")
def no_aliasing(case: Case) -> None:
    """Outputs share no memory with inputs or with each other; a function may return views of its inputs."""
    case = case.map_tensors(torch.clone)
    inputs, outputs, again = map(_addresses, (case.tensors, case.call(), case.call()))
    new = set(outputs) - set(inputs)
    if isinstance(case.op, Op) or case.op.returns_new_memory:
        message = "an output shares memory with an input or with another output"
        assert len(new) == len(outputs), message
    assert not new & set(again), "the next call overwrites an output: both calls return the same memory"


def _addresses(tensors: Sequence[Any]) -> list[int]:
    return [x.untyped_storage().data_ptr() for x in tensors if isinstance(x, Tensor) and x.numel()]


@register(
    "An output element is never written and shows what was in memory before. Fill warm-up rows with NaN, and run every "
    "loop to the last element.",
    depends_on=("deterministic", "inputs_unchanged", "no_aliasing"),
)
def uninitialized_memory(case: Case) -> None:
    """Outputs and gradients do not depend on what was in their memory before."""
    nan, numbers = (_outputs_and_gradients(case.map_tensors(torch.clone), fill) for fill in (fill_nan, fill_numbers))
    assert_bitwise_equal(nan, numbers, "result in memory filled with NaN, against memory filled with numbers")


def _outputs_and_gradients(case: Case, fill: Callable[[Tensors], AbstractContextManager[None]]) -> Tensors:
    leaves, differentiable = case.leaves(), bool(case.op.backward)
    with fill(case.call()):
        outputs = case.outputs(*leaves)
        loss = torch.stack([y.nansum() for y in outputs if y.is_floating_point()] or [torch.zeros(())]).sum()
        gradients = _gradients_or_none(loss, leaves) if differentiable and loss.requires_grad else ()
    return tuple(x.detach() for x in (*outputs, *gradients) if x is not None)


def _gradients_or_none(loss: Tensor, leaves: Tensors) -> tuple[Tensor | None, ...]:
    try:
        return torch.autograd.grad(loss, leaves, allow_unused=True)
    except Exception:  # the finding of the checks of gradients
        return ()


@register(
    "The result depends on how the work is split. Split over columns, never over the terms of a sum, in blocks whose "
    "size does not depend on the number of threads.",
    depends_on=("uninitialized_memory",),
    first_sample_only=True,
)
def threads(case: Case) -> None:
    """One, two, three and four threads give equal results: bit by bit, for a record."""
    if not case.tensors or not isinstance(case.tensors[0], Tensor):
        raise SkipCheck("the sample has no tensor to enlarge")
    assets = None if case.op.vmap == "loop" else 130  # weights determine the length of the last axis
    many = 2048 if isinstance(case.op, Op) or not case.op.time else affordable_rows(case, 2048, 0.05)
    panels = ((32, many, None), (1, min(many, 512), assets))  # many panels; one wide panel
    for batch, rows, width in panels if case.op.time else ((2048, None, None),):
        large = resize(case, batch=batch, rows=rows, assets=width)
        tolerance = 0.0 if isinstance(case.op, Op) else 1e-10  # PyTorch's own sums round in their own ways
        expected = _on_threads(1, large)
        for count in (2, 3, 4):
            label = f"{large.sample}: {count} threads against 1"
            assert_close(_on_threads(count, large), expected, tolerance, label)


def _on_threads(count: int, case: Case) -> Tensors:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with torch.no_grad():
            return case.call()
    finally:
        torch.set_num_threads(before)
