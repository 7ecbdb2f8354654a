"""Healthy: layers with parameters that start at zero, stay frozen, or are not used by every batch."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Between, Setup, between, classification, classifier, healthy, regression


def tokens() -> tuple[Tensor, Tensor]:
    return torch.randint(1, 20, (16, 5)), torch.randint(3, (16,))


@healthy
def low_rank_adapter_with_zero_factor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(3, 1).requires_grad_(False)
            self.a, self.b = nn.Parameter(torch.randn(2, 3)), nn.Parameter(torch.zeros(1, 2))

        def forward(self, x: Tensor) -> Tensor:
            return self.base(x) + F.linear(F.linear(x, self.a), self.b)

    return Model(), regression(), F.mse_loss


@healthy
def residual_branch_with_zero_scale() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.body, self.head = nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)
            self.alpha = nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            return self.head(h + self.alpha * self.body(h).tanh())

    return Model(), regression(), F.mse_loss


@healthy
def head_initialized_to_zero() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    nn.init.zeros_(model[2].weight)
    nn.init.zeros_(model[2].bias)
    return model, regression(), F.mse_loss


@healthy
def batch_norm_gamma_zero() -> Setup:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.body, self.norm, self.head = (
                nn.Linear(3, 8),
                nn.Linear(8, 8),
                nn.BatchNorm1d(8),
                nn.Linear(8, 1),
            )
            nn.init.zeros_(self.norm.weight)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x).relu()
            return self.head(h + self.norm(self.body(h)))

    return Block(), regression(), F.mse_loss


@healthy
def bias_before_batch_norm() -> Setup:
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)), regression(), F.mse_loss


@healthy
def key_bias_of_attention() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.attention(x, x, x)[0].mean(1))

    return Model(), (torch.randn(4, 5, 8), torch.randn(4, 1)), F.mse_loss


@healthy
def tied_embeddings() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
            self.out.weight = self.table.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.table(x).mean(1))

    return Model(), (tokens()[0], torch.randint(20, (16,))), F.cross_entropy


@healthy
def embedding_with_unused_rows() -> Setup:
    model = nn.Sequential(nn.Embedding(5000, 8), nn.Flatten(), nn.Linear(40, 3))
    return model, tokens(), F.cross_entropy


@healthy
def sparse_embedding() -> Setup:
    model = nn.Sequential(nn.Embedding(100, 8, sparse=True), nn.Flatten(), nn.Linear(40, 3))
    return model, tokens(), F.cross_entropy


@healthy
def sparse_embedding_bag() -> Setup:
    model = nn.Sequential(nn.EmbeddingBag(100, 8, sparse=True, mode="sum"), nn.Linear(8, 3))
    return model, tokens(), F.cross_entropy


@healthy
def padding_index() -> Setup:
    x, y = tokens()
    x[:, 3:] = 0
    return nn.Sequential(nn.Embedding(20, 8, padding_idx=0), nn.Flatten(), nn.Linear(40, 3)), (x, y), F.cross_entropy


@healthy
def embedding_with_max_norm() -> Setup:
    return nn.Sequential(nn.Embedding(20, 8, max_norm=1.0), nn.Flatten(), nn.Linear(40, 3)), tokens(), F.cross_entropy


@healthy
def frozen_backbone() -> Setup:
    model = classifier()
    model[0].requires_grad_(False)
    return model, classification(), F.cross_entropy


@healthy
def frozen_backbone_under_no_grad() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.head = nn.Linear(3, 8).requires_grad_(False), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                features = self.backbone(x).relu()
            return self.head(features)

    return Model(), regression(), F.mse_loss


@healthy
def heads_of_which_one_is_used() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 8)
            self.heads = nn.ModuleDict({name: nn.Linear(8, 1) for name in ("oil", "gas", "power")})

        def forward(self, x: Tensor) -> Tensor:
            return self.heads["gas"](self.body(x).tanh())

    return Model(), regression(), F.mse_loss


@healthy
def horizons_of_which_one_is_used() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.heads = nn.Linear(3, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(4))

        def forward(self, x: Tensor, horizon: int = 2) -> Tensor:
            return self.heads[horizon](self.body(x).tanh())

    return Model(), regression(), F.mse_loss


@healthy
def auxiliary_head_in_training() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head, self.auxiliary = nn.Linear(3, 8), nn.Linear(8, 1), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            h = self.body(x).tanh()
            return (self.head(h), self.auxiliary(h)) if self.training else (self.head(h),)

    return Model(), regression(), lambda outputs, target: sum(F.mse_loss(y, target) for y in outputs)


@healthy
def relu_in_place_after_linear() -> Setup:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Linear(8, 1)), regression(), F.mse_loss


@healthy
def relu_in_place_after_batch_norm() -> Setup:
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(24, 1))
    return model, (torch.randn(16, 1, 8), torch.randn(16, 1)), F.mse_loss


@healthy
def residual_added_in_place() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.relu() * 2
        y += h
        return y

    return between(middle)


@healthy
def steps_counted_in_a_buffer() -> Setup:
    class Model(Between):
        def __init__(self) -> None:
            super().__init__(torch.tanh)
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))
            self.register_buffer("range", torch.zeros(8))

        def forward(self, x: Tensor) -> Tensor:
            self.steps += 1
            h = self.first(x)
            self.range.data.mul_(0.9).add_(h.data.abs().amax(0), alpha=0.1)
            return self.last(h / (self.range + 1))

    return Model(), regression(), F.mse_loss


@healthy
def moving_average_in_a_buffer() -> Setup:
    class Model(Between):
        def __init__(self) -> None:
            super().__init__(torch.tanh)
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            with torch.no_grad():
                self.mean.lerp_(h.mean(0), 0.1)
            return self.last(h - self.mean)

    return Model(), regression(), F.mse_loss


@healthy
def layer_for_inputs_of_another_width() -> Setup:
    class Model(Between):
        def __init__(self) -> None:
            super().__init__(torch.tanh)
            self.project = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(self.project(x) if x.shape[1] == 6 else x)

    return Model(), regression(), F.mse_loss
