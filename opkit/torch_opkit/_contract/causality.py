"""Row t depends on rows up to t only, in every bit and in every gradient."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, SkipCheck, Tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_bitwise_equal
from torch_opkit._contract.gradients import require_gradient
from torch_opkit._contract.resize import require_runs, resize
from torch_opkit._contract.values import VALUES
from torch_opkit._op import Op

FUTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "other values": lambda later: later.flip(0) + 0.25 * later.abs(),
    "missing values": lambda later: torch.full_like(later, torch.nan),
    "huge values": lambda later: later * 1e8,
}


def _past(case: Case, outputs: Tensors, last: int) -> list[Tensor]:
    return [y.narrow(case.time[1], 0, last + 1) for y in outputs]


def _replace_rows(case: Case, rows: slice, values: Callable[[Tensor], Tensor | float]) -> Case:
    """The case with other values, a function of the values that are there, in some rows of floating-point panels."""

    def replace(x: Tensor) -> Tensor:
        time_first = x.clone().movedim(case.time[0], 0)
        if x.is_floating_point():
            time_first[rows] = values(time_first[rows])
        return time_first.movedim(0, case.time[0])

    return case.map_panels(replace)


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
        middle = case.rows // 2
        for first in {middle, max(middle - 1, 0)}:  # missing rows, which a backward fill takes from later ones
            with suppress(Exception):  # refuses missing values
                leaks += _leaks(_replace_rows(case, slice(first, middle + 1), lambda x: torch.nan), (middle,))
        # more rows and columns: kernels may work in blocks or vectors there, and round differently
        fixed_width = case.op.vmap == "loop" or not isinstance(case.tensors[0], Tensor)
        with suppress(SkipCheck):
            large = require_runs(resize(case, rows=300, assets=None if fixed_width else 70))
            leaks += _leaks(large, (large.rows // 3, large.rows - 2))
    if case.causal and leaks:
        raise leaks[0]
    assert case.causal or leaks, "the record says causal=False, but no row looks ahead: set causal=True"


def _leaks(case: Case, cuts: Iterable[int]) -> list[AssertionError]:
    expected, leaks = case.call(), []
    for last, name in product(cuts, FUTURES):
        changed = _replace_rows(case, slice(last + 1, None), FUTURES[name])
        actual, past = _past(case, changed.call(), last), _past(case, expected, last)
        if name == "missing values" and not isinstance(case.op, Op):  # 0 * NaN in a masked product is no look-ahead
            pairs = zip(past, actual)
            actual = [torch.where(y.isnan(), x, y) if y.is_floating_point() else y for x, y in pairs]
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
            if not isinstance(case.op, Op):  # PyTorch's own formulas give NaN where an output is NaN
                later = later.nan_to_num(0.0)
            largest = later.abs().max().item() if later.numel() else 0.0
            message = f"d y[..{last}] / d (tensor {i})[{last + 1}..]: expected 0; got up to {largest:.3g}"
            assert largest == 0, message
