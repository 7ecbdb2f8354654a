"""Healthy: detached values beside the loss: weights, labels, logs, metrics and statistics."""

import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Between, Setup, between, classification, classifier, healthy, regression, with_loss


@healthy
def knowledge_distillation() -> Setup:
    teacher = classifier()

    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            goal = (teacher(torch.ones(16, 3)) / 2).softmax(-1)
        return F.kl_div((logits / 2).log_softmax(-1), goal, reduction="batchmean") + F.cross_entropy(logits, target)

    return classifier(), classification(), loss_fn


@healthy
def losses_weighted_by_detached_size() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        weights = (output - target).abs().detach()
        return (weights / weights.sum() * (output - target).square()).sum()

    return with_loss(loss_fn)


@healthy
def focal_loss_with_detached_probability() -> Setup:
    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        p = logits.softmax(-1).gather(1, target.unsqueeze(1)).detach().squeeze(1)
        return ((1 - p) ** 2 * F.cross_entropy(logits, target, reduction="none")).mean()

    return classifier(), classification(), loss_fn


@healthy
def pseudo_labels() -> Setup:
    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        labels = logits.detach().argmax(-1)
        return F.cross_entropy(logits, target) + 0.1 * F.cross_entropy(logits, labels)

    return classifier(), classification(), loss_fn


@healthy
def scheduled_sampling() -> Setup:
    """The decoder reads its own greedy choice, an integer, and still learns from its logits."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.cell, self.out = nn.Embedding(6, 8), nn.GRUCell(8, 8), nn.Linear(8, 6)

        def forward(self, tokens: Tensor) -> Tensor:
            h, token, logits = torch.zeros(len(tokens), 8), tokens[:, 0], []
            for _ in range(3):
                h = self.cell(self.table(token), h)
                logits.append(self.out(h))
                token = logits[-1].argmax(-1)
            return torch.stack(logits, 2)

    batch = (torch.randint(6, (8, 4)), torch.randint(6, (8, 3)))
    return Model(), batch, F.cross_entropy


@healthy
def logged_beside_the_loss() -> Setup:
    class Model(Between):
        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            self.log = {"norm": h.norm().item(), "max": float(h.max()), "values": h.detach().numpy().copy()}
            self.history = h.tolist()
            return self.last(h.tanh())

    return Model(torch.tanh), regression(), F.mse_loss


@healthy
def metrics_under_no_grad() -> Setup:
    metrics: dict[str, float] = {}

    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            metrics["accuracy"] = (logits.argmax(-1) == target).float().mean().item()
        return F.cross_entropy(logits, target)

    return classifier(), classification(), loss_fn


@healthy
def early_stop_on_a_value() -> Setup:
    class Model(Between):
        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x).tanh()
            for _ in range(10):
                if h.abs().max().item() < 0.2:
                    break
                h = h * 0.8
            return self.last(h)

    return Model(torch.tanh), regression(), F.mse_loss


@healthy
def normalized_by_detached_statistics() -> Setup:
    return between(lambda h: (h - h.mean(0).detach()) / (h.std(0).detach() + 1e-6))


@healthy
def maximum_subtracted_without_gradient() -> Setup:
    def middle(h: Tensor) -> Tensor:
        e = (h - h.max(-1, keepdim=True).values.detach()).exp()
        return e / e.sum(-1, keepdim=True)

    return between(middle)


@healthy
def stochastic_depth_by_bernoulli() -> Setup:
    def middle(h: Tensor) -> Tensor:
        keep = torch.bernoulli(torch.full((16, 1), 0.9))
        return h + h.tanh() * keep / 0.9

    return between(middle)


@healthy
def straight_through_topk_mask() -> Setup:
    def middle(h: Tensor) -> Tensor:
        hard = torch.zeros_like(h).scatter(1, h.topk(2).indices, 1.0)
        soft = h.softmax(-1)
        return hard - soft.detach() + soft

    return between(middle)


@healthy
def deep_copy_of_weights_for_an_average() -> Setup:
    class Model(Between):
        def forward(self, x: Tensor) -> Tensor:
            self.average = {name: p.data.clone() for name, p in self.named_parameters()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.snapshot = torch.tensor(self.first.weight)
            return super().forward(x)

    return Model(torch.tanh), regression(), F.mse_loss
