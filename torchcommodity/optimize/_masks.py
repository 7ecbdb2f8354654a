"""Masks that keep pruned weights at zero during training."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

from torchcommodity.opkit.arguments import operation
from torchcommodity.optimize._module import Model, copy_module, with_module
from torchcommodity.optimize._weights import Weight


class ZeroMask(nn.Module):
    """Parametrization that keeps pruned weights at zero.

    Args:
        mask: False where the weight is zero.
        order: names of the layer's parameters, whose order is that of optimizer states.
    """

    mask: Tensor

    def __init__(self, mask: Tensor, order: tuple[str, ...]) -> None:
        super().__init__()
        self.register_buffer("mask", mask, persistent=False)
        self.order = order

    def forward(self, weight: Tensor) -> Tensor:
        """The weight, and zero where it is pruned."""
        return torch.where(self.mask, weight, 0.0)


def mask_zeros(weights: list[Weight]) -> None:
    """Mask the zeros of weights in place; layers that share a weight keep sharing it."""
    orders = {layer: tuple(layer._parameters) for weight in weights for layer in weight.layers}
    for weight in weights:
        mask = weight.value != 0
        for layer, name in weight.owners:
            parametrize.register_parametrization(layer, name, ZeroMask(mask, orders[layer]))


@operation("remove_masks")
def remove_masks(model: Model) -> Model:
    """Make pruned weights plain parameters again: their zeros may then change in training.

    Args:
        model: module or forecaster with the masks of `prune(permanent=False)` or of `torch.nn.utils.prune`.

    Returns:
        A copy without masks, with the same outputs.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> masked = optimize.prune(torch.nn.Linear(4, 4), 0.5, permanent=False)
        >>> list(masked.state_dict()), list(optimize.remove_masks(masked).state_dict())
        (['bias', 'parametrizations.weight.original'], ['weight', 'bias'])
    """
    return with_module(model, copy_without_masks(model))


def copy_without_masks(model: object) -> nn.Module:
    """Copy a module, or the module of a forecaster, and remove its masks."""
    module = copy_module(model)
    for layer in list(module.modules()):
        for hook in list(layer._forward_pre_hooks.values()):
            if isinstance(hook, prune.BasePruningMethod):
                prune.remove(layer, hook._tensor_name)
        if parametrize.is_parametrized(layer):
            _remove_zero_masks(layer)
    return module


def _remove_zero_masks(layer: nn.Module) -> None:
    order: tuple[str, ...] = ()
    for name, originals in list(layer.get_submodule("parametrizations").named_children()):
        for child in originals.children():
            if isinstance(child, ZeroMask):
                order = child.order
                parametrize.remove_parametrizations(layer, name)
                break
    for name in order:
        if name in layer._parameters:
            layer._parameters[name] = layer._parameters.pop(name)
