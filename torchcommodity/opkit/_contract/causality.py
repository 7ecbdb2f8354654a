"""Row t depends on rows up to t only, in every bit and in every gradient."""

from collections.abc import Callable, Iterable
from itertools import product

import torch
from torch import Tensor

from torchcommodity.opkit._contract.case import Case, SkipCheck, Tensors
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_bitwise_equal
from torchcommodity.opkit._contract.gradients import require_gradient
from torchcommodity.opkit._contract.resize import require_runs, resize
from torchcommodity.opkit._contract.values import VALUES
from torchcommodity.opkit._op import Op

FUTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "other values": lambda later: later.flip(0) + 0.25 * later.abs(),
    "missing values": lambda later: torch.full_like(later, torch.nan),
    "huge values": lambda later: later * 1e8,
}


def _without_new_nan(before: Tensor, after: Tensor) -> Tensor:
    return torch.where(after.isnan(), before, after) if after.is_floating_point() else after


def _past(case: Case, outputs: Tensors, last: int) -> list[Tensor]:
    return [y.narrow(case.time[1], 0, last + 1) for y in outputs]


def _replace_future(case: Case, last: int, name: str) -> Case:
    def change(x: Tensor) -> Tensor:
        time_first = x.clone().movedim(case.time[0], 0)
        if x.is_floating_point():
            time_first[last + 1 :] = FUTURES[name](time_first[last + 1 :])
        return time_first.movedim(0, case.time[0])

    return case.map_panels(change)


@register(
    "Row t reads a row after t: look for a centered window, a `flip`, a mean over all rows, an index off by one. "
    "An operator that must look ahead says `causal=False` in its record.",
    depends_on=VALUES,
    needs_time=True,
)
def causal(case: Case) -> None:
    """Rows up to t stay bitwise equal if rows after t change; an operator with `causal=False` does look ahead."""
    leaks = _leaks(case, range(case.rows - 1))
    if case.causal:
        leaks += _leaks_with_holes(case)
        leaks += _leaks_in_large(case)
    if case.causal and leaks:
        raise leaks[0]
    assert case.causal or leaks, "the record says causal=False, but no row looks ahead: set causal=True"


def _enlarge(case: Case) -> Case:
    """More rows and columns: kernels may work in blocks or vectors there, and round differently."""
    fixed_width = case.op.vmap == "loop" or not isinstance(case.tensors[0], Tensor)
    return resize(case, rows=300, assets=None if fixed_width else 70)


def _leaks_in_large(case: Case) -> list[AssertionError]:
    try:
        large = require_runs(_enlarge(case))
    except SkipCheck:
        return []
    return _leaks(large, (large.rows // 3, large.rows - 2))


def _leaks_with_holes(case: Case) -> list[AssertionError]:
    """Leaks past one missing row, or two, which a backward fill or an interpolation takes from later rows."""
    last, leaks = case.rows // 2, list[AssertionError]()
    for first in {last, max(last - 1, 0)}:
        rows = slice(first, last + 1)
        holes = case.map_panels(lambda x, rows=rows: _set_rows(x, case.time[0], rows, torch.nan))  # type: ignore[misc]
        try:
            leaks += _leaks(holes, (last,))
        except Exception:  # refuses missing values
            continue
    return leaks


def _set_rows(x: Tensor, axis: int, rows: slice, value: float) -> Tensor:
    if not x.is_floating_point():
        return x
    x = x.clone()
    x.movedim(axis, 0)[rows] = value
    return x


def _leaks(case: Case, cuts: Iterable[int]) -> list[AssertionError]:
    expected, leaks = case.call(), []
    for last, name in product(cuts, FUTURES):
        actual = _past(case, _replace_future(case, last, name).call(), last)
        past = _past(case, expected, last)
        if name == "missing values" and not isinstance(case.op, Op):  # 0 * NaN in a masked product is no look-ahead
            actual = [_without_new_nan(x, y) for x, y in zip(past, actual)]
        try:
            assert_bitwise_equal(actual, past, f"{name} after row {last} of {case.rows}: rows up to {last}")
        except AssertionError as leak:
            leaks.append(leak)
    return leaks


@register(
    "The gradient of an earlier output reaches a later input: the backward formula looks ahead.",
    depends_on=("causal", "gradcheck"),
    needs_time=True,
)
def causal_gradient(case: Case) -> None:
    """d y[t] / d x[t + k] is exactly zero."""
    if not require_gradient(case).causal:
        raise SkipCheck("the record says causal=False")
    input_axis, output_axis = case.time
    for last in range(case.rows - 1):
        leaves = case.leaves()
        past = [y.narrow(output_axis, 0, last + 1).sin().sum() for y in case.finite_outputs(*leaves)]
        gradients = torch.autograd.grad(torch.stack(past).sum(), leaves, materialize_grads=True)
        for i, gradient in zip(case.float_indices, gradients):
            if i not in case.panel_indices:
                continue
            later = gradient.narrow(input_axis, last + 1, case.rows - last - 1)
            largest = later.abs().max().item() if later.numel() else 0.0
            message = f"d y[..{last}] / d (tensor {i})[{last + 1}..]: expected 0; got up to {largest:.3g}"
            assert largest == 0, message
