"""Devices by name: syntax, availability, Fabric's arguments and the limit of memory."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_opkit.arguments import operation
from torchcommodity import data, forecast
from torchcommodity.portfolio import PortfolioTrainConfig
from torchcommodity.scenarios import AdversarialConfig
from torchcommodity.training import FitConfig, TrainConfig, fabric_device, limit_memory, resolve_device, to_device

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.mark.parametrize("config", [TrainConfig, PortfolioTrainConfig, AdversarialConfig])
def test_configs_reject_what_is_no_device(config: Callable[..., Any]) -> None:
    message = (
        f"{config.__name__}: device must be auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got 'gpu'"
    )
    with pytest.raises(ValueError, match=message):
        config(device="gpu")
    assert config(device="cuda:1").device == "cuda:1"  # of another machine


@pytest.mark.parametrize("device", ["", "cuda:", "cuda:x", "CUDA", "cpu,cuda", "tpu", 0, None])
def test_resolve_device_rejects_what_is_no_device(device: Any) -> None:
    with pytest.raises(ValueError, match="resolve_device: device must be auto or a device of torch"):
        resolve_device(device)


@no_gpu
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", "xpu", "meta", torch.device("cuda", 3)])
def test_resolve_device_rejects_what_this_machine_does_not_have(device: Any) -> None:
    message = f"resolve_device: device must be available on this machine, such as cpu or auto; got {device}"
    with pytest.raises(ValueError, match=re.escape(message)):
        resolve_device(device)


@no_gpu
def test_resolve_device_auto_is_the_cpu_without_a_gpu() -> None:
    assert resolve_device("auto") == torch.device("cpu")


def test_resolve_device_auto_prefers_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    names: list[Any] = []
    monkeypatch.setattr(torch, "zeros", lambda size, device: names.append(device) or torch.empty(size))
    resolve_device("auto")
    assert names == ["cuda"]


def test_fabric_device_takes_one_gpu_by_index_and_all_of_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchcommodity.training._runtime.resolve_device", torch.device)
    assert fabric_device("cuda:1") == {"accelerator": "cuda", "devices": [1]}
    assert fabric_device("cuda") == {"accelerator": "cuda", "devices": 1}
    assert fabric_device("cuda", processes=2) == {"accelerator": "cuda", "devices": 2}
    message = "train: device must have no index under torchrun, such as cuda; got cuda:1"
    with operation("train"), pytest.raises(ValueError, match=message):
        fabric_device("cuda:1", processes=2)


def test_limit_memory_needs_a_gpu_and_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="limit_memory: memory_fraction needs a GPU, such as --device cuda; got cpu"):
        limit_memory(torch.device("cpu"), 0.5)
    with pytest.raises(ValueError, match=re.escape("limit_memory: memory_fraction must be in (0, 1]; got 1.5")):
        limit_memory(torch.device("cuda", 0), 1.5)
    limits: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *arguments: limits.append(arguments))
    limit_memory(torch.device("cuda", 1), 0.25)
    assert limits == [(0.25, torch.device("cuda", 1))]


def test_limit_memory_takes_the_name_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="limit_memory: memory_fraction needs a GPU, such as --device cuda; got cpu"):
        limit_memory("cpu", 0.5)
    with pytest.raises(ValueError, match=r"limit_memory: device must be auto or a device of torch, .*; got 'gpu'"):
        limit_memory("gpu", 0.5)
    with pytest.raises(TypeError, match="limit_memory: memory_fraction must be a number; got memory_fraction='half'"):
        limit_memory("cuda", "half")  # type: ignore[arg-type]
    limits: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *arguments: limits.append(arguments))
    monkeypatch.setattr("torchcommodity.training._device.resolve_device", torch.device)
    limit_memory("cuda:1", 0.25)
    assert limits == [(0.25, torch.device("cuda", 1))]


def test_to_device_keeps_float64_on_the_cpu() -> None:
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    assert to_device(layer, torch.device("cpu")).weight.dtype == torch.float64
    assert to_device(torch.ones(2, dtype=torch.int64), torch.device("cpu")).dtype == torch.int64


def test_forecaster_to_is_itself_where_it_is_and_a_copy_elsewhere() -> None:
    wti = data.embedded(["WTI"]).between("2014-01-01", "2017-12-31")
    forecaster = forecast.fit(wti)
    assert forecaster.to("cpu") is forecaster
    assert forecaster.device == torch.device("cpu")
    with pytest.raises(ValueError, match="to: device must be auto or a device of torch"):
        forecaster.to("gpu")


@no_gpu
@pytest.mark.parametrize("fit", [forecast.fit, forecast.cached_fit])
@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_fit_without_a_network_rejects_a_device_that_this_machine_does_not_have(
    fit: Callable[..., Any], device: str
) -> None:
    wti = data.embedded(["WTI"]).between("2014-01-01", "2017-12-31")
    with pytest.raises(ValueError, match=f"^fit: device must be available on this machine.*; got {device}"):
        fit(wti, FitConfig(train=TrainConfig(device=device)))
