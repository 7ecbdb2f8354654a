"""The weights of a model: which tensors there are, and which layers own them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torchcommodity.models import Har
from torchcommodity.opkit.arguments import current_operation, raise_invalid


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
    econometric = {id(layer) for har in module.modules() if isinstance(har, Har) for layer in har.modules()}
    weights: dict[int, Weight] = {}
    for path, layer in module.named_modules():
        if "parametrizations" in path.split("."):
            continue
        for name, key, value in _own_weights(layer):
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


def _own_weights(layer: nn.Module) -> list[tuple[str, int, Tensor]]:
    """Name, identity and value of the weights of one layer; a tied weight has one identity."""
    own = [(name, id(x), x.detach()) for name, x in layer.named_parameters(recurse=False)]
    if parametrize.is_parametrized(layer):
        for name, originals in layer.get_submodule("parametrizations").named_children():
            own.append((name, id(next(originals.parameters())), getattr(layer, name).detach()))
    return own
