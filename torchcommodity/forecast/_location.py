"""What moved the median of a forecast: related prices, the season, curves, rolls, in figures and in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch

from torch_opkit import Past
from torch_opkit.arguments import operation
from torchcommodity.data import Horizon, RowCalendar, horizon_index, horizon_name
from torchcommodity.forecast._history import last_prices
from torchcommodity.models import Frequency, Har, ModelInputs, price_after, scale_inputs

if TYPE_CHECKING:
    import pandas as pd

SEASON, MOMENTUM, ROLLS = "season", "momentum", "rolls and averaging"
LIMIT, CURVE, AVERAGE = "limit", "slope of the futures curve", "average of a quarter"
ROWS_PER_YEAR: dict[Frequency, int] = {"daily": 252, "weekly": 52, "monthly": 12}
NAMED = 3  # related goods of a sentence; the rest is summed as "others"
ROUNDING = 1e-12
SMALLEST = 0.0005  # log-return: the smallest part that a sentence names
SMALL_SHARE = 0.05  # likewise of the largest part of a spread


class LocationPart(NamedTuple):
    """One part of the expected change of a log price, or of a price that may be negative."""

    symbol: str
    horizon: int  # rows
    # a related good, such as "BRENT" or "CL futures", "average of a quarter" of a spread, "season", "momentum" of
    # months, "slope of the futures curve", "rolls and averaging", or "limit": what the limit takes away
    source: str
    # by how much the symbol is dear against the good, as a log ratio; by how much the price of one that may be negative
    # is above its average, in its unit; NaN for the others
    deviation: float
    # the part; those of a symbol and a horizon sum to the expected change; NaN for a price that may be negative
    log_return: float
    years: float  # of training with an outcome behind the relation; NaN for the others
    change: float = math.nan  # the part of a price that may be negative, in its unit, to first order


@dataclass(frozen=True, repr=False)
class Location:
    """Parts of the expected change of each log price over each horizon, the largest first.

    Without them the median of a forecast would be the last price, but for the drift that is kept.

    Args:
        parts: of every symbol and horizon that have any.
        symbols: of the forecast.
        horizons: of the forecast, in rows.
        frequency: of the prices: what a row is.
        units: of symbols whose prices may be negative; "" where not stated.
        network: whether a network of the user's forecasts the median itself; there are no parts then.
    """

    parts: tuple[LocationPart, ...]
    symbols: tuple[str, ...]
    horizons: tuple[int, ...]
    frequency: Frequency
    units: Mapping[str, str] = field(default_factory=dict)
    network: bool = False

    def to_pandas(self) -> "pd.DataFrame":
        """One row per part, with the fields of `LocationPart` as columns."""
        import pandas as pd

        table: pd.DataFrame = pd.DataFrame(self.parts, columns=LocationPart._fields)
        return table

    @operation("sentence")
    def sentence(self, symbol: str, horizon: Horizon | None = None) -> str:
        """`3 months: 4 % dear against GASOLINE_NYH: -0.6 %; season: +0.2 % (39 years)`.

        Of a spread, in its unit: `3 months: 3.1 USD/bbl above its average of a quarter: -1.2 (20 years)`.

        Args:
            symbol: a symbol of the forecast.
            horizon: one of the forecast, in rows or as a text such as "3m"; default: its third, a quarter of daily
                prices.

        Raises:
            ValueError: another symbol or horizon.
        """
        if symbol not in self.symbols:
            raise ValueError(f"sentence: symbol must be one of {', '.join(self.symbols)}; got {symbol!r}")
        default = self.horizons[:3][-1] if horizon is None else horizon
        rows = self.horizons[horizon_index(default, self.horizons, RowCalendar(self.frequency))]
        if self.network:
            return f"{horizon_name(rows, self.frequency)}: forecast by the network"
        own = [part for part in self.parts if (part.symbol, part.horizon) == (symbol, rows)]
        if symbol in self.units:
            return f"{horizon_name(rows, self.frequency)}: {_spread_words(own, self.units[symbol])}"
        named = [part for part in own if math.isfinite(part.deviation) and abs(part.log_return) >= SMALLEST][:NAMED]
        others = sum(part.log_return for part in own if math.isfinite(part.deviation) and part not in named)
        words = [f"{_deviation(part.deviation)} against {part.source}: {_percent(part.log_return)}" for part in named]
        if abs(others) >= SMALLEST:
            words.append(f"other related prices: {_percent(others)}")
        words += [
            f"{part.source}: {_percent(part.log_return)}"
            for part in own
            if not math.isfinite(part.deviation) and abs(part.log_return) >= SMALLEST
        ]
        years = max((part.years for part in named), default=math.nan)
        behind = f" ({years:.0f} years)" if math.isfinite(years) else ""
        return f"{horizon_name(rows, self.frequency)}: {'; '.join(words) or 'no change expected'}{behind}"

    def __repr__(self) -> str:
        return "\n".join(f"{symbol}, {self.sentence(symbol)}" for symbol in self.symbols)


@torch.no_grad()
def explain_location(
    har: Har, inputs: ModelInputs, symbols: Sequence[str], references: Sequence[str], units: Sequence[str] = ()
) -> Location:
    """The parts of `Har`'s expected change at the last row; `Forecaster.location` for those of a forecast.

    Args:
        har: the calibrated econometric part of a model; only its location and `theta` matter, not its variances' mix.
        inputs: of the model, without a batch axis.
        symbols: N names of the prices.
        references: R names of the references.
        units: of the symbols; default: not stated.
    """
    batch, past, horizons = scale_inputs(inputs, har.scale).unsqueeze(), Past(), har.config.horizons
    adjusted = har.adjust_rolls(batch, last_rows=1)
    rolls = adjusted.shift[0, -1]  # (H, N)
    expected, related, season, momentum = rolls.clone(), rolls[:, :0], torch.zeros_like(rolls), torch.zeros_like(rolls)
    pairs: list[tuple[int, int]] = []
    deviation = years = torch.zeros(0)
    curves: dict[int, list[LocationPart]] = {}
    if har.location is not None:
        slow = har.slow_variance(har.variance_terms(adjusted))
        trends = har.trends(adjusted.returns, 1)
        expected += har.location(batch.prices, batch.references, batch.days, slow, None, batch.curve, trends)[0, -1]
        waves = har.location.waves(batch.prices, batch.days, past, 1)
        if waves is not None:
            season = (waves[0, -1] * har.location.season.to(waves)).sum(-1)
        deviations = har.location.deviations(batch.prices, batch.references, past, 1)
        if deviations is not None and har.location.pairs is not None:
            deviation, pairs = deviations[0, -1], [(int(n), int(j)) for n, j in har.location.pairs]
            related = har.location.coefficients * deviation
            years = har.location.rows / ROWS_PER_YEAR[har.config.frequency]
        if har.location.momentum is not None:
            of_pairs = har.location.limit(har.location.related(deviations, slow), slow)
            momentum = har.location.momentum(of_pairs, batch.prices, trends, slow, Past())[0, -1]
        curves = curve_parts(har, batch, symbols)
    spreads = reversion_parts(har, inputs.prices, batch, symbols)
    slopes = price_slopes(har, inputs.prices)
    names, parts = [*symbols, *references], list[LocationPart]()
    for n, symbol in enumerate(symbols):
        own = [m for m, (k, _) in enumerate(pairs) if k == n]
        for i, h in enumerate(horizons):
            others = {ROLLS: float(rolls[i, n])}
            if n in curves:
                goods = [part for part in curves[n] if part.horizon == h]
            else:
                goods = [
                    LocationPart(symbol, h, names[pairs[m][1]], *map(float, (deviation[m], related[i, m], years[m])))
                    for m in own
                    if related[i, m] != 0
                ]
                others |= {SEASON: float(season[i, n]), MOMENTUM: float(momentum[i, n])}
            goods += [part for part in spreads.get(n, ()) if part.horizon == h]
            total = sum(part.log_return for part in goods) + sum(others.values())
            others[LIMIT] = float(expected[i, n]) - total
            for name, x in others.items():
                if abs(x) > ROUNDING:
                    goods.append(LocationPart(symbol, h, name, math.nan, x, math.nan))
            goods = sorted(goods, key=lambda part: -abs(part.log_return))
            if n in slopes:  # of the price in asinh(P / S)
                goods = [part._replace(log_return=math.nan, change=slopes[n] * part.log_return) for part in goods]
            parts += goods
    own_units = {symbols[n]: units[n] if units else "" for n in slopes}
    return Location(tuple(parts), tuple(symbols), horizons, har.config.frequency, own_units)


def curve_parts(har: Har, batch: ModelInputs, symbols: Sequence[str]) -> dict[int, list[LocationPart]]:
    """By number of a symbol whose curve is known on its last own row, what the curve says at each horizon."""
    basis = None if har.location is None else har.location.basis
    if basis is None or batch.curve is None or batch.days is None:
        return {}
    state = basis.state(batch.prices, batch.curve, batch.days, Past(), 1)
    parts: dict[int, list[LocationPart]] = {}
    for m, n in enumerate(basis.columns.tolist()):
        if not state.known[0, -1, m]:
            continue
        dear, years = -float(state.deviation[0, -1, m]), float(basis.rows[m]) / ROWS_PER_YEAR[har.config.frequency]
        parts[n] = []
        for i, h in enumerate(har.config.horizons):
            reversion = -dear * float(state.share[0, -1, i, m] + basis.coefficients[i, m])
            futures, slope = f"{har.config.curve_of[n]} futures", float(state.slope[0, -1, i, m])
            parts[n].append(LocationPart(symbols[n], h, futures, dear, reversion, years))
            parts[n].append(LocationPart(symbols[n], h, CURVE, math.nan, slope, math.nan))
    return parts


def price_slopes(har: Har, prices: torch.Tensor) -> dict[int, float]:
    """By number of a symbol with a price scale, the change of its last price with asinh(P / S), sqrt(S^2 + P^2)."""
    if har.scale is None:
        return {}
    _, last = last_prices(prices, har.scale)
    slopes = (har.scale.square() + last.square()).sqrt().tolist()
    return {n: x for n, x in enumerate(slopes) if not math.isnan(x)}


def reversion_parts(
    har: Har, prices: torch.Tensor, batch: ModelInputs, symbols: Sequence[str]
) -> dict[int, list[LocationPart]]:
    """By number of a symbol with a price scale, what it is expected to return of its deviation from its average."""
    reversion = None if har.location is None else har.location.reversion
    if har.location is None or reversion is None or har.scale is None:
        return {}
    slow = har.slow_variance(har.variance_terms(har.adjust_rolls(batch, last_rows=1)))
    changes = har.location.reversion_changes(reversion, batch.prices, slow, Past())[0, -1]  # (H, M)
    deviation = reversion.deviations(batch.prices, Past(), 1)[0, -1]
    _, last = last_prices(prices, har.scale)
    columns = reversion.columns
    above = last[columns] - price_after(last[columns], -deviation, har.scale[columns])
    years = reversion.rows / ROWS_PER_YEAR[har.config.frequency]
    return {
        n: [
            LocationPart(symbols[n], h, AVERAGE, float(above[m]), float(changes[i, m]), float(years[m]))
            for i, h in enumerate(har.config.horizons)
            if changes[i, m] != 0
        ]
        for m, n in enumerate(columns.tolist())
    }


def _spread_words(parts: Sequence[LocationPart], unit: str) -> str:
    """`3.1 USD/bbl above its average of a quarter: -1.2; season: +0.2 (20 years)`."""
    words, years = [], math.nan
    largest = max((abs(part.change) for part in parts), default=0.0)
    for part in parts:
        if abs(part.change) < SMALL_SHARE * largest:
            continue
        name = part.source
        if part.source == AVERAGE:
            side = "above" if part.deviation > 0 else "below"
            name, years = f"{abs(part.deviation):.2g} {unit} {side} its {AVERAGE}".replace("  ", " "), part.years
        elif math.isfinite(part.deviation):
            name = f"{'high' if part.deviation > 0 else 'low'} against {part.source}"
        words.append(f"{name}: {part.change:+.2g}")
    behind = f" ({years:.0f} years)" if math.isfinite(years) else ""
    return f"{'; '.join(words) or 'no change expected'}{behind}"


def _deviation(x: float) -> str:
    """`4 % dear`, of a log ratio."""
    return f"{abs(math.expm1(x)):.0%} {'dear' if x > 0 else 'cheap'}".replace("%", " %")


def _percent(x: float) -> str:
    """`-0.6 %`, of a log-return."""
    return f"{100 * math.expm1(x):+.1f} %"
