"""Remove what a trained network does not need: weights, hidden units, inputs and rows of the past."""

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstm, build_model
from torchcommodity.training import ModelInputs, TrainConfig, one_thread, train


class Importance(NamedTuple):
    """How much of a forecast's bend hangs on what the network reads; each sums to 1."""

    features: Tensor  # (F,)
    rows: Tensor  # (R,), the row of the forecast first, then the one before it


def prune_weights(forecaster: Forecaster, share: float) -> Forecaster:
    """Set the smallest weights of all layers together to zero: global unstructured L1 pruning.

    The model keeps its shapes: it is sparser, not smaller or faster. Biases stay.

    Args:
        forecaster: with a network.
        share: of the weights that become zero, in [0, 1).

    Raises:
        ValueError: there is no network, or the share is out of range.

    References:
        Han, Pool, Tran, Dally (2015). Learning both weights and connections for efficient neural networks.
        arXiv:1506.02626.
    """
    if not 0 <= share < 1:
        raise ValueError(f"prune_weights: share must be in [0, 1); got {share}")
    model = copy.deepcopy(forecaster.model)
    found = matrices(model)
    if not found:
        raise ValueError(f"prune_weights: expected a model with a network; got {type(model).__name__}")
    prune.global_unstructured(found, prune.L1Unstructured, amount=share)
    for layer, name in found:
        prune.remove(layer, name)
    return replace(forecaster, model=model)


def prune_units(forecaster: Forecaster, units: int) -> Forecaster:
    """Remove all but `units` hidden units of the LSTM, and the columns of the head that read them.

    A unit counts by the absolute weights that read it, in the head and in the recurrence: one that nothing reads is
    removed without changing a forecast. The model is really smaller: a `HarLstm` of `units` hidden units.

    Raises:
        ValueError: the model is no HarLstm, or `units` is not in 1..hidden.

    References:
        Li, Kadav, Durdanovic, Samet, Graf (2017). Pruning filters for efficient convnets. ICLR. arXiv:1608.08710.
    """
    model = _har_lstm("prune_units", forecaster)
    hidden, state = model.config.hidden, dict(model.state_dict())
    if not 1 <= units <= hidden:
        raise ValueError(f"prune_units: units must be in 1..{hidden}; got {units}")
    read = state["head.weight"].abs().sum(0) + state["lstm.weight_hh_l0"].abs().sum(0)
    kept = read.topk(units).indices.sort().values
    gates = (torch.arange(4)[:, None] * hidden + kept).flatten()
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        state[f"lstm.{name}"] = state[f"lstm.{name}"][gates]
    state["lstm.weight_hh_l0"] = state["lstm.weight_hh_l0"][:, kept]
    state["head.weight"] = state["head.weight"][:, kept]
    return replace(forecaster, model=_rebuilt(model, state, hidden=units))


@one_thread()
def importance(forecaster: Forecaster, past: ModelInputs, *, rows: int = 252, windows: int = 64) -> Importance:
    """What the bend of the scale hangs on, from gradients on real windows.

        I[k, f] = mean over windows, symbols of  sum_h |x[t-k, f]  d bend_h[t] / d x[t-k, f]|

    over the horizons h that the network corrects: to first order, what the forecast loses if the input is set to zero.

    Args:
        forecaster: of a HarLstm.
        past: prices up to the last row that may be looked at.
        rows: R, of the past that a window holds.
        windows: evenly spaced over the rows after the warm-up.

    Raises:
        ValueError: the model is no HarLstm, corrects no horizon, or there are too few rows.

    References:
        Molchanov, Mallya, Tyree, Frosio, Kautz (2019). Importance estimation for neural network pruning. CVPR.
        doi:10.1109/CVPR.2019.01152.
    """
    model = _har_lstm("importance", forecaster)
    first = model.har.config.warmup + rows
    corrected = torch.nonzero(model.har.shrink).flatten().tolist()
    if len(past.prices) < first or not corrected:
        raise ValueError(
            f"importance: expected at least {first} rows and a network that corrects a horizon; "
            f"got {len(past.prices)} rows and {len(corrected)} corrected horizons"
        )
    with torch.no_grad():
        every = model.network_inputs(model.har(*past.batch()))  # (N, T, F)
    ends = torch.linspace(first, len(past.prices), windows).long().tolist()
    x = torch.cat([every[:, end - rows : end] for end in ends]).requires_grad_()  # (W N, R, F)
    bend = model.head(model.lstm(x)[0][:, -1])  # (W N, H)
    found = torch.zeros(x.shape[1:])
    for h in corrected:
        (gradient,) = torch.autograd.grad(bend[:, h].sum(), x, retain_graph=True)
        found += (x * gradient).abs().mean(0).detach()
    found = found / found.sum()
    return Importance(found.sum(0), found.sum(1).flip(0))


def prune_inputs(forecaster: Forecaster, found: Importance, keep: float = 0.99) -> Forecaster:
    """Remove the inputs of least importance, all but those that hold `keep` of it together."""
    model = _har_lstm("prune_inputs", forecaster)
    order = found.features.argsort(descending=True)
    count = _enough(found.features[order], keep)
    kept = order[:count].sort().values
    state = dict(model.state_dict())
    state["lstm.weight_ih_l0"] = state["lstm.weight_ih_l0"][:, kept]
    read = model.config.features or tuple(range(model.har.config.features))
    return replace(forecaster, model=_rebuilt(model, state, features=tuple(read[k] for k in kept.tolist())))


def prune_rows(forecaster: Forecaster, found: Importance, keep: float = 0.99) -> Forecaster:
    """Let the network read only the last rows that hold `keep` of the importance: a forecast takes so many steps.

    The econometric part still reads them all. Rows that training cannot cut to windows at a bearable cost: tune before.
    """
    model = _har_lstm("prune_rows", forecaster)
    rows = _enough(found.rows, keep)
    return replace(forecaster, model=_rebuilt(model, dict(model.state_dict()), rows=rows))


def fine_tune(
    forecaster: Forecaster,
    past: ModelInputs,
    config: TrainConfig | None = None,
    *,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Forecaster:
    """Train what is left of a pruned network by the loop that trained it; weights that are zero stay zero.

    The econometric part, and which horizons the network corrects, stay as they are. Where no epoch beats the
    econometric baseline on held-back rows, the weights stay as they were pruned, and the note of the record says so.

    Args:
        forecaster: pruned.
        past: prices up to the last row that may be learned from.
        config: of the training; three epochs by default.
        symmetry, seed: as in `forecast.fit`.
    """
    model = copy.deepcopy(forecaster.model)
    for layer, name in (masked := matrices(model)):
        parametrize.register_parametrization(layer, name, _Mask(getattr(layer, name) != 0))
    found = train(model, past, config or TrainConfig(epochs=3), symmetry, seed)
    if not found.epoch:
        note = f"{forecaster.record.note}; fine-tuning did not help and is left out"
        return replace(forecaster, record=replace(forecaster.record, note=note))
    for layer, name in masked:
        parametrize.remove_parametrizations(layer, name)
    model.har.load_state_dict(forecaster.model.har.state_dict())
    note = f"{forecaster.record.note}; fine-tuned, epoch {found.epoch}"
    return replace(forecaster, model=model, record=replace(forecaster.record, note=note))


class _Mask(nn.Module):
    """Keeps the weights that are zero."""

    kept: Tensor

    def __init__(self, kept: Tensor) -> None:
        super().__init__()
        self.register_buffer("kept", kept, persistent=False)

    def forward(self, weight: Tensor) -> Tensor:
        return torch.where(self.kept, weight, 0.0)


def matrices(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """Every weight of the network with two axes or more, as layer and name; not those of parametrized layers."""
    return [
        (model.get_submodule(path), name)
        for path, _, name in (full.rpartition(".") for full, x in model.named_parameters() if x.dim() > 1)
        if not path.startswith("har") and "parametrizations" not in path
    ]


def _enough(shares: Tensor, keep: float) -> int:
    """How many of the first shares hold `keep` together."""
    if not 0 < keep <= 1:
        raise ValueError(f"prune: keep must be in (0, 1]; got {keep}")
    return min(int((shares.cumsum(0) < keep * shares.sum()).sum()) + 1, len(shares))


def _har_lstm(verb: str, forecaster: Forecaster) -> HarLstm:
    if not isinstance(forecaster.model, HarLstm):
        raise ValueError(f"{verb}: expected a HarLstm; got {type(forecaster.model).__name__}")
    return forecaster.model


def _rebuilt(model: HarLstm, state: dict[str, Tensor], **changed: Any) -> HarLstm:
    found: HarLstm = build_model(replace(model.config, **changed), model.har.assets)
    found.load_state_dict(state)
    return found.eval()
