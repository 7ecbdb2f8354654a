"""The gradient of `series_program`, as an operator: it can be differentiated again, batched and compiled."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.program import MAX_INPUTS, count_outputs
from torchcommodity.ops._series.samples import PROGRAMS, sample_inputs


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

    upstream = grad.where(grad.isfinite() & ~_missing(inputs, program), 0)
    gradients = vjp(output, [inputs[i] for i in wanted], upstream)
    return gradients[0] if len(wanted) == 1 else torch.stack(gradients, -3)


def _missing(inputs: list[Tensor], program: str) -> Tensor:
    with torch.no_grad():
        return interpret([x.detach() for x in inputs], program).isnan()


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
    "series_program_backward",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    cases=_cases,
    causal=False,  # the gradient of an input depends on later rows
)
