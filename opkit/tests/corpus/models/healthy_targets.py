"""Healthy: gradients that are stopped on purpose."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, healthy, regression


class Encoder(nn.Sequential):
    def __init__(self, outputs: int = 4) -> None:
        super().__init__(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, outputs))


def self_supervised(model: nn.Module) -> Setup:
    return model, (torch.randn(16, 3), torch.randn(16, 3)), lambda model, batch: model(*batch)


@healthy
def byol_with_target_network() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.online, self.predictor = Encoder(), nn.Linear(4, 4)
            self.target = copy.deepcopy(self.online).requires_grad_(False)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            with torch.no_grad():
                goal = self.target(b)
            return 2 - 2 * F.cosine_similarity(self.predictor(self.online(a)), goal.detach()).mean()

    return self_supervised(Model())


@healthy
def simsiam_stops_gradient() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.predictor = Encoder(), nn.Linear(4, 4)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            za, zb = self.encoder(a), self.encoder(b)
            one = F.cosine_similarity(self.predictor(za), zb.detach()).mean()
            return -(one + F.cosine_similarity(self.predictor(zb), za.detach()).mean()) / 2

    return self_supervised(Model())


@healthy
def momentum_teacher_updated_by_data() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.student = Encoder()
            self.teacher = copy.deepcopy(self.student).requires_grad_(False)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            for p, q in zip(self.teacher.parameters(), self.student.parameters()):
                p.data.mul_(0.99).add_(q.data, alpha=0.01)
            goal = self.teacher(b).softmax(-1).detach()
            return -(goal * self.student(a).log_softmax(-1)).sum(-1).mean()

    return self_supervised(Model())


@healthy
def deep_q_learning() -> Setup:
    online, target = Encoder(), Encoder()

    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        state, action, reward, following = batch
        value = model(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            goal = reward + 0.99 * target(following).max(1).values
        return F.smooth_l1_loss(value, goal)

    batch = (torch.randn(16, 3), torch.randint(4, (16, 1)), torch.randn(16), torch.randn(16, 3))
    return online, batch, loss_fn


@healthy
def policy_gradient_with_sampled_action() -> Setup:
    def loss_fn(logits: Tensor, reward: Tensor) -> Tensor:
        policy = torch.distributions.Categorical(logits=logits)
        action = policy.sample()
        return -(policy.log_prob(action) * (reward[:, 0] - reward.mean())).mean()

    return Encoder(), regression(), loss_fn


@healthy
def actor_critic_with_detached_advantage() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.actor, self.critic = nn.Linear(3, 8), nn.Linear(8, 4), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            h = self.body(x).tanh()
            return self.actor(h), self.critic(h)

    def loss_fn(output: tuple[Tensor, Tensor], reward: Tensor) -> Tensor:
        logits, value = output
        advantage = (reward - value).detach()
        policy = torch.distributions.Categorical(logits=logits)
        action = policy.sample()
        return -(policy.log_prob(action) * advantage[:, 0]).mean() + F.mse_loss(value, reward)

    return Model(), regression(), loss_fn


@healthy
def vector_quantization() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.codes, self.decoder = nn.Linear(3, 4), nn.Embedding(5, 4), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            z = self.encoder(x)
            nearest = torch.cdist(z, self.codes.weight).argmin(1)
            q = self.codes(nearest)
            commitment = F.mse_loss(z, q.detach()) + F.mse_loss(q, z.detach())
            return self.decoder(z + (q - z).detach()), commitment

    x = torch.randn(16, 3)
    return Model(), (x, x), lambda output, x: F.mse_loss(output[0], x) + output[1]


@healthy
def hard_gumbel_softmax() -> Setup:
    return between(lambda h: F.gumbel_softmax(h, hard=True))


@healthy
def straight_through_round() -> Setup:
    return between(lambda h: h + (h.round() - h).detach())


@healthy
def straight_through_by_function() -> Setup:
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.sign()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad

    return between(lambda h: Sign.apply(h))


@healthy
def fake_quantization() -> Setup:
    return between(lambda h: torch.fake_quantize_per_tensor_affine(h, 0.05, 0, -128, 127))


@healthy
def gradient_reversal() -> Setup:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return -grad

    return between(lambda h: Reverse.apply(h).tanh())


@healthy
def truncated_backpropagation() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head, self.state = nn.GRUCell(3, 8), nn.Linear(8, 1), torch.zeros(16, 8)

        def forward(self, x: Tensor) -> Tensor:
            h = self.cell(x, self.state)
            self.state = h.detach()
            return self.head(h)

    return Model(), regression(), F.mse_loss


@healthy
def detached_every_second_step() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(1, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.zeros(16, 8)
            for t, column in enumerate(x.split(1, 1)):
                h = self.cell(column, h.detach() if t == 2 else h)
            return self.head(h)

    return Model(), regression(), F.mse_loss
