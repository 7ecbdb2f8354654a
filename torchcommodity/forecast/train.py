"""The network of a forecaster learns in one flat loop; the epoch is chosen on a later block of time."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from torchcommodity.forecast.calibrate import calibrate, targets
from torchcommodity.forecast.quotes import Quotes
from torchcommodity.losses import pinball
from torchcommodity.models import HarConfig, Market

Progress = Callable[[int, int, str], None]  # done, of how many, what


@dataclass(frozen=True)
class TrainConfig:
    """How the network learns; the defaults are those of the published table."""

    epochs: int = 10  # 0 leaves the econometric baseline as it is
    patience: int = 4  # epochs without a better validation block before the loop ends
    window: int = 252  # rows of one training sequence
    batch: int = 2  # sequences in one step, of all symbols each
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    held_back: float = 0.2  # of the rows, the last ones, on which the epoch is chosen
    corrects: int = 63  # longest horizon the network may correct: beyond, a block holds too few windows to choose on
    accelerator: str = "cpu"

    def __post_init__(self) -> None:
        if not 0 < self.held_back < 1 or self.epochs < 0:
            raise ValueError(f"TrainConfig: held_back in (0, 1), epochs >= 0; got {self}")


class Training(NamedTuple):
    """What training gave: see `FitRecord`."""

    epoch: int
    corrected: tuple[int, ...]
    note: str
    validation: tuple[tuple[float, ...], ...] = ()


class Lesson(NamedTuple):
    """Rows to learn from; time is axis 1 of everything."""

    market: Market
    targets: Tensor  # (B, T, H, N) over their baseline scale; NaN takes no part


class Kept(NamedTuple):
    """The best epoch so far, its network, and which horizons it improves."""

    epoch: int
    network: list[Tensor]
    better: Tensor  # (H,) bool


def train(
    model: Any,
    past: Quotes,
    config: TrainConfig,
    symmetry: float,
    seed: int,
    progress: Progress | None = None,
) -> Training:
    """Train the network in place on the earlier rows, choose its epoch on the later ones; epoch 0 is the baseline.

    Targets of the earlier part end before the later block begins, and its econometric part is calibrated without that
    block.
    """
    start = _held_back_from(len(past.prices), config, model.har.config)
    free = torch.tensor(model.har.config.horizons) <= config.corrects  # (H,)
    if config.epochs == 0 or start is None or not free.any():
        model.har.shrink.zero_()
        why = "too few rows to hold back a later block" if start is None else "none was asked for"
        return Training(0, (), f"network not trained ({why}): the econometric baseline stands")
    calibrate(model.har, past.before(start), symmetry)
    early, late = _lessons(model.har, past, start)
    late = _rows(late, max(start - config.window, 0), len(past.prices))

    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)  # it announces itself otherwise
    fabric = Fabric(accelerator=config.accelerator, devices=1)
    optimizer = torch.optim.AdamW(network(model), lr=config.learning_rate, weight_decay=config.weight_decay)
    wrapped, optimizer = fabric.setup(model, optimizer)
    wrapped.mark_forward_method("correction")
    late, free = fabric.to_device((late, free))
    order = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        base = _loss(wrapped, late, size=0.0)
    best, kept, validation = 0.0, Kept(0, _copy(model), base > base), []
    for epoch in range(1, config.epochs + 1):
        for lesson in _batches(early, start, config, order):
            optimizer.zero_grad()
            fabric.backward(_loss(wrapped, fabric.to_device(lesson))[free].nanmean())
            fabric.clip_gradients(wrapped, optimizer, max_norm=1.0)
            optimizer.step()
        with torch.no_grad():
            change = 100 * (_loss(wrapped, late, size=model.har.config.shrink) / base - 1)
        validation.append(tuple(change.tolist()))
        gain = change[free].clamp(max=0).nanmean().item()
        if gain < best:
            best, kept = gain, Kept(epoch, _copy(model), (change < 0) & free)
        if progress is not None:
            progress(epoch, config.epochs, f"held-back loss {change[free].nanmean():+.2f} %")
        if epoch - kept.epoch >= config.patience:
            break
    return _settle(model, kept, tuple(validation))


def network(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that learn by gradient: all but those of the econometric part, which is fitted in closed form."""
    return [parameter for name, parameter in model.named_parameters() if not name.startswith("har.")]


def _held_back_from(rows: int, config: TrainConfig, har: HarConfig) -> int | None:
    """First row of the later block, of at least two longest horizons; None if that leaves too little before it."""
    longest = har.horizons[-1]
    start = rows - max(int(config.held_back * rows), 2 * longest)
    return start if start >= har.warmup + config.window + 2 * longest else None


@torch.no_grad()
def _lessons(har: Any, past: Quotes, start: int) -> tuple[Lesson, Lesson]:
    """All rows twice: with the targets that end before `start`, and with those of the rows from `start` on."""
    market = har(*past.batch())
    scale, horizons = market.log_scale.exp(), har.config.horizons
    early = (targets(past.prices[:start], horizons) - market.shift[0, :start]) / scale[0, :start]
    late = (targets(past.prices, horizons) - market.shift[0]) / scale[0]
    late[:start] = torch.nan
    return Lesson(_first(market, start), early[None]), Lesson(market, late[None])


def _first(market: Market, stop: int) -> Market:
    return Market(*(x[:, :stop] for x in market))


def _rows(lesson: Lesson, start: int, stop: int) -> Lesson:
    return Lesson(Market(*(x[:, start:stop] for x in lesson.market)), lesson.targets[:, start:stop])


def _batches(lesson: Lesson, rows: int, config: TrainConfig, order: torch.Generator) -> Iterator[Lesson]:
    """An epoch cuts time anew, at a random offset, into shuffled sequences of one window."""
    offset = int(torch.randint(config.window, (), generator=order))
    starts = torch.arange(offset, rows - config.window + 1, config.window)
    for chosen in starts[torch.randperm(len(starts), generator=order)].split(config.batch):
        cut = [_rows(lesson, s, s + config.window) for s in chosen.tolist()]
        market = Market(*(torch.cat(parts) for parts in zip(*(piece.market for piece in cut))))
        yield Lesson(market, torch.cat([piece.targets for piece in cut]))


def _loss(model: Any, lesson: Lesson, *, size: float = 1.0) -> Tensor:  # (H,)
    """Pinball loss of standardised targets per horizon, NaN where a horizon has none; `size` 0 is the baseline."""
    scale = (size * model.har.bend(model.correction(lesson.market))).exp()  # (S, L, H, N)
    levels = torch.tensor(model.har.config.levels).to(scale)
    losses = []
    for h, z in enumerate(model.har.z.to(scale)):
        quantiles = scale[:, :, h].unsqueeze(-1) * z
        losses.append(pinball(quantiles, lesson.targets[:, :, h].to(scale), levels))
    return torch.stack(losses)


def _copy(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in network(model)]


@torch.no_grad()
def _settle(model: Any, kept: Kept, validation: tuple[tuple[float, ...], ...]) -> Training:
    """Put the kept epoch back; a horizon that it did not improve keeps the baseline."""
    model.cpu()
    for parameter, value in zip(network(model), kept.network):
        parameter.copy_(value)
    config = model.har.config
    model.har.shrink.copy_(config.shrink * kept.better.to(model.har.shrink))
    corrected = tuple(h for h, better in zip(config.horizons, kept.better.tolist()) if better)
    if not corrected:
        note = f"none of {len(validation)} epochs improved on the econometric baseline, which stands"
        return Training(0, (), note, validation)
    note = f"epoch {kept.epoch} of {len(validation)} corrects the scale at horizons {', '.join(map(str, corrected))}"
    return Training(kept.epoch, corrected, note, validation)
