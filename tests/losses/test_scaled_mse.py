"""`scaled_mse_loss` and its Module."""

import pytest
import torch
from torch import Tensor

from torchcommodity.losses import ScaledMSELoss, scaled_mse_loss


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    forecast, target, scale = torch.randn(3, 4, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    target[1, 2] = torch.nan
    return forecast.requires_grad_(), target, scale.abs().requires_grad_()


def test_scaled_mse_loss_equals_its_definition() -> None:
    forecast, target, scale = inputs()
    loss = scaled_mse_loss(forecast, target, scale, epsilon=0.1, reduction="none")
    assert torch.allclose(loss, ((target - forecast) / (scale + 0.1)) ** 2, equal_nan=True)
    mean = scaled_mse_loss(forecast, target, scale)
    assert torch.allclose(mean, scaled_mse_loss(forecast, target, scale, reduction="none").nanmean())


def test_scaled_mse_loss_gradient_reaches_the_forecast_only() -> None:
    forecast, target, scale = inputs()
    loss = scaled_mse_loss(forecast, target, scale)
    assert torch.autograd.grad(loss, (forecast, scale), allow_unused=True)[1] is None
    known = target.nan_to_num().requires_grad_()
    assert torch.autograd.gradcheck(lambda f, y: scaled_mse_loss(f, y, scale), (forecast, known))


def test_scaled_mse_loss_of_constant_prices_is_zero() -> None:
    assert scaled_mse_loss(torch.zeros(3, requires_grad=True), torch.zeros(3), torch.zeros(3)).item() == 0


def test_scaled_mse_loss_module_equals_the_function() -> None:
    forecast, target, scale = inputs()
    expected = scaled_mse_loss(forecast, target, scale, epsilon=0.1)
    assert torch.equal(ScaledMSELoss(epsilon=0.1)(forecast, target, scale), expected)


def test_scaled_mse_loss_rejects_bad_input() -> None:
    with pytest.raises(ValueError, match=r"scaled_mse_loss: forecast and target must have the same shape; got"):
        scaled_mse_loss(torch.zeros(2), torch.zeros(3), torch.ones(()))
    with pytest.raises(ValueError, match="scaled_mse_loss: epsilon must be >= 0; got epsilon=-1"):
        scaled_mse_loss(torch.zeros(2), torch.zeros(2), torch.ones(()), epsilon=-1)
