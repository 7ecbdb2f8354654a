"""FRED, the database of the Federal Reserve Bank of St. Louis: one CSV a series, no key needed."""

from collections.abc import Iterable
from dataclasses import replace

from torchcommodity.data._delimited import read_delimited
from torchcommodity.data._errors import DataError, found
from torchcommodity.data._grid import Grid, Origin
from torchcommodity.data._http import Http, Reply, get
from torchcommodity.data._panel import Panel
from torchcommodity.data._publishers import base_address, joined, one_series, series_names

ADDRESS = "https://fred.stlouisfed.org"
LICENCE = "as stated on the series' page of FRED"


def fred(ids: str | Iterable[str], *, base: str | None = None, http: Http | None = None) -> Panel:
    """Series of FRED by id ("DCOILWTICO", "DHHNGSP"), as published, on the days on which one of them has a price.

    Args:
        ids: ids, or one string of them separated by commas.
        base: address of the publisher; default `$TORCHCOMMODITY_FRED_URL`, else https://fred.stlouisfed.org.
        http: time-outs, retries, cache; default `Http()`.

    Returns:
        Prices `(T, N)` float64, NaN = missing. FRED's CSV does not state units: they are "".

    Raises:
        DataError: no answer, a refusal, or an answer that is no such series.

    Source: https://fred.stlouisfed.org/graph/fredgraph.csv?id=DCOILWTICO

    >>> fred("DCOILWTICO;")
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: fred: expected distinct series ids, such as fred:ID,ID; got 'DCOILWTICO;'
    """
    address = base_address(base, "TORCHCOMMODITY_FRED_URL", ADDRESS) + "/graph/fredgraph.csv"
    settings = http or Http()
    return joined(series_names(ids, "fred"), lambda name: _series(address, name, settings))


def _series(address: str, name: str, http: Http) -> Panel:
    reply, grid = get(address, {"id": name}, lambda reply: _grid(reply, name), http=http)
    panel = one_series(grid, _origin(reply))
    old = (found("old copy", name, reply.retrieved[:10], value=reply.retrieved),) if reply.old else ()
    return replace(panel, findings=old + panel.findings)


def _origin(reply: Reply) -> Origin:
    return Origin(reply.address, "FRED, Federal Reserve Bank of St. Louis", LICENCE, reply.retrieved, reply.sha256)


def _grid(reply: Reply, name: str) -> Grid:
    grid = read_delimited(reply.body, _origin(reply))
    if grid.codes is not None or grid.symbols != (name,):
        raise DataError(
            f"{reply.address}, line 1: expected columns observation_date,{name}; got {','.join(grid.symbols)}"
        )
    return grid
