"""Pruning of hidden units: a smaller network."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import prune as torch_prune

from torch_opkit.arguments import check_integer, check_number, operation, raise_invalid
from torchcommodity import nn as own
from torchcommodity.models import HarNetwork, ModelConfig, ModelInputs, WindowNetwork, build_model
from torchcommodity.optimize._module import Model, call, call_model, restored_mode, with_module
from torchcommodity.optimize._unit_groups import CONV, UnitGroup, find_unit_groups, remove_units, score_units
from torchcommodity.optimize._weights import Weight, check_layers, copy_without_masks, in_layers, prunable_weights

WITH_UNITS = (nn.Linear, *CONV, nn.RNNBase, nn.RNNCellBase, own.LSTM, own.LSTMCell, own.LLTM, own.LLTMCell)


@operation("prune_units")
def prune_units(
    model: Model,
    amount: float | None = None,
    *,
    units: int | None = None,
    layers: Sequence[str] | None = None,
    example: object = None,
    method: Literal["remove", "zero"] = "remove",
) -> Model:
    """Remove the least important hidden units: neurons, channels of convolutions, units of recurrent layers.

    The layer that computes a unit loses a row, every layer that reads it loses its columns, so the model is smaller and
    faster. A symbolic trace (torch.fx) finds them in any module: `Linear`, `Conv`, `LSTM` and `GRU` of one layer, with
    activations, dropout, pooling, flattening and batch norm between them. Layers keep their units if those reach a
    residual sum, a layer norm, attention or the output. Units are ranked in each layer by the product of their absolute
    incoming and outgoing weights; a unit without outgoing weights does not change outputs when it is removed.

    A model that cannot be traced, because its forward depends on values, is pruned with method="zero": the units with
    the smallest L1 norm of their incoming weights get zeros for them (`torch.nn.utils.prune.ln_structured`), in every
    linear, convolutional and recurrent layer but the last one called; a unit of a recurrent layer in all of its gates.
    Biases and sizes stay. So does every model whose units cannot be removed.

    Args:
        model: any module; a forecaster whose head reads one recurrent layer and nothing else, which the attribute
            `recurrence` of its model names; or one of a network on windows, with the numbers of units among its
            settings. Not changed.
        amount: share of the units of each layer to remove, in [0, 1); at least one unit remains.
        units: units that each layer keeps; smaller layers are left as they are. Give either `amount` or `units`.
        layers: paths of the layers whose units are pruned, as `named_modules` lists them; None: all.
        example: inputs of a module: a Tensor, a tuple of arguments or a mapping of keyword arguments. A forecaster
            needs none.
        method: "remove" or "zero".

    Returns:
        A copy: a module of the same class with smaller layers, or a forecaster.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster, or amount or units is no number.
        ValueError: the amount or the number of units is out of range, there is no example, the model cannot be traced,
            or no layer has units that can be removed; the message says why for each.

    References:
        Li, Kadav, Durdanovic, Samet, Graf (2017). Pruning filters for efficient convnets. ICLR. arXiv:1608.08710.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> optimize.prune_units(model, 0.5, example=torch.ones(1, 4))
        Sequential(
          (0): Linear(in_features=4, out_features=4, bias=True)
          (1): ReLU()
          (2): Linear(in_features=4, out_features=2, bias=True)
        )
    """
    _check_amount(amount, units)
    module = copy_without_masks(model)
    if method == "zero":
        return with_module(model, _zero_units(module, amount, layers, example))
    if method != "remove":
        raise_invalid("prune_units", 'method must be "remove" or "zero"', method=method)
    groups = _groups(module, layers, example)
    largest = max(group.count for group in groups)
    if units is not None and units > largest:
        raise_invalid("prune_units", f"units must be in 1..{largest}", units=units)
    scores = [score_units(group) for group in groups]  # before any is removed
    remaining = {}
    for group, score in zip(groups, scores):
        count = group.count - int((amount or 0.0) * group.count) if units is None else min(units, group.count)
        remaining[group.count] = count
        remove_units(group, score.topk(count).indices.sort().values)
    if isinstance(module, HarNetwork):
        module.config = _smaller_config(module, remaining)
    traced: nn.Module = module
    if isinstance(module, WindowNetwork):
        traced, example = module.network, module.example()
    if example is not None:
        try:  # its forward may rely on sizes that a trace does not show
            with torch.no_grad(), restored_mode(module):
                call(traced.eval(), example)
        except Exception as error:
            rule = 'the forward of the model relies on the sizes of its layers; method="zero" keeps them'
            raise ValueError(f"prune_units: {rule}; got {type(error).__name__}: {error}") from error
    return with_module(model, module)


def _smaller_config(module: HarNetwork, units: dict[int, int]) -> ModelConfig:
    """The settings with which a file builds a model with fewer units: one of its numbers is that of the units.

    Args:
        module: without the units.
        units: remaining ones, by the number of units of a layer before.
    """
    numbers = module.config.numbers()
    for config in [module.config.with_numbers({name: units[int(x)]}) for name, x in numbers.items() if x in units]:
        if _shapes(build_model(config, module.har.assets)) == _shapes(module):
            return config
    rule = "the units of the layers must be one of the settings of the model, with which a file builds it"
    rule += "; prune a network of your own as a module, and pass it to Forecaster.from_module"
    return raise_invalid("prune_units", rule, settings=", ".join(numbers) or "none")


def _shapes(module: HarNetwork) -> dict[str, torch.Size]:
    return {name: x.shape for name, x in module.state_dict().items() if not name.startswith("har.")}


def _check_amount(amount: float | None, units: int | None) -> None:
    if (amount is None) == (units is None):
        raise_invalid("prune_units", "give either amount or units", amount=amount, units=units)
    if units is not None:
        check_integer("prune_units", 1, units=units)
        return
    check_number("prune_units", amount=amount)
    if not 0 <= (amount or 0.0) < 1:
        rule = "amount must be in [0, 1), a share of the units; units=... is a number of them"
        raise_invalid("prune_units", rule, amount=amount)


def _groups(module: nn.Module, layers: Sequence[str] | None, example: object) -> list[UnitGroup]:
    """Groups of a forecaster that names its recurrent layer, of any other module by trace."""
    check_layers(module, layers)
    prefix = ""
    if isinstance(module, HarNetwork) and module.recurrence:
        name = module.recurrence
        recurrence: Any = module.get_submodule(name)
        if not in_layers(name, layers):
            raise_invalid("prune_units", f"layers must contain {name}, the only one with units", layers=layers)
        return [UnitGroup(name, recurrence, recurrence.hidden_size, readers=[module.head])]
    if isinstance(module, WindowNetwork):
        example, prefix = module.example(), "network."
        module = module.network
    elif isinstance(module, HarNetwork):
        rule = "the head of a forecaster must read one recurrent layer and nothing else, which `recurrence` names"
        rule += '; method="zero" keeps the sizes of any other'
        raise_invalid("prune_units", rule, model=type(module).__name__)
    if example is None:
        raise_invalid("prune_units", "a module needs example, inputs with which it is traced", example=None)
    with restored_mode(module):
        with torch.no_grad():  # an example that does not fit is no fault of the trace
            call_model(module.eval(), example)
        groups, reasons = find_unit_groups(module, example)
    groups = [group for group in groups if in_layers(prefix + group.name, layers)]
    reasons = {name: reason for name, reason in reasons.items() if in_layers(prefix + name, layers)}
    if not groups:
        details = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "no linear, conv or LSTM layer"
        rule = f"the model must have a layer whose units can be removed ({details})"
        raise_invalid("prune_units", rule, model=type(module).__name__)
    return groups


def _any_prices(module: HarNetwork) -> ModelInputs:
    """Constant prices with a forecast, and what else the module may ask for."""
    config, rows = module.har.config, module.har.config.warmup + 3
    prices = torch.ones(rows, module.har.assets, dtype=torch.double)
    references = prices.new_ones(rows, len(config.references)) if config.references else None
    bars = prices.new_ones(*prices.shape, 3) if config.bars else None
    return ModelInputs(prices, references=references, days=torch.arange(rows), bars=bars)


@torch.no_grad()
def _zero_units(module: nn.Module, amount: float | None, layers: Sequence[str] | None, example: object) -> nn.Module:
    """Zero the incoming weights of the units with the smallest L1 norm, in every layer but the last one called."""
    if example is None and isinstance(module, HarNetwork):
        example = _any_prices(module).batch()
    if amount is None or example is None:
        rule = 'method="zero" needs amount, and an example, which shows the last layer'
        raise_invalid("prune_units", rule, amount=amount, example=None if example is None else type(example).__name__)
    check_layers(module, layers)
    incoming: dict[nn.Module, dict[str, list[Weight]]] = {}  # of each layer, by part of a stack or direction
    for weight in prunable_weights(module):
        layer, name = weight.owners[0]
        if (
            len(weight.owners) == 1 and isinstance(layer, WITH_UNITS) and not name.startswith("weight_hr")
        ):  # a projection
            part = name.removeprefix("weight_ih").removeprefix("weight_hh")
            incoming.setdefault(layer, {}).setdefault(part, []).append(weight)
    called: list[nn.Module] = []
    hooks = [layer.register_forward_hook(lambda layer, *_: called.append(layer)) for layer in incoming]
    with restored_mode(module):
        call_model(module.eval(), example)
    for hook in hooks:
        hook.remove()
    paths = {layer: path for path, layer in module.named_modules()}
    pruned = [x for x in dict.fromkeys(called) if x is not called[-1] and in_layers(paths[x], layers)]
    if not pruned:
        last = [paths[layer] for layer in called[-1:]]
        rule = "there must be a linear, convolutional or recurrent layer to prune before the last one, which keeps its"
        raise_invalid("prune_units", f"{rule} units", last=last, layers=layers)
    for layer in pruned:
        for weights in incoming[layer].values():
            rows = weights[0].value.shape[0]
            units = int(getattr(layer, "hidden_size", rows))  # a recurrent layer has rows for every gate
            norms = sum(weight.value.abs().reshape(rows // units, units, -1).sum((0, 2)) for weight in weights)
            assert isinstance(norms, Tensor)
            remaining = torch_prune.LnStructured(float(amount), n=1, dim=0).compute_mask(
                norms[:, None], torch.ones_like(norms[:, None])
            )
            for weight in weights:
                weight.value.view(rows // units, units, -1).mul_(remaining)
    return module
