"""`torchcommodity risk`: what a position or a portfolio may lose until each horizon of a fitted model."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions
from torchcommodity.cli._parse import parse_weights, reject_unless
from torchcommodity.cli._prices import NewPrices

if TYPE_CHECKING:
    import pandas as pd

    from torchcommodity.forecast import Forecast, Simulation

PORTFOLIO = "portfolio"
PATHS = 10_000


def check_level(level: float) -> float:
    """Reject a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise typer.BadParameter(f"expected a number in (0, 1); got {level:g}")
    return level


Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="A=0.5,B=-0.5",
        callback=reject_unless(parse_weights),
        help="Portfolio to hold, as fractions of wealth; negative for a short position",
    ),
]
Level = Annotated[float, typer.Option("--level", callback=check_level, help="Confidence level")]


@with_bundles
def risk(
    *,
    model: options.ModelFile,
    network: options.Network = None,
    prices: NewPrices,
    weights: Weights = None,
    level: Level = 0.95,
    out: options.OutTable = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
    covariates: CovariateOptions,
) -> None:
    """Value at risk and expected shortfall until each horizon.

    Prints the losses of a long and a short position in each commodity, and of a portfolio with --weights, which is held
    along simulated paths. Losses are positive.
    """
    import pandas as pd

    options.check_available(device)
    screen = output.console(quiet)
    output.check_file(out)
    forecaster = options.load_fitted(model, network, device)
    panel = prices.read(forecaster.symbols)
    output.print_read_as(screen, panel)
    source = covariates.read()
    forecast = forecaster.predict(panel, source)
    output.print_findings(screen, forecast.findings)
    tables = [_positions(forecast, level)]
    if weights is not None:
        simulation = forecaster.simulate(panel, PATHS, covariates=source, seed=seed)
        tables.append(_portfolio(simulation, parse_weights(weights), level))
    losses = pd.concat(tables, ignore_index=True)
    screen.print(_table(losses, forecast, level))
    if out is not None:
        output.write_table(losses, out)
        output.print_written(screen, out)


def _positions(forecast: "Forecast", level: float) -> "pd.DataFrame":
    """One row per symbol, side and horizon; of a price that may be negative, losses per unit held, and their unit."""
    import pandas as pd
    import torch

    from torchcommodity.risk import position_losses, price_losses

    losses: tuple[torch.Tensor, ...] = position_losses(forecast.log_returns, forecast.levels, level)  # (H, N) each
    units = {}
    if forecast.signed:
        in_price = price_losses(forecast.prices - forecast.last[:, None], forecast.levels, level)
        signed = torch.tensor([symbol in forecast.signed for symbol in forecast.symbols])
        losses = tuple(torch.where(signed, price, share) for price, share in zip(in_price, losses))
        names = zip(forecast.symbols, forecast.units)
        units = {symbol: unit or "price" if symbol in forecast.signed else "" for symbol, unit in names}
    sides = {"long": losses[:2], "short": losses[2:]}
    table: pd.DataFrame = pd.DataFrame(
        {
            "symbol": symbol,
            "side": side,
            "horizon": horizon,
            "value_at_risk": var[i, n].item(),
            "expected_shortfall": es[i, n].item(),
            **({"unit": units[symbol]} if units else {}),
        }
        for n, symbol in enumerate(forecast.symbols)
        for side, (var, es) in sides.items()
        for i, horizon in enumerate(forecast.horizons)
    )
    return table


def _portfolio(simulation: "Simulation", weights: dict[str, float], level: float) -> "pd.DataFrame":
    """One row per horizon; gaps at contract rolls are not earned, and no position is expected to earn a location."""
    import pandas as pd
    import torch

    from torchcommodity.risk import expected_shortfall, holding_returns, value_at_risk

    if unknown := [symbol for symbol in weights if symbol not in simulation.symbols]:
        expected = ", ".join(simulation.symbols)
        raise ValueError(f"--weights: expected symbols of the model, {expected}; got {', '.join(unknown)}")
    if spreads := [symbol for symbol in weights if symbol in simulation.forecast.signed]:
        rule = "expected symbols with returns, which prices below zero do not have"
        raise ValueError(f"--weights: {rule}; got {', '.join(spreads)}: give the weights of its legs")
    columns = [n for n, symbol in enumerate(simulation.symbols) if symbol in weights]
    positions = torch.tensor([weights[simulation.symbols[n]] for n in columns], dtype=torch.float64)
    earned = (simulation.log_returns.plain() - simulation.roll_gaps - simulation.location)[..., columns]
    returns = [holding_returns(earned[:, :horizon], positions) for horizon in simulation.forecast.horizons]
    table: pd.DataFrame = pd.DataFrame(
        {
            "symbol": PORTFOLIO,
            "side": "",
            "horizon": horizon,
            "value_at_risk": value_at_risk(r, level).item(),
            "expected_shortfall": expected_shortfall(r, level).item(),
        }
        for horizon, r in zip(simulation.forecast.horizons, returns)
    )
    return table


def _table(losses: "pd.DataFrame", forecast: "Forecast", level: float) -> object:
    from torchcommodity.report import format_price

    rows = []
    for (symbol, side), group in losses.groupby(["symbol", "side"], sort=False):
        pairs = zip(group["value_at_risk"], group["expected_shortfall"])
        name = f"{symbol} {side}".strip()
        if symbol in forecast.signed:
            name = f"{name}, {group['unit'].iloc[0]}"
            cells = [f"{format_price(var)} / {format_price(es)}" for var, es in pairs]
        else:
            cells = [f"{100 * var:.1f} / {100 * es:.1f}" for var, es in pairs]
        rows.append((name, *cells))
    visible = rows[: 2 * output.MAX_ROWS]
    heads = ("position", *map(forecast.calendar.name, forecast.horizons))
    title = f"Value at risk / expected shortfall, {100 * level:g} %, from {forecast.origin}"
    table = output.table(title, heads, visible)
    more = f"; and {len(rows) - len(visible)} more, --out writes all of them" if len(rows) > len(visible) else ""
    per_unit = "; those of a price that may be negative in its unit, per unit held" if forecast.signed else ""
    table.caption, table.caption_justify = f"Losses in percent of the position's value{per_unit}{more}", "left"
    return table
