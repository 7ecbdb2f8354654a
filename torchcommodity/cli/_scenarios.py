"""`torchcommodity scenarios`: synthetic joint price paths, evaluated against real ones."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._prices import Prices

if TYPE_CHECKING:
    from torchcommodity.data import Panel
    from torchcommodity.scenarios import ScenarioEvaluation, Scenarios

FILES = ("scenarios.csv", "facts.csv", "scenarios.html", "scenarios.safetensors")
FIT_FRACTION = 0.75  # default share, to fit on, of the rows on which every symbol has a return

Through = Annotated[
    str | None,
    typer.Option(
        "--through",
        metavar="DATE",
        callback=options.check_date,
        help="Last date to fit on; default: the first three quarters of the rows",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", metavar="N", min=0, help="Training steps of the generator; 0 fits the moments only"),
]


@with_bundles
def scenarios(
    *,
    prices: Prices,
    paths: options.Paths = 100,
    through: Through = None,
    steps: Steps = None,
    out: options.OutFolder = Path("out"),
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
) -> None:
    """Generate and evaluate synthetic joint price paths.

    The generator is fitted on the rows up to a date and evaluated on later rows, next to a stationary bootstrap.
    Writes scenarios.csv, facts.csv, scenarios.html and the generator, scenarios.safetensors.
    """
    import torchcommodity.scenarios as library
    from torchcommodity.data import utc_now
    from torchcommodity.forecast import data_hash
    from torchcommodity.report import (
        RunRecord,
        check_output_folder,
        describe_evaluation,
        package_versions,
        scenarios_html,
        write_files,
    )

    options.check_available(device)
    screen = output.console(quiet)
    panel = prices.read()
    check_output_folder(out, FILES)
    output.print_reading(screen, panel)
    if through is None:
        dates = library.complete_returns(panel)[1]
        through = str((dates if len(dates) else panel.dates)[int(FIT_FRACTION * len(dates))])
    train = library.AdversarialConfig(device=device)
    config = library.ScenarioFitConfig(train=train if steps is None else replace(train, steps=steps))
    library.split_returns(panel, through, config.model.window)  # raises before minutes of training
    with output.progress_bar(screen, "Training") as progress:
        model = library.fit_scenarios(panel, config, seed=seed, through=through, progress=progress)
    evaluation = library.evaluate_scenarios(model, panel, seed=seed)
    sample = model.sample(paths, seed=seed)
    run = RunRecord(
        utc_now(), output.command_line(), prices.data, data_hash(panel), seed, package_versions(), panel.credits()
    )
    texts = (
        paths_csv(sample, panel),
        facts_csv(evaluation),
        scenarios_html(sample, evaluation, model.record, run),
    )
    write_files(out, dict(zip(FILES, (*(text.encode() for text in texts), model.to_bytes()))))
    frame = evaluation.to_pandas()
    rows = [(family, *(f"{value:.3f}" for value in frame.loc[family])) for family in frame.index]
    span = f"{evaluation.first} to {evaluation.last}"
    title = f"Distance from {evaluation.windows} real windows, {span}; lower is closer"
    screen.print(output.table(title, ("facts", *frame.columns), rows))
    output.print_line(screen, describe_evaluation(evaluation))
    output.print_written(screen, *(out / name for name in FILES))


def paths_csv(scenarios: "Scenarios", panel: "Panel") -> str:
    """One row per path, date and symbol; prices start from the last real one."""
    from torchcommodity.data import frame_to_csv

    frame = scenarios.to_pandas().drop(columns="row")
    panels = [scenarios.to_panel(path, panel) for path in range(len(scenarios))]
    frame.insert(1, "date", [str(day) for path in panels for day in path.dates for _ in path.symbols])
    frame.insert(3, "close", [price for path in panels for row in path.values.tolist() for price in row])
    return frame_to_csv(frame)


def facts_csv(evaluation: "ScenarioEvaluation") -> str:
    """One row per family of stylized facts: distance and mean of each generator, and the mean of the real windows."""
    import pandas as pd

    from torchcommodity.data import frame_to_csv

    table = pd.concat({"distance": evaluation.to_pandas(), "mean": evaluation.fact_means()}, axis=1)
    table.columns = [" ".join(pair) for pair in table.columns]
    return frame_to_csv(table, index=True, index_label="facts")
