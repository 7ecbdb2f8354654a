"""Probes: liveness does not depend on the workers, readiness needs one of them, health all."""

import asyncio
from types import SimpleNamespace

import pytest

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._app import LIVE, READY, _probe_routes


@pytest.mark.parametrize(("ready", "status"), [(set(), 503), ({1}, 200), ({0, 1}, 200)])
def test_ready_needs_one_worker_and_live_none(ready: set[int], status: int) -> None:
    routes = {route.path: route.endpoint for route in _probe_routes(SimpleNamespace(ready=ready)).routes}

    def respond(path: str) -> int:
        try:
            return asyncio.run(routes[path]()).status_code
        except RequestError as error:
            return error.status

    assert (respond(READY), respond(LIVE)) == (status, 200)
