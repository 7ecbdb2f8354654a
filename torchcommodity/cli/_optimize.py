"""`torchcommodity optimize`: make a network smaller and faster; measure each step on out-of-sample years."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._prices import Prices

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Panel
    from torchcommodity.forecast import Forecaster
    from torchcommodity.optimize import BenchmarkRow

FILES = ("optimized.safetensors", "optimize.csv")
HIDDEN = 64  # units of the network that is fitted by default: large enough to prune

ModelFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        callback=options.check_fitted_model,
        help="Model with a network (.safetensors), fitted on prices before --first-year; default: fit a har-lstm",
    ),
]
FirstYear = Annotated[int, typer.Option("--first-year", help="First test year; all models are fitted on earlier years")]
Rows = Annotated[int, typer.Option("--rows", min=1, help="Price rows per request")]
BatchSize = Annotated[int, typer.Option("--batch", min=1, help="Requests in the large batch")]
Calls = Annotated[int, typer.Option("--calls", min=5, help="Timed calls at batch size 1")]
Compile = Annotated[bool, typer.Option("--compile/--no-compile", help="Include the compiled variants (minutes each)")]


@with_bundles
def optimize(
    *,
    model: ModelFile = None,
    network: options.Network = None,
    prices: Prices,
    config: options.Config = None,
    first_year: FirstYear = 2017,
    rows: Rows = 512,
    batch: BatchSize = 256,
    calls: Calls = 100,
    compile: Compile = True,
    out: options.OutFolder = Path("out"),
    seed: options.Seed = 0,
    device: options.TrainingDevice = None,
    quiet: options.Quiet = False,
) -> None:
    """Prune, distill, quantize and compile a model.

    Measures size, speed and loss of every variant; writes optimized.safetensors and optimize.csv.
    """
    import pandas as pd

    import torchcommodity.optimize as library
    from torchcommodity.data import frame_to_csv
    from torchcommodity.report import check_output_folder, write_files
    from torchcommodity.training import model_inputs

    options.check_available(device)
    screen = output.console(quiet)
    panel = prices.read()
    check_output_folder(out, FILES)
    forecaster = _fitted(model, network, panel, config, first_year, seed, device)
    panel = forecaster.align_panel(panel)
    inputs = model_inputs(
        panel, forecaster.horizons[-1], references=forecaster.references, bars=forecaster.model.har.config.bars
    )
    start = sum(1 for date in panel.dates if int(str(date)[:4]) < first_year)
    if start == len(panel):
        raise ValueError(f"optimize: prices must have rows from {first_year} on, for the test; got {panel.dates[-1]}")
    with output.progress_bar(screen, "Optimizing") as progress:
        variants = library.pipeline(
            forecaster,
            inputs.before(start),
            library.benchmark_inputs(inputs, rows, 1, forecaster.horizons[-1]),
            compiled=compile,
            seed=seed,
            device=device or "cpu",
            progress=progress,
        )
    result = library.benchmark_table(variants, inputs, start, rows=rows, batch_size=batch, calls=calls)
    frame = pd.DataFrame([asdict(row) | row.size._asdict() | {"speedup": str(row.speedup)} for row in result])
    csv = frame_to_csv(frame.drop(columns="size"))
    write_files(out, dict(zip(FILES, (variants[library.COMBINED].forecaster.to_bytes(), csv.encode()))))
    output.print_line(screen, f"{forecaster.record.note}. Tested from {panel.dates[start]} on.")
    _print_benchmark(screen, result, batch, forecaster.horizons)
    for row in result:
        if row.note:
            output.print_line(screen, f"{'' if row.variant == library.ORIGINAL else f'{row.variant}: '}{row.note}.")
    output.print_line(screen, library.summarize_benchmark(result))
    output.print_written(screen, *(out / name for name in FILES))


def _fitted(
    path: Path | None,
    network: str | None,
    panel: "Panel",
    config: Path | None,
    first_year: int,
    seed: int,
    device: str | None,
) -> "Forecaster":
    from torchcommodity.forecast import cached_fit
    from torchcommodity.training import to_config

    if path is not None:
        forecaster = options.load_fitted(path, network)
        if int(forecaster.record.through[:4]) >= first_year:
            raise ValueError(
                f"optimize: the model must be fitted on prices before --first-year {first_year}; got one that was "
                f"fitted through {forecaster.record.through}"
            )
        return forecaster
    if config is None and network is None:
        train = {} if device is None else {"train": {"device": device}}
        settings = to_config({"model": {"name": "har-lstm", "hidden": HIDDEN}, **train}, frequency=panel.frequency)
    else:
        settings = options.read_settings(panel, network, config, device=device)
    return cached_fit(panel.between(None, f"{first_year - 1}-12-31"), settings, seed=seed)[0]


def _print_benchmark(
    screen: "Console", result: "tuple[BenchmarkRow, ...]", batch: int, horizons: tuple[int, ...]
) -> None:
    """Print size, speed and loss of every variant, a table of each."""
    from torchcommodity.optimize import ORIGINAL

    sizes, speeds, losses = [], [], []
    for row in result:
        numbers = f"{row.size.parameters:,}", f"{row.size.sparsity:.0%}", f"{row.size.bytes:,}"
        sizes.append((row.variant, *numbers, f"{row.peak_bytes / 2**20:.0f}"))
        milliseconds = f"{row.p50:.2f}", f"{row.p99:.2f}", f"{row.batch_p50:.0f}", f"{row.batch_p99:.0f}"
        speedup = f"{row.speedup.low:.2f} to {row.speedup.high:.2f}" if row.speedup.significant else "not significant"
        speedup = "" if row.variant == ORIGINAL else speedup
        speeds.append((row.variant, *milliseconds, f"{row.throughput:,.0f}", speedup))
        tests = ["" if p != p else f" (DM {dm:+.1f}, p {p:.2f})" for dm, p in zip(row.dm, row.dm_p)]
        losses.append((row.variant, *(f"{1e4 * crps:.3f}{test}" for crps, test in zip(row.crps, tests))))
    title = "Size of the network; peak memory of the large batch"
    screen.print(output.table(title, ("variant", "parameters", "zero", "bytes", "peak MiB"), sizes))
    title = "Milliseconds at batch size 1 and of the large batch (always eager); forecasts per second"
    heads = ("variant", "p50", "p99", f"p50 x{batch}", "p99", "per s", "speedup")
    screen.print(output.table(title, heads, speeds))
    title = "CRPS in 1e-4; DM above 0: worse than the original"
    screen.print(output.table(title, ("variant", *(f"{h} rows" for h in horizons)), losses))
