"""`spread`: a linear combination of prices as a symbol of its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from torch_opkit import MetadataTensor
from torch_opkit.arguments import current_operation, operation
from torchcommodity.data._core.contracts import find_product
from torchcommodity.data._core.errors import DataError, condense, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.panel_fields import is_generated
from torchcommodity.data._core.price_units import parse_unit, unit_factor
from torchcommodity.data._core.provenance import NOT_STATED, SYNTHETIC, Provenance
from torchcommodity.data._core.spread_formulas import (
    PRODUCT_SYMBOLS,
    USUAL_SPREADS,
    Leg,
    SpreadFormula,
    check_numbers,
    check_weights,
    format_formula,
    grammar,
    parse_spread,
)
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._read import to_panel

ROUNDING = 1e-13  # of the legs together
YEAR = 252  # rows ahead on which the rolls of legs are compared
SPREAD_SERIES = "spread "  # start of the series of a spread: "spread BRENT-WTI (BRENT RBRTE, WTI RWTC)"
_SERIES = re.compile(SPREAD_SERIES + r"(?P<formula>(?:'[^']*'|\"[^\"]*\"|[^'\"(])+) \(.*\)")


@operation("spread")
def spread(
    prices: Any,
    legs: str | Mapping[str, float],
    *,
    name: str | None = None,
    unit: str | None = None,
    factors: Mapping[str, float] | None = None,
) -> Panel:
    """A linear combination of prices, such as a crack, a crush, a calendar spread or a basis, as a symbol of its own.

    | legs | spread |
    |---|---|
    | `{"BRENT": 1, "WTI": -1}` | symbols and weights |
    | `"CRACK=2*GASOLINE+HEATOIL-3*WTI"`, `"BRENT-WTI"` | the same as text |
    | `"crack-3-2-1"` | a usual spread, see `USUAL_SPREADS`; its legs are found by contract or by name |
    | `"CL1-CL2"` | a calendar spread: the first less the second nearby contract of the curve of CL |

    P = sum of weight * factor * price of the leg, on the rows on which every leg has a price; the factor converts the
    unit of the leg. It may be negative: `forecast.fit` takes the asinh of such prices in place of logs, see
    `price_forms`.

    The futures among the legs give their contract to the spread, if they roll on the same days: the nearby spreads
    C_k = sum of weight * factor * F_k are then its curve, with the price of a leg that is spot in each of them. Futures
    that roll apart, and a curve that is not complete, are findings, and the spread has none. Open, high and low of legs
    say nothing of the range of a spread. The dates ahead are on the calendar of the first leg.

    Args:
        prices: anything that `to_panel` takes, with the legs among its symbols or references.
        legs: see the table.
        name: symbol of the spread; default: as written, such as "BRENT-WTI".
        unit: of the spread; default: that of the legs or, where these differ, the one of the largest quantity.
        factors: by leg, the number that turns its prices into the unit of the spread, where the units do not tell it:
            {"GASOIL": 1 / 7.45} for barrels per tonne.

    Returns:
        A panel of one symbol `(T, 1)` float64, whose provenance names all legs; `Panel.join` adds it to others.

    Raises:
        TypeError: legs that are neither text nor a mapping.
        DataError: a text that is no spread; one leg, a weight of zero, an unknown symbol; units of several currencies,
            of mass and volume, or unknown; averages beside other prices; no row with all legs.

    >>> from torchcommodity import data
    >>> oil = data.embedded(["BRENT", "WTI"])
    >>> panel = spread(oil, {"BRENT": 1, "WTI": -1})
    >>> panel, round(panel.values[-1].item(), 2)
    (Panel(9781 dates 1987-05-20 to 2026-08-18, 1 symbol: BRENT-WTI), 8.81)
    >>> spread(data.read("embedded"), "crack-3-2-1").units
    ('$/bbl',)
    """
    for argument, text in (("name", name), ("unit", unit)):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{current_operation()}: {argument} must be a text; got {text!r}")
    panel, formula = to_panel(prices), _formula(legs)
    name = name or formula.name
    result = _make_spread(panel, formula, name, unit or None, _numbers("factors", factors or {}))
    if not result.values.plain().isfinite().any():
        raise DataError(f"{current_operation()}: expected a row with a price of every leg of {name!r}; got none")
    return result


@operation("restore_spreads")
def restore_spreads(panel: Panel, sources: Iterable[Mapping[str, str]]) -> Panel:
    """The panel with the spreads of a fit that it lacks, made of their legs again; as it is where it has them.

    A spread is NaN where a leg has no price, also on all rows.

    Args:
        panel: prices with the legs among its symbols or references.
        sources: of the training prices, as in `Panel.sources`; the series of a spread is its formula.

    Raises:
        DataError: the panel lacks a spread and one of its legs, or has units where the fit had none, or the reverse.

    >>> from torchcommodity import data
    >>> oil = data.embedded(["BRENT", "WTI"])
    >>> restore_spreads(oil, data.spread(oil, "BRENT-WTI").sources()).symbols
    ('BRENT', 'WTI', 'BRENT-WTI')
    """
    for source in sources:
        symbol, unit, series = (source.get(key, "") for key in ("symbol", "unit", "series"))  # of a file
        match = _SERIES.fullmatch(series)
        if match is None or symbol in panel.symbols:
            continue
        name, text = current_operation(), match["formula"]
        try:
            formula = parse_spread(text)
            restored = _make_spread(panel, formula, symbol)
            if bool(unit) != bool(restored.units[0]):
                raise DataError(f"expected legs {'with' if unit else 'without'} units, as in the fit")
            if unit != restored.units[0]:
                restored = _make_spread(panel, formula, symbol, unit)
        except DataError as error:
            rule = f"prices must have {symbol!r}, or the legs of this spread, {text}"
            raise DataError(f"{name}: {rule}; {str(error).removeprefix(f'{name}: ')}") from None
        panel = panel.join(restored)
    return panel


def _formula(legs: object) -> SpreadFormula:
    if isinstance(legs, str):
        return parse_spread(legs)
    if not isinstance(legs, Mapping):
        rule = f"legs must be a mapping of symbols to weights, or a text: {grammar()}"
        raise TypeError(f"{current_operation()}: {rule}; got {type(legs).__name__}")
    weights = _numbers("weights", legs)
    check_weights(weights)
    return SpreadFormula(format_formula(weights), weights)


def _numbers(argument: str, numbers: Mapping[str, float]) -> dict[str, float]:
    """Weights or factors by symbol, checked to be numbers that are finite and not zero."""
    try:
        values = {str(symbol): float(number) for symbol, number in numbers.items()}
    except (AttributeError, TypeError, ValueError):
        raise TypeError(f"{current_operation()}: {argument} must be numbers by symbol; got {numbers!r}") from None
    check_numbers(argument, values)
    return values


def _make_spread(
    panel: Panel,
    formula: SpreadFormula,
    name: str,
    unit: str | None = None,
    factors: Mapping[str, float] = MappingProxyType({}),
) -> Panel:
    """The spread on the rows with a price of every leg, and what is doubtful about it; all rows if there is none."""
    pool = panel if panel.references is None else panel.join(panel.references)
    if name in pool.symbols:
        raise DataError(f"{current_operation()}: expected a name other than the symbols of the prices; got {name!r}")
    if formula.calendar is not None and not set(formula.legs) & {*pool.symbols}:
        result = _calendar_spread(pool, formula, name, unit)
    else:
        result = _combination(pool, formula, name, unit, factors)
    if not result.values.plain().isfinite().any():
        return result
    result = result.drop_empty_rows()
    return replace(result, findings=condense([*result.findings, *inspect(result)]))


def _combination(
    pool: Panel, formula: SpreadFormula, name: str, unit: str | None, factors: Mapping[str, float]
) -> Panel:
    """The sum of the legs, with the contract and the curve that they share."""
    usual = formula.usual
    legs = tuple(Leg(symbol, weight) for symbol, weight in formula.legs.items()) if usual is None else usual.legs
    products = [None] * len(legs) if usual is None else [leg.symbol for leg in legs]
    if usual is not None:
        legs = tuple(replace(leg, symbol=_find_product(pool, leg.symbol, formula)) for leg in legs)
    symbols = [leg.symbol for leg in legs]
    _check_symbols("legs", symbols, pool.symbols, formula.name)
    _check_symbols("factors", factors, symbols)
    part = pool.select(symbols)
    if any(part.averages) and not all(part.averages):
        mixed = summarize_names(symbol for symbol, average in zip(symbols, part.averages) if not average)
        raise DataError(
            f"{current_operation()}: expected legs that are all averages of their period, or none; got {mixed} beside "
            "averages; see Panel.with_averages"
        )
    if usual is not None:
        inner, unit = usual.unit, unit or usual.unit
    else:
        inner = unit = _common_unit(part) if unit is None else unit
    numbers = [
        leg.weight * _factor(part, n, leg.unit or inner, product, factors)
        for n, (leg, product) in enumerate(zip(legs, products))
    ]
    scale = 1.0 if unit == inner else _convert(name, inner, unit, "S")
    weights, values = torch.tensor(numbers, dtype=torch.double) * scale, part.values.plain()
    terms = values * weights
    total = terms.sum(1, keepdim=True)  # the rest of prices that are equal but for rounding is zero
    total = total.masked_fill(total.abs() <= ROUNDING * terms.abs().sum(1, keepdim=True), 0.0)
    text = format_formula({leg.symbol: leg.weight * factors.get(leg.symbol, 1.0) for leg in legs})
    names = [key for key, one in USUAL_SPREADS.items() if one is usual]
    # with factors of the user's the formula alone does not make the spread again
    series = f"spread, with factors: {text}" if factors else f"{SPREAD_SERIES}{''.join(names) or text}"
    return Panel(
        MetadataTensor(total),
        part.dates,
        (name,),
        (unit,),
        (_merge_provenance(part, series),),
        averages=part.averages[:1],
        calendars=part.calendars[:1],
        **_futures(part, weights, name),
    )


def _calendar_spread(pool: Panel, formula: SpreadFormula, name: str, unit: str | None) -> Panel:
    """The near less the far contract of the curve of a product."""
    assert formula.calendar is not None
    root, near, far = formula.calendar
    codes = zip(pool.symbols, pool.contracts, pool.curve_of)
    columns = [n for n, words in enumerate(codes) if root in words]
    if pool.curve is None or not columns or not pool.curve[:, columns[0]].isfinite().any():
        rule = f"symbols {root}{near} and {root}{far}, or the futures curve of {root} (add_curve, --curve)"
        raise DataError(f"{current_operation()}: {name!r} needs {rule}; got {summarize_names(pool.symbols)}")
    part = pool.select([pool.symbols[columns[0]]])
    closes = pool.curve.plain()[:, columns[0]]
    depth = int(closes.isfinite().any(0).nonzero().max()) + 1
    if not near < far <= depth:
        rule = f"the near contract first, among the {depth} of the curve"
        raise DataError(f"{current_operation()}: {name!r}: expected {rule}; got {near} and {far}")
    code = part.contracts[0] or part.curve_of[0]
    own_unit = "" if part.contracts[0] is None else part.units[0]  # the curve of a spot price may be in another
    factor = _convert(name, own_unit, unit, code) if unit and own_unit else 1.0
    curve = factor * (closes[:, near - 1 : depth - (far - near)] - closes[:, far - 1 : depth])
    return Panel(
        MetadataTensor(curve[:, :1].clone()),
        part.dates,
        (name,),
        (unit or own_unit,),
        (_merge_provenance(part, f"{SPREAD_SERIES}{root}{near}-{root}{far}"),),
        contracts=(code,),
        curve=MetadataTensor(curve[:, None]),
        findings=tuple(replace(finding, symbol=name) for finding in part.findings if finding.kind == "curve ended"),
        deliveries=None if part.contracts[0] is None else part.deliveries,
    )


def _futures(part: Panel, weights: Tensor, name: str) -> dict[str, Any]:
    """Contract, deliveries and curve that the futures among the legs share, and what is left out of them."""
    futures = [n for n, is_spot in enumerate(part.spot) if not is_spot]
    has_curve = [] if part.curve is None else part.curve.isfinite().any(2).any(0).tolist()
    if not futures:
        spot = [symbol for symbol, known in zip(part.symbols, has_curve) if known]
        left_out = (
            [make_finding("curve left out", name, value=f"of the spot prices {summarize_names(spot)}")] if spot else []
        )
        return {"findings": tuple(left_out)}
    names = [part.symbols[n] for n in futures]
    flags = part.select(names).roll_months(YEAR)
    if not (flags == flags[:, :1]).all():
        codes = [f"{symbol} {part.contracts[n] or 'by its own months'}" for symbol, n in zip(names, futures)]
        value = f"futures of several roll rules, {summarize_names(codes)}"
        return {"findings": (make_finding("legs roll apart", name, value=value),)}
    fields: dict[str, Any] = {"contracts": (part.contracts[futures[0]],)}
    if part.deliveries is not None:
        fields["deliveries"] = part.deliveries[:, [futures[0]]]
    if missing := [symbol for symbol, n in zip(names, futures) if part.curve is not None and not has_curve[n]]:
        return fields | {
            "findings": (make_finding("curve left out", name, value=f"none of {summarize_names(missing)}"),)
        }
    if part.curve is not None:
        is_spot = torch.tensor(part.spot)[:, None]
        closes = torch.where(is_spot, part.values.plain()[..., None], part.curve.plain())
        fields["curve"] = MetadataTensor((closes * weights[:, None]).sum(1, keepdim=True))
        fields["findings"] = tuple(replace(x, symbol=name) for x in part.findings if x.kind == "curve ended")
    return fields


def _find_product(pool: Panel, code: str, formula: SpreadFormula) -> str:
    """The symbol of a product: by its contract, else by a usual name."""
    by_contract = [symbol for symbol, contract in zip(pool.symbols, pool.contracts) if contract == code]
    known = {symbol.upper(): symbol for symbol in reversed(pool.symbols)}
    by_name = [known[usual] for usual in PRODUCT_SYMBOLS[code] if usual in known]
    by_code = [symbol for symbol in pool.symbols if find_product(symbol.upper().removesuffix("=F")) == code]
    if matches := [*by_contract, *by_code, *by_name]:
        return matches[0]
    raise DataError(
        f"{current_operation()}: {formula.name!r} needs a price of {code}: a symbol with this contract (contracts=, "
        f"--contracts SYMBOL={code}) or named {', '.join(PRODUCT_SYMBOLS[code])}; got {summarize_names(pool.symbols)}"
    )


def _check_symbols(argument: str, symbols: Iterable[str], known: Sequence[str], text: str = "") -> None:
    """Raise a `DataError` for an unknown symbol, with the nearest one, or the usual spread nearest to the text."""
    for symbol in symbols:
        if symbol not in known:
            upper = {name.upper(): name for name in known}
            usual = get_close_matches(text.lower(), USUAL_SPREADS, n=1, cutoff=0.75)
            nearest = usual or [upper[name] for name in get_close_matches(symbol.upper(), upper, n=1)]
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"the symbols are {summarize_names(known)}"
            raise DataError(f"{current_operation()}: unknown symbol {symbol!r} in {argument}; {hint}")


def _common_unit(part: Panel) -> str:
    """The unit of all legs or, where these differ, the one of the largest quantity: $/bbl of $/gal and $/bbl."""
    units = dict.fromkeys(part.units)
    parsed = [(known.kind, known.size, unit) for unit in units if (known := parse_unit(unit))]
    sizes = [(size, unit) for kind, size, unit in parsed if kind == parsed[0][0]]
    return max(sizes)[1] if len(units) > 1 and sizes else part.units[0]


def _factor(part: Panel, n: int, unit: str, product: str | None, factors: Mapping[str, float]) -> float:
    """The number that turns the price of leg n into the unit that its weight multiplies."""
    symbol = part.symbols[n]
    if symbol in factors:
        return factors[symbol]
    if product is None and not any(part.units):
        return 1.0  # a table without units: the weights say all
    return _convert(symbol, part.units[n], unit, product or part.contracts[n])


def _convert(symbol: str, unit: str, target: str, product: str | None) -> float:
    try:
        return unit_factor(unit, target, product)
    except ValueError as error:
        remedy = f"convert its prices, or pass factors={{{symbol!r}: ...}}, the number that turns them into {target}"
        raise DataError(f"{current_operation()}: cannot convert {symbol!r} to {target}: {error}; {remedy}") from None


def _merge_provenance(part: Panel, series: str) -> Provenance:
    """The origin of all legs: not stated, or generated, where that of one is."""

    def texts(field: str) -> str:
        return "; ".join(dict.fromkeys(text for record in part.provenance if (text := getattr(record, field))))

    publisher = texts("publisher") if all(record.is_stated for record in part.provenance) else NOT_STATED
    is_real = not any(map(is_generated, part.symbols, part.provenance))
    own = [f"{symbol} {record.series}".strip() for symbol, record in zip(part.symbols, part.provenance)]
    return Provenance(
        publisher if is_real else SYNTHETIC,
        texts("location"),
        texts("license"),
        max(record.retrieved for record in part.provenance),
        texts("sha256"),
        f"{series} ({', '.join(own)})",
        texts("credit"),
    )
