"""Train a portfolio on what it would have made: one flat loop over the pooled Sharpe ratio after costs."""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from lightning.fabric import Fabric
from torch import Tensor

from torchcommodity.losses import net_returns, sharpe_loss
from torchcommodity.models import PortfolioLstm, PortfolioLstmConfig, View
from torchcommodity.portfolio._measures import as_series, sharpe_gain
from torchcommodity.portfolio._tradable import Tradable
from torchcommodity.training import Device, one_thread

Progress = Callable[[int, int, str], None]  # done, of how many, what
YEAR = 252  # rows; of what is said about training only
ROLL = 2  # trades in a roll: the old contract is sold, the new one bought


@dataclass(frozen=True)
class TrainConfig:
    """The model and how it is trained; the defaults are those of the published table."""

    model: PortfolioLstmConfig = field(default_factory=PortfolioLstmConfig)
    cost: float = 0.0002  # of trading one unit of weight; 0.0002 is 2 basis points
    epochs: int = 60  # 0 leaves the portfolio untrained
    patience: int = 15  # epochs without a better validation block before the loop ends
    window: int = 252  # rows of one sequence
    burn_in: int = 63  # first rows of a sequence, whose returns do not count: the network has seen too little
    batch: int = 8  # sequences in one step, pooled into one ratio
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    validation_fraction: float = 0.2  # of the rows, the last ones, on which the epoch is chosen
    margin: float = 1.0  # standard errors by which that epoch must beat the untrained portfolio there
    device: Device = "cpu"

    def __post_init__(self) -> None:
        least = {"patience": 1, "batch": 1, "learning_rate": 0, "weight_decay": 0, "margin": 0}
        for name, smallest in least.items():
            if not getattr(self, name) >= smallest:
                raise ValueError(f"TrainConfig: {name} must be at least {smallest}; got {getattr(self, name)}")
        if (
            not 0 <= self.burn_in < self.window
            or not 0 < self.validation_fraction < 1
            or self.epochs < 0
            or self.cost < 0
        ):
            raise ValueError(
                f"TrainConfig: 0 <= burn_in < window, validation_fraction in (0, 1), epochs and cost >= 0; got {self}"
            )


class Kept(NamedTuple):
    """An epoch, its parameters, and what they made on the rows that are held back."""

    epoch: int
    network: list[Tensor]
    net: Tensor  # (R,)

    def sharpe(self) -> float:
        """Yearly; 0 of a portfolio that never moved."""
        return -float(sharpe_loss(self.net)) * math.sqrt(YEAR)


class Trained(NamedTuple):
    """A portfolio model, the epoch that was kept (0: untrained), and what training gave in words."""

    model: PortfolioLstm
    epoch: int
    note: str


@one_thread()
def train(traded: Tradable, config: TrainConfig, *, seed: int = 0, progress: Progress | None = None) -> Trained:
    """Train on the earlier rows, choose the epoch on the later ones by the Sharpe ratio after costs.

    Args:
        traded: everything up to the day on which the model is to be used.
        config: the settings.
        seed: of the network's start and the order of training; the same seed gives the same bits on the CPU.
        progress: called as progress(done, of, what).

    Returns:
        the model of the best epoch; the untrained one, which is a rule of the textbooks, where that epoch does not
        beat it by the margin: the best of many epochs is above it by chance alone.
    """
    model = _new(config.model, seed)
    view = model.view(traded.prices[None], traded.rolls[None])
    begin = int(view.known[0].any(-1).to(torch.int8).argmax())
    start = len(traded.prices) - round(config.validation_fraction * (len(traded.prices) - begin))
    if config.epochs == 0 or start - begin < 2 * config.window:
        why = "none was asked for" if config.epochs == 0 else "too few rows before the block that is held back"
        return Trained(model, 0, f"not trained ({why})")

    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)  # it announces itself otherwise
    fabric = Fabric(accelerator=config.device, devices=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    network, optimizer = fabric.setup(model, optimizer)
    network.mark_forward_method("weights")
    view, traded = View(*fabric.to_device(tuple(view))), Tradable(*fabric.to_device(tuple(traded)))
    order = torch.Generator().manual_seed(seed)
    untrained = kept = Kept(0, _copy(model), _held_back(network, view, traded, start, config))
    for epoch in range(1, config.epochs + 1):
        for rows in _sequences(begin, start, config, order):
            optimizer.zero_grad()
            net = _made(
                network, View(*(part[0][rows] for part in view)), Tradable(*(part[rows] for part in traded)), config
            )
            fabric.backward(sharpe_loss(net[:, config.burn_in :], pooled=True))
            fabric.clip_gradients(network, optimizer, max_norm=1.0)
            optimizer.step()
        found = Kept(epoch, _copy(model), _held_back(network, view, traded, start, config))
        kept = found if found.sharpe() > kept.sharpe() else kept
        if progress is not None:
            said = f"held-back Sharpe ratio {found.sharpe():+.2f}, untrained {untrained.sharpe():+.2f}"
            progress(epoch, config.epochs, said)
        if epoch - kept.epoch >= config.patience:
            break
    return _settle(model, kept, untrained, epoch, config.margin)


def _new(config: PortfolioLstmConfig, seed: int) -> PortfolioLstm:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PortfolioLstm(config)


def _sequences(begin: int, end: int, config: TrainConfig, order: torch.Generator) -> Iterator[Tensor]:
    """Batches (S, L) of row numbers; an epoch cuts time anew, and sequences overlap by their burn-in."""
    stride = config.window - config.burn_in
    offset = begin + int(torch.randint(stride, (), generator=order))
    starts = torch.arange(offset, end - config.window + 1, stride)
    shuffled = starts[torch.randperm(len(starts), generator=order)]
    for part in shuffled.split(config.batch):
        yield part[:, None] + torch.arange(config.window)


def _made(model: PortfolioLstm, view: View, traded: Tradable, config: TrainConfig) -> Tensor:  # (S, L)
    """Net return of the portfolio over each row."""
    weights = model.weights(view)
    return net_returns(weights, traded.returns, config.cost, rolls=traded.rolls, roll_cost=ROLL * config.cost)


@torch.no_grad()
def _held_back(model: PortfolioLstm, view: View, traded: Tradable, start: int, config: TrainConfig) -> Tensor:  # (R,)
    """Net returns of the rows that are held back."""
    return _made(model, view, Tradable(*(part[None] for part in traded)), config)[0, start:].cpu()


def _copy(model: PortfolioLstm) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


@torch.no_grad()
def _settle(model: PortfolioLstm, kept: Kept, untrained: Kept, epochs: int, margin: float) -> Trained:
    """Put the best epoch back if it beats the untrained portfolio by the margin, else that one."""
    gain, error = sharpe_gain(as_series(kept.net), as_series(untrained.net))
    earned = kept.epoch > 0 and gain > margin * error
    model.cpu()
    for parameter, value in zip(model.parameters(), (kept if earned else untrained).network):
        parameter.copy_(value)
    said = f"held-back Sharpe ratio {kept.sharpe():+.2f}, untrained {untrained.sharpe():+.2f}"
    if kept.epoch == 0:
        return Trained(model, 0, f"none of {epochs} epochs beat the untrained portfolio, which stands")
    if not earned:
        return Trained(model, 0, f"{said}: gained less than {margin:g} standard error, the untrained portfolio stands")
    return Trained(model, kept.epoch, f"epoch {kept.epoch} of {epochs}: {said}")
