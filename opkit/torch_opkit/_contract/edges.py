"""Edges of a panel: short, empty and narrow ones, several batch axes or none."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, Fault, SkipCheck, Tensors
from torch_opkit._contract.checks import describe_error, register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.source import locate_error
from torch_opkit._contract.support import ignore_refusal
from torch_opkit._contract.values import VALUES
from torch_opkit._op import Op

MOST_ROWS = 24  # of the short series that are compared with a longer one


def _assert_correct_or_rejected(case: Case, label: str) -> None:
    """Compare with the reference, if there is one; or accept an error in words.

    The reference of a record is called through the same public function, so the shape of the outputs is checked too.
    """
    try:
        outputs = case.call()
    except Exception as error:
        _require_refusal(case, error, label)
        return
    if case.op.time:
        (input_axis, output_axis), first = case.time, case.tensors[0]
        for y in outputs:
            valid = y.dim() == first.dim() + input_axis - output_axis and y.shape[output_axis] == case.rows
            expected = f"{case.rows} rows on axis {output_axis} after the batch axes"
            assert valid, f"{label}: expected {expected}; got output {tuple(y.shape)}"
    if not isinstance(case.op, Op) and not case.op.reference:
        return
    try:
        reference = case.call_reference()
    except Exception as error:
        if not isinstance(case.op, Op):
            raise SkipCheck(f"{label}: the reference does not run: {describe_error(error)}") from error
        raise AssertionError(f"{label}: the reference, which runs on other devices, fails: {error}") from error
    assert_close(outputs, reference, 1e-10, label)


def _require_refusal(case: Case, error: Exception, label: str) -> None:
    """A record raises a ValueError that names it; another operator any error in words, its own or PyTorch's."""
    if not isinstance(case.op, Op):
        if isinstance(error, (ValueError, TypeError, RuntimeError)):
            return
        raise Fault("crash", f"{label}: {describe_error(error)}", location=locate_error(error)) from error
    if not isinstance(error, ValueError):
        raise error
    if case.op.name not in str(error):
        raise AssertionError(f"{label}: the error does not name the operator: {error}") from error


def _head(case: Case, rows: int) -> Case:
    return case.map_panels(lambda x: x.narrow(case.time[0], 0, rows).contiguous())


@register(
    "A series shorter than the window is all warm-up: return NaN rows, or raise an error that names the operator.",
    depends_on=(*VALUES, "causal"),
    needs_time=True,
)
def short_series(case: Case) -> None:
    """Fewer rows than the window, down to one: correct, or an error that names the operator."""
    warmup = longest_warmup(case)
    for rows in sorted({1, 2, warmup, warmup + 1} & set(range(1, case.rows))):
        _assert_correct_or_rejected(_head(case, rows), f"T = {rows}")
    if not isinstance(case.op, Op) and case.causal and "causal" not in case.op.guesses:
        _assert_start_of_longer(case)


def _assert_start_of_longer(case: Case) -> None:
    """Without a definition: a causal operator gives a short series the rows with which a longer one starts."""
    expected = case.call()
    for rows in range(1, min(case.rows, MOST_ROWS)):
        with ignore_refusal():
            actual = _head(case, rows).call()
            start = [y.narrow(case.time[1], 0, rows) for y in expected]
            assert_close(actual, start, 1e-9, f"T = {rows}, against the first rows of T = {case.rows}")


def longest_warmup(case: Case) -> int:
    try:
        return case.warmup if isinstance(case.warmup, int) else max(case.warmup, default=0)
    except SkipCheck:  # not stated
        return 0


@register(
    "T = 0 must return an output without rows, or raise an error that names the operator: guard the first row.",
    depends_on=VALUES,
    needs_time=True,
)
def zero_rows(case: Case) -> None:
    """T = 0: correct, or an error that names the operator."""
    _assert_correct_or_rejected(_head(case, 0), "T = 0")


@register("N = 1 must work as any other number of assets: do not squeeze.", depends_on=VALUES, needs_time=True)
def one_asset(case: Case) -> None:
    """N = 1: correct, or an error that names the operator."""
    width, time = case.tensors[0].shape[-1], case.time[0]
    if case.op.vmap == "loop":
        raise SkipCheck("the record says vmap='loop': weights determine the length of the last axis")

    def narrow(i: int, x: Tensor) -> Tensor:
        for axis in range(1 + time if i in case.panel_indices else -1, 0):
            x = x.narrow(axis, 0, 1) if x.dim() >= -axis and x.shape[axis] == width else x
        return x.contiguous()

    tensors = [narrow(i, x) if isinstance(x, Tensor) else x for i, x in enumerate(case.tensors)]
    _assert_correct_or_rejected(case.with_tensors(tensors), "N = 1")


def batch_layout(case: Case) -> tuple[int, list[int]]:
    """Number of batch axes of the first tensor, and indices of the tensors that have the first batch axis."""
    axes = case.num_batch_axes
    if axes < 1:
        raise SkipCheck("the sample has no batch axis")
    length, width, batched = case.tensors[0].shape[0], case.tensors[0].shape[-1], []
    one_number_each = case.op.vmap == "batch" and length != width  # else a vector may have one number for each asset
    for i, x in enumerate(case.tensors[: case.num_inputs]):
        is_panel = i in case.panel_indices
        has_axes = x is not None and (x.dim() + case.time[0] == axes if is_panel else x.dim() >= axes)
        if has_axes and x.shape[0] == length and (is_panel or x.dim() > 1 or one_number_each):
            batched.append(i)
    return axes, batched


def _map_indices(case: Case, indices: list[int], change: Callable[[Tensor], Tensor]) -> Case:
    return case.with_tensors([change(x) if i in indices else x for i, x in enumerate(case.tensors)])


@register(
    "B = 0 must return an output with an empty batch: do not index the first sample or divide by the batch size.",
    depends_on=VALUES,
)
def empty_batch(case: Case) -> None:
    """B = 0: correct, or an error that names the operator."""
    _, batched = batch_layout(case)
    if not isinstance(case.op, Op) and case.op.vmap == "loop":
        raise SkipCheck(
            "the first axis is not a batch axis: samples depend on each other, or it fits no other argument"
        )
    if not isinstance(case.op, Op) and len(case.float_indices) < len([x for x in case.tensors if x is not None]):
        raise SkipCheck("an index would point outside of an empty batch")
    _assert_correct_or_rejected(_map_indices(case, batched, lambda x: x[:0].contiguous()), "B = 0")


@register(
    "Count axes from the end (-2 is time): all leading axes are batch axes.",
    depends_on=VALUES,
    needs_time=True,
)
def batch_axes(case: Case) -> None:
    """Two batch axes, or none, give the result of one; samples of a foreign operator do not mix."""
    axes, batched = batch_layout(case)
    expected = case.call()
    if not isinstance(case.op, Op):
        return _assert_samples_independent(case, batched, expected)
    doubled = _map_indices(case, batched, lambda x: torch.stack([x, x]))
    assert_close([y[1] for y in doubled.call()], expected, 1e-12, "two batch axes")
    if axes == 1 and len(batched) == len([x for x in case.tensors if isinstance(x, Tensor)]):
        single = _map_indices(case, batched, lambda x: x[0])
        assert_close(single.call(), [y[0] for y in expected], 1e-12, "no batch axis")
    return None


def _assert_samples_independent(case: Case, batched: list[int], expected: Tensors) -> None:
    """Change all samples but the first. Only with the stated axis of time: else an axis may be of channels or units."""
    first = case.tensors[0]
    guesses = {} if isinstance(case.op, Op) else case.op.guesses
    if "time" in guesses or case.num_batch_axes != 1 or first.dim() < 3 or first.shape[0] < 2:
        raise SkipCheck("no axis is known to be a batch: state time=, and pass samples (batch, ...) with it")
    others = _map_indices(case, batched, lambda x: torch.cat([x[:1], 1.25 * x[1:].flip(-1)]).to(x.dtype))
    for i, (x, y) in enumerate(zip(others.call(), expected)):
        if y.dim() and y.shape[0] == first.shape[0]:
            try:
                assert_close([x[0]], [y[0]], 1e-9, f"output {i} of the first sample, with other samples beside it")
            except AssertionError as error:
                raise Fault("batch_mixed", str(error)) from None
