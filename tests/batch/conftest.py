"""A small forecaster of two symbols, and tables of windows of real prices."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from torchcommodity import data, forecast
from torchcommodity.export import Artifact, export
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)

Windows = Callable[..., pd.DataFrame]


@pytest.fixture(scope="session")
def prices() -> data.Panel:
    return data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2016-12-31")


@pytest.fixture(scope="session")
def forecaster(prices: data.Panel) -> Forecaster:
    return forecast.fit(prices, FitConfig(HarGarchConfig(CONFIG)))


@pytest.fixture(scope="session")
def artifact_file(forecaster: Forecaster, once: Callable[..., Path]) -> Path:
    return once("batch.pt2", lambda path: export(forecaster, path))


@pytest.fixture(scope="session")
def artifact(artifact_file: Path) -> Artifact:
    return Artifact.load(artifact_file)


@pytest.fixture(scope="session")
def windows(prices: data.Panel) -> Windows:
    """A function of a count: windows of real prices of unequal lengths as a long table, panels p0, p1 ..."""

    def table(count: int = 6, rows: int = 60) -> pd.DataFrame:
        wide = [prices.to_pandas().iloc[7 * k : 7 * k + rows + k % 3] for k in range(count)]
        long = [frame.reset_index().melt("date", var_name="symbol", value_name="price") for frame in wide]
        return pd.concat([frame.assign(panel=f"p{k}") for k, frame in enumerate(long)], ignore_index=True)

    return table
