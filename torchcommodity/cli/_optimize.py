"""`torchcommodity optimize`: a forecaster made smaller and faster, every step measured on years it has not seen."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.cli._train import Config
from torchcommodity.data import Panel, frame_to_csv
from torchcommodity.forecast import Forecaster, cached_fit
from torchcommodity.models import HarLstmConfig
from torchcommodity.optimize import ALL, ORIGINAL, Row, batch, steps, table, verdict
from torchcommodity.report import check_output_folder, write_files
from torchcommodity.training import FitConfig, load_config, model_inputs

FILES = ("optimized.safetensors", "optimize.csv")
LARGE = HarLstmConfig(hidden=64)  # large enough that there is something to take away

Fitted = Annotated[
    Path | None, typer.Argument(metavar="FORECASTER", help="a HarLstm fitted before --first; default: one is fitted")
]
First = Annotated[int, typer.Option("--first", help="first year of the verdict; all is learned before it")]
Compile = Annotated[bool, typer.Option("--compile/--no-compile", help="the compiled steps, minutes each")]


def optimize(
    forecaster: Fitted = None,
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    config: Config = None,
    first: First = 2017,
    rows: Annotated[int, typer.Option("--rows", help="of prices in a request", min=1)] = 512,
    large: Annotated[int, typer.Option("--batch", help="the large batch", min=1)] = 256,
    calls: Annotated[int, typer.Option("--calls", help="at batch 1, in turn", min=5)] = 100,
    compiled: Compile = True,
    out: options.Out = Path("out"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Prune, distill, quantize and compile a forecaster; writes optimized.safetensors and optimize.csv."""
    screen = show.console(quiet)
    panel = options.prices(data, symbols, contracts, curve)
    check_output_folder(out, FILES)
    fitted = _fitted(forecaster, panel, config, first, seed)
    chosen = fitted.align_panel(panel)
    quoted = model_inputs(chosen, fitted.horizons[-1])
    start = sum(1 for date in chosen.dates if int(str(date)[:4]) < first)
    with show.steps(screen, "Optimizing") as step:
        one = batch(quoted, rows, 1, fitted.horizons[-1])
        made = steps(fitted, quoted.before(start), one, compiled=compiled, seed=seed, progress=step)
    found = table(made, quoted, start, rows=rows, large=large, calls=calls)
    frame = pd.DataFrame([asdict(row) | row.size._asdict() | {"gain": str(row.gain)} for row in found])
    csv = frame_to_csv(frame.drop(columns="size"))
    write_files(out, dict(zip(FILES, (made[ALL].forecaster.to_bytes(), csv.encode()))))
    screen.print(f"{', '.join(fitted.symbols)}; {escape(fitted.record.note)}; verdict from {chosen.dates[start]} on.")
    screen.print(_size(found))
    screen.print(_speed(found, large))
    screen.print(_accuracy(found, fitted.horizons))
    for row in found:
        if row.note:
            screen.print(f"{row.step}: {escape(row.note)}.", soft_wrap=True)
    screen.print(escape(verdict(found)), soft_wrap=True)
    screen.print(f"Wrote {', '.join(escape(str(out / name)) for name in FILES)}", soft_wrap=True)


def _fitted(path: Path | None, panel: Panel, config: Path | None, first: int, seed: int) -> Forecaster:
    if path is not None:
        found = Forecaster.load(path)
        if int(found.record.through[:4]) >= first:
            raise ValueError(
                f"optimize: the forecaster must be fitted before --first {first}; it knows prices through "
                f"{found.record.through}"
            )
        return found
    settings = FitConfig(model=LARGE) if config is None else load_config(config)
    past = panel.between(None, f"{first - 1}-12-31")
    return cached_fit(past, settings, seed=seed)[0]


def _size(found: tuple[Row, ...]) -> object:
    heads = ("step", "numbers", "zero", "bytes", "peak MiB")
    rows = (
        (
            row.step,
            f"{row.size.parameters:,}",
            f"{row.size.zeros:.0%}",
            f"{row.size.bytes:,}",
            f"{row.peak_bytes / 2**20:.0f}",
        )
        for row in found
    )
    return show.table("Size of the network; peak memory of the large batch", heads, rows)


def _speed(found: tuple[Row, ...], large: int) -> object:
    heads = ("step", "p50", "p99", f"p50 x{large}", "p99", "/s", "faster, x")
    rows = (
        (
            row.step,
            f"{row.p50:.2f}",
            f"{row.p99:.2f}",
            f"{row.p50_large:.0f}",
            f"{row.p99_large:.0f}",
            f"{row.throughput:,.0f}",
            _gain(row),
        )
        for row in found
    )
    return show.table("Milliseconds at batch 1 and of the large batch, there eager; forecasts a second", heads, rows)


def _gain(row: Row) -> str:
    if row.step == ORIGINAL:
        return ""
    return f"{row.gain.low:.2f} to {row.gain.high:.2f}" if row.gain.proven else "none shown"


def _accuracy(found: tuple[Row, ...], horizons: tuple[int, ...]) -> object:
    heads = ("step", *(f"{h} rows" for h in horizons))
    rows = (
        (
            row.step,
            *(
                f"{1e4 * c:.3f}" + ("" if p != p else f" (DM {t:+.1f}, p {p:.2f})")
                for c, t, p in zip(row.crps, row.dm, row.dm_p)
            ),
        )
        for row in found
    )
    return show.table("CRPS 1e-4; DM above 0: worse than the original", heads, rows)
