"""Importance of the features and past rows of a network, and pruning by importance."""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._prune_units import rebuild, require_har_lstm
from torchcommodity.training import ModelInputs, one_thread


class Importance(NamedTuple):
    """Importance of features and of past rows for the scale correction; each sums to 1."""

    features: Tensor  # (F,)
    rows: Tensor  # (R,), latest row first


@one_thread()
def importance(forecaster: Forecaster, inputs: ModelInputs, *, rows: int = 252, windows: int = 64) -> Importance:
    """Gradient-based importance of the network's inputs on real windows.

        I[k, f] = mean over windows and symbols of  sum_h |x[t-k, f]  d correction_h[t] / d x[t-k, f]|

    over the corrected horizons h: the first-order change of the correction if the input is set to zero.

    Args:
        forecaster: forecaster whose model is a `HarLstm`.
        inputs: prices on which the network is evaluated.
        rows: R, rows of a window.
        windows: number of windows, evenly spaced over the rows after the warm-up.

    Returns:
        An Importance.

    Raises:
        ValueError: the model is not a HarLstm, corrects no horizon, or there are too few rows.

    References:
        Molchanov, Mallya, Tyree, Frosio, Kautz (2019). Importance estimation for neural network pruning. CVPR.
        doi:10.1109/CVPR.2019.01152.
    """
    model = require_har_lstm("importance", forecaster)
    min_rows = model.har.config.warmup + rows
    corrected = torch.nonzero(model.har.shrink).flatten().tolist()
    if len(inputs.prices) < min_rows or not corrected:
        raise ValueError(
            f"importance: inputs must have at least {min_rows} rows and the network must correct a horizon; "
            f"got {len(inputs.prices)} rows and {len(corrected)} corrected horizons"
        )
    with torch.no_grad():
        features = model.network_inputs(model.har(*inputs.batch()))  # (N, T, F)
    ends = torch.linspace(min_rows, len(inputs.prices), windows).long().tolist()
    x = torch.cat([features[:, end - rows : end] for end in ends]).requires_grad_()  # (W N, R, F)
    correction = model.head(model.lstm(x)[0][:, -1])  # (W N, H)
    total = torch.zeros(x.shape[1:])
    for h in corrected:
        (gradient,) = torch.autograd.grad(correction[:, h].sum(), x, retain_graph=True)
        total += (x * gradient).abs().mean(0).detach()
    total = total / total.sum()
    return Importance(total.sum(0), total.sum(1).flip(0))


def prune_inputs(forecaster: Forecaster, scores: Importance, keep: float = 0.99) -> Forecaster:
    """Remove the least important inputs of the network.

    Args:
        forecaster: forecaster whose model is a `HarLstm`.
        scores: result of `importance`.
        keep: share of the total importance of the remaining inputs, in (0, 1].

    Returns:
        A forecaster with a smaller network.

    Raises:
        ValueError: the model is not a `HarLstm`, or `keep` is out of range.
    """
    model = require_har_lstm("prune_inputs", forecaster)
    order = scores.features.argsort(descending=True)
    remaining = order[: _count(scores.features[order], keep)].sort().values
    state = dict(model.state_dict())
    state["lstm.weight_ih_l0"] = state["lstm.weight_ih_l0"][:, remaining]
    features = model.config.features or tuple(range(model.har.config.features))
    return replace(forecaster, model=rebuild(model, state, features=tuple(features[k] for k in remaining.tolist())))


def prune_rows(forecaster: Forecaster, scores: Importance, keep: float = 0.99) -> Forecaster:
    """Limit the network to the last rows, so that a forecast takes fewer recurrent steps.

    The econometric part still uses all rows. Fine-tune before pruning rows: training the result
    would need one window per row.

    Args:
        forecaster: forecaster whose model is a `HarLstm`.
        scores: result of `importance`.
        keep: share of the total importance of the remaining rows, in (0, 1].

    Returns:
        A forecaster whose network uses fewer rows.

    Raises:
        ValueError: the model is not a `HarLstm`, or `keep` is out of range.
    """
    model = require_har_lstm("prune_rows", forecaster)
    return replace(forecaster, model=rebuild(model, dict(model.state_dict()), rows=_count(scores.rows, keep)))


def _count(shares: Tensor, keep: float) -> int:
    """Number of leading shares that sum to at least `keep` of the total."""
    if not 0 < keep <= 1:
        raise ValueError(f"prune: keep must be in (0, 1]; got {keep}")
    return min(int((shares.cumsum(0) < keep * shares.sum()).sum()) + 1, len(shares))
