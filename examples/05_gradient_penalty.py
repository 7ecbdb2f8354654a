"""A generator of scenarios, with gradient penalty

A generator makes years of returns out of noise; a critic learns to tell them from real years, and the generator to
give it nothing to tell (a Wasserstein GAN). The critic may only be trusted while it is not too steep, so Gulrajani and
others fine every slope that differs from one. That fine is a gradient, and training differentiates it once more: **a
double backward**, here through a critic that reads volatilities and correlations with the operators of this library.

The generator starts from a stochastic-volatility model that is set by moments. What training adds is measured in
stylized facts (tails, volatility clustering, leverage, cross-correlation) against real years that neither has seen.
Beside it stands the rival that is hard to beat: the stationary bootstrap, which cuts its years out of the past. After
forty steps on three series the generator is nearer to real years than its start, and the bootstrap is nearer still.

What is generated carries a mark, and training and scoring refuse it. The loop below shows how it works;
`forecast.fit_scenarios` trains longer and averages over its steps.
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

PLAIN = {"displayModeBar": False, "responsive": True}
WINDOW, BATCH = 252, 24


def train(generator: ScenarioGenerator, critic: ScenarioCritic, windows: Tensor, steps: int) -> None:
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
    for _step in range(steps):
        for _ in range(2):
            real = windows[torch.randint(len(windows), (BATCH,))]
            fake = generator(torch.randn(BATCH, WINDOW, generator.noise)).detach()
            gap = critic(real).mean() - critic(fake).mean()
            penalty = gradient_penalty(critic, real, fake, critic.scale, torch.rand(BATCH, 1, 1))
            c_optimizer.zero_grad()
            (10 * penalty - gap).backward()  # the penalty is a gradient: here it is differentiated again
            c_optimizer.step()
        g_optimizer.zero_grad()
        (-critic(generator(torch.randn(BATCH, WINDOW, generator.noise))).mean()).backward()
        g_optimizer.step()


def real_windows(panel: Panel) -> Tensor:  # (W, T, N)
    """Every window of log-returns, of the rows on which all symbols have one."""
    returns = ops.log_returns(panel.values.plain())
    return returns[returns.isfinite().all(-1)].float().unfold(0, WINDOW, 1).mT


def figure(judged: ScenarioEvaluation) -> go.Figure:
    drawn, colors = (
        go.Figure(),
        {"real": "#222", "scenario-gan": "#4c78a8", "untrained": "#e6a33e", "bootstrap": "#999"},
    )
    for name, color in colors.items():
        drawn.add_scatter(y=judged.memory[name], name=name, line={"color": color})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "how long volatility remembers: autocorrelation of |r| by lag", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), split: str = "2010-12-31", out: Path | None = None):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a step is so small that threads would wait for each other
    panel = data.read(source)
    if source == "embedded":
        panel = panel.select(["WTI", "SP500", "NASDAQ"]).between("1999-01-04")
    moments = ScenarioFitConfig(train=AdversarialConfig(steps=0))
    maker, windows = fit_scenarios(panel, moments, through=split), real_windows(panel.between(None, split))
    train(maker.generator, ScenarioCritic(windows.std((0, 1))), windows, steps=40)
    judged = evaluate_scenarios(maker, panel, moments, paths=200)
    for mark in dict.fromkeys(panel.provenance):
        print(f"{mark.series}: {mark.publisher}; {mark.location}")
    print(f"\ndistance from {judged.windows} real windows, {judged.first} to {judged.last}; lower is nearer\n")
    print(judged.frame().round(2).to_string())
    if out:
        out.mkdir(parents=True, exist_ok=True)
        drawn = figure(judged)
        drawn.write_html(out / "05_gradient_penalty.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
