"""What open, high and low add to the forecast: variances from bars and closes against variances from closes alone.

python benchmarks/ranges.py FOLDER --page docs/results/ranges.md

FOLDER has `bars.csv.gz` (date,symbol,open,high,low,close,volume,ok), real bars of 25 front-month futures, and
`energy_curves.csv.gz` (date,product,nth,close), which are not redistributed.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch
from location import Case, rows
from markdown import environment, format_table, replace_table

from torchcommodity import data
from torchcommodity.data import horizon_name

SPANS = (2008, 2016), (2017, 2023), (2024, 2026)  # years of choice, test years, and the years after them
ENERGIES = {"WTI": "CL", "BRENT": "BRN", "NATGAS": "NG", "HEATOIL": "HO", "GASOLINE": "RB"}
OTHERS = {
    "GOLD": "GC", "COPPER": "HG", "CORN": "C", "WHEAT": "W", "KWHEAT": "KW", "OATS": "O", "SOYBEAN": "S",
    "SOYMEAL": "SM", "SOYOIL": "BO", "SUGAR": "SB", "COFFEE": "KC", "COCOA": "CC", "COTTON": "CT", "LIVECATTLE": "LC",
    "LEANHOG": "LH",
}  # fmt: skip
BAD = {"SILVER": "SI", "PLATINUM": "PL", "PALLADIUM": "PA", "RICE": "RR", "FEEDER": "FC"}  # no range on many days


def futures_with_bars(folder: Path, contracts: dict[str, str]) -> data.Panel:
    """Front months with their bars and roll calendars, and the curves of energies."""
    table = pd.read_csv(folder / "bars.csv.gz").drop(columns="ok")
    panel = data.to_panel(table[table["symbol"].isin(contracts)]).select(contracts).with_contracts(contracts)
    if not ENERGIES.keys() <= contracts.keys():
        return panel
    nearby = pd.read_csv(folder / "energy_curves.csv.gz")
    nearby["symbol"] = nearby.pop("product").map({code: symbol for symbol, code in ENERGIES.items()})
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "curve.parquet"
        nearby.to_parquet(path)
        return panel.with_curve(data.read_curve(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder with bars.csv.gz and energy_curves.csv.gz")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    options = parser.parse_args()
    cases = [
        Case("20 futures", futures_with_bars(options.folder, ENERGIES | OTHERS), SPANS),
        Case(
            "four oils",
            futures_with_bars(options.folder, ENERGIES).select([s for s in ENERGIES if s != "NATGAS"]),
            SPANS,
        ),
        Case("five with bad ranges", futures_with_bars(options.folder, BAD), SPANS[:2]),
    ]
    heads = ["prices", "origins", *(horizon_name(h, "daily") for h in (5, 21, 63, 126)), "inside 90 %"]
    table = format_table(heads, [row for case in cases for row in rows(case, "ranges")])
    text = f"{table}\n\n{environment(f'torch {torch.__version__}')}"
    print(text)
    if options.page:
        replace_table(options.page, "ranges", text)


if __name__ == "__main__":
    main()
