"""Where an artifact runs: on which devices, and with which versions of torch.

A graph moves to any device with float64; machine code and onnxruntime stay where they are. PyTorch reads a graph of
another version as long as the major version of its schema is the same. Within it, a newer torch may write operators,
arguments or fields that an older one does not know, and machine code fits its own version.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.export.passes import move_to_device_pass

from torch_opkit import has_float64
from torch_opkit.arguments import current_operation
from torchcommodity._choices import ArtifactFormat

CPU = torch.device("cpu")
RELEASE = re.compile(r"(\d{1,4}\.\d{1,4})[\w.+]{0,40}")


class WrongDeviceError(ValueError):
    """An artifact does not run on the device."""


class UntrustedCodeError(ValueError):
    """An artifact is machine code that nobody vouched for."""


class OtherTorchError(ValueError):
    """An artifact does not load with a torch that did not write it; the message is the end of a sentence."""


def check_format(format: ArtifactFormat, device: torch.device) -> None:
    """Raise WrongDeviceError if no artifact of a format runs on a device."""
    if not has_float64(device):
        rule = "device must have float64, in which an artifact takes prices; use Forecaster.to for a fitted model"
        raise WrongDeviceError(f"{current_operation()}: {rule}; got {device}")
    if format == "onnx" and device.type != "cpu":
        raise WrongDeviceError(f"{current_operation()}: device must be cpu for format 'onnx'; use 'pt2'; got {device}")


def check_compiled_for(compiled_for: str, device: torch.device) -> None:
    """Raise WrongDeviceError if machine code is for another kind of device."""
    if compiled_for != device.type:
        rule = f"device must be {compiled_for}, for which the file was compiled"
        raise WrongDeviceError(f"Artifact.load: {rule}; got {device}")


def move(program: torch.export.ExportedProgram, device: torch.device) -> torch.export.ExportedProgram:
    """A program on a device: its weights and constants, and the tensors that its graph creates."""
    return program if device.type == "cpu" else move_to_device_pass(program, str(device))


@contextmanager
def explain_other_torch(writer: str) -> Iterator[None]:
    """Say which torch wrote the artifact and which one reads it, if it does not load and they are not the same."""
    try:
        yield
    except WrongDeviceError:
        raise
    except Exception as error:
        ours, theirs = release(torch.__version__), release(writer)
        if theirs in ("", ours):
            raise
        raise OtherTorchError(
            f"was written by torch {writer} and does not load with torch {torch.__version__}; load it with torch "
            f"{theirs}, or export the forecaster again with torch {ours}; got {str(error).strip()}"
        ) from error


def release(version: str) -> str:
    """Minor release of a version, `2.15` of `2.15.0+cpu`; empty if it is not the version of a torch."""
    match = RELEASE.fullmatch(version)
    return match[1] if match else ""
