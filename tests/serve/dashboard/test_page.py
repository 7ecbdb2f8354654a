"""The page in Chromium: all states, desktop and phone, keyboard, screen readers, no requests to other hosts."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import requests
from dashboard_site import (
    DESKTOP,
    DOCUMENT,
    DRAWN,
    MARKUP,
    PHONE,
    VISIBLE,
    Page,
    Site,
    assert_accessible,
    assert_fits,
    drawn,
)

pytestmark = [pytest.mark.slow, pytest.mark.browser]
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

SCROLLED = "(boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent)"
CUT = """(cells) => cells.filter((cell) => {
  const text = document.createRange(), cellBox = cell.getBoundingClientRect();
  text.selectNodeContents(cell);
  const box = text.getBoundingClientRect();
  return box.left < cellBox.left - 1 || box.right > cellBox.right + 1;
}).map((cell) => cell.textContent)"""
NARROW = {"width": 320, "height": 256}  # 1280 by 1024 at 400 % zoom


def test_page_shows_all_charts_is_accessible_and_fits_small_screens(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/", DRAWN.format("matrix"), charts=True)
    for name in ("fan", "past", "coverage", "correlation", "matrix"):
        assert page.locator(f"#chart-{name} svg").count() > 0, name
        assert len(page.locator(f"#chart-{name}").get_attribute("aria-label")) > 40
    assert page.title() == "WTI, 1 month · Price forecasts"
    assert page.locator("h1").count() == 1
    age = page.evaluate(DOCUMENT)["prices"]["age"]
    assert page.locator("header").inner_text().startswith(f"Old prices: the last prices are {age} old")
    assert page.locator("#foot").inner_text().count("Source: U.S. Energy Information Administration") == 1
    assert_accessible(page)
    for size in (PHONE, NARROW):
        page.set_viewport_size(size)
        page.wait_for_timeout(100)
        assert_fits(page)


def test_page_is_accessible_in_dark_mode_with_open_tables(open_page: Callable[..., Page]) -> None:
    page = open_page("single/")
    page.locator("#past summary").click()
    expect(page.locator("#past details tbody tr")).to_have_count(59)  # one of 60 rows is a holiday of WTI
    page.emulate_media(color_scheme="dark")
    assert_accessible(page)
    assert "needs at least two symbols" in page.locator("#correlation").inner_text()
    assert page.locator("#outlook tbody tr").count() == 1


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_sources_are_shown_whole_without_scrolling_sideways(
    open_page: Callable[..., Page], size: dict[str, int]
) -> None:
    page = open_page("normal/")
    page.set_viewport_size(size)
    for summary in page.locator("#source summary").all():
        summary.click()
    expect(page.locator("#source table")).to_have_count(page.locator("#source summary").count())
    assert page.locator("#source .scroll").evaluate_all(SCROLLED) == []
    assert page.locator("#source td:not(:empty)").evaluate_all(CUT) == []


def test_page_shows_the_numbers_of_the_document(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#BRENT/3m", DRAWN.format("past"), charts=True)
    document = page.evaluate(DOCUMENT)
    brent = next(one for one in document["symbols"] if one["symbol"] == "BRENT")
    assert f"What moves the median over {brent['ranges'][2]['location']}." in page.locator("#forecast").inner_text()
    quantiles = brent["forecasts"][2]["quantiles"]
    assert page.locator(".big strong").inner_text() == f"{quantiles['0.1']:,.1f} to {quantiles['0.9']:,.1f}"
    long, short = (100 * (quantiles[level] / brent["last_price"] - 1) for level in ("0.05", "0.95"))
    assert f"95 %: long {-long:.1f} %, short {short:.1f} %" in page.locator(".definitions").first.inner_text()
    assert drawn(page, "fan", "median")[-1] == quantiles["0.5"]
    past = brent["past"][2]
    assert drawn(page, "past", "price") == past["outcomes"]
    page.get_by_text("forecasts 3 months ahead as a table").click()
    expect(page.locator("#past details tbody tr")).to_have_count(len(past["target"]))


def test_address_selects_commodity_and_horizon(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#BRENT/1w")
    assert page.title() == "BRENT, 1 week · Price forecasts"
    page.get_by_label("6 months").check()
    expect(page).to_have_url(re.compile("#BRENT/6m$"))
    page.get_by_label("Commodity", exact=True).select_option("WTI")
    expect(page).to_have_title("WTI, 6 months · Price forecasts")
    assert page.locator("#status").inner_text() == "Showing WTI, 6 months ahead."
    page.go_back()
    expect(page).to_have_title("BRENT, 6 months · Price forecasts")
    assert page.get_by_label("Commodity", exact=True).input_value() == "BRENT"
    page.goto(page.url.split("#")[0] + "#GOLD/1m")
    expect(page.locator("#status")).to_contain_text("Unknown commodity GOLD")


def test_keyboard_reaches_all_controls(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/")
    controls = page.evaluate(
        """() => [...document.querySelectorAll('a, select, button, summary, [tabindex="0"], input:checked')]
        .filter((one) => one.getClientRects().length).map((one, i) => { one.dataset.index = i; return String(i); })"""
    )
    reached = []
    for _ in range(len(controls) + 8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.index ?? ''"))
    assert set(controls) <= set(reached)
    page.locator("#horizon input:checked").focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_title("WTI, 3 months · Price forecasts")
    expect(page.locator("#horizon input[value='3m']")).to_be_focused()
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.url.endswith("#WTI/3m")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_page_without_prices_shows_how_to_provide_them(open_page: Callable[..., Page], size: dict[str, int]) -> None:
    page = open_page("empty/", "#empty:not([hidden])", size=size)
    assert "--data prices.csv" in page.locator("#empty").inner_text()
    assert "says little about direction" in page.locator("#source").inner_text()
    expect(page.locator("#selection")).to_be_hidden()
    assert page.title() == "No prices · Price forecasts"
    assert_fits(page)
    assert_accessible(page)


def test_page_shows_an_error_with_a_retry_button(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("error/", "#alert button", expected="503", size=PHONE)
    alert = page.get_by_role("alert").inner_text()
    assert "prices.csv, line 7: expected a price for 'WTI'; got 'n.a.'" in alert
    assert "Traceback" not in page.content()
    assert page.title() == "Error · Price forecasts"
    expect(page.locator("#source")).to_be_visible()
    assert_fits(page)
    assert_accessible(page)
    site.failing.failing = False
    time.sleep(2.1)  # a failed refresh is repeated after two seconds
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(VISIBLE, timeout=60_000)
    assert page.locator("#alert").inner_text() == ""


def test_page_reports_an_unreachable_server(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/", expected="ERR_FAILED")
    page.route("**/dashboard", lambda route: route.abort())
    page.reload()
    page.wait_for_selector("#alert button")
    assert "Server unreachable" in page.get_by_role("alert").inner_text()
    page.unroute("**/dashboard")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(VISIBLE)


def test_page_keeps_the_last_numbers_when_a_refresh_fails(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/")
    document = page.evaluate(DOCUMENT)
    failed = {**document, "refresh_error": "prices.csv not found"}
    page.route("**/dashboard", lambda route: route.fulfill(json=failed))
    page.reload()
    expect(page.locator("#warnings")).to_contain_text("Error: prices.csv not found")
    assert page.locator("#forecast tbody tr").count() == 8


def test_page_shows_the_tables_without_plotly(browser: Any, site: Site) -> None:
    page = browser.new_page()
    page.route("**/plotly.min.js", lambda route: route.abort())
    page.goto(f"{site.address}/normal/")
    page.get_by_text("The chart failed to load").first.wait_for()
    assert page.locator("#forecast tbody tr").count() == 8
    page.close()


def test_page_asks_for_the_token_and_keeps_it_in_the_tab(open_page: Callable[..., Page]) -> None:
    page = open_page("token/", "#secret", expected="401")
    assert page.evaluate("document.activeElement.id") == "secret"
    assert_accessible(page)
    page.get_by_label("Access token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("rejected this token").wait_for()
    page.get_by_label("Access token").fill("right")
    page.get_by_role("button", name="Show forecasts").click()
    page.wait_for_selector(VISIBLE, timeout=60_000)
    expect(page.locator("#token")).to_be_hidden()
    page.reload()
    page.wait_for_selector(VISIBLE)


def test_page_shows_progress_while_loading(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("slow/", "progress")
    assert "Loading" in page.get_by_role("status").inner_text()
    page.wait_for_selector("#source:not([hidden])")
    assert_accessible(page)
    site.finished.set()
    page.wait_for_selector(VISIBLE, timeout=60_000)
    expect(page.locator("progress")).to_be_hidden()


def test_page_shows_the_outlook_before_the_past_forecasts(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("stages/")
    assert "computing…" in page.locator("#outlook tbody").inner_text()
    for section in ("past", "coverage"):
        assert page.locator(f"#{section} .body").inner_text() == "Past forecasts are being computed…"
    assert_accessible(page)
    page.set_viewport_size(PHONE)
    assert_fits(page)
    site.checked.set()
    page.wait_for_selector("#past table", timeout=60_000)
    assert " independent" in page.locator("#outlook tbody").inner_text()


def test_page_never_parses_data_as_markup(open_page: Callable[..., Page]) -> None:
    page = open_page("markup/", DRAWN.format("matrix"), charts=True, size=PHONE)
    assert page.locator("main img, main b, main script").count() == 0
    assert MARKUP in page.locator("#forecast-heading").inner_text()
    assert_fits(page)
    page.get_by_label("Commodity", exact=True).select_option(index=1)
    expect(page).to_have_title('"><b>&amp;, 1 month · Price forecasts')
    assert_fits(page)


def test_page_of_forty_commodities(open_page: Callable[..., Page]) -> None:
    page = open_page("many/#WTI39/1m", size=PHONE)
    assert page.title().startswith("WTI39,")
    assert page.locator("#outlook tbody tr").count() == 40
    assert "28 left out" in page.locator("#correlation").inner_text()
    assert_fits(page)
    page.locator("#outlook a").first.click()
    expect(page).to_have_title("WTI0, 1 month · Price forecasts")
    expect(page.locator("#forecast-heading")).to_be_focused()
    page.get_by_role("link", name="Source").click()
    expect(page.locator("#source-heading")).to_be_in_viewport()
    assert page.url.endswith("#WTI0/1m")


def test_page_of_a_commodity_in_warmup(open_page: Callable[..., Page]) -> None:
    page = open_page("late/#BRENT/1m")
    assert "needs more than 252" in page.locator("#forecast").inner_text()
    assert "none yet" in page.locator("#outlook").inner_text()
    page.get_by_label("Commodity", exact=True).select_option("WTI")
    expect(page.locator("#forecast tbody tr")).to_have_count(8)


def test_page_without_javascript_links_the_document(browser: Any, site: Site) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{site.address}/normal/")
    assert "JavaScript" in page.locator("main").inner_text()
    assert page.locator("main a").get_attribute("href") == "dashboard"
    page.close()


def test_static_files_are_compressed_cached_and_restricted(site: Site) -> None:
    def get(path: str, **headers: str) -> requests.Response:
        return requests.get(f"{site.address}/empty/{path}", headers=headers, timeout=30)

    policy = get("").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "connect-src 'self';" in policy
    plotly = get("page/plotly.min.js")
    assert plotly.headers["content-encoding"] == "gzip"
    assert plotly.headers["content-type"].startswith("text/javascript")
    assert plotly.headers["etag"]
    plain = get("page/page.css", **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["x-content-type-options"] == "nosniff"
    for name in ("%2e%2e/page.py", "..%2fpage.py", "page.py", "none.js", "__init__.py"):
        assert get(f"page/{name}").status_code == 404
    empty = get("dashboard")
    assert (empty.json()["state"], empty.headers["cache-control"]) == ("empty", "no-store")
