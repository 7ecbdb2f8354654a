"""Memory and speed of `torchcommodity batch` by the number of panels; the table of docs/results/batch.md.

python benchmarks/batch.py --page docs/results/batch.md  # 1,000, 10,000 and 100,000 panels of 512 rows of WTI
python benchmarks/batch.py --panels 1000 100000 --model har-lstm --format onnx
python benchmarks/batch.py --kill 20                # also kill -9 a run at 20 random times, and compare
"""

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from markdown import environment, replace_table
from timing import peak_memory

from torchcommodity import batch, data, export, forecast
from torchcommodity.models import MODELS
from torchcommodity.training import FitConfig, TrainConfig

ROW_GROUP = 500  # panels
HEAD = (
    "| panels | Parquet, MB | s | processor, s | panels/s | MB before | peak, MB |",
    "|---:|---:|---:|---:|---:|---:|---:|",
)


def write_panels(path: Path, panels: int, rows: int) -> Path:
    """Windows of the embedded oil prices, each a day later than the one before it; the rows in random order."""
    wti = data.embedded(["WTI"])
    priced = wti.values.plain().isfinite()[:, 0].numpy()
    prices, dates = wti.values.plain().numpy()[priced, 0], wti.dates[priced]
    generator = np.random.default_rng(0)
    schema = pa.schema([("panel", pa.int64()), ("date", pa.date32()), ("symbol", pa.string()), ("price", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in reversed(range(0, panels, ROW_GROUP)):
            names = np.arange(first, min(first + ROW_GROUP, panels))
            window = (names % (len(dates) - rows))[:, None] + np.arange(rows)
            order = generator.permutation(window.size)
            panel, row = np.repeat(names, rows)[order], window.ravel()[order]
            symbol = pa.array(["WTI"]).take(pa.array(np.zeros(len(order), dtype=np.int8)))
            writer.write_table(pa.table([panel, dates[row], symbol, prices[row]], schema=schema))
    return path


def measure(artifact: Path, table: Path, out: Path) -> None:
    """Time and memory of one run, in a process of its own."""
    loaded = export.Artifact.load(artifact, trusted=True)
    before = peak_memory()
    start, processor = time.perf_counter(), time.process_time()
    run = batch.run(loaded, table, out).run
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    print(
        f"| {run.panels:,} | {table.stat().st_size / 1e6:,.0f} | {seconds:,.1f} | {processor:,.1f} "
        f"| {run.panels / seconds:,.0f} | {before:,.0f} | {peak_memory():,.0f} |"
    )


def kill(artifact: Path, table: Path, folder: Path, times: int) -> None:
    """Compare a run that is killed repeatedly with an uninterrupted one."""
    expected, out = folder / "uninterrupted.duckdb", folder / "killed.duckdb"
    command = [sys.executable, __file__, "--once", str(artifact), str(table)]
    start = time.perf_counter()
    subprocess.run([*command, str(expected)], check=True, stdout=subprocess.DEVNULL)
    seconds, generator, partial = time.perf_counter() - start, random.Random(0), 0
    for _ in range(times):
        with subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL) as process:
            time.sleep(generator.uniform(0.3, 1.0) * seconds)
            process.kill()
        partial += out.exists() and checksum(out, "runs") != checksum(expected, "runs")
    subprocess.run([*command, str(out)], check=True, stdout=subprocess.DEVNULL)
    equal = all(checksum(out, name) == checksum(expected, name) for name in ("runs", "forecasts", "rejected"))
    print(f"{times} kills: {partial} partial runs in the results; the tables are {'equal' if equal else 'DIFFERENT'}")


def checksum(out: Path, table: str) -> list[tuple[object, ...]]:
    """A checksum of all rows of a table, without the times."""
    with duckdb.connect(str(out), read_only=True) as connection:
        columns = "* EXCLUDE (started, finished)" if table == "runs" else "*"
        query = f"SELECT count(*), bit_xor(hash(t)), sum(hash(t)::HUGEINT) FROM (SELECT {columns} FROM {table}) t"
        return connection.execute(query).fetchall()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", type=int, nargs="+", default=[1000, 10000, 100000])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--model", choices=MODELS, default="har-garch")
    parser.add_argument("--format", choices=("pt2", "aoti", "onnx"), default="pt2")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `batch` is replaced")
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--once", type=Path, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        measure(*options.once)
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        fitted = forecast.fit(
            data.embedded(["WTI"]).between("2012-01-01", "2018-12-31"),
            FitConfig(MODELS[options.model].config(), TrainConfig(epochs=0)),
        )
        artifact = export.export(fitted, folder / "wti.artifact", options.format)
        lines = list(HEAD)
        for panels in options.panels:
            table = write_panels(folder / f"{panels}.parquet", panels, options.rows)
            command = [sys.executable, __file__, "--once", artifact, table, folder / f"{panels}.duckdb"]
            lines.append(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
            print(lines[-1], file=sys.stderr, flush=True)
        text = "\n".join(
            [*lines, "", environment(f"{options.model} as {options.format}, panels of {options.rows} rows")]
        )
        replace_table(options.page, "batch", text) if options.page else print(text)
        if options.kill:
            kill(artifact, folder / f"{options.panels[0]}.parquet", folder, options.kill)


if __name__ == "__main__":
    main()
