"""The records of the library: their kernels, and what runs without them."""

import os
import subprocess
import sys

import pytest
import torch

from torch_opkit import OPERATORS, Op
from torchcommodity import ops


def test_records_have_native_kernels() -> None:
    assert ops.NATIVE, ops.NATIVE.reason
    assert OPERATORS["commodity::linear_recurrence"].devices[0] == "cpu"


def test_record_returns_half_precision() -> None:
    x = torch.rand(4, 2).bfloat16()
    assert ops.linear_recurrence(x, x).dtype == torch.bfloat16


def test_record_of_another_package_does_not_replace_one_of_the_library() -> None:
    message = "name must not be that of an operator of torchcommodity; .* as mine::rolling_mean"
    with pytest.raises(ValueError, match=message):
        Op("commodity::rolling_mean", reference=lambda x: x)


def test_operators_run_through_their_references_without_the_native_library() -> None:
    code = """
import torch
from torchcommodity import ops
print(ops.NATIVE.reason, ops.linear_recurrence(*torch.ones(2, 3, 1)).sum())
"""
    environment = os.environ | {"TORCHCOMMODITY_NATIVE": "0"}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert process.stdout.startswith("disabled by TORCHCOMMODITY_NATIVE=0")
    assert "tensor(6.)" in process.stdout
