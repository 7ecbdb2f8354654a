"""The site builds without warnings, every public name has its reference, and the examples of the gallery are right."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("[0-9]*.py"))
pytestmark = pytest.mark.slow  # the examples run while the site is built


def public_modules(folder: Path, prefix: str = "") -> list[str]:
    names = [info.name for info in pkgutil.iter_modules([str(folder)]) if info.name[0] != "_" and info.name != "cli"]
    return [module for name in names for module in (prefix + name, *public_modules(folder / name, f"{prefix}{name}."))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # --quiet hides warnings
    assert process.returncode == 0, process.stdout + process.stderr
    return folder


def text_of(page: Path) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_its_sources_and_shows_its_figure(site: Path, name: str) -> None:
    page, figure = site / "examples" / f"{name}.html", site / "figures" / f"{name}.html"
    assert re.search(r"; torchcommodity/data/open_prices/\w+\.csv\.gz", text_of(page))
    assert f"../figures/{name}.html" in page.read_text()
    assert "plotly.min.js" in figure.read_text()


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


def test_site_downloads_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="(?:https?:)?//', page.read_text()), page
