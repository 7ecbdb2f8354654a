"""Losses of portfolios beside deepdow's, where they share a definition, on real returns. Run by hand:

python benchmarks/deepdow_losses.py --data prices.csv --symbols CORN,SOYBEAN,NATGAS,HEATOIL

It needs an environment with deepdow (0.2.3 was the last when this was written) and a long file date,symbol,close.
"""

import argparse
import csv
import gzip
import math
from pathlib import Path

import torch
from deepdow import losses as theirs
from torch import Tensor

from torchcommodity.losses import drawdown_loss, sharpe_loss, sortino_loss


def read(path: Path, symbols: list[str]) -> Tensor:  # (T, N) log-returns of the days on which all have prices
    days: dict[str, dict[str, float]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            if row["symbol"] in symbols and float(row["close"]) > 0:
                days.setdefault(row["date"], {})[row["symbol"]] = float(row["close"])
    whole = [[math.log(day[s]) for s in symbols] for _, day in sorted(days.items()) if len(day) == len(symbols)]
    return torch.tensor(whole, dtype=torch.double).diff(dim=0)


def show(name: str, ours: Tensor, other: Tensor) -> None:
    print(f"{name:44}{(ours - other).abs().max():.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--symbols", required=True)
    options = parser.parse_args()
    returns = read(options.data, options.symbols.split(","))
    y = returns[: len(returns) // 60 * 60].unflatten(0, (-1, 60))  # (samples, 60, N)
    weights = torch.rand(len(y), y.shape[-1], generator=torch.Generator().manual_seed(0), dtype=torch.double)
    weights = (weights / weights.sum(-1, keepdim=True)).requires_grad_()
    held = theirs.portfolio_returns(weights, y)  # buy and hold, as deepdow's losses do
    print(f"{len(y)} samples of 60 days; largest absolute difference")
    rebalanced = theirs.portfolio_returns(weights, y, rebalance=True)
    show("return of a portfolio rebalanced daily", (weights[:, None] * y.expm1()).sum(-1), rebalanced)
    for eps in (1e-4, 0.0):
        for ours, other in ((sharpe_loss, theirs.SharpeRatio), (sortino_loss, theirs.SortinoRatio)):
            one, two = ours(held, eps=eps, reduction="none"), other(eps=eps)(weights, y[:, None])
            show(f"{ours.__name__}, eps {eps:g}", one, two)
            gradients = (torch.autograd.grad(loss.sum(), weights, retain_graph=True)[0] for loss in (one, two))
            show(f"{ours.__name__}, eps {eps:g}, gradient", *gradients)
    other = theirs.MaximumDrawdown()(weights, y[:, None])
    show("drawdown_loss", drawdown_loss(held, reduction="none"), other)
    show("drawdown_loss from the first close on", drawdown_loss(held[:, 1:], reduction="none"), other)


if __name__ == "__main__":
    main()
