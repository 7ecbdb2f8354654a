"""The page in Chromium, with plotly only where a test draws charts."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from dashboard_site import DESKTOP, VISIBLE, Page, Site, serve_states

from torchcommodity.data import embedded

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run")  # fmt: skip
PLOTLY_STUB = "window.Plotly = {react() {}}"  # for tests without charts: plotly takes a second to load


@pytest.fixture(scope="module")  # while it runs, names are unchecked, which tests of other files would notice
def site(unchecked_names: Callable[[], AbstractContextManager[None]]) -> Iterator[Site]:
    panel = embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-31")
    with unchecked_names():  # panels are made on request: the page has to escape names on its own
        yield from serve_states(panel)


@pytest.fixture(scope="module")  # an open driver would keep tests of other files from starting theirs
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_OPTIONS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    """Shared by the tests of a file, so that plotly is fetched once."""
    shared = browser.new_context()
    yield shared
    shared.close()


@pytest.fixture
def open_page(context: Any, site: Site) -> Iterator[Callable[..., Page]]:
    """Function that opens a path; console errors and requests to other hosts fail the test."""
    pages, problems = [], []

    def opened(
        path: str,
        wait: str = VISIBLE,
        *,
        charts: bool = False,
        expected: str = "nothing",
        size: dict[str, int] = DESKTOP,
    ) -> Page:
        page = context.new_page()
        if not charts:
            page.route(
                "**/plotly.min.js", lambda route: route.fulfill(body=PLOTLY_STUB, content_type="text/javascript")
            )
        pages.append(page)
        page.set_viewport_size(size)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if expected not in message.text else None)
        page.on(
            "request",
            lambda request: problems.append(request.url) if not request.url.startswith(site.address) else None,
        )
        page.goto(f"{site.address}/{path}")
        page.wait_for_selector(wait, timeout=60_000)
        return page

    yield opened
    for page in pages:
        page.close()
    assert problems == []
