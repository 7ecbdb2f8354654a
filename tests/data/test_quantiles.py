"""Tables of quantiles: three layouts, and every defect with its line and value."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from torchcommodity.data import DataError, read_quantiles

ROW = {"origin": "2020-04-17", "symbol": "WTI", "horizon": 5, "0.05": 14.0, "0.5": 18.0, "0.95": 24.0}


def wide(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame([ROW | row for row in ({}, *rows)])


def test_read_quantiles_of_three_layouts_are_equal(tmp_path: Path) -> None:
    frame = wide({"origin": "2020-04-24", "horizon": "1 month"}).astype({"horizon": str})
    long = frame.melt(["origin", "symbol", "horizon"], var_name="level", value_name="price")
    frame.to_csv(tmp_path / "wide.csv.gz", index=False)
    long.sample(frac=1, random_state=0).to_parquet(tmp_path / "long.parquet")
    first, second = (read_quantiles(tmp_path / name) for name in ("wide.csv.gz", "long.parquet"))
    assert first.levels == second.levels == (0.05, 0.5, 0.95)
    assert first.horizons == second.horizons == ("5", "1 month")
    assert (first.unit, first.at(1)) == ("price", f"{tmp_path / 'wide.csv.gz'}, line 3")
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.origins, second.origins)


def test_read_quantiles_of_log_returns_by_column_or_argument() -> None:
    long = wide().melt(["origin", "symbol", "horizon"], var_name="level", value_name="log_return")
    long["log_return"] = [-0.2, 0.0, 0.2]
    assert read_quantiles(pl.from_pandas(long)).unit == "log_return"
    assert read_quantiles(wide({"horizon": 21, "0.05": -0.2}), unit="log_return").values[1, 0] == -0.2


def test_read_quantiles_of_statsforecast_cross_validation() -> None:
    dates = pd.date_range("2020-04-20", periods=3)
    frame = pd.DataFrame({"unique_id": "WTI", "ds": dates, "cutoff": "2020-04-17", "y": 18.0, "Theta": 18.0})
    frame = frame.assign(**{"Theta-lo-90": 14.0, "Theta-hi-90": 24.0})
    table = read_quantiles(frame)
    assert (table.levels, table.horizons, table.every_step) == ((0.05, 0.5, 0.95), ("1", "2", "3"), True)
    np.testing.assert_array_equal(table.values[2], [14.0, 18.0, 24.0])
    both = frame.assign(**{"AutoETS-lo-90": 10.0, "AutoETS-hi-90": 30.0})
    assert read_quantiles(both, model="AutoETS").levels == (0.05, 0.95)
    with pytest.raises(DataError, match="columns of one model; got Theta, AutoETS; name one of them"):
        read_quantiles(both)


DEFECTS: dict[str, tuple[dict[str, object], str]] = {
    "crossing": (
        {"horizon": 21, "0.5": 25.0},
        "row 2: .* with the level; got 24 at 0.95 after 25 at 0.5",
    ),
    "repeated": ({}, "row 2: expected one forecast of .*; got 2020-04-17, WTI, 5"),
    "missing": ({"horizon": 21, "0.5": None}, "row 2: expected a finite quantile at every level; .*; got none at 0.5"),
    "infinite": ({"horizon": 21, "0.95": np.inf}, "row 2: '0.95': expected a finite price"),
    "negative": ({"horizon": 21, "0.05": -37.63}, "row 2: expected positive prices; .*unit=.*; got -37.63 at 0.05"),
    "date": ({"origin": "2020-04-31"}, "row 2: expected a day of the calendar"),
}


def test_read_quantiles_of_spreads_may_be_negative() -> None:
    frame = wide({"symbol": "CRACK", "0.05": -3.5, "0.5": 0.0})
    assert read_quantiles(frame, signed=["CRACK"]).values[1].tolist() == [-3.5, 0.0, 24.0]
    with pytest.raises(DataError, match=r"row 2: expected positive prices; .* got -3.5 at 0.05"):
        read_quantiles(frame, signed=["WTI"])


@pytest.mark.parametrize("name", DEFECTS)
def test_read_quantiles_names_row_and_value_of(name: str) -> None:
    row, message = DEFECTS[name]
    with pytest.raises(DataError, match=message):
        read_quantiles(wide(row))


def test_read_quantiles_names_line_of_text(tmp_path: Path) -> None:
    wide({"horizon": 21, "0.05": "n.a."}).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(DataError, match=r"bad.csv, line 3: '0.05': expected a price; got 'n.a.'"):
        read_quantiles(tmp_path / "bad.csv")


def test_read_quantiles_counts_further_defects() -> None:
    with pytest.raises(DataError, match="; 1 more such rows"):
        read_quantiles(wide({"horizon": 21, "0.5": 25.0}, {"horizon": 63, "0.5": 26.0}))


def test_read_quantiles_rejects_columns_without_roles() -> None:
    with pytest.raises(DataError, match="expected one column horizon or h"):
        read_quantiles(wide().drop(columns="horizon"))
    with pytest.raises(DataError, match="expected each level once"):
        read_quantiles(wide().drop(columns=["0.05", "0.5", "0.95"]))
    long = wide().melt(["origin", "symbol", "horizon"], var_name="level", value_name="price")
    with pytest.raises(DataError, match="one quantile of a level; got a second one of WTI, 2020-04-17, horizon 5"):
        read_quantiles(pd.concat([long, long]))
    with pytest.raises(DataError, match=r"levels between 0 and 1; got 0.05, 0.5, 95"):
        read_quantiles(long.replace({"0.95": "95"}))


def test_read_quantiles_rejects_an_unknown_unit() -> None:
    with pytest.raises(ValueError, match="read_quantiles: unit must be one of price, log_return; got 'percent'"):
        read_quantiles(wide(), unit="percent")  # type: ignore[arg-type]
