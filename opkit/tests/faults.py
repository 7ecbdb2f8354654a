"""Faulty kernels, public functions, formulas and references: the parts of the mutants."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from mutation import backward, jvp, public_variance, unmasked_variance, variance, warmup_mask, windows
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch._subclasses import FakeTensor

import torch_opkit as opkit
from torch_opkit import Cases, Op
from torch_opkit.arguments import check_integer

VMAP, GRAD = TransformType.Vmap, TransformType.Grad

# kernels

CALLS: list[int] = []
RESULTS: dict[Any, Tensor] = {}
SCALES: dict[Any, Tensor] = {}


def counts_calls(x: Tensor, window: int) -> Tensor:
    CALLS.append(1)
    return variance(x, window) + 1e-6 * len(CALLS)


def cached_by_address(x: Tensor, window: int) -> Tensor:
    key = (x.data_ptr(), x.shape)
    if key not in RESULTS:
        RESULTS[key] = variance(x, window)
    return RESULTS[key].clone()


def fills_missing_in_place(x: Tensor, window: int) -> Tensor:
    x[x.isnan()] = 0.0
    return variance(x, window)


def writes_input(x: Tensor, window: int) -> Tensor:
    y = variance(x, window)
    x[..., -1:, :] += 1
    return y


def skips_warmup_rows(x: Tensor, window: int) -> Tensor:
    y = torch.empty_like(x)
    y[..., window - 1 :, :] = variance(x, window)[..., window - 1 :, :]
    return y


def skips_last_row(x: Tensor, window: int) -> Tensor:
    y = torch.empty_like(x)
    y[..., :-1, :] = variance(x, window)[..., :-1, :]
    return y


def depends_on_threads(x: Tensor, window: int) -> Tensor:
    return variance(x, window) * (1 + 1e-13 * torch.get_num_threads())


def rounds_float32(x: Tensor, window: int) -> Tensor:
    return variance(x.bfloat16().float() if x.dtype == torch.float32 else x, window)


def subtracts_squares(x: Tensor, window: int) -> Tensor:
    view = windows(x.nan_to_num(0.0), window)
    return (view.square().mean(-1) - view.mean(-1).square()).masked_fill(warmup_mask(x, window), torch.nan)


def drifts(x: Tensor, window: int) -> Tensor:
    y = variance(x, window)
    return torch.cat([y[..., :1000, :], 1.01 * y[..., 1000:, :]], -2)


def assumes_contiguous(x: Tensor, window: int) -> Tensor:
    strides = [x[..., :1].numel() // max(x.shape[0], 1) * x.shape[-1], x.shape[-1], 1] if x.dim() == 3 else x.stride()
    return variance(x.as_strided(x.shape, strides), window)


def rounds_if_complete(x: Tensor, window: int) -> Tensor:
    y = variance(x, window)
    return y * (1 + 2**-52) if x.shape[-2] > 100 and not x.isnan().any() else y


def replaces_nan_by_one(x: Tensor, window: int) -> Tensor:
    return variance(x.nan_to_num(1.0), window)


# public functions


def returns_input(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x, window), x


def cached_by_shape(operator: Any, x: Tensor, window: int) -> Any:
    if x.shape not in SCALES:
        SCALES[x.shape] = x.detach().nan_to_num(0.0).abs().mean()
    return public_variance(operator, x / SCALES[x.shape], window)


def reads_values(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x if float(x.nan_to_num(0.0).sum()) < 1e300 else -x, window)


def moves_to_cpu(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x.cpu(), window)


def raises_without_name(operator: Any, x: Tensor, window: int) -> Any:
    if 0 < x.shape[-2] < window:
        raise ValueError("too short")
    return public_variance(operator, x, window)


def raises_if(condition: Callable[[Tensor], bool]) -> Callable[..., Any]:
    def function(operator: Any, x: Tensor, window: int) -> Any:
        if condition(x):
            raise IndexError("index out of range")
        return public_variance(operator, x, window)

    return function


def squeezes(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x, window).squeeze(-1)


def returns_float32_for_half(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x.float() if x.dtype == torch.float16 else x, window)


def computes_in_bfloat16(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x.bfloat16().to(x.dtype) if torch.is_autocast_enabled("cpu") else x, window)


def adds_nan(operator: Any, x: Tensor, window: int) -> Any:
    return public_variance(operator, x, window) + torch.where(warmup_mask(x, window), torch.nan, 0.0).to(x.dtype)


def accepts_any_window(operator: Any, x: Tensor, window: int) -> Any:
    return operator(x, max(window, 1))


def detaches_if(condition: Callable[[], bool]) -> Callable[..., Any]:
    def function(operator: Any, x: Tensor, window: int) -> Any:
        return public_variance(operator, x.detach() if condition() else x, window)

    return function


def breaks_graph(operator: Any, x: Tensor, window: int) -> Any:
    torch._dynamo.graph_break()
    return public_variance(operator, x, window)


def loops_over_rows(operator: Any, x: Tensor, window: int) -> Any:
    zero = sum(0 for _ in range(x.shape[-2])) if torch.compiler.is_compiling() else 0
    return public_variance(operator, x, window + zero)


# formulas


def transforms() -> list[Any]:
    """Levels of torch.func that are active, outermost first."""
    return [level.key() for level in get_interpreter_stack() or []]


def is_traced() -> bool:
    return torch._guards.TracingContext.try_get() is not None


def scaled(factor: Callable[[], float]) -> Callable[..., Tensor]:
    return lambda grad, *, x, window: factor() * backward(grad, x=x, window=window)


def scaled_jvp(factor: Callable[[], float]) -> Callable[..., Tensor]:
    return lambda d_x, *, x, window: factor() * jvp(d_x, x=x, window=window)


def of_contiguous_gradient(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    if not isinstance(grad, FakeTensor) and not transforms() and 0 not in grad.stride():
        grad = grad.as_strided(grad.shape, torch.empty(grad.shape).stride())
    return zeros_backward(grad, x=x, window=window)


def detached(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad, x=x.detach(), window=window)


def value_dependent(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad, x=x, window=window) * (1.0 if float(x.nan_to_num(0.0).sum().detach()) < 1e300 else 0.0)


def multiplied_by_nan(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad, x=x, window=window) + 0 * x


def leaks_ahead(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    later = torch.cat([grad[..., :1, :] * 0, grad[..., :-1, :]], -2)[..., : grad.shape[-2], :]
    return backward(grad, x=x, window=window) + 1e-9 * later


def zeros_backward(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad.masked_fill(warmup_mask(grad, window), 0.0), x=x, window=window)


# references


def looks_ahead(x: Tensor, window: int) -> Tensor:
    return variance(torch.cat([x[..., 1:, :], x[..., -1:, :]], -2), window)


def zeros_in_warmup(x: Tensor, window: int) -> Tensor:
    return unmasked_variance(x, window).masked_fill(warmup_mask(x, window), 0.0)


def branches_on_values(x: Tensor, window: int) -> Tensor:
    return variance(x, window) if float(x.nan_to_num(0.0).sum()) < 1e300 else x.clone()


def one_column_too_many(x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] + 1))


def variance_with_count(x: Tensor, window: int, count: Tensor) -> Tensor:
    return variance(x, window)


def increments_count(x: Tensor, window: int, count: Tensor) -> Tensor:
    count.add_(1)
    return variance(x, window)


def passes_count(operator: Any, x: Tensor, window: int) -> Any:
    check_integer("variance", 1, window=window)
    return operator(x, window, torch.zeros(x.shape, dtype=torch.long, device=x.device))


def in_no_module(x: Tensor, window: int) -> Tensor:
    return variance(x, window)


in_no_module.__module__ = "nowhere"


class ReversedBatch(Op):
    """Its rule for `vmap` reverses the order of the batch."""

    def batched(self, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        output, _ = super().batched(info, in_dims, *args)
        return output.flip(0), 0


def live_variance(keep: Callable[[opkit.Past, Tensor, int], Tensor]) -> Callable[[Cases], Cases]:
    """Live updates of the variance that keep earlier rows in this way."""

    def change(cases: Cases) -> Cases:
        def variance(x: Tensor, window: int) -> Tensor:
            y: Tensor = cases.function(x, window=window)
            return y

        def update(past: opkit.Past, x: Tensor, window: int) -> Tensor:
            y = variance(keep(past, x, window), window)
            return y.narrow(-2, y.shape[-2] - x.shape[-2], x.shape[-2])

        return replace(cases, function=opkit.live(update)(variance))

    return change


def keeps_window(past: opkit.Past, x: Tensor, window: int) -> Tensor:
    return past.with_rows("rows", x, window)


def keeps_one_row_too_few(past: opkit.Past, x: Tensor, window: int) -> Tensor:
    return past.with_rows("rows", x, window - 2)


def keeps_rows_in_place(past: opkit.Past, x: Tensor, window: int) -> Tensor:
    before = past.get("rows")
    if before is None:
        before = x.new_zeros((*x.shape[:-2], window, x.shape[-1]))
        past.keep("rows", before)
    rows = torch.cat([before, x], -2)
    before.copy_(rows[..., -window:, :])
    return rows
