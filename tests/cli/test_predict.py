"""`torchcommodity predict` and `export`: one model in several formats, the same table."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded, frame_to_csv, read
from torchcommodity.forecast import Forecaster, fit

Run = Callable[..., Result]
Error = Callable[[Result], str]
COLUMNS = ["symbol", "unit", "origin", "horizon", "date", "level", "log_return", "price"]


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """Prices after those of the fit, with another symbol before."""
    path = tmp_path / "newer.csv"
    embedded(["BRENT", "WTI"]).between("2014-01-01", "2018-06-29").to_pandas().to_csv(path)
    return path


def test_predict_writes_the_forecast_of_the_library(run: Run, fitted: Path, newer: Path, tmp_path: Path) -> None:
    result = run("predict", fitted, "--data", newer, "--out", tmp_path / "new" / "f.csv")
    assert result.exit_code == 0, result.output
    assert "WTI: 74.1" in result.stdout
    table = pd.read_csv(tmp_path / "new" / "f.csv", parse_dates=["origin", "date"], keep_default_na=False)
    expected = Forecaster.load(fitted).predict(read(newer)).to_pandas()
    assert list(table.columns) == COLUMNS
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_predict_reads_a_symbol_that_the_embedded_prices_have_by_name_only(run: Run, tmp_path: Path) -> None:
    propane = embedded(["PROPANE_MB"])
    forecaster = fit(propane.between("2019-01-01", "2022-12-31"))
    forecaster.save(tmp_path / "propane.safetensors")
    run("predict", tmp_path / "propane.safetensors", "--out", tmp_path / "quantiles.csv")
    assert (tmp_path / "quantiles.csv").read_text() == frame_to_csv(forecaster.predict(propane).to_pandas())
    with pytest.raises(ValueError, match=r"without PROPANE_MB, a reference there: read it by name"):
        forecaster.predict(embedded())


@pytest.mark.parametrize("command", ["predict", "simulate", "risk"])
def test_output_over_an_input_is_rejected_before_any_work(
    command: str, run: Run, fitted: Path, newer: Path, tmp_path: Path
) -> None:
    before = newer.read_bytes()
    (tmp_path / "link.csv").symlink_to(newer)
    for data, out in ((newer, newer), (newer, tmp_path / "link.csv"), (f"sql:SELECT * FROM '{newer}'", newer)):
        result = run(command, fitted, "--data", data, "--out", out)
        assert result.exit_code == 2
        assert "--out: expected an output apart from the inputs" in " ".join(result.output.split())
    assert newer.read_bytes() == before


def test_predict_warns_of_prices_unlike_those_of_training(run: Run, fitted: Path, newer: Path) -> None:
    table = pd.read_csv(newer, index_col="date")
    table.loc[table.index[-1], "WTI"] *= 3
    table.to_csv(newer)
    output = run("predict", fitted, "--data", newer).output
    assert "warning: large move WTI 2018-06-29: " in " ".join(output.split())


def test_predict_writes_parquet_and_json_by_the_ending(run: Run, fitted: Path, newer: Path, tmp_path: Path) -> None:
    for suffix in ("csv", "parquet", "json"):
        assert run("predict", fitted, "--data", newer, "--out", tmp_path / f"f.{suffix}", "--quiet").output == ""
    parquet = pd.read_parquet(tmp_path / "f.parquet")
    assert list(parquet.columns) == COLUMNS
    rows = json.loads((tmp_path / "f.json").read_text())
    assert [row["price"] for row in rows] == parquet["price"].tolist()
    assert rows[0]["date"][:10] == str(parquet["date"][0].date())


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.parametrize(("format", "suffix"), [("pt2", ".pt2"), ("onnx", ".onnx")])
def test_predict_with_an_exported_model_equals_the_fitted_one(
    run: Run, fitted: Path, newer: Path, tmp_path: Path, format: str, suffix: str
) -> None:
    artifact = tmp_path / "new" / f"model{suffix}"
    result = run("export", fitted, "--out", artifact)  # its ending is the format
    assert result.exit_code == 0, result.output
    assert artifact.exists()  # in a folder that was missing
    assert "har-garch: WTI; fitted through 2016-12-30" in result.stdout
    for model, name in ((fitted, "a.csv"), (artifact, "b.csv")):
        assert run("predict", model, "--data", newer, "--out", tmp_path / name).exit_code == 0
    one, other = (pd.read_csv(tmp_path / name) for name in ("a.csv", "b.csv"))
    pd.testing.assert_frame_equal(one, other, rtol=0 if format == "pt2" else 1e-6)


def test_export_rejects_the_ending_of_another_format(run: Run, error: Error, fitted: Path) -> None:
    before = fitted.read_bytes()
    for arguments, ending in (((), "one of .aoti.pt2, .pt2, .onnx"), (("--format", "onnx"), ".onnx")):
        result = run("export", fitted, *arguments, "--out", fitted)
        assert result.exit_code == 2
        assert f"expected a file name that ends with {ending}; got " in error(result)
    assert fitted.read_bytes() == before


@pytest.mark.export
def test_export_writes_next_to_the_model_by_default(artifact: Path, fitted: Path) -> None:
    assert {path.name for path in fitted.parent.iterdir()} == {"prices.csv", fitted.name, artifact.name}


def test_predict_names_missing_symbols_and_damaged_files(run: Run, error: Error, fitted: Path, tmp_path: Path) -> None:
    result = run("predict", fitted, "--symbols", "WTI")
    assert result.exit_code == 2
    embedded(["BRENT"]).to_pandas().to_csv(tmp_path / "other.csv")
    result = run("predict", fitted, "--data", tmp_path / "other.csv")
    assert result.exit_code == 2
    assert "got BRENT without WTI" in error(result)
    for name in ("model.safetensors", "model.pt2", "model.onnx"):
        (tmp_path / name).write_bytes(fitted.read_bytes()[:1000])
        result = run("predict", tmp_path / name)
        assert result.exit_code == 2
        assert name in error(result)


def test_fit_and_predict_with_covariates(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    embedded(["HENRY_HUB"]).between("2015-07-01", "2018-12-31").to_pandas().to_csv(gas := tmp_path / "gas.csv")
    options = ("--covariates", gas, "--lag", "1B", "--transform", "changes")
    fitted = run("fit", "--data", prices, *options, "--out", tmp_path / "model.safetensors")
    assert "with HENRY_HUB" in fitted.stdout, fitted.output
    assert run("predict", tmp_path / "model.safetensors", "--data", prices, *options).exit_code == 0
    message = error(run("predict", tmp_path / "model.safetensors", "--data", prices))
    assert "covariates must be those of the fit, HENRY_HUB; got none; pass covariates= (--covariates)" in message


def test_commands_take_the_curve_of_a_spot_price(run: Run, error: Error, newer: Path, tmp_path: Path) -> None:
    wti = embedded(["WTI"]).between("2014-01-01", "2018-06-29").to_pandas().dropna().reset_index()
    front = wti.rename(columns={"WTI": "close"}).assign(product="CL")
    curve = pd.concat([front.assign(nth=nth, close=front["close"] * (1 + nth / 100)) for nth in range(1, 8)])
    curve.to_csv(tmp_path / "curve.csv", index=False)
    model, options = tmp_path / "model.safetensors", ["--curve", tmp_path / "curve.csv", "--curve-of", "WTI=CL"]
    assert run("fit", "--data", newer, "--symbols", "WTI", *options, "--out", model).exit_code == 0
    assert Forecaster.load(model).curve_of == ("CL",)
    result = run("predict", model, "--data", newer, *options, "--out", tmp_path / "f.csv")
    assert result.exit_code == 0, result.output
    assert "3 months: slope of the futures curve: +3.0 %" in " ".join(result.output.split())  # 1.04 over 1.01
    alone = run("predict", model, "--data", newer, "--out", tmp_path / "alone.csv")
    assert "curve missing WTI" in " ".join(alone.output.split())
    assert not pd.read_csv(tmp_path / "f.csv").equals(pd.read_csv(tmp_path / "alone.csv"))
    bad = run("predict", model, "--data", newer, "--curve-of", "CL")
    assert "--curve-of: expected each symbol once, as in WTI=CL,CORN=C; got 'CL'" in error(bad)
    other = run("predict", model, "--data", newer, "--curve-of", "WTI=CL")
    assert "curve_of needs a curve" in error(other)
