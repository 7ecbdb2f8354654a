"""The five causes of tutorials on gradient linkage, in portfolio models, autoencoders, GANs and sequence models."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty


class LSTMPortfolio(nn.Module):
    """Weights of assets from past returns, (N, T, A) -> (N, A)."""

    def __init__(self, assets: int = 4, hidden: int = 8) -> None:
        super().__init__()
        self.lstm, self.fc = nn.LSTM(assets, hidden, batch_first=True), nn.Linear(hidden, assets)

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.lstm(x)
        return self.allocate(self.fc(h[:, -1, :]))

    def allocate(self, scores: Tensor) -> Tensor:
        return F.softmax(scores, dim=-1)


def sharpe_loss(weights: Tensor, returns: Tensor) -> Tensor:
    portfolio = (weights * returns).sum(dim=1)
    return -portfolio.mean() / (portfolio.std() + 1e-8)


def portfolio(model: nn.Module, loss_fn=sharpe_loss) -> Setup:
    return model, (torch.randn(32, 10, 4) * 0.01, torch.randn(32, 4) * 0.01), loss_fn


@faulty("detach", line="F.softmax(scores.detach(), dim=-1)")
def portfolio_detached() -> Setup:
    class Model(LSTMPortfolio):
        def allocate(self, scores: Tensor) -> Tensor:
            return F.softmax(scores.detach(), dim=-1)

    return portfolio(Model())


@faulty("detach", "python", line="scores.detach().numpy()")
def portfolio_through_numpy() -> Setup:
    class Model(LSTMPortfolio):
        def allocate(self, scores: Tensor) -> Tensor:
            e = np.exp(scores.detach().numpy())
            return torch.from_numpy(e / e.sum(-1, keepdims=True))

    return portfolio(Model())


@faulty("in_place", line="weights[weights < 0.2] = 0.0")
def portfolio_pruned_in_place() -> Setup:
    class Model(LSTMPortfolio):
        def allocate(self, scores: Tensor) -> Tensor:
            weights = F.softmax(scores, dim=-1)
            weights[weights < 0.2] = 0.0
            return weights / weights.sum(dim=-1, keepdim=True)

    return portfolio(Model())


@faulty("data", line="output.data = value")
def portfolio_data_assigned() -> Setup:
    class Model(LSTMPortfolio):
        def allocate(self, scores: Tensor) -> Tensor:
            output = torch.zeros_like(scores)
            value = F.softmax(scores, dim=-1)
            output.data = value
            return output

    return portfolio(Model())


@faulty("data", line="weights.data = weights.data.clamp(")
def portfolio_clipped_by_data() -> Setup:
    class Model(LSTMPortfolio):
        def allocate(self, scores: Tensor) -> Tensor:
            weights = F.softmax(scores * 50, dim=-1)
            weights.data = weights.data.clamp(0.05, 0.6)
            return weights

    return portfolio(Model())


@faulty("never_called", line="self.attention = nn.Linear(hidden, 1)")
def portfolio_attention_unused() -> Setup:
    class Model(LSTMPortfolio):
        def __init__(self, hidden: int = 8) -> None:
            super().__init__(hidden=hidden)
            self.attention = nn.Linear(hidden, 1)

    return portfolio(Model())


@faulty("not_scalar", line="return -weights * returns")
def portfolio_loss_per_asset() -> Setup:
    def loss_fn(weights: Tensor, returns: Tensor) -> Tensor:
        return -weights * returns

    return portfolio(LSTMPortfolio(), loss_fn)


@faulty("python", "copy", "not_a_tensor", line=("portfolio.mean().item()", "portfolio.std().item()"))
def sharpe_of_items() -> Setup:
    def loss_fn(weights: Tensor, returns: Tensor) -> Tensor:
        portfolio = (weights * returns).sum(dim=1)
        sharpe = portfolio.mean().item() / portfolio.std().item()
        return torch.tensor(-sharpe, requires_grad=True)

    return portfolio(LSTMPortfolio(), loss_fn)


@faulty("integer", "rounding", "not_differentiable", line="scores.topk(2, dim=-1).indices")
def portfolio_of_the_best_two() -> Setup:
    class Model(LSTMPortfolio):
        def allocate(self, scores: Tensor) -> Tensor:
            best = scores.topk(2, dim=-1).indices
            return torch.zeros_like(scores).scatter(1, best, 0.5)

    return portfolio(Model())


class VAE(nn.Module):
    """Reconstruction, mean and log variance of (N, 6)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.mu, self.logvar = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = F.relu(self.encoder(x))
        mu, logvar = self.mu(h), self.logvar(h)
        return self.decoder(self.sample(mu, logvar)), mu, logvar

    def sample(self, mu: Tensor, logvar: Tensor) -> Tensor:
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)


def reconstruction(output: tuple[Tensor, ...], x: Tensor) -> Tensor:
    return F.mse_loss(output[0], x)


def elbo(output: tuple[Tensor, ...], x: Tensor) -> Tensor:
    _, mu, logvar = output
    return reconstruction(output, x) - 0.5 * (1 + logvar - mu.square() - logvar.exp()).mean()


def vae(model: nn.Module, loss_fn=reconstruction) -> Setup:
    x = torch.randn(16, 6)
    return model, (x, x.clone()), loss_fn


@faulty("not_differentiable", "no_grad", "sampling", line="torch.normal(mu")
def vae_without_reparameterization() -> Setup:
    class Model(VAE):
        def sample(self, mu: Tensor, logvar: Tensor) -> Tensor:
            return torch.normal(mu, torch.exp(0.5 * logvar))

    return vae(Model())


@faulty("data", line="z.data = mu + ")
def vae_latent_by_data() -> Setup:
    class Model(VAE):
        def sample(self, mu: Tensor, logvar: Tensor) -> Tensor:
            z = torch.randn_like(mu)
            z.data = mu + torch.exp(0.5 * logvar) * z
            return z

    return vae(Model())


@faulty("in_place", line="std.mul_(torch.randn_like(mu))")
def vae_std_in_place() -> Setup:
    class Model(VAE):
        def sample(self, mu: Tensor, logvar: Tensor) -> Tensor:
            std = torch.exp(0.5 * logvar)
            std.mul_(torch.randn_like(mu))
            return mu + std

    return vae(Model())


@faulty("not_scalar", line=".exp()).sum(1)")
def vae_kl_per_sample() -> Setup:
    def loss_fn(output: tuple[Tensor, ...], x: Tensor) -> Tensor:
        _, mu, logvar = output
        return -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1)

    return vae(VAE(), loss_fn)


class GAN(nn.Module):
    """Generator and discriminator; the output is the score of generated series."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
        self.discriminator = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(), nn.Linear(8, 1))

    def forward(self, noise: Tensor) -> Tensor:
        return self.discriminator(self.pass_on(self.generator(noise)))

    def pass_on(self, fake: Tensor) -> Tensor:
        return fake


def gan(model: nn.Module, loss_fn=None) -> Setup:
    return model, torch.randn(16, 4), loss_fn or (lambda score: F.softplus(-score).mean())


@faulty("detach", line="fake.detach()")
def generator_step_detached() -> Setup:
    class Model(GAN):
        def pass_on(self, fake: Tensor) -> Tensor:
            return fake.detach()

    return gan(Model())


@faulty("python", "crash", line="fake.numpy().round(2)")
def generator_through_numpy() -> Setup:
    class Model(GAN):
        def pass_on(self, fake: Tensor) -> Tensor:
            return torch.from_numpy(fake.numpy().round(2))

    return gan(Model())


@faulty("data", line="real.data[:] = fake")
def generator_into_data() -> Setup:
    class Model(GAN):
        def pass_on(self, fake: Tensor) -> Tensor:
            real = torch.zeros_like(fake)
            real.data[:] = fake
            return real

    return gan(Model())


@faulty("in_place", line="fake[:, 0] = 1.0")
def generator_output_overwritten() -> Setup:
    class Model(GAN):
        def pass_on(self, fake: Tensor) -> Tensor:
            fake = torch.sigmoid(fake)
            fake[:, 0] = 1.0
            return fake

    return gan(Model())


@faulty("never_called", line="self.condition = nn.Embedding")
def generator_condition_unused() -> Setup:
    class Model(GAN):
        def __init__(self) -> None:
            super().__init__()
            self.condition = nn.Embedding(3, 4)

    return gan(Model())


@faulty("not_scalar", line="F.softplus(-score)")
def generator_loss_per_sample() -> Setup:
    return gan(GAN(), lambda score: F.softplus(-score))
