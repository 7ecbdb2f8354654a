"""Devices of artifacts: a graph moves to any device with float64, machine code and onnxruntime stay where they are."""

import torch
from torch.export.passes import move_to_device_pass

from torchcommodity.export._metadata import Format
from torchcommodity.opkit import has_float64

CPU = torch.device("cpu")


class WrongDeviceError(ValueError):
    """An artifact does not run on the device."""


def check_format(operation: str, format: Format, device: torch.device) -> None:
    """Raise WrongDeviceError if no artifact of a format runs on a device."""
    if not has_float64(device):
        rule = "device must have float64, in which an artifact takes prices; use Forecaster.to for a fitted model"
        raise WrongDeviceError(f"{operation}: {rule}; got {device}")
    if format == "onnx" and device.type != "cpu":
        raise WrongDeviceError(f"{operation}: device must be cpu for format 'onnx'; use 'pt2'; got {device}")


def check_compiled_for(compiled_for: str, device: torch.device) -> None:
    """Raise WrongDeviceError if machine code is for another kind of device."""
    if compiled_for != device.type:
        rule = f"device must be {compiled_for}, for which the file was compiled"
        raise WrongDeviceError(f"Artifact.load: {rule}; got {device}")


def move(program: torch.export.ExportedProgram, device: torch.device) -> torch.export.ExportedProgram:
    """A program on a device: its weights and constants, and the tensors that its graph creates."""
    return program if device.type == "cpu" else move_to_device_pass(program, str(device))
