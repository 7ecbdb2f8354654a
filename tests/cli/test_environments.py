"""A forecast has the same bits however Python is run: optimized, without a home, in other time zones and locales."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache

import pytest

from torchcommodity.data import embedded

FORECAST = """
from torchcommodity.cli import main
import sys
for arguments in (["fit", "--data", "prices.csv", "--out", "model.safetensors"],
                  ["predict", "model.safetensors", "--data", "prices.csv", "--out", "quantiles.csv"]):
    sys.argv = ["torchcommodity", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
assert "torch._dynamo" not in sys.modules, "a forecast starts a second earlier without it"
"""
ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    "as it is": {},
    "elsewhere": {
        "HOME": None,
        "XDG_CACHE_HOME": None,
        "TORCHCOMMODITY_CACHE": None,
        "TZ": "Pacific/Kiritimati",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
    },
    "read-only home": {"HOME": "/proc", "XDG_CACHE_HOME": None, "TORCHCOMMODITY_CACHE": None},
    "optimized": {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": None},  # which Python compiles anew, once
}
SLOW = ("read-only home", "optimized")


@pytest.fixture(scope="module")
def quantiles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """The file of quantiles in an environment, from a file with Windows line ends in a folder with blanks."""
    root = tmp_path_factory.mktemp("environments")
    prices = embedded(["WTI", "BRENT"]).between("2015-07-01", "2018-12-31").to_pandas()

    @cache
    def forecast(name: str) -> bytes:
        folder = root / f"Öl preise {name}"
        folder.mkdir()
        prices.to_csv(folder / "prices.csv", lineterminator="\r\n")
        variables = {key: value for key, value in {**os.environ, **ENVIRONMENTS[name]}.items() if value is not None}
        command = [sys.executable, "-c", FORECAST]
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, errors="replace")
        assert done.returncode == 0, f"{name}: {done.stderr}"
        return (folder / "quantiles.csv").read_bytes()

    return forecast


@pytest.mark.parametrize("name", ["elsewhere", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_has_the_same_quantiles(quantiles: Callable[[str], bytes], name: str) -> None:
    assert quantiles(name) == quantiles("as it is")
