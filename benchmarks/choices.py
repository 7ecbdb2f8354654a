"""Skill of the model settings and networks that were compared on 2010 to 2016, on ten futures.

The test years of the published table come later and are not used here.

python benchmarks/choices.py FOLDER                    # settings of the econometric part, against the baseline har
python benchmarks/choices.py FOLDER --networks         # every network, against its own untrained baseline
python benchmarks/choices.py FOLDER --page docs/results/choices.md
python benchmarks/choices.py FOLDER --ablation --page docs/results/skill.md   # parts of the default, on 2017 to 2023
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from futures import futures
from markdown import environment, replace_table

from torchcommodity.data import Panel
from torchcommodity.forecast import Score, backtest, baselines, score
from torchcommodity.models import MODELS, HarConfig, HarGarchConfig, model_config
from torchcommodity.training import HAR_GARCH, Baseline, FitConfig

CHOICE_YEARS, TEST_YEARS = (2010, 2016), (2017, 2023)
HAR = HarConfig(location=False)  # the model of the published rows
NONE = {"shape_prior": math.inf, "mix_prior": math.inf, "gap_variance_prior": math.inf, "gap_prior": math.inf}
PARTS = {  # settings and symmetry
    "default": (HAR, 0.5),
    "pooled shape of the quantiles": (replace(HAR, shape_prior=math.inf), 0.5),
    "past gaps whatever the evidence": (replace(HAR, gap_prior=1e-9), 0.5),
    "no past gap": (replace(HAR, gap_prior=math.inf), 0.5),
    "variance of a gap: twice that of a return": (replace(HAR, gap_variance_prior=math.inf), 0.5),
    "coefficients not shrunk toward equal ones": (replace(HAR, mix_prior=math.inf), 0.5),
    "none of the four": (replace(HAR, **NONE), 0.5),
}
SETTINGS = PARTS | {
    "full past drift": (HAR, 0.0),
    "no drift": (HAR, 1.0),
    "returns capped at 15 %": (replace(HAR, cap=0.15), 0.5),
    "returns not capped": (replace(HAR, cap=10.0), 0.5),
    "half-lives 5, 21, 63": (replace(HAR, halflives=(5, 21, 63)), 0.5),
}


def settings_table(panel: Panel) -> Iterator[str]:
    """Skill against the baseline har, for each setting and for panels without curve or calendar."""
    yield from table_head("setting")
    for name, (har, symmetry) in SETTINGS.items():
        yield table_row(name, scores(panel, FitConfig(HarGarchConfig(har), symmetry=symmetry), "har"))
    without_curve = replace(panel, curve=None)
    yield table_row("calendar without curve", scores(without_curve, FitConfig(HarGarchConfig(HAR)), "har"))
    yield table_row(
        "neither calendar nor curve",
        scores(replace(without_curve, contracts=()), FitConfig(HarGarchConfig(HAR)), "har"),
    )


def ablation_table(panel: Panel) -> Iterator[str]:
    """Skill against the baseline har on the test years, with curve and with the calendar only."""
    for title, prices in {"curve and calendar": panel, "calendar only": replace(panel, curve=None)}.items():
        yield from table_head(title)
        for name, (har, symmetry) in PARTS.items():
            yield table_row(name, scores(prices, FitConfig(HarGarchConfig(har), symmetry=symmetry), "har", TEST_YEARS))
        yield ""


def networks_table(panel: Panel) -> Iterator[str]:
    """Skill of each network against its own untrained baseline."""
    yield from table_head("network")
    for name in MODELS:
        if name != HAR_GARCH:
            yield table_row(
                f"`{name}`", scores(panel, FitConfig(model_config(name, {"har": {"location": False}})), HAR_GARCH)
            )


def scores(panel: Panel, config: FitConfig, reference: str, years: tuple[int, int] = CHOICE_YEARS) -> list[Score]:
    """Scores of the model per horizon, with skill and test against `reference`."""
    compared: dict[str, Baseline] = {"har": baselines()["har"]} if reference == "har" else {}
    past = panel.between(None, f"{years[1]}-12-31")
    result = backtest(past, config, first_year=years[0], baselines=compared).between(*years)
    return [row for row in score(result, reference=reference, model=reference).rows if row.model == result.model]


def table_head(title: str) -> Iterator[str]:
    yield f"| {title} | 1 week | 1 month | 3 months | 6 months |"
    yield "|---|---:|---:|---:|---:|"


def table_row(name: str, rows: list[Score]) -> str:
    cells = [f"{row.skill:+.2f}" + ("" if math.isnan(row.dm_p) else f" (p {row.dm_p:.2f})") for row in rows]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder with the ten futures, see futures.py")
    table = parser.add_mutually_exclusive_group()
    table.add_argument("--networks", action="store_true", help="Compare networks instead of settings")
    table.add_argument("--ablation", action="store_true", help="Leave out the parts of the default, on the test years")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    name = "networks" if arguments.networks else "ablation" if arguments.ablation else "choices"
    tables = {"networks": networks_table, "ablation": ablation_table, "choices": settings_table}
    lines = []
    for line in tables[name](futures(arguments.folder)):
        print(line, flush=True)
        lines.append(line)
    if arguments.page:
        text = "\n".join(lines).strip()
        replace_table(arguments.page, name, f"{text}\n\n{environment(f'torch {torch.__version__}')}")


if __name__ == "__main__":
    main()
