"""Operators of torch around a kernel: on a GPU each is a launch, and takes longer than the kernel of a small panel."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchcommodity import ops

RETURNS = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
GARCH = [torch.full((3,), x) for x in (0.1, 0.1, 0.5, 0.1, 0.5)]
HALVES, CHAIN = torch.full((2, 3), 0.5), torch.full((2, 2, 3), 0.5)
IDENTITY = torch.eye(3)
CALLS: dict[str, tuple[int, Callable[[], Any]]] = {
    "ewm_mean": (1, lambda: ops.ewm_mean(RETURNS, halflife=20)),
    "ewm_mean, learned": (6, lambda: ops.ewm_mean(RETURNS, alpha=HALVES[0])),
    "garch_variance of numbers": (18, lambda: ops.garch_variance(RETURNS, 0.1, 0.1, 0.8)),
    "garch_variance": (6, lambda: ops.garch_variance(RETURNS, *GARCH)),
    "egarch_variance": (7, lambda: ops.egarch_variance(RETURNS, *GARCH)),
    "hamilton_filter": (21, lambda: ops.hamilton_filter(RETURNS, HALVES, HALVES, CHAIN)),
    "hamilton_filter from probabilities": (16, lambda: ops.hamilton_filter(RETURNS, HALVES, HALVES, CHAIN, HALVES)),
    "dcc_correlation": (36, lambda: ops.dcc_correlation(RETURNS, 0.05, 0.9, IDENTITY)),
    "dcc_correlation from a matrix": (45, lambda: ops.dcc_correlation(RETURNS, 0.05, 0.9, IDENTITY, IDENTITY)),
}


class Launches(TorchDispatchMode):
    """Counts operators of torch that compute: no views, no allocations."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_view = any(x.alias_info and not x.alias_info.is_write for x in func._schema.returns)
        self.count += func.namespace == "aten" and not is_view
        return result


@pytest.mark.parametrize("call", CALLS)
def test_checks_of_values_take_few_launches(call: str) -> None:
    maximum, function = CALLS[call]
    with Launches() as launches:
        function()
    assert launches.count <= maximum
