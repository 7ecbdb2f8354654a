"""Files by contract: detected, joined to the front month, and told from tables that only look like them."""

import numpy as np
import pandas as pd
import pytest
from test_contract_prices import EXPECTED, long
from typer.testing import CliRunner

from torchcommodity import data
from torchcommodity.cli._application import app

DATABENTO = "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n" + "".join(
    f"{day}T00:00:00.000000000Z,35,1,{n},1,1,1,{close},{volume},{code}\n"
    for n, (day, code, close, volume) in enumerate(
        [
            ("2020-04-20", "CLK0", -37630000000, 90), ("2020-04-20", "CLM0", 20430000000, 80),
            ("2020-04-20", "CLK0-CLM0", -58060000000, 9), ("2020-04-21", "CLK0", 10010000000, 5),
            ("2020-04-21", "CLM0", 11570000000, 95), ("2020-04-22", "CLM0", 13780000000, 99),
        ]
    )
)  # fmt: skip
MULTIPLE = (
    "DATETIME,CARRY,CARRY_CONTRACT,PRICE,PRICE_CONTRACT,FORWARD,FORWARD_CONTRACT\n"
    "2024-01-02 15:00:00,70.9,20240300,70.5,20240200,71.0,20240300\n"
    "2024-01-02 23:00:00,70.8,20240300,70.4,20240200,70.9,20240300\n"
    "2024-01-03 23:00:00,72.8,20240300,72.7,20240200,73.0,20240300\n"
    "2024-01-04 23:00:00,72.2,20240400,72.4,20240300,72.5,20240400\n"
    "2024-01-05 23:00:00,73.9,20240400,,20240300,73.8,20240400\n"
)


def write(folder, name, table):
    path = folder / name
    if isinstance(table, str):
        path.write_text(table)
    elif name.endswith(".parquet"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["contracts.csv", "contracts.csv.gz", "contracts.parquet"])
def test_read_builds_the_front_month_of_a_file_by_contract(name, tmp_path):
    path = write(tmp_path, name, long())
    panel = data.read(path)
    assert panel.read_as == "contracts, front month by expiry of 3 contracts, 1 symbol"
    assert panel.values[:, 0].tolist() == EXPECTED
    assert panel.contracts == ("CL",)
    assert len(panel.provenance[0].sha256) == 64
    assert panel.provenance[0].location == str(path)
    assert data.read_contracts(path).continuous().values.equal(panel.values)
    assert data.to_panel(long()).values[:, 0].tolist() == EXPECTED


@pytest.mark.parametrize(
    ("code", "words"),
    [("CLA20", "line 13: 'contract': expected the code of one contract.*FGHJKMNQUVXZ"), ("", "got ''")],
)
def test_read_names_the_row_of_a_bad_code_in_a_file_by_contract(code, words, tmp_path):
    bad = pd.DataFrame([{"date": "2020-04-20", "contract": code, "settle": 1.0}])
    names = pd.DataFrame({"date": "2020-04-20", "contract": ["CLU20", "CLV20", "CLX20"], "settle": 1.0})
    with pytest.raises(data.DataError, match=words):
        data.read(write(tmp_path, "x.csv", pd.concat([long(), bad, names])))


def test_read_german_file_by_contract(tmp_path):
    text = "Datum;Kontrakt;Schluss\n21.04.2020;CLK20;10,01\n21.04.2020;CLM20;11,57\n22.04.2020;CLM20;13,78\n"
    assert data.read(write(tmp_path, "x.csv", text)).values[:, 0].tolist() == [10.01, 13.78]


def test_read_takes_roll_adjustment_and_contracts(tmp_path):
    path = write(tmp_path, "contracts.csv", long(symbol="WTI", contract=long()["contract"].str[-3:]))
    panel = data.read(path, contracts={"WTI": "CL"}, roll="1d", adjustment="panama")
    assert panel.read_as == "contracts, front month by 1d of 3 contracts, panama adjustment, 1 symbol"
    np.testing.assert_allclose(panel.values[:, 0], [76.33, 20.43, 11.57, 13.78])  # the gap of 20 April: 20.43 + 37.63
    early = data.read(path, contracts={"WTI": "CL"}, roll="1d")
    assert early.values[:, 0].tolist() == [18.27, -37.63, 11.57, 13.78]
    assert early.has_own_rolls
    with pytest.raises(data.DataError, match="known last trading days of 'WTI'"):
        data.read(path, roll="1d")
    with pytest.raises(data.DataError, match=r"roll: expected a file of prices by contract .*; got embedded"):
        data.read("embedded", roll="5d")
    wide = write(tmp_path, "wide.csv", pd.DataFrame({"date": ["2020-01-02"], "WTI": [1.0], "BRENT": [2.0]}))
    with pytest.raises(data.DataError, match="expected columns for prices by contract"):
        data.read(wide, roll="5d")
    assert data.read("embedded", ["WTI"], contracts={"WTI": "CL"}).contracts == ("CL",)


def test_read_databento_parent_file(tmp_path):
    panel = data.read(write(tmp_path, "glbx.csv", DATABENTO))
    assert panel.values[:, 0].tolist() == [-37.63, 10.01, 13.78]
    assert {finding.kind for finding in panel.findings} >= {"combined contract", "ignored column"}
    by_volume = data.read(tmp_path / "glbx.csv", roll="volume")
    assert by_volume.values[:, 0].tolist() == [-37.63, 10.01, 13.78]
    contracts = data.read(tmp_path / "glbx.csv", format="long", column="close")
    assert contracts.symbols[:2] == ("CLK0", "CLM0")


@pytest.mark.parametrize(
    "text",
    [
        "date,symbol,close\n2020-01-02,NG1,2.1\n2020-01-02,NG2,2.2\n",
        "date,symbol,close\n2020-01-02,CLK20,2.1\n",
        "date,ES,NQ\n2020-01-02,1,2\n",
        "date,symbol,close\n2020-01-02,WTI,2.1\n2020-01-02,BRENT,2.2\n",
    ],
)
def test_read_leaves_other_tables_alone(text, tmp_path):
    assert "contracts" not in data.read(write(tmp_path, "x.csv", text)).read_as


def test_read_multiple_prices_as_what_they_are(tmp_path):
    panel = data.read(write(tmp_path, "CRUDE_W.csv", MULTIPLE))
    assert (panel.symbols, panel.contracts) == (("CRUDE_W",), (None,))
    assert panel.values[:, 0].tolist() == [70.4, 72.7, 72.4]
    assert panel.deliveries[:, 0].astype(str).tolist() == ["2024-02", "2024-02", "2024-03"]
    assert panel.curve[:, 0].tolist() == [[70.4, 70.9], [72.7, 73.0], [72.4, 72.5]]
    assert panel.rolls(ahead=0)[:, 0].tolist() == [0, 0, 1]
    assert [f.value for f in panel.findings if f.kind == "ignored column"] == ["CARRY, CARRY_CONTRACT"]
    skipped = write(tmp_path, "skip.csv", MULTIPLE.replace("73.0,20240300", "73.0,20240400"))
    panel = data.read(skipped)
    assert panel.curve[1, 0, 1].isnan()
    assert "other forward" in [finding.kind for finding in panel.findings]
    back = write(tmp_path, "back.csv", MULTIPLE.replace("72.4,20240300", "72.4,20240100"))
    with pytest.raises(data.DataError, match="in the order of delivery; got 2024-02, then 2024-01"):
        data.read(back)


def test_read_adjusted_prices_says_so(tmp_path):
    panel = data.read(write(tmp_path, "CRUDE_W.csv", "DATETIME,price\n2024-01-02 23:00:00,70.38\n"))
    assert next(finding for finding in panel.findings if finding.kind == "adjusted").value.endswith("pysystemtrade")


def test_data_check_takes_roll_and_adjustment(tmp_path):
    path = write(tmp_path, "contracts.csv", long())
    result = CliRunner().invoke(app, ["data", "check", str(path), "--roll", "1d", "--adjustment", "ratio"])
    assert "front month by 1d of 3 contracts, ratio adjustment" in result.output.replace("\n", " ")
    bad = CliRunner().invoke(app, ["data", "check", str(path), "--roll", "soon"], catch_exceptions=True)
    assert bad.exit_code != 0
