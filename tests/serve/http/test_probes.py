"""Probes: liveness does not depend on the workers, readiness needs one of them."""

import asyncio
from types import SimpleNamespace

import pytest

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._app import LIVE, READY, monitoring_routes


@pytest.mark.parametrize(("available", "status"), [(False, 503), (True, 200)])
def test_ready_needs_an_available_worker_and_live_none(available: bool, status: int) -> None:
    pool = SimpleNamespace(available=available)
    routes = {route.path: route.endpoint for route in monitoring_routes(pool, SimpleNamespace()).routes}

    def respond(path: str) -> int:
        try:
            return asyncio.run(routes[path]()).status_code
        except RequestError as error:
            return error.status

    assert (respond(READY), respond(LIVE)) == (status, 200)
