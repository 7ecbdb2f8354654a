"""Ablation of what is particular to monthly prices, on the targets that end before 2010.

python benchmarks/monthly_choices.py --page docs/results/monthly.md --name choice
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from unittest.mock import patch

import torch
from markdown import environment, replace_table

from torchcommodity import data
from torchcommodity.forecast import backtest, diebold_mariano
from torchcommodity.losses import pinball
from torchcommodity.training import FitConfig, usable_symbols

FIRST, LAST = 1990, 2009
THEORY = "torchcommodity.training._calibration.RHO_PRIOR"
DAILY = {"mix_prior": 63.0, "shape_prior": 20.0}


class Variant(NamedTuple):
    """One row: whether averaging is expected, the returns that its theory counts for, and settings of the model."""

    name: str
    averages: bool = True
    theory: float = 240.0
    settings: Mapping[str, float] = MappingProxyType({})


VARIANTS = (
    Variant("no averaging, daily priors", averages=False, settings=DAILY),
    Variant("theory only, theta = 0.268", theory=1e12, settings=DAILY),
    Variant("autocorrelation shrunk to 0.25, prior 60", theory=60, settings=DAILY),
    Variant("prior 120", theory=120, settings=DAILY),
    Variant("prior 240", settings=DAILY),
    Variant("prior 480", theory=480, settings=DAILY),
    Variant("prior 240, coefficients half-way to equal at 3 months", settings={**DAILY, "mix_prior": 3.0}),
    Variant("the same, shared shape counts for 80", settings={"shape_prior": 80.0}),
    Variant("the same, 200 (chosen)"),
    Variant("the same, shared shape only", settings={"shape_prior": float("inf")}),
    Variant("no averaging, priors as chosen", averages=False),
)


def losses(variant: Variant, panel: data.Panel) -> torch.Tensor:  # (T, H, N)
    """Pinball loss of every target; NaN without one."""
    config = FitConfig.for_frequency("monthly")
    model = config.model
    config = replace(config, model=replace(model, har=replace(model.har, location=False, **variant.settings)))
    with patch(THEORY, variant.theory):
        panel = panel if variant.averages else panel.with_averages([])
        result = backtest(panel, config, first_year=FIRST, baselines={}).between(FIRST, LAST)
    levels = torch.tensor(result.levels, dtype=torch.double)
    loss = pinball(result.quantiles[result.model], result.targets, levels, reduction="none").mean(-1)
    return torch.where(result.targets.isfinite(), loss, torch.nan)


def row(name: str, loss: torch.Tensor, reference: torch.Tensor) -> str:
    """Saving in percent at every horizon, with the p-value of its Diebold-Mariano test."""
    cells = []
    for i, horizon in enumerate(FitConfig.for_frequency("monthly").model.har.horizons):
        saved = 100 * (1 - loss[:, i].nanmean() / reference[:, i].nanmean()).item()
        _, p = diebold_mariano((loss - reference)[:, i].nanmean(1).numpy(), horizon)
        cells.append("0" if loss is reference else f"{saved:+.2f} (p {p:.2f})")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    parser.add_argument("--name", default="choice", help="Name of the table in the page")
    options = parser.parse_args()
    panel = data.embedded(data.embedded_symbols("monthly"), frequency="monthly").between(None, f"{LAST}-12-31")
    panel = panel.select(usable_symbols(panel.between(None, f"{FIRST - 1}-12-31")))
    results = {variant.name: losses(variant, panel) for variant in VARIANTS}
    reference = results[VARIANTS[0].name]
    heads = ["| variant | 1 month | 3 months | 6 months | 12 months |", "|---|---:|---:|---:|---:|"]
    text = "\n".join([*heads, *(row(name, loss, reference) for name, loss in results.items())])
    print(text)
    if options.page:
        replace_table(options.page, options.name, f"{text}\n\n{environment(f'{len(panel.symbols)} prices')}")


if __name__ == "__main__":
    main()
