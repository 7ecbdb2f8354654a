"""`ScenarioGenerator` and `ScenarioCritic`."""

import pytest
import torch

from torchcommodity.models import ScenarioCritic, ScenarioGanConfig, ScenarioGenerator

SMALL = ScenarioGanConfig(
    window=70, halflives=(0.0, 20.0), channels=2, critic_halflives=(3.0,), critic_lags=(1, 5), critic_channels=2
)


def test_scenario_generator_is_causal() -> None:
    torch.manual_seed(0)
    generator = ScenarioGenerator(2, SMALL).eval()
    torch.nn.init.normal_(generator.head.weight)
    noise = torch.randn(1, 70, generator.noise_channels)
    changed = noise.clone()
    changed[:, 40:] = torch.randn(1, 30, generator.noise_channels)
    assert torch.equal(generator(noise)[:, :40], generator(changed)[:, :40])


def test_scenario_generator_shocks_have_unit_variance() -> None:
    torch.manual_seed(0)
    generator = ScenarioGenerator(3, SMALL)
    shocks = generator.shocks(torch.randn(400, 70, 3), torch.randn(400, 70, 3))
    assert (shocks.var((0, 1)) - 1).abs().max() < 0.05


def test_scenario_generator_rejects_noise_of_another_width() -> None:
    with pytest.raises(ValueError, match=r"ScenarioGenerator: noise must be \(B, T, M\) with M=7; got \(1, 70, 5\)"):
        ScenarioGenerator(2, SMALL)(torch.randn(1, 70, 5))


def test_scenario_critic_scores_each_window_alone() -> None:
    torch.manual_seed(0)
    critic, returns = ScenarioCritic(torch.tensor([0.01, 0.02]), SMALL), 0.02 * torch.randn(4, 70, 2)
    torch.testing.assert_close(critic(returns)[:2], critic(returns[:2]))


def test_scenario_gan_config_rejects_a_short_window() -> None:
    with pytest.raises(ValueError, match="ScenarioGanConfig: window must exceed every critic lag"):
        ScenarioGanConfig(window=60)
