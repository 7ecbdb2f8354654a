"""The weights of a model: which tensors there are, and which layers own them."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torchcommodity.models import Har


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


def _own_weights(layer: nn.Module) -> list[tuple[str, int, Tensor]]:
    """Name, identity and value of the weights of one layer; a tied weight has one identity."""
    own = [(name, id(x), x.detach()) for name, x in layer.named_parameters(recurse=False)]
    if parametrize.is_parametrized(layer):
        for name, originals in layer.get_submodule("parametrizations").named_children():
            own.append((name, id(next(originals.parameters())), getattr(layer, name).detach()))
    return own
