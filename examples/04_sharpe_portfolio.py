"""A portfolio trained on its Sharpe ratio, and what a batch in parts trains on

The network says how much of oil and of two stock indices to hold; the loss is what these weights would have made, costs
included: return over risk. Nobody says what a good weight is.

The ratio of a whole batch is not the mean of the ratios of its parts. So accumulation over microbatches, or two
processes that average their gradients, quietly train on another loss. The first lines measure by how much, and that
`PooledSharpe` gives the gradient of the whole.

Then the sobering part. Training improves the years that it sees. The years after are the test, and the untrained
network is the rule to beat: time-series momentum, known since 2012.
"""

from itertools import pairwise
from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from torch import Tensor, nn

from torchcommodity import data, ops
from torchcommodity.losses import PooledSharpe, net_returns, sharpe_loss
from torchcommodity.models import PortfolioLSTM, PortfolioLSTMConfig
from torchcommodity.models.portfolio_lstm import View

PLAIN = {"displayModeBar": False, "responsive": True}
COST, WINDOW, EPOCHS = 0.0005, 504, 40
Part = tuple[View, Tensor]  # what the network sees, and the returns (1, T, N) that it can earn


def rows(part: Part, start: int, stop: int) -> Part:
    return View(*(x[:, start:stop] for x in part[0])), part[1][:, start:stop]


def made(model: PortfolioLSTM, part: Part) -> Tensor:  # (1, T): return of the portfolio over each row, after costs
    return net_returns(model.weights(part[0]), part[1], COST)


def gradient(model: nn.Module) -> Tensor:
    found = torch.cat([p.grad.flatten() for p in model.parameters()])
    model.zero_grad()
    return found


def in_parts(model: PortfolioLSTM, parts: list[Part]) -> None:
    """Three gradients of one batch: of the whole, averaged over its parts, and exact over its parts."""
    torch.nn.init.normal_(model.head.weight, std=0.1)  # with a head of zeros no gradient passes it
    sharpe_loss(torch.cat([made(model, part) for part in parts], 1), pooled=True).backward()
    whole = gradient(model)
    for part in parts:
        (sharpe_loss(made(model, part), pooled=True) / len(parts)).backward()
    averaged = gradient(model)
    pool = PooledSharpe()
    with torch.no_grad():
        for part in parts:
            pool.collect(made(model, part))
    for part in parts:
        pool.loss(made(model, part)).backward()
    for name, found in {"averaged over the parts": averaged, "by PooledSharpe": gradient(model)}.items():
        print(f"gradient {name:24} is off by {(found - whole).norm() / whole.norm():.1e} of its length")
    torch.nn.init.zeros_(model.head.weight)


def train(model: PortfolioLSTM, past: Part) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    length = past[1].shape[1]
    for epoch in range(EPOCHS):
        for start in range(17 * epoch % WINDOW, length - WINDOW, WINDOW):  # each epoch cuts time elsewhere
            optimizer.zero_grad()
            net = made(model, rows(past, start, start + WINDOW))
            sharpe_loss(net[:, 63:], pooled=True).backward()  # the network has seen too little before
            optimizer.step()


def yearly(net: Tensor) -> float:
    return -(252**0.5) * sharpe_loss(net, eps=0.0).item()


def figure(dates, wealth: dict[str, Tensor], split) -> go.Figure:
    drawn = go.Figure()
    for (name, line), colour in zip(wealth.items(), ("#bbb", "#4c78a8", "#e45756")):
        drawn.add_scatter(x=dates, y=line, name=name, line={"color": colour, "width": 1.5})
    drawn.add_vline(x=str(split), line={"dash": "dot", "color": "#888"})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        yaxis_type="log", title={"text": "wealth after costs; trained left of the line", "font": {"size": 14}},
    )  # fmt: skip


def main(
    source: str = typer.Option("embedded", "--data"),
    symbols: str = "WTI,SP500,NASDAQ",
    since: str = "1999-01-04",
    out: Path | None = None,
):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    panel = data.load(source, symbols.split(",")).panel.between(since)
    for mark, symbol in zip(panel.provenance, panel.symbols):
        print(f"{symbol}, {panel.dates[0]} to {panel.dates[-1]}; {mark.publisher}; {mark.location}")
    prices = panel.values.plain()[None]
    model = PortfolioLSTM(PortfolioLSTMConfig(long_short=True))
    everything = model.view(prices), torch.expm1(ops.log_returns(prices))
    first = int(everything[0].known[0].any(-1).int().argmax())
    split = (first + prices.shape[1]) // 2

    cuts = (first, first + 300, first + 900, split)
    print(f"\n{split - first} rows in 3 unequal parts")
    in_parts(model, [rows(everything, a, b) for a, b in pairwise(cuts)])

    nets = {}
    with torch.no_grad():
        nets["untrained"] = made(model, everything)
    train(model, rows(everything, first, split))
    with torch.no_grad():
        nets["trained"] = made(model, everything)
        same = everything[0].known.to(prices) / everything[0].known.sum(-1, keepdim=True).clamp(min=1)
        nets["equal weight"] = net_returns(model.target(same, everything[0].covariance), everything[1], COST)
    print(f"\nSharpe ratio a year after costs, up to {panel.dates[split]} and after it")
    for name, net in nets.items():
        print(f"    {name:14}{yearly(net[:, first:split]):+.2f}   {yearly(net[:, split:]):+.2f}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        wealth = {name: (1 + net[0, first:]).cumprod(0)[::5] for name, net in nets.items()}
        drawn = figure(panel.dates[first::5], wealth, panel.dates[split])
        drawn.write_html(out / "04_sharpe_portfolio.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
