"""The table of `torchcommodity optimize` as Markdown.

torchcommodity optimize --symbols WTI,SP500,NASDAQ --out out
python benchmarks/optimize.py out/optimize.csv                          # to the screen
python benchmarks/optimize.py out/optimize.csv --out docs/optimize.md   # between <!-- table --> and <!-- /table -->
"""

import argparse
from pathlib import Path

import pandas as pd
from markdown import into


def markdown(table: pd.DataFrame, horizons: list[str]) -> str:
    heads = [
        "variant",
        "bytes",
        "p50 ms",
        "p99 ms",
        "batch p50",
        "batch p99",
        "forecasts/s",
        "peak MiB",
        "speedup",
        *horizons,
    ]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for row in table.itertuples():
        cells = [
            row.variant,
            f"{row.bytes:,}",
            *(f"{x:.1f}" for x in (row.p50, row.p99)),
            *(f"{x:,.0f}" for x in (row.batch_p50, row.batch_p99)),
            f"{row.throughput:,.0f}",
            f"{row.peak_bytes / 2**20:.0f}",
            "" if row.variant == "original" else row.speedup.removesuffix(" faster"),
            *map(cell, numbers(row.crps), numbers(row.dm), numbers(row.dm_p)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"{row.variant}: {row.note}." for row in table.dropna(subset="note").itertuples()]
    return "\n".join([*lines, "", *notes])


def cell(crps: float, dm: float, p: float) -> str:
    """CRPS in 1e-4; against the original, the sign and p-value of the difference."""
    return f"{1e4 * crps:.2f}" + ("" if p != p else f" ({'+' if dm > 0 else '-'}, p {p:.2f})")


def numbers(text: str) -> list[float]:
    """A tuple as the file has it: NaN where both forecasts are the same."""
    return [float(part) for part in text.strip("()").split(",") if part.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--horizons", default="5,21,63,126")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--mark", default="table", help="of the place in that page")
    options = parser.parse_args()
    text = markdown(pd.read_csv(options.table), [f"CRPS {h}" for h in options.horizons.split(",")])
    if options.out:
        into(options.out, options.mark, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
