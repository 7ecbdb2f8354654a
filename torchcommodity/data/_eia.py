"""The US Energy Information Administration, version 2 of its interface; a free key in `EIA_API_KEY`."""

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from torchcommodity.data._cells import parse_price
from torchcommodity.data._errors import DataError, found
from torchcommodity.data._grid import Days, Grid, Origin
from torchcommodity.data._http import Http, Reply, get
from torchcommodity.data._panel import Panel
from torchcommodity.data._publishers import base_address, joined, one_series, series_names

ADDRESS = "https://api.eia.gov"
LICENCE = "public domain (US Government)"
PAGE = 5000  # rows; the publisher returns no more at a time

Record = dict[str, Any]


def eia(
    ids: str | Iterable[str], *, key: str | None = None, base: str | None = None, http: Http | None = None
) -> Panel:
    """Series of the EIA by id ("PET.RWTC.D", "NG.RNGWHHD.D"), as published, with their units.

    A monthly period is dated on its first day, a yearly one on 1 January.

    Args:
        ids: ids, or one string of them separated by commas.
        key: the personal key; default `$EIA_API_KEY`. It is written nowhere.
        base: address of the publisher; default `$TORCHCOMMODITY_EIA_URL`, else https://api.eia.gov.
        http: time-outs, retries, cache; default `Http()`.

    Returns:
        Prices `(T, N)` float64 in the publisher's units, NaN = missing.

    Raises:
        DataError: no key, no answer, a refusal, or an answer that is no such series.

    Source: https://www.eia.gov/opendata/documentation.php

    >>> eia("")
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: eia: expected distinct series ids, such as eia:ID,ID; got ''
    """
    names = series_names(ids, "eia")
    secret = key or os.environ.get("EIA_API_KEY", "")
    if not secret:
        raise DataError(
            "eia: expected a key in EIA_API_KEY (free at https://www.eia.gov/opendata/register.php); got none"
        )
    address = base_address(base, "TORCHCOMMODITY_EIA_URL", ADDRESS) + "/v2/seriesid/"
    settings = http or Http()
    return joined(names, lambda name: _series(address + name, name, secret, settings))


def _series(address: str, name: str, key: str, http: Http) -> Panel:
    records: list[Record] = []
    replies: list[Reply] = []
    total = 1
    while len(records) < total:
        query = {"offset": str(len(records)), "length": str(PAGE)}
        reply, (page, total) = get(address, query, _page, http=http, secret={"api_key": key})
        if not page:
            raise DataError(f"{reply.address}: expected {total} records of {name}; got {len(records)}")
        replies.append(reply)
        records += page
    origin = _origin(replies)
    panel = one_series(_grid(records, name, origin), origin)
    old = tuple(found("old copy", name, r.retrieved[:10], value=r.retrieved) for r in replies if r.old)
    return replace(panel, findings=old + panel.findings)


def _origin(replies: list[Reply]) -> Origin:
    digest = "+".join(reply.sha256 for reply in replies)
    retrieved = min(reply.retrieved for reply in replies)
    address = replies[0].address.partition("?")[0]
    return Origin(address, "US Energy Information Administration", LICENCE, retrieved, digest, "record")


def _page(reply: Reply) -> tuple[list[Record], int]:
    try:
        answer = json.loads(reply.body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DataError(f"{reply.address}: expected JSON; got {reply.body[:60]!r}") from None
    if isinstance(answer, dict) and "error" in answer:
        error = answer["error"]
        raise DataError(f"{reply.address}: expected data; got the error {_text(error)!r}")
    response = answer.get("response") if isinstance(answer, dict) else None
    data = response.get("data") if isinstance(response, dict) else None
    if not isinstance(data, list) or not all(isinstance(record, dict) for record in data):
        raise DataError(f"{reply.address}: expected response.data, a list of records; got {_text(answer)!r}")
    total = str((response or {}).get("total", len(data)))
    if not total.isascii() or not total.isdigit():
        raise DataError(f"{reply.address}: expected a number in response.total; got {total!r}")
    return data, int(total)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _text(value: Any) -> str:
    return str(value["message"] if isinstance(value, dict) and "message" in value else value)[:160]


def _grid(records: list[Record], name: str, origin: Origin) -> Grid:
    calendar = Days(origin)
    days = [calendar.read(_period(record), line) for line, record in enumerate(records, 1)]
    values = [_value(record, line, name, origin) for line, record in enumerate(records, 1)]
    units = {str(record.get("units") or record.get("unit") or "") for record in records}
    if len(units) > 1:
        raise DataError(f"{origin.place}: expected one unit for {name!r}; got {', '.join(sorted(units))}")
    grid = Grid(
        np.array(days, dtype="datetime64[D]"),
        np.arange(1, len(days) + 1),
        np.array(values).reshape(-1, 1),
        (name,),
        units=tuple(units),
    )
    newest_first = len(days) > 1 and days[0] > days[-1]  # the publisher's own order is no finding
    return (
        replace(grid, days=grid.days[::-1], lines=grid.lines[::-1], values=grid.values[::-1]) if newest_first else grid
    )


def _period(record: Record) -> str:
    period = str(record.get("period") or "")
    return period + {4: "-01-01", 7: "-01"}.get(len(period), "")


def _value(record: Record, line: int, name: str, origin: Origin) -> float:
    value = record.get("value", ...)
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        got = "no field 'value'" if value is ... else repr(value)
        raise DataError(f"{origin.at(line)}: {name!r}: expected a price; got {got}")
    try:
        return parse_price(str(value))
    except ValueError as error:
        raise DataError(f"{origin.at(line)}: {name!r}: expected {error}") from None
