"""Pruning of a trained network: weights and hidden units."""

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstm, build_model
from torchcommodity.training import ModelInputs, TrainConfig, train


def prune_weights(forecaster: Forecaster, amount: float) -> Forecaster:
    """Set the smallest weights to zero, over all layers: global unstructured L1 pruning.

    The model keeps its shapes: it is sparser, not smaller or faster. Biases are not pruned.

    Args:
        forecaster: forecaster with a network.
        amount: share of the weights to set to zero, in [0, 1).

    Raises:
        ValueError: there is no network, or the amount is out of range.

    References:
        Han, Pool, Tran, Dally (2015). Learning both weights and connections for efficient neural networks.
        arXiv:1506.02626.
    """
    if not 0 <= amount < 1:
        raise ValueError(f"prune_weights: amount must be in [0, 1); got {amount}")
    model = copy.deepcopy(forecaster.model)
    weights = weight_matrices(model)
    if not weights:
        raise ValueError(f"prune_weights: forecaster must have a network; got {type(model).__name__}")
    prune.global_unstructured(weights, prune.L1Unstructured, amount=amount)
    for layer, name in weights:
        prune.remove(layer, name)
    return replace(forecaster, model=model)


def prune_units(forecaster: Forecaster, units: int) -> Forecaster:
    """Remove all but `units` hidden units of the LSTM.

    Units are ranked by the sum of their absolute outgoing weights in the head and in the recurrence; removing a unit
    without outgoing weights does not change forecasts. The result is a `HarLstm` with `units` hidden units.

    Args:
        forecaster: forecaster whose model is a `HarLstm`.
        units: hidden units to keep.

    Raises:
        ValueError: the model is not a HarLstm, or `units` is not in 1..hidden.

    References:
        Li, Kadav, Durdanovic, Samet, Graf (2017). Pruning filters for efficient convnets. ICLR. arXiv:1608.08710.
    """
    model = require_har_lstm("prune_units", forecaster)
    hidden, state = model.config.hidden, dict(model.state_dict())
    if not 1 <= units <= hidden:
        raise ValueError(f"prune_units: units must be in 1..{hidden}; got {units}")
    outgoing = state["head.weight"].abs().sum(0) + state["lstm.weight_hh_l0"].abs().sum(0)
    remaining = outgoing.topk(units).indices.sort().values
    gates = (torch.arange(4)[:, None] * hidden + remaining).flatten()
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        state[f"lstm.{name}"] = state[f"lstm.{name}"][gates]
    state["lstm.weight_hh_l0"] = state["lstm.weight_hh_l0"][:, remaining]
    state["head.weight"] = state["head.weight"][:, remaining]
    return replace(forecaster, model=rebuild(model, state, hidden=units))


def fine_tune(
    forecaster: Forecaster,
    inputs: ModelInputs,
    config: TrainConfig | None = None,
    *,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Forecaster:
    """Continue training a pruned network; weights that are zero stay zero.

    The econometric part and the corrected horizons do not change. If no epoch improves on the econometric baseline in
    validation, the pruned weights are kept, with a note in the record.

    Args:
        forecaster: forecaster with a pruned network.
        inputs: training and validation prices.
        config: training settings; three epochs by default.
        symmetry: as in `FitConfig`.
        seed: as in `forecast.fit`.

    Returns:
        The fine-tuned forecaster, or the pruned one if no epoch improved it.
    """
    model = copy.deepcopy(forecaster.model)
    for layer, name in (masked := weight_matrices(model)):
        parametrize.register_parametrization(layer, name, _ZeroMask(getattr(layer, name) != 0))
    config = config or replace(TrainConfig.for_frequency(forecaster.frequency), epochs=3)
    result = train(model, inputs, config, symmetry, seed)
    if not result.epoch:
        note = f"{forecaster.record.note}; fine-tuning did not improve it and was discarded"
        return replace(forecaster, record=replace(forecaster.record, note=note))
    for layer, name in masked:
        parametrize.remove_parametrizations(layer, name)
    model.har.load_state_dict(forecaster.model.har.state_dict())
    note = f"{forecaster.record.note}; fine-tuned, epoch {result.epoch}"
    return replace(forecaster, model=model, record=replace(forecaster.record, note=note))


class _ZeroMask(nn.Module):
    """Parametrization that keeps pruned weights at zero."""

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, weight: Tensor) -> Tensor:
        return torch.where(self.mask, weight, 0.0)


def weight_matrices(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """List layer and name of every network weight with two or more axes, except in parametrized layers."""
    return [
        (model.get_submodule(path), name)
        for path, _, name in (full.rpartition(".") for full, x in model.named_parameters() if x.dim() > 1)
        if not path.startswith("har") and "parametrizations" not in path
    ]


def require_har_lstm(operation: str, forecaster: Forecaster) -> HarLstm:
    """Return the forecaster's model, or raise ValueError if it is not a `HarLstm`."""
    if not isinstance(forecaster.model, HarLstm):
        raise ValueError(f"{operation}: forecaster must have a HarLstm; got {type(forecaster.model).__name__}")
    return forecaster.model


def rebuild(model: HarLstm, state: dict[str, Tensor], **changes: Any) -> HarLstm:
    """Build a `HarLstm` with changed settings and the given state."""
    rebuilt: HarLstm = build_model(replace(model.config, **changes), model.har.assets)
    rebuilt.load_state_dict(state)
    return rebuilt.eval()
