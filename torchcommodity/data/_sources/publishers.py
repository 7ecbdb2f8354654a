"""Publishers of series: FRED, the database of the Federal Reserve Bank of St. Louis, and the EIA of the United States.

Series are fetched one at a time and joined into one panel.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import torch

from torch_opkit import MetadataTensor
from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.date_checks import DateLike, to_day
from torchcommodity.data._core.errors import DataError, condense, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.build import Grid, assemble, build_grid
from torchcommodity.data._sources.columns.dates import parse_dates
from torchcommodity.data._sources.columns.numbers import price_problem, to_number
from torchcommodity.data._sources.locations import Http, Response, get
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.roles import assign_roles
from torchcommodity.data._sources.tables.delimited import read_delimited
from torchcommodity.data._sources.tables.table import Origin


def base_address(address: str | None, variable: str, default: str) -> str:
    """`address`, or that of the environment variable, or `default`; without a trailing slash."""
    return (address or os.environ.get(variable) or default).rstrip("/")


def parse_ids(ids: str | Iterable[str], publisher: str) -> list[str]:
    """Parse series ids; a repeated or malformed id is a `DataError`."""
    names = [name.strip() for name in (ids.split(",") if isinstance(ids, str) else ids)]
    invalid = [name for name in names if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,100}", name)]
    if invalid or not names or len(set(names)) < len(names):
        raise DataError(
            f"{publisher}: expected distinct series ids, such as {publisher}:ID,ID; got {','.join(names)!r}"
        )
    return names


def series_panel(grid: Grid) -> Panel:
    """Build the panel of one series; days without a price (holidays) are dropped and counted in a finding."""
    empty = np.isnan(grid.values[:, 0])
    if empty.all():
        raise DataError(f"{grid.origin.label}: expected prices; got none in {len(empty)} {grid.origin.row_word}s")
    trading_days = replace(grid, days=grid.days[~empty], lines=grid.lines[~empty], values=grid.values[~empty])
    panel = assemble(trading_days)
    findings = [replace(finding, symbol=grid.symbols[0]) for finding in panel.findings]
    if empty.any():
        first = int(np.argmax(empty))
        day, line = grid.days[first], int(grid.lines[first])
        findings.append(make_finding("no trading", grid.symbols[0], day, line, "no price", int(empty.sum())))
    return replace(panel, findings=tuple(findings))


def join_series(names: list[str], fetch: Callable[[str], Panel]) -> Panel:
    """Join series on the days on which at least one has a price; NaN = missing."""
    parts = [fetch(name) for name in names]
    dates = np.unique(np.concatenate([part.dates for part in parts]))
    values = np.full((len(dates), len(parts)), np.nan)
    for column, part in enumerate(parts):
        values[np.searchsorted(dates, part.dates), column] = part.values.plain().numpy()[:, 0]
    return Panel(
        MetadataTensor(torch.from_numpy(values)),
        dates,
        tuple(names),
        tuple(part.units[0] for part in parts),
        tuple(part.provenance[0] for part in parts),
        findings=condense(finding for part in parts for finding in part.findings),
    )


FRED_ADDRESS = "https://fred.stlouisfed.org"
FRED_PUBLISHER = "FRED, Federal Reserve Bank of St. Louis"
FRED_LICENSE = "as stated on the series' page of FRED"


def fred(
    ids: str | Iterable[str], *, start: DateLike = None, base: str | None = None, http: Http | None = None
) -> Panel:
    """Download series of FRED by id ("DCOILWTICO", "DHHNGSP"), on the days on which at least one has a price.

    Args:
        ids: ids, or one string of them separated by commas.
        start: first date; default: the whole history.
        base: address of the publisher; default `$TORCHCOMMODITY_FRED_URL`, else https://fred.stlouisfed.org.
        http: timeouts, retries, cache; default `Http()`.

    Returns:
        Prices `(T, N)` float64, NaN = missing. FRED's CSV does not state units, so they are "".

    Raises:
        DataError: no response, an error response, or a response that is not this series.

    Source: https://fred.stlouisfed.org/graph/fredgraph.csv?id=DCOILWTICO

    >>> fred("DCOILWTICO;")
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: fred: expected distinct series ids, such as fred:ID,ID; got 'DCOILWTICO;'
    """
    address = base_address(base, "TORCHCOMMODITY_FRED_URL", FRED_ADDRESS) + "/graph/fredgraph.csv"
    query = {} if start is None else {"cosd": str(to_day(start))}
    settings = http or Http()
    return join_series(parse_ids(ids, "fred"), lambda name: _fred_series(address, name, query, settings))


def is_fred(record: Provenance) -> bool:
    """Whether a column was downloaded by `fred`; a spread of such columns was not."""
    is_series = f"id={record.series}" in record.location and "/graph/fredgraph.csv?" in record.location
    return record.publisher == FRED_PUBLISHER and is_series


def _fred_series(address: str, name: str, query: dict[str, str], http: Http) -> Panel:
    def parse(response: Response) -> Grid:
        origin = Origin(response.address, FRED_PUBLISHER, FRED_LICENSE, response.retrieved, response.sha256)
        grid = build_grid(assign_roles(read_delimited(response.body, origin), ReadOptions()), ReadOptions())
        if grid.codes is not None or grid.symbols != (name,):
            got = ",".join(grid.symbols)
            raise DataError(f"{response.address}, line 1: expected columns observation_date,{name}; got {got}")
        return grid

    response, grid = get(address, {"id": name, **query}, parse, http=http)
    panel = series_panel(grid)
    if not response.expired:
        return panel
    expired = make_finding("cached copy", name, response.retrieved[:10], value=response.retrieved)
    return replace(panel, findings=(expired, *panel.findings))


EIA_ADDRESS = "https://api.eia.gov"
EIA_PUBLISHER = "US Energy Information Administration"
EIA_LICENSE = "public domain (US Government)"
PAGE_ROWS = 5000  # the publisher's limit

Record = dict[str, Any]


def eia(
    ids: str | Iterable[str],
    *,
    start: DateLike = None,
    key: str | None = None,
    base: str | None = None,
    http: Http | None = None,
) -> Panel:
    """Download series of the EIA by id ("PET.RWTC.D", "NG.RNGWHHD.D"), with their units.

    A monthly period is dated on its first day, a yearly one on 1 January.

    Args:
        ids: ids, or one string of them separated by commas.
        start: first date; default: the whole history.
        key: personal key; default `$EIA_API_KEY`. It is never written to a file, record or message.
        base: address of the publisher; default `$TORCHCOMMODITY_EIA_URL`, else https://api.eia.gov.
        http: timeouts, retries, cache; default `Http()`.

    Returns:
        Prices `(T, N)` float64 in the publisher's units, NaN = missing.

    Raises:
        DataError: no key, no response, an error response, or a response that is not this series.

    Source: https://www.eia.gov/opendata/documentation.php

    >>> eia("")
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: eia: expected distinct series ids, such as eia:ID,ID; got ''
    """
    names = parse_ids(ids, "eia")
    secret = key or os.environ.get("EIA_API_KEY", "")
    if not secret:
        raise DataError(
            "eia: expected a key in EIA_API_KEY (free at https://www.eia.gov/opendata/register.php); got none"
        )
    address = base_address(base, "TORCHCOMMODITY_EIA_URL", EIA_ADDRESS) + "/v2/seriesid/"
    settings = http or Http()
    first = None if start is None else to_day(start)
    return join_series(names, lambda name: _eia_series(address + name, name, first, secret, settings))


def is_eia(record: Provenance) -> bool:
    """Whether a column was downloaded by `eia`."""
    return record.publisher == EIA_PUBLISHER and record.location.endswith(f"/v2/seriesid/{record.series}")


def _eia_series(address: str, name: str, start: np.datetime64 | None, key: str, http: Http) -> Panel:
    period = {}
    if start is not None:  # in the form of the series: a year or a month for an id that ends in A or M, else a day
        unit = {"A": "Y", "M": "M"}.get(name.rpartition(".")[2], "D")
        period["start"] = str(start.astype(f"datetime64[{unit}]"))
    records: list[Record] = []
    responses: list[Response] = []
    total = 1
    while len(records) < total:
        query = {"offset": str(len(records)), "length": str(PAGE_ROWS), **period}
        response, (page, total) = get(address, query, _page, http=http, secret={"api_key": key})
        if not page:
            raise DataError(f"{response.address}: expected {total} records of {name}; got {len(records)}")
        responses.append(response)
        records += page
    digest = "+".join(response.sha256 for response in responses)
    retrieved = min(response.retrieved for response in responses)
    origin = Origin(responses[0].address.partition("?")[0], EIA_PUBLISHER, EIA_LICENSE, retrieved, digest, "record")
    panel = series_panel(_eia_grid(records, name, origin))
    times = [response.retrieved for response in responses if response.expired]
    expired = tuple(make_finding("cached copy", name, time[:10], value=time) for time in times)
    return replace(panel, findings=expired + panel.findings)


def _page(response: Response) -> tuple[list[Record], int]:
    """The records of a page and the number of records of the series."""
    try:
        document = json.loads(response.body, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise DataError(f"{response.address}: expected JSON; got {response.body[:60]!r}") from None
    if isinstance(document, dict) and "error" in document:
        raise DataError(f"{response.address}: expected data; got the error {_excerpt(document['error'])!r}")
    content = document.get("response") if isinstance(document, dict) else None
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list) or not all(isinstance(record, dict) for record in data):
        raise DataError(f"{response.address}: expected response.data, a list of records; got {_excerpt(document)!r}")
    total = str((content or {}).get("total", len(data)))
    if not total.isascii() or not total.isdigit():
        raise DataError(f"{response.address}: expected a number in response.total; got {total!r}")
    return data, int(total)


def _reject_constant(name: str) -> NoReturn:
    """NaN and Infinity are not JSON."""
    raise ValueError(name)


def _excerpt(value: Any) -> str:
    return str(value["message"] if isinstance(value, dict) and "message" in value else value)[:160]


def _eia_grid(records: list[Record], name: str, origin: Origin) -> Grid:
    texts = [str(record.get("period") or "") for record in records]
    periods = parse_dates([text + {4: "-01-01", 7: "-01"}.get(len(text), "") for text in texts])
    if periods.bad.any():
        row = int(periods.bad.argmax())
        raise DataError(f"{origin.at(row + 1)}: {periods.problem(row)}")
    days, values = periods.values.astype("datetime64[D]"), []
    for line, record in enumerate(records, 1):
        value = record.get("value", ...)
        value = "" if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            got = "no field 'value'" if value is ... else repr(value)
            raise DataError(f"{origin.at(line)}: {name!r}: expected a price; got {got}")
        if np.isinf(number := to_number(str(value))):
            raise DataError(f"{origin.at(line)}: {name!r}: expected {price_problem(str(value))}")
        values.append(number)
    units = {str(record.get("units") or record.get("unit") or "") for record in records}
    if len(units) > 1:
        raise DataError(f"{origin.label}: expected one unit for {name!r}; got {', '.join(sorted(units))}")
    grid = Grid(
        origin,
        days,
        np.arange(1, len(days) + 1),
        np.array(values).reshape(-1, 1),
        (name,),
        units=tuple(units),
    )
    if len(days) > 1 and days[0] > days[-1]:  # newest first is the publisher's own order, not a finding
        return replace(grid, days=grid.days[::-1], lines=grid.lines[::-1], values=grid.values[::-1])
    return grid


NEARBY = range(1, 5)
CURVES = {
    "CL": "PET.RCLC{}.D",
    "NG": "NG.RNGC{}.D",
    "HO": "PET.EER_EPD2F_PE{}_Y35NY_DPG.D",
    "RB": "PET.EER_EPMRR_PE{}_Y35NY_DPG.D",
}


def eia_curve(
    products: Mapping[str, str | None], *, key: str | None = None, base: str | None = None, http: Http | None = None
) -> Curve:
    """Download the closes of the contracts 1 to 4 of NYMEX crude oil, natural gas, heating oil and gasoline.

    Contract 1 is the nearest to expire, until its last trading day by the exchange's rule. **The EIA publishes no
    futures prices after 2024-04-05**; `Panel.with_curve` reports a curve that ends before the prices.

    Args:
        products: symbol -> product code, `CL`, `NG`, `HO` or `RB`; symbols of other products are skipped.
        key, base, http: as for `eia`.

    Returns:
        Closes `(T, N, 4)` in $/bbl, $/MMBtu or $/gal, NaN = missing; for `Panel.with_curve`.

    Raises:
        DataError: none of these products; otherwise as for `eia`.

    Source: https://www.eia.gov/dnav/pet/pet_pri_fut_s1_d.htm and https://www.eia.gov/dnav/ng/ng_pri_fut_s1_d.htm

    >>> eia_curve({"GOLD": "GC"})
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: eia curve: expected a symbol of CL, NG, HO or RB (--contracts WTI=CL); got GOLD=GC
    """
    templates = {symbol: CURVES[code] for symbol, code in products.items() if code in CURVES}
    if not templates:
        got = ", ".join(f"{symbol}={code}" for symbol, code in products.items()) or "none"
        raise DataError(f"eia curve: expected a symbol of CL, NG, HO or RB (--contracts WTI=CL); got {got}")
    ids = [template.format(nth) for template in dict.fromkeys(templates.values()) for nth in NEARBY]
    panel = eia(ids, key=key, base=base, http=http)
    columns = [[panel.symbols.index(template.format(nth)) for nth in NEARBY] for template in templates.values()]
    return Curve(panel.values.plain()[:, torch.tensor(columns)], panel.dates, tuple(templates), panel.findings)
