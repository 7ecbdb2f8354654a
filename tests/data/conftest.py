"""Settings of requests to the local server."""

import pytest

from torchcommodity import data


@pytest.fixture
def http(tmp_path):
    return data.Http(cache=tmp_path / "cache", timeout=(1.0, 0.5), retries=2, backoff=0.01)
