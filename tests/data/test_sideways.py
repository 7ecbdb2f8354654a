"""Tables with months across: read with a column for each series, in files and frames alike."""

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data

STEO = (  # EIA, Short-Term Energy Outlook, table 2
    '"Table 2. Energy Prices"\n"Short-Term Energy Outlook"\n"U.S. Energy Information Administration"\n"October 2023"\n'
    '"remove","","map","linechart","units","source key","Jan 1997","Feb 1997","Mar 1997"\n'
    '"Crude Oil","","","","","","","",""\n'
    '"West Texas Intermediate Spot Average","WTI",1,1,"dollars per barrel","WTIPUUS",25.13,22.18,20.97\n'
    '"Brent Spot Average","Brent",1,1,"dollars per barrel","BREPUUS",23.54,20.85,--\n'
)
PCPS = (  # IMF, primary commodity prices
    "Country Name,Commodity Name,Commodity Code,Attribute,1990,1990Q1,1990M1,1990M2,1990M3,\n"
    'World,"Crude Oil (petroleum), Brent",POILBRE,Value,23.7,19.8,21.1,19.8,18.4,\n'
    "World,Gold,PGOLD,Value,383.6,407.6,410.1,416.5,393.1,\n"
)


@pytest.fixture(scope="module")
def monthly() -> pd.DataFrame:
    return data.embedded(["GOLD", "COPPER"], frequency="monthly").to_pandas().tail(6)


def write(folder, text):
    (folder / "prices.csv").write_text(text, encoding="utf-8")
    return folder / "prices.csv"


def test_energy_outlook_is_read(tmp_path):
    panel = data.read(write(tmp_path, STEO))
    assert panel.symbols == ("WTIPUUS", "BREPUUS")
    assert panel.units == ("dollars per barrel",) * 2
    np.testing.assert_array_equal(panel.values, [[25.13, 23.54], [22.18, 20.85], [20.97, np.nan]])
    assert panel.dates.astype(str).tolist() == ["1997-01-31", "1997-02-28", "1997-03-31"]
    assert "ignored line 6: Crude Oil (dropped)" in map(str, panel.findings)
    assert data.read(tmp_path / "prices.csv", symbol="remove").symbols[1] == "Brent Spot Average"


def test_months_are_read_beside_years_and_quarters(tmp_path):
    panel = data.read(write(tmp_path, PCPS))
    assert (panel.symbols, panel.values.tolist()) == (
        ("POILBRE", "PGOLD"),
        [[21.1, 410.1], [19.8, 416.5], [18.4, 393.1]],
    )
    assert any("1990, 1990Q1" in finding.value for finding in panel.findings if finding.kind == "ignored column")


@pytest.mark.parametrize("style", ["%b-%y", "%b %Y", "%YM%m", "%Y-%m-%d"])
def test_frames_and_files_on_their_side_are_alike(monthly, tmp_path, style):
    across = monthly.T.set_axis(monthly.index.strftime(style), axis=1)
    expected = data.to_panel(monthly)
    for source in (across, across.reset_index(), write(tmp_path, across.to_csv(index_label="series"))):
        panel = data.to_panel(source)
        assert panel.symbols == expected.symbols
        np.testing.assert_array_equal(panel.values, expected.values)
    np.testing.assert_array_equal(data.to_panel(monthly.T).values, expected.values)


def test_years_across_are_not_supported(monthly, tmp_path):
    text = "Commodity,1990,1991,1992\nGold,383.51,362.11,343.82\n"
    with pytest.raises(data.DataError, match=r"line 1: expected daily.*yearly and quarterly prices are not supported"):
        data.read(write(tmp_path, text))


def test_series_without_names_are_refused_with_what_to_do(tmp_path):
    text = "country,item,Jan 1997,Feb 1997,Mar 1997\nUS,WTI,25.13,22.18,20.97\nUS,WTI,23.54,20.85,19.14\n"
    with pytest.raises(data.DataError, match=r"expected a column of names .* got country, item; .*--symbol NAME"):
        data.read(write(tmp_path, text))
    with pytest.raises(data.DataError, match="expected a row for each symbol in 'item'; got 'WTI' twice"):
        data.read(tmp_path / "prices.csv", symbol="item")


def test_yearly_prices_are_not_supported(tmp_path):
    prices = data.embedded(["WTI"]).to_pandas()["WTI"].dropna().groupby(lambda day: day.year).first()
    rows = "".join(f"{year}-06-30,{price}\n" for year, price in prices.items())
    panel = data.read(write(tmp_path, f"Date,Price\n{rows}"))
    finding = next(finding for finding in panel.findings if finding.kind == "mixed frequency")
    assert "yearly prices are not supported" in finding.value


POSITIONS = (  # CFTC, commitments of traders
    "Market_and_Exchange_Names,As_of_Date_In_Form_YYMMDD,Report_Date_as_YYYY-MM-DD,CFTC_Contract_Market_Code,"
    "CFTC_Market_Code,Open_Interest_All,NonComm_Positions_Long_All\n"
    '"CRUDE OIL, LIGHT SWEET-WTI - NEW YORK MERCANTILE EXCHANGE",240102,2024-01-02,067651,NYME,1605123,300123\n'
    '"CRUDE OIL, LIGHT SWEET-WTI - NEW YORK MERCANTILE EXCHANGE",240109,2024-01-09,067651,NYME,1615123,310123\n'
)


def test_positions_of_traders_are_no_prices_but_covariates(tmp_path):
    path = write(tmp_path, POSITIONS)
    with pytest.raises(data.DataError, match=r"expected a price column; .*say positions.*data.to_covariates"):
        data.read(path)
    with pytest.raises(data.DataError, match=r"got text in Market_and_Exchange_Names, .*; name one with column= \(--"):
        data.to_covariates(path, lag="3D")
    positions = data.to_covariates(path, lag="3D", column="Open_Interest_All")
    assert positions.as_of(["2024-01-05", "2024-01-12"]).values.ravel().tolist() == [1605123, 1615123]
    named = data.to_covariates(
        path, lag="3D", column="Open_Interest_All", symbol="CFTC_Market_Code", date="Report_Date_as_YYYY-MM-DD"
    )
    assert named.as_of(["2024-01-05"]).values.ravel().tolist() == [1605123]
    with pytest.raises(data.DataError, match="contract: expected no column of contracts, or symbol="):
        data.to_covariates(path, lag="3D", contract="CFTC_Market_Code")
