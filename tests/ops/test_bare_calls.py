"""`torch.ops.commodity.<op>(...)` without the public function: inputs that do not fit are refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from torchcommodity import ops

assert ops.NATIVE is not None  # importing ops registers the operators

commodity = torch.ops.commodity
MISFITS: dict[str, Callable[[], Any]] = {
    "dcc_score without panels": lambda: commodity.dcc_score(rand(0, 9, 3), rand(4, 2), rand(4, 3, 3), True),
    "dcc_correlation_backward without rows of fewer panels": lambda: commodity.dcc_correlation_backward(
        rand(50, 3, 3), rand(2, 0, 3), rand(50, 2), rand(50, 3, 3), rand(50, 3, 3)
    ),
    "garch_variance_backward without rows": lambda: commodity.garch_variance_backward(
        rand(4, 0, 3), rand(4, 0, 3), rand(3), rand(3), rand(3), rand(4, 0, 3), True
    ),
    "egarch_variance_backward without rows": lambda: commodity.egarch_variance_backward(
        rand(4, 0, 3), rand(4, 0, 3), rand(3), rand(3), rand(3), rand(4, 0, 3), True
    ),
    "hamilton_filter of fewer panels": lambda: commodity.hamilton_filter(
        rand(5, 9, 3), rand(0, 2, 3), rand(5, 2, 3), rand(5, 2, 2, 3), rand(5, 2, 3)
    ),
    "garch_score of fewer panels": lambda: commodity.garch_score(
        rand(5, 9, 3), rand(0, 4, 3), rand(5, 3), None, False, True
    ),
    "ewm_mean_backward of fewer columns": lambda: commodity.ewm_mean_backward(
        rand(5, 9, 3), rand(5, 9, 3), rand(5, 1), True, False, 0, False
    ),
    "linear_recurrence of fewer panels": lambda: commodity.linear_recurrence(rand(5, 9, 3), rand(5, 9, 3), rand(0, 3)),
    "matrix_recurrence of fewer panels": lambda: commodity.matrix_recurrence(
        rand(5, 9, 4, 3), rand(5, 9, 2, 3), rand(0, 2, 3)
    ),
    "linear_bn_relu of fewer channels": lambda: commodity.linear_bn_relu(rand(8, 3), rand(4, 3), gamma=rand(2)),
}


def rand(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.double)


@pytest.mark.parametrize("call", MISFITS.values(), ids=list(MISFITS))
def test_bare_call_refuses_misfits(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="must"):
        call()


def test_linear_bn_relu_without_channels_is_empty() -> None:
    assert commodity.linear_bn_relu(rand(8, 3), rand(0, 3))[0].shape == (8, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.parabolic_sar(x, x),
        lambda x: ops.parabolic_sar.start(x, x) and x,
        lambda x: ops.egarch_variance.start(x, *(rand(2, 0) for _ in range(4))) and x,
        lambda x: ops.hamilton_filter(x, rand(2, 2, 0), rand(2, 2, 0), rand(2, 2, 2, 0)),
        lambda x: ops.technical_indicators(x),
        lambda x: ops.ewm_mean(x, span=3),
        lambda x: ops.rolling_rank(x, 3),
    ],
)
def test_panels_without_columns_are_empty(call: Callable[[Tensor], Any]) -> None:
    result = call(rand(2, 5, 0))
    assert (result if isinstance(result, Tensor) else result[0]).numel() == 0


@pytest.mark.parametrize("window", [40, 2**33, 2**62, 2**63 - 1])
def test_windows_longer_than_the_panel_give_nan_without_memory(window: int) -> None:
    x = rand(30, 70)
    assert ops.technical_indicators(x, window, window, window, window).isnan().all()
    for causal in (True, False):
        assert all(part.isnan().all() for part in commodity.seasonal_decompose(x, window, False, causal))
