"""The five causes of tutorials on gradient linkage, in graph networks and models in the style of Hugging Face."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty


class GraphNet(nn.Module):
    """Messages along edges, summed at their ends; (nodes, 3) -> (nodes, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(6, 8), nn.Linear(11, 1)
        self.register_buffer("edges", torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]]))

    def forward(self, x: Tensor) -> Tensor:
        source, end = self.edges
        messages = self.message(torch.cat([x[source], x[end]], 1)).relu()
        return self.update(torch.cat([x, self.aggregate(messages, end, len(x))], 1))

    def aggregate(self, messages: Tensor, end: Tensor, nodes: int) -> Tensor:
        return torch.zeros(nodes, 8).index_add(0, end, messages)


def graph(model: nn.Module) -> Setup:
    return model, (torch.randn(5, 3), torch.randn(5, 1)), F.mse_loss


@faulty("detach", line="index_add(0, end, messages.detach())")
def messages_detached() -> Setup:
    class Model(GraphNet):
        def aggregate(self, messages: Tensor, end: Tensor, nodes: int) -> Tensor:
            return torch.zeros(nodes, 8).index_add(0, end, messages.detach())

    return graph(Model())


@faulty("data", line="total.data.index_add_(")
def messages_added_to_data() -> Setup:
    class Model(GraphNet):
        def aggregate(self, messages: Tensor, end: Tensor, nodes: int) -> Tensor:
            total = torch.zeros(nodes, 8)
            total.data.index_add_(0, end, messages)
            return total

    return graph(Model())


@faulty("python", line="float(messages[j, i])")
def messages_summed_in_python() -> Setup:
    class Model(GraphNet):
        def aggregate(self, messages: Tensor, end: Tensor, nodes: int) -> Tensor:
            total = torch.zeros(nodes, 8)
            for j, node in enumerate(end.tolist()):
                for i in range(8):
                    total[node, i] += float(messages[j, i])
            return total

    return graph(Model())


class Transformer(nn.Module):
    """In the style of Hugging Face: `model(**batch).loss`."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings, self.layer, self.classifier = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> SimpleNamespace:
        hidden = self.encode(self.embeddings(input_ids))
        pooled = (hidden * attention_mask.unsqueeze(-1)).sum(1) / attention_mask.sum(1, keepdim=True)
        logits = self.classifier(pooled)
        return SimpleNamespace(loss=self.loss(logits, labels), logits=logits)

    def encode(self, embedded: Tensor) -> Tensor:
        return self.layer(embedded).tanh()

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels)


def hugging_face(model: nn.Module) -> Setup:
    batch: dict[str, Any] = {"input_ids": torch.arange(20).reshape(4, 5), "labels": torch.tensor([0, 1, 2, 0])}
    batch["attention_mask"] = torch.ones(4, 5)
    return model, batch, lambda model, batch: model(**batch).loss


@faulty("detach", line="self.layer(embedded.detach())")
def embeddings_detached() -> Setup:
    class Model(Transformer):
        def encode(self, embedded: Tensor) -> Tensor:
            return self.layer(embedded.detach()).tanh()

    return hugging_face(Model())


@faulty("in_place", line="hidden[:, 0] = 0")
def hidden_states_overwritten() -> Setup:
    class Model(Transformer):
        def encode(self, embedded: Tensor) -> Tensor:
            hidden = self.layer(embedded).tanh()
            hidden[:, 0] = 0
            return hidden

    return hugging_face(Model())


@faulty("data", line="F.cross_entropy(logits.data")
def loss_of_logits_data() -> Setup:
    class Model(Transformer):
        def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(logits.data, labels)

    return hugging_face(Model())


@faulty("not_scalar", line='labels, reduction="none"')
def loss_of_each_sentence() -> Setup:
    class Model(Transformer):
        def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(logits, labels, reduction="none")

    return hugging_face(Model())


@faulty("never_called", line="self.pooler = nn.Linear(8, 8)")
def pooler_unused() -> Setup:
    class Model(Transformer):
        def __init__(self) -> None:
            super().__init__()
            self.pooler = nn.Linear(8, 8)

    return hugging_face(Model())
