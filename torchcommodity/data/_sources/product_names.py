"""Names of products: of futures by their product code, of embedded series by the publisher's key."""

import csv
from functools import cache

from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._sources.embedded.open_prices import FOLDER, TABLES


def product_name(contract: str | None, series: str = "") -> str:
    """Name of a commodity, "" where it is not known.

    Args:
        contract: product code of the exchange, a key of `CONTRACTS`; None = a spot price.
        series: the publisher's key of a spot price, as in `Provenance.series`.

    >>> product_name("BO"), product_name(None, "RWTC"), product_name(None, "close")
    ('Soybean oil', 'WTI crude oil, Cushing', '')
    """
    return _series_names().get(series, "") if contract is None else get_contract(contract).name


@cache
def _series_names() -> dict[str, str]:
    """Name by key of the series that the package ships, also where they are read from their publisher."""
    names: dict[str, str] = {}
    for table in TABLES.values():
        path = FOLDER / f"{table.name}_series.csv"
        if path.exists():  # the folder may have been left out
            rows = csv.DictReader(path.read_text("utf-8").splitlines())
            # the World Bank marks footnotes with asterisks
            names |= {row[table.series].rstrip(" *"): row["name"].rstrip(" *") for row in rows}
    return names
