"""Tables of panels for a forecaster with bars."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from torchcommodity import batch, data, forecast
from torchcommodity.export import Artifact, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)


@pytest.fixture(scope="module")
def bars() -> data.Panel:
    from arch.data import nasdaq, sp500

    frames = {"SP500": sp500.load()["2012":"2013"], "NASDAQ": nasdaq.load()["2012":"2013"]}
    return data.to_panel(pd.concat(frames, names=["symbol"]).reset_index())


@pytest.fixture(scope="module")
def forecaster(bars: data.Panel) -> Forecaster:
    return forecast.fit(bars, FitConfig(HarGarchConfig(CONFIG)))


def forecasts(path: Path) -> pd.DataFrame:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("SELECT * FROM forecasts").fetchdf()


def test_run_on_a_table_with_bars_equals_predict_bitwise(
    forecaster: Forecaster, bars: data.Panel, tmp_path: Path
) -> None:
    metadata = Artifact.from_forecaster(forecaster).metadata
    (prices,), _ = panel_inputs(metadata, bars)
    wide = pd.DataFrame(prices.numpy(), index=pd.DatetimeIndex(bars.dates, name="date"), columns=list(metadata.columns))
    rows = wide.reset_index().melt("date", var_name="symbol", value_name="price")
    closes = rows[rows.symbol.isin(bars.symbols)]
    pd.concat([rows.assign(panel="bars"), closes.assign(panel="closes")]).to_parquet(tmp_path / "p.parquet")
    batch.run(forecaster, tmp_path / "p.parquet", tmp_path / "f.duckdb")
    table = forecasts(tmp_path / "f.duckdb")
    for name, panel in {"bars": bars, "closes": replace(bars, bars=None)}.items():
        expected = forecaster.predict(panel).to_pandas()
        joined = table[table["panel"] == name].merge(expected, on=["symbol", "horizon", "level"], suffixes=("", "_one"))
        assert len(joined) == len(expected)
        assert (joined["log_return"] == joined["log_return_one"]).all(), name


def test_run_on_prices_with_bars_equals_predict_bitwise(
    forecaster: Forecaster, bars: data.Panel, tmp_path: Path
) -> None:
    batch.run(forecaster, bars, tmp_path / "f.duckdb")
    expected = forecaster.predict(bars).to_pandas()
    joined = forecasts(tmp_path / "f.duckdb").merge(expected, on=["symbol", "horizon", "level"], suffixes=("", "_one"))
    assert len(joined) == len(expected)
    assert (joined["log_return"] == joined["log_return_one"]).all()
