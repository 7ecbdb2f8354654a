"""The artifact that the servers of these tests serve."""

from pathlib import Path

import pytest
from running_server import PANEL

from torchcommodity import forecast
from torchcommodity.export import export


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(forecast.fit(PANEL), tmp_path_factory.mktemp("serve") / "wti.pt2")
