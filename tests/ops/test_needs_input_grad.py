"""Backward passes that skip gradients: alone or together with others, the gradient of an argument is the same."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import torch_opkit as opkit
from torchcommodity import ops

assert ops.NATIVE is not None  # importing ops registers the operators
SKIPPING = sorted(
    name
    for name, operator in opkit.OPERATORS.items()
    if name.startswith("commodity::")
    and operator.gradients
    and operator.gradients.asks_for_needs
    and "series" not in name  # tests/ops/series
)


def gradients(function: Any, sample: opkit.Sample, learned: list[int]) -> list[Tensor]:
    tensors = [x if x is None else x.clone() for x in sample.tensors]
    leaves = [tensors[i].requires_grad_() for i in learned]  # type: ignore[union-attr]
    outputs = [y for y in tree_leaves(function(*tensors, **sample.settings)) if y.requires_grad]
    loss = sum(torch.nan_to_num(y).sin().sum() for y in outputs)
    return list(torch.autograd.grad(loss, leaves, materialize_grads=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SKIPPING)
def test_gradient_of_one_argument_equals_that_among_all(name: str) -> None:
    cases = opkit.OPERATORS[name].cases()  # type: ignore[misc]
    sample = cases.samples[0]
    floating = [i for i, x in enumerate(sample.tensors) if x is not None and x.is_floating_point()]
    expected = gradients(cases.function, sample, floating)
    for i, value in zip(floating, expected, strict=True):
        torch.testing.assert_close(gradients(cases.function, sample, [i])[0], value)


def test_operators_with_expensive_gradients_skip_them() -> None:
    layers = {"conv_bn", "linear_bn_relu", "lltm_cell", "lltm", "lstm"}
    recursions = {"garch_variance", "egarch_variance", "hamilton_filter", "ewm_mean", "matrix_recurrence"}
    assert {f"commodity::{name}" for name in layers | recursions} <= set(SKIPPING)
