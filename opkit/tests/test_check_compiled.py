"""`opkit.check` where it compiles and exports: gaps of PyTorch and of ONNX are no faults of an operator."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import torch_opkit as opkit

pytestmark = [pytest.mark.slow, pytest.mark.compile]


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return gradient * y

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return tangent * y


def test_check_skips_what_dynamo_does_not_trace() -> None:
    lstm = opkit.check(nn.LSTM(3, 4), samples=[torch.rand(5, 2, 3)], time=None, only="compile_forward")
    jvp = opkit.check(Exponential.apply, samples=[torch.rand(5, 3).double()], time=None, only="compile_backward")
    for result, words in ((lstm["compile_forward"], "does not support RNN"), (jvp["compile_backward"], "custom `jvp`")):
        assert result.status == "skip"
        assert words in result.cause


@pytest.mark.parametrize("scale", [0.1, 0.5])
def test_check_knows_that_onnx_rounds_python_numbers(scale: float) -> None:
    report = opkit.check(lambda x: x * scale, samples=[torch.rand(5, 3).double()], time=None, only="onnx")
    assert report["onnx"].status == "pass", str(report)
