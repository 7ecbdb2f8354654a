"""Texts of the page's sections."""

from torchcommodity.report import ReportData, describe_contracts


def test_describe_contracts_tells_futures_from_spot_prices(report: ReportData) -> None:
    panel = report.panel.with_contracts({"WTI": "CL"})
    assert describe_contracts(panel) == (
        "Front-month futures with a roll calendar, without a curve of nearby contracts: WTI (WTI crude oil, NYMEX). "
        "Treated as spot prices, without rolls: BRENT."
    )
    wti = panel["WTI"].with_curve(panel["WTI"].values.plain()[..., None])
    assert describe_contracts(wti) == (
        "Front-month futures with a roll calendar, with a curve of nearby contracts: WTI (WTI crude oil, NYMEX)."
    )
