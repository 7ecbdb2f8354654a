"""Portfolio losses against those of deepdow with the same definition, on real returns.

python benchmarks/deepdow_losses.py --data prices.csv --symbols CORN,SOYBEAN,NATGAS,HEATOIL

Needs an environment with deepdow (tested with 0.2.3) and a long file date,symbol,close.
"""

import argparse
import csv
import gzip
import math
from pathlib import Path

import torch
from deepdow import losses as deepdow
from torch import Tensor

from torchcommodity.losses import drawdown_loss, portfolio_returns, sharpe_loss, sortino_loss


def read_returns(path: Path, symbols: list[str]) -> Tensor:  # (T, N)
    """Log-returns between the days on which all symbols have a price."""
    days: dict[str, dict[str, float]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            if row["symbol"] in symbols and float(row["close"]) > 0:
                days.setdefault(row["date"], {})[row["symbol"]] = float(row["close"])
    complete = [[math.log(day[s]) for s in symbols] for _, day in sorted(days.items()) if len(day) == len(symbols)]
    return torch.tensor(complete, dtype=torch.double).diff(dim=0)


def show(name: str, value: Tensor, expected: Tensor) -> None:
    print(f"{name:44}{(value - expected).abs().max():.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="File with date,symbol,close")
    parser.add_argument("--symbols", required=True, help="Symbols, separated by commas")
    arguments = parser.parse_args()
    returns = read_returns(arguments.data, arguments.symbols.split(","))
    y = returns[: len(returns) // 60 * 60].unflatten(0, (-1, 60))  # (samples, 60, N)
    weights = torch.rand(len(y), y.shape[-1], generator=torch.Generator().manual_seed(0), dtype=torch.double)
    weights = (weights / weights.sum(-1, keepdim=True)).requires_grad_()
    net = deepdow.portfolio_returns(weights, y)  # buy and hold, as in deepdow's losses
    print(f"{len(y)} samples of 60 days; largest absolute difference")
    rebalanced = deepdow.portfolio_returns(weights, y, rebalance=True)
    show("portfolio_returns", portfolio_returns(weights, y.expm1()), rebalanced)
    show("portfolio_returns, rebalance=False", portfolio_returns(weights, y.expm1(), rebalance=False), net)
    for epsilon in (1e-4, 0.0):
        for loss, reference in ((sharpe_loss, deepdow.SharpeRatio), (sortino_loss, deepdow.SortinoRatio)):
            pair = loss(net, epsilon=epsilon, reduction="none"), reference(eps=epsilon)(weights, y[:, None])
            show(f"{loss.__name__}, epsilon {epsilon:g}", *pair)
            gradients = (torch.autograd.grad(x.sum(), weights, retain_graph=True)[0] for x in pair)
            show(f"{loss.__name__}, epsilon {epsilon:g}, gradient", *gradients)
    expected = deepdow.MaximumDrawdown()(weights, y[:, None])
    show("drawdown_loss", drawdown_loss(net, reduction="none"), expected)
    show("drawdown_loss from the first close on", drawdown_loss(net[:, 1:], reduction="none"), expected)


if __name__ == "__main__":
    main()
