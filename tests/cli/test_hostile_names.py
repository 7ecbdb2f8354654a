"""Hostile symbols and units behind the checks: no spreadsheet, browser, database, path or log runs them."""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import torch
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from torchcommodity import batch, data, export, forecast
from torchcommodity.cli import _output as output
from torchcommodity.export._metadata import make_metadata
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.report import ReportData, RunRecord, package_versions, to_csv, to_html, to_json
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.training import FitConfig

NAMES = (
    "=cmd|'/C calc'!A0", "@SUM(1)", "a;=1+1", "\uff1d1+1", "\t=1+1", "a\n=1+1",
    "<script>window.hacked = 1</script>", '"><img src=x onerror="window.hacked=1">',
    "</script><svg onload=window.hacked=1>",
    "<a href='javascript:window.hacked=1'>x</a>", "${css}$main", "%{x}<extra></extra>",
    "../../etc/passwd", "x'); DROP TABLE prices; --", 'x"; DROP TABLE forecasts; --',
    "[bold red]x[/]", "\x1b[31mred", 'x"} 1\ntorchcommodity_hacked{a="', "\u202egnp.exe", ":warning:",
)  # fmt: skip
CONFIG = FitConfig(
    HarGarchConfig(HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30))
)
RUN = RunRecord("2024-01-02T03:04:05Z", "torchcommodity forecast", "embedded", "0" * 64, 0, package_versions())
FORMULA = re.compile(r"(^|[;\t\r\n])\s*[=+@\uff1d]")  # not "-": numbers


@pytest.fixture(scope="module", autouse=True)
def _unchecked(unchecked_names: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    with unchecked_names():
        yield


@pytest.fixture(scope="module")
def panel(_unchecked: None) -> data.Panel:
    wti = data.embedded(["WTI"]).between("2024-01-01")
    N = len(NAMES)
    values = wti.values.plain().repeat(1, N) * torch.linspace(1, 2, N, dtype=torch.float64)
    # provenance has to be printable: that is the one thing that no output has to repair
    records = [replace(wti.provenance[0], publisher=name if name.isprintable() else "x") for name in NAMES]
    finding = data.Finding(NAMES[6], NAMES[0], NAMES[12], 1, NAMES[16], NAMES[7])
    return data.Panel(values, wti.dates, NAMES, NAMES, tuple(records), findings=(finding,))


@pytest.fixture(scope="module")
def forecaster(panel: data.Panel) -> forecast.Forecaster:
    return forecast.fit(panel, CONFIG)


@pytest.fixture(scope="module")
def report(panel: data.Panel, forecaster: forecast.Forecaster) -> ReportData:
    return ReportData(panel, forecaster.predict(panel), forecaster.record, RUN, None, "too short.")


def test_no_cell_of_a_csv_file_is_a_formula(report: ReportData, panel: data.Panel, tmp_path: Path) -> None:
    data.write(panel, tmp_path / "prices.csv")
    for text in (to_csv(report), (tmp_path / "prices.csv").read_text()):
        for separator in ",;\t":  # as spreadsheets of different languages read it
            for row in csv.reader(io.StringIO(text), delimiter=separator):
                assert [cell for cell in row if FORMULA.search(cell)] == []


def test_json_keeps_every_name(report: ReportData) -> None:
    document = json.loads(to_json(report))
    assert tuple(document["forecast"]["symbols"]) == NAMES


@pytest.mark.browser
def test_page_runs_nothing_and_asks_for_nothing(report: ReportData, tmp_path: Path) -> None:
    html = to_html(report)
    for name in NAMES[6:10]:
        assert name not in html
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs Chromium")
    (tmp_path / "report.html").write_text(html)
    events: list[Any] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.on("dialog", lambda dialog: (events.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: events.append(request.url))
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("html[data-charts]", timeout=60_000)
        assert page.evaluate("window.hacked") is None
        assert page.locator("script:not([id]), img, main svg[onload], a[href^='javascript']").count() == 2  # its own
        browser.close()
    assert [event for event in events if not event.startswith(("file:", "blob:", "data:"))] == []
    assert len([event for event in events if event.startswith("file:")]) == 1


def test_batch_stores_every_name_as_text(panel: data.Panel, forecaster: forecast.Forecaster, tmp_path: Path) -> None:
    out = tmp_path / "forecasts.duckdb"
    batch.run(forecaster, panel, out)
    with duckdb.connect(str(out), read_only=True) as connection:
        symbols = connection.execute("SELECT DISTINCT symbol FROM forecasts").fetchall()
    assert {symbol for (symbol,) in symbols} == set(NAMES)


def test_store_keeps_every_name(panel: data.Panel, tmp_path: Path) -> None:
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(panel, "x'); DROP TABLE panels; --")
    assert store.load("x'); DROP TABLE panels; --").symbols == NAMES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prices.duckdb"]


@pytest.mark.slow
@pytest.mark.export
def test_files_of_models_with_such_names_are_refused(forecaster: forecast.Forecaster, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"symbols: expected names; got '../../etc/passwd': that is not a path"):
        export.export(forecaster, tmp_path / "model.pt2")
    forecaster.save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="symbols: expected names"):
        forecast.Forecaster.load(tmp_path / "model.safetensors")
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    text = generate_latest(Metrics(make_metadata(forecaster, "pt2")).registry).decode()
    families = {family.name for family in text_string_to_metric_families(text)}
    assert not [name for name in families if "hacked" in name]


def test_terminal_prints_one_plain_line_for_each_name(report: ReportData, panel: data.Panel) -> None:
    with redirect_stdout(io.StringIO()) as captured:
        screen = output.console()
        output.print_forecast(screen, report.forecast)
        output.print_findings(screen, panel.findings)
        for name in NAMES:
            output.print_line(screen, name)
    text = captured.getvalue()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold red]x[/]" in text
    assert ":warning:" in text
    assert len(text.splitlines()[-len(NAMES) :]) == len(NAMES)
    assert np.isfinite(report.forecast.prices.numpy()).all()
