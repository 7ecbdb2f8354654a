"""Where the real prices for tests lie, and how hypothesis runs."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore = ["cuda_emulation"]  # a script, which leaves the native library of its own process out

settings.register_profile("torchcommodity", deadline=None, print_blob=True)
settings.load_profile("torchcommodity")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real prices that the project does not ship; a test that asks for it is skipped where it is absent."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("TORCHCOMMODITY_SHARED", beside)) / "data"
    if not (folder / "daily.csv.gz").is_file():
        pytest.skip(f"no real prices in {folder}; set TORCHCOMMODITY_SHARED to the folder that holds data/")
    return folder


@pytest.fixture(autouse=True)
def _no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's own store, cache or keys."""
    monkeypatch.setenv("TORCHCOMMODITY_STORE", str(tmp_path / "home" / "prices.duckdb"))
    monkeypatch.setenv("TORCHCOMMODITY_CACHE", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("EIA_API_KEY", "TORCHCOMMODITY_FRED_URL", "TORCHCOMMODITY_EIA_URL"):
        monkeypatch.delenv(name, raising=False)
