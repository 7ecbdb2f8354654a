"""Markdown table of `torchcommodity optimize`.

torchcommodity optimize --out out
python benchmarks/optimize.py out/optimize.csv                                   # to standard output
python benchmarks/optimize.py out/optimize.csv --page docs/results/optimize.md --name table
"""

import argparse
import math
from pathlib import Path

import pandas as pd
from markdown import environment, format_table, replace_table

HEADS = (
    "variant",
    "bytes",
    "p50 ms",
    "p99 ms",
    "batch p50",
    "batch p99",
    "forecasts/s",
    "peak MiB",
    "speedup",
)


def markdown(table: pd.DataFrame, horizons: list[str]) -> str:
    """Table of size, speed and CRPS per horizon, followed by the notes."""
    heads = [*HEADS, *(f"CRPS {horizon}" for horizon in horizons)]
    rows = [
        [
            row.variant,
            f"{row.bytes:,}",
            *(f"{x:.1f}" for x in (row.p50, row.p99)),
            *(f"{x:,.0f}" for x in (row.batch_p50, row.batch_p99)),
            f"{row.throughput:,.0f}",
            f"{row.peak_bytes / 2**20:.0f}",
            "" if row.variant == "original" else row.speedup.removesuffix(" faster"),
            *map(crps_cell, parse_tuple(row.crps), parse_tuple(row.dm), parse_tuple(row.dm_p)),
        ]
        for row in table.itertuples()
    ]
    notes = [f"{row.variant}: {row.note}." for row in table.dropna(subset="note").itertuples()]
    return "\n".join([format_table(heads, rows), "", *notes])


def crps_cell(crps: float, dm: float, p: float) -> str:
    """CRPS in 1e-4, with sign and p-value of the difference from the original."""
    return f"{1e4 * crps:.2f}" + ("" if math.isnan(p) else f" ({'+' if dm > 0 else '-'}, p {p:.2f})")


def parse_tuple(text: str) -> list[float]:
    """A tuple of numbers in a cell of the CSV file; NaN where two forecasts are the same."""
    return [float(part) for part in text.strip("()").split(",") if part.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="optimize.csv of the command")
    parser.add_argument("--horizons", default="5,21,63,126", help="Horizons of the table, in rows")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    parser.add_argument("--name", default="table", help="Name of the table in the page")
    arguments = parser.parse_args()
    table = markdown(pd.read_csv(arguments.table), arguments.horizons.split(","))
    text = f"{table}\n\n{environment('One thread')}"
    if arguments.page:
        replace_table(arguments.page, arguments.name, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
