"""`torchcommodity doctor`."""

from collections.abc import Callable

import pytest
import torch
from typer.testing import Result

from torchcommodity.cli._doctor import devices


def test_doctor_prints_versions_devices_and_the_self_test(run: Callable[..., Result]) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for item in ("torch", "python", "native library", "devices", "threads", "passed"):
        assert item in result.stdout


def test_doctor_shows_the_memory_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"is_available": True, "device_count": 1, "get_device_name": "H200"}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (3 * 2**30, 4 * 2**30))
    assert "cuda:0 (H200, 3.0 of 4.0 GiB free)" in devices()
