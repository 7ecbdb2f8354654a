"""What recurrent layers share: the door, the projection of the input onto the gates, the loops that define them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity.opkit import HALF_DTYPES, Cases, Op, Sample
from torchcommodity.opkit.arguments import raise_invalid

State = tuple[Tensor, Tensor]  # h and c, (..., H) each
Step = Callable[[Tensor, Tensor], State]  # gates, c -> h and c of the next row
Pull = Callable[..., tuple[Tensor, Tensor]]  # gates, c before, c, d_h, d_c -> d_gates, d_c before


def check_tensors(operator: str, tensors: dict[str, Tensor | None], shapes: dict[str, tuple[Any, ...]]) -> None:
    """Each is of floating point and of its shape, and all are of one dtype, which autocast forgives, and device."""
    given = {name: x for name, x in tensors.items() if x is not None}
    first = next(iter(given.values()))
    for name, x in given.items():
        if not isinstance(x, Tensor):
            raise_invalid(operator, f"{name} must be a Tensor", TypeError, **{name: type(x).__name__})
        if not x.is_floating_point():
            raise_invalid(operator, f"{name} must be floating-point", TypeError, dtype=x.dtype, **{name: x})
        if name in shapes and tuple(x.shape) != shapes[name]:
            raise_invalid(operator, f"{name} must be {tuple(map(int, shapes[name]))}", **given)
        if (x.dtype != first.dtype and not _autocast(first)) or x.device != first.device:
            kinds = {f"{name}_is": f"{x.dtype} on {x.device}" for name, x in given.items()}
            raise_invalid(operator, "all tensors must have one dtype and one device", TypeError, **kinds)


def widened(compute: Callable[..., State], *tensors: Tensor | None) -> State:
    """compute(*tensors), outside autocast; half precision is computed in float32 and comes back as it came."""
    first = tensors[0]
    assert first is not None
    if _autocast(first):
        with torch.autocast(first.device.type, enabled=False):
            return compute(*_single(tensors))
    if first.dtype not in HALF_DTYPES:
        return compute(*tensors)
    h, c = compute(*_single(tensors))
    return h.to(first.dtype), c.to(first.dtype)


def _single(tensors: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    return [None if x is None else x.float() for x in tensors]


def _autocast(x: Tensor) -> bool:
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def without_missing(input: Tensor) -> tuple[Tensor, Tensor]:
    """The input with zeros in every row (or sample) that lacks a value, and which these are."""
    missing = input.detach().amax(-1).isnan()  # a third of the time of isnan().any(-1)
    if input.requires_grad:  # the backward pass of nan_to_num is slow
        return input.masked_fill(missing.unsqueeze(-1), 0), missing
    return _without_nan(input), missing


def _without_nan(x: Tensor) -> Tensor:
    return x.nan_to_num(0.0, posinf=torch.inf, neginf=-torch.inf)


def known(h: Tensor, *gradients: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the gates in one, and that of c: none where the state is NaN, which takes no part."""
    *d_z, d_c = (torch.where(h.isnan(), 0.0, gradient) for gradient in gradients)
    return torch.cat(d_z, -1), d_c


def states(operator: Op, input: Tensor, *others: Tensor | None) -> State:  # (..., T, H) each
    """h and c after every row: one product projects all rows onto the gates, the operator does the rest.

    `others` are h0, c0, weight_ih, weight_hh and the bias.
    """

    def compute(
        input: Tensor, h0: Tensor, c0: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor | None
    ) -> State:
        known, missing = without_missing(input)
        h, c = operator(F.linear(known, weight_ih, bias), missing, weight_hh, h0, c0)
        return h, c

    return widened(compute, input, *others)


def with_last(h: Tensor, c: Tensor, hx: State) -> tuple[Tensor, State]:
    """The output, and the state after the last row: the initial one where there is no row."""
    return h, ((h[..., -1, :], c[..., -1, :]) if h.shape[-2] else (hx[0].clone(), hx[1].clone()))


def records(name: str, gates: int, step: Step, pull: Pull, cases: Callable[[], Cases]) -> Op:
    """The operator `name` of a cell with so many gates, and beside it its adjoint, `name`_backward.

    `step` and `pull` define them. The adjoint takes h and c for speed; as a function it depends on the others alone.
    """
    adjoint = _adjoint(name, step, pull, lambda: _cases_back(operator, adjoint, gates))
    operator = _forward(name, step, adjoint, cases)
    return operator


def _forward(name: str, step: Step, adjoint: Op, cases: Callable[[], Cases]) -> Op:
    def reference(gates: Tensor, missing: Tensor, weight: Tensor, h0: Tensor, c0: Tensor) -> State:
        return _run(step, gates, missing, weight, h0, c0)

    def fake(gates: Tensor, missing: Tensor, weight: Tensor, h0: Tensor, c0: Tensor) -> State:
        shape = (*gates.shape[:-1], h0.shape[-1])
        return gates.new_empty(shape), gates.new_empty(shape)

    def backward(
        *grads: Tensor, gates: Tensor, missing: Tensor, weight: Tensor, h0: Tensor, c0: Tensor, output: State
    ) -> tuple[Tensor | None, ...]:
        # D_t = grad_t + W' d_gates_{t+1}, backwards in time; d_gates_t = (d gates_t / d h_t, c_t)' D_t
        # dW = sum_t d_gates_t h_{t-1}'
        d_gates, d_h0, d_c0 = adjoint(*grads, gates, missing, weight, h0, c0, *output)
        before = _without_nan(torch.cat([h0.unsqueeze(-2), output[0]], -2)[..., :-1, :])
        return d_gates, None, d_gates.flatten(0, -2).mT @ before.flatten(0, -2), d_h0, d_c0

    def decomposition(gates: Tensor, missing: Tensor, weight: Tensor, h0: Tensor, c0: Tensor) -> State:
        return _scan(step, gates, missing, weight, h0, c0)

    return Op(
        name,
        reference=reference,
        fake=fake,
        backward=backward,
        decomposition=decomposition,
        mask_nan_grad=False,  # the adjoint does it
        cases=cases,
        vmap="loop",
    )


def _adjoint(name: str, step: Step, pull: Pull, cases: Callable[[], Cases]) -> Op:
    def reference(
        grad_h: Tensor,
        grad_c: Tensor,
        gates: Tensor,
        missing: Tensor,
        weight: Tensor,
        h0: Tensor,
        c0: Tensor,
        h: Tensor,
        c: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _run_back(step, pull, grad_h, grad_c, gates, missing, weight, h0, c0)

    def fake(*tensors: Tensor) -> tuple[Tensor, ...]:
        _, _, gates, _, _, h0, c0, _, _ = tensors
        return gates.new_empty(gates.shape), h0.new_empty(h0.shape), c0.new_empty(c0.shape)

    def backward(
        *grads: Tensor,
        grad_h: Tensor,
        grad_c: Tensor,
        gates: Tensor,
        missing: Tensor,
        weight: Tensor,
        h0: Tensor,
        c0: Tensor,
    ) -> tuple[Tensor | None, ...]:
        # the second derivative is seldom wanted: plain PyTorch differentiates the definition
        def definition(grad_h: Tensor, grad_c: Tensor, gates: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
            return _run_back(step, pull, grad_h, grad_c, gates, missing, *rest)

        first, second, third, *rest = differentiated(definition, (grad_h, grad_c, gates, weight, h0, c0), grads)
        return first, second, third, None, *rest, None, None

    return Op(
        f"{name}_backward",
        reference=reference,
        fake=fake,
        backward=backward,
        cases=cases,
        vmap="loop",
        causal=False,  # a gradient runs backwards in time
    )


def _run(step: Step, gates: Tensor, missing: Tensor, weight: Tensor, h: Tensor, c: Tensor) -> State:
    """The definition: a row whose input is missing leaves h and c as they are."""
    hs, cs = [], []
    for t in range(gates.shape[-2]):
        moved, gone = step(gates[..., t, :] + F.linear(h, weight), c), missing[..., t, None]
        h, c = torch.where(gone, h, moved[0]), torch.where(gone, c, moved[1])
        hs.append(h)
        cs.append(c)
    empty = gates.new_empty((*gates.shape[:-1], h.shape[-1]))
    return (torch.stack(hs, -2), torch.stack(cs, -2)) if hs else (empty, empty.clone())


def _scan(step: Step, gates: Tensor, missing: Tensor, weight: Tensor, h0: Tensor, c0: Tensor) -> State:
    """The definition without a loop in Python, for any number of rows."""

    def row(state: State, now: State) -> tuple[State, State]:
        moved = step(now[0] + F.linear(state[0], weight), state[1])
        h, c = (torch.where(now[1], old, new) for old, new in zip(state, moved))
        return (h, c), (h.clone(), c.clone())

    rows = gates.movedim(-2, 0), missing.movedim(-1, 0).unsqueeze(-1)
    h, c = torch._higher_order_ops.scan(row, (h0.clone(), c0.clone()), rows)[1]
    return h.movedim(0, -2).contiguous(), c.movedim(0, -2).contiguous()


def _run_back(
    step: Step,
    pull: Pull,
    grad_h: Tensor,
    grad_c: Tensor,
    gates: Tensor,
    missing: Tensor,
    weight: Tensor,
    h0: Tensor,
    c0: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of gates, h0 and c0, from the last row to the first."""
    h, c = _run(step, gates, missing, weight, h0, c0)
    rows, d_h, d_c = [], torch.zeros_like(h0), torch.zeros_like(c0)
    for t in reversed(range(gates.shape[-2])):
        h_before, c_before = (h[..., t - 1, :], c[..., t - 1, :]) if t else (h0, c0)
        d_h, d_c, gone = d_h + grad_h[..., t, :], d_c + grad_c[..., t, :], missing[..., t, None]
        d_z, d_before = pull(gates[..., t, :] + F.linear(h_before, weight), c_before, c[..., t, :], d_h, d_c)
        rows.append(d_z.masked_fill(gone, 0))
        d_h, d_c = torch.where(gone, d_h, rows[-1] @ weight), torch.where(gone, d_c, d_before)
    return (torch.stack(rows[::-1], -2) if rows else torch.empty_like(gates)), d_h, d_c


def differentiated(
    function: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], grads: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """The gradients of `inputs` from those of the outputs, in every mode, to any order."""
    with torch.enable_grad():
        probes = [torch.zeros_like(x, requires_grad=True) for x in inputs]
        outputs = function(*[x + probe for x, probe in zip(inputs, probes)])
        return torch.autograd.grad(outputs, probes, grads, create_graph=True, materialize_grads=True)


def _cases_back(operator: Op, adjoint: Op, gates: int) -> Cases:
    generator = torch.Generator().manual_seed(1)
    shapes = ((2, 3, 4 * gates), (4 * gates, 4), (2, 4), (2, 4), (2, 3, 4), (2, 3, 4))
    tensors = [torch.randn(shape, dtype=torch.double, generator=generator) / 2 for shape in shapes]

    def door(gates: Tensor, weight: Tensor, h0: Tensor, c0: Tensor, grad_h: Tensor, grad_c: Tensor) -> Tensor:
        """All outputs in one, those of states repeated along time. `Op` hands on no gradient that is NaN."""
        missing = gates.isnan().any(-1)
        gates = gates.masked_fill(missing.unsqueeze(-1), 0)
        grad_h, grad_c = (grad.masked_fill(grad.isnan(), 0) for grad in (grad_h, grad_c))
        h, c = operator(gates, missing, weight, h0, c0)
        d_gates, *states = adjoint(grad_h, grad_c, gates, missing, weight, h0, c0, h, c)
        return torch.cat([d_gates, *(d.unsqueeze(-2).expand(h.shape) for d in states)], -1)

    return Cases(function=door, samples=(Sample(*tensors),))
