"""Hidden units that can be removed: the layer that computes them, and every layer that reads them.

A symbolic trace of the model is followed from each layer through everything that treats units one by one (activations,
dropout, pooling, batch norm) to the layers that read them. A unit that reaches anything else, such as a residual sum, a
layer norm or the output, cannot be removed. A unit is a row of the layer that computes it, and columns of its readers.
"""

import io
import operator
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional as F
from torch.nn.utils import parametrize

from torchcommodity import nn as layers

CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LSTM = (nn.LSTM, nn.GRU, layers.LSTM)
BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
ELEMENTWISE: tuple[Any, ...] = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus, nn.Identity),
    *(nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Dropout, nn.Dropout1d, nn.Dropout2d),
    *(F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.gelu, F.silu, F.mish, F.softplus, F.tanh, F.sigmoid, F.hardtanh),
    *(F.hardswish, F.dropout, torch.relu, torch.tanh, torch.sigmoid, "relu", "relu_", "tanh", "sigmoid", "contiguous"),
)
POOLING: tuple[Any, ...] = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
    *(F.max_pool1d, F.max_pool2d, F.avg_pool1d, F.avg_pool2d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d),
    *(F.adaptive_max_pool1d, F.adaptive_max_pool2d),
)
FLATTEN: tuple[Any, ...] = (nn.Flatten, torch.flatten, "flatten")
MEAN: tuple[Any, ...] = (torch.mean, "mean")
RESIDUAL = {operator.add, operator.iadd, operator.mul, operator.imul, torch.add, torch.mul, "add", "add_", "mul"}


@dataclass
class UnitGroup:
    """Units of one layer."""

    name: str
    layer: Any  # computes the units
    count: int
    norms: list[Any] = field(default_factory=list)  # batch norms on the way
    readers: list[Any] = field(default_factory=list)  # layers whose input the units are


class _Tracer(fx.Tracer):
    """Does not trace into the layers of this library either; a buffer may be cut to the length of the input."""

    proxy_buffer_attributes = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, layers.LSTM) or super().is_leaf_module(m, module_qualified_name)


class _CannotRemoveError(Exception):
    """Says why units of a layer cannot be removed."""


def find_unit_groups(module: nn.Module, example: object) -> tuple[list[UnitGroup], dict[str, str]]:
    """Find the groups of a module in evaluation mode, and the reason for every layer whose units cannot be removed.

    Args:
        module: the module; unchanged.
        example: inputs: a Tensor, a tuple of arguments or a mapping of keyword arguments.

    Raises:
        ValueError: the module cannot be traced.
    """
    graph = _trace(module, example)
    uses = Counter(node.target for node in graph.nodes if node.op == "call_module")
    groups, reasons = [], {}
    for node in graph.nodes:
        layer = module.get_submodule(node.target) if node.op == "call_module" else None
        if not isinstance(layer, (nn.Linear, *CONV, *LSTM)):
            continue
        try:
            groups.append(_follow(module, node, layer, uses))
        except _CannotRemoveError as reason:
            reasons[str(node.target)] = str(reason)
    return groups, reasons


def _trace(module: nn.Module, example: object) -> fx.Graph:
    """Symbolic trace with the shapes that the example has."""
    try:
        graph = _Tracer().trace(module)
        arguments = example if isinstance(example, tuple | list) else (example,)
        if isinstance(example, Mapping):
            inputs = [node for node in graph.nodes if node.op == "placeholder"]
            arguments = [example.get(node.target, *node.args[:1]) for node in inputs]
        with torch.no_grad(), redirect_stderr(io.StringIO()):  # where ShapeProp prints the traceback of an error
            ShapeProp(fx.GraphModule(module, graph)).propagate(*arguments)
    except Exception as error:
        rule = 'the model must be traceable by torch.fx; method="zero" sets the weights of units to zero instead'
        raise ValueError(f"prune_units: {rule}; got {type(error).__name__}: {error}") from error
    return graph


def _follow(module: nn.Module, start: fx.Node, layer: Any, uses: Counter[object]) -> UnitGroup:
    """Follow the units of a layer to everything that reads them."""
    _check_layer(module, str(start.target), uses)
    sizes = (getattr(layer, name, None) for name in ("hidden_size", "out_features", "out_channels"))
    group = UnitGroup(str(start.target), layer, next(int(size) for size in sizes if size is not None))
    axis = "channel" if isinstance(layer, CONV) else "last"
    outputs = [start]
    if isinstance(layer, LSTM):
        outputs = [item for item in start.users if item.users]
        if any(item.target is not operator.getitem or item.args[1] != 0 for item in outputs):
            raise _CannotRemoveError("its state is used, not only its outputs")
    steps = [(user, axis) for item in outputs for user in item.users]
    while steps:
        node, axis = steps.pop()
        after = _step(module, group, node, axis, uses)
        if after:
            steps += [(user, after) for user in node.users]
    return group


def _step(module: nn.Module, group: UnitGroup, node: fx.Node, axis: str, uses: Counter[object]) -> str:
    """Axis of the units after a node: "last", "channel" or "flat" (all columns of a channel); "" if it reads them."""
    if node.op == "output":
        raise _CannotRemoveError("its units are an output of the model")
    if len(node.all_input_nodes) > 1:
        others = "those of another layer (a residual connection)" if node.target in RESIDUAL else "other values"
        raise _CannotRemoveError(f"its units meet {others} in {node.name}")
    layer = module.get_submodule(str(node.target)) if node.op == "call_module" else None
    kind = node.target if layer is None else type(layer)
    if kind in ELEMENTWISE or (kind in POOLING and axis == "channel"):
        return axis
    if kind in FLATTEN and _keeps_batch(node, layer):
        _check_unmoved(node, axis != "last" or _dims(node.all_input_nodes[0]) == 2)
        return "last" if axis == "last" else "flat"
    if kind in MEAN and axis == "channel":
        _check_unmoved(node, _shape(node)[1:2] == (group.count,))
        return "channel" if _dims(node) > 2 else "flat"
    if kind is operator.getitem and axis == "last":
        _check_unmoved(node, _dims(node) > 0 and _shape(node)[-1] == group.count and not _touches_last(node))
        return axis
    if isinstance(layer, BATCH_NORM) and (axis == "channel" or _dims(node) == 2):
        group.norms.append(layer)
        return axis
    reads_last = isinstance(layer, (nn.Linear, *LSTM)) and axis in ("last", "flat")
    reads_channel = isinstance(layer, CONV) and axis == "channel"
    if not (reads_last or reads_channel):
        raise _CannotRemoveError(f"its units are read by {node.name} ({getattr(kind, '__name__', kind)})")
    _check_layer(module, str(node.target), uses)
    group.readers.append(layer)
    return ""


def _check_layer(module: nn.Module, path: str, uses: Counter[object]) -> None:
    """Raise if the sizes of a layer cannot change."""
    layer: Any = module.get_submodule(path)
    if uses[path] > 1:
        raise _CannotRemoveError(f"{path} is called more than once")
    if parametrize.is_parametrized(layer):
        raise _CannotRemoveError(f"{path} is parametrized")
    if getattr(layer, "groups", 1) > 1:
        raise _CannotRemoveError(f"{path} is a grouped convolution")
    if getattr(layer, "num_layers", 1) > 1 or getattr(layer, "bidirectional", False) or getattr(layer, "proj_size", 0):
        raise _CannotRemoveError(f"{path} has several layers, directions or a projection")
    own = {id(x) for x in layer.parameters()}
    owners = [name for name, x in module.named_parameters(remove_duplicate=False) if id(x) in own]
    if len(owners) > len(own):
        raise _CannotRemoveError(f"{path} shares its weight with another layer")


def _check_unmoved(node: fx.Node, unmoved: bool) -> None:
    """Raise if a node moves units."""
    if not unmoved:
        raise _CannotRemoveError(f"its units are moved by {node.name}")


def _shape(node: fx.Node) -> tuple[int, ...]:
    meta: Any = node.meta.get("tensor_meta")
    return tuple(meta.shape) if hasattr(meta, "shape") else ()


def _dims(node: fx.Node) -> int:
    return len(_shape(node))


def _keeps_batch(node: fx.Node, layer: nn.Module | None) -> bool:
    """Whether a flatten starts at axis 1 and takes all later ones."""
    return _dims(node) == 2 and _shape(node)[0] == _shape(node.all_input_nodes[0])[0]


def _touches_last(node: fx.Node) -> bool:
    """Whether an index selects along the last axis."""
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    plain = all(isinstance(part, int | slice) for part in index)
    return not plain or len(index) >= _dims(node.all_input_nodes[0])


def unit_columns(reader: Any, count: int) -> int:
    """Columns of a reader's weight per unit."""
    return 1 if isinstance(reader, (*CONV, *LSTM)) else int(reader.in_features) // count


def score_units(group: UnitGroup) -> Tensor:  # (count,)
    """Size of the contribution of every unit: incoming times outgoing absolute weights.

    A batch norm rescales the incoming weights, so its factor counts instead; the units of a recurrent layer are bounded
    by tanh, so that only outgoing weights count, those of the recurrence included.
    """
    columns = []  # absolute weights of each reader, by unit
    for reader in group.readers:
        weight: Tensor = getattr(reader, "weight_ih_l0" if isinstance(reader, LSTM) else "weight")
        columns.append(weight.detach().abs().transpose(0, 1).reshape(group.count, -1).sum(1))
    outgoing = torch.stack(columns).sum(0)
    if isinstance(group.layer, (*LSTM, layers.LLTM)):
        lstm: Any = group.layer
        recurrence = lstm.weight if isinstance(lstm, layers.LLTM) else lstm.weight_hh_l0
        return outgoing + recurrence.detach()[:, : group.count].abs().sum(0)
    for norm in group.norms:
        outgoing = outgoing if norm.weight is None else outgoing * norm.weight.detach().abs()
    if group.norms:
        return outgoing
    incoming: Tensor = group.layer.weight.detach().abs().flatten(1).sum(1)
    return outgoing * (incoming if group.layer.bias is None else incoming + group.layer.bias.detach().abs())


@torch.no_grad()
def remove_units(group: UnitGroup, remaining: Tensor) -> None:
    """Keep the remaining units of a group, given by increasing indices."""
    layer, count, device = group.layer, group.count, remaining.device
    for reader in group.readers:
        columns = unit_columns(reader, count)
        inputs = (remaining[:, None] * columns + torch.arange(columns, device=device)).flatten()
        if isinstance(reader, LSTM):
            _select(reader, "weight_ih_l0", 1, inputs)
            reader.input_size = len(inputs)
        else:
            _select(reader, "weight", 1, inputs)
            setattr(reader, "in_channels" if isinstance(reader, CONV) else "in_features", len(inputs))
    for norm in group.norms:
        for name in ("weight", "bias", "running_mean", "running_var"):
            _select(norm, name, 0, remaining)
        norm.num_features = len(remaining)
    if isinstance(layer, LSTM):
        rows = _gates(3 if isinstance(layer, nn.GRU) else 4, remaining, count)
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            _select(layer, name, 0, rows)
        _select(layer, "weight_hh_l0", 1, remaining)
        layer.hidden_size = len(remaining)
    elif isinstance(layer, layers.LLTM):
        for name in ("weight", "bias"):
            _select(layer, name, 0, _gates(3, remaining, count))
        inputs = torch.arange(count, count + layer.input_size, device=device)
        _select(layer, "weight", 1, torch.cat([remaining, inputs]))  # its first columns are the recurrence
        layer.hidden_size = len(remaining)
    else:
        _select(layer, "weight", 0, remaining)
        _select(layer, "bias", 0, remaining)
        setattr(layer, "out_channels" if isinstance(layer, CONV) else "out_features", len(remaining))


def _gates(gates: int, remaining: Tensor, count: int) -> Tensor:
    """Rows of the remaining units in every gate."""
    return (torch.arange(gates, device=remaining.device)[:, None] * count + remaining).flatten()


def _select(layer: nn.Module, name: str, axis: int, index: Tensor) -> None:
    """Keep a part of a parameter or buffer."""
    x = getattr(layer, name, None)
    if not isinstance(x, Tensor):
        return
    part = x.detach().index_select(axis, index)
    setattr(layer, name, nn.Parameter(part, x.requires_grad) if isinstance(x, nn.Parameter) else part)
