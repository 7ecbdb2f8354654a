"""The shared options: light copies of constants of the library, and checks of names before any work."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import Result

from torchcommodity import models, training
from torchcommodity.cli import _device, _options
from torchcommodity.cli._application import COMMANDS, _load
from torchcommodity.data import embedded
from torchcommodity.forecast import data_hash
from torchcommodity.training import FitConfig

Run = Callable[..., Result]


def test_options_constants_equal_those_of_the_library() -> None:
    assert tuple(models.MODELS) == _options.MODELS
    assert models.model_name(FitConfig().model) == _options.DEFAULT_MODEL
    assert get_args(get_args(_options.Executor)[0]) == get_args(training.ExecutorName)
    assert _device.DEVICE == training._device.DEVICE


def test_options_of_one_name_have_one_meaning() -> None:
    """Every parameter `data`, `seed`, ... has the same option name, default and, but for tables, annotation."""
    functions = {
        name: getattr(__import__(f"torchcommodity.cli._{name}", fromlist=[name]), name, None) for name in COMMANDS
    }
    shared = {"symbols", "contracts", "curve", "config", "horizons", "levels", "executor", "address", "seed", "quiet"}
    for name, function in functions.items():
        for parameter in inspect.signature(function).parameters.values() if callable(function) else ():
            if parameter.name in shared:
                expected = getattr(_options, {"curve": "CurveFile"}.get(parameter.name, parameter.name.capitalize()))
                assert parameter.annotation == expected, f"{name} --{parameter.name}"
    for name in COMMANDS:
        for option in _load(name).params:
            assert all("_" not in spelling for spelling in option.opts if spelling.startswith("-")), name


@pytest.mark.parametrize("source", ["embedded", "auto", "store:x", "fred:DCOILWTICO", "eia:PET.RWTC.D", __file__])
def test_check_source_accepts(source: str) -> None:
    assert _options.check_source(source) == source


def test_check_panels_accepts_tables_of_panels(tmp_path: Path) -> None:
    (tmp_path / "p.duckdb").touch()
    for source in (f"{tmp_path}/p.duckdb:prices", str(tmp_path), f"{tmp_path}/*.parquet", "embedded"):
        assert _options.check_panels(source) == source


def test_read_prices_attaches_contracts_and_curve(prices: Path, tmp_path: Path) -> None:
    curve = tmp_path / "curve.csv"
    close = embedded(["WTI"]).between("2015-07-01", "2018-12-31").to_pandas()["WTI"].dropna()
    close.rename("close").rename_axis("date").reset_index().assign(symbol="WTI", nth=1).to_csv(curve, index=False)
    spot = _options.read_prices(str(prices), "WTI,BRENT")
    futures = _options.read_prices(str(prices), "WTI,BRENT", "WTI=CL", curve)
    assert futures.contracts == ("CL", None)
    assert futures.curve is not None
    assert futures.curve.shape == (len(spot), 2, 1)
    assert len({data_hash(panel) for panel in (spot, spot.with_contracts({"WTI": "CL"}), futures)}) == 3
