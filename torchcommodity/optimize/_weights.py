"""The weights of a model: which layers own them, which are pruned, and masks that keep zeros in training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

from torch_opkit.arguments import current_operation, operation, raise_invalid
from torchcommodity.optimize._module import Model, copy_module, econometric_parts, with_module


@dataclass(frozen=True)
class Weight:
    """A parameter, or the value of a parametrized one; listed once if several layers share it."""

    name: str  # "encoder.0.weight"
    owners: tuple[tuple[nn.Module, str], ...]  # layer and attribute
    value: Tensor
    econometric: bool  # whether it belongs to `models.Har`, which is calibrated in closed form

    @property
    def layers(self) -> tuple[nn.Module, ...]:
        """The layers that own it; several if it is tied."""
        return tuple(layer for layer, _ in self.owners)

    @property
    def parametrizations(self) -> tuple[nn.Module, ...]:
        """Modules that compute the value, in order; empty for a plain parameter."""
        layer, name = self.owners[0]
        if not parametrize.is_parametrized(layer, name):
            return ()
        # the list of parametrizations numbers them; one that is parametrized itself has other children too
        children = layer.get_submodule(f"parametrizations.{name}").named_children()
        return tuple(child for index, child in children if index.isdigit())


@torch.no_grad()
def list_weights(module: nn.Module) -> list[Weight]:
    """List every weight of a module, in order."""
    econometric = {id(layer) for har in econometric_parts(module) for layer in har.modules()}
    weights: dict[int, Weight] = {}
    for path, layer in module.named_modules():
        if "parametrizations" in path.split("."):
            continue
        own = [(name, id(x), x.detach()) for name, x in layer.named_parameters(recurse=False)]
        if parametrize.is_parametrized(layer):
            for name, originals in layer.get_submodule("parametrizations").named_children():
                own.append((name, id(next(originals.parameters())), getattr(layer, name).detach()))
        for name, key, value in own:  # a tied weight has one key
            first = weights.get(key) or Weight(f"{path}.{name}".strip("."), (), value, id(layer) in econometric)
            weights[key] = Weight(first.name, (*first.owners, (layer, name)), first.value, first.econometric)
    return list(weights.values())


def select_weights(module: nn.Module, verb: str, reason: Callable[[Weight], str]) -> list[Weight]:
    """List the weights that have no reason to be left as they are.

    Raises:
        ValueError: there is none (the message has the reasons), or one is not finite.
    """
    weights = list_weights(module)
    selected = [weight for weight in weights if not reason(weight)]
    if not selected:
        reasons = sorted({reason(weight) for weight in weights}) or ["it has no parameters"]
        rule = f"model must have a network with weights to {verb} ({'; '.join(reasons)})"
        raise_invalid(current_operation(), rule, model=type(module).__name__)
    if broken := [weight.name for weight in selected if not weight.value.isfinite().all()]:
        rule = "weights must be finite; look for the step of training that diverged"
        raise_invalid(current_operation(), rule, weight=broken[0])
    return selected


def prunable_weights(module: nn.Module, layers: Sequence[str] | None = None) -> list[Weight]:
    """List the weights that are pruned, of all layers or of some; ValueError if there is none or one is not finite."""
    check_layers(module, layers)
    other = "in another layer than those of layers="
    return select_weights(
        module, "prune", lambda x: reason_not_pruned(x) or ("" if in_layers(x.name, layers) else other)
    )


def check_layers(module: nn.Module, layers: Sequence[str] | None) -> None:
    """Check that `layers` are paths of layers of the module."""
    if isinstance(layers, str):
        raise_invalid(
            current_operation(), "layers must be a list of paths, such as ['encoder']", TypeError, layers=layers
        )
    paths = [path for path, _ in module.named_modules() if path]
    if unknown := [path for path in layers or () if path not in paths]:
        raise_invalid(current_operation(), f"layers must be among {', '.join(paths)}", layers=unknown)


def in_layers(path: str, layers: Sequence[str] | None) -> bool:
    """Whether a path is that of one of the layers, or lies inside one; all do if there is no list."""
    return layers is None or any(f"{path}.".startswith(f"{layer}.") for layer in layers)


def reason_not_pruned(weight: Weight) -> str:
    """Why a weight is not pruned, in words; empty if it is."""
    if weight.econometric:
        return "econometric part, calibrated in closed form"
    if any(isinstance(layer, torch.jit.ScriptModule) for layer in weight.layers):  # it takes no masks
        return "compiled by torch.jit: script the layer after pruning"
    if names := [type(part).__name__.lstrip("_") for part in weight.parametrizations]:
        return "int8" if "Int8" in names else f"parametrized by {', '.join(names)}"
    if weight.value.dim() < 2:
        return "one axis: a bias or a scale"
    if not weight.value.is_floating_point():
        return f"{str(weight.value.dtype).removeprefix('torch.')}: not floating-point"
    if any(isinstance(layer, nn.Embedding | nn.EmbeddingBag) for layer in weight.layers):
        return "embedding: few inputs read each row"
    if any(isinstance(layer, nn.LayerNorm | nn.RMSNorm) for layer in weight.layers):
        return "normalization"
    if any(hasattr(hook, "name") for layer in weight.layers for hook in layer._forward_pre_hooks.values()):
        return "computed by a hook (torch.nn.utils.weight_norm): remove_weight_norm first"
    return ""


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
