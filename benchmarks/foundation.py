"""Skill of a small foundation model whose weights ship with its package, on the embedded daily prices.

pip install fracast                                            # Fracast-0: 85,001 parameters, Apache 2.0
python benchmarks/foundation.py --page docs/how-to/foundation-models.md
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fracast import FracastModel
from markdown import environment, replace_table
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from torchcommodity.data import embedded
from torchcommodity.forecast import Backtest, backtest, baselines, pretrained, score
from torchcommodity.training import WITHOUT_COVARIATES

FIRST_DAY, FIRST_YEAR, STEP = "2010-01-01", 2020, 21
ROWS = {"har-garch": "har-garch with fracast", WITHOUT_COVARIATES: "har-garch", "garch": "garch", "fracast": "fracast"}


def fracast(contexts: list[Tensor], horizon: int, levels: Any) -> np.ndarray[Any, Any]:
    """Deciles of Fracast-0; beyond 48 steps it continues from its own medians."""
    rows = pad_sequence(contexts, batch_first=True, padding_value=torch.nan, padding_side="left")
    deciles: np.ndarray[Any, Any] = MODEL.forecast_batch(rows.numpy(), horizon=horizon)
    return deciles


def table(result: Backtest) -> Iterator[str]:
    """Skill against har-garch (p-value of the difference) and coverage of the interval 0.05 to 0.95, by horizon."""
    scores = score(result, reference=WITHOUT_COVARIATES, model=WITHOUT_COVARIATES).rows
    heads = [f"{head} {horizon}" for head in ("skill", "coverage") for horizon in result.horizons]
    yield f"| model | {' | '.join(heads)} |"
    yield f"|---{'|---:' * len(heads)}|"
    for model, name in ROWS.items():
        rows = [row for row in scores if row.model == model]
        skill = [f"{row.skill:.2f}" + ("" if math.isnan(row.dm_p) else f" ({row.dm_p:.2f})") for row in rows]
        cells = skill + [f"{row.coverage90:.0%}".replace("%", " %") for row in rows]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Run the backtest and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="page with a table between <!-- fracast --> marks")
    page = parser.parse_args().page
    panel = embedded().between(FIRST_DAY)
    settings = {"step": STEP, "levels": MODEL.quantiles, "batch_size": 8, "log_prices": True}
    model = pretrained(fracast, name="fracast", progress=print, **settings)
    result = backtest(panel, first_year=FIRST_YEAR, covariates=model, baselines=baselines() | {"fracast": model})
    origins = int(result.quantiles["fracast"].isfinite().flatten(1).any(1).sum())
    setting = f"{', '.join(panel.symbols)}, {origins} origins from {FIRST_YEAR} to {panel.dates[-1]}, horizons in rows"
    text = "\n".join([*table(result), "", environment(setting)])
    print(text)
    if page:
        replace_table(page, "fracast", text)


MODEL: Any = FracastModel.from_pretrained(weights="fp32")

if __name__ == "__main__":
    main()
