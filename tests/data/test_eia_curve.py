"""Curves from the EIA's contracts 1 to 4, against a local server that replays its format."""

import numpy as np
import pandas as pd
import pytest
from publisher_server import response, serving
from test_eia import KEY, eia_body
from typer.testing import CliRunner

from torchcommodity import data
from torchcommodity.cli._prices import read_prices

DAYS = pd.bdate_range("2024-03-28", "2024-04-05").strftime("%Y-%m-%d")
FIRST = {"RCLC": 83.2, "RNGC": 1.76, "EER_EPD2F_PE": 2.6, "EER_EPMRR_PE": 2.7}


def publisher(path, query):
    name = path.rpartition("/")[2]
    stem = next(stem for stem in FIRST if stem in name)
    nth = int(name.split(stem)[1][0])
    records = [
        {"period": day, "value": str(round(FIRST[stem] - 0.01 * nth + 0.1 * row, 4)), "units": "$"}
        for row, day in enumerate(DAYS)
    ]
    return response(body=eia_body(records))


def test_eia_curve_reads_contracts_1_to_4_of_each_product(http):
    products = {"WTI": "CL", "GOLD": "GC", "GAS": "NG", "HEAT": "HO", "RBOB": "RB", "SPOT": None}
    with serving(publisher) as (server, base):
        curve = data.eia_curve(products, key=KEY, base=base, http=http)
    assert curve.symbols == ("WTI", "GAS", "HEAT", "RBOB")
    assert curve.values.shape == (len(DAYS), 4, 4)
    expected = [[first - 0.01 * nth for nth in range(1, 5)] for first in FIRST.values()]
    np.testing.assert_allclose(curve.values[0], expected)
    asked = [path.rpartition("/")[2] for path, _ in server.requests]
    assert asked[:5] == ["PET.RCLC1.D", "PET.RCLC2.D", "PET.RCLC3.D", "PET.RCLC4.D", "NG.RNGC1.D"]
    assert asked[8] == "PET.EER_EPD2F_PE1_Y35NY_DPG.D"
    assert asked[15] == "PET.EER_EPMRR_PE4_Y35NY_DPG.D"


def test_curve_of_a_command_comes_from_the_eia_and_says_where_it_ends(tmp_path, monkeypatch):
    days = pd.bdate_range("2024-03-28", "2024-06-28", name="date")
    prices = pd.DataFrame({"WTI": np.linspace(83.0, 81.0, len(days))}, index=days)
    prices.to_csv(tmp_path / "prices.csv")
    with serving(publisher) as (_, base):
        monkeypatch.setenv("TORCHCOMMODITY_EIA_URL", base)
        monkeypatch.setenv("EIA_API_KEY", KEY)
        panel = read_prices(str(tmp_path / "prices.csv"), contracts="WTI=CL", curve="eia:")
        assert read_prices(str(tmp_path / "prices.csv"), curve="eia:").curve_of == ("CL",)  # of a spot price
    assert panel.curve.shape == (len(days), 1, 4)
    finding = next(finding for finding in panel.findings if finding.kind == "curve ended")
    assert (finding.symbol, finding.date, finding.value) == ("WTI", "2024-04-05", "the prices end on 2024-06-28")
    assert panel.curve[len(DAYS) :].isnan().all()
    prices.rename(columns={"WTI": "CRUDE"}).to_csv(tmp_path / "crude.csv")
    with pytest.raises(data.DataError, match=r"expected a symbol of CL, NG, HO or RB \(--contracts WTI=CL\)"):
        read_prices(str(tmp_path / "crude.csv"), curve="eia:")


def test_curve_option_rejects_a_missing_file():
    from torchcommodity.cli._application import app

    result = CliRunner().invoke(app, ["forecast", "--curve", "missing.csv"])
    assert result.exit_code == 2
    assert "eia:" in result.output


def test_yahoo_series_say_what_is_known_of_their_rolls():
    days = pd.bdate_range("2020-01-02", periods=3, name="date")
    frame = pd.DataFrame({"CL=F": [1.0, 2.0, 3.0], "ES=F": [1.0, 2.0, 3.0], "CL": [1.0, 2.0, 3.0]}, index=days)
    findings = [finding for finding in data.to_panel(frame).findings if finding.kind == "vendor rolls"]
    assert [finding.symbol for finding in findings] == ["CL=F", "ES=F"]
    assert findings[0].value.endswith("not published; --contracts CL=F=CL assumes the exchange's expiry")
    assert findings[1].value.endswith("not published")
