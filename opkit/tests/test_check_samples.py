"""Samples as users state them: in float32, or with arguments that belong to one length."""

import math

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit


def _single(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


def test_float32_samples_of_a_function_are_judged_in_float64():
    report = opkit.check(lambda x: x.sin() * x, samples=[_single(5, 3)], time=None, only=["gradcheck"])
    assert report["gradcheck"].status == "pass"


def test_float32_samples_of_a_module_run():
    report = opkit.check(torch.nn.Conv1d(3, 2, 3), samples=[_single(2, 3, 7)], only=["gradcheck"])
    assert report["gradcheck"].status == "pass"


def test_a_price_level_is_none_of_returns():
    def wealth(returns):
        return (1 + returns).cumprod(-2)

    sample = 0.02 * torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    report = opkit.check(wealth, samples=[sample], time=-2, causal=True, only=["half_precision"])
    assert report.ok, str(report)


def test_a_function_with_a_gradient_of_its_own_may_take_numpy():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(x.detach().numpy() ** 3)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    report = opkit.check(Cube, samples=[_single(4, 3)], time=None, compiled=False)
    assert report.ok, str(report)


def test_a_tensor_on_the_cpu_is_named_after_a_look_ahead():
    def last_value(x):
        rows = torch.arange(x.shape[-2])
        return x.gather(-2, rows.flip(0)[:, None].expand(x.shape))

    report = opkit.check(last_value, samples=[_single(9, 3)], time=-2, causal=True, compiled=False)
    assert [cause.kind for cause in report.causes] == ["causal", "hard_coded_device"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_ignored_setting_is_found_on_samples_of_any_dtype(dtype):
    def scale(x, factor: float = 2.0):
        return x * 2.0

    report = opkit.check(scale, samples=[_single(5, 3).to(dtype)], settings={"factor": [2.0, 3.0]}, only=["settings"])
    assert [cause.kind for cause in report.causes] == ["setting_ignored"]


def test_an_operator_that_takes_float32_only_is_not_differentiated_numerically():
    def single_only(x):
        if x.dtype != torch.float32:
            raise TypeError(f"single_only: x must be float32; got {x.dtype}")
        return x * 2

    report = opkit.check(single_only, samples=[_single(5, 3)], time=None, compiled=False)
    assert report.ok, str(report)
    assert "finite differences need float64" in report["gradcheck"].cause


@pytest.mark.parametrize("causal", [True, False])
def test_a_mask_of_the_length_of_the_sample_is_no_look_ahead(causal):
    def attention(x, mask):
        return (x @ x.mT).masked_fill(~mask, -math.inf).softmax(-1) @ x

    mask = torch.ones(5, 5, dtype=torch.bool)
    samples = [(_single(2, 5, 3), mask.tril() if causal else mask)]
    report = opkit.check(attention, samples=samples, time=-2, causal=True, only=["causal"])
    assert report.ok == causal


def test_check_takes_samples_of_a_record_with_numbers() -> None:
    def reference(a: torch.Tensor, c: float, b: torch.Tensor, k: int = 3) -> torch.Tensor:
        return a * b * k + c

    record = opkit.Op(
        "test_check_samples::muladd", reference=reference, backward=lambda g, *, a, b, k: (g * b * k, g * a * k)
    )
    a, b = torch.rand(2, 2, 5, 3, dtype=torch.double)
    for samples in ([(a, 2.0, b)], [(a, 2.0, b, 4)], None):
        report = opkit.check(record, samples=samples, only="values_float64", compiled=False)
        assert not report.failures, report
    assert not opkit.check(record, settings={"k": [1, 2]}, only="values_float64", compiled=False).failures


def test_a_sample_without_values_has_an_empty_jacobian() -> None:
    report = opkit.check(torch.relu, samples=[torch.rand(0, 3).double()], only="jacrev")
    assert report["jacrev"].status == "pass"
