"""How the tests of the command line run it, and the prices they give it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from torchcommodity.cli._application import app
from torchcommodity.data import embedded

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command in this process: `run("fit", "--data", path)`."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def error() -> Callable[[Result], str]:
    """The error message of a command, with line breaks as blanks."""
    return lambda result: " ".join(result.stderr.split())


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    """Prices of two symbols over three years: enough for a fit, too few for a walk-forward test."""
    path = tmp_path / "prices.csv"
    embedded(["WTI", "BRENT"]).between("2015-07-01", "2018-12-31").to_pandas().to_csv(path)
    return path


@pytest.fixture(scope="session")
def fitted(run: Run, once: Callable[..., Path]) -> Path:
    """A model fitted on the embedded prices of WTI, 2012 to 2016; next to it the command `export` has written it."""

    def write(folder: Path) -> None:
        folder.mkdir()
        embedded(["WTI"]).between("2012-01-01", "2016-12-31").to_pandas().to_csv(folder / "prices.csv")
        result = run("fit", "--data", folder / "prices.csv", "--out", folder / "model.safetensors")
        assert result.exit_code == 0, result.output
        result = run("export", folder / "model.safetensors", "--quiet")
        assert (result.exit_code, result.output) == (0, "")

    return once("fitted", write) / "model.safetensors"


@pytest.fixture(scope="session")
def artifact(fitted: Path) -> Path:
    return fitted.with_suffix(".pt2")
