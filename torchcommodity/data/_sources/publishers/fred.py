"""FRED, the database of the Federal Reserve Bank of St. Louis: one CSV per series, no key needed."""

from collections.abc import Iterable
from dataclasses import replace

from torchcommodity.data._core.errors import DataError, make_finding
from torchcommodity.data._core.panel import DateLike, Panel, to_day
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.formats.roles import assign_roles
from torchcommodity.data._sources.grid import Grid, build_grid
from torchcommodity.data._sources.publishers.http import Http, Response, get
from torchcommodity.data._sources.publishers.series import base_address, join_series, parse_ids, series_panel
from torchcommodity.data._sources.tables.delimited import read_delimited
from torchcommodity.data._sources.tables.table import Origin

ADDRESS = "https://fred.stlouisfed.org"
PUBLISHER = "FRED, Federal Reserve Bank of St. Louis"
LICENSE = "as stated on the series' page of FRED"


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
    address = base_address(base, "TORCHCOMMODITY_FRED_URL", ADDRESS) + "/graph/fredgraph.csv"
    query = {} if start is None else {"cosd": str(to_day(start))}
    settings = http or Http()
    return join_series(parse_ids(ids, "fred"), lambda name: _series(address, name, query, settings))


def is_fred(record: Provenance) -> bool:
    """Whether a column was downloaded by `fred`."""
    return record.publisher == PUBLISHER and "/graph/fredgraph.csv?" in record.location


def _series(address: str, name: str, query: dict[str, str], http: Http) -> Panel:
    response, grid = get(address, {"id": name, **query}, lambda response: _grid(response, name), http=http)
    panel = series_panel(grid)
    if not response.expired:
        return panel
    expired = make_finding("cached copy", name, response.retrieved[:10], value=response.retrieved)
    return replace(panel, findings=(expired, *panel.findings))


def _grid(response: Response, name: str) -> Grid:
    origin = Origin(response.address, PUBLISHER, LICENSE, response.retrieved, response.sha256)
    grid = build_grid(assign_roles(read_delimited(response.body, origin), ReadOptions()), ReadOptions())
    if grid.codes is not None or grid.symbols != (name,):
        raise DataError(
            f"{response.address}, line 1: expected columns observation_date,{name}; got {','.join(grid.symbols)}"
        )
    return grid
