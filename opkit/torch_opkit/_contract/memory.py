"""Inputs stay unchanged, outputs are new and fully written, and results do not depend on the number of threads."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from unittest import mock

import torch
from torch import Tensor

from torch_opkit import _torch_private as private
from torch_opkit._contract.case import Case, Fault, SkipCheck, Tensors, float_tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_bitwise_equal, assert_close
from torch_opkit._contract.determinism import fill_nan
from torch_opkit._contract.resize import affordable_rows, require_runs, resize
from torch_opkit._contract.source import locate, locate_error, python_functions
from torch_opkit._contract.support import ignore_refusal
from torch_opkit._op import Op

M_PERTURB = -6  # option of glibc's mallopt: the byte pattern of newly allocated memory
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
    case, writes = case.map_tensors(_clone), set[int]()  # indices of the tensors that the schema declares as changed
    with suppress(SkipCheck, AttributeError):  # no schema
        arguments = [a for a in case.op.overload._schema.arguments if private.is_tensor_like_type(a.type)]
        writes = {i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write}
    indices = [i for i, x in enumerate(case.tensors) if isinstance(x, Tensor) and i not in writes]
    copies = [_clone(case.tensors[i]) for i in indices]
    case.call()
    for i, copy in zip(indices, copies):
        _assert_same(case, case.tensors[i], copy, f"tensor {i} after {label}", "input_changed", "forward")


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
    inputs, outputs, again = (
        [x.untyped_storage().data_ptr() for x in tensors if isinstance(x, Tensor) and x.numel()]
        for tensors in (case.tensors, case.call(), case.call())
    )
    new = set(outputs) - set(inputs)
    if isinstance(case.op, Op) or case.op.returns_new_memory:
        message = "an output shares memory with an input or with another output"
        assert len(new) == len(outputs), message
    assert not new & set(again), "the next call overwrites an output: both calls return the same memory"


@contextmanager
def fill_numbers(outputs: Tensors) -> Iterator[None]:
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
        gradients: tuple[Tensor | None, ...] = ()
        if differentiable and loss.requires_grad:
            with suppress(Exception):  # the finding of the checks of gradients
                gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
    return tuple(x.detach() for x in (*outputs, *gradients) if x is not None)


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
    splits_itself = any("get_num_threads" in f.__code__.co_names for f in python_functions(case.op).values())
    # PyTorch's own sums round in their own ways, and with one thread always in the same way
    tolerance = 0.0 if isinstance(case.op, Op) or splits_itself else 1e-10
    run = _as_if_on_threads if splits_itself else _on_threads
    for counts, sized in ((2, 3, 4, 8), case), *(((2, 3, 4), large) for large in _larger(case)):
        expected = run(1, sized)
        for count in counts:
            assert_close(run(count, sized), expected, tolerance, f"{sized.sample}: {count} threads against 1")


def _larger(case: Case) -> Iterator[Case]:
    """Many panels, and one wide panel, of which kernels have work for several threads."""
    assets = None if case.op.vmap == "loop" else 130  # weights determine the length of the last axis
    with suppress(SkipCheck if isinstance(case.op, Op) else Exception):  # arguments that fit one size only
        many = 2048 if isinstance(case.op, Op) or not case.op.time else affordable_rows(case, 2048, 0.05)
        panels = ((32, many, None), (1, min(many, 512), assets)) if case.op.time else ((2048, None, None),)
        for batch, rows, width in panels:
            yield require_runs(resize(case, batch=batch, rows=rows, assets=width))


def _on_threads(count: int, case: Case) -> Tensors:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with torch.no_grad():
            return case.call()
    finally:
        torch.set_num_threads(before)


def _as_if_on_threads(count: int, case: Case) -> Tensors:
    """PyTorch works on one thread, and the operator reads another count, by which it splits its work."""
    with mock.patch.object(torch, "get_num_threads", return_value=count):
        return _on_threads(1, case)
