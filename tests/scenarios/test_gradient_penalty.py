"""`gradient_penalty`: by finite differences, and its double backward through the operators."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity.models import ScenarioCritic, ScenarioGanConfig
from torchcommodity.scenarios import gradient_penalty


def small_critic() -> tuple[ScenarioCritic, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    config = ScenarioGanConfig(window=24, critic_halflives=(3.0,), critic_lags=(1, 2, 3, 4), critic_channels=2)
    critic = ScenarioCritic(torch.tensor([0.01, 0.02]).double(), config).double()
    real, fake = 0.02 * torch.randn(2, 24, 2).double(), 0.02 * torch.randn(2, 24, 2).double()
    return critic, real, fake, torch.rand(2, 1, 1).double()


def test_gradient_penalty_double_backward() -> None:
    critic, real, fake, share = small_critic()
    weights = [critic.conv1.weight, critic.moments_layer.bias]

    def penalty(*_: Tensor) -> Tensor:
        return gradient_penalty(critic, real, fake, critic.scale, share)

    assert torch.autograd.gradcheck(penalty, weights, rtol=1e-4, atol=1e-7, fast_mode=True)
    x = (real / critic.scale).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: critic(x * critic.scale), x, rtol=1e-4, atol=1e-7, fast_mode=True)


def test_gradient_penalty_equals_finite_differences() -> None:
    critic, real, fake, share = small_critic()
    x = (share * real + (1 - share) * fake) / critic.scale
    step, gradient = 1e-5, torch.zeros_like(x)
    with torch.no_grad():
        for index in np.ndindex(*x.shape[1:]):
            bump = torch.zeros_like(x)
            bump[(slice(None), *index)] = step
            up, down = critic((x + bump) * critic.scale), critic((x - bump) * critic.scale)
            gradient[(slice(None), *index)] = (up - down) / (2 * step)
    expected = (gradient.flatten(1).norm(dim=1) - 1).square().mean()
    penalty = gradient_penalty(critic, real, fake, critic.scale, share)
    torch.testing.assert_close(penalty, expected, rtol=1e-6, atol=1e-8)


def test_gradient_penalty_without_share_draws_one_per_window() -> None:
    critic, real, fake, _ = small_critic()
    torch.manual_seed(1)
    penalty = gradient_penalty(critic, real, fake, critic.scale)
    torch.manual_seed(1)
    share = torch.rand(2, dtype=torch.double).view(2, 1, 1)
    assert torch.equal(penalty, gradient_penalty(critic, real, fake, critic.scale, share))


def test_gradient_penalty_takes_a_critic_of_features() -> None:
    critic = torch.nn.Linear(5, 1)  # (B, F) -> (B, 1), as in the paper's first listing
    expected = (critic.weight.norm() - 1).square()
    torch.testing.assert_close(gradient_penalty(critic, torch.randn(8, 5), torch.randn(8, 5)), expected)


def _critic(x: Tensor) -> Tensor:
    return x[:, 0, 0]


@pytest.mark.parametrize(
    ("critic", "real", "fake", "error", "message"),
    [
        (
            _critic,
            torch.ones(8, 6, 2),
            torch.ones(4, 6, 2),
            ValueError,
            r"same shape; got real \(8, 6, 2\), fake \(4, 6",
        ),
        (
            _critic,
            torch.ones(4, 6, 2).long(),
            torch.ones(4, 6, 2),
            TypeError,
            "real must be floating-point; got dtype=",
        ),
        (_critic, torch.ones(4, 6, 2), [[[1.0]]], TypeError, "fake must be a Tensor; got fake='list'"),
        (
            "critic",
            torch.ones(4, 6, 2),
            torch.ones(4, 6, 2),
            TypeError,
            "critic must be a function .*; got critic='critic'",
        ),
    ],
)
def test_gradient_penalty_refuses(critic: Any, real: Any, fake: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^gradient_penalty: .*{message}"):
        gradient_penalty(critic, real, fake)


def test_gradient_penalty_refuses_a_scale_and_a_share_of_another_type() -> None:
    windows = torch.zeros(2, 5, 3)
    with pytest.raises(TypeError, match=r"^gradient_penalty: scale must be a number; got scale='1'$"):
        gradient_penalty(torch.sum, windows, windows, "1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^gradient_penalty: share must be a Tensor; got share='float'$"):
        gradient_penalty(torch.sum, windows, windows, share=0.5)  # type: ignore[arg-type]
