"""The site is built with warnings as errors, and the examples of its gallery run while it is: they keep their word."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

import torchcommodity

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("[0-9]*.py"))
ROOMS = [info.name for info in pkgutil.iter_modules(torchcommodity.__path__) if info.name not in {"_C", "cli"}]
PARTS = ["ops.indicators", "serve.batch", "serve.dashboard", "serve.http"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def words(page: Path) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_its_source_and_draws(site: Path, name: str) -> None:
    page, figure = site / "examples" / f"{name}.html", site / "figures" / f"{name}.html"
    assert re.search(r"; arch \d+\.\d+\.\d+, arch\.data\.\w+", words(page))
    assert f"../figures/{name}.html" in page.read_text()
    assert "plotly.min.js" in figure.read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_stands_in_the_readme(name: str) -> None:
    assert f"| [`{name}.py`]({name}.py) |" in (ROOT / "examples" / "README.md").read_text()


def test_garch_learns_what_arch_estimates(site: Path) -> None:
    page = words(site / "examples" / "02_learnable_garch.html")
    for name, tolerance in {"alpha": 1e-3, "beta": 1e-3, "log-likelihood": 1e-2}.items():
        ours, archs = re.search(rf"{name} +(-?[\d.]+) (-?[\d.]+)", page).groups()
        assert float(ours) == pytest.approx(float(archs), abs=tolerance)


def test_only_the_scaler_of_all_rows_leaks(site: Path) -> None:
    page = words(site / "examples" / "03_lstm_forecaster.html")
    assert re.search(r"fitted on past rows: forecasts to [\d-]+ change not in one bit", page)
    assert re.search(r"fitted on all rows: forecasts to [\d-]+ change by up to [1-9]", page)


def test_training_raises_the_sharpe_ratio_of_its_own_years(site: Path) -> None:
    page = words(site / "examples" / "04_sharpe_portfolio.html")
    trained, untrained = re.search(r" trained (-?[\d.]+) .* untrained (-?[\d.]+) ", page).groups()
    assert float(trained) > float(untrained)


def test_training_brings_the_generator_nearer(site: Path) -> None:
    page = words(site / "examples" / "05_gradient_penalty.html")
    trained, untrained = re.search(r" total ([\d.]+) ([\d.]+) ", page).groups()
    assert float(trained) < float(untrained)


def test_the_forecaster_in_onnx_is_the_forecaster(site: Path) -> None:
    page = words(site / "examples" / "06_external_models.html")
    assert float(re.search(r"ONNX and PyTorch differ by at most ([\d.e+-]+)", page)[1]) < 1e-6
    assert 20 < int(re.search(r"volatility of the next month (\d+)% per year", page)[1]) < 60
    gradient = re.search(r"gradient by volatility of 5, 21, 63 days: (-?[\d.]+), (-?[\d.]+), (-?[\d.]+)", page)
    assert all(float(value) > 0 for value in gradient.groups())


@pytest.mark.parametrize("room", [*ROOMS, *PARTS])
def test_every_public_name_has_its_reference(site: Path, room: str) -> None:
    page = (site / "reference" / f"{room}.html").read_text()
    module = importlib.import_module(f"torchcommodity.{room}")
    kinds = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    public = {name for name, kind in kinds.items() if inspect.isfunction(kind) or inspect.isclass(kind)}
    assert {name for name in public if f'id="torchcommodity.{room}.{name}"' not in page} == set()


def test_shapes_of_a_signature_are_on_the_page(site: Path) -> None:
    page = words(site / "reference" / "ops.html")
    assert "(..., T, N) log-returns per step, of mean zero" in page


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="(?:https?:)?//', page.read_text()), page
