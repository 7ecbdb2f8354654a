"""A portfolio trained on its Sharpe ratio

There is no forecast between prices and positions here. `PortfolioLstm` maps prices to weights, `net_returns` takes what
the weights earn on the next day and subtracts the cost of every trade, and the loss is the negative Sharpe ratio of the
result. All of it is one graph, so that the gradient includes the costs.

Untrained, the model holds assets in inverse proportion to their volatility, tilted towards those that have risen;
training can only change the tilt. The effect of training is therefore the difference between the trained and the
untrained portfolio on years that training has not seen. The table also shows the training years, where the gain is
largest. On oil and two stock indices, none of it carries over to the test years.

Spot oil cannot be held as an investment without storage. Use `--data` with assets that can.
"""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import torch
import typer
from torch import Tensor

from torchcommodity import data, ops
from torchcommodity.data import Panel
from torchcommodity.losses import drawdown_loss, net_returns, sharpe_loss
from torchcommodity.models import PortfolioLstm

PLOTLY = {"displayModeBar": False, "responsive": True}
COST = 0.0005  # of trading one unit of weight: five basis points


def portfolio_returns(weights: Tensor, panel: Panel) -> Tensor:  # (T, N) -> (T,)
    """Net return of each row. The next return spans missing prices, and the position does not change meanwhile."""
    return net_returns(weights, ops.log_returns(panel.values.plain()).expm1(), COST)


def train(model: PortfolioLstm, panel: Panel) -> PortfolioLstm:
    prices, warmup = panel.values.plain()[None], model.config.warmup
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        sharpe_loss(portfolio_returns(model(prices)[0], panel)[warmup:]).backward()
        optimizer.step()
    return model.eval()


def sharpe_ratio(net: Tensor) -> float:
    return -(252**0.5) * sharpe_loss(net).item()


def plot(dates, net: dict[str, Tensor]) -> go.Figure:
    lines = {"equal weight": ("#e6a33e", 1.5), "untrained": ("#bbb", 4), "trained": ("#4c78a8", 1.5)}
    figure = go.Figure()
    for name, (color, width) in lines.items():
        scaled = net[name] * (0.10 / 252**0.5 / net[name].std())  # at equal volatility, slopes are Sharpe ratios
        figure.add_scatter(x=dates, y=100 * scaled.cumsum(0), name=name, line={"color": color, "width": width})
    return figure.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "Cumulative net return in percent, at 10 % volatility", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), split: str = "2011-01-01", out: Path | None = None):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # steps are too small for more threads
    panel = data.read(source)
    if source == "embedded":
        panel = panel.between("1997-01-07")  # where Henry Hub begins
    untrained = PortfolioLstm()
    trained = train(PortfolioLstm(), panel.between(None, split))
    prices = panel.values.plain()
    with torch.no_grad():
        weights = {"trained": trained(prices[None])[0], "untrained": untrained(prices[None])[0]}
    weights["equal weight"] = torch.full_like(prices, 1 / len(panel.symbols))
    net = {name: portfolio_returns(w, panel) for name, w in weights.items()}
    is_train = torch.from_numpy(panel.dates < np.datetime64(split))
    for provenance in dict.fromkeys(panel.provenance):
        print(f"{provenance.series}: {provenance.publisher}; {provenance.location}")
    print(f"\ncosts of {1e4 * COST:.0f} basis points; trained before {split}, tested from then to {panel.dates[-1]}\n")
    print(f"{'':16}{'Sharpe, training':>20}{'Sharpe, test':>20}{'drawdown, test':>20}")
    for name, x in net.items():
        train_part, test_part = x[is_train][untrained.config.warmup :], x[~is_train]
        ratios = f"{sharpe_ratio(train_part):20.2f}{sharpe_ratio(test_part):20.2f}"
        print(f"{name:16}{ratios}{-drawdown_loss(test_part).item():20.0%}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure = plot(panel.dates[~is_train.numpy()], {name: x[~is_train] for name, x in net.items()})
        figure.write_html(out / "04_sharpe_portfolio.html", include_plotlyjs="directory", config=PLOTLY)


if __name__ == "__main__":
    typer.run(main)
