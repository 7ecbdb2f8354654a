"""The same call gives the same bits, whatever was called before: no hidden state, no random numbers without a seed."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np
import torch
from torch import Tensor

from torch_opkit._contract.case import Case, Fault, Tensors, float_tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_bitwise_equal
from torch_opkit._contract.source import locate, python_functions, state_owners
from torch_opkit._contract.state import cleared, persistent_variables
from torch_opkit._op import Op

RANDOM = "The result draws from a global random generator. Take a `generator` or a `seed` as an argument."
STATE = "The result depends on earlier calls. Keep no state between calls: no globals, no attributes that a call sets."
CACHE = "The key of a cache lacks what its values depend on. A shape, an address or an `id` does not stand for values."
SHARED = (
    "What `forward` saves must belong to one call: `ctx.save_for_backward`, `ctx.name`; not the class, not a global."
)


def _reverse_all_but_first(x: Tensor) -> Tensor:
    if not x.is_floating_point() or x.numel() < 3:
        return x
    return torch.cat([x.flatten()[:1], x.flatten()[1:].flip(0)]).reshape(x.shape)


# A state may follow the largest or the smallest value so far; a key may be the sum, the extremes or the first element.
OTHER_VALUES: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: (x * 1.5).flip(0) if x.dim() and x.is_floating_point() else x,
    lambda x: x * 0.5 if x.is_floating_point() else x,
    _reverse_all_but_first,
)


@contextmanager
def fill_nan(_: Tensors = ()) -> Iterator[None]:
    """New memory is NaN, or the largest integer, so that an element that is never written shows."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")  # `use_deterministic_algorithms` would import Inductor, for seconds
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


@register(STATE, first_sample_only=True)
def deterministic(case: Case) -> None:
    """The same call gives the same bits, forward and backward, whatever was called in between."""
    if not isinstance(case.op, Op) and case.op.carries_state:
        names = ", ".join(case.op.changed_buffers)
        raise Fault("nondeterministic", f"the same call again gives another result: it changes {names}", STATE)
    with fill_nan():  # what is never written has the same bits in each call: that is another check's fault
        expected = outputs_and_gradients(case)
        _assert_same(case, expected, lambda: outputs_and_gradients(case), "the same call again")
        others = [case.map_tensors(change) for change in OTHER_VALUES]
        other = others[0]
        longer = case.map_tensors(lambda x: torch.cat([x, x[:1]]) if x.dim() else x)
        _run(other), _run(longer)
        for values in others[1:]:
            with suppress(Exception):  # refused
                _run_in_place(values.map_tensors(torch.clone))
        _assert_same(case, expected, lambda: outputs_and_gradients(case), "the same call after calls with other values")
        _assert_no_stale_cache(case, others)
        _assert_graphs_independent(case, other)


def outputs_and_gradients(case: Case) -> Tensors:
    """Outputs for copies of the tensors, and the gradients for random incoming ones; without those if backward fails.

    That backward fails is the finding of the checks of gradients.
    """
    case = case.map_tensors(torch.clone)
    with torch.no_grad():
        outputs = case.call()
    return (*_detached(outputs), *(try_gradients(case) or ()))


def try_gradients(case: Case) -> Tensors | None:
    try:
        leaves = case.leaves()
        return _backward(leaves, case.outputs(*leaves))
    except Exception:
        return None


def _backward(leaves: Tensors, outputs: Tensors) -> Tensors:
    outputs = tuple(y for y in float_tensors(outputs) if y.requires_grad)
    if not outputs:
        return ()
    generator = torch.Generator().manual_seed(0)
    incoming = [torch.randn(y.shape, generator=generator).to(y.dtype).masked_fill(y.isnan(), 0.0) for y in outputs]
    return torch.autograd.grad(outputs, leaves, incoming, materialize_grads=True)


def _detached(tensors: Tensors) -> Tensors:
    return tuple(x.detach().clone() for x in tensors if isinstance(x, Tensor))


def _run(case: Case) -> Tensors | None:
    try:
        return outputs_and_gradients(case)
    except Exception:  # other values or shapes may be refused
        return None


def _assert_same(case: Case, expected: Tensors, run: Callable[[], Tensors], label: str) -> None:
    actual = run()
    try:
        assert_bitwise_equal(actual, expected, label)
    except AssertionError as difference:
        results = []
        for _ in range(2):
            torch.manual_seed(0)
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002  # the generator that an operator without a seed draws from
            results.append(run())
        fix = RANDOM if _equal(*results) else STATE
        raise Fault("nondeterministic", str(difference), fix, locate(case.op)) from None


def _equal(actual: Tensors, expected: Tensors) -> bool:
    try:
        assert_bitwise_equal(actual, expected, "")
    except AssertionError:
        return False
    return True


def _assert_no_stale_cache(case: Case, others: Sequence[Case]) -> None:
    other = others[0]
    if _run(other) is None:
        return
    refilled = case.map_tensors(torch.clone)
    _run_in_place(refilled)

    def at_new_address(x: Tensor) -> Tensor:  # a copy at the start of a larger block, where no earlier tensor lay
        return x.new_empty(x.numel() + 4096)[: x.numel()].view(x.shape).copy_(x)

    moved = [values.map_tensors(at_new_address) for values in (other, case)]  # alive together: at two addresses
    for values in moved:  # both, as an earlier tensor may have left the right result at the refilled address
        for x, y in zip(refilled.tensors, values.tensors):  # before a call, which may write to its arguments
            if isinstance(x, Tensor):
                x.copy_(y)
        elsewhere = _run_in_place(values)
        _assert_fresh(_run_in_place(refilled), elsewhere, "new values in the same tensors", case)
    functions = [*python_functions(case.op).values(), *python_functions(case.cases.function).values()]
    for variable in persistent_variables(functions, state_owners(case.op)):
        for values in others:
            expected = _run(values)
            with cleared(variable):
                actual = _run(values)
                filled = variable.is_filled()  # a constant stays empty, and is no cache
            if filled and actual is not None and expected is not None:
                _assert_fresh(expected, actual, f"with what earlier calls left in {variable.name}", case)


def _run_in_place(case: Case) -> Tensors:
    with torch.no_grad():
        return _detached(case.call())


def _assert_fresh(actual: Tensors, expected: Tensors, label: str, case: Case) -> None:
    try:
        assert_bitwise_equal(actual, expected, label)
    except AssertionError as difference:
        raise Fault("stale_cache", str(difference), CACHE, locate(case.op)) from None


def _assert_graphs_independent(case: Case, other: Case) -> None:
    """Two forward passes, then the backward pass of the first."""
    expected = try_gradients(case)
    if not expected or not try_gradients(other):
        return
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    copies = _detached(outputs)
    other.outputs(*other.leaves())
    if not _equal(outputs, copies):
        return  # both calls return the same memory: the finding of no_aliasing
    try:
        assert_bitwise_equal(_backward(leaves, outputs), expected, "gradient after another forward pass")
    except Exception as error:
        raise Fault("shared_state", str(error), SHARED, locate(case.op, "backward")) from None
