"""A portfolio trained on its Sharpe ratio

No forecast stands between prices and positions here. `PortfolioLstm` goes from prices to weights, `net_returns` takes
what the weights earn on the next day and subtracts the cost of every trade, and the loss is the negative Sharpe ratio
of what is left. All of it is one graph, so the costs are in the gradient.

Untrained, the model holds assets in inverse proportion to their volatility, tilted to what has risen; training may only
tilt that further. So what was learned can be read off: the trained portfolio against the same one untrained, on years
that training has not seen. The table holds the years of training too: what is gained there and does not last is what a
backtest must not show. On oil and two stock indices that is all of it.

The price of spot oil is no investment: nobody stores a barrel for nothing. Give `--data` what you can hold.
"""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import torch
import typer
from torch import Tensor

from torchcommodity import data, ops
from torchcommodity.data import Panel
from torchcommodity.losses import net_returns, sharpe_loss
from torchcommodity.models import PortfolioLstm

PLAIN = {"displayModeBar": False, "responsive": True}
COST = 0.0005  # of trading one unit of weight: five basis points


def earned(weights: Tensor, panel: Panel) -> Tensor:  # (T, N) -> (T,)
    """Net return of each row. A position stands still where there is no price, and the next return spans the gap."""
    return net_returns(weights, ops.log_returns(panel.values.plain()).expm1(), COST)


def train(model: PortfolioLstm, panel: Panel) -> PortfolioLstm:
    prices, warm = panel.values.plain()[None], model.config.warmup
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        sharpe_loss(earned(model(prices)[0], panel)[warm:]).backward()
        optimizer.step()
    return model.eval()


def sharpe(net: Tensor) -> float:
    return -(252**0.5) * sharpe_loss(net).item()


def drawdown(net: Tensor) -> float:
    wealth = net.log1p().cumsum(0)
    return (wealth - wealth.cummax(0).values).min().expm1().item()


def figure(dates, made: dict[str, Tensor]) -> go.Figure:
    lines = {"equal weights": ("#e6a33e", 1.5), "untrained": ("#bbb", 4), "trained": ("#4c78a8", 1.5)}
    drawn = go.Figure()
    for name, (color, width) in lines.items():
        scaled = made[name] * (0.10 / 252**0.5 / made[name].std())  # to one volatility: slopes are Sharpe ratios
        drawn.add_scatter(x=dates, y=100 * scaled.cumsum(0), name=name, line={"color": color, "width": width})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "sum of net returns, per cent, each at 10 % a year", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), split: str = "2011-01-01", out: Path | None = None):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a step is so small that threads would wait for each other
    panel = data.read(source)
    if source == "embedded":
        panel = panel.select(["WTI", "SP500", "NASDAQ"]).between("1999-01-04")
    untrained = PortfolioLstm()
    trained = train(PortfolioLstm(), panel.between(None, split))
    prices = panel.values.plain()
    with torch.no_grad():
        weights = {"trained": trained(prices[None])[0], "untrained": untrained(prices[None])[0]}
    weights["equal weights"] = torch.full_like(prices, 1 / len(panel.symbols))
    made = {name: earned(w, panel) for name, w in weights.items()}
    past = torch.from_numpy(panel.dates < np.datetime64(split))
    for mark in dict.fromkeys(panel.provenance):
        print(f"{mark.series}: {mark.publisher}; {mark.location}")
    print(f"\ncosts of {1e4 * COST:.0f} basis points; trained before {split}, tested from then to {panel.dates[-1]}\n")
    print(f"{'':16}{'Sharpe, trained on':>20}{'Sharpe, tested':>20}{'drawdown, tested':>20}")
    for name, net in made.items():
        before, after = net[past][untrained.config.warmup :], net[~past]
        print(f"{name:16}{sharpe(before):20.2f}{sharpe(after):20.2f}{drawdown(after):20.0%}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        drawn = figure(panel.dates[~past.numpy()], {name: net[~past] for name, net in made.items()})
        drawn.write_html(out / "04_sharpe_portfolio.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
