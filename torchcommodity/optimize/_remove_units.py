"""Removal of units from layers, in place: rows of the layer that computes them, columns of those that read them."""

import torch
from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.optimize._unit_groups import CONV, LSTM, UnitGroup, unit_columns


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
