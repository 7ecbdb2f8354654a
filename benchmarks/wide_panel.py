"""200 symbols times 40 years, read, checked, fitted and forecast; the table `wide` of docs/results/reading.md.

python benchmarks/wide_panel.py --page docs/results/reading.md

The panel holds the embedded real prices, repeated under new names: for timing only.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from markdown import environment, replace_table
from timing import peak_memory

from torchcommodity import data, forecast
from torchcommodity.data import Panel, to_panel
from torchcommodity.report import ReportData, RunRecord, package_versions, to_html

ROWS = 10_000
SERIES = (
    "WTI", "BRENT", "GASOLINE_NYH", "GASOLINE_USGC", "RBOB_LA", "HEATING_OIL_NYH", "ULSD_NYH", "ULSD_USGC",
    "CARB_DIESEL_LA", "JET_FUEL_USGC", "PROPANE_MB", "HENRY_HUB",
)  # fmt: skip


def wide_panel(symbols: int, rows: int = ROWS) -> Panel:
    """The last rows of the embedded daily prices; copies are named `WTI_2`, `WTI_3` ..."""
    panel = data.embedded(SERIES)
    panel = panel.between(panel.dates[-rows], None)
    columns = np.arange(symbols) % len(SERIES)
    copies = np.arange(symbols) // len(SERIES) + 1
    frame = panel.to_pandas().iloc[:, columns]
    frame.columns = [SERIES[n] if k == 1 else f"{SERIES[n]}_{k}" for n, k in zip(columns, copies)]
    return to_panel(frame)


class Steps:
    """Times of consecutive steps of one process, and its peak memory after each."""

    def __init__(self) -> None:
        self.lines = ["| step | s | processor, s | peak, MB |", "|---|---:|---:|---:|"]

    def run(self, name: str, step: Callable[[], Any]) -> Any:
        start, processor = time.perf_counter(), time.process_time()
        result = step()
        times = time.perf_counter() - start, time.process_time() - processor
        self.lines.append(f"| {name} | {times[0]:.1f} | {times[1]:.1f} | {peak_memory():,.0f} |")
        print(self.lines[-1], file=sys.stderr, flush=True)
        return result


def measure(symbols: int, folder: Path) -> list[str]:
    """Read the panel from CSV and Parquet, check it, fit the default model, forecast, and write the page."""
    frame, steps = wide_panel(symbols).to_pandas().reset_index(), Steps()
    frame.to_csv(folder / "wide.csv", index=False)
    frame.to_parquet(folder / "wide.parquet")
    steps.run("before", lambda: None)
    steps.run("read CSV", lambda: data.read(folder / "wide.csv"))
    panel = steps.run("read Parquet", lambda: data.read(folder / "wide.parquet"))
    steps.run("check (a part of reading)", lambda: data.inspect(panel))
    forecaster = steps.run("fit", lambda: forecast.fit(panel))
    prediction = steps.run("forecast", lambda: forecaster.predict(panel))
    steps.run("table of the forecast", prediction.to_pandas)
    run = RunRecord(data.utc_now(), "", "wide.parquet", "", 0, package_versions(), panel.credits())
    report = ReportData(panel, prediction, forecaster.record, run, None, "not run")
    page = steps.run("report", lambda: to_html(report))
    return [*steps.lines, "", f"The report is a page of {len(page) / 1e6:.1f} MB."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbols", type=int, default=200)
    parser.add_argument("--page", type=Path, help="Markdown page whose table `wide` is replaced")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        lines = measure(options.symbols, Path(folder))
    text = "\n".join([*lines, "", environment(f"{options.symbols} symbols, {ROWS:,} rows")])
    replace_table(options.page, "wide", text) if options.page else print(text)


if __name__ == "__main__":
    main()
