"""Correct operators, and how a mutant is built from one by changing a single part.

A mutant states what it changes: fields of the record, the public function, the cases, or the kernel.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_opkit import OPERATORS, Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import check_integer

LIBRARY = torch.library.Library("mutants", "FRAGMENT")

# the variance of a rolling window, with missing values counted as zero


def windows(x: Tensor, window: int) -> Tensor:  # (..., T, N) -> (..., T, N, W), zero before the first row
    return torch.nn.functional.pad(x, (0, 0, window, 0)).unfold(-2, window, 1).narrow(-3, 1, x.shape[-2])


def warmup_mask(x: Tensor, window: int) -> Tensor:
    return torch.arange(x.shape[-2], device=x.device).unsqueeze(-1) < window - 1


def unmasked_variance(x: Tensor, window: int) -> Tensor:
    view = windows(x.nan_to_num(0.0), window)
    view = view - view[..., -1:]  # so that digits do not cancel at a large level
    return (view - view.mean(-1, keepdim=True)).square().mean(-1)


def variance(x: Tensor, window: int) -> Tensor:
    return unmasked_variance(x, window).masked_fill(warmup_mask(x, window), torch.nan)


def window_spread(grad: Tensor, window: int) -> Tensor:  # sum over the windows that contain a row
    return windows(grad.flip(-2), window).sum(-1).flip(-2)


def backward(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    # dx_t = 2 / W sum_s g_s (x_t - m_s), over the windows s that contain row t
    values = x.nan_to_num(0.0)
    mean = windows(values, window).mean(-1)
    d_x = 2 / window * (values * window_spread(grad, window) - window_spread(grad * mean, window))
    return d_x.masked_fill(x.isnan(), 0.0)


def jvp(d_x: Tensor, *, x: Tensor, window: int) -> Tensor:
    view, tangent = windows(x.nan_to_num(0.0), window), windows(d_x.masked_fill(x.isnan(), 0.0), window)
    return 2 * ((view - view.mean(-1, keepdim=True)) * tangent).mean(-1)


def public_variance(operator: Callable[..., Any], x: Tensor, window: int) -> Any:
    check_integer("variance", 1, window=window)
    return operator(x, window)


def variance_cases(function: Callable[..., Any]) -> Cases:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    series = torch.tensor([1.0, 2.0, 4.0], dtype=torch.double).reshape(3, 1).expand(3, 2)
    expected = torch.tensor([torch.nan, 0.25, 1.0], dtype=torch.double).reshape(3, 1).expand(3, 2)
    return Cases(
        function=function,
        samples=(Sample(x, window=3),),
        bad=(Bad(Sample(x, window=0), r"window must be >= 1; got window=0"),),
        golden=(Golden(Sample(series, window=2), expected, "by hand"),),
        oracle=lambda x, window: torch.stack(
            [
                x[..., max(t - window + 1, 0) : t + 1, :].var(-2, correction=0) * (1 if t >= window - 1 else torch.nan)
                for t in range(x.shape[-2])
            ],
            -2,
        ),
    )


def without_oracle(cases: Cases) -> Cases:
    return Cases(function=cases.function, samples=cases.samples, bad=cases.bad)


@dataclass(frozen=True)
class Mutant:
    """A fault, and the check that must fail because of it."""

    check: str
    fault: str
    record: dict[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] = public_variance
    cases: Callable[[Cases], Cases] = lambda cases: cases
    kernel: Callable[..., Any] | None = None
    key: str = "CPU"
    op_class: type[Op] = Op

    def build(self) -> Op:
        name = "".join(letter if letter.isalnum() else "_" for letter in f"{self.check}_{self.fault}")
        if f"mutants::{name}" in OPERATORS:
            return OPERATORS[f"mutants::{name}"]

        def cases() -> Cases:
            return self.cases(variance_cases(functools.partial(self.function, operator)))

        correct = {"reference": variance, "backward": backward, "warmup": lambda window: window - 1}
        operator = self.op_class(f"mutants::{name}", **{**correct, "cases": cases, **self.record})
        if self.kernel:
            LIBRARY.impl(name, self.kernel, self.key)
        return operator


CORRECT = Mutant("none", "correct")

# operators whose arguments are not panels with shared leading axes


def projection(x: Tensor, weight: Tensor) -> Tensor:  # (..., T, F), (G, F) -> (..., T, G)
    return torch.nn.functional.linear(x.nan_to_num(0.0), weight)


def projection_fake(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def projection_backward(grad: Tensor, *, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    d_weight = grad.flatten(0, -2).mT @ x.nan_to_num(0.0).flatten(0, -2)
    return (grad @ weight).masked_fill(x.isnan(), 0.0), d_weight


def centering(x: Tensor, weight: Tensor) -> Tensor:  # (B, F), (F,) -> (B, F): a statistic of the whole batch
    return (x - x.mean(0)) * weight


def centering_backward(grad: Tensor, *, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    d_x = grad * weight
    return d_x - d_x.mean(0), (grad * (x - x.mean(0))).sum(0)


def public_with_weight(operator: Any, x: Tensor, weight: Tensor) -> Any:
    return operator(x, weight)


def random_samples(*shapes: tuple[int, ...]) -> Callable[[Cases], Cases]:
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, dtype=torch.double, generator=generator) for shape in shapes]
    return lambda cases: Cases(function=cases.function, samples=(Sample(*tensors),))


def with_weights(check: str, fault: str, op_class: type[Op] = Op, **record: Any) -> Mutant:
    fields = {"reference": projection, "fake": projection_fake, "backward": projection_backward, "vmap": "loop"}
    fields |= {"warmup": lambda: 0} | record
    return Mutant(check, fault, fields, public_with_weight, random_samples((2, 7, 3), (5, 3)), op_class=op_class)


def without_time(check: str, fault: str, **record: Any) -> Mutant:
    fields = {"reference": centering, "backward": centering_backward, "time": None, "vmap": "loop"}
    fields |= {"warmup": lambda: 0} | record
    return Mutant(check, fault, fields, public_with_weight, random_samples((4, 3), (3,)))
