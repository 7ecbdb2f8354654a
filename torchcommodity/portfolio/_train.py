"""Train a portfolio model on the pooled Sharpe ratio after costs."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor

from torch_opkit.arguments import current_operation, operation
from torchcommodity._extras import extra
from torchcommodity.losses import net_returns, sharpe_loss
from torchcommodity.models import (
    Bounds,
    NonNegativeFloat,
    PortfolioInputs,
    PortfolioLstm,
    PortfolioLstmConfig,
    check_fields,
)
from torchcommodity.portfolio._performance import as_series, sharpe_ratio
from torchcommodity.portfolio._sharpe_difference import sharpe_gain
from torchcommodity.portfolio._tradable_panel import TradablePanel, tradable_panel
from torchcommodity.training import Device, Progress, fabric_device, one_thread, to_device

TRADES_PER_ROLL = 2  # the old contract is sold, the new one bought


@dataclass(frozen=True)
class PortfolioTrainConfig:
    """Settings of a portfolio model and its training; the defaults are those of the published results."""

    model: PortfolioLstmConfig = field(default_factory=PortfolioLstmConfig)
    cost: NonNegativeFloat = 0.0002  # cost of trading one unit of weight: 2 basis points
    epochs: Annotated[int, Bounds(ge=0)] = 60  # 0 leaves the portfolio untrained
    patience: Annotated[int, Bounds(ge=1)] = 15  # epochs without improvement before early stopping
    window: int = 252  # rows per sequence
    burn_in: int = 63  # first rows of a sequence, excluded from the loss
    batch: Annotated[int, Bounds(ge=1)] = 8  # sequences per step, pooled into one ratio
    learning_rate: NonNegativeFloat = 3e-3
    weight_decay: NonNegativeFloat = 0.1
    validation_fraction: Annotated[float, Bounds(gt=0, lt=1)] = 0.2  # last rows, used to select the epoch
    margin: NonNegativeFloat = 1.0  # required gain over the untrained portfolio in validation, in standard errors
    device: Device = "cpu"

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.burn_in < self.window:
            got = f"burn_in={self.burn_in}, window={self.window}"
            raise ValueError(f"PortfolioTrainConfig: burn_in must be in [0, window); got {got}")


def check_config(config: object) -> PortfolioTrainConfig:
    """Return the config, or the default one if it is None; TypeError for another type."""
    if config is None:
        return PortfolioTrainConfig()
    if not isinstance(config, PortfolioTrainConfig):
        raise TypeError(f"{current_operation()}: config must be a PortfolioTrainConfig; got {config!r}")
    return config


class TrainedPortfolio(NamedTuple):
    """Portfolio model, selected epoch (0: untrained), and the outcome of training in words."""

    model: PortfolioLstm
    epoch: int
    note: str


class _Epoch(NamedTuple):
    """Parameters after an epoch, and what they earn."""

    number: int
    parameters: list[Tensor]
    net: Tensor  # (R,) net returns of the validation rows

    def loss(self) -> float:
        return float(sharpe_loss(self.net))


@operation("portfolio.train")
@one_thread()
def train(
    prices: Any,
    config: PortfolioTrainConfig | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> TrainedPortfolio:
    """Train a portfolio on the first rows and select the epoch by the Sharpe ratio after costs on the last rows.

    Args:
        prices: a `TradablePanel`, or anything that `data.to_panel` takes; all rows are used.
        config: settings; the defaults if None.
        seed: random seed for initialization and shuffling; the same seed gives the same bits on the CPU.
        progress: called as progress(done, total, description).

    Returns:
        The model of the best epoch if its gain over the untrained portfolio exceeds the margin, else the untrained
        model, because the best of many epochs shows a gain by chance alone.

    Raises:
        TypeError: `prices` or `config` has another type.
        ValueError: the panel is synthetic.

    Example:
        >>> from torchcommodity import data
        >>> prices = data.embedded(["WTI", "BRENT"]).between("2014-01-01", "2018-12-31")
        >>> train(prices, PortfolioTrainConfig(epochs=0)).note
        'not trained (0 epochs)'
    """
    config = check_config(config)
    panel = prices if isinstance(prices, TradablePanel) else tradable_panel(prices)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PortfolioLstm(config.model)
    inputs = model.inputs(panel.prices[None], panel.rolls[None])
    begin = int(inputs.investable[0].any(-1).to(torch.int8).argmax())
    start = len(panel.prices) - round(config.validation_fraction * (len(panel.prices) - begin))
    if config.epochs == 0 or start - begin < 2 * config.window:
        reason = "0 epochs" if config.epochs == 0 else "too few rows before the validation rows"
        return TrainedPortfolio(model, 0, f"not trained ({reason})")

    with extra("forecast"):
        from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)  # suppresses the message that Fabric prints
    fabric = Fabric(**fabric_device(config.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    network, optimizer = fabric.setup(model, optimizer)
    network.mark_forward_method("weights")
    inputs = PortfolioInputs(*(to_device(x, fabric.device) for x in inputs))
    panel = TradablePanel(*(to_device(x, fabric.device) for x in panel))
    generator = torch.Generator().manual_seed(seed)
    untrained = best = _Epoch(0, _copy(model), _validate(network, inputs, panel, start, config))
    for number in range(1, config.epochs + 1):
        for rows in _batches(begin, start, config, generator):
            optimizer.zero_grad()
            batch_inputs = PortfolioInputs(*(x[0][rows] for x in inputs))
            batch = TradablePanel(*(x[rows] for x in panel))
            net = _net_returns(network, batch_inputs, batch, config)
            fabric.backward(sharpe_loss(net[:, config.burn_in :], pooled=True))
            fabric.clip_gradients(network, optimizer, max_norm=1.0)
            optimizer.step()
        epoch = _Epoch(number, _copy(model), _validate(network, inputs, panel, start, config))
        best = epoch if epoch.loss() < best.loss() else best
        if progress is not None:
            progress(number, config.epochs, _describe(epoch, untrained, config))
        if number - best.number >= config.patience:
            break
    return _select(model, best, untrained, number, config)


def _batches(begin: int, end: int, config: PortfolioTrainConfig, generator: torch.Generator) -> Iterator[Tensor]:
    """Row numbers (S, L) of an epoch's sequences, from a random offset; sequences overlap by the burn-in."""
    stride = config.window - config.burn_in
    offset = begin + int(torch.randint(stride, (), generator=generator))
    starts = torch.arange(offset, end - config.window + 1, stride)
    shuffled = starts[torch.randperm(len(starts), generator=generator)]
    for part in shuffled.split(config.batch):
        yield part[:, None] + torch.arange(config.window)


def _net_returns(
    model: PortfolioLstm, inputs: PortfolioInputs, panel: TradablePanel, config: PortfolioTrainConfig
) -> Tensor:  # (S, L)
    weights, roll_cost = model.weights(inputs), TRADES_PER_ROLL * config.cost
    return net_returns(weights, panel.returns, config.cost, rolls=panel.rolls, roll_cost=roll_cost)


@torch.no_grad()
def _validate(
    model: PortfolioLstm, inputs: PortfolioInputs, panel: TradablePanel, start: int, config: PortfolioTrainConfig
) -> Tensor:  # (R,)
    """Net returns of the validation rows."""
    return _net_returns(model, inputs, TradablePanel(*(x[None] for x in panel)), config)[0, start:].cpu()


def _copy(model: PortfolioLstm) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


@torch.no_grad()
def _select(
    model: PortfolioLstm, best: _Epoch, untrained: _Epoch, epochs: int, config: PortfolioTrainConfig
) -> TrainedPortfolio:
    """Load the best epoch if its gain exceeds the margin, else the untrained portfolio."""
    gain, error = sharpe_gain(as_series(best.net), as_series(untrained.net))
    significant = best.number > 0 and gain > config.margin * error
    model.cpu()
    for parameter, value in zip(model.parameters(), (best if significant else untrained).parameters):
        parameter.copy_(value)
    if best.number == 0:
        return TrainedPortfolio(model, 0, f"none of {epochs} epochs exceeded the untrained portfolio, which is kept")
    ratios = _describe(best, untrained, config)
    if not significant:
        reason = f"gain below {config.margin:g} standard errors, the untrained portfolio is kept"
        return TrainedPortfolio(model, 0, f"{ratios}: {reason}")
    return TrainedPortfolio(model, best.number, f"epoch {best.number} of {epochs}: {ratios}")


def _describe(epoch: _Epoch, untrained: _Epoch, config: PortfolioTrainConfig) -> str:
    ratio, reference = (
        sharpe_ratio(as_series(x.net), rows_per_year=config.model.rows_per_year) for x in (epoch, untrained)
    )
    return f"validation Sharpe ratio {ratio:+.2f}, untrained {reference:+.2f}"
