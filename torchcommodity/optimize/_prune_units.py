"""Pruning of hidden units: a smaller network."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstm, build_model


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
