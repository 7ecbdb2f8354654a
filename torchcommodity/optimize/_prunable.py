"""Which weights of a model are pruned, and why the others are not."""

import torch
from torch import nn

from torchcommodity.optimize._weights import Weight, select_weights


def prunable_weights(module: nn.Module) -> list[Weight]:
    """List the weights that are pruned; raise ValueError if there is none or one is not finite."""
    return select_weights(module, "prune", reason_not_pruned)


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
