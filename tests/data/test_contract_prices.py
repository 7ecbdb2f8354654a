"""Tables of prices by contract: layouts, what is left out, and what is refused in words."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from torchcommodity import data
from torchcommodity.data import ContractPrices, DataError

# NYMEX WTI, settlements of April 2020; the May contract ended on the 21st.
SETTLES = {
    "CLK20": {"2020-04-17": 18.27, "2020-04-20": -37.63, "2020-04-21": 10.01},
    "CLM20": {"2020-04-17": 25.03, "2020-04-20": 20.43, "2020-04-21": 11.57, "2020-04-22": 13.78},
    "CLN20": {"2020-04-17": 29.42, "2020-04-20": 26.28, "2020-04-21": 18.69, "2020-04-22": 20.69},
}


def long(**columns):
    rows = [(day, code, price) for code, prices in SETTLES.items() for day, price in prices.items()]
    return pd.DataFrame(rows, columns=["date", "contract", "settle"]).assign(**columns)


def front(table, **options):
    return ContractPrices.from_pandas(table, **options).continuous()


EXPECTED = [18.27, -37.63, 10.01, 13.78]


def layouts():
    table = long()
    month = table["contract"].map({"CLK20": "2020-05", "CLM20": "2020-06", "CLN20": "2020-07"})
    last = table["contract"].map({"CLK20": "2020-04-21", "CLM20": "2020-05-19", "CLN20": "2020-06-22"})
    bare = table.drop(columns="contract")
    codes = table["contract"].str.replace("20", "0")
    yield "code", table
    yield "one digit", table.assign(contract=codes)
    yield (
        "databento",
        table.rename(columns={"date": "ts_event", "contract": "symbol", "settle": "close"}).assign(
            symbol=codes, volume=1, instrument_id=7
        ),
    )
    yield "symbol and month", bare.assign(symbol="CL", delivery=month)
    yield "month as number", bare.assign(symbol="CL", delivery=month.str.replace("-", "").astype(int))
    yield "month as float", bare.assign(symbol="CL", delivery=month.str.replace("-", "").astype(float))
    yield "month as timestamp", bare.assign(symbol="CL", delivery_month=pd.to_datetime(month))
    yield "expiry", bare.assign(symbol="CL", expiry=last)
    yield "code beside its month", table.assign(symbol=table["contract"], delivery=month)
    yield "dates as index", table.assign(date=pd.to_datetime(table["date"])).set_index("date")
    yield "wide", table.pivot(index="date", columns="contract", values="settle")
    yield "any order", table.sample(frac=1.0, random_state=0)


@pytest.mark.parametrize("table", [pytest.param(table, id=name) for name, table in layouts()])
def test_contract_prices_from_every_layout(table):
    panel = front(table)
    assert panel.symbols == panel.contracts == ("CL",)
    assert panel.values[:, 0].tolist() == EXPECTED
    assert panel.deliveries[:, 0].astype(str).tolist() == ["2020-05"] * 3 + ["2020-06"]
    np.testing.assert_array_equal(panel.curve[2, 0].numpy(), [10.01, 11.57, 18.69])
    np.testing.assert_array_equal(panel.curve[3, 0].numpy(), [13.78, 20.69, np.nan])


def test_contract_prices_from_polars():
    assert front(pl.from_pandas(long())).values[:, 0].tolist() == EXPECTED


def test_contract_prices_name_products():
    table = long(symbol="WTI", contract=long()["contract"].str[-3:])
    assert ContractPrices.from_pandas(table).products == (None,)
    named = ContractPrices.from_pandas(table, contracts={"WTI": "CL"})
    assert (named.symbols, named.products) == (("WTI",), ("CL",))
    assert named.expiries.astype(str).tolist() == ["2020-04-21", "2020-05-19", "2020-06-22"]
    assert ContractPrices.from_pandas(long(), contracts={"CL": None}).products == (None,)
    assert ContractPrices.from_pandas(long(symbol="CORN0")).symbols == ("CORN0",)


def test_contract_prices_keep_units_volume_and_provenance():
    prices = ContractPrices.from_pandas(long(unit="$/bbl", volume=3.0, open_interest=4.0))
    assert prices.units == ("$/bbl",)
    assert prices.volume.tolist() == [3.0] * 11
    assert prices.open_interest.tolist() == [4.0] * 11
    assert prices.provenance[0].location == "memory"
    assert prices.provenance[0].series == "CL"
    assert len(prices.provenance[0].sha256) == 64
    assert repr(prices) == "ContractPrices(3 contracts of CL; 2020-04-17 to 2020-04-22, 11 rows)"


def kinds(table):
    return {finding.kind: finding for finding in ContractPrices.from_pandas(table).findings}


def row(**cells):
    return pd.concat([long(), pd.DataFrame([{"date": "2020-04-20", "contract": "CLK20", "settle": -37.63} | cells])])


def test_contract_prices_leave_spreads_out_and_count_them():
    spreads = pd.DataFrame({"date": "2020-04-20", "contract": ["CLK0-CLM0", "LOK0 C2000"], "settle": [0.1, 0.2]})
    finding = kinds(pd.concat([long(), spreads]))["combined contract"]
    assert (finding.count, finding.value, finding.line) == (2, "CLK0-CLM0 is not one contract", 12)
    assert front(pd.concat([long(), spreads])).values[:, 0].tolist() == EXPECTED


def test_contract_prices_report_what_is_doubtful():
    assert kinds(row())["duplicate"].count == 1
    assert kinds(row(date="2020-04-22", settle=9.0))["price after expiry"].value == "2020-05 ended on 2020-04-21"
    stated = kinds(long(expiry="2020-07-21").query("contract == 'CLN20'"))["other expiry"]
    assert stated.value == "2020-07 ends on 2020-07-21, by the exchange's rule on 2020-06-22"
    assert kinds(long(settle_type="final"))["ignored column"].value == "settle_type"
    assert all(finding.kind in data.TREATMENTS for finding in kinds(row()).values())


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (row(settle=1.0), r"row 12: CL 2020-05 on 2020-04-20: expected one price .* got -37.63 and 1 \(row 2\)"),
        (row(contract="CLA20"), r"row 12: 'contract': expected the code of one contract.*months are FGHJKMNQUVXZ"),
        (row(date="2020-08-03"), "expected a price up to its last trading day, 2020-04-21; check the year"),
        (row(contract="K20"), "expected the product of the contract, in its code .* or in a column symbol"),
        (row(contract="CL.FUT"), "which stands for many"),
        (long().drop(columns="contract"), "expected columns for prices by contract: a date, a contract .*; got date"),
        (long().drop(columns="settle"), "expected columns for prices by contract"),
        (long(contract="CLK0-CLM0"), "expected prices of single contracts; got none in 11 rows"),
        (long(expiry=[f"2020-08-{n + 1:02d}" for n in range(11)]), "expected one expiry per contract; got"),
        (long(settle=np.nan), "expected prices of single contracts; got none"),
    ],
)
def test_contract_prices_are_refused_in_words(table, words):
    with pytest.raises(DataError, match=words):
        ContractPrices.from_pandas(table)


def test_contract_prices_refuse_unknown_symbols_and_products():
    with pytest.raises(DataError, match="contracts: expected symbols among CL; got WTI"):
        ContractPrices.from_pandas(long(), contracts={"WTI": "CL"})
    with pytest.raises(DataError, match="expected a product code among CL"):
        ContractPrices.from_pandas(long(), contracts={"CL": "XX"})
    with pytest.raises(TypeError, match="prices by contract must be a DataFrame; got list"):
        ContractPrices.from_pandas([1])
    with pytest.raises(DataError, match="symbols: expected names among CL; got 'NG'"):
        ContractPrices.from_pandas(long()).select("NG")
