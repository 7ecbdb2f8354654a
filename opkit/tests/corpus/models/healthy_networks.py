"""Healthy: deep, convolutional, checkpointed, graph and Hugging Face-style networks."""

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from corpus.models.entries import Setup, healthy, regression
from corpus.models.healthy_sequences import sequences


@healthy
def residual_network_of_sixty_layers() -> Setup:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.body = nn.LayerNorm(8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return x + 0.2 * self.body(self.norm(x).relu())

    blocks = [Block() for _ in range(60)]
    return nn.Sequential(nn.Linear(3, 8), *blocks, nn.Linear(8, 1)), regression(), F.mse_loss


@healthy
def depthwise_convolution_and_group_norm() -> Setup:
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, groups=3), nn.GroupNorm(2, 6), nn.SiLU(inplace=True),
        nn.Conv2d(6, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    return model, (torch.randn(8, 3, 8, 8), torch.randint(3, (8,))), F.cross_entropy


@healthy
def checkpointed_layers() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.last = nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = checkpoint(self.first, x, use_reentrant=False)
            return self.last(checkpoint(lambda h: self.middle(h).tanh(), h, use_reentrant=False))

    return Model(), regression(), F.mse_loss


@healthy
def checkpointed_with_reentry() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.last = nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(checkpoint(self.middle, self.first(x), use_reentrant=True))

    return Model(), regression(), lambda output, target: F.mse_loss(output, target)


@healthy
def graph_messages_added_in_place() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.message, self.update = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            messages = self.message(x[edges[0]]).relu()
            total = torch.zeros(len(x), 8)
            total.index_add_(0, edges[1], messages)
            return self.update(total)

    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    return Model(), ((torch.randn(4, 3), edges), torch.randn(4, 1)), F.mse_loss


@healthy
def outputs_written_into_a_tensor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h, outputs = torch.zeros(len(x), 8), torch.zeros(len(x), 6)
            for t in range(6):
                h = self.cell(x[:, t], h)
                outputs[:, t] = self.head(h)[:, 0]
            return outputs.mean(1, keepdim=True)

    return Model(), sequences(), F.mse_loss


def token_batch() -> dict[str, Tensor]:
    ids = torch.arange(20).reshape(4, 5)
    return {"input_ids": ids, "attention_mask": torch.ones(4, 5), "labels": torch.tensor([0, 1, 2, 0])}


class Tagged(nn.Module):
    """In the style of Hugging Face: the output has a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> SimpleNamespace:
        h = (self.table(input_ids) * attention_mask.unsqueeze(-1)).mean(1)
        logits = self.head(h)
        return SimpleNamespace(loss=F.cross_entropy(logits, labels), logits=logits)


@healthy
def keyword_batch_and_loss_of_the_output() -> Setup:
    return Tagged(), token_batch(), lambda model, batch: model(**batch).loss


@healthy
def keyword_batch_with_loss_of_output_only() -> Setup:
    return Tagged(), token_batch(), lambda output: output.loss


@healthy
def dict_batch_given_whole() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 1)

        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return self.body(batch["features"])

    x, y = regression()
    loss_fn = lambda model, batch: F.mse_loss(model(batch), batch["target"])  # noqa: E731
    return Model(), {"features": x, "target": y}, loss_fn
