"""`ops.indicators`: the functions of each value by itself, against TA-Lib."""

import numpy as np
import pytest
import torch

from torchcommodity.ops import indicators

talib = pytest.importorskip("talib")

NAMES = sorted(name.lower() for name in talib.get_function_groups()["Math Transform"])


@pytest.mark.parametrize("name", NAMES)
def test_transform_equals_talib(name: str) -> None:
    x = torch.tensor([-30.0, -1.5, -1, -0.3, -1e-9, 0, 1e-9, 0.3, 1, 1.5, 30, torch.nan], dtype=torch.double)
    expected = getattr(talib, name.upper())(x.numpy())
    expected = np.where(np.isfinite(expected), expected, np.nan)  # the logarithm of 0
    result = getattr(indicators, name)(x.unsqueeze(-1)).squeeze(-1)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-15)
    assert getattr(indicators, name).lookback() == 0


@pytest.mark.parametrize("name", NAMES)
def test_transform_gradient(name: str) -> None:
    x = torch.tensor([[-0.7], [-0.2], [0.1], [0.8]], dtype=torch.double)
    x = (x.abs() if name in ("ln", "log10", "sqrt") else x).requires_grad_()
    assert torch.autograd.gradcheck(getattr(indicators, name), x)
