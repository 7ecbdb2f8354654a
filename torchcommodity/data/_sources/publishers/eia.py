"""The US Energy Information Administration, version 2 of its API; a free key in `EIA_API_KEY`."""

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from torchcommodity.data._core.errors import DataError, make_finding
from torchcommodity.data._core.panel import DateLike, Panel, to_day
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.columns.dates import parse_dates
from torchcommodity.data._sources.columns.numbers import price_problem, to_number
from torchcommodity.data._sources.grid import Grid
from torchcommodity.data._sources.publishers.http import Http, Response, get
from torchcommodity.data._sources.publishers.series import base_address, join_series, parse_ids, series_panel
from torchcommodity.data._sources.tables.table import Origin

ADDRESS = "https://api.eia.gov"
PUBLISHER = "US Energy Information Administration"
LICENSE = "public domain (US Government)"
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
    address = base_address(base, "TORCHCOMMODITY_EIA_URL", ADDRESS) + "/v2/seriesid/"
    settings = http or Http()
    first = None if start is None else to_day(start)
    return join_series(names, lambda name: _series(address + name, name, first, secret, settings))


def is_eia(record: Provenance) -> bool:
    """Whether a column was downloaded by `eia`."""
    return record.publisher == PUBLISHER and record.location.endswith(f"/v2/seriesid/{record.series}")


def _series(address: str, name: str, start: np.datetime64 | None, key: str, http: Http) -> Panel:
    period = {} if start is None else {"start": _start_period(name, start)}
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
    origin = _origin(responses)
    panel = series_panel(_grid(records, name, origin))
    times = [response.retrieved for response in responses if response.expired]
    expired = tuple(make_finding("cached copy", name, time[:10], value=time) for time in times)
    return replace(panel, findings=expired + panel.findings)


def _origin(responses: list[Response]) -> Origin:
    digest = "+".join(response.sha256 for response in responses)
    retrieved = min(response.retrieved for response in responses)
    address = responses[0].address.partition("?")[0]
    return Origin(address, PUBLISHER, LICENSE, retrieved, digest, "record")


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


def _grid(records: list[Record], name: str, origin: Origin) -> Grid:
    periods = parse_dates([_period(record) for record in records])
    if periods.bad.any():
        row = int(periods.bad.argmax())
        raise DataError(f"{origin.at(row + 1)}: {periods.problem(row)}")
    days = periods.values.astype("datetime64[D]")
    values = [_price(record, line, name, origin) for line, record in enumerate(records, 1)]
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


def _start_period(name: str, start: np.datetime64) -> str:
    """The first period in the form of the series: a year or a month for an id that ends in A or M, else a day."""
    unit = {"A": "Y", "M": "M"}.get(name.rpartition(".")[2], "D")
    return str(start.astype(f"datetime64[{unit}]"))


def _period(record: Record) -> str:
    period = str(record.get("period") or "")
    return period + {4: "-01-01", 7: "-01"}.get(len(period), "")


def _price(record: Record, line: int, name: str, origin: Origin) -> float:
    value = record.get("value", ...)
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        got = "no field 'value'" if value is ... else repr(value)
        raise DataError(f"{origin.at(line)}: {name!r}: expected a price; got {got}")
    if np.isinf(number := to_number(str(value))):
        raise DataError(f"{origin.at(line)}: {name!r}: expected {price_problem(str(value))}")
    return number
