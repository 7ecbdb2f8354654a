"""The page in Chromium: every state, two widths, keyboard, names for screen readers, nothing from outside."""

import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import requests
import uvicorn
from fastapi import FastAPI, Request, Response

from torchcommodity.data import DataError, Panel, Provenance, embedded
from torchcommodity.export import Artifact, RawPriceForecaster, make_metadata
from torchcommodity.forecast import fit
from torchcommodity.serve.dashboard import Dashboard
from torchcommodity.serve.dashboard._router import router

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run")  # fmt: skip
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
NARROW = {"width": 320, "height": 256}  # what 1280 by 1024 is at 400 %
HOSTILE = "<script>alert('&\"')</script><img src=http://x.invalid/>" + "long" * 20
SHORT = "2017-09-01"  # 334 rows
DRAWN = "#chart-{}[data-drawn]"
SHOWN = "#forecast:not([hidden])"
STUB = "window.Plotly = {react() {}}"  # where charts are not what is tested: the library takes a second to load
Page = Any


def desk(panel: Panel, source: str = "embedded") -> Dashboard:
    """A forecaster of a panel, as `export` would write it, and the last rows of the panel as its prices: few calls."""
    forecaster = fit(panel.between(None, "2018-06-29"))
    artifact = Artifact(make_metadata(forecaster, "pt2"), RawPriceForecaster(forecaster))
    return Dashboard(artifact, lambda: panel.between(SHORT), source)


def many(panel: Panel, count: int) -> Panel:
    """The same real prices under many names."""
    frame = pd.concat([panel.to_pandas()["WTI"]] * count, axis=1)
    frame.columns = [f"WTI{n}" for n in range(count)]
    return Panel.from_pandas(frame)


def hostile(panel: Panel) -> Panel:
    frame = panel.to_pandas()
    frame.columns = [HOSTILE, '"><b>&amp;']
    return Panel.from_pandas(frame, units=[HOSTILE, "<b>"], provenance=[Provenance(*[HOSTILE] * 6)] * 2)


@dataclass
class Broken:
    """Prices that cannot be read until somebody mends them."""

    mended: Dashboard
    broken: bool = True

    def __call__(self) -> dict[str, Any]:
        if self.broken:
            raise DataError("prices.csv, line 7: expected a price for 'WTI'; got 'n.a.'")
        return self.mended()


@dataclass
class Site:
    """One server; each state of the page under a folder of its own."""

    address: str
    broken: Broken
    slow: threading.Event
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def panel() -> Panel:
    return embedded()["WTI", "SP500"].between("2015-01-01", "2018-12-31")


@pytest.fixture(scope="module")
def site(panel: Panel) -> Iterator[Site]:
    normal = desk(panel)
    values = panel.values.plain().clone()
    values[:-100, 1] = np.nan
    late = Dashboard(normal.artifact, lambda: replace(panel, values=values).between(SHORT), "embedded")
    broken, slow = Broken(normal), threading.Event()
    states: dict[str, Callable[[], dict[str, Any]]] = {
        "normal": normal,
        "token": normal,
        "empty": Dashboard(normal.artifact),
        "error": broken,
        "late": late,
        "slow": lambda: normal() if slow.wait(60) else {},
        "single": desk(panel.select(["WTI"])),
        "hostile": desk(hostile(panel)),
        "many": desk(many(panel, 40)),
    }
    app = FastAPI()
    for name, dashboard in states.items():
        app.include_router(router(normal.artifact.metadata, dashboard), prefix=f"/{name}")

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        if request.url.path == "/token/dashboard" and request.headers.get("authorization") != "Bearer right":
            return Response('{"error": "token"}', 401)
        answer: Response = await call_next(request)
        return answer

    server, free = uvicorn.Server(uvicorn.Config(app, log_level="error")), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [free]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Site(f"http://127.0.0.1:{free.getsockname()[1]}", broken, slow)
    slow.set()
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium here: the page was not looked at")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    """One for all tests: the chart library is fetched once."""
    made = browser.new_context()
    yield made
    made.close()


@pytest.fixture
def open_page(context: Any, site: Site) -> Iterator[Callable[..., Page]]:
    """Opens a state; whatever the page complains of, or asks from another host, fails the test."""
    pages, wrong = [], []

    def opened(
        path: str, wait: str = SHOWN, *, charts: bool = False, expected: str = "nothing", size: dict[str, int] = DESKTOP
    ) -> Page:
        page = context.new_page()
        if not charts:
            page.route("**/plotly.min.js", lambda route: route.fulfill(body=STUB, content_type="text/javascript"))
        pages.append(page)
        page.set_viewport_size(size)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if expected not in said.text else None)
        page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(site.address) else None)
        page.goto(f"{site.address}/{path}")
        page.wait_for_selector(wait, timeout=60_000)
        return page

    yield opened
    for page in pages:
        page.close()
    assert wrong == []


def assert_accessible(page: Page) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found] == []


def assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_the_dashboard_is_whole_fits_and_can_be_read_aloud(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/", DRAWN.format("matrix"), charts=True)
    for name in ("fan", "past", "coverage", "correlation", "matrix"):
        assert page.locator(f"#chart-{name} svg").count() > 0, name
        assert len(page.locator(f"#chart-{name}").get_attribute("aria-label")) > 40
    assert page.title() == "WTI, 1 month · Price forecasts"
    assert page.locator("h1").count() == 1
    assert "old: the last price is" in page.locator("#old").inner_text()
    assert_accessible(page)
    for size in (PHONE, NARROW):
        page.set_viewport_size(size)
        page.wait_for_timeout(100)
        assert_fits(page)


def test_in_the_dark_and_with_opened_tables_it_can_be_read_too(open_page: Callable[..., Page]) -> None:
    page = open_page("single/")
    page.locator("#past summary").click()
    assert page.locator("#past details tbody tr").count() > 60
    page.emulate_media(color_scheme="dark")
    assert_accessible(page)
    assert "There is no pair" in page.locator("#correlation").inner_text()
    assert page.locator("#all").is_hidden()


def test_numbers_on_the_page_are_those_of_the_document(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#SP500/3m", DRAWN.format("past"), charts=True)
    shown = page.evaluate("fetch('dashboard').then((answer) => answer.json())")
    sp500 = next(one for one in shown["symbols"] if one["symbol"] == "SP500")
    median = sp500["forecasts"][2]["quantiles"]["0.5"]
    assert page.locator(".big strong").inner_text() == f"{median:,.2f}"
    drawn = page.evaluate("document.getElementById('chart-fan').data.find((one) => one.name === 'median').y")
    assert drawn[-1] == median
    past = sp500["past"][2]
    assert page.evaluate("document.getElementById('chart-past').data.at(-1).y") == past["realized"]
    page.get_by_text("forecasts 3 months ahead as a table").click()
    assert page.locator("#past details tbody tr").count() == len(past["target"])


def test_links_go_deep_and_back(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/#SP500/1w")
    assert page.title() == "SP500, 1 week · Price forecasts"
    page.get_by_label("6 months").check()
    expect(page).to_have_url(re.compile("#SP500/6m$"))
    page.get_by_label("Commodity", exact=True).select_option("WTI")
    expect(page).to_have_title("WTI, 6 months · Price forecasts")
    assert page.locator("#status").inner_text() == "Showing WTI, 6 months ahead."
    page.go_back()
    expect(page).to_have_title("SP500, 6 months · Price forecasts")
    assert page.get_by_label("Commodity", exact=True).input_value() == "SP500"
    page.goto(page.url.split("#")[0] + "#GOLD/1m")
    expect(page.locator("#status")).to_contain_text("no GOLD")


def test_the_keyboard_reaches_everything(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/")
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a, select, button, summary, [tabindex="0"], input:checked')]
        .filter((one) => one.getClientRects().length).map((one, i) => { one.dataset.stop = i; return String(i); })"""
    )
    reached = []
    for _ in range(len(wanted) + 3):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.stop ?? ''"))
    assert set(wanted) <= set(reached)
    page.locator("#horizon input:checked").focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_title("WTI, 3 months · Price forecasts")
    assert page.evaluate("document.activeElement.value") == "3m"
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#WTI/3m")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_without_prices_the_page_says_how_to_give_them(open_page: Callable[..., Page], size: dict[str, int]) -> None:
    page = open_page("empty/", "#empty:not([hidden])", size=size)
    assert "--data prices.csv" in page.locator("#empty").inner_text()
    assert "Direction is not forecast" in page.locator("#model").inner_text()
    assert page.locator("#choose").is_hidden()
    assert page.title() == "No prices · Price forecasts"
    assert_fits(page)
    assert_accessible(page)


def test_an_error_is_told_in_words_and_can_be_tried_again(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("error/", "#alert button", expected="503", size=PHONE)
    said = page.get_by_role("alert").inner_text()
    assert "prices.csv, line 7: expected a price for 'WTI'; got 'n.a.'" in said
    assert "Traceback" not in page.content()
    assert page.title() == "Error · Price forecasts"
    assert page.locator("#model").is_visible()
    assert_fits(page)
    assert_accessible(page)
    site.broken.broken = False
    time.sleep(2.1)  # what failed is not tried again at once
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(SHOWN, timeout=60_000)
    assert page.locator("#alert").inner_text() == ""


def test_a_server_that_is_gone_is_told(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/", expected="ERR_FAILED")
    page.route("**/dashboard", lambda route: route.abort())
    page.reload()
    page.wait_for_selector("#alert button")
    assert "cannot be reached" in page.get_by_role("alert").inner_text()
    page.unroute("**/dashboard")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(SHOWN)


def test_older_numbers_stay_when_newer_prices_cannot_be_read(open_page: Callable[..., Page]) -> None:
    page = open_page("normal/")
    shown = page.evaluate("fetch('dashboard').then((answer) => answer.json())")
    page.route("**/dashboard", lambda route: route.fulfill(json={**shown, "problem": "prices.csv is gone"}))
    page.reload()
    expect(page.locator("#old")).to_contain_text("The server says: prices.csv is gone")
    assert page.locator("#forecast tbody tr").count() == 4


def test_without_the_chart_library_the_tables_stay(browser: Any, site: Site) -> None:
    page = browser.new_page()
    page.route("**/plotly.min.js", lambda route: route.abort())
    page.goto(f"{site.address}/normal/")
    page.get_by_text("The chart could not be loaded").first.wait_for()
    assert page.locator("#forecast tbody tr").count() == 4
    page.close()


def test_a_token_is_asked_for_and_kept_for_the_tab(open_page: Callable[..., Page]) -> None:
    page = open_page("token/", "#secret", expected="401")
    assert page.evaluate("document.activeElement.id") == "secret"
    assert_accessible(page)
    page.get_by_label("Access token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("did not accept this token").wait_for()
    page.get_by_label("Access token").fill("right")
    page.get_by_role("button", name="Show the forecasts").click()
    page.wait_for_selector(SHOWN, timeout=60_000)
    assert page.locator("#token").is_hidden()
    page.reload()
    page.wait_for_selector(SHOWN)


def test_while_the_server_works_the_page_says_so(open_page: Callable[..., Page], site: Site) -> None:
    page = open_page("slow/", "progress")
    assert "Loading" in page.get_by_role("status").inner_text()
    page.wait_for_selector("#model:not([hidden])")
    assert_accessible(page)
    site.slow.set()
    page.wait_for_selector(SHOWN, timeout=60_000)
    assert page.locator("progress").is_hidden()


def test_nothing_from_data_becomes_markup(open_page: Callable[..., Page]) -> None:
    page = open_page("hostile/", DRAWN.format("matrix"), charts=True, size=PHONE)
    assert page.locator("main img, main b, main script").count() == 0
    assert HOSTILE in page.locator("#forecast-heading").inner_text()
    assert_fits(page)
    page.get_by_label("Commodity", exact=True).select_option(index=1)
    expect(page).to_have_title('"><b>&amp;, 1 month · Price forecasts')
    assert_fits(page)


def test_forty_commodities(open_page: Callable[..., Page]) -> None:
    page = open_page("many/#WTI39/1m", size=PHONE)
    assert page.title().startswith("WTI39,")
    assert page.locator("#all tbody tr").count() == 40
    assert "28 are not" in page.locator("#correlation").inner_text()
    assert_fits(page)
    page.locator("#all a").first.click()
    expect(page).to_have_title("WTI0, 1 month · Price forecasts")
    expect(page.locator("#forecast-heading")).to_be_focused()
    page.get_by_role("link", name="Model card").click()
    expect(page.locator("#model-heading")).to_be_in_viewport()
    assert page.url.endswith("#WTI0/1m")


def test_a_commodity_in_its_warm_up(open_page: Callable[..., Page]) -> None:
    page = open_page("late/#SP500/1m")
    assert "needs more than 252" in page.locator("#forecast").inner_text()
    assert "no forecast yet" in page.locator("#all").inner_text()
    page.get_by_label("Commodity", exact=True).select_option("WTI")
    expect(page.locator("#forecast tbody tr")).to_have_count(4)


def test_without_javascript_the_page_says_what_it_needs(browser: Any, site: Site) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{site.address}/normal/")
    assert "JavaScript" in page.locator("main").inner_text()
    assert page.locator("main a").get_attribute("href") == "dashboard"
    page.close()


def test_files_are_packed_kept_and_guarded(site: Site) -> None:
    def get(path: str, **headers: str) -> requests.Response:
        return requests.get(f"{site.address}/empty/{path}", headers=headers, timeout=30)

    policy = get("").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "connect-src 'self';" in policy
    plotly = get("page/plotly.min.js")
    assert plotly.headers["content-encoding"] == "gzip"
    assert plotly.headers["content-type"].startswith("text/javascript")
    again = get("page/plotly.min.js", **{"If-None-Match": plotly.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = get("page/page.css", **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["x-content-type-options"] == "nosniff"
    for name in ("%2e%2e/page.py", "..%2fpage.py", "page.py", "none.js", "__init__.py"):
        assert get(f"page/{name}").status_code == 404
    empty = get("dashboard")
    assert (empty.json()["state"], empty.headers["cache-control"]) == ("empty", "no-store")
