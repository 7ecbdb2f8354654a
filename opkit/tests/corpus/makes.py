"""Short forms of the ways in which PyTorch operators are made, and data for them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LIBRARY = torch.library.Library("corpus_library", "FRAGMENT")


def save_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    """Save tensors for backward, and the other arguments as `ctx.settings`."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.settings = [x for x in inputs if not isinstance(x, Tensor)]


def like_first(x: Tensor, *_: Any) -> Tensor:
    """Fake kernel of an operator whose output is like its first argument."""
    return torch.empty_like(x)


def custom_op(
    fake: Callable[..., Any] | None = like_first,
    backward: Callable[..., Any] | None = None,
    context: Callable[..., None] = save_inputs,
    mutates: tuple[str, ...] = (),
    device: str | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: `torch.library.custom_op` with a fake kernel and a backward formula."""

    def define(function: Callable[..., Any]) -> Any:
        name = f"corpus::{function.__name__}"
        op = torch.library.custom_op(name, function, mutates_args=mutates, device_types=device)
        if fake:
            op.register_fake(fake)
        if backward:
            op.register_autograd(backward, setup_context=context)
        return op

    return define


def library_op(
    schema: str, key: str = "CompositeImplicitAutograd", fake: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: an operator defined with `Library.define` and implemented for a dispatch key."""

    def define(function: Callable[..., Any]) -> Any:
        name = function.__name__
        LIBRARY.define(name + schema)
        LIBRARY.impl(name, function, key)
        if fake:
            torch.library.register_fake(f"corpus_library::{name}", fake, lib=LIBRARY)
        return getattr(torch.ops.corpus_library, name).default

    return define


class Saved(torch.autograd.Function):
    """An autograd.Function that saves its inputs, for backward and for forward mode."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        save_inputs(ctx, inputs, output)
        ctx.save_for_forward(*[x for x in inputs if isinstance(x, Tensor)])


def rand(*shape: int, seed: int = 0) -> Tensor:
    """Positive numbers between 0.5 and 1.5."""
    return 0.5 + torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def randn(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, none closer to zero than 0.05, where activations have their kinks."""
    x = torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return x + 0.05 * x.sign()


def prices(rows: int = 12, batch: int = 2, assets: int = 3, seed: int = 0) -> Tensor:
    """A panel (B, T, N) of random walks around 60."""
    return 60.0 * (0.02 * randn(batch, rows, assets, seed=seed)).cumsum(-2).exp()


def indices(*shape: int, high: int, seed: int = 0) -> Tensor:
    """Random integers below `high`."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def series(*tensors: Tensor, **declare: Any) -> dict[str, Any]:
    """Declaration of a causal operator on panels."""
    return {"samples": [(x,) for x in tensors] or [(prices(),)], "time": -2, "causal": True, **declare}
