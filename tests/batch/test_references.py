"""Tables of panels for a forecaster with references."""

from pathlib import Path

import duckdb
import pandas as pd
import pytest

from torchcommodity import batch, data, forecast
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)

ROWS = 70


@pytest.fixture(scope="module")
def oil() -> data.Panel:
    names = ["WTI", "BRENT", "HEATING_OIL_NYH"]
    return data.embedded(names).between("2010-01-01", "2016-12-31").with_references(names[1:])


@pytest.fixture(scope="module")
def forecaster(oil: data.Panel) -> Forecaster:
    return forecast.fit(oil, FitConfig(HarGarchConfig(CONFIG)))


def long(panel: data.Panel, name: str, references: bool = True) -> pd.DataFrame:
    frame = panel.to_pandas()
    if references:
        assert panel.references is not None
        frame = frame.join(panel.references.to_pandas())
    rows = frame.reset_index().melt("date", var_name="symbol", value_name="price")
    return rows.assign(panel=name)


def test_run_with_references_equals_predict_bitwise(forecaster: Forecaster, oil: data.Panel, tmp_path: Path) -> None:
    window = oil._rows((oil.dates >= oil.dates[500]) & (oil.dates < oil.dates[500 + ROWS]))
    extra = long(window, "own days")
    weekend = next(d for d in pd.date_range(window.dates[0], window.dates[-1]) if d.day_of_week == 6)
    own = pd.DataFrame([{"date": weekend, "symbol": "BRENT", "price": 1.0, "panel": "own days"}])
    no_brent = long(window, "no brent")
    tables = [
        long(window, "all"),
        long(window, "none", references=False),
        no_brent[no_brent.symbol != "BRENT"],
        extra,
        own,
    ]
    path = tmp_path / "p.parquet"
    pd.concat(tables, ignore_index=True).to_parquet(path)
    run = batch.run(forecaster, path, tmp_path / "f.duckdb").run
    assert run.completed == 4
    with duckdb.connect(str(tmp_path / "f.duckdb"), read_only=True) as connection:
        table = connection.execute("SELECT * FROM forecasts").fetchdf()
    assert window.references is not None
    only_heating = window.with_references(None).with_references(window.references.select(["HEATING_OIL_NYH"]))
    panels = {"all": window, "own days": window, "none": window.with_references(None), "no brent": only_heating}
    for name, panel in panels.items():
        expected = forecaster.predict(panel).to_pandas()
        joined = table[table["panel"] == name].merge(
            expected, on=["symbol", "horizon", "level"], suffixes=("", "_alone")
        )
        assert len(joined) == len(expected)
        assert (joined["log_return"] == joined["log_return_alone"]).all(), name
