"""A server with each state of the page under its own path, and checks of a page in Chromium."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response

from torchcommodity.data import DataError, Panel, Provenance, spread, to_panel
from torchcommodity.export import Artifact, RawPriceForecaster, make_metadata
from torchcommodity.forecast import fit
from torchcommodity.serve.dashboard import Dashboard
from torchcommodity.serve.dashboard._model_card import model_card
from torchcommodity.serve.dashboard._router import make_router

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
MARKUP = "<script>alert('&\"')</script><img src=http://x.invalid/>" + "long" * 20
START = "2017-09-01"  # 334 rows
DRAWN = "#chart-{}[data-drawn]"
VISIBLE = "#forecast:not([hidden])"
DOCUMENT = "fetch('dashboard').then((response) => response.json())"
Page = Any


def make_dashboard(panel: Panel, source: str = "embedded", **settings: Any) -> Dashboard:
    """Dashboard of a model fitted to the panel, for the last rows of the panel."""
    forecaster = fit(panel.between(None, "2018-06-29"), **settings)
    artifact = Artifact(make_metadata(forecaster, "pt2"), RawPriceForecaster(forecaster))
    return Dashboard(artifact, lambda: panel.between(START), source)


def repeat_symbol(panel: Panel, count: int) -> Panel:
    """Panel with the prices of WTI in all columns."""
    frame = pd.concat([panel.to_pandas()["WTI"]] * count, axis=1)
    frame.columns = [f"WTI{n}" for n in range(count)]
    return to_panel(frame)


def with_markup(panel: Panel) -> Panel:
    """Within `unchecked_names`, a panel whose names, units and sources are HTML."""
    frame = panel.to_pandas()
    frame.columns = [MARKUP, '"><b>&amp;']
    return to_panel(frame, units=[MARKUP, "<b>"], provenance=[Provenance(*[MARKUP] * 7)] * 2)


def complete(dashboard: Dashboard) -> Callable[[], dict[str, Any]]:
    """The dashboard without the outlook before its first complete document."""

    def make_document() -> dict[str, Any]:
        while (document := dashboard())["state"] == "outlook":
            pass
        return document

    return make_document


@dataclass
class FailingDashboard:
    """Dashboard that fails while `failing` is set."""

    dashboard: Callable[[], dict[str, Any]]
    failing: bool = True

    def __call__(self) -> dict[str, Any]:
        if self.failing:
            raise DataError("prices.csv, line 7: expected a price for 'WTI'; got 'n.a.'")
        return self.dashboard()


@dataclass
class Site:
    """Server with each state of the page under its own path."""

    address: str
    failing: FailingDashboard
    finished: threading.Event
    checked: threading.Event


def serve_states(panel: Panel) -> Iterator[Site]:
    """Run the server of all states."""
    dashboard = make_dashboard(panel)
    artifact, normal, stages = dashboard.artifact, complete(dashboard), make_dashboard(panel)
    values = panel.values.plain().clone()
    values[:-100, 1] = np.nan
    late = Dashboard(artifact, lambda: replace(panel, values=values).between(START), "embedded")
    failing, finished, checked = FailingDashboard(normal), threading.Event(), threading.Event()
    states: dict[str, Callable[[], dict[str, Any]]] = {
        "normal": normal,
        "token": normal,
        "empty": Dashboard(artifact),
        "error": failing,
        "late": complete(late),
        "slow": lambda: normal() if finished.wait(60) else {},
        "stages": lambda: stages() if not stages._document or checked.wait(60) else {},
        "single": complete(make_dashboard(panel.select(["WTI"]))),
        "futures": complete(make_dashboard(panel.select(["WTI"]).with_contracts({"WTI": "CL"}))),
        "markup": complete(make_dashboard(with_markup(panel))),
        "tails": complete(make_dashboard(panel, horizons=["2w", "2m"], levels=[0.01, 0.05, 0.5, 0.95, 0.99])),
        "median": complete(make_dashboard(panel.select(["WTI"]), horizons=[1], levels=[0.5])),
        "spread": complete(make_dashboard(spread(panel, "BRENT-WTI"), signed=["BRENT-WTI"])),
        "many": complete(make_dashboard(repeat_symbol(panel, 40))),
    }
    app = FastAPI()
    for name, dashboard in states.items():
        app.include_router(make_router(model_card(artifact.metadata), dashboard), prefix=f"/{name}")

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        if request.url.path == "/token/dashboard" and request.headers.get("authorization") != "Bearer right":
            return Response('{"error": "token"}', 401)
        response: Response = await call_next(request)
        return response

    server, listener = uvicorn.Server(uvicorn.Config(app, log_level="error")), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}", failing, finished, checked)
    finished.set()
    checked.set()
    server.should_exit = True
    thread.join(10)


def assert_accessible(page: Page) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    violations = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in violations] == []


def wait_until(page: Page, condition: str) -> None:
    """Poll from outside: the page's security policy forbids the `eval` of `page.wait_for_function`."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"the page never reached {condition}")


def drawn(page: Page, chart: str, name: str) -> list[float]:
    """Values of one line of a chart."""
    values: list[float] = page.evaluate(
        "([chart, name]) => document.getElementById(`chart-${chart}`).data.find((one) => one.name === name).y",
        [chart, name],
    )
    return values


def assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
