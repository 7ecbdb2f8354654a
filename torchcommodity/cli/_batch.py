"""`torchcommodity forecast --artifact`: an exported artifact answers a table of panels, into a DuckDB file."""

from pathlib import Path

import typer
from rich.markup import escape

from torchcommodity.batch import Summary, batch, holds_panels
from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.data import Panel
from torchcommodity.export import Artifact

RESULTS = Path("out") / "forecasts.duckdb"
SOME_REFUSED = 3  # exit code
OTHERS = {
    "symbols": "the artifact names its symbols",
    "contracts": "the artifact knows its contracts",
    "curve": "an artifact reads no curve of nearby contracts",
    "seed": "nothing is trained",
}


def answer(context: typer.Context, artifact: Path, data: str, out: Path | None, quiet: bool) -> None:
    """What `forecast` does when it is given an artifact."""
    for name, why in OTHERS.items():
        given = context.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE":
            raise ValueError(f"--{name} does not go with --artifact: {why}")
    screen = show.console(quiet)
    source: str | Panel = data
    if not holds_panels(data):
        source = options.prices(data, None)
        show.findings(screen, source.findings)
    results = out or RESULTS
    loaded = Artifact.load(artifact)
    try:
        with show.steps(screen, "Forecasts") as step:
            found = batch(loaded, source, results, progress=step)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {results} is as it was, the same command carries on") from None
    for line in _told(found, results):
        screen.print(escape(line), soft_wrap=True)
    if found.run.refused:
        raise typer.Exit(SOME_REFUSED)


def _told(found: Summary, results: Path) -> list[str]:
    run = found.run
    lines = [
        f"Run {run.run[:16]} of {run.source}: {run.answered:,} panels answered, {run.forecasts:,} rows of forecasts."
    ]
    if run.left_out:
        lines.append(f"{run.left_out:,} rows of symbols that the artifact does not know were left out.")
    if run.refused:
        why = f"the table `refused` of {results} says why"
        lines.append(f"{run.refused:,} of {run.panels:,} panels were refused; {why}.")
    done = f"{results} holds this run since {run.finished}; nothing was changed." if found.again else f"Wrote {results}"
    return [*lines, done]
