"""A module on a device without float64 against the same module on the CPU in float64: outputs and gradients."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

VALUES = 1e-4  # relative to the largest value of a tensor
GRADIENTS = 1e-3


def disagreements(module: nn.Module, tensors: tuple[Any, ...], device: torch.device) -> Iterator[str]:
    """What differs by more than rounding, in words; the module and its floating-point tensors are of float32."""
    exact = _outputs_and_gradients(copy.deepcopy(module).double(), tree_map_only(Tensor, to_double, tensors))
    moved = tree_map_only(Tensor, lambda x: x.to(device), tensors)
    actual = _outputs_and_gradients(copy.deepcopy(module).to(device), moved)
    for name, y in exact.items():
        tolerance = VALUES if name.startswith("output") else GRADIENTS
        yield from (f"{name}: {words}" for words in difference(actual[name], y, device, tolerance))


def difference(x: Tensor, y: Tensor, device: torch.device, tolerance: float) -> Iterator[str]:
    """What is wrong with x on the device, where y is right."""
    if x.device.type != device.type:
        yield f"expected {device.type}; got {x.device}"
    x, y = x.detach().cpu().double(), y.detach().double()
    if not torch.equal(x.isfinite(), y.isfinite()):
        yield f"expected {int(y.isfinite().sum())} finite values; got {int(x.isfinite().sum())}"
        return
    error = (x - y).nan_to_num(0.0).abs()
    allowed = tolerance * y[y.isfinite()].abs().amax() if y.isfinite().any() else torch.zeros(())
    if (error > allowed).any():
        yield f"largest difference {error.max():.1e}; expected at most {allowed:.1e}"


def to_double(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x


def weighted_sum(outputs: Any) -> Tensor:  # ()
    """A loss that depends on every finite floating-point output."""
    total = torch.zeros((), device=tree_leaves(outputs)[0].device)
    for y in tree_leaves(outputs):
        if y.is_floating_point():
            weights = torch.arange(y.numel(), device=y.device).to(y).cos().reshape(y.shape)
            total = total + (y.where(y.isfinite(), 0.0) * weights).sum()
    return total


def _outputs_and_gradients(module: nn.Module, tensors: tuple[Any, ...]) -> dict[str, Tensor]:
    leaves = [x for x in tree_leaves(tensors) if isinstance(x, Tensor) and x.is_floating_point()]
    for x in leaves:
        x.requires_grad_()
    outputs = module(*tensors)
    named = [*module.named_parameters(), *((f"input {i}", x) for i, x in enumerate(leaves))]
    named = [(name, x) for name, x in named if x.requires_grad]
    total = weighted_sum(outputs)
    if not total.requires_grad:
        named = []
    gradients = torch.autograd.grad(total, [x for _, x in named], allow_unused=True) if named else ()
    results = {f"output {i}": y for i, y in enumerate(tree_leaves(outputs))}
    return results | {f"gradient of {name}": g for (name, _), g in zip(named, gradients) if g is not None}
