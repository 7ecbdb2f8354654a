"""Reading price files: `data.read` beside pandas and polars; the tables of docs/results/reading.md.

python benchmarks/reading.py --page docs/results/reading.md
python benchmarks/reading.py --symbols 20 --runs 3 --only long.csv

`data.read` also checks every cell, row and symbol, and records findings and provenance; pandas and polars parse the
dates and pivot long tables, and check nothing.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import polars as pl
from markdown import environment, replace_table
from timing import median_times, peak_memory
from wide_panel import ROWS, wide_panel

from torchcommodity import data

Read = Callable[[Path], object]


def read_pandas(path: Path) -> pd.DataFrame:
    """A table of dates and symbols, by pandas."""
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    frame["date"] = pd.to_datetime(frame["date"])
    return frame.pivot(index="date", columns="symbol", values="price") if "symbol" in frame else frame.set_index("date")


def read_polars(path: Path) -> pl.DataFrame:
    """The same, by polars."""
    frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, try_parse_dates=True)
    return frame.pivot(on="symbol", index="date", values="price").sort("date") if "symbol" in frame.columns else frame


READERS: dict[str, Read] = {"data.read": data.read, "pandas": read_pandas, "polars": read_polars}


def write_files(folder: Path, symbols: int, rows: int) -> list[Path]:
    """The panel as wide and long CSV, gzipped CSV and Parquet files."""
    panel = wide_panel(symbols, rows)
    frames = {"wide": panel.to_pandas().reset_index(), "long": panel.to_pandas("long")[["date", "symbol", "price"]]}
    paths = []
    for layout, frame in frames.items():
        for ending in ("csv", "csv.gz", "parquet"):
            path = folder / f"{layout}.{ending}"
            frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
            paths.append(path)
    return paths


def measure_memory(reader: str, path: Path) -> float:
    """Peak memory in MB that reading takes in a fresh process, beyond that of a tiny file."""
    command = [sys.executable, __file__, "--memory", reader, str(path)]
    return float(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


def memory(reader: str, path: Path) -> float:
    """Of this process: read a few rows, so that everything is imported, then the file."""
    with TemporaryDirectory() as folder:
        for small in write_files(Path(folder), 2, 300):
            if small.name == path.name:
                READERS[reader](small)
    before = peak_memory()
    READERS[reader](path)
    return peak_memory() - before


def table(paths: list[Path], runs: int) -> str:
    """Medians of interleaved runs, and peak memory."""
    lines = ["| file | MB | " + " | ".join(f"{name}, s" for name in READERS) + " | times pandas | "]
    lines[0] += " | ".join(f"{name}, peak MB" for name in READERS) + " |"
    lines.append("|---" + "|---:" * (2 + 2 * len(READERS)) + "|")
    for path in paths:
        times = median_times({name: lambda read=read, path=path: read(path) for name, read in READERS.items()}, runs)
        peaks = [measure_memory(name, path) for name in READERS]
        cells = [path.name, f"{path.stat().st_size / 1e6:,.0f}", *(f"{ms / 1e3:.2f}" for ms in times.values())]
        cells += [f"{times['data.read'] / times['pandas']:.1f}", *(f"{peak:,.0f}" for peak in peaks)]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbols", type=int, default=200)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="Names of files")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `reading` is replaced")
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(memory(options.memory[0], Path(options.memory[1]))))
        return
    with TemporaryDirectory() as folder:
        paths = write_files(Path(folder), options.symbols, options.rows)
        text = table([path for path in paths if not options.only or path.name in options.only], options.runs)
    text += f"\n\n{environment(f'{options.symbols} symbols, {options.rows:,} rows, medians of {options.runs} runs')}"
    replace_table(options.page, "reading", text) if options.page else print(text)


if __name__ == "__main__":
    main()
