"""The network of a forecaster learns in one flat loop; the epoch is chosen on a later block of time."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from torchcommodity.models import HarConfig
from torchcommodity.training._batches import TrainingBatch, lessons, load, plan, rows
from torchcommodity.training._calibration import calibrate
from torchcommodity.training._checkpoint import Checkpoint, mark_of
from torchcommodity.training._inputs import ModelInputs
from torchcommodity.training._runtime import Device, Matmul, Precision, machine, numbers
from torchcommodity.training._trainer import Teacher, Trainer, network, put

Progress = Callable[[int, int, str], None]  # done, of how many, what


@dataclass(frozen=True)
class TrainConfig:
    """How the network learns; the defaults are those of the published table."""

    epochs: int = 10  # 0 leaves the econometric baseline as it is
    patience: int = 4  # epochs without a better validation block before the loop ends
    window: int = 252  # rows of one training sequence
    batch: int = 2  # sequences in one step, of all symbols each
    accumulate: int = 1  # pieces that a step is computed in, one after the other: less memory, the same gradient
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    clip: float = 1.0  # largest norm of a step's gradient
    validation_fraction: float = 0.2  # of the rows, the last ones, on which the epoch is chosen
    max_horizon: int = 63  # longest horizon the network may correct: beyond, a block holds too few windows to choose on
    device: Device = "cpu"
    precision: Precision = "32-true"
    matmul: Matmul = "highest"  # of float32 matrix products
    threads: int = 1  # a step is microseconds of work: threads that wait for one another cost more than they bring
    workers: int = 0  # processes that cut the sequences

    def __post_init__(self) -> None:
        least = {"epochs": 0, "patience": 1, "window": 1, "batch": 1, "accumulate": 1, "threads": 1, "workers": 0}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ValueError(f"TrainConfig: {name} must be at least {smallest}; got {getattr(self, name)}")
        if not (
            0 < self.validation_fraction < 1 and self.learning_rate > 0 and self.weight_decay >= 0 and self.clip > 0
        ):
            must = "validation_fraction in (0, 1), learning_rate > 0, weight_decay >= 0, clip > 0"
            raise ValueError(f"TrainConfig: {must}; got {self}")


@dataclass(frozen=True)
class Run:
    """What surrounds a training and leaves its result alone."""

    progress: Progress | None = None
    checkpoint: Path | None = None  # carried on from if it is there, taken away when the training is over
    every: float = 60.0  # seconds between two checkpoints
    tensorboard: Path | None = None  # folder for the curves of the losses


class Training(NamedTuple):
    """What training gave: see `FitRecord`."""

    epoch: int
    corrected: tuple[int, ...]
    note: str
    validation: tuple[tuple[float, ...], ...] = ()


def train(
    model: Any,
    past: ModelInputs,
    config: TrainConfig,
    symmetry: float,
    seed: int,
    run: Run | None = None,
    teacher: Teacher | None = None,
) -> Training:
    """Train the network in place on the earlier rows, choose its epoch on the later ones; epoch 0 is the baseline.

    Targets of the earlier part end before the later block begins, and its econometric part is calibrated without that
    block. Processes that torchrun started share every step and end with the same network. With a teacher the loss is
    `losses.distillation`, on the later rows too.
    """
    run = run or Run()
    start = _held_back_from(len(past.prices), config, model.har.config)
    free = torch.tensor(model.har.config.horizons) <= config.max_horizon  # (H,)
    if not network(model):
        return Training(0, (), "no network to train")
    if config.epochs == 0 or start is None or not free.any():
        model.har.shrink.zero_()
        why = "too few rows to hold back a later block" if start is None else "none was asked for"
        return Training(0, (), f"network not trained ({why}): the econometric baseline stands")
    calibrate(model.har, past.before(start), symmetry)
    early, late = lessons(model.har, past, start)
    late = rows(late, max(start - config.window, 0), len(past.prices))
    fabric = machine(config.device, config.precision, run.tensorboard)
    _check_pieces(model, config, fabric)
    mark = mark_of(past, config, model.config, symmetry, seed, fabric.world_size)
    with numbers(fabric, config.matmul, config.threads):
        rates = {"learning_rate": config.learning_rate, "weight_decay": config.weight_decay}
        learner = Trainer(model, fabric, seed, **rates, teacher=teacher)
        checkpoint = Checkpoint(run.checkpoint, run.every, mark, writes=fabric.is_global_zero)
        checkpoint.carry_on(learner)
        _loop(learner, early, late, free, config, run.progress, checkpoint)
        checkpoint.remove()
    return _settle(model, learner)


def _loop(
    learner: Trainer,
    early: TrainingBatch,
    late: TrainingBatch,
    free: Tensor,  # (H,) bool
    config: TrainConfig,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> None:
    """Learn from `early` until no epoch does better on `late`."""
    fabric, har = learner.fabric, learner.model.har.config
    pieces = config.accumulate * fabric.world_size
    own = slice(config.accumulate * fabric.global_rank, config.accumulate * (fabric.global_rank + 1))
    base = learner.judge(late, size=0.0)
    while learner.epoch <= config.epochs and learner.epoch - 1 - learner.kept.epoch < config.patience:
        steps = plan(early, free, learner.order, config.window, config.batch, pieces, len(har.levels))[learner.step :]
        mine = [[piece for piece in step.pieces[own] if piece] for step in steps]
        loader = iter(load(early, [piece for part in mine for piece in part], config.window, config.workers))
        for step, part in zip(steps, mine):
            loss = learner.learn(islice(loader, len(part)), step.weight, config.clip)
            fabric.log_dict({"loss of this process": loss}, step=learner.total)
            checkpoint.save(learner)
        change = 100 * (learner.judge(late, size=har.shrink) / base - 1)  # (H,)
        learner.validation.append(change.tolist())
        gain = change[free].clamp(max=0).nanmean().item()
        if gain < learner.best:
            learner.keep(gain, (change < 0) & free)
        fabric.log_dict({f"held-back/{h}": x for h, x in zip(har.horizons, change)}, step=learner.epoch)
        if progress is not None:
            progress(learner.epoch, config.epochs, f"held-back loss {change[free].nanmean():+.2f} %")
        learner.next_epoch()
        checkpoint.save(learner)


def _held_back_from(rows: int, config: TrainConfig, har: HarConfig) -> int | None:
    """First row of the later block, of at least two longest horizons; None if that leaves too little before it."""
    longest = har.horizons[-1]
    start = rows - max(int(config.validation_fraction * rows), 2 * longest)
    return start if start >= har.warmup + config.window + 2 * longest else None


def _check_pieces(model: nn.Module, config: TrainConfig, fabric: Fabric) -> None:
    """Refuse to cut a batch whose statistics a layer takes: the pieces would not have those of the whole."""
    if config.accumulate * fabric.world_size > 1 and any(name.endswith("running_mean") for name in model.state_dict()):
        got = f"accumulate={config.accumulate} and {fabric.world_size} processes"
        raise ValueError(
            f"train: {type(model).__name__} normalizes by the statistics of a whole batch, which cannot be cut: "
            f"expected accumulate=1 and one process; got {got}"
        )


@torch.no_grad()
def _settle(model: Any, learner: Trainer) -> Training:
    """Put the kept epoch into the model; a horizon that it did not improve keeps the baseline."""
    kept, epochs = learner.kept, len(learner.validation)
    put(model, kept.network)
    config = model.har.config
    model.har.shrink.copy_(config.shrink * kept.better.to(model.har.shrink))
    corrected = tuple(h for h, better in zip(config.horizons, kept.better.tolist()) if better)
    validation = tuple(map(tuple, learner.validation))
    if not corrected:
        note = f"none of {epochs} epochs improved on the econometric baseline, which stands"
        return Training(0, (), note, validation)
    note = f"epoch {kept.epoch} of {epochs} corrects the scale at horizons {', '.join(map(str, corrected))}"
    return Training(kept.epoch, corrected, note, validation)
