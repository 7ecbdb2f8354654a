"""The option `--device`. Nothing here imports torch, so usage errors are immediate."""

import re
from typing import Annotated

import typer

DEVICE = re.compile(r"auto|[a-z]+(:\d+)?")
HELP = "cpu, cuda, cuda:1, mps, or auto: a GPU if there is one"


def check_name(device: str | None) -> str | None:
    """Reject what is not the name of a device, before torch is imported."""
    if device is None or DEVICE.fullmatch(device):
        return device
    raise typer.BadParameter(f"expected auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got {device!r}")


def check_available(device: str | None) -> None:
    """Raise ValueError for a device that this machine does not have, before slow work."""
    if device not in (None, "cpu"):
        from torchcommodity.opkit.arguments import operation
        from torchcommodity.training import resolve_device

        with operation("--device"):
            resolve_device(str(device))


Device = Annotated[
    str, typer.Option("--device", metavar="DEVICE", callback=check_name, help=f"Device of the model: {HELP}")
]
TrainingDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        callback=check_name,
        help=f"Device of training and of its forecasts: {HELP}; default: the device in the settings (cpu)",
    ),
]
