"""The artifact that the tests of the server and of its page share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from torchcommodity import forecast
from torchcommodity.data import embedded
from torchcommodity.export import export


@pytest.fixture(scope="session")
def wti_file(once: Callable[..., Path]) -> Path:
    """A forecaster of WTI, fitted on 2012 to 2018."""
    panel = embedded(["WTI"]).between("2012-01-01", "2018-12-31")
    return once("wti.pt2", lambda path: export(forecast.fit(panel), path))
