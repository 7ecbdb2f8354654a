"""One word for every source of prices."""

from collections.abc import Callable, Sequence
from pathlib import Path

from torchcommodity.data._assemble import Loaded
from torchcommodity.data._eia import eia
from torchcommodity.data._embedded import embedded
from torchcommodity.data._errors import DataError
from torchcommodity.data._files import read
from torchcommodity.data._fred import fred
from torchcommodity.data._inspect import inspect
from torchcommodity.data._store import Store


def load(source: str | Path, symbols: Sequence[str] | None = None, *, store: Store | None = None) -> Loaded:
    """Prices from a source named in one word.

    | source | where from |
    |---|---|
    | `embedded` | the series that come with `arch` (`embedded()`); no network |
    | `auto` | the panel added last to the store, if there is any; else `embedded` |
    | `store:NAME` | the panel of this name in the store |
    | `fred:ID,ID` | FRED over HTTP (`fred()`) |
    | `eia:ID,ID` | EIA over HTTP (`eia()`), with a key in `EIA_API_KEY` |
    | anything else | a CSV or Parquet file (`read()`) |

    Args:
        source: see the table; a `Path` is always a file.
        symbols: only these, in this order; default: all.
        store: default `Store()`.

    Returns:
        `Loaded(panel, findings)`: prices `(T, N)` float64, NaN = missing, and everything doubtful with its treatment.

    Raises:
        DataError: what cannot be trusted, or an unknown symbol.

    >>> load("embedded", ["WTI"]).panel.units
    ('$/bbl',)
    """
    loaded = _load(source, store or Store())
    if symbols is None:
        return loaded
    panel = loaded.panel.select(symbols)
    return Loaded(panel, tuple(f for f in loaded.findings if f.symbol in ("", *panel.symbols)))


def _load(source: str | Path, store: Store) -> Loaded:
    if isinstance(source, Path):
        return read(source)
    if source == "auto":
        return store.load() if store.list() else _embedded()
    if source == "embedded":
        return _embedded()
    publisher, colon, rest = source.partition(":")
    named: dict[str, Callable[[str], Loaded]] = {"fred": fred, "eia": eia, "store": store.load}
    if colon and publisher in named:
        return named[publisher](rest)
    if not source.strip():
        raise DataError("source: expected embedded, auto, store:NAME, fred:ID, eia:ID or a path; got nothing")
    return read(source)


def _embedded() -> Loaded:
    return Loaded(embedded(), inspect(embedded()))
