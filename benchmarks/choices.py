"""What was tried on the years of choice, 2010 to 2016, on the ten futures; the verdict years are not looked at.

python benchmarks/choices.py FOLDER                    # settings of the econometric part, against the HAR mix
python benchmarks/choices.py FOLDER --networks         # every network, against its own untrained baseline; hours
python benchmarks/choices.py FOLDER --out docs/skill.md
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from futures import futures
from markdown import into

from torchcommodity import data, forecast, models, training
from torchcommodity.forecast import BASELINES
from torchcommodity.models import MODELS, HarConfig, HarGarchConfig
from torchcommodity.training import HAR_GARCH

FIRST, LAST = 2010, 2016
HAR = HarConfig()
SETTINGS = {
    "as shipped: half of a past gap, half of the drift": (HAR, 0.5),
    "a past gap counts whole": (replace(HAR, gap_weight=1.0), 0.5),
    "past gaps are not expected again": (replace(HAR, gap_weight=0.0), 0.5),
    "the past drift is kept": (HAR, 0.0),
    "no drift at all": (HAR, 1.0),
    "returns capped at 15 %": (replace(HAR, cap=0.15), 0.5),
    "returns not capped": (replace(HAR, cap=10.0), 0.5),
    "half-lives 5, 21, 63": (replace(HAR, halflives=(5, 21, 63)), 0.5),
}


def settings_table(panel: data.Panel) -> Iterator[str]:
    """Skill against the HAR mix for each setting."""
    yield from head("setting")
    for name, (har, symmetry) in SETTINGS.items():
        config = training.FitConfig(HarGarchConfig(har), symmetry=symmetry)
        yield row(name, walked(panel, config, {"har": BASELINES["har"]}), HAR_GARCH, "har")
    for name in ("no curve, the calendar alone", "neither curve nor calendar"):
        part = replace(panel, curve=None, contracts=panel.contracts if name.startswith("no") else ())
        yield row(name, walked(part, training.FitConfig(), {"har": BASELINES["har"]}), HAR_GARCH, "har")


def networks_table(panel: data.Panel) -> Iterator[str]:
    """What each network adds to its own untrained baseline."""
    yield from head("network")
    for name in MODELS:
        if name != HAR_GARCH:
            yield row(
                f"`{name}`", walked(panel, training.FitConfig(models.model_config(name, {})), {}), name, HAR_GARCH
            )


def walked(panel: data.Panel, config: training.FitConfig, baselines: dict[str, object]) -> forecast.Backtest:
    past = panel.between(None, f"{LAST}-12-31")
    return forecast.backtest(past, config, first_year=FIRST, baselines=baselines).between(FIRST, LAST)  # type: ignore[arg-type]


def head(what: str) -> Iterator[str]:
    yield f"| {what} | 1 week | 1 month | 3 months | 6 months |"
    yield "|---|---:|---:|---:|---:|"


def row(name: str, found: forecast.Backtest, model: str, reference: str) -> str:
    scores = forecast.score(found, reference=reference, model=reference).rows
    cells = [f"{s.skill:+.2f}" + ("" if s.dm_p != s.dm_p else f" (p {s.dm_p:.2f})") for s in scores if s.model == model]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with daily.csv.gz and term_structure.csv.gz, see futures.py")
    parser.add_argument("--networks", action="store_true")
    parser.add_argument("--out", type=Path, help="a Markdown file with the two markers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    panel = futures(options.folder)
    table = networks_table(panel) if options.networks else settings_table(panel)
    lines = []
    for line in table:
        print(line, flush=True)
        lines.append(line)
    if options.out:
        into(options.out, "networks" if options.networks else "choices", "\n".join(lines))


if __name__ == "__main__":
    main()
