"""`torchcommodity doctor`."""

from collections.abc import Callable

from typer.testing import Result


def test_doctor_prints_versions_devices_and_the_self_test(run: Callable[..., Result]) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for item in ("torch", "python", "native library", "devices", "threads", "passed"):
        assert item in result.stdout
