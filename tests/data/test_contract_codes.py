"""Codes of contracts as exchanges and vendors write them."""

import numpy as np
import pytest

from torchcommodity.data import DataError, RollRule
from torchcommodity.data._core.contracts import delivery_months, find_product, parse_contract

CODES = {
    "CLZ24": "CL 2024-12", "CL Z24": "CL 2024-12", "CLZ4": "CL 2024-12", "CLZ2024": "CL 2024-12", "clz24": "CL 2024-12",
    "CL_Z24": "CL 2024-12", "CL-2024Z": "CL 2024-12", "CL 2024-12": "CL 2024-12", "CL202412": "CL 2024-12",
    "202412": " 2024-12", "20241200": " 2024-12", "20241201": " 2024-12", "2024-12": " 2024-12", "Z24": " 2024-12",
    "Dec 2024": " 2024-12", "JAN-25": " 2025-01", "C H25": "C 2025-03", "HOQ4 24": "HO 2024-08", "6EH5": "6E 2025-03",
    "NYMEX:CLZ2024": "CL 2024-12", "CLZ24.NYM": "CL 2024-12", "CLZ4 Comdty": "CL 2024-12",
    "BRN FMH0025!": "BRN 2025-03", "CLZ4^2": "CL 2024-12", "CLF9^0": "CL 2009-01", "CLZ9^9": "CL 1999-12",
    "ZC   DEC 24": "ZC 2024-12", "CLF25 (Jan '25)": "CL 2025-01", "CLZ24.F": "CL 2024-12",
}  # fmt: skip


@pytest.mark.parametrize("text", CODES)
def test_parse_contract_reads_vendor_codes(text):
    code = parse_contract(text)
    month = delivery_months([code], np.array(["2024-06-03"], dtype="datetime64[D]"))[0]
    assert f"{code.root} {month}" == CODES[text]


@pytest.mark.parametrize(
    "text", ["CLF4-CLG4", "CL:BF F4-G4-H4", "CLF24/CLG24", "LO1F4 C7500", "LOF4 P75", "UD:1V: GN 123", "CL F4-G4"]
)
def test_parse_contract_combinations_are_not_one_contract(text):
    assert parse_contract(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CLA24", "delivery months are FGHJKMNQUVXZ.*got 'CLA24'"),
        ("SPY", "the code of one contract, such as CLZ24.*got 'SPY'"),
        ("CL.FUT", "which stands for many"),
        ("CL.c.0", "which stands for many"),
        ("CL=F", "which stands for many"),
        ("", "got ''"),
        ("2024", "got '2024'"),
    ],
)
def test_parse_contract_rejects_in_words(text, words):
    with pytest.raises(ValueError, match=words):
        parse_contract(text)


@pytest.mark.parametrize(
    ("text", "day", "month"),
    [
        ("CLZ4", "2014-12-10", "2014-12"),
        ("CLZ4", "2015-01-02", "2024-12"),
        ("CLF0", "2019-12-30", "2020-01"),
        ("CLZ4", "2004-01-02", "2004-12"),
        ("C H97", "1996-01-02", "1997-03"),
        ("C H00", "1999-01-02", "2000-03"),
        ("CLZ35", "2024-01-02", "2035-12"),
        ("CLH24", "2024-12-02", "2024-03"),
    ],
)
def test_delivery_months_complete_years_by_the_day(text, day, month):
    assert delivery_months([parse_contract(text)], np.array([day], dtype="datetime64[D]")).astype(str) == [month]


def test_find_product_knows_electronic_codes():
    assert [find_product(code) for code in ("ZC", "zs", "HE", "CL", "BRN", "ES", "")] == [
        "C", "S", "LH", "CL", "BRN", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("expiry", RollRule()),
        ("5d", RollRule("expiry", 5)),
        ("volume", RollRule("volume")),
        ("open-interest, 3d", RollRule("open-interest", 3)),
        ("months=HKNUZ", RollRule(months="HKNUZ")),
        ("months=Z,10d,volume", RollRule("volume", 10, "Z")),
    ],
)
def test_roll_rule_parses_and_prints(text, rule):
    assert RollRule.parse(text) == rule
    assert RollRule.parse(str(rule)) == rule
    assert RollRule.parse(rule) is rule


@pytest.mark.parametrize("text", ["", "5", "-5d", "5d,3d", "volume,open-interest", "months=", "months=A", "5 days"])
def test_roll_rule_rejects_in_words(text):
    with pytest.raises(DataError, match=r"roll: expected expiry, 5d \(days before expiry\), volume"):
        RollRule.parse(text)


@pytest.mark.parametrize("fields", [{"when": "oi"}, {"days": -1}, {"days": 1.5}, {"months": "HA"}])
def test_roll_rule_checks_its_fields(fields):
    with pytest.raises(DataError, match="roll: expected"):
        RollRule(**fields)
