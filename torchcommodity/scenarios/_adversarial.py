"""WGAN-GP training of the scenario generator against its critic."""

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid
from torchcommodity._extras import extra
from torchcommodity.models import Bounds, NonNegativeFloat, ScenarioCritic, ScenarioGenerator, check_fields
from torchcommodity.training import Device, Progress, fabric_device


@dataclass(frozen=True)
class AdversarialConfig:
    """Settings of the training of generator and critic; the defaults are those of the published results."""

    steps: Annotated[int, Bounds(ge=0)] = 150  # generator steps; 0 keeps the initialization by moments
    critic_steps: Annotated[int, Bounds(ge=1)] = 3  # per generator step
    batch: Annotated[int, Bounds(ge=2)] = 32  # windows per step
    penalty: NonNegativeFloat = 10.0  # weight of the gradient penalty
    generator_rate: NonNegativeFloat = 3e-3  # learning rate; decays linearly to zero
    critic_rate: NonNegativeFloat = 2e-3  # learning rate; decays linearly to zero
    betas: tuple[float, float] = (0.0, 0.9)
    average: Annotated[float, Bounds(ge=0, lt=1)] = 0.95  # decay of the generator's average, the result
    device: Device = "cpu"

    def __post_init__(self) -> None:
        check_fields(self)


def gradient_penalty(
    critic: Callable[[Tensor], Tensor],  # (B, T, N) -> (B,)
    real: Tensor,  # (B, T, N)
    fake: Tensor,  # (B, T, N)
    scale: Tensor | float = 1.0,  # (N,)
    share: Tensor | None = None,  # (B, 1, 1) in [0, 1]
) -> Tensor:  # ()
    """Gradient penalty of WGAN-GP: mean of (|d critic / d x| - 1)^2 at x = share real + (1 - share) fake.

    x is in units of `scale`. The gradient of the penalty requires a double backward pass through the critic.

    Args:
        critic: function of log-returns.
        real: real log-returns.
        fake: generated log-returns.
        scale: unit of each asset, a standard deviation.
        share: random weight of the real window; None draws one per window, uniform on [0, 1], as the paper does.

    Raises:
        TypeError: the critic is not a function, real or fake is not a floating-point Tensor, scale is no number, or
            share is no Tensor.
        ValueError: real and fake have different shapes.

    References:
        Gulrajani, Ahmed, Arjovsky, Dumoulin, Courville (2017). Improved training of Wasserstein GANs. NeurIPS.
        arXiv:1704.00028, equation 3.

    Example:
        >>> import torch
        >>> real, fake = torch.randn(4, 252, 5), torch.randn(4, 252, 5)
        >>> linear = lambda x: x[:, 0, 0]  # has gradient one everywhere
        >>> gradient_penalty(linear, real, fake, torch.ones(5), torch.rand(4, 1, 1))
        tensor(0.)
    """
    if not callable(critic):
        raise_invalid("gradient_penalty", "critic must be a function of log-returns", TypeError, critic=critic)
    check_tensor("gradient_penalty", real=real, fake=fake)
    for name, x in (("real", real), ("fake", fake)):
        if not x.is_floating_point():
            raise_invalid("gradient_penalty", f"{name} must be floating-point", TypeError, dtype=x.dtype, **{name: x})
    if real.shape != fake.shape:
        raise_invalid("gradient_penalty", "real and fake must have the same shape", real=real, fake=fake)
    if isinstance(scale, bool) or not isinstance(scale, Tensor | Real):
        raise_invalid("gradient_penalty", "scale must be a number", TypeError, scale=scale)
    if share is not None:
        check_tensor("gradient_penalty", share=share)
    else:
        share = torch.rand_like(real.flatten(1)[:, 0]).view(-1, *[1] * (real.dim() - 1))
    x = ((share * real + (1 - share) * fake) / scale).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(x * scale).sum(), x, create_graph=True)
    norm: Tensor = torch.linalg.vector_norm(gradient.flatten(1), dim=1)
    return (norm - 1).square().mean()


def train_adversarially(
    generator: ScenarioGenerator,
    critic: ScenarioCritic,
    windows: Tensor,  # (W, T, N) real log-returns
    config: AdversarialConfig,
    seed: int,
    progress: Progress | None = None,
) -> list[float]:
    """Train both in place; the result is the exponential average of the generator's weights.

    Returns:
        critic(real) - critic(fake) at each generator step, the critic's estimate of their Wasserstein distance.
    """
    with extra("forecast"):
        from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)  # suppresses the message that Fabric prints
    fabric = Fabric(**fabric_device(config.device))
    average = copy.deepcopy(generator)
    g_network, g_optimizer = fabric.setup(generator, _adam(generator, config.generator_rate, config))
    c_network, c_optimizer = fabric.setup(critic, _adam(critic, config.critic_rate, config))
    sampler, gaps = _Sampler(windows, generator.noise_channels, config.batch, seed), []
    for step in range(config.steps):
        for _ in range(config.critic_steps):
            real, noise, share = (fabric.to_device(x) for x in (sampler.real(), sampler.noise(), sampler.share()))
            with torch.no_grad():
                fake = g_network(noise)
            gap = c_network(real).mean() - c_network(fake).mean()
            c_optimizer.zero_grad()
            fabric.backward(config.penalty * gradient_penalty(c_network, real, fake, critic.scale, share) - gap)
            c_optimizer.step()
        g_optimizer.zero_grad()
        fabric.backward(-c_network(g_network(fabric.to_device(sampler.noise()))).mean())
        fabric.clip_gradients(g_network, g_optimizer, max_norm=1.0)
        g_optimizer.step()
        _set_rate(g_optimizer, config.generator_rate * (1 - (step + 1) / config.steps))
        _set_rate(c_optimizer, config.critic_rate * (1 - (step + 1) / config.steps))
        decay = min(config.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for mean, value in zip(average.state_dict().values(), generator.state_dict().values()):
                if mean.is_floating_point():
                    mean.lerp_(value.to(mean), 1 - decay)
        gaps.append(gap.item())
        if progress is not None:
            progress(step + 1, config.steps, f"critic's distance {gap.item():.3f}")
    generator.load_state_dict(average.state_dict())
    generator.cpu().eval()
    return gaps


class _Sampler:
    """Random batches from one seeded generator."""

    def __init__(self, windows: Tensor, channels: int, batch: int, seed: int) -> None:
        self.windows, self.channels, self.batch = windows, channels, batch
        self.random = torch.Generator().manual_seed(seed)

    def real(self) -> Tensor:
        return self.windows[torch.randint(len(self.windows), (self.batch,), generator=self.random)]

    def noise(self) -> Tensor:
        return torch.randn(self.batch, self.windows.shape[1], self.channels, generator=self.random)

    def share(self) -> Tensor:
        return torch.rand(self.batch, 1, 1, generator=self.random)


def _adam(network: nn.Module, rate: float, config: AdversarialConfig) -> torch.optim.Adam:
    return torch.optim.Adam(network.parameters(), lr=rate, betas=config.betas)


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
