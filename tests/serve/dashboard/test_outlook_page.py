"""What a reader of the page wants to know: the first screen, charts with zoom, files, and the same on a phone."""

import re
from collections.abc import Callable

import pandas as pd
import pytest
from dashboard_site import DESKTOP, DOCUMENT, DRAWN, MARKUP, PHONE, Page, assert_accessible, wait_until

from torchcommodity.charts import PALETTE
from torchcommodity.data import embedded
from torchcommodity.forecast import fit, outlook

pytestmark = [pytest.mark.slow, pytest.mark.browser]
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

RANGE_DAYS = """(() => {
    const [start, end] = document.getElementById('chart-past').layout.xaxis.range;
    return new Date(end) - new Date(start);
})()"""
ACCENT = {scheme: PALETTE[scheme]["accent"] for scheme in ("light", "dark")}
OUTSIDE = """() => [...document.querySelectorAll("main :not(option)")]
    .filter((one) => !one.closest("thead, .js-plotly-plot") && one.getClientRects().length)
    .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML)"""


def channels(color: str) -> list[float]:
    """Red, green and blue of `#rgb` or `#rrggbb`, 0 to 1."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    return [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]


def mix(first: str, second: str, share: float) -> list[float]:
    return [a + share * (b - a) for a, b in zip(channels(first), channels(second))]


def contrast(text: str, background: list[float]) -> float:
    """Contrast ratio of WCAG 2."""

    def luminance(rgb: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(channels(text)), luminance(background)))
    return (light + 0.05) / (dark + 0.05)


def test_first_screen_has_range_age_change_and_coverage_of_each_commodity(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/")
    rows = page.evaluate(DOCUMENT)["symbols"]
    assert page.locator("#outlook tbody tr").count() == len(rows)
    for symbol, row in zip(rows, page.locator("#outlook tbody tr").all()):
        text = row.inner_text()
        assert text.startswith(symbol["name"])
        assert f"{symbol['last_price']:.2f}" in text
        assert f"{symbol['age']} ago" in text
        for one in symbol["ranges"]:
            assert f"{one['low']:.1f} to {one['high']:.1f}" in text
        assert len(re.findall(r"[+\u2212]\d\.\d %, (?:same width|\d+ % (?:narrower|wider))", text)) == 4
        coverage = symbol["ranges"][1]["coverage"]
        assert f"{100 * coverage['share']:.0f} % of {coverage['forecasts']}" in text
        assert f"{coverage['independent']} independent" in text
        assert row.bounding_box()["y"] + row.bounding_box()["height"] < DESKTOP["height"]
    assert "Target: 80 %" in page.locator("#outlook thead").inner_text()


def test_first_screen_of_futures_has_contract_month_and_next_roll(open_page: Callable[..., Page]) -> None:
    page = open_page("futures/", DRAWN.format("fan"), charts=True)
    row = page.locator("#outlook tbody tr")
    expect(row).to_contain_text("WTI crude oil")
    expect(row).to_contain_text("Feb 2019")
    expect(row).to_contain_text("rolled 2019-01-23")
    marks = page.evaluate("document.getElementById('chart-fan').data.find((one) => one.name === 'contract roll').x")
    assert "2019-01-23" in marks


@pytest.mark.parametrize("path", ["many/", "futures/"])
def test_outlook_fits_every_width(open_page: Callable[..., Page], path: str) -> None:
    page = open_page(path)
    for width in (1280, 1024, 820, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
                             "(document.querySelector('#outlook .scroll'))") == 0  # fmt: skip


def test_fan_is_opaque_and_grows_with_the_square_root_of_time(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#WTI/6m", DRAWN.format("fan"), charts=True)
    traces = page.evaluate("document.getElementById('chart-fan').data")
    widths = [trace for trace in traces if trace.get("fill")]
    assert [trace["name"] for trace in widths] == ["90 % range", "80 % range", "50 % range"]
    assert all(re.fullmatch("#[0-9a-f]{6}", trace["fillcolor"]) for trace in widths)  # the color of the legend
    symbol = page.evaluate(DOCUMENT)["symbols"][0]
    for trace, level in zip(widths, ("0.95", "0.9", "0.75")):
        path = dict(zip(symbol["fan"]["dates"], symbol["fan"]["quantiles"][level]))
        assert trace["y"] == [path[day] for day in trace["x"]]
    assert f"last price, {symbol['last_date']}" in page.locator("#chart-fan").inner_text()


def test_chart_zooms_and_resets(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/", DRAWN.format("past"), charts=True)
    full = page.evaluate(RANGE_DAYS)
    past = page.locator("#past")
    past.get_by_role("button", name="Zoom in").click()
    wait_until(page, f"{RANGE_DAYS} < {0.6 * full}")
    past.get_by_role("button", name="Reset zoom").click()
    wait_until(page, f"{RANGE_DAYS} === {full}")


def test_csv_files_have_the_numbers_of_the_document(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#BRENT/1m")
    document = page.evaluate(DOCUMENT)
    brent = document["symbols"][1]

    def download(label: str) -> pd.DataFrame:
        with page.expect_download() as event:
            page.get_by_role("button", name=label).click()
        return pd.read_csv(event.value.path())

    ranges = download("Download the ranges of all commodities as CSV").set_index(["symbol", "horizon"])
    assert len(ranges) == 8
    assert ranges.loc[("BRENT", 21), "low"] == brent["ranges"][1]["low"]
    assert ranges.loc[("BRENT", 21), "out_of_sample"] == "yes"
    forecast = download("Download the quantiles of Brent crude oil as CSV").set_index(["horizon", "level"])
    assert len(forecast) == 4 * 19
    assert forecast.loc[(63, 0.95), "price"] == brent["forecasts"][2]["quantiles"]["0.95"]
    past = download("Download the past forecasts of Brent crude oil 1 month ahead as CSV")
    assert past["outcome"].tolist() == brent["past"][1]["outcomes"]
    calibration = download("Download the calibration of all commodities as CSV")
    assert calibration["coverage"].tolist() == [
        band["coverage"] for one in document["coverage"] for band in one["bands"]
    ]
    assert len(download("Download the correlations of all pairs as CSV")) == 1


def test_csv_of_the_outlook_has_the_columns_of_its_table_in_python(open_page: Callable[..., Page]) -> None:
    wti = embedded(["WTI"]).between("2015-01-01", "2018-12-31")
    columns = outlook(fit(wti).predict(wti)).to_pandas().columns
    page = open_page("futures/")
    with page.expect_download() as event:
        page.get_by_role("button", name="Download the ranges of all commodities as CSV").click()
    frame = pd.read_csv(event.value.path())
    assert frame.columns.tolist() == [*columns, "out_of_sample"]
    assert frame["stale"].tolist() == [True] * 4
    assert frame["next_roll"].tolist() == ["2019-01-23"] * 4


def test_csv_quotes_formulas_and_separators(open_page: Callable[..., Page]) -> None:
    page = open_page("markup/")
    with page.expect_download() as event:
        page.get_by_role("button", name="Download the ranges of all commodities as CSV").click()
    assert event.value.suggested_filename == "outlook-2018-12-28.csv"
    frame = pd.read_csv(event.value.path())
    assert frame["symbol"].unique().tolist() == [MARKUP, '"><b>&amp;']
    cells = page.evaluate(
        "import('./page/csv.js').then(({cell}) => ['=1+1', 'a;=1+1', 'CL=F', 'a,b', '-', -2].map(cell))"
    )
    assert cells == ["'=1+1", '"a;\'=1+1"', "CL=F", '"a,b"', "-", "-2"]


def test_range_on_another_day_is_that_of_the_fan(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#WTI/3m")
    fan = page.evaluate(DOCUMENT)["symbols"][0]["fan"]
    row = fan["dates"].index("2019-03-15")
    page.get_by_label("80 % range on another day").fill("2019-03-16")  # a Saturday
    low, high = (fan["quantiles"][level][row] for level in ("0.1", "0.9"))
    expect(page.locator(".day output")).to_have_text(f"2019-03-15: {low:.1f} to {high:.1f}")
    page.get_by_label("80 % range on another day").fill("2031-01-01")
    expect(page.locator(".day output")).to_contain_text("Choose a day from")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_of_the_heat_map_can_be_read_on_their_colors(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page("normal/", DRAWN.format("matrix"), charts=True)
    page.emulate_media(color_scheme=scheme)
    wait_until(page, f"document.getElementById('chart-matrix').data[0].colorscale[2][1] === '{ACCENT[scheme]}'")
    chart = page.evaluate("(({data, layout}) => ({scale: data[0].colorscale, z: data[0].z, marks: layout.annotations}))"
                          "(document.getElementById('chart-matrix'))")  # fmt: skip
    low, middle, high = (color for _, color in chart["scale"])
    assert len(chart["marks"]) == 4
    for mark in chart["marks"]:
        value = chart["z"][mark["y"]][mark["x"]]
        assert contrast(mark["font"]["color"], mix(middle, low if value < 0 else high, abs(value))) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_shows_every_column_and_is_accessible(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page("futures/", size=PHONE)
    page.emulate_media(color_scheme=scheme)
    for name in ("recent prices", "every day ahead", "all"):
        page.locator("summary", has_text=re.compile(f"^{name}", re.IGNORECASE)).first.click()
    assert page.evaluate(OUTSIDE) == []
    assert_accessible(page)


def test_page_shows_the_intervals_of_the_levels(open_page: Callable[..., Page]) -> None:
    page = open_page("tails/#WTI/2m", DRAWN.format("fan"), charts=True)
    expect(page.locator("#outlook table caption")).to_contain_text("90 % range of the price at each horizon")
    expect(page.locator("#outlook thead")).to_contain_text("Target: 90 %")
    for name in ("2 weeks", "2 months"):
        expect(page.locator("#outlook thead")).to_contain_text(name)
    bands = page.evaluate("document.getElementById('chart-fan').data.filter((one) => one.fill).map((one) => one.name)")
    assert bands == ["98 % range", "90 % range"]
    levels = page.locator("#forecast table").first.locator("tbody th").all_inner_texts()
    assert levels == ["Date", "1 %", "5 %", "Median", "95 %", "99 %"]
    expect(page.locator("#coverage table").first).to_contain_text("Target: 98 %")


def test_page_of_a_spread_has_changes_and_losses_in_its_unit(open_page: Callable[..., Page]) -> None:
    page = open_page("spread/")
    (symbol,) = page.evaluate(DOCUMENT)["symbols"]
    q, digits = symbol["forecasts"][1]["quantiles"], f".{symbol['decimals']}f"
    losses = [f"{loss:{digits}}" for loss in (symbol["last_price"] - q["0.05"], q["0.95"] - symbol["last_price"])]
    text = page.locator("#forecast").inner_text().replace("\u2212", "-")
    assert f"95 %: long {losses[0]}, short {losses[1]} $/bbl" in text
    low, high = (q[level] - symbol["last_price"] for level in ("0.1", "0.9"))
    assert f"{low:+{digits}} to {high:+{digits}} from the last price" in text
    change = symbol["ranges"][1]["median_change"]
    assert re.search(rf"{re.escape(format(change, '+' + digits))}, (?:same width|\d+ %)", text)
    assert "Those of BRENT-WTI may be negative: changes of asinh(P / S)" in page.locator("#source").inner_text()
    assert "NaN" not in page.locator("body").inner_text()


def test_page_of_a_median_alone_has_no_range(open_page: Callable[..., Page]) -> None:
    page = open_page("median/#WTI/1d", DRAWN.format("fan"), charts=True)
    expect(page.locator("#outlook table caption")).to_contain_text("Median of the price at each horizon")
    expect(page.locator("#outlook thead")).to_contain_text("1 day")
    assert "undefined" not in page.inner_text("body")
    assert "NaN" not in page.inner_text("body")
