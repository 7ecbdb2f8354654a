"""Train a network of the user's on windows of prices, calibrate it on later rows, and check what a forecast depends on.

Legend: T rows, L rows of a window, W windows, N symbols, H horizons, Q levels.
"""

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.distributions import Distribution

from torch_opkit.arguments import current_operation
from torchcommodity.data import targets
from torchcommodity.losses import pinball
from torchcommodity.models import HarNetwork, HarOutput, ModelInputs, WindowNetwork, model_name, scale_inputs, to_device
from torchcommodity.training._calibration import calibrate, own_quantiles
from torchcommodity.training._checkpoint import Checkpoint, training_fingerprint
from torchcommodity.training._config import TrainConfig
from torchcommodity.training._runtime import make_fabric, torch_settings
from torchcommodity.training._trainer import network_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lightning_fabric import Fabric

WINDOWS = 32  # of a training step, for each of the sequences of `TrainConfig.batch_size`
WINDOWS_AT_ONCE = 512  # of a forecast of many rows
CHECKED = 4  # windows whose forecasts must not depend on one another
TOLERANCE = 1e-3  # of the width of quantiles: a window in a batch and alone differ by rounding


class WindowedRows:
    """Rows of prices with the output of `Har`, from which windows and their outcomes are taken."""

    @torch.no_grad()
    def __init__(self, model: WindowNetwork, inputs: ModelInputs) -> None:
        self.inputs, self.lookback = scale_inputs(inputs, model.har.scale), model.config.lookback
        self.output = HarOutput(*(x[0] for x in model.har(*inputs.batch())))
        self.outcomes = targets(self.inputs.prices, model.har.config.horizons)  # (T, H, N); NaN where they end later

    def known(self, start: int) -> Tensor:  # (W,)
        """Rows from `start` on with a whole window, a scale and an outcome."""
        valid = (torch.isfinite(self.output.log_scale) & torch.isfinite(self.outcomes)).flatten(1).any(1)
        rows = valid.nonzero()[:, 0]
        return rows[rows >= max(start, self.lookback - 1)]

    def batch(self, rows: Tensor) -> tuple[ModelInputs, HarOutput]:
        """The windows that end at rows, and the output of `Har` there; the roll calendar goes on for its rows ahead."""
        index = rows[:, None] + torch.arange(1 - self.lookback, 1)
        parts = [None if x is None else x[index] for x in self.inputs[:7]]
        if self.inputs.rolls is not None:
            ahead = len(self.inputs.rolls) - len(self.inputs.prices)
            parts[1] = self.inputs.rolls[rows[:, None] + torch.arange(1 - self.lookback, 1 + ahead)]
        return ModelInputs(*cast("list[Tensor]", parts)), HarOutput(*(x[rows] for x in self.output))


class WindowTraining:
    """The copy of a model that is trained, its optimizer and its progress: what a checkpoint saves after an epoch."""

    def __init__(self, model: WindowNetwork, fabric: "Fabric", config: TrainConfig, seed: int) -> None:
        self.fabric, self.seed, self.max_norm = fabric, seed, config.gradient_clip
        self.model = to_device(copy.deepcopy(model), fabric.device)  # the other stays on the CPU, which calibrates it
        self.parameters = [x for x in network_parameters(self.model) if x.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
        self._fabric_optimizer = cast(torch.optim.Optimizer, fabric.setup_optimizers(self.optimizer))
        self.generator = torch.Generator().manual_seed(seed)
        self.epoch, self.best, self.best_change = 0, 0, torch.inf
        self.best_state = model.state_dict()
        self.changes = list[list[float]]()  # by epoch and horizon

    def train_epoch(self, rows: WindowedRows, chosen: Tensor, batch_size: int) -> None:
        """One step for each batch of windows that end at the rows `chosen`, in random order."""
        self.epoch += 1
        torch.manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)  # of dropout
        self.model.train()
        # a gradient scaler (float16) lowers its scale on overflow and skips the step: not an error
        scaled = getattr(self.fabric.strategy.precision, "scaler", None) is not None
        for batch in chosen[torch.randperm(len(chosen), generator=self.generator)].split(batch_size):
            self._fabric_optimizer.zero_grad()
            with self.fabric.autocast():
                loss = _loss(self.model, rows, batch)
            self.fabric.backward(loss)
            norm = self.fabric.clip_gradients(
                self.model, self._fabric_optimizer, max_norm=self.max_norm, error_if_nonfinite=False
            )
            if not scaled and (norm is None or not torch.isfinite(norm)):
                rule = f"the gradient of {model_name(self.model.config)} must be finite"
                raise ValueError(f"{current_operation()}: {rule}; got {norm} in epoch {self.epoch}")
            self._fabric_optimizer.step()

    def add_change(self, change: Tensor) -> float:
        """Record the change of the validation loss of an epoch by horizon; returns its mean."""
        self.changes.append(change.tolist())
        if (mean := change.nanmean().item()) < self.best_change:
            self.best, self.best_change = self.epoch, mean
            self.best_state = copy.deepcopy(self.model.state_dict())
        return mean

    def state_dict(self) -> dict[str, Any]:
        """State for resuming, in types that `torch.load(weights_only=True)` accepts."""
        return {
            "network": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.fabric.strategy.precision.state_dict(),
            "generator": self.generator.get_state(),
            "progress": [self.epoch, self.best, self.best_change],
            "best": self.best_state,
            "changes": self.changes,
        }

    def load_state_dict(self, state: "Mapping[str, Any]") -> None:
        """Restore a state."""
        self.model.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.fabric.strategy.precision.load_state_dict(state["scaler"])
        self.generator.set_state(state["generator"])
        self.epoch, self.best, self.best_change = state["progress"]
        self.best_state, self.changes = state["best"], state["changes"]


def train_windows(
    model: WindowNetwork,
    inputs: ModelInputs,
    start: int,
    config: TrainConfig,
    symmetry: float,
    seed: int,
    progress: "Callable[[int, int, str], None] | None",
    checkpoint: "Callable[[str], Checkpoint]",
    tensorboard: Path | None,
) -> tuple[int, tuple[tuple[float, ...], ...]]:
    """Train in place on windows with outcomes that end before row `start`; the rows from it on choose the epoch.

    The loss is the mean pinball loss of the quantiles over sigma of `Har`, so that horizons, calm and volatile periods
    weigh alike; of a distribution its negative log-likelihood.

    Returns:
        The best epoch, and by epoch and horizon the change of the validation loss against `Har` in percent.
    """
    _check_settings(model, config)
    # of the network too: what makes it may have random numbers of its own, or weights
    tensors = [*inputs, *(x.double() for x in model.network.state_dict().values())]
    saved = checkpoint(training_fingerprint(tensors, config, model.config, symmetry, seed))
    calibrate(model.har, inputs.before(start), symmetry)
    past, later = WindowedRows(model, inputs.before(start)), WindowedRows(model, inputs)
    chosen, validation = past.known(0), later.known(start)
    standardize(model, past.inputs.prices)
    fabric = make_fabric(config.device, config.precision, tensorboard)
    baseline = _baseline_loss(model, later, validation)
    with torch_settings(fabric, config.matmul_precision, config.num_threads), torch.random.fork_rng(devices=[]):
        training = WindowTraining(model, fabric, config, seed)
        saved.restore(training)
        while training.epoch < config.epochs and training.epoch - training.best < config.patience:
            training.train_epoch(past, chosen, WINDOWS * config.batch_size)
            with fabric.autocast():
                change = 100 * (evaluate(training.model, later, validation) / baseline - 1)
            mean = training.add_change(change)
            fabric.log_dict(
                {f"validation/{h}": x for h, x in zip(model.har.config.horizons, change)}, step=training.epoch
            )
            saved.save(training)
            if progress is not None:
                progress(training.epoch, config.epochs, f"validation loss {mean:+.2f} % of Har's")
        saved.remove()
    model.load_state_dict(training.best_state)
    return training.best, tuple(map(tuple, training.changes))


def _check_settings(model: WindowNetwork, config: TrainConfig) -> None:
    """Raise ValueError for settings of training that a network on windows does not have."""
    defaults = TrainConfig(), TrainConfig.for_frequency(model.har.config.frequency)
    for name in ("window", "micro_batches", "num_workers", "max_horizon"):
        if getattr(config, name) not in [getattr(default, name) for default in defaults]:
            rule = f"train.{name} is of networks that correct the scale of Har; {model_name(model.config)} has windows"
            raise ValueError(
                f"{current_operation()}: {rule} of lookback={model.lookback} rows, of every horizon; got "
                f"{name}={getattr(config, name)}"
            )


def standardize(model: WindowNetwork, prices: Tensor) -> None:
    """Mean and standard deviation of what the network sees, of the training rows (T, N); none of prices."""
    if model.config.inputs == "prices":
        return
    known = (prices > 0) & (prices < torch.inf)
    for n in range(model.har.assets):
        log = prices[known[:, n], n].log()
        values = log if model.config.inputs == "log prices" else log.diff()
        model.mean[n], model.deviation[n] = values.mean(), values.std().clamp(min=torch.finfo(values.dtype).tiny)


def _loss(model: WindowNetwork, rows: WindowedRows, chosen: Tensor) -> Tensor:
    window, last = _to_model(model, *rows.batch(chosen))
    outcome = rows.outcomes[chosen].to(last.log_scale.device, last.log_scale.dtype)
    known = torch.isfinite(outcome) & torch.isfinite(last.log_scale)
    output = model.outputs(window)
    if isinstance(output, Distribution):
        filled = torch.where(known, outcome, 0.0).to(torch.float32)
        return -torch.where(known, output.log_prob(filled), 0.0).sum() / known.sum()
    r, _ = model.raw(output, last)
    return _pinball(model, r, outcome, last).nansum() / known.sum()


def _pinball(model: HarNetwork, quantiles: Tensor, outcome: Tensor, last: HarOutput) -> Tensor:  # (W, H, N)
    """Pinball loss over sigma; NaN without an outcome or a scale."""
    levels = torch.tensor(model.har.config.levels).to(quantiles)
    known = torch.isfinite(outcome) & torch.isfinite(last.log_scale)
    sigma = torch.where(known, last.log_scale, 0.0).exp()
    quantiles, outcome = torch.where(known.unsqueeze(-1), quantiles, 0.0), torch.where(known, outcome, 0.0)
    loss = pinball(quantiles / sigma.unsqueeze(-1), outcome / sigma, levels, reduction="none").mean(-1)
    return torch.where(known, loss, torch.nan)


@torch.no_grad()
def evaluate(model: WindowNetwork, rows: WindowedRows, chosen: Tensor) -> Tensor:  # (H,)
    """Mean pinball loss over sigma, without the adjustment."""
    model.eval()
    parts = []
    for part in chosen.split(WINDOWS_AT_ONCE):
        window, last = _to_model(model, *rows.batch(part))
        outcome = rows.outcomes[part].to(last.log_scale.device, last.log_scale.dtype)
        loss = _pinball(model, model.raw(model.outputs(window), last)[0], outcome, last)
        parts.append(loss.cpu())
    return _mean_by_horizon(torch.cat(parts))


@torch.no_grad()
def _baseline_loss(model: WindowNetwork, rows: WindowedRows, chosen: Tensor) -> Tensor:  # (H,)
    output = HarOutput(*(x[chosen] for x in rows.output))
    outcome, har = rows.outcomes[chosen], model.har
    quantiles = output.shift.unsqueeze(-1) + output.log_scale.exp().unsqueeze(-1) * har.z.to(output.shift)
    return _mean_by_horizon(_pinball(model, quantiles, outcome, output))


def _mean_by_horizon(loss: Tensor) -> Tensor:  # (W, H, N) -> (H,)
    return loss.transpose(0, 1).flatten(1).nanmean(1)


@torch.no_grad()
def calibrate_windows(model: WindowNetwork, inputs: ModelInputs, start: int) -> None:
    """Fit in place the adjustment d of the quantiles on the rows from `start` on, on which the network was not trained.

    d are the quantiles of (outcome - r) / w at each level, those of each symbol drawn toward the pooled ones as the
    shape of `Har` is.
    """
    model.eval()
    rows = WindowedRows(model, inputs)
    chosen, config = rows.known(start), model.har.config
    parts = [_raw(model, rows, part) for part in chosen.split(WINDOWS_AT_ONCE)]
    r, w = (torch.cat([part[k].cpu() for part in parts]) for k in (0, 1))
    standard = (rows.outcomes[chosen].unsqueeze(-1) - r) / w.unsqueeze(-1)  # (W, H, N, Q)
    standard = torch.where(torch.isfinite(rows.output.log_scale[chosen]).unsqueeze(-1), standard, torch.nan)
    for q, level in enumerate(config.levels):
        quantile = own_quantiles(standard[..., q], replace(config, levels=(level,)), 0.0)[..., 0]
        model.adjustment[..., q] = quantile.nan_to_num()


@torch.no_grad()
def predict_rows(model: WindowNetwork, inputs: ModelInputs, start: int) -> Tensor:  # (T - start, H, N, Q)
    """Quantiles after each row from `start` on; NaN without a scale."""
    model.eval()
    rows = WindowedRows(model, inputs)
    parts = []
    for chosen in torch.arange(start, len(inputs.prices)).split(WINDOWS_AT_ONCE):
        known = torch.isfinite(rows.output.log_scale[chosen]).unsqueeze(-1)
        parts.append(torch.where(known, model.calibrated(*_raw(model, rows, chosen)), torch.nan))
    return torch.cat(parts)


@torch.no_grad()
def check_no_look_ahead(model: HarNetwork, inputs: ModelInputs) -> None:
    """Raise ValueError if a forecast depends on later rows: by the correction of a row, or by other windows of a batch.

    Raises:
        ValueError: it does; the row is named.
    """
    rows, name = len(inputs.prices), model_name(model.config)
    if model.lookback is None and not network_parameters(model):
        return  # `Har` alone
    model.eval()
    if model.lookback is None:
        half = max(rows // 2, min(rows - 1, model.har.config.warmup + 1))
        output = model.har(*inputs.batch())
        changed = HarOutput(*(torch.cat([x[:, :half], -x[:, half:].nan_to_num()], 1) for x in output))
        before, after = (model.correction(x)[0, :half] for x in (output, changed))
        size = before.abs().nan_to_num().max().clamp(min=torch.finfo(before.dtype).tiny)
        differs = ((before - after).abs().nan_to_num() > TOLERANCE * size).flatten(1).any(1).nonzero()
        if len(differs):
            raise ValueError(
                f"{current_operation()}: model {name} looks ahead: its correction of row {int(differs[0])} changes "
                f"with the rows from {half} on"
            )
        return
    assert isinstance(model, WindowNetwork)
    windowed = WindowedRows(model, inputs)
    chosen = torch.arange(model.lookback - 1, rows)
    chosen = chosen[torch.isfinite(windowed.output.log_scale[chosen]).flatten(1).all(1)]
    chosen = chosen[torch.linspace(0, len(chosen) - 1, CHECKED).long()] if len(chosen) else chosen
    if not len(chosen):
        return
    r, w = _raw(model, windowed, chosen)
    for k, row in enumerate(chosen.tolist()):
        alone, _ = _raw(model, windowed, chosen[k : k + 1])
        if ((alone[0] - r[k]).abs() > TOLERANCE * w[k].unsqueeze(-1)).any():
            raise ValueError(
                f"{current_operation()}: model {name} looks ahead: its forecast from row {row} changes with the other "
                f"windows of a batch, such as that of row {int(chosen[-1])}"
            )


def _raw(model: WindowNetwork, rows: WindowedRows, chosen: Tensor) -> tuple[Tensor, Tensor]:
    window, last = _to_model(model, *rows.batch(chosen))
    return model.raw(model.outputs(window), last)


def _to_model(model: WindowNetwork, window: ModelInputs, last: HarOutput) -> tuple[ModelInputs, HarOutput]:
    device = model.har.mix.device
    return window.to(device), HarOutput(*(to_device(x, device) for x in last))
