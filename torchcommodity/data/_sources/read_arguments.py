"""What the caller says about a source: the keywords that `read` and the functions like it have in common."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypedDict, TypeVar, cast, get_type_hints

from torchcommodity._choices import Adjustment, DateOrder, DecimalMark

Function = TypeVar("Function", bound=Callable[..., Any])


class TableArguments(TypedDict, total=False):
    """Keywords of the functions that read a table: `read`, `to_panel`, `read_bars`, `read_contracts`, `to_covariates`.

    Args:
        column: name of the column of prices (`to_covariates`: of values); default: found by its name and cells.
        symbol: name of the column of symbols; default: likewise.
        contract: name of the column of contracts, such as CLZ24, or of delivery months; default: likewise.
        date: name of the column of dates; default: likewise.
        encoding: of a text file, such as "gb18030" or "cp1251"; default: UTF-8, else as its words prove.
        decimal: the decimal mark, "." or ","; default: as the numbers prove.
        date_order: order of year, month and day in dates such as 03/04/2020: "ymd", "dmy" or "mdy"; default: as the
            dates prove.
        query_timeout: seconds that a query, or a view of a database, may take; default: 600.
    """

    column: str | None
    symbol: str | None
    contract: str | None
    date: str | None
    encoding: str | None
    decimal: DecimalMark | None
    date_order: DateOrder | None
    query_timeout: float | None


class ReadArguments(TableArguments, total=False):
    """Keywords of `read`, `to_panel` and `read_bars`: those of `TableArguments`, and the layout.

    Args:
        format: name of the layout, a `Format.name` of `data.FORMATS`; default: detected.
    """

    format: str | None


@dataclass(frozen=True)
class ReadOptions:
    """The keywords of `ReadArguments` as they travel, and those by which `read` joins a table by contract.

    Args:
        roll: the roll rule of a table by contract.
        adjustment: its back-adjustment.
        contracts: product codes of its symbols.
    """

    column: str | None = None
    symbol: str | None = None
    contract: str | None = None
    date: str | None = None
    encoding: str | None = None
    decimal: DecimalMark | None = None
    date_order: DateOrder | None = None
    query_timeout: float | None = None
    format: str | None = None
    roll: str | None = None
    adjustment: Adjustment | None = None
    contracts: Mapping[str, str | None] | None = None


def unpack_keywords(function: Function) -> Function:
    """Show the keywords of `**arguments: Unpack[...]` in the signature, and reject others as Python does.

    >>> from typing_extensions import Unpack
    >>> @unpack_keywords
    ... def prices(path: str, **arguments: Unpack[TableArguments]) -> None: ...
    >>> prices("wti.csv", colum="close")
    Traceback (most recent call last):
    TypeError: prices() got an unexpected keyword argument 'colum'
    """
    signature = inspect.signature(function)
    *own, rest = signature.parameters.values()
    (bundle,) = rest.annotation.__args__
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in get_type_hints(bundle).items()
    ]
    expanded = signature.replace(parameters=[*own, *keywords])

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in expanded.parameters:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
        return function(*arguments, **keywords)

    call.__signature__ = expanded  # type: ignore[attr-defined]  # what help() and editors show
    return cast(Function, call)
