"""One fault for each promise of the contract, most of them in the variance of a rolling window."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from fault_planting import (
    Fault,
    backward,
    fake,
    healthy_function,
    jvp,
    unmasked,
    variance,
    warm,
    windows,
    with_weights,
    without_time,
)
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack

from torchcommodity.opkit import Op
from torchcommodity.opkit.arguments import check_integer

# kernels


def writes_input(x: Tensor, window: int) -> Tensor:
    y = variance(x, window)
    x[..., -1:, :] += 1
    return y


def forgets_warm_up(x: Tensor, window: int) -> Tensor:
    y = torch.empty_like(x)
    y[..., window - 1 :, :] = variance(x, window)[..., window - 1 :, :]
    return y


def forgets_last_row(x: Tensor, window: int) -> Tensor:
    y = torch.empty_like(x)
    y[..., :-1, :] = variance(x, window)[..., :-1, :]
    return y


def threaded(x: Tensor, window: int) -> Tensor:
    return variance(x, window) * (1 + 1e-13 * torch.get_num_threads())


def rounded(x: Tensor, window: int) -> Tensor:
    return variance(x.bfloat16().float() if x.dtype == torch.float32 else x, window)


def canceled(x: Tensor, window: int) -> Tensor:
    view = windows(x.nan_to_num(0.0), window)
    return (view.square().mean(-1) - view.mean(-1).square()).masked_fill(warm(x, window), torch.nan)


def drifting(x: Tensor, window: int) -> Tensor:
    y = variance(x, window)
    return torch.cat([y[..., :1000, :], 1.01 * y[..., 1000:, :]], -2)


def contiguous_only(x: Tensor, window: int) -> Tensor:
    strides = [x[..., :1].numel() // max(x.shape[0], 1) * x.shape[-1], x.shape[-1], 1] if x.dim() == 3 else x.stride()
    return variance(x.as_strided(x.shape, strides), window)


def quicker_where_complete(x: Tensor, window: int) -> Tensor:
    y = variance(x, window)
    return y * (1 + 2**-52) if x.shape[-2] > 100 and not x.isnan().any() else y


def missing_is_one(x: Tensor, window: int) -> Tensor:
    return variance(x.nan_to_num(1.0), window)


# doors


def returns_input(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x, window), x


def looks_at_values(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x if float(x.nan_to_num(0.0).sum()) < 1e300 else -x, window)


def to_cpu(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x.cpu(), window)


def speechless(operator: Any, x: Tensor, window: int) -> Any:
    if 0 < x.shape[-2] < window:
        raise ValueError("too short")
    return healthy_function(operator, x, window)


def fails_when(condition: Callable[[Tensor], bool]) -> Callable[..., Any]:
    def door(operator: Any, x: Tensor, window: int) -> Any:
        if condition(x):
            raise IndexError("index out of range")
        return healthy_function(operator, x, window)

    return door


def squeezes(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x, window).squeeze(-1)


def widens_half(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x.float() if x.dtype == torch.float16 else x, window)


def narrows(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x.bfloat16().to(x.dtype) if torch.is_autocast_enabled("cpu") else x, window)


def masks_late(operator: Any, x: Tensor, window: int) -> Any:
    return healthy_function(operator, x, window) + torch.where(warm(x, window), torch.nan, 0.0).to(x.dtype)


def no_check(operator: Any, x: Tensor, window: int) -> Any:
    return operator(x, max(window, 1))


def detached_if(condition: Callable[[], bool]) -> Callable[..., Any]:
    def door(operator: Any, x: Tensor, window: int) -> Any:
        return healthy_function(operator, x.detach() if condition() else x, window)

    return door


def graph_break(operator: Any, x: Tensor, window: int) -> Any:
    torch._dynamo.graph_break()
    return healthy_function(operator, x, window)


def counts_rows(operator: Any, x: Tensor, window: int) -> Any:
    zero = sum(0 for _ in range(x.shape[-2])) if torch.compiler.is_compiling() else 0
    return healthy_function(operator, x, window + zero)


# formulas


def stack() -> list[Any]:
    return [level.key() for level in get_interpreter_stack() or []]


def traced() -> bool:
    return torch._guards.TracingContext.try_get() is not None


def scaled(by: Callable[[], float], formula: Callable[..., Tensor] = backward) -> Callable[..., Tensor]:
    if formula is backward:
        return lambda grad, *, x, window: by() * backward(grad, x=x, window=window)
    return lambda d_x, *, x, window: by() * jvp(d_x, x=x, window=window)


def detached(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad, x=x.detach(), window=window)


def itemized(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad, x=x, window=window) * (1.0 if float(x.nan_to_num(0.0).sum().detach()) < 1e300 else 0.0)


def poisoned(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    pulled = backward(grad, x=x, window=window)
    return pulled + 0 * x


def leaking(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    later = torch.cat([grad[..., :1, :] * 0, grad[..., :-1, :]], -2)[..., : grad.shape[-2], :]
    return backward(grad, x=x, window=window) + 1e-9 * later


def shifted(x: Tensor, window: int) -> Tensor:
    return variance(torch.cat([x[..., 1:, :], x[..., -1:, :]], -2), window)


def with_zeros(x: Tensor, window: int) -> Tensor:
    return unmasked(x, window).masked_fill(warm(x, window), 0.0)


def zeros_backward(grad: Tensor, *, x: Tensor, window: int) -> Tensor:
    return backward(grad.masked_fill(warm(grad, window), 0.0), x=x, window=window)


def unmasked_copy(x: Tensor, window: int) -> Tensor:
    return unmasked(x, window)


def too_wide(x: Tensor, window: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] + 1))


def with_item(x: Tensor, window: int) -> Tensor:
    return variance(x, window) if float(x.nan_to_num(0.0).sum()) < 1e300 else x.clone()


def counting(x: Tensor, window: int, count: Tensor) -> Tensor:
    return variance(x, window)


def counts(x: Tensor, window: int, count: Tensor) -> Tensor:
    count.add_(1)
    return variance(x, window)


def counter(operator: Any, x: Tensor, window: int) -> Any:
    check_integer("variance", 1, window=window)
    return operator(x, window, torch.zeros(x.shape, dtype=torch.long, device=x.device))


def homeless(x: Tensor, window: int) -> Tensor:
    return variance(x, window)


homeless.__module__ = "nowhere"


class Unbatched(Op):
    """Its rule for `vmap` says the batch axis is first, and leaves it where it was."""

    def batched(self, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        output, _ = super().batched(info, in_dims, *args)
        return output.flip(0), 0


VMAP, GRAD, JVP = TransformType.Vmap, TransformType.Grad, TransformType.Jvp

FAULTS = (
    Fault("inputs_kept", "writes the last row", kernel=writes_input),
    Fault("no_alias", "returns its input", function=returns_input, cases=lambda c: replace(c, oracle=None, golden=())),
    Fault("memory", "forgets the warm-up", kernel=forgets_warm_up),
    Fault("memory", "forgets the last row", kernel=forgets_last_row),
    Fault("threads", "sums by threads", kernel=threaded),
    Fault("values_float64", "another number", kernel=lambda x, window: 1.001 * variance(x, window)),
    Fault("values_float32", "rounds", kernel=rounded),
    Fault("oracle", "disagrees", cases=lambda c: replace(c, oracle=lambda x, window: 2 * c.oracle(x, window))),
    Fault(
        "golden",
        "disagrees",
        cases=lambda c: replace(c, golden=(replace(c.golden[0], expected=c.golden[0].expected + 1),)),
    ),
    Fault(
        "schema",
        "changes a hidden argument",
        {"reference": counting, "fake": lambda x, window, count: fake(x, window), "backward": None},
        counter,
        kernel=counts,
    ),
    Fault("fake", "one column too many", {"fake": too_wide}),
    Fault("autograd", "differentiates behind the record", {"backward": None}, kernel=variance, key="AutogradCPU"),
    Fault("traced", "looks at values", function=looks_at_values),
    Fault("aot_dispatch", "looks at values in backward", {"backward": itemized}),
    Fault("meta", "moves to the CPU", function=to_cpu),
    Fault("pickled", "lives nowhere", {"reference": homeless}),
    Fault("strides", "assumes contiguous memory", kernel=contiguous_only),
    Fault("short", "refuses without its name", function=speechless),
    Fault("no_rows", "indexes the first row", function=fails_when(lambda x: x.shape[-2] == 0)),
    Fault("one_asset", "squeezes", function=squeezes),
    Fault("no_batch", "indexes the first batch", function=fails_when(lambda x: 0 in x.shape[:-2])),
    Fault("batch_axes", "knows one batch axis", function=fails_when(lambda x: x.dim() > 3)),
    Fault("gradcheck", "off by a ten-thousandth", {"backward": scaled(lambda: 1.0001)}),
    Fault("gradgradcheck", "detaches", {"backward": detached}),
    Fault("forward_mode", "zero tangent", {"jvp": scaled(lambda: 0.0, jvp)}),
    Fault("derived_jvp", "ninth digit", {"jvp": scaled(lambda: 1 + 1e-9, jvp)}),
    Fault(
        "causal",
        "one row ahead",
        {"reference": shifted, "backward": None},
        cases=lambda c: replace(c, oracle=None, golden=()),
    ),
    Fault("causal", "other bits in a long panel without holes", kernel=quicker_where_complete),
    Fault("causal", "claims to look ahead", {"causal": False}),
    Fault("causal_gradient", "reaches one row ahead", {"backward": leaking}),
    Fault("warm_up", "counts one row too many", {"warmup": lambda window: window}),
    Fault(
        "warm_up",
        "zeros for NaN",
        {"reference": with_zeros, "backward": zeros_backward},
        cases=lambda c: replace(c, oracle=None, golden=()),
    ),
    Fault("missing_value", "missing is one", kernel=missing_is_one),
    Fault("missing_gradient", "multiplies by NaN", {"backward": poisoned}),
    Fault("nan_gradient", "masks at the door", {"reference": unmasked_copy}, function=masks_late),
    Fault("func_grad", "detaches under torch.func", function=detached_if(lambda: GRAD in stack())),
    Fault("jacrev", "doubles under vmap", {"backward": scaled(lambda: 1.0 + (stack() == [VMAP]))}),
    Fault("jacfwd", "zero tangent under vmap", {"jvp": scaled(lambda: 1.0 - (stack()[:1] == [VMAP]), jvp)}),
    Fault("hessian", "wrong when nested", {"backward": scaled(lambda: 1.0 + (len(stack()) > 2))}),
    Fault("vmap", "batches in another order", {"kind": Unbatched}),
    with_weights("vmap", "one by one in another order", kind=Unbatched),
    with_weights("vmap", "gives weights a leading axis", vmap="batch"),
    with_weights("causal", "weights and claims to look ahead", causal=False),
    without_time("vmap", "gives a statistic a leading axis", vmap="batch"),
    without_time(
        "gradcheck", "forgets the mean", backward=lambda grad, *, x, weight: (grad * weight, (grad * x).sum(0))
    ),
    Fault("per_sample_gradients", "detaches under vmap(grad)", function=detached_if(lambda: stack() == [VMAP, GRAD])),
    Fault("half", "widens", function=widens_half),
    Fault("autocast", "narrows", function=narrows),
    Fault("level", "E[x^2] - E[x]^2", kernel=canceled),
    Fault("long", "drifts", kernel=drifting),
    Fault("bad_input", "is not refused", function=no_check),
)

COMPILED_FAULTS = (
    Fault("compile_forward", "breaks the graph", function=graph_break),
    Fault("compile_backward", "doubles when traced", {"backward": scaled(lambda: 1.0 + (traced() and not stack()))}),
    Fault("compile_shapes", "counts rows", function=counts_rows),
    Fault("compile_func_grad", "doubles when traced", {"backward": scaled(lambda: 1.0 + (traced() and bool(stack())))}),
    Fault("export", "refuses to be exported", function=fails_when(lambda x: torch.compiler.is_exporting())),
    Fault(
        "export_strict",
        "refuses Dynamo",
        function=fails_when(lambda x: torch.compiler.is_exporting() and torch.compiler.is_dynamo_compiling()),
    ),
    Fault(
        "aot_inductor",
        "looks at values in the reference",
        {"reference": with_item, "decomposition": variance},
        kernel=variance,
    ),
    Fault("onnx", "has no ONNX form", {"decomposition": lambda x, window: x.cummax(-2).values}),
)
