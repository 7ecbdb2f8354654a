"""WGAN-GP: the critic learns to tell real windows from generated ones, the generator to give it nothing to tell."""

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from torchcommodity.models import ScenarioCritic, ScenarioGenerator
from torchcommodity.training import Device, Progress


@dataclass(frozen=True)
class AdversarialConfig:
    """How the two are trained; the defaults are those of the published table."""

    steps: int = 150  # of the generator; 0 leaves the start by moments as it is
    critic_steps: int = 3  # to each of the generator
    batch: int = 32  # windows
    penalty: float = 10.0  # weight of the gradient penalty
    generator_rate: float = 3e-3  # both rates fall to zero along a line
    critic_rate: float = 2e-3
    betas: tuple[float, float] = (0.0, 0.9)
    average: float = 0.95  # the generator kept is an exponential average over its steps
    device: Device = "cpu"

    def __post_init__(self) -> None:
        counts = {"steps": self.steps >= 0, "critic_steps": self.critic_steps > 0, "batch": self.batch > 1}
        rates = ("penalty", "generator_rate", "critic_rate")
        counts |= {name: getattr(self, name) >= 0 for name in rates} | {"average": 0 <= self.average < 1}
        if wrong := [name for name, right in counts.items() if not right]:
            raise ValueError(f"AdversarialConfig: expected {wrong[0]} that can be done; got {getattr(self, wrong[0])}")


def gradient_penalty(
    critic: Callable[[Tensor], Tensor],  # (B, T, N) -> (B,)
    real: Tensor,  # (B, T, N)
    fake: Tensor,  # (B, T, N)
    scale: Tensor,  # (N,)
    share: Tensor,  # (B, 1, 1) in [0, 1]
) -> Tensor:  # ()
    """Mean over the batch of (|d critic / d x| - 1)^2 at x = share real + (1 - share) fake, x in units of `scale`.

    Its own gradient is a double backward through everything in the critic.

    References:
        Gulrajani, Ahmed, Arjovsky, Dumoulin, Courville (2017). Improved training of Wasserstein GANs. NeurIPS.
        arXiv:1704.00028, equation 3.

    Example:
        >>> import torch
        >>> real, fake = torch.randn(4, 252, 5), torch.randn(4, 252, 5)
        >>> plane = lambda x: x[:, 0, 0]  # has gradient one everywhere
        >>> gradient_penalty(plane, real, fake, torch.ones(5), torch.rand(4, 1, 1))
        tensor(0.)
    """
    x = ((share * real + (1 - share) * fake) / scale).detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(x * scale).sum(), x, create_graph=True)
    steepness: Tensor = torch.linalg.vector_norm(slope.flatten(1), dim=1)
    return (steepness - 1).square().mean()


def train_adversarially(
    generator: ScenarioGenerator,
    critic: ScenarioCritic,
    windows: Tensor,  # (W, T, N) log-returns, all of them real and past
    config: AdversarialConfig,
    seed: int,
    progress: Progress | None = None,
) -> list[float]:
    """Train both in place; the generator becomes the average over its steps.

    Returns:
        critic(real) - critic(fake) at each step of the generator: the critic's estimate of their distance.
    """
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)  # it announces itself otherwise
    fabric = Fabric(accelerator=config.device, devices=1)
    kept = copy.deepcopy(generator)
    maker, g_optimizer = fabric.setup(generator, _adam(generator, config.generator_rate, config))
    judge, c_optimizer = fabric.setup(critic, _adam(critic, config.critic_rate, config))
    draw, gaps = _Draw(windows, generator.noise, config.batch, seed), []
    for step in range(config.steps):
        for _ in range(config.critic_steps):
            real, noise, share = (fabric.to_device(x) for x in (draw.real(), draw.noise(), draw.share()))
            with torch.no_grad():
                fake = maker(noise)
            gap = judge(real).mean() - judge(fake).mean()
            c_optimizer.zero_grad()
            fabric.backward(config.penalty * gradient_penalty(judge, real, fake, critic.scale, share) - gap)
            c_optimizer.step()
        g_optimizer.zero_grad()
        fabric.backward(-judge(maker(fabric.to_device(draw.noise()))).mean())
        fabric.clip_gradients(maker, g_optimizer, max_norm=1.0)
        g_optimizer.step()
        _slow(g_optimizer, config.generator_rate * (1 - (step + 1) / config.steps))
        _slow(c_optimizer, config.critic_rate * (1 - (step + 1) / config.steps))
        _average(kept, generator, min(config.average, (1 + step) / (10 + step)))
        gaps.append(gap.item())
        if progress is not None:
            progress(step + 1, config.steps, f"critic sees {gap.item():.3f}")
    generator.load_state_dict(kept.state_dict())
    generator.cpu().eval()
    return gaps


class _Draw:
    """Batches from one seeded generator of random numbers."""

    def __init__(self, windows: Tensor, channels: int, batch: int, seed: int) -> None:
        self.windows, self.channels, self.batch = windows, channels, batch
        self.order = torch.Generator().manual_seed(seed)

    def real(self) -> Tensor:
        return self.windows[torch.randint(len(self.windows), (self.batch,), generator=self.order)]

    def noise(self) -> Tensor:
        return torch.randn(self.batch, self.windows.shape[1], self.channels, generator=self.order)

    def share(self) -> Tensor:
        return torch.rand(self.batch, 1, 1, generator=self.order)


def _adam(network: nn.Module, rate: float, config: AdversarialConfig) -> torch.optim.Adam:
    return torch.optim.Adam(network.parameters(), lr=rate, betas=config.betas)


def _slow(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


@torch.no_grad()
def _average(kept: nn.Module, now: nn.Module, share: float) -> None:
    for mean, value in zip(kept.state_dict().values(), now.state_dict().values()):
        if mean.is_floating_point():
            mean.lerp_(value.to(mean), 1 - share)
