"""Executors: Ray gives the results of the local executor, retries lost tasks and raises the task's exception."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.training import LOCAL, Executor, FitConfig, make_executor


@pytest.fixture(scope="module")
def ray(cluster: Any) -> Iterator[Executor]:
    with make_executor("ray", cluster.address) as executor:
        yield executor


def kill_worker_once(marker: Path) -> int:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def raise_error(value: int) -> int:
    raise ValueError(f"expected another value; got {value}")


@pytest.mark.slow
@pytest.mark.cluster
def test_ray_executor_gives_the_backtest_of_the_local_executor(panel: Panel, config: FitConfig, ray: Executor) -> None:
    config = replace(config, train=replace(config.train, epochs=1))
    local, remote = (
        forecast.backtest(panel, config, first_year=2013, refit_network=1, baselines={}, executor=executor)
        for executor in (LOCAL, ray)
    )
    assert remote.fits == local.fits
    assert all(torch.equal(q, remote.quantiles[name]) for name, q in local.quantiles.items())


@pytest.mark.slow
@pytest.mark.cluster
def test_ray_executor_retries_a_task_whose_worker_is_killed(ray: Executor, tmp_path: Path) -> None:
    assert next(ray.map(kill_worker_once, [tmp_path / "marker"])) != os.getpid()


@pytest.mark.slow
@pytest.mark.cluster
def test_ray_executor_raises_the_exception_of_the_task(ray: Executor) -> None:
    with pytest.raises(ValueError, match=r"^expected another value; got 3$"):
        list(ray.map(raise_error, [3]))


def test_make_executor_starts_a_local_cluster_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    calls: list[tuple[str, str | None]] = []
    monkeypatch.setattr(ray, "init", lambda address=None, **_: calls.append(("init", address)))
    monkeypatch.setattr(ray, "shutdown", lambda: calls.append(("shutdown", None)))
    with make_executor("ray"):
        assert calls == [("init", "local")]
    assert calls[1:] == [("shutdown", None)]


def test_make_executor_rejects_address_with_local_executor() -> None:
    with (
        pytest.raises(ValueError, match=r"address must be None for the local executor; got '10\.0\.0\.1:6379'"),
        make_executor("local", "10.0.0.1:6379"),
    ):
        pass
