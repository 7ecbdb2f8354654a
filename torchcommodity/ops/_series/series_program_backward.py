"""The gradient of `series_program`, as an operator: it can be differentiated again, batched and compiled."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.program import MAX_INPUTS, count_outputs


def series_program_backward(grad: Tensor, *inputs: Tensor, program: str, wanted: Sequence[int]) -> Tensor:
    """Gradients of M `wanted` inputs (..., M, T, N), (..., T, N) of one, given that of the output; NaN in it is 0."""
    y: Tensor = operator(grad, *inputs, *[None] * (MAX_INPUTS - len(inputs)), program, list(wanted))
    return y


def _gradients(grad: Tensor, inputs: list[Tensor], program: str, wanted: Sequence[int]) -> Tensor:
    """Differentiable in `grad` and all inputs."""

    def output(*selected: Tensor) -> Tensor:
        chosen = dict(zip(wanted, selected))
        y = interpret([chosen.get(i, x) for i, x in enumerate(inputs)], program)
        return y.where(~y.isnan(), 0)

    with torch.no_grad():
        missing = interpret([x.detach() for x in inputs], program).isnan()
    upstream = grad.where(grad.isfinite() & ~missing, 0)
    gradients = vjp(output, [inputs[i] for i in wanted], upstream)
    return gradients[0] if len(wanted) == 1 else torch.stack(gradients, -3)


def _reference(
    grad: Tensor,
    x0: Tensor,
    x1: Tensor | None,
    x2: Tensor | None,
    x3: Tensor | None,
    x4: Tensor | None,
    x5: Tensor | None,
    x6: Tensor | None,
    x7: Tensor | None,
    program: str,
    wanted: Sequence[int],
) -> Tensor:
    return _gradients(grad, [x for x in (x0, x1, x2, x3, x4, x5, x6, x7) if x is not None], program, wanted)


def _fake(x0: Tensor, wanted: Sequence[int]) -> Tensor:
    return x0.new_empty(x0.shape if len(wanted) == 1 else (*x0.shape[:-2], len(wanted), *x0.shape[-2:]))


def _backward(
    upstream: Tensor,
    *,
    grad: Tensor,
    x0: Tensor,
    x1: Tensor | None,
    x2: Tensor | None,
    x3: Tensor | None,
    x4: Tensor | None,
    x5: Tensor | None,
    x6: Tensor | None,
    x7: Tensor | None,
    program: str,
    wanted: Sequence[int],
) -> tuple[Tensor | None, ...]:
    # of the reference, which PyTorch differentiates twice
    inputs = [x for x in (x0, x1, x2, x3, x4, x5, x6, x7) if x is not None]

    def gradients(grad: Tensor, *inputs: Tensor) -> Tensor:
        return _gradients(grad, list(inputs), program, wanted)

    results: tuple[Tensor | None, ...] = vjp(gradients, [grad, *inputs], upstream)
    return *results, *[None] * (MAX_INPUTS - len(inputs))


# on these the operators of programs are checked; together they hold every statement
PROGRAMS = (
    "panels 1; input 0; lag %1 2; subtract %1 %2; return float %3",
    "panels 2; input 0; lag %1 1; input 1; subtract %2 %3; return float %4",  # an input after other statements
    # pointwise
    "panels 2; input 0; input 1; constant 0.5; multiply %1 %3; add %4 %2; maximum %5 %1; minimum %6 %2; divide %7 %1; "
    "subtract %8 %3; divide %9 %2 0.0; absolute %10; sqrt %11; exp %12; log %13; atan %14; sin %15; cos %16; "
    "negate %17; lag %18 1; add %19 %8; return float %20",
    "panels 2; input 0; input 1; less %1 %2; less_equal %2 %1; lag %1 1; fill %5 %2; where %3 %6 %1; floor %7; "
    "ceil %7; subtract %9 %8; sign %7; equal %1 %2; valid %5; restrict %7 %13; add %14 %10; add %15 %11; add %16 %12; "
    "add %17 %4; return float %18",
    # along time
    "panels 1; input 0; forward_fill %1; lag %2 1; subtract %1 %3; cumsum %4; count %4; row %1; multiply %5 %6; "
    "add %8 %7; return float %9",
    "panels 2; input 0; input 1; lag %2 2; change %1; true_range %1 %3 %2; multiply %4 %5; constant 2.0; skip %6 %7; "
    "previous %1; add %8 %9; return float %10",
    "panels 2; input 0; input 1; constant 0.3; constant 3.0; constant 4.0; exponential %1 %3 %4 %5 %3; lag %1 1; "
    "recurrence %3 %2 %7; smooth %1 %3 %7; add %6 %8; add %9 %10; return float %11",
    # windows
    "panels 1; input 0; window_sum %1 3; weighted_sum %1 4; window_products %1 %1 3; sqrt %4; "
    "absolute_deviation %1 4; window_mean %1 5; add %2 %3; add %8 %5; add %9 %6; add %10 %7; return float %11",
    "panels 2; input 0; input 1; highest %1 4; lowest %2 3; window_products %1 %2 4; since_highest %1 3; "
    "since_lowest %2 4; rank %1 3; add %3 %4; add %9 %5; add %10 %6; add %11 %7; add %12 %8; return float %13",
    # a loop: y moves by 0.1 + 0.2 sin(y) of the distance to the price, and counts its rises
    "panels 1; input 0; constant 0.1; constant 0.2; feedback 1.0; feedback 0.0; sin %4; multiply %6 %3; add %7 %2; "
    "subtract %1 %4; multiply %8 %9; add %4 %10; less %4 %11; add %5 %12; assign %4 %11; assign %5 %13; "
    "add %11 %13; return float %16",
)


def sample_inputs() -> list[Tensor]:
    """Two panels (2, 12, 3) of positive numbers, with holes in the second batch."""
    generator = torch.Generator().manual_seed(0)
    x = 2 + torch.rand(2, 2, 12, 3, dtype=torch.double, generator=generator)
    x[0, 1, 5, 1] = x[1, 1, 0, 0] = torch.nan
    x[0, 1, 8, 2] = torch.inf
    return [*x]


def _cases() -> Cases:
    x = sample_inputs()
    grad = torch.linspace(-1, 1, x[0].numel(), dtype=torch.double).reshape(x[0].shape)

    def sample(program: str, wanted: list[int]) -> Sample:
        outputs = count_outputs(program)
        upstream = grad if outputs == 1 else torch.stack([grad * (k + 1) for k in range(outputs)], -3)
        return Sample(upstream, *x[: program.count("input ")], program=program, wanted=wanted)

    return Cases(
        function=series_program_backward,
        samples=tuple(sample(text, [0]) for text in PROGRAMS),
    )


operator: Any = Op(
    "commodity::series_program_backward",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    cases=_cases,
    causal=False,  # the gradient of an input depends on later rows
)
