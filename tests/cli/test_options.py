"""The shared options: one meaning in all commands, and checks of names before any work."""

import inspect
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from typer.testing import Result

from torchcommodity.cli import _prices
from torchcommodity.cli._application import COMMANDS, app
from torchcommodity.data import ReadArguments, embedded, read
from torchcommodity.forecast import data_hash

Run = Callable[..., Result]


def test_options_of_one_name_have_one_meaning() -> None:
    """Each option that commands share has the same spelling, text and default in all of them."""
    group, shared = typer.main.get_command(app), {"symbols", "contracts", "curve", "config", "horizons", "levels"}
    shared |= {"executor", "address", "seed", "quiet", "column", "covariates", "lag"}
    meanings: dict[str, set[tuple[object, ...]]] = {}
    for name in COMMANDS:
        for option in group.get_command(None, name).params:  # type: ignore[attr-defined]
            assert all("_" not in spelling for spelling in option.opts if spelling.startswith("-")), name
            if option.name in shared:
                meaning = (*option.opts, option.metavar, option.help, option.default)
                meanings.setdefault(option.name, set()).add(meaning)
    assert meanings.keys() == shared
    assert {name: len(versions) for name, versions in meanings.items()} == dict.fromkeys(meanings, 1)


def test_options_of_a_source_are_all_the_keywords_that_say_how_it_is_read() -> None:
    options = [field.name for field in fields(_prices.SourceOptions)]
    assert set(ReadArguments.__annotations__) <= set(options) <= set(inspect.signature(read).parameters)


@pytest.mark.parametrize("source", ["embedded", "auto", "store:x", "fred:DCOILWTICO", "eia:PET.RWTC.D", __file__])
def test_check_source_accepts(source: str) -> None:
    assert _prices.check_source(source) == source


def test_check_source_says_that_a_pipe_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "prices.csv")
    with pytest.raises(typer.BadParameter, match="', which is a pipe or device"):
        _prices.check_source(str(tmp_path / "prices.csv"))


def test_check_source_accepts_tables_of_panels(tmp_path: Path) -> None:
    (tmp_path / "p.duckdb").write_bytes(b"DUCK")
    for source in (f"{tmp_path}/p.duckdb:prices", str(tmp_path), f"{tmp_path}/*.parquet", "embedded"):
        assert _prices.check_source(source) == source


def test_read_prices_attaches_contracts_and_curve(prices: Path, tmp_path: Path) -> None:
    curve = tmp_path / "curve.csv"
    close = embedded(["WTI"]).between("2015-07-01", "2018-12-31").to_pandas()["WTI"].dropna()
    close.rename("close").rename_axis("date").reset_index().assign(symbol="WTI", nth=1).to_csv(curve, index=False)
    spot = _prices.read_prices(str(prices), "WTI,BRENT")
    futures = _prices.read_prices(str(prices), "WTI,BRENT", "WTI=CL", curve)
    assert futures.contracts == ("CL", None)
    assert futures.curve is not None
    assert futures.curve.shape == (len(spot), 2, 1)
    assert len({data_hash(panel) for panel in (spot, spot.with_contracts({"WTI": "CL"}), futures)}) == 3


def test_read_prices_attaches_calendars(prices: Path) -> None:
    shanghai = _prices.read_prices(str(prices), "WTI,BRENT", options=_prices.SourceOptions(calendar="XSHG"))
    assert shanghai.calendars == ("XSHG", "XSHG")
    options = _prices.SourceOptions(calendar="BRENT=LSE")
    assert _prices.read_prices(str(prices), "WTI,BRENT", options=options).calendars == (None, "LSE")
