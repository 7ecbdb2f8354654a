"""An operator on a device without float64, in float32, against the CPU, which computes in float64 from the same values.

A row of the comparison is a variant of a sample (a missing value, a layout, a size, a level) and a quantity (values,
gradients, transforms). `differences` runs them all on one case of the contract.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, func
from torch.autograd import forward_ad

from torch_opkit._contract.case import Case, SkipCheck, Tensors
from torch_opkit._contract.compare import first_index
from torch_opkit._contract.edges import _head, _map_indices, batch_layout, longest_warmup
from torch_opkit._contract.layouts import LAYOUTS
from torch_opkit._contract.missing import set_missing
from torch_opkit._contract.precision import LARGE, at_level
from torch_opkit._contract.resize import repeat_to
from torch_opkit._contract.transforms import _stack_samples, _vmap
from torch_opkit._contract.values import to_double, to_float

VALUES = 1e-5  # relative to each element and to the median size of the tensor
GRADIENTS = 1e-4
FOUR_DIGITS = 1e-4
FLOOR = 1e-3  # as in the contract

Quantity = Callable[[Case], Any]
Rows = Iterator[tuple[str, Case]]


def _second_derivative(case: Case) -> Tensors:
    leaves = case.leaves()
    first = torch.autograd.grad(case.loss(*leaves), leaves, create_graph=True, materialize_grads=True)
    total = torch.stack([(g * torch.arange(g.numel()).cos().reshape(g.shape).to(g)).sum() for g in first]).sum()
    return torch.autograd.grad(total, leaves, materialize_grads=True)


def _tangents(case: Case) -> Tensors:
    return tuple(x.nan_to_num(0.0).cos() for x in case.inputs())


def _forward_mode(case: Case) -> Tensors:
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x.detach(), t) for x, t in zip(case.inputs(), _tangents(case))]
        outputs = [forward_ad.unpack_dual(y) for y in case.finite_outputs(*duals)]
    return tuple(torch.zeros_like(y.primal) if y.tangent is None else y.tangent for y in outputs)


def _func_grad(case: Case) -> Tensors:
    gradients: Tensors = func.grad(case.loss, tuple(range(len(case.float_indices))))(*case.inputs())
    return gradients


def _vmapped(case: Case) -> Any:
    tensors = _stack_samples(case)
    return _vmap(case.call, tensors, (0,) * len(tensors))


DERIVATIVES: dict[str, Quantity] = {
    "gradient": lambda case: case.gradients(),
    "second derivative": _second_derivative,
    "forward mode": _forward_mode,
    "func.grad": _func_grad,
}


def _layouts(case: Case) -> Rows:
    for name, change in LAYOUTS.items():
        if name != "row-expanded":  # equal rows have no correlation, and the sample of its gradient states one
            yield f"{name} input", case.map_tensors(change)


def _edges(case: Case) -> Rows:
    if case.op.time:
        for rows in sorted({0, 1, 2, longest_warmup(case), longest_warmup(case) + 1} & set(range(case.rows))):
            yield f"T = {rows}", _head(case, rows)
    try:
        axes, batched = batch_layout(case)
    except SkipCheck:
        return
    yield "B = 0", _map_indices(case, batched, lambda x: x[:0].contiguous())
    if case.op.time:
        yield "two batch axes", _map_indices(case, batched, lambda x: torch.stack([x, x]))
        if axes == 1 and len(batched) == len([x for x in case.tensors if isinstance(x, Tensor)]):
            yield "no batch axis", _map_indices(case, batched, lambda x: x[0])
    if case.op.time and case.op.vmap != "loop":
        width = case.tensors[0].shape[-1]
        yield "N = 1", case.map_tensors(lambda x: _narrow(x, width))


def _narrow(x: Tensor, width: int) -> Tensor:
    for axis in range(-1, -min(x.dim(), 2) - 1, -1):
        x = x.narrow(axis, 0, 1) if x.shape[axis] == width else x
    return x.contiguous()


def _missing(case: Case) -> Rows:
    for i in case.panel_indices if case.rows else ():
        if case.tensors[i].is_floating_point():
            yield f"a missing value in tensor {i}", set_missing(case, i, case.rows // 2)


def _levels(case: Case) -> Rows:
    if "sin %" in str(case.sample):  # no digit of the sine of a million is right in float32
        return
    for i in case.panel_indices if case.op.time else ():
        if case.tensors[i].is_floating_point():
            level = [at_level(x, 1e6, 1.0) if j == i else x for j, x in enumerate(case.tensors)]
            yield f"tensor {i} at a level of 1e6", case.with_tensors(level).map_tensors(to_float)


def _long(case: Case, rows: int) -> Rows:
    if case.op.time:
        yield f"{rows} rows", case.map_panels(lambda x: repeat_to(x, case.time[0], rows))


def differences(case: Case, device: str, missing: bool = True, long: int = 0) -> Iterator[str]:
    """What differs on the device, in words.

    Args:
        case: the operator on one sample.
        device: name of the device.
        missing: also with a missing value in each tensor, and whether the call has side effects.
        long: length of a long series; 0: values and gradients only. One sample suffices for layouts, sizes, levels,
            lengths and transforms.
    """
    single = case.map_tensors(to_float)
    if missing:
        yield from _side_effects(single, device)
    for label, row in [("", single), *(_missing(single) if missing else ())]:
        yield from _compare(label, row, device, "value", Case.call, VALUES)
        if case.op.backward and case.float_indices:
            all_of_them = long and not label and not getattr(case.op, "once_differentiable", False)
            quantities = DERIVATIVES if all_of_them else ["gradient"]
            for name in quantities:
                yield from _compare(label, row, device, name, DERIVATIVES[name], GRADIENTS)
    if not long:
        return
    for label, row in [*_layouts(single), *_edges(single)]:
        yield from _compare(label, row, device, "value", Case.call, VALUES)
    for label, row in [*_levels(single), *_long(single, long)]:
        yield from _compare(label, row, device, "value", Case.call, FOUR_DIGITS, by_column=True)
    yield from _compare("", single, device, "vmap", _vmapped, VALUES)


def plain_differences(case: Case, device: str) -> Iterator[str]:
    """What differs in values and gradients, on the sample and with a missing value."""
    for label, row in [("", case), *_missing(case)]:
        yield from _compare(label, row, device, "value", Case.call, VALUES)
        yield from _compare(label, row, device, "gradient", DERIVATIVES["gradient"], GRADIENTS)


def _side_effects(case: Case, device: str) -> Iterator[str]:
    """A reference that widens its input gets the input itself here, where nothing is wider."""
    before = case.map_tensors(lambda x: x.to(device).clone())
    try:
        with torch.no_grad():
            outputs = before.call()
    except Exception:  # which the rows of values report
        return
    values = [y.cpu().clone() for y in outputs]
    pairs = [(x.cpu(), y) for x, y in zip(before.tensors, case.tensors) if isinstance(y, Tensor)]
    if not all(torch.equal(x.nan_to_num(7.0), y.nan_to_num(7.0)) for x, y in pairs):
        yield "an input is changed"
    before.map_tensors(lambda x: x.zero_())
    if not all(torch.equal(x.cpu().nan_to_num(7.0), y.nan_to_num(7.0)) for x, y in zip(outputs, values)):
        yield "an output shares memory with an input"


def _compare(
    label: str, case: Case, device: str, name: str, quantity: Quantity, tolerance: float, by_column: bool = False
) -> Iterator[str]:
    label = f"{name}, {label}" if label else name
    try:
        expected = quantity(case.map_tensors(to_double))
    except ValueError as refusal:
        expected = str(refusal)
    except RuntimeError:  # an incompatible layout of a weight, in a matrix product
        return
    try:
        actual = quantity(case.map_tensors(lambda x: x.to(device)))
    except Exception as error:
        if str(error) != expected:
            yield f"{label}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return
    if isinstance(expected, str):
        yield f"{label}: expected {expected}"
        return
    axis = case.time[1] if by_column else None
    for i, (x, y) in enumerate(zip(actual, expected, strict=True)):
        yield from (f"{label}, output {i}: {words}" for words in _difference(x, y, device, tolerance, axis))


def _difference(x: Tensor, y: Tensor, device: str, tolerance: float, axis: int | None) -> Iterator[str]:
    if x.device.type != torch.device(device).type or x.shape != y.shape:
        yield f"expected {tuple(y.shape)} on {device}; got {tuple(x.shape)} on {x.device}"
        return
    x = x.detach().cpu()
    dtype = torch.float32 if y.is_floating_point() else y.dtype
    if x.dtype != dtype:
        yield f"expected {dtype}; got {x.dtype}"
    x, y = x.double(), y.detach().double()
    valid = y.isfinite() & (y.abs() < LARGE)
    error = (x - y).abs().where(valid, torch.where((x == y) | (x.isnan() & y.isnan()) | ~y.isnan(), 0.0, torch.inf))
    allowed = tolerance * (y.abs() + _scale(y.where(valid, torch.nan).abs(), axis)).nan_to_num(0.0)
    at = first_index(~(error <= allowed))
    if at is not None:
        worst = (error / allowed.clamp(min=1e-300)).nan_to_num(torch.inf).max().item() * tolerance
        count = int((~(error <= allowed)).sum())
        yield f"expected {y[at].item():.8g} at {at}; got {x[at].item():.8g}; {count} of {x.numel()}, worst {worst:.1e}"


def _scale(sizes: Tensor, axis: int | None) -> Tensor:
    """The median size of each column in time, or of the tensor."""
    if axis is not None and sizes.numel():
        return sizes.nanmedian(axis, keepdim=True).values.nan_to_num(0.0)
    sizes = sizes[sizes > 0]
    return sizes.median().clamp(min=FLOOR) if sizes.numel() else torch.tensor(FLOOR, dtype=torch.double)


def run_quietly(function: Callable[[], Iterator[str]]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(function())
