"""Train the network of a forecaster, with early stopping on later rows."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch import Tensor, nn

from torch_opkit.arguments import current_operation, operation
from torchcommodity.models import HarConfig, HarNetwork, ModelInputs, WindowNetwork
from torchcommodity.training._batches import TrainingBatch, make_loader, make_splits, plan_epoch, slice_rows
from torchcommodity.training._calibration import calibrate
from torchcommodity.training._checkpoint import Checkpoint, training_fingerprint
from torchcommodity.training._config import TrainConfig
from torchcommodity.training._runtime import make_fabric, torch_settings
from torchcommodity.training._trainer import Trainer, load_network, network_parameters
from torchcommodity.training._windows import calibrate_windows, train_windows

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Progress = Callable[[int, int, str], None]  # done, total, description


@dataclass(frozen=True)
class RunOptions:
    """Progress, checkpoints and logs of a training run; they do not change its result."""

    progress: Progress | None = None
    checkpoint: Path | None = None  # resumed if it exists, deleted at the end of training
    checkpoint_seconds: float = 60.0  # between two checkpoints
    tensorboard: Path | None = None  # folder for loss curves


class TrainResult(NamedTuple):
    """Outcome of training, see `forecast.FitRecord`."""

    epoch: int  # best epoch; 0: the econometric baseline
    corrected: tuple[int, ...]  # horizons whose scale the network corrects
    note: str
    validation: tuple[tuple[float, ...], ...] = ()  # per epoch and horizon: change of the validation loss in percent


@operation("train")
def train(
    model: HarNetwork,
    inputs: ModelInputs,
    config: TrainConfig,
    symmetry: float,
    seed: int,
    options: RunOptions | None = None,
) -> TrainResult:
    """Train the network in place on the first rows and select its epoch on the last ones.

    Targets of the training rows end before the validation block, and the econometric part is calibrated without that
    block. Processes started by torchrun share every step and end with the same network.

    Args:
        model: a model of `models.MODELS`; a model without a network is left unchanged.
        inputs: training and validation prices.
        config: settings of training.
        symmetry: see `calibrate`.
        seed: random seed of shuffling and dropout.
        options: progress, checkpoints and logs.

    Returns:
        A TrainResult. Epoch 0 means that no epoch improved on the econometric baseline, which is then kept.

    Raises:
        ValueError: the device is not available, the checkpoint is damaged or belongs to another run, or micro-batches
            are used with a model that has batch norm.
    """
    options = options or RunOptions()
    start = validation_start(len(inputs.prices), config, model.har.config)
    if model.lookback is not None:
        return _train_windows(model, inputs, config, symmetry, seed, options)
    trained_horizons = torch.tensor(model.har.config.horizons) <= config.max_horizon  # (H,)
    if not network_parameters(model):
        return TrainResult(0, (), "no network to train")
    if (reason := _skip_reason(config, start, trained_horizons)) is not None:
        model.har.shrink.zero_()
        return TrainResult(0, (), f"network not trained: {reason}")
    assert start is not None
    calibrate(model.har, inputs.before(start), symmetry)
    training, validation = make_splits(model.har, inputs, start)
    validation = slice_rows(validation, max(start - config.window, 0), len(inputs.prices))
    fabric = make_fabric(config.device, config.precision, options.tensorboard)
    _check_micro_batches(model, config, fabric)
    fingerprint = training_fingerprint(inputs, config, model.config, symmetry, seed, fabric.world_size)
    with torch_settings(fabric, config.matmul_precision, config.num_threads):
        trainer = Trainer(
            model,
            fabric,
            seed,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        checkpoint = Checkpoint(
            options.checkpoint, options.checkpoint_seconds, fingerprint, writer=fabric.is_global_zero
        )
        checkpoint.restore(trainer)
        _run_epochs(trainer, training, validation, trained_horizons, config, options.progress, checkpoint)
        checkpoint.remove()
    return _load_best(model, trainer)


def _train_windows(
    model: HarNetwork, inputs: ModelInputs, config: TrainConfig, symmetry: float, seed: int, options: RunOptions
) -> TrainResult:
    own, rows = cast(WindowNetwork, model), len(inputs.prices)
    start = validation_start(rows, config, model.har.config)
    if start is None:
        required = model.har.config.warmup + config.window + 4 * model.har.config.horizons[-1]
        rule = f"a network on windows needs {required} rows, of which the last ones choose its epoch and calibrate it"
        raise ValueError(f"{current_operation()}: {rule}; got {rows}")
    trained = network_parameters(model) and config.epochs
    epoch, validation = 0, tuple[tuple[float, ...], ...]()
    if trained:

        def checkpoint(fingerprint: str) -> Checkpoint:
            is_first = int(os.environ.get("RANK", 0)) == 0  # among the processes of torchrun
            return Checkpoint(options.checkpoint, options.checkpoint_seconds, fingerprint, writer=is_first)

        epoch, validation = train_windows(
            own, inputs, start, config, symmetry, seed, options.progress, checkpoint, options.tensorboard
        )
    calibrate_model(own, inputs, symmetry, config)
    note = f"best epoch {epoch} of {len(validation)}" if trained else "network as it was given"
    return TrainResult(epoch, model.har.config.horizons if trained else (), note, validation)


def calibrate_model(model: HarNetwork, inputs: ModelInputs, symmetry: float, config: TrainConfig) -> None:
    """`calibrate` the econometric part of a model and, of a network on windows, its quantiles on the last rows."""
    calibrate(model.har, inputs, symmetry)
    if model.lookback is not None:
        start = validation_start(len(inputs.prices), config, model.har.config)
        calibrate_windows(cast(WindowNetwork, model), inputs, model.lookback if start is None else start)


def _skip_reason(config: TrainConfig, start: int | None, trained_horizons: Tensor) -> str | None:
    if config.epochs == 0:
        return "epochs = 0"
    if start is None:
        return "too few rows for a validation block"
    return None if trained_horizons.any() else f"every horizon exceeds max_horizon = {config.max_horizon}"


def _run_epochs(
    trainer: Trainer,
    training: TrainingBatch,
    validation: TrainingBatch,
    trained_horizons: Tensor,  # (H,) bool
    config: TrainConfig,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> None:
    """Train until `epochs`, or until `patience` epochs have not improved the validation loss."""
    fabric, har = trainer.fabric, trainer.model.har.config
    baseline = trainer.evaluate(validation, correction=0.0)
    while trainer.epoch <= config.epochs and trainer.epoch - 1 - trainer.best.epoch < config.patience:
        _run_steps(trainer, training, trained_horizons, config, checkpoint)
        change = 100 * (trainer.evaluate(validation, correction=har.shrink) / baseline - 1)  # (H,)
        trainer.validation.append(change.tolist())
        mean_change = change[trained_horizons].clamp(max=0).nanmean().item()
        if mean_change < trainer.best_change:
            trainer.save_best(mean_change, (change < 0) & trained_horizons)
        fabric.log_dict({f"validation/{h}": x for h, x in zip(har.horizons, change)}, step=trainer.epoch)
        if progress is not None:
            text = f"validation loss {change[trained_horizons].nanmean():+.2f} %"
            progress(trainer.epoch, config.epochs, text)
        trainer.next_epoch()
        checkpoint.save(trainer)


def _run_steps(
    trainer: Trainer,
    training: TrainingBatch,
    trained_horizons: Tensor,  # (H,) bool
    config: TrainConfig,
    checkpoint: Checkpoint,
) -> None:
    """Run the remaining steps of the current epoch; each process computes its own micro-batches."""
    fabric = trainer.fabric
    local = slice(config.micro_batches * fabric.global_rank, config.micro_batches * (fabric.global_rank + 1))
    steps = plan_epoch(
        training,
        trained_horizons,
        trainer.generator,
        window=config.window,
        batch_size=config.batch_size,
        micro_batches=config.micro_batches * fabric.world_size,
        levels=len(trainer.model.har.config.levels),
    )[trainer.step :]
    micro_batches = [[part for part in step.micro_batches[local] if part] for step in steps]
    indices = [part for parts in micro_batches for part in parts]
    loader = iter(make_loader(training, indices, config.window, config.num_workers))
    for step, parts in zip(steps, micro_batches):
        loss = trainer.train_step(islice(loader, len(parts)), step.weight, config.gradient_clip)
        fabric.log_dict({"training loss": loss}, step=trainer.total_steps)
        checkpoint.save(trainer)


def validation_start(rows: int, config: TrainConfig, har: HarConfig) -> int | None:
    """First row of the validation block, at least two longest horizons long; None with too few rows."""
    longest = har.horizons[-1]
    start = rows - max(int(config.validation_fraction * rows), 2 * longest)
    return start if start >= har.warmup + config.window + 2 * longest else None


def _check_micro_batches(model: nn.Module, config: TrainConfig, fabric: "Fabric") -> None:
    """Reject micro-batches and several processes for a model with batch norm, whose statistics would differ."""
    batch_norm = any(name.endswith("running_mean") for name in model.state_dict())
    if config.micro_batches * fabric.world_size > 1 and batch_norm:
        raise ValueError(
            f"train: {type(model).__name__} has batch norm, which requires "
            f"micro_batches=1 and one process; got micro_batches={config.micro_batches} and {fabric.world_size} "
            "processes"
        )


@torch.no_grad()
def _load_best(model: HarNetwork, trainer: Trainer) -> TrainResult:
    """Load the best epoch into the model; horizons that it did not improve keep the baseline."""
    best, epochs = trainer.best, len(trainer.validation)
    load_network(model, best.network)
    config = model.har.config
    model.har.shrink.copy_(config.shrink * best.improved.to(model.har.shrink))
    corrected = tuple(h for h, improved in zip(config.horizons, best.improved.tolist()) if improved)
    validation = tuple(map(tuple, trainer.validation))
    if not corrected:
        note = f"none of {epochs} epochs improved on the econometric baseline, which is kept"
        return TrainResult(0, (), note, validation)
    horizons = ", ".join(map(str, corrected))
    note = f"best epoch {best.epoch} of {epochs}, which corrects the scale at horizons {horizons}"
    return TrainResult(best.epoch, corrected, note, validation)
