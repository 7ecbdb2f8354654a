"""Recurrent layers over a sequence: argument checks, projection of the input onto the gates, and the operators."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Cases, Op, Sample, vjp
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._scan.linear_recurrence_backward import next_rows
from torchcommodity.ops._scan.scan import Tensors, scan

CellState = tuple[Tensor, Tensor]  # h and c, (..., H) each
Argument = tuple[str, Tensor | None, tuple[Any, ...]]  # name, value, shape that it must have
CellStep = Callable[[Tensor, Tensor], CellState]  # gates, c -> next h and c
CellStepBackward = Callable[..., tuple[Tensor, Tensor]]  # gates, previous c, c, d_h, d_c -> d_gates, previous d_c
LayerOutputs = tuple[Tensor, Tensor, Tensor]  # h, c, and for the backward pass the activations of the gates


class Cell(NamedTuple):
    """The arithmetic of a cell with so many gates; `advance` and `gradients` take the activations of the gates."""

    gates: int
    activate: Callable[[Tensor], Tensors]
    advance: Callable[[Tensors, Tensor], CellState]
    gradients: CellStepBackward

    def step(self, z: Tensor, c: Tensor) -> CellState:
        return self.advance(self.activate(z), c)

    def step_backward(self, z: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        return self.gradients(self.activate(z), *tensors)

    def slopes(self, activations: Tensors, c_before: Tensor, c: Tensor, missing: Tensor) -> tuple[Tensor, Tensor]:
        """Derivatives of h and c in every row by its gates, (..., T, 2, gates, H), and by c before, (..., T, 2, H)."""
        present, one, zero = ~missing.unsqueeze(-1), torch.ones_like(c), torch.zeros_like(c)
        slopes = [self.gradients(activations, c_before, c, *cotangents) for cotangents in ((one, zero), (zero, one))]
        by_gates = torch.stack([x.where(present, 0) for x, _ in slopes], -2).unflatten(-1, (-1, c.shape[-1]))
        return by_gates, torch.stack([x.where(present, i) for i, (_, x) in enumerate(slopes)], -2)


def check_state(operator: str, input: Any, hx: Any) -> CellState:
    """h and c of the argument hx; an error if the input is no Tensor, or hx no pair of them."""
    if not isinstance(input, Tensor):
        raise_invalid(operator, "input must be a Tensor", TypeError, input=type(input).__name__)
    if not (isinstance(hx, (tuple, list)) and len(hx) == 2 and isinstance(hx[0], Tensor) and isinstance(hx[1], Tensor)):
        raise_invalid(operator, "hx must be a pair of Tensors, (h, c)", TypeError, hx=hx)
    h, c = hx
    return h, c


def check_tensors(operator: str, *arguments: Argument) -> bool:
    """Check dtypes, shapes and devices; return whether autocast is enabled, under which the dtypes may differ."""
    first = arguments[0][1]
    assert first is not None
    dtype, device, mixed = first.dtype, first.device, _autocast(first)
    valid = dtype.is_floating_point
    for _, x, shape in arguments:
        if x is not None:  # this takes a microsecond for each tensor, which a step of a cell notices
            valid = valid and isinstance(x, Tensor) and x.dtype is dtype and x.shape == shape and x.device == device
    if not valid:
        _check_each(operator, dtype, device, mixed, *arguments)
    return mixed


def _check_each(operator: str, dtype: torch.dtype, device: torch.device, mixed: bool, *arguments: Argument) -> None:
    for name, x, shape in arguments:
        if x is None:
            continue
        if not isinstance(x, Tensor):
            raise_invalid(operator, f"{name} must be a Tensor", TypeError, **{name: type(x).__name__})
        if not x.dtype.is_floating_point:
            raise_invalid(operator, f"{name} must be floating-point", TypeError, dtype=x.dtype, **{name: x})
        if x.shape != shape:
            present = {name: x for name, x, _ in arguments if x is not None}
            raise_invalid(operator, f"{name} must be {tuple(map(int, shape))}", **present)
        if (x.dtype is not dtype and not mixed) or x.device != device:
            kinds = {f"{name}_is": f"{x.dtype} on {x.device}" for name, x, _ in arguments if x is not None}
            raise_invalid(operator, "all tensors must have one dtype and one device", TypeError, **kinds)


def run_layer(operator: Op, mixed: bool, *tensors: Tensor | None, settings: tuple[bool, ...] = ()) -> CellState:
    """The first two outputs; under autocast, `mixed`, without it: it would compute products in half precision."""
    if not mixed:
        h, c, *_ = operator(*tensors, *settings)
        return h, c
    first = tensors[0]
    assert first is not None
    with torch.autocast(first.device.type, enabled=False):
        h, c, *_ = operator(*[None if x is None else x.float() for x in tensors], *settings)
    return h, c


def run_sequence(operator: Op, mixed: bool, *tensors: Tensor | None) -> CellState:
    """Save the gates where a backward pass is likely; one that does not find them computes them again."""
    recorded = torch.is_grad_enabled() and not torch.compiler.is_exporting()
    save_gates = recorded and any(x is not None and x.requires_grad for x in tensors)
    return run_layer(operator, mixed, *tensors, settings=(save_gates,))


def _autocast(x: Tensor) -> bool:
    return not x.is_meta and torch.is_autocast_enabled("cpu" if x.is_cpu else x.device.type)  # the name takes time


def without_missing(input: Tensor) -> tuple[Tensor, Tensor]:
    """The input with zeros in rows (or samples) that contain a NaN, and the mask of these rows."""
    missing = input.detach().amax(-1).isnan()  # three times as fast as isnan().any(-1)
    if input.requires_grad:  # the backward pass of nan_to_num is slow
        return input.masked_fill(missing.unsqueeze(-1), 0), missing
    return nan_to_zero(input), missing


def nan_to_zero(x: Tensor) -> Tensor:
    """For products with the gradients of gates, which are zero in missing rows: zero times NaN is NaN."""
    return x.nan_to_num(0.0, posinf=torch.inf, neginf=-torch.inf)


def mask_nan_states(h: Tensor, *gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenated gradients of the gates, and the gradient of c; zero where the state h is NaN."""
    *d_z, d_c = (torch.where(h.isnan(), 0.0, gradient) for gradient in gradients)
    return torch.cat(d_z, -1), d_c


def with_last_state(h: Tensor, c: Tensor, hx: CellState) -> tuple[Tensor, CellState]:
    """The output, and the state after the last row, which is the initial one if T = 0."""
    return h, ((h.select(-2, -1), c.select(-2, -1)) if h.shape[-2] else (hx[0].clone(), hx[1].clone()))


def make_operator(name: str, cell: Cell, cases: Callable[[], Cases]) -> Op:
    """Register the operators `name` and `name`_backward of a cell; return the first.

    The backward operator takes c and the activations of the gates to avoid recomputing them; they are functions of its
    other arguments.
    """

    def layer_by(
        recur: Callable[..., CellState],  # `_run` or `_scan`
        input: Tensor,
        h0: Tensor,
        c0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor | None,
        save_gates: bool,
    ) -> LayerOutputs:
        filled, missing = without_missing(input)
        projected = F.linear(filled, weight_ih, bias)
        h, c = recur(cell.step, projected, missing, weight_hh, h0, c0)
        if not save_gates:
            return h, c, h.new_empty((*h.shape[:-1], 0))
        z = projected + F.linear(_rows_before(h, h0), weight_hh)
        return h, c, torch.cat(cell.activate(z), -1).masked_fill(missing.unsqueeze(-1), 0)

    def reference(
        input: Tensor,  # (..., T, F)
        h0: Tensor,  # (..., H)
        c0: Tensor,  # (..., H)
        weight_ih: Tensor,  # (gates * H, F)
        weight_hh: Tensor,  # (gates * H, H)
        bias: Tensor | None,  # (gates * H,)
        save_gates: bool = False,
    ) -> LayerOutputs:
        return layer_by(_run, input, h0, c0, weight_ih, weight_hh, bias, save_gates)

    def fake(input: Tensor, h0: Tensor, save_gates: bool) -> LayerOutputs:
        widths = h0.shape[-1], h0.shape[-1], cell.gates * h0.shape[-1] if save_gates else 0
        h, c, gates = (input.new_empty((*input.shape[:-1], width)) for width in widths)
        return h, c, gates

    def backward(
        *grads: Tensor | None,  # that of the activations is not used
        input: Tensor,
        h0: Tensor,
        c0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor | None,
        output: LayerOutputs,
        needs_input_grad: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        # with dz_t = d_gates_t: dx = dz W_ih, dW_ih = sum_t dz_t x_t', dW_hh = sum_t dz_t h_{t-1}', db = sum_t dz_t
        h, c, gates = output
        layer = input, h0, c0, weight_ih, weight_hh, bias
        if not gates.shape[-1]:
            gates = operator(*layer, True)[2]
        grad_h, grad_c = (torch.zeros_like(h) if grad is None else grad for grad in grads[:2])
        d_gates, d_h0, d_c0 = backward_operator(grad_h, grad_c, *layer, c, gates)
        needs_input, _, _, needs_ih, needs_hh, needs_bias = needs_input_grad
        rows, d_ih, d_hh = d_gates.flatten(0, -2), None, None
        if needs_ih or needs_hh:  # as one product, which is faster than one of a few features
            joined = torch.cat([input, _rows_before(h, h0)], -1).flatten(0, -2)
            d_ih, d_hh = (nan_to_zero(joined).mT @ rows).mT.tensor_split([input.shape[-1]], -1)
        d_input = d_gates @ weight_ih if needs_input else None
        return d_input, d_h0, d_c0, d_ih, d_hh, rows.sum(0) if needs_bias else None

    def backward_cases() -> Cases:
        return _backward_cases(forward, backward_operator, cell.gates)

    def forward(*layer: Tensor | None) -> LayerOutputs:
        h, c, gates = operator(*layer, True)
        return h, c, gates

    backward_operator: Op = _make_backward_operator(name, cell, forward, backward_cases)
    operator: Op = Op(
        f"commodity::{name}",
        reference=reference,
        fake=fake,
        backward=backward,
        decomposition=partial(layer_by, _scan),
        mask_nan_grad=False,  # the backward operator masks them
        materialize_grads=False,
        cases=cases,
        vmap="loop",
    )
    return operator


def _make_backward_operator(
    name: str, cell: Cell, forward: Callable[..., LayerOutputs], cases: Callable[[], Cases]
) -> Op:
    def reference(
        grad_h: Tensor,  # (..., T, H), as grad_c and c
        grad_c: Tensor,
        input: Tensor,
        h0: Tensor,
        c0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor | None,
        c: Tensor,
        gates: Tensor,  # (..., T, gates * H)
    ) -> tuple[Tensor, Tensor, Tensor]:
        # D_t = dL/dh_t = grad_t + W_hh' d_gates_{t+1} in reverse time; d_gates_t from D_t and the gradient of c_t
        missing = without_missing(input)[1]
        rows, d_h, d_c = [], torch.zeros_like(h0), torch.zeros_like(c0)
        for t in reversed(range(gates.shape[-2])):
            c_previous, activations = c[..., t - 1, :] if t else c0, gates[..., t, :].chunk(cell.gates, -1)
            d_h, d_c, is_missing = d_h + grad_h[..., t, :], d_c + grad_c[..., t, :], missing[..., t, None]
            d_z, d_c_previous = cell.gradients(activations, c_previous, c[..., t, :], d_h, d_c)
            rows.append(d_z.masked_fill(is_missing, 0))
            d_h, d_c = torch.where(is_missing, d_h, rows[-1] @ weight_hh), torch.where(is_missing, d_c, d_c_previous)
        return (torch.stack(rows[::-1], -2) if rows else torch.empty_like(gates)), d_h, d_c

    def fake(h0: Tensor, c0: Tensor, gates: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return gates.new_empty(gates.shape), h0.new_empty(h0.shape), c0.new_empty(c0.shape)

    def run_backward(*tensors: Tensor | None) -> tuple[Tensor, ...]:
        gradients: tuple[Tensor, ...] = operator(*tensors)
        return gradients

    def backward(
        *tangents: Tensor,
        grad_h: Tensor,
        grad_c: Tensor,
        input: Tensor,
        h0: Tensor,
        c0: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        # Along the incoming tangents the states change by (h', c') and the loss by R = sum of grad (h', c'). Those are
        # the gradients of `grad`; the others are the gradients of R. The adjoints of h' and c' are those of h and c, so
        # that dR = d sum <step_backward(adjoints), (z', c'_{t-1})> over rows; what it gives to h and c goes back as in
        # the backward pass.
        layer = input, h0, c0, weight_ih, weight_hh, bias
        h, c, gates = forward(*layer)
        filled, missing = without_missing(input)
        h_before, c_before = _rows_before(h, h0), _rows_before(c, c0)
        z = F.linear(filled, weight_ih, bias) + F.linear(h_before, weight_hh)

        activations = cell.activate(z)
        h_by_c, c_by_c = cell.slopes(activations, c_before, c, missing)[1].unbind(-2)
        h_tangent, c_tangent = tangent_operator(*tangents, input, c0, weight_hh, c, torch.cat(activations, -1))
        h_tangent_before = _rows_before(h_tangent, tangents[1])
        z_tangent = tangents[0] + F.linear(h_tangent_before, weight_hh)

        d_gates = run_backward(grad_h, grad_c, *layer, c, gates)[0]
        grad_h, grad_c = (x.where(~h.isnan(), 0) for x in (grad_h, grad_c))
        d_h = _recur_back(missing.unsqueeze(-1).to(h).expand(h.shape), grad_h + next_rows(d_gates @ weight_hh))
        d_c = _recur_back(c_by_c, grad_c + next_rows(h_by_c * d_h))

        def tangent_product(z: Tensor, c_before: Tensor) -> Tensor:
            activations = cell.activate(z)
            c = cell.advance(activations, c_before)[1]
            d_z, d_c_before = cell.gradients(activations, c_before, c, d_h, d_c)
            return (d_z * z_tangent).sum(-1) + (d_c_before * _rows_before(c_tangent, tangents[2])).sum(-1)

        d_z, d_c_before = vjp(tangent_product, (z, c_before), (~missing).to(h))
        d_h_before = d_z @ weight_hh
        d_gates_next, d_h0, d_c0 = run_backward(next_rows(d_h_before), next_rows(d_c_before), *layer, c, gates)
        d_projected = d_z + d_gates_next
        rows = d_projected.flatten(0, -2)
        d_ih = rows.mT @ filled.flatten(0, -2)
        d_hh = rows.mT @ h_before.flatten(0, -2) + d_gates.flatten(0, -2).mT @ h_tangent_before.flatten(0, -2)
        d_h0, d_c0 = d_h0 + d_h_before[..., :1, :].sum(-2), d_c0 + d_c_before[..., :1, :].sum(-2)
        d_bias = None if bias is None else rows.sum(0)
        return h_tangent, c_tangent, d_projected @ weight_ih, d_h0, d_c0, d_ih, d_hh, d_bias, None, None

    tangent_operator = _make_tangent_operator(name, cell)
    operator = Op(
        f"commodity::{name}_backward",
        reference=reference,
        fake=fake,
        backward=backward,
        cases=cases,
        vmap="loop",
        causal=False,  # gradients flow backwards in time
    )
    return operator


def _make_tangent_operator(name: str, cell: Cell) -> Op:
    """The operator of the derivative in forward mode: the tangents of h and c, linear in those of gates, h0 and c0."""

    def reference(
        d_gates: Tensor,  # (..., T, gates * H): tangents of the gates apart from what h before the row gives to them
        d_h0: Tensor,  # (..., H)
        d_c0: Tensor,  # (..., H)
        input: Tensor,
        c0: Tensor,
        weight_hh: Tensor,
        c: Tensor,  # (..., T, H)
        gates: Tensor,  # (..., T, gates * H)
    ) -> CellState:
        missing = without_missing(input)[1]
        by_gates, by_c = cell.slopes(gates.chunk(cell.gates, -1), _rows_before(c, c0), c, missing)
        return _tangents(by_gates, by_c, missing, weight_hh, d_gates, d_h0, d_c0)

    def fake(c: Tensor) -> CellState:
        return c.new_empty(c.shape), c.new_empty(c.shape)

    def cases() -> Cases:
        return _tangent_cases(operator, cell.gates)

    operator = Op(
        f"commodity::{name}_tangent",
        reference=reference,
        fake=fake,
        backward="reference",
        mask_nan_grad=False,
        cases=cases,
        vmap="loop",
    )
    return operator


def _rows_before(x: Tensor, initial: Tensor) -> Tensor:
    """(..., T, H): x in the row before, `initial` (..., H) before the first."""
    return torch.cat([initial.unsqueeze(-2), x], -2)[..., :-1, :]


def _recur_back(a: Tensor, b: Tensor) -> Tensor:
    """y_t = a_{t+1} y_{t+1} + b_t, from the last row to the first."""
    y: Tensor = recur(next_rows(a).flip(-2), b.flip(-2), None).flip(-2)
    return y


def _tangents(
    by_z: Tensor,  # (..., T, 2, gates, H): slopes of h and c
    by_c: Tensor,  # (..., T, 2, H)
    missing: Tensor,
    weight: Tensor,
    gates: Tensor,
    h: Tensor,
    c: Tensor,
) -> CellState:
    """Tangents of h and c in every row from those of the gates and of the initial state."""
    rows = []
    for z, slopes, slope, is_missing in zip(gates.unbind(-2), by_z.unbind(-4), by_c.unbind(-3), missing.unbind(-1)):
        z = (z + F.linear(h, weight)).unflatten(-1, (1, *slopes.shape[-2:]))
        h_next, c = ((slopes * z).sum(-2) + slope * c.unsqueeze(-2)).unbind(-2)
        h = torch.where(is_missing.unsqueeze(-1), h, h_next)
        rows.append((h, c))
    if not rows:
        return torch.zeros_like(by_c[..., 0, :]), torch.zeros_like(by_c[..., 1, :])
    h, c = (torch.stack(x, -2) for x in zip(*rows))
    return h, c


def _run(step: CellStep, gates: Tensor, missing: Tensor, weight: Tensor, h: Tensor, c: Tensor) -> CellState:
    """The definition: a row with missing input leaves h and c unchanged."""
    hs, cs = [], []
    for t in range(gates.shape[-2]):
        h_next, c_next = step(gates[..., t, :] + F.linear(h, weight), c)
        is_missing = missing[..., t, None]
        h, c = torch.where(is_missing, h, h_next), torch.where(is_missing, c, c_next)
        hs.append(h)
        cs.append(c)
    empty = gates.new_empty((*gates.shape[:-1], h.shape[-1]))
    return (torch.stack(hs, -2), torch.stack(cs, -2)) if hs else (empty, empty.clone())


def _scan(step: CellStep, gates: Tensor, missing: Tensor, weight: Tensor, h0: Tensor, c0: Tensor) -> CellState:
    """The definition with a scan instead of a Python loop, for a dynamic number of rows."""

    def row(state: Tensors, inputs: Tensors, weight: Tensor) -> tuple[CellState, CellState]:
        next_state = step(inputs[0] + F.linear(state[0], weight), state[1])
        h, c = (torch.where(inputs[1], old, new) for old, new in zip(state, next_state))
        return (h, c), (h.clone(), c.clone())

    rows = gates.movedim(-2, 0), missing.movedim(-1, 0).unsqueeze(-1)
    h, c = scan(row, (h0.clone(), c0.clone()), rows, (weight,))
    return h.movedim(0, -2).contiguous(), c.movedim(0, -2).contiguous()


def _random(seed: int, *shapes: tuple[int, ...]) -> Sample:
    generator = torch.Generator().manual_seed(seed)
    return Sample(*(torch.randn(shape, dtype=torch.double, generator=generator) / 2 for shape in shapes))


def _backward_cases(forward: Callable[..., LayerOutputs], backward: Op, gates: int) -> Cases:
    def function(*tensors: Tensor) -> Tensor:
        """All outputs as one panel, with the gradients of the states repeated along time."""
        *layer, grad_h, grad_c = tensors
        grad_h, grad_c = (grad.masked_fill(grad.isnan(), 0) for grad in (grad_h, grad_c))
        _, c, activations = forward(*layer)
        d_gates, *d_states = backward(grad_h, grad_c, *layer, c, activations)
        return torch.cat([d_gates, *(d.unsqueeze(-2).expand(c.shape) for d in d_states)], -1)

    weights = (4 * gates, 3), (4 * gates, 4), (4 * gates,)
    return Cases(function=function, samples=(_random(1, (2, 3, 3), (2, 4), (2, 4), *weights, (2, 3, 4), (2, 3, 4)),))


def _tangent_cases(tangent: Op, gates: int) -> Cases:
    def function(input: Tensor, *others: Tensor) -> Tensor:
        """Both outputs as one panel; only the input has missing values."""
        d_gates, d_h0, d_c0, *layer = (x.masked_fill(x.isnan(), 0) for x in others)
        return torch.cat(tangent(d_gates, d_h0, d_c0, input, *layer), -1)

    panels = (2, 3, 3), (2, 3, 4 * gates), (2, 4), (2, 4), (2, 4), (4 * gates, 4), (2, 3, 4), (2, 3, 4 * gates)
    return Cases(function=function, samples=(_random(2, *panels),))
