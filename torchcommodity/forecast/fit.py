"""Fit a forecaster: the econometric part in closed form, then one flat loop in which the network may bend its scale."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from torchcommodity.data import Panel, refuse_synthetic
from torchcommodity.forecast.calibrate import calibrate, targets
from torchcommodity.forecast.forecaster import FitRecord, Forecaster
from torchcommodity.forecast.threads import one_thread
from torchcommodity.losses import pinball
from torchcommodity.models import HarLstm, HarLstmConfig

Progress = Callable[[int, int, str], None]  # done, of how many, what


@dataclass(frozen=True)
class FitConfig:
    """The model and how it is fitted; the defaults are those of the published table."""

    model: HarLstmConfig = field(default_factory=HarLstmConfig)
    symmetry: float = 0.5  # how much of the past drift is taken out of the quantiles; needs levels symmetric about 1/2
    epochs: int = 10  # 0 leaves the econometric baseline as it is
    patience: int = 4  # epochs without a better validation block before the loop ends
    window: int = 252  # rows of one training sequence
    batch: int = 8  # sequences in one step
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    held_back: float = 0.2  # of the rows, the last ones, on which the epoch is chosen
    corrects: int = 63  # longest horizon the network may correct: beyond, a block holds too few windows to choose on
    accelerator: str = "cpu"

    def __post_init__(self) -> None:
        levels = np.array(self.model.levels)
        if self.symmetry and not np.allclose(levels + levels[::-1], 1):
            raise ValueError(f"FitConfig: symmetry needs levels symmetric about 1/2; got {self.model.levels}")
        if not 0 <= self.symmetry <= 1 or not 0 < self.held_back < 1 or self.epochs < 0:
            raise ValueError(f"FitConfig: symmetry in [0, 1], held_back in (0, 1), epochs >= 0; got {self}")


class Training(NamedTuple):
    """What training gave: see `FitRecord`."""

    epoch: int
    corrected: tuple[int, ...]
    note: str
    validation: tuple[tuple[float, ...], ...] = ()


class Kept(NamedTuple):
    """The best epoch so far, its network, and which horizons it improves."""

    epoch: int
    network: list[Tensor]
    better: Tensor  # (H,) bool


@one_thread()
def fit(
    panel: Panel,
    config: FitConfig | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    through: str | np.datetime64 | None = None,
) -> Forecaster:
    """Fit a forecaster on a panel of real prices.

    Args:
        panel: raw prices. A price that is missing, zero or negative is bridged: the next return spans the gap.
        config: the settings; the defaults if None.
        seed: decides the network's start and the order of training; the same seed gives the same bits on the CPU.
        progress: called as progress(done, of, what) while the network trains.
        through: the last date used; all rows if None.

    Returns:
        a Forecaster. Its record says which epoch was kept and for which horizons; where no epoch beats the econometric
        baseline on a later block of time, the baseline stands and the record says so.

    Raises:
        ValueError: a symbol has no positive price or too few returns for its warm-up and two longest horizons; the
            panel is synthetic.
    """
    refuse_synthetic("fit", panel)
    config = config or FitConfig()
    panel = panel if through is None else panel.between(None, through)
    prices = panel.values.plain().detach()
    check_fit(prices, panel.symbols, config.model)
    model = new_model(len(panel.symbols), config.model, seed)
    training = train_network(model, prices, config, seed, progress)
    calibrate(model, prices, config.symmetry)
    first, last = str(panel.dates[0]), str(panel.dates[-1])
    return Forecaster(model, tuple(panel.symbols), FitRecord(seed, first, last, len(prices), **training._asdict()))


def check_fit(prices: Tensor, symbols: tuple[str, ...], config: HarLstmConfig) -> None:
    """Refuse, by name, symbols from which nothing can be learnt."""
    if not symbols:
        raise ValueError("fit: the panel must have at least one symbol; got none")
    known = (torch.isfinite(prices) & (prices > 0)).sum(0)
    empty = [s for s, n in zip(symbols, known.tolist()) if n == 0]
    if empty:
        raise ValueError(f"fit: every symbol must have positive prices; got none for {', '.join(empty)}")
    least = config.warmup + 2 * config.horizons[-1] + 1
    short = [f"{s} {n}" for s, n in zip(symbols, known.tolist()) if n < least]
    if short:
        why = f"a warm-up of {config.warmup} and twice the longest horizon of {config.horizons[-1]}"
        raise ValueError(
            f"fit: every symbol must have at least {least} positive prices ({why}); got {', '.join(short)}"
        )


def new_model(assets: int, config: HarLstmConfig, seed: int) -> HarLstm:
    """An untrained model whose start the seed decides; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return HarLstm(assets, config)


def train_network(
    model: HarLstm,
    prices: Tensor,  # (T, N), all of it past
    config: FitConfig,
    seed: int,
    progress: Progress | None = None,
) -> Training:
    """Train the network in place on the earlier rows, choose its epoch on the later ones; epoch 0 is the baseline.

    Targets of the earlier part end before the later block begins, and its econometric part is calibrated without that
    block.
    """
    start = _held_back_from(len(prices), config)
    free = torch.tensor(config.model.horizons) <= config.corrects  # (H,)
    if config.epochs == 0 or start is None or not free.any():
        model.shrink.zero_()
        why = "too few rows to hold back a later block" if start is None else "none was asked for"
        return Training(0, (), f"network not trained ({why}): the econometric baseline stands")
    calibrate(model, prices[:start], config.symmetry)
    features, early, late = _training_data(model, prices, start)
    held_back = tuple(part[start - config.window :].transpose(0, 1) for part in (features, late))

    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)  # it announces itself otherwise
    fabric = Fabric(accelerator=config.accelerator, devices=1)
    optimizer = torch.optim.AdamW(_network(model), lr=config.learning_rate, weight_decay=config.weight_decay)
    network, optimizer = fabric.setup(model, optimizer)
    network.mark_forward_method("correction")
    held_back, free = fabric.to_device((held_back, free))
    order = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        base = _loss(network, *held_back, size=0.0)
    best, kept, validation = 0.0, Kept(0, _copy(model), base > base), []
    for epoch in range(1, config.epochs + 1):
        for x, y in _batches(features[:start], early, config, order):
            optimizer.zero_grad()
            fabric.backward(_loss(network, *fabric.to_device((x, y)))[free].nanmean())
            fabric.clip_gradients(network, optimizer, max_norm=1.0)
            optimizer.step()
        with torch.no_grad():
            change = 100 * (_loss(network, *held_back, size=config.model.shrink) / base - 1)
        validation.append(tuple(change.tolist()))
        gain = change[free].clamp(max=0).nanmean().item()
        if gain < best:
            best, kept = gain, Kept(epoch, _copy(model), (change < 0) & free)
        if progress is not None:
            progress(epoch, config.epochs, f"held-back loss {change[free].nanmean():+.2f} %")
        if epoch - kept.epoch >= config.patience:
            break
    return _settle(model, kept, tuple(validation), config)


def _held_back_from(rows: int, config: FitConfig) -> int | None:
    """First row of the later block, of at least two longest horizons; None if that leaves too little before it."""
    longest = config.model.horizons[-1]
    start = rows - max(int(config.held_back * rows), 2 * longest)
    return start if start >= config.model.warmup + config.window + 2 * longest else None


@torch.no_grad()
def _training_data(model: HarLstm, prices: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features (T, N, F); targets over their baseline scale (T, N, H) of the earlier rows and of the later."""
    returns = model.returns(prices[None])
    terms = model.terms(returns)
    scale = model.mixed(terms)[0].sqrt()
    early = targets(prices[:start], model.config.horizons) / scale[:start]
    late = targets(prices, model.config.horizons) / scale
    late[:start] = torch.nan
    dtype = model.head.weight.dtype
    return model.features(returns, terms)[0].to(dtype), early.mT.to(dtype), late.mT.to(dtype)


def _batches(x: Tensor, y: Tensor, config: FitConfig, order: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """An epoch cuts time anew, at a random offset, into shuffled sequences (S, L, F) and (S, L, H) of one window."""
    offset = int(torch.randint(config.window, (), generator=order))
    count = (len(x) - offset) // config.window
    cut = [
        part[offset : offset + count * config.window].unflatten(0, (count, config.window)).transpose(1, 2).flatten(0, 1)
        for part in (x, y)
    ]
    shuffled = torch.randperm(len(cut[0]), generator=order)
    for index in shuffled.split(config.batch):
        yield cut[0][index], cut[1][index]


def _loss(model: HarLstm, x: Tensor, y: Tensor, *, size: float = 1.0) -> Tensor:  # (S, L, F), (S, L, H) -> (H,)
    """Pinball loss of standardised targets per horizon, NaN where a horizon has none; `size` 0 is the baseline."""
    scale = (size * model.correction(x.unsqueeze(2))).exp().squeeze(-1)  # (S, L, H)
    quantiles = scale.unsqueeze(-1) * model.z.to(scale)
    levels = torch.tensor(model.config.levels).to(scale)
    return torch.stack([pinball(quantiles[:, :, h], y[:, :, h], levels) for h in range(y.shape[-1])])


def _network(model: HarLstm) -> list[nn.Parameter]:
    return [*model.lstm.parameters(), *model.head.parameters()]


def _copy(model: HarLstm) -> list[Tensor]:
    return [p.detach().clone() for p in _network(model)]


@torch.no_grad()
def _settle(model: HarLstm, kept: Kept, validation: tuple[tuple[float, ...], ...], config: FitConfig) -> Training:
    """Put the kept epoch back; a horizon that it did not improve keeps the baseline."""
    model.cpu()
    for parameter, value in zip(_network(model), kept.network):
        parameter.copy_(value)
    model.shrink.copy_(config.model.shrink * kept.better.to(model.shrink))
    corrected = tuple(h for h, better in zip(config.model.horizons, kept.better.tolist()) if better)
    if not corrected:
        note = f"none of {len(validation)} epochs improved on the econometric baseline, which stands"
        return Training(0, (), note, validation)
    note = f"epoch {kept.epoch} of {len(validation)} corrects the scale at horizons {', '.join(map(str, corrected))}"
    return Training(kept.epoch, corrected, note, validation)
