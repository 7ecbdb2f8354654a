"""Healthy operators, and how a fault is planted in one.

A fault is what it changes: fields of the record, the door, the cases, or the kernel. Everything else stays healthy.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit import OPERATORS, Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_integer

LIBRARY = torch.library.Library("faulty", "FRAGMENT")


def windows(x: Tensor, window: int) -> Tensor:  # (..., T, N) -> (..., T, N, W), zero before the first row
    return torch.nn.functional.pad(x, (0, 0, window, 0)).unfold(-2, window, 1).narrow(-3, 1, x.shape[-2])


def warm(x: Tensor, window: int) -> Tensor:
    return torch.arange(x.shape[-2], device=x.device).unsqueeze(-1) < window - 1


def unmasked(x: Tensor, window: int) -> Tensor:
    view = windows(x.nan_to_num(0.0), window)  # a missing value counts as zero
    view = view - view[..., -1:]  # the digits of a large level must not cancel
    return (view - view.mean(-1, keepdim=True)).square().mean(-1)


def variance(x: Tensor, window: int) -> Tensor:
    return unmasked(x, window).masked_fill(warm(x, window), torch.nan)


def fake(x: Tensor, window: int) -> Tensor:
    return x.new_empty(x.shape)


def ahead(grad: Tensor, window: int) -> Tensor:  # the sum over the windows that a row is in
    return windows(grad.flip(-2), window).sum(-1).flip(-2)


def backward(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    # dx_t = 2 / W sum_s g_s (x_t - m_s), over the windows s that hold row t
    known = x.nan_to_num(0.0)
    mean = windows(known, window).mean(-1)
    pulled = 2 / window * (known * ahead(grad, window) - ahead(grad * mean, window))
    return pulled.masked_fill(x.isnan(), 0.0)


def jvp(d_x: Tensor, *, x: Tensor, window: int) -> Tensor:
    view, moved = windows(x.nan_to_num(0.0), window), windows(d_x.masked_fill(x.isnan(), 0.0), window)
    return 2 * ((view - view.mean(-1, keepdim=True)) * moved).mean(-1)


def healthy_function(operator: Callable[..., Any], x: Tensor, window: int) -> Any:
    check_integer("variance", 1, window=window)
    return operator(x, window)


def healthy_cases(function: Callable[..., Any]) -> Cases:
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


@dataclass(frozen=True)
class Fault:
    """What is wrong, and with which row it fails."""

    row: str
    what: str
    record: dict[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] = healthy_function
    cases: Callable[[Cases], Cases] = lambda cases: cases
    kernel: Callable[..., Any] | None = None
    key: str = "CPU"

    def build(self) -> Op:
        name = "".join(letter if letter.isalnum() else "_" for letter in f"{self.row}_{self.what}")
        if f"faulty::{name}" in OPERATORS:
            return OPERATORS[f"faulty::{name}"]
        healthy = {"reference": variance, "fake": fake, "backward": backward, "warmup": lambda window: window - 1}
        kind = self.record.get("kind", Op)
        fields = {key: value for key, value in self.record.items() if key != "kind"}
        cases = lambda: self.cases(healthy_cases(functools.partial(self.function, operator)))  # noqa: E731
        operator: Op = kind(f"faulty::{name}", **{**healthy, "cases": cases, **fields})
        if self.kernel:
            LIBRARY.impl(name, self.kernel, self.key)
        return operator


# operators whose arguments are no panels that share leading axes


def projected(x: Tensor, weight: Tensor) -> Tensor:  # (..., T, F), (G, F) -> (..., T, G)
    return torch.nn.functional.linear(x.nan_to_num(0.0), weight)


def projected_fake(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def projected_backward(grad: Tensor, *, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    d_weight = grad.flatten(0, -2).mT @ x.nan_to_num(0.0).flatten(0, -2)
    return (grad @ weight).masked_fill(x.isnan(), 0.0), d_weight


def centered(x: Tensor, weight: Tensor) -> Tensor:  # (B, F), (F,) -> (B, F): the batch is one statistic
    return (x - x.mean(0)) * weight


def centred_fake(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def centred_backward(grad: Tensor, *, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    pulled = grad * weight
    return pulled - pulled.mean(0), (grad * (x - x.mean(0))).sum(0)


def plain_door(operator: Any, x: Tensor, weight: Tensor) -> Any:
    return operator(x, weight)


def weighted(*shapes: tuple[int, ...]) -> Callable[[Cases], Cases]:
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, dtype=torch.double, generator=generator) for shape in shapes]
    return lambda cases: Cases(function=cases.function, samples=(Sample(*tensors),))


def with_weights(row: str, what: str, **record: Any) -> Fault:
    fields = {"reference": projected, "fake": projected_fake, "backward": projected_backward, "vmap": "loop"}
    fields |= {"warmup": lambda: 0}
    return Fault(row, what, fields | record, plain_door, weighted((2, 7, 3), (5, 3)))


def without_time(row: str, what: str, **record: Any) -> Fault:
    fields = {"reference": centered, "fake": centred_fake, "backward": centred_backward}
    fields |= {"time": None, "vmap": "loop", "warmup": lambda: 0}
    return Fault(row, what, fields | record, plain_door, weighted((4, 3), (3,)))
