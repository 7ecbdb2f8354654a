"""`torchcommodity cache`."""

from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]


def test_cache_shows_and_clears_results(run: Run, prices: Path, tmp_path: Path) -> None:
    assert "The cache is empty." in run("cache", "show").stdout
    run("forecast", "--data", prices, "--symbols", "WTI", "--out", tmp_path / "out")
    listing = run("cache", "show").stdout
    assert "1 result," in listing
    assert "forecaster" in listing
    assert run("cache", "clear").stdout == "Removed 1 result.\n"
    assert "The cache is empty." in run("cache", "show").stdout
