"""The page in Chromium: phone and desktop, light and dark, keyboard, accessibility rules, no text off-screen."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from embedded_spreads import brent_wti

from torchcommodity.data import Panel, embedded
from torchcommodity.forecast import BacktestSummary, fit, previous_forecast
from torchcommodity.report import ReportData, RunRecord, package_versions, to_html

pytestmark = [pytest.mark.slow, pytest.mark.browser]
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
MAX_HEIGHT = 6000  # of the page on a phone
FIRST_SCREEN = (
    "Old prices: the last price of every commodity",
    "WTI crude oil",
    "45.15 $/bbl",
    "2018-12-28",
    "median 45.",
    "width",
    "inside",
    "Feb 2019",
    "rolled 2019-01-23",
)
OFF_SCREEN = """() => [...document.querySelectorAll('body *')].filter((element) => {
  const box = element.getBoundingClientRect(), style = getComputedStyle(element);
  return box.width && (box.right > innerWidth + 1 || box.left < -1) && style.clipPath === 'none'
    && !element.closest('.skip, svg');
}).map((element) => element.outerHTML.slice(0, 80))"""
CUT_TABLES = """() => [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => box.getAttribute('aria-label'))"""
Page = Any


@pytest.fixture(scope="module")
def path(summary: BacktestSummary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    panel: Panel = embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-31").with_contracts({"WTI": "CL"})
    forecaster = fit(panel)
    run = RunRecord("2024-01-02T03:04:05Z", "torchcommodity forecast", "embedded", "0" * 64, 0, package_versions())
    run = replace(run, credits=panel.credits())
    previous = previous_forecast(forecaster, panel)
    report = ReportData(panel, forecaster.predict(panel), forecaster.record, run, summary, "", previous)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(report))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module", params=["light", "dark"])
def page(browser: Any, path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, color_scheme=request.param)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-charts]", timeout=60_000, state="attached")
    yield page
    context.close()


def open_everything(page: Page) -> None:
    """All details and their charts, so that a check sees every part of the page."""
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
    expect(page.locator("details .chart:not([data-drawn])")).to_have_count(0, timeout=60_000)


def test_phone_shows_every_fact_without_scrolling_sideways(page: Page) -> None:
    page.set_viewport_size(PHONE)
    text = " ".join(page.locator("body").inner_text().split())
    assert [fact for fact in FIRST_SCREEN if fact not in text] == []
    assert page.evaluate("document.documentElement.scrollHeight") < MAX_HEIGHT
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    open_everything(page)
    assert page.evaluate(OFF_SCREEN) == []
    assert page.evaluate(CUT_TABLES) == []


def test_page_passes_axe_with_everything_open(page: Page) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page.set_viewport_size(DESKTOP)
    open_everything(page)
    violations = axe.run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in violations] == []


def test_charts_have_the_colors_of_the_scheme(page: Page) -> None:
    paper = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')")
    assert page.evaluate("document.getElementById('chart-fan-0').layout.paper_bgcolor") == paper
    band = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--band80')")
    fills = page.evaluate("document.getElementById('chart-fan-0').data.map((trace) => trace.fillcolor)")
    assert band in fills


def test_range_on_a_day_equals_the_forecast_at_a_horizon(page: Page) -> None:
    page.set_viewport_size(DESKTOP)
    shown = page.locator("#outlook td .range").nth(2).inner_text()
    day = page.locator("#forecast-0 thead th .small").nth(2).inner_text()
    page.locator("#forecast-0 input[type=date]").fill(day)
    expect(page.locator("#forecast-0 output")).to_contain_text(f"80 % range {shown}, median ")


def test_range_on_a_day_of_a_spread_may_be_below_zero(browser: Any, tmp_path: Path) -> None:
    panel = brent_wti("2012-01-01", "2015-12-31")
    forecaster = fit(panel)
    run = RunRecord("2024-01-02T03:04:05Z", "torchcommodity forecast", "embedded", "0" * 64, 0, package_versions())
    (path := tmp_path / "spread.html").write_text(
        to_html(ReportData(panel, forecaster.predict(panel), forecaster.record, run, None, "no test"))
    )
    page = browser.new_page(viewport=DESKTOP)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-charts]", timeout=60_000, state="attached")
    low, high = page.locator("#outlook td .range").nth(2).inner_text().split(" to ")
    assert low.startswith("\u2212")
    page.locator("#forecast-0 input[type=date]").fill(page.locator("#forecast-0 thead th .small").nth(2).inner_text())
    shown = page.locator("#forecast-0 output").inner_text().replace("-", "\u2212")
    assert f"80 % range {low} to {high}, median " in shown
    page.close()


def test_commodity_can_be_chosen_by_keyboard_and_by_link(page: Page) -> None:
    page.set_viewport_size(DESKTOP)
    page.locator("#selection select").select_option("forecast-1")
    page.wait_for_selector("#chart-fan-1[data-drawn]", timeout=30_000)
    expect(page.locator("#forecast-0")).to_be_hidden()
    page.locator("#outlook a").first.press("Enter")
    expect(page.locator("#forecast-0")).to_be_visible()
    expect(page.locator("#forecast-1")).to_be_hidden()


def test_table_can_be_saved_as_csv(page: Page) -> None:
    page.set_viewport_size(DESKTOP)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save table (CSV)").click()
    assert download.value.suggested_filename == "outlook.csv"
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("symbol,name,unit,contract,")
    assert len(lines) == 1 + 2 * 4
