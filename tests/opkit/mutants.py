"""At least one mutant for each check of the contract, most of them of the variance of a rolling window."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from mutation import (
    Mutant,
    backward,
    jvp,
    public_variance,
    unmasked_variance,
    variance,
    warmup_mask,
    windows,
    with_weights,
    without_oracle,
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


VMAP, GRAD, JVP = TransformType.Vmap, TransformType.Grad, TransformType.Jvp

MUTANTS = (
    Mutant("inputs_unchanged", "writes the last row", kernel=writes_input),
    Mutant("no_aliasing", "returns its input", function=returns_input, cases=without_oracle),
    Mutant("uninitialized_memory", "skips the warm-up", kernel=skips_warmup_rows),
    Mutant("uninitialized_memory", "skips the last row", kernel=skips_last_row),
    Mutant("threads", "depends on threads", kernel=depends_on_threads),
    Mutant("values_float64", "another number", kernel=lambda x, window: 1.001 * variance(x, window)),
    Mutant("values_float32", "rounds", kernel=rounds_float32),
    Mutant("oracle", "differs", cases=lambda c: replace(c, oracle=lambda x, window: 2 * c.oracle(x, window))),
    Mutant(
        "golden",
        "differs",
        cases=lambda c: replace(c, golden=(replace(c.golden[0], expected=c.golden[0].expected + 1),)),
    ),
    Mutant(
        "schema",
        "changes a hidden argument",
        {"reference": variance_with_count, "backward": None},
        passes_count,
        kernel=increments_count,
    ),
    Mutant("fake", "one column too many", {"fake": one_column_too_many}),
    Mutant("autograd_registration", "kernel is differentiable", {"backward": None}, kernel=variance, key="AutogradCPU"),
    Mutant("no_data_dependence", "reads values", function=reads_values),
    Mutant("aot_dispatch", "reads values in backward", {"backward": value_dependent}),
    Mutant("meta", "moves to the CPU", function=moves_to_cpu),
    Mutant("pickle_and_copy", "reference in no module", {"reference": in_no_module}),
    Mutant("strides", "assumes contiguous memory", kernel=assumes_contiguous),
    Mutant("short_series", "raises without its name", function=raises_without_name),
    Mutant("zero_rows", "indexes the first row", function=raises_if(lambda x: x.shape[-2] == 0)),
    Mutant("one_asset", "squeezes", function=squeezes),
    Mutant("empty_batch", "indexes the first sample", function=raises_if(lambda x: 0 in x.shape[:-2])),
    Mutant("batch_axes", "supports one batch axis only", function=raises_if(lambda x: x.dim() > 3)),
    Mutant("gradcheck", "off by 1e-4", {"backward": scaled(lambda: 1.0001)}),
    Mutant("gradgradcheck", "detaches", {"backward": detached}),
    Mutant("forward_mode", "zero tangent", {"jvp": scaled_jvp(lambda: 0.0)}),
    Mutant("jvp_formula", "off by 1e-9", {"jvp": scaled_jvp(lambda: 1 + 1e-9)}),
    Mutant("causal", "one row ahead", {"reference": looks_ahead, "backward": None}, cases=without_oracle),
    Mutant("causal", "rounds long complete panels", kernel=rounds_if_complete),
    Mutant("causal", "wrong causal=False", {"causal": False}),
    Mutant("causal_gradient", "one row ahead", {"backward": leaks_ahead}),
    Mutant("warmup", "one row too many", {"warmup": lambda window: window}),
    Mutant(
        "warmup",
        "zeros for NaN",
        {"reference": zeros_in_warmup, "backward": zeros_backward},
        cases=without_oracle,
    ),
    Mutant("missing_values", "replaces NaN by one", kernel=replaces_nan_by_one),
    Mutant("missing_values_gradient", "multiplies by NaN", {"backward": multiplied_by_nan}),
    Mutant("nan_output_gradient", "adds NaN outside", {"reference": unmasked_variance}, function=adds_nan),
    Mutant("func_grad", "detaches under torch.func", function=detaches_if(lambda: GRAD in transforms())),
    Mutant("jacrev", "doubles under vmap", {"backward": scaled(lambda: 1.0 + (transforms() == [VMAP]))}),
    Mutant("jacfwd", "zero tangent under vmap", {"jvp": scaled_jvp(lambda: 1.0 - (transforms()[:1] == [VMAP]))}),
    Mutant("hessian", "wrong when nested", {"backward": scaled(lambda: 1.0 + (len(transforms()) > 2))}),
    Mutant("vmap", "reverses the batch", op_class=ReversedBatch),
    with_weights("vmap", "reverses the batch of weights", op_class=ReversedBatch),
    with_weights("vmap", "batches weights as a panel", vmap="batch"),
    with_weights("causal", "wrong causal=False with weights", causal=False),
    without_time("vmap", "batches a batch statistic", vmap="batch"),
    without_time(
        "gradcheck", "ignores the mean", backward=lambda grad, *, x, weight: (grad * weight, (grad * x).sum(0))
    ),
    Mutant(
        "per_sample_gradients",
        "detaches under vmap(grad)",
        function=detaches_if(lambda: transforms() == [VMAP, GRAD]),
    ),
    Mutant("half_precision", "returns float32", function=returns_float32_for_half),
    Mutant("autocast", "computes in bfloat16", function=computes_in_bfloat16),
    Mutant("large_level", "E[x^2] - E[x]^2", kernel=subtracts_squares),
    Mutant("long_series", "drifts", kernel=drifts),
    Mutant("bad_input", "accepts window=0", function=accepts_any_window),
)

COMPILED_MUTANTS = (
    Mutant("compile_forward", "breaks the graph", function=breaks_graph),
    Mutant(
        "compile_backward",
        "doubles when traced",
        {"backward": scaled(lambda: 1.0 + (is_traced() and not transforms()))},
    ),
    Mutant("compile_shapes", "loops over rows", function=loops_over_rows),
    Mutant(
        "compile_func_grad",
        "doubles when traced",
        {"backward": scaled(lambda: 1.0 + (is_traced() and bool(transforms())))},
    ),
    Mutant("export", "raises in export", function=raises_if(lambda x: torch.compiler.is_exporting())),
    Mutant(
        "export_strict",
        "raises under Dynamo",
        function=raises_if(lambda x: torch.compiler.is_exporting() and torch.compiler.is_dynamo_compiling()),
    ),
    Mutant(
        "aot_inductor",
        "reads values in the reference",
        {"reference": branches_on_values, "decomposition": variance},
        kernel=variance,
    ),
    Mutant("onnx", "has no ONNX form", {"decomposition": lambda x, window: x.cummax(-2).values}),
)
