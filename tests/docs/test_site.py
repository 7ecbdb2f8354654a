"""The site builds without warnings, every public name has its reference, and the examples of the gallery are right."""

import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("[0-9]*.py"))
PAGES = ["index", "tutorials/forecast", "how-to/serving", "reference/export", "results/skill", "examples/index"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.process]  # the examples run while the site is built


def public_modules(folder: Path, prefix: str = "") -> list[str]:
    names = [info.name for info in pkgutil.iter_modules([str(folder)]) if info.name[0] != "_" and info.name != "cli"]
    return [module for name in names for module in (prefix + name, *public_modules(folder / name, f"{prefix}{name}."))]


@pytest.fixture(scope="module")
def site(once: Callable[..., Path]) -> Path:
    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stdout + process.stderr  # without --quiet, which hides warnings

    return once("site", build)


def text_of(page: Path) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_its_sources_and_shows_its_figure(site: Path, name: str) -> None:
    page, figure = site / "examples" / f"{name}.html", site / "figures" / f"{name}.html"
    assert re.search(r"; torchcommodity/data/open_prices/\w+\.csv\.gz", text_of(page))
    assert f"../figures/{name}.html" in page.read_text()
    assert "plotly.min.js" in figure.read_text()


def test_example_windows_has_forty_lines() -> None:
    code = (ROOT / "examples" / "07_windows.py").read_text()
    lines = code[code.index("SYMBOLS = ") : code.index("    if out:")].splitlines()
    assert len([line for line in lines if line.strip()]) <= 40


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_in_the_readme(name: str) -> None:
    assert f"| [`{name}.py`]({name}.py) |" in (ROOT / "examples" / "README.md").read_text()


def test_example_garch_agrees_with_arch(site: Path) -> None:
    page = text_of(site / "examples" / "02_learnable_garch.html")
    for name, tolerance in {"alpha": 1e-3, "beta": 1e-3, "log-likelihood": 1e-2}.items():
        value, expected = re.search(rf"{name} +(-?[\d.]+) (-?[\d.]+)", page).groups()
        assert float(value) == pytest.approx(float(expected), abs=tolerance)


def test_example_lstm_leaks_only_through_the_scaler_of_all_rows(site: Path) -> None:
    page = text_of(site / "examples" / "03_lstm_forecaster.html")
    assert re.search(r"fitted on training rows: forecasts to [\d-]+ stay bit for bit the same", page)
    assert re.search(r"fitted on all rows: forecasts to [\d-]+ change by up to [1-9]", page)


def test_example_portfolio_training_raises_the_sharpe_ratio_in_sample(site: Path) -> None:
    page = text_of(site / "examples" / "04_sharpe_portfolio.html")
    trained, untrained = re.search(r" trained (-?[\d.]+) .* untrained (-?[\d.]+) ", page).groups()
    assert float(trained) > float(untrained)


def test_example_gan_training_lowers_the_distance(site: Path) -> None:
    page = text_of(site / "examples" / "05_gradient_penalty.html")
    trained, untrained = re.search(r" total ([\d.]+) ([\d.]+) ", page).groups()
    assert float(trained) < float(untrained)


def test_example_windows_trains_the_network_and_prints_its_baseline(site: Path) -> None:
    page = text_of(site / "examples" / "07_windows.html")
    baseline, last = (re.search(rf" {epoch} ([\d.]+) ([\d.]+) ([\d.]+) ", page).groups() for epoch in (0, 10))
    assert float(last[0]) < float(baseline[0])


def test_example_onnx_forecaster_agrees(site: Path) -> None:
    page = text_of(site / "examples" / "06_external_models.html")
    assert float(re.search(r"ONNX and PyTorch differ by at most ([\d.e+-]+)", page)[1]) < 1e-6
    assert 20 < int(re.search(r"volatility of the next month: (\d+)% per year", page)[1]) < 60
    gradient = re.search(r"gradient by volatility of 5, 21, 63 days: (-?[\d.]+), (-?[\d.]+), (-?[\d.]+)", page)
    assert all(float(value) > 0 for value in gradient.groups())


@pytest.mark.parametrize("module", public_modules(ROOT / "torchcommodity"))
def test_reference_has_every_public_name(site: Path, module: str) -> None:
    page = (site / "reference" / f"{module}.html").read_text()
    public = importlib.import_module(f"torchcommodity.{module}")
    exports = {name: getattr(public, name) for name in getattr(public, "__all__", ())}
    names = [
        name for name, value in exports.items() if inspect.isfunction(inspect.unwrap(value)) or inspect.isclass(value)
    ]
    assert [name for name in names if f'id="torchcommodity.{module}.{name}"' not in page] == []


def test_reference_shows_shapes_of_signatures(site: Path) -> None:
    page = text_of(site / "reference" / "ops.html")
    assert "(..., T, N) Log-returns per step with mean zero" in page


def test_reference_takes_no_sentence_for_a_returned_type(site: Path) -> None:
    page = text_of(site / "reference" / "losses.html")
    assert '() or, with "none" and not pooled, (...) negative ratio per row, not per year: multiply by' in page


def test_reference_shows_keywords_that_functions_share(site: Path) -> None:
    page = text_of(site / "reference" / "data.html")
    for name in ("read", "to_panel", "read_bars"):
        assert re.search(rf"\b{name}\( [^)]* date_order: DateOrder \| None = None", page)
    text = "name of the layout, a Format.name of data.FORMATS; default: detected."
    assert page.count(text) == 4  # of the three, and of ReadArguments


def test_site_has_the_data_files_of_the_results(site: Path) -> None:
    files = sorted((ROOT / "docs" / "results").glob("*.csv"))
    assert [file.read_bytes() for file in files] == [(site / "results" / file.name).read_bytes() for file in files]
    assert 'href="indicators.csv"' in (site / "results" / "indicators.html").read_text()


def test_site_downloads_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="(?:https?:)?//', page.read_text()), page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@pytest.mark.browser
@pytest.mark.parametrize("origin", ["folder", "server"])
def test_site_search_works_from_a_folder_and_from_a_server(site: Path, server: str, browser: Any, origin: str) -> None:
    root = site.as_uri() if origin == "folder" else server
    page = browser.new_page()
    page.goto(f"{root}/concepts/panels.html")  # the links of the results are relative to another folder
    page.locator("input.md-search__input").click()
    page.get_by_text("Type to start searching").wait_for()  # the index is loaded
    page.keyboard.type("rolling_correlation", delay=20)
    page.locator(f".md-search-result__link[href^='{root}/reference/ops.html']").first.wait_for()
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_site_has_enough_contrast_in_both_schemes(site: Path, browser: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    rules = {"runOnly": ["color-contrast", "link-in-text-block"]}
    page = browser.new_page(color_scheme=scheme)
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        assert (
            page.locator("body").get_attribute("data-md-color-scheme") == {"light": "default", "dark": "slate"}[scheme]
        )
        violations = axe.run(page, options=rules).response["violations"]
        assert [(name, node["html"], node["failureSummary"]) for one in violations for node in one["nodes"]] == []
    page.close()


@pytest.mark.browser
def test_tutorials_tables_show_their_links_on_a_phone(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "tutorials" / "from-the-tutorials.html").as_uri())
    tables = page.locator("article table").all()
    assert len(tables) == 5
    assert max(table.evaluate("x => x.getBoundingClientRect().right") for table in tables) <= 390
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_home_page_shows_the_picture_of_the_scheme(site: Path, browser: Any, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 844})
    page.goto((site / "index.html").as_uri())
    pictures = page.locator("img[src*=forecast]")
    visible = [picture.get_attribute("src") for picture in pictures.all() if picture.is_visible()]
    assert visible == [
        {"light": "assets/forecast.png#only-light", "dark": "assets/forecast-dark.png#only-dark"}[scheme]
    ]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
