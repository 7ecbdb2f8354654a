"""Learnable GARCH

GARCH(1,1) says that tomorrow's variance is h = omega + alpha r² + beta h. Statistics packages estimate the three
numbers with an optimizer that is built for nothing else. Here they are parameters of a `torch.nn.Module` like any
weight: the likelihood is differentiated through the whole recurrence, eight thousand days of it, by one call of
`backward`, and the optimizer is the one at hand. So GARCH can be a layer of a larger model and learn with it.

To show that the gradient is right, we learn alone what `arch` estimates, and compare: both maximize the same function.
"""

from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from arch import arch_model
from plotly.subplots import make_subplots
from torch import Tensor, nn

from torchcommodity import data, ops

PLAIN = {"displayModeBar": False, "responsive": True}
NAMES = ("omega", "alpha", "beta")


class Garch(nn.Module):
    """Variance from returns (T, 1) in per cent. Positive and stationary whatever the parameters are."""

    def __init__(self, start: Tensor) -> None:  # h before the first return, per cent squared
        super().__init__()
        self.register_buffer("start", start)
        self.free = nn.Parameter(torch.tensor([[-2.0], [2.0], [-1.0]], dtype=torch.double))  # (3, N = 1)

    def parameters_of_garch(self) -> Tensor:  # (3, 1): omega, alpha, beta
        omega, persistence, share = self.free[0].exp(), self.free[1].sigmoid(), self.free[2].sigmoid()
        return torch.stack([omega, persistence * share, persistence * (1 - share)])

    def forward(self, returns: Tensor) -> Tensor:  # (T, 1) -> (T, 1)
        omega, alpha, beta = self.parameters_of_garch()
        return ops.garch_variance(returns, omega, alpha, beta, initial=omega + (alpha + beta) * self.start)


def negative_loglikelihood(returns: Tensor, variance: Tensor) -> Tensor:
    return 0.5 * (torch.log(2 * torch.pi * variance) + returns**2 / variance).nansum()


def learn(model: Garch, returns: Tensor) -> Tensor:  # (steps, 3): the way of the parameters
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=1, line_search_fn="strong_wolfe")
    way = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = negative_loglikelihood(returns, model(returns)) / len(returns)
        loss.backward()
        return loss

    for _ in range(30):
        way.append(model.parameters_of_garch().detach().flatten())
        optimizer.step(closure)
    return torch.stack(way)


def figure(way: Tensor, theirs: Tensor, dates, volatility: Tensor) -> go.Figure:
    drawn = make_subplots(rows=2, cols=1, vertical_spacing=0.16, subplot_titles=[
        "alpha and beta as they learn; dotted: arch", "volatility per year, per cent, as learned"
    ])  # fmt: skip
    for k, color in ((1, "#4c78a8"), (2, "#e45756")):
        drawn.add_scatter(y=way[:, k], name=NAMES[k], mode="lines+markers", line={"color": color}, row=1, col=1)
        drawn.add_hline(y=theirs[k].item(), line={"color": color, "dash": "dot"}, row=1, col=1)
    drawn.add_scatter(x=dates, y=volatility, name="volatility", line={"color": "#555", "width": 1}, row=2, col=1)
    return drawn.update_layout(
        template="plotly_white", showlegend=False, margin={"l": 40, "r": 10, "t": 30, "b": 30}
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), symbol: str = "WTI", out: Path | None = None):
    panel = data.read(source, [symbol])
    returns = 100 * ops.log_returns(panel.values.plain())  # per cent
    known = returns[returns.isfinite().squeeze(-1)]  # arch takes no missing return
    fit = arch_model(known.squeeze(-1).numpy(), mean="Zero", rescale=False).fit(disp="off")
    model = Garch(torch.tensor([fit.model.volatility.backcast(known.squeeze(-1).numpy())]))
    way, theirs = learn(model, known), torch.tensor(fit.params.to_numpy())
    variance = model(known).detach()
    mark = panel.provenance[0]
    print(f"{symbol}, {len(known)} returns to {panel.dates[-1]}")
    print(f"{mark.publisher}; {mark.location}\n")
    print(f"{'':14}{'learned':>12}{'arch':>12}")
    for name, ours, arch in zip(NAMES, way[-1], theirs):
        print(f"{name:14}{ours:12.5f}{arch:12.5f}")
    print(f"{'log-likelihood':14}{-negative_loglikelihood(known, variance):12.3f}{fit.loglikelihood:12.3f}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        dates = panel.dates[returns.isfinite().squeeze(-1).numpy()]
        drawn = figure(way, theirs, dates, (252 * variance).sqrt().squeeze(-1))
        drawn.write_html(out / "02_learnable_garch.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
