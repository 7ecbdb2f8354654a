"""Missing values and warm-up: NaN is where the record says, and never reaches a gradient."""

from types import CodeType

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, SkipCheck, Tensors, float_tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close, first_index
from torch_opkit._contract.foreign import masks_nan
from torch_opkit._contract.gradients import require_gradient
from torch_opkit._contract.source import python_functions
from torch_opkit._contract.values import VALUES


@register(
    "The first `warmup` rows must be NaN and, for complete input, no later row may be. Fix the operator or the "
    "`warmup` of its record.",
    depends_on=VALUES,
    needs_time=True,
)
def warmup(case: Case) -> None:
    """The first `warmup` rows are NaN, and no later row is."""
    if any(isinstance(x, Tensor) and not x.isfinite().all() for x in case.tensors):
        raise SkipCheck("the sample has missing values")
    outputs = [y.movedim(case.time[1], 0) for y in case.call()]  # time first
    if isinstance(case.warmup, int):
        pairs = [(y, case.warmup) for y in outputs]
    else:  # one output may have a warm-up for each entry of its last axis
        pairs = list(zip(outputs if len(outputs) == len(case.warmup) else outputs[0].unbind(-1), case.warmup))
    # not all of them NaN, as the correlation of a single asset with the others
    pairs = [(y, rows) for y, rows in pairs if y.is_floating_point() and not y.isnan().all()]
    for i, (y, rows) in enumerate(pairs):
        numbers = _rows_with(~y[:rows].isnan())
        assert not numbers, f"output {i}: row {numbers[0]} is not NaN, but the warm-up is {rows} rows"
        last = len(y) if case.causal else len(y) - rows  # an operator that looks ahead lacks as many rows at the end
        gaps = _rows_with(y[rows:last].isnan())
        assert not gaps, f"output {i}: row {rows + gaps[0]} is NaN, but the warm-up is {rows} rows"


def _rows_with(flags: Tensor) -> list[int]:
    """Rows in which a flag is set."""
    flags = flags.unsqueeze(-1).flatten(1)
    return flags.any(1).nonzero().flatten().tolist() if flags.numel() else []


def set_missing(case: Case, index: int, row: int) -> Case:
    """Set one value of a row of one panel to NaN."""

    def remove(x: Tensor) -> Tensor:
        x = x.clone()
        x.movedim(case.time[0], 0)[(row,) + (0,) * (x.dim() - 1)] = torch.nan
        return x

    return case.with_tensors([remove(x) if i == index else x for i, x in enumerate(case.tensors)])


def _with_missing_values(case: Case, row: int | None = None) -> list[Case]:
    """For each floating-point panel, the case with one missing value in it, in the middle row if `row` is None."""
    if not case.rows:
        raise SkipCheck("the sample has no rows")
    row = case.rows // 2 if row is None else row
    return [set_missing(case, i, row) for i in case.panel_indices if case.tensors[i].is_floating_point()]


@register(
    "Kernel and reference differ for a missing value: decide on the rule, document it, and fix one of them.",
    depends_on=VALUES,
    needs_time=True,
)
def missing_values(case: Case) -> None:
    """With a missing value, in the first row too, kernel and reference agree."""
    for row in (0, case.rows // 2):
        for missing in _with_missing_values(case, row):
            label = f"result with a missing value in row {row}"
            assert_close(missing.call(), missing.call_reference(), 1e-10, label)


def _skips_missing(case: Case, missing: Case) -> bool:
    """Whether an operator is meant to skip the missing value that `missing` has and `case` has not.

    A record is, and an operator of which it is stated. Else its code must look for NaN, or its result be without any;
    and outputs are NaN only where an input of their shape is.
    """
    if masks_nan(case.op):
        return True
    looks_for_nan = any("nan" in name for f in python_functions(case.op).values() for name in _names(f.__code__))
    complete, outputs = float_tensors(case.call()), float_tensors(missing.call())
    if not looks_for_nan and any(y.isnan().sum() > x.isnan().sum() for x, y in zip(complete, outputs)):
        return False
    for y in outputs:
        holes = [x.isnan() for x in missing.inputs() if x.shape == y.shape]
        if (y.isnan() & ~torch.stack([torch.zeros_like(y, dtype=torch.bool), *holes]).any(0)).any():
            return False
    return True


def _names(code: CodeType) -> set[str]:
    """Lower-case names of the functions and attributes that a function, or one inside of it, uses."""
    nested = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return {name.lower() for name in (*code.co_names, *code.co_freevars)}.union(*nested)


def _gradients(case: Case, at_nan: float) -> Tensors:
    """Gradients for an incoming gradient of one, and of `at_nan` where the output is NaN."""
    leaves = case.leaves()
    outputs = [y for y in float_tensors(case.outputs(*leaves)) if y.requires_grad]
    incoming = [torch.ones_like(y).masked_fill(y.isnan(), at_nan) for y in outputs]
    return torch.autograd.grad(outputs, leaves, incoming, materialize_grads=True)


@register(
    "NaN in the input reaches the gradient: 0 * NaN is NaN. Replace it before the multiplication (`torch.where`, "
    "`nan_to_num`), not by a mask afterwards.",
    depends_on=("missing_values", "gradcheck"),
    needs_time=True,
)
def missing_values_gradient(case: Case) -> None:
    """With a missing value, every gradient is finite."""
    for missing in _with_missing_values(require_gradient(case)):
        if not _skips_missing(case, missing):
            raise SkipCheck("nobody says that the operator skips missing values")
        for i, gradient in zip(missing.float_indices, _gradients(missing, 0.0)):
            at = first_index(~gradient.isfinite())
            assert at is None, f"gradient of tensor {i} at {at}: expected a finite value; got {gradient[at].item()}"


@register(
    "A NaN output passes on its incoming gradient. Make the NaN inside the operator, where the record masks it, not "
    "with `y + nan` in the public function.",
    depends_on=("missing_values_gradient",),
)
def nan_output_gradient(case: Case) -> None:
    """The incoming gradient of a NaN output is ignored."""
    require_gradient(case)
    if not masks_nan(case.op):
        written_by_hand = "backward" in python_functions(case.op) and case.op.time
        if not (written_by_hand and all(_skips_missing(case, missing) for missing in _with_missing_values(case))):
            raise SkipCheck("PyTorch's own formulas pass on NaN, or nobody says that the operator skips missing values")
    for missing in (case, *(_with_missing_values(case) if case.op.time else ())):
        expected = _gradients(missing, 0.0)
        for value in (torch.nan, 1e30):
            label = f"gradient for an incoming gradient of {value} at NaN outputs"
            assert_close(_gradients(missing, value), expected, 1e-12, label)
