"""Healthy: probabilistic and penalized models, precision, wrappers, and numbers at the edge of their domain."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import (
    Between,
    Setup,
    between,
    healthy,
    regression,
    with_loss,
)
from corpus.models.healthy_training import net


@healthy
def mean_and_variance_heads() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        mean, scale = output[:, :1], F.softplus(output[:, 1:]) + 1e-3
        return -torch.distributions.Normal(mean, scale).log_prob(target).mean()

    return net(2), regression(), loss_fn


@healthy
def reparameterized_sample() -> Setup:
    def middle(h: Tensor) -> Tensor:
        return torch.distributions.Normal(h, F.softplus(h) + 0.1).rsample()

    return between(middle)


@healthy
def variational_autoencoder() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = nn.Linear(3, 4), nn.Linear(2, 3)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mu, logvar = self.encoder(x).chunk(2, -1)
            return self.decoder(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), mu, logvar

    def elbo(output: tuple[Tensor, ...], x: Tensor) -> Tensor:
        y, mu, logvar = output
        return F.mse_loss(y, x) - 0.5 * (1 + logvar - mu**2 - logvar.exp()).mean()

    x = torch.randn(16, 3)
    return Model(), (x, x), elbo


@healthy
def gradient_penalty() -> Setup:
    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        real, fake = batch
        mixed = (real + torch.rand(16, 1) * (fake - real)).requires_grad_()
        (slope,) = torch.autograd.grad(model(mixed).sum(), mixed, create_graph=True)
        return model(fake).mean() - model(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()

    return net(), (torch.randn(16, 3), torch.randn(16, 3)), loss_fn


@healthy
def physics_informed_derivative() -> Setup:
    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        x = batch[0].clone().requires_grad_()
        y = model(x)
        slope = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
        return (slope.sum(1, keepdim=True) - y).square().mean() + F.mse_loss(y, batch[1])

    return net(), regression(), loss_fn


@healthy
def bfloat16_autocast() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.net(x)
            return y.float()

    return Model(), regression(), F.mse_loss


@healthy
def double_precision() -> Setup:
    return net().double(), tuple(x.double() for x in regression()), F.mse_loss


@healthy
def half_precision_weights() -> Setup:
    return net().bfloat16(), tuple(x.bfloat16() for x in regression()), F.mse_loss


@healthy
def learned_temperature() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right, self.log_scale = nn.Linear(3, 4), nn.Linear(3, 4), nn.Parameter(torch.tensor(2.66))

        def forward(self, x: Tensor) -> Tensor:
            a, b = F.normalize(self.left(x), dim=-1), F.normalize(self.right(x), dim=-1)
            return self.log_scale.exp() * a @ b.T

    return Model(), (torch.randn(16, 3), torch.arange(16)), F.cross_entropy


@healthy
def clipping_hooks() -> Setup:
    model, batch, loss_fn = between(torch.tanh)
    for p in model.parameters():
        p.register_hook(lambda grad: grad.clamp(-1, 1))
    return model, batch, loss_fn


@healthy
def several_losses() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.level, self.direction = nn.Linear(3, 8), nn.Linear(8, 1), nn.Linear(8, 2)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            h = self.body(x).tanh()
            return {"level": self.level(h), "direction": self.direction(h)}

    def loss_fn(output: dict[str, Tensor], target: Tensor) -> Tensor:
        direction = F.cross_entropy(output["direction"], (target[:, 0] > 0).long())
        return F.mse_loss(output["level"], target) + 0.5 * direction

    return Model(), regression(), loss_fn


@healthy
def several_inputs() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.prices, self.stocks = nn.Linear(3, 8), nn.Linear(2, 8)
            self.head = nn.Linear(8, 1)

        def forward(self, prices: Tensor, stocks: Tensor) -> Tensor:
            return self.head((self.prices(prices) * self.stocks(stocks)).tanh())

    return Model(), ((torch.randn(16, 3), torch.randn(16, 2)), torch.randn(16, 1)), F.mse_loss


@healthy
def unsupervised_batch() -> Setup:
    return net(3), torch.randn(16, 3), lambda output: (output - 1).square().mean()


@healthy
def sharpe_ratio_as_loss() -> Setup:
    class Model(Between):
        def __init__(self) -> None:
            super().__init__(torch.tanh)
            self.last = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).softmax(-1)

    def loss_fn(weights: Tensor, returns: Tensor) -> Tensor:
        profit = (weights * returns).sum(1)
        return -profit.mean() / (profit.std() + 1e-8)

    return Model(), (torch.randn(64, 3) * 0.1, torch.randn(64, 4) * 0.01), loss_fn


@healthy
def small_returns_as_inputs() -> Setup:
    return net(), (torch.randn(16, 3) * 1e-4, torch.randn(16, 1) * 1e-4), F.mse_loss


@healthy
def hinge_with_some_inactive() -> Setup:
    return with_loss(lambda output, target: (1 - output * target.sign()).relu().mean())


@healthy
def learning_without_a_target() -> Setup:
    """Energy of pairs, where the loss is a method of the model."""

    class Model(Between):
        def energy(self, batch: Any) -> Tensor:
            real, fake = self(batch[0]), self(batch[1])
            return F.softplus(real - fake).mean()

    batch = (torch.randn(16, 3), torch.randn(16, 3))
    return Model(torch.tanh), batch, lambda model, batch: model.energy(batch)


@healthy
def regularized_weights() -> Setup:
    model, batch, _ = between(torch.tanh)

    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(output, target) + 1e-3 * sum(p.abs().sum() for p in model.parameters())

    return model, batch, loss_fn


@healthy
def compiled_model() -> Setup:
    return torch.compile(net(), backend="eager"), regression(), F.mse_loss


@healthy
def data_parallel_style_wrapper() -> Setup:
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = net()

        def forward(self, *args: Any, **kwargs: Any) -> Tensor:
            return self.module(*args, **kwargs)

    return Wrapper(), regression(), F.mse_loss


@healthy
def logarithm_of_negatives_masked() -> Setup:
    """The logarithm is NaN where the mask puts a zero, but its slope, 1 / x, is finite."""
    return between(lambda h: h.log().masked_fill(h <= 0, 0))


@healthy
def arc_cosine_of_clamped_values() -> Setup:
    """The slope is infinite at one, and `clamp` selects zero there instead of multiplying by it."""
    return between(lambda h: (h * 10).clamp(-1, 1).acos())


@healthy
def deviation_of_a_constant() -> Setup:
    """The slope of `std` is zero where it is zero."""
    return between(lambda h: h / ((h * 0 + h.mean()).std(0) + 1))
