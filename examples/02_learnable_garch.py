"""Learnable GARCH

GARCH(1,1) models tomorrow's variance as h = omega + alpha r² + beta h. Statistics packages estimate the three
parameters with a dedicated optimizer. Here they are parameters of a `torch.nn.Module`: one call of `backward`
differentiates the likelihood through the whole recurrence, eight thousand days, and any torch optimizer can be used. So
GARCH can be a layer of a larger model and be trained with it.

To check the gradient, we fit GARCH alone and compare with `arch`, which maximizes the same likelihood.
"""

from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from arch import arch_model
from plotly.subplots import make_subplots
from torch import Tensor, nn

from torchcommodity import data, ops

PLOTLY = {"displayModeBar": False, "responsive": True}
NAMES = ("omega", "alpha", "beta")


class Garch(nn.Module):
    """Variance of percent returns (T, 1); positive and stationary for any value of the parameters."""

    def __init__(self, backcast: Tensor) -> None:  # variance before the first return, percent squared
        super().__init__()
        self.register_buffer("backcast", backcast)
        self.unconstrained = nn.Parameter(torch.tensor([[-2.0], [2.0], [-1.0]], dtype=torch.double))  # (3, N = 1)

    def coefficients(self) -> Tensor:  # (3, 1): omega, alpha, beta
        log_omega, persistence, reaction = self.unconstrained
        omega, persistence, reaction = log_omega.exp(), persistence.sigmoid(), reaction.sigmoid()
        return torch.stack([omega, persistence * reaction, persistence * (1 - reaction)])

    def forward(self, returns: Tensor) -> Tensor:  # (T, 1) -> (T, 1)
        omega, alpha, beta = self.coefficients()
        return ops.garch_variance(returns, omega, alpha, beta, initial=omega + (alpha + beta) * self.backcast)


def negative_loglikelihood(returns: Tensor, variance: Tensor) -> Tensor:
    return 0.5 * (torch.log(2 * torch.pi * variance) + returns**2 / variance).nansum()


def train(model: Garch, returns: Tensor) -> Tensor:  # (steps, 3): coefficients at every step
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=1, line_search_fn="strong_wolfe")
    history = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = negative_loglikelihood(returns, model(returns)) / len(returns)
        loss.backward()
        return loss

    for _ in range(30):
        history.append(model.coefficients().detach().flatten())
        optimizer.step(closure)
    return torch.stack(history)


def plot(history: Tensor, reference: Tensor, dates, volatility: Tensor) -> go.Figure:
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.16, subplot_titles=[
        "alpha and beta by training step; dotted: arch", "Annualized volatility in percent"
    ])  # fmt: skip
    for k, color in ((1, "#4c78a8"), (2, "#e45756")):
        figure.add_scatter(y=history[:, k], name=NAMES[k], mode="lines+markers", line={"color": color}, row=1, col=1)
        figure.add_hline(y=reference[k].item(), line={"color": color, "dash": "dot"}, row=1, col=1)
    figure.add_scatter(x=dates, y=volatility, name="volatility", line={"color": "#555", "width": 1}, row=2, col=1)
    return figure.update_layout(
        template="plotly_white", showlegend=False, margin={"l": 40, "r": 10, "t": 30, "b": 30}
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), symbol: str = "WTI", out: Path | None = None):
    panel = data.read(source, [symbol])
    returns = 100 * ops.log_returns(panel.values.plain())  # percent
    valid = returns.isfinite().squeeze(-1)
    complete = returns[valid]  # arch takes no missing returns
    fit = arch_model(complete.squeeze(-1).numpy(), mean="Zero", rescale=False).fit(disp="off")
    model = Garch(torch.tensor([fit.model.volatility.backcast(complete.squeeze(-1).numpy())]))
    history, reference = train(model, complete), torch.tensor(fit.params.to_numpy())
    variance = model(complete).detach()
    provenance = panel.provenance[0]
    print(f"{symbol}, {len(complete)} returns to {panel.dates[-1]}")
    print(f"{provenance.publisher}; {provenance.location}\n")
    print(f"{'':14}{'learned':>12}{'arch':>12}")
    for name, learned, expected in zip(NAMES, history[-1], reference):
        print(f"{name:14}{learned:12.5f}{expected:12.5f}")
    print(f"{'log-likelihood':14}{-negative_loglikelihood(complete, variance):12.3f}{fit.loglikelihood:12.3f}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure = plot(history, reference, panel.dates[valid.numpy()], (252 * variance).sqrt().squeeze(-1))
        figure.write_html(out / "02_learnable_garch.html", include_plotlyjs="directory", config=PLOTLY)


if __name__ == "__main__":
    typer.run(main)
