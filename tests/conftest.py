"""Where the real prices for tests lie, and how hypothesis runs."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore = ["ops/cuda_emulation"]  # a script, which leaves the native library of its own process out

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


@pytest.fixture(scope="session")
def futures(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> "data.Panel":  # noqa: F821
    """Front-month prices of four futures with their contracts and the curve of three nearby contracts."""
    import pandas as pd

    from torchcommodity import data

    codes = {"WTI": "CL", "BRENT": "BRN", "CORN": "C", "SOYBEAN": "S"}
    table = pd.read_csv(shared_data / "daily.csv.gz", parse_dates=["date"])
    frame = table[table["symbol"].isin(codes)].pivot(index="date", columns="symbol", values="close")
    nearby = pd.read_csv(shared_data / "term_structure.csv.gz")
    path = tmp_path_factory.mktemp("curve") / "curve.parquet"
    nearby[nearby["symbol"].isin(codes) & (nearby["nth"] <= 3)].to_parquet(path)
    return data.Panel.from_pandas(frame).with_contracts(codes).with_curve(data.read_curve(path))


@pytest.fixture(autouse=True)
def _no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's own store, cache or keys."""
    monkeypatch.setenv("TORCHCOMMODITY_STORE", str(tmp_path / "home" / "prices.duckdb"))
    monkeypatch.setenv("TORCHCOMMODITY_CACHE", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("EIA_API_KEY", "TORCHCOMMODITY_FRED_URL", "TORCHCOMMODITY_EIA_URL"):
        monkeypatch.delenv(name, raising=False)
