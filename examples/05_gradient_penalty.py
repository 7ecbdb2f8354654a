"""A scenario generator with gradient penalty

A generator turns noise into years of returns; a critic learns to distinguish them from real years, and the generator
learns to be indistinguishable (a Wasserstein GAN). The critic has to be Lipschitz, so Gulrajani et al. penalize
gradients whose norm differs from one. The penalty is itself a gradient, and training differentiates it again: **a
double backward**, here through a critic that computes volatilities and correlations with the operators of this library.

The generator starts from a stochastic-volatility model that is calibrated by moments. The effect of training is
measured in stylized facts (tails, volatility clustering, leverage, cross-correlation) against later real years. The
baseline is the stationary bootstrap, which resamples the past. After forty steps on three series the generator is
closer to real years than at its start, and the bootstrap is closer still.

Generated returns are marked as synthetic, and training and scoring reject them. The loop below shows the method;
`scenarios.fit_scenarios` trains longer and averages over its steps.
"""

from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from torch import Tensor

from torchcommodity import data, ops
from torchcommodity.data import Panel
from torchcommodity.models import ScenarioCritic, ScenarioGenerator
from torchcommodity.scenarios import (
    AdversarialConfig,
    ScenarioEvaluation,
    ScenarioFitConfig,
    evaluate_scenarios,
    fit_scenarios,
    gradient_penalty,
)

PLOTLY = {"displayModeBar": False, "responsive": True}
WINDOW, BATCH = 252, 24
COLORS = {"real": "#222", "scenario-gan": "#4c78a8", "untrained": "#e6a33e", "bootstrap": "#999"}


def train(generator: ScenarioGenerator, critic: ScenarioCritic, windows: Tensor, steps: int) -> None:
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
    for _step in range(steps):
        for _ in range(2):
            real = windows[torch.randint(len(windows), (BATCH,))]
            fake = generator(torch.randn(BATCH, WINDOW, generator.noise_channels)).detach()
            gap = critic(real).mean() - critic(fake).mean()
            penalty = gradient_penalty(critic, real, fake, critic.scale, torch.rand(BATCH, 1, 1))
            c_optimizer.zero_grad()
            (10 * penalty - gap).backward()  # differentiates the gradient in the penalty
            c_optimizer.step()
        g_optimizer.zero_grad()
        (-critic(generator(torch.randn(BATCH, WINDOW, generator.noise_channels))).mean()).backward()
        g_optimizer.step()


def real_windows(panel: Panel) -> Tensor:  # (W, T, N)
    """All windows of log-returns, over the rows on which every symbol has one."""
    returns = ops.log_returns(panel.values.plain())
    return returns[returns.isfinite().all(-1)].float().unfold(0, WINDOW, 1).mT


def plot(evaluation: ScenarioEvaluation) -> go.Figure:
    figure = go.Figure()
    for name, color in COLORS.items():
        figure.add_scatter(y=evaluation.abs_autocorrelation[name], name=name, line={"color": color})
    return figure.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "Volatility clustering: autocorrelation of |r| by lag", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), split: str = "2010-12-31", out: Path | None = None):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # steps are too small for more threads
    panel = data.read(source)
    if source == "embedded":
        panel = panel.between("1997-01-07")  # where Henry Hub begins
    moments_only = ScenarioFitConfig(train=AdversarialConfig(steps=0))
    model, windows = fit_scenarios(panel, moments_only, through=split), real_windows(panel.between(None, split))
    train(model.generator, ScenarioCritic(windows.std((0, 1))), windows, steps=40)
    evaluation = evaluate_scenarios(model, panel, moments_only, paths=200)
    for provenance in dict.fromkeys(panel.provenance):
        print(f"{provenance.series}: {provenance.publisher}; {provenance.location}")
    span = f"{evaluation.windows} real windows, {evaluation.first} to {evaluation.last}"
    print(f"\ndistance from {span}; lower is closer\n")
    print(evaluation.to_pandas().round(2).to_string())
    if out:
        out.mkdir(parents=True, exist_ok=True)
        plot(evaluation).write_html(out / "05_gradient_penalty.html", include_plotlyjs="directory", config=PLOTLY)


if __name__ == "__main__":
    typer.run(main)
