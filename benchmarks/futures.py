"""The ten futures of the skill study, from a folder with `daily.csv.gz` and `term_structure.csv.gz`.

Real front-month closes (date,symbol,close) and curves (date,symbol,nth,close,source), which are not redistributed.
"""

from pathlib import Path

import pandas as pd
import torch

from torchcommodity.data import Panel, to_panel

CONTRACTS = {
    "WTI": "CL",
    "BRENT": "BRN",
    "NATGAS": "NG",
    "HEATOIL": "HO",
    "GASOLINE": "RB",
    "CORN": "C",
    "WHEAT": "W",
    "SOYBEAN": "S",
    "SOYMEAL": "SM",
    "SOYOIL": "BO",
}


def futures(folder: Path, *, calendar: bool = True, curve: bool = True) -> Panel:
    """The ten futures, with or without their roll calendar and their curves."""
    closes = pd.read_csv(folder / "daily.csv.gz", parse_dates=["date"])
    symbols = list(CONTRACTS)
    wide = closes[closes.symbol.isin(symbols)].pivot(index="date", columns="symbol", values="close")[symbols]
    panel = to_panel(wide)
    if calendar:
        panel = panel.with_contracts(CONTRACTS)
    return panel.with_curve(_curve(folder, wide)) if calendar and curve else panel


def _curve(folder: Path, wide: pd.DataFrame) -> torch.Tensor:  # (T, N, C)
    rows = pd.read_csv(folder / "term_structure.csv.gz", parse_dates=["date"])
    # heating oil has two sources, in cents to 2010 and in dollars from 2007 on; its front-month price is in dollars
    rows = rows[(rows.symbol != "HEATOIL") | (rows.source == "rtl")]
    table = rows.pivot(index="date", columns=["symbol", "nth"], values="close").reindex(wide.index)
    nearby = range(1, int(rows.nth.max()) + 1)
    columns = pd.MultiIndex.from_product([wide.columns, nearby], names=["symbol", "nth"])
    prices = torch.tensor(table.reindex(columns=columns).to_numpy())
    return prices.unflatten(1, (len(wide.columns), len(nearby)))
