"""`torchcommodity profile`: time and memory of a model's steps, by stage and operator."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._parse import call_factory, factory_errors
from torchcommodity.cli._prices import NewPrices

if TYPE_CHECKING:
    from torchcommodity.forecast import Forecaster
    from torchcommodity.optimize import BatchInputs, Profile


class Sort(str, Enum):
    """Order of the operators."""

    TIME = "time"
    MEMORY = "memory"


def check_model(model: str) -> str:
    """Accept a fitted model file, or package.module:function."""
    path = Path(model)
    if path.exists():
        options.check_fitted_model(path)
    elif ":" not in model:
        raise typer.BadParameter(f"file {model!r} does not exist; a model of your own is package.module:function")
    return model


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        callback=check_model,
        help="Fitted model (.safetensors), or package.module:function that returns (model, batches) or "
        "(model, batches, loss_fn)",
    ),
]
Rows = Annotated[int, typer.Option("--rows", min=1, help="Price rows per forecast of a fitted model")]
BatchSize = Annotated[int, typer.Option("--batch", min=1, help="Forecasts per call of a fitted model")]
Train = Annotated[bool, typer.Option("--train", help="Include loss and backward pass; needs a loss_fn")]
Steps = Annotated[int, typer.Option("--steps", min=1, help="Measured steps, after two of warm-up")]
Trace = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Output file of a JSON trace, for ui.perfetto.dev")
]
Stacks = Annotated[
    Path | None, typer.Option("--stacks", metavar="FILE", help="Output file of folded stacks, for a flame graph")
]
Top = Annotated[int, typer.Option("--top", min=1, help="Number of operators to print")]
SortBy = Annotated[Sort, typer.Option("--sort", help="Order of the operators")]


@with_bundles
def profile(
    *,
    model: Model,
    network: options.Network = None,
    prices: NewPrices,
    rows: Rows = 1024,
    batch: BatchSize = 1,
    train: Train = False,
    steps: Steps = 5,
    device: options.Device = "cpu",
    trace: Trace = None,
    stacks: Stacks = None,
    top: Top = 15,
    sort: SortBy = Sort.TIME,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
) -> None:
    """Profile the steps of a fitted model, or of any PyTorch model.

    Prints the stages, the operators with their shapes, the memory, and the three largest costs. Exit code 4:
    MODULE:FUNCTION raised an exception.
    """
    options.check_available(device)
    import torchcommodity.optimize as optimize
    from torch_opkit.arguments import operation
    from torchcommodity.data import check_output
    from torchcommodity.training import resolve_device, to_device

    for option, path in (("--trace", trace), ("--stacks", stacks)):
        if path is not None:
            check_output(path, label=option)
    if Path(model).exists():
        module, batches, loss_fn = *_fitted_model(Path(model), network, prices, rows, batch), None
        module = module.to(device)
    else:
        module, batches, loss_fn = _own_model(model)
        if device != "cpu":
            with operation("profile"):
                module = to_device(module, resolve_device(device))  # the profiler moves the batches
    if train and loss_fn is None:
        raise ValueError("profile: --train needs a loss; return (model, batches, loss_fn) from a function of your own")
    loss_fn = loss_fn if train else None
    with factory_errors(model):
        result = optimize.profile(module, batches, loss_fn=loss_fn, steps=steps, trace=trace, stacks=stacks or True)
    screen = output.console()
    if json:
        screen.print_json(result.json())
        return
    output.print_line(screen, f"{result.summary}.")
    screen.print(output.table("Stages", ("stage", "share"), ((s, f"{x:.1%}") for s, x in result.stages.items())))
    screen.print(_operators(result, sort, top))
    for rank, cost in enumerate(result.largest, 1):
        output.print_line(screen, f"{rank}. {cost}")
    for note in result.notes:
        output.print_line(screen, f"Note: {note}.")
    if files := [path for path in (trace, stacks) if path is not None]:
        output.print_written(screen, *files)


def _fitted_model(
    path: Path, network: str | None, prices: NewPrices, rows: int, batch: int
) -> "tuple[Forecaster, list[BatchInputs]]":
    """A fitted model and one batch of its prices."""
    from torch_opkit.arguments import operation
    from torchcommodity.optimize import benchmark_inputs
    from torchcommodity.training import check_no_extra_terms, model_inputs

    forecaster = options.load_fitted(path, network)
    with operation("profile"):
        check_no_extra_terms(forecaster.model.har.config, "profile a forecaster fitted without them")
    panel = forecaster.align_panel(prices.read(forecaster.symbols))
    inputs = model_inputs(
        panel, forecaster.horizons[-1], references=forecaster.references, bars=forecaster.model.har.config.bars
    )
    return forecaster, [benchmark_inputs(inputs, rows, batch, forecaster.horizons[-1])]


def _own_model(factory: str) -> tuple[Any, Any, Any]:
    """Model, batches and loss of a function of the user's own; the loss may be None."""
    result = call_factory(factory)
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise ValueError(
            f"profile: {factory} must return (model, batches) or (model, batches, loss_fn); got {type(result).__name__}"
        )
    model, batches, loss_fn = (*result, None)[:3]
    return model, batches, loss_fn


def _operators(result: "Profile", sort: Sort, top: int) -> object:
    heads = ("operator", "shapes", "calls", "self us", "share", "bytes", "at")
    rows = (
        (
            cost.name,
            cost.shapes,
            f"{cost.calls:g}",
            f"{cost.microseconds:.0f}",
            f"{cost.share:.1%}",
            f"{cost.bytes:,}",
            cost.location,
        )
        for cost in result.ranked(sort.value)[:top]
    )
    return output.table(f"Operators by {sort.value}", heads, rows, (0, 1, 6))
