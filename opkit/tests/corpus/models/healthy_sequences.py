"""Healthy: sequences, attention, routing, sorting and convolutions."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from corpus.models.entries import Setup, between, healthy


def sequences() -> tuple[Tensor, Tensor]:
    return torch.randn(8, 6, 3), torch.randn(8, 1)


@healthy
def lstm_of_packed_sequences() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            y, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            return self.head(y[torch.arange(len(x)), lengths - 1])

    x, y = sequences()
    return Model(), ((x, torch.tensor([6, 5, 3, 6, 2, 1, 4, 6])), y), F.mse_loss


class Last(nn.Module):
    """A recurrent layer and a head on its last output."""

    def __init__(self, layer: nn.Module, size: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(size, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0][:, -1])


@healthy
def bidirectional_gru() -> Setup:
    model = Last(nn.GRU(3, 8, num_layers=2, bidirectional=True, batch_first=True), 16)
    x, _ = sequences()
    return (
        model,
        (x, torch.randn(8, 6, 1)),
        lambda model, batch: F.mse_loss(model.head(model.layer(batch[0])[0]), batch[1]),
    )


@healthy
def elman_network() -> Setup:
    return Last(nn.RNN(3, 8, batch_first=True, nonlinearity="relu"), 8), sequences(), F.mse_loss


@healthy
def lstm_with_projection_and_dropout() -> Setup:
    return Last(nn.LSTM(3, 8, num_layers=2, dropout=0.2, proj_size=4, batch_first=True), 4), sequences(), F.mse_loss


@healthy
def stateful_lstm_that_detaches() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)
            self.state: Any = None

        def forward(self, x: Tensor) -> Tensor:
            y, state = self.lstm(x, self.state)
            self.state = tuple(s.detach() for s in state)
            return self.head(y[:, -1])

    return Model(), sequences(), F.mse_loss


@healthy
def transformer_encoder_with_padding() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.embed, self.encoder, self.head = nn.Linear(3, 8), nn.TransformerEncoder(layer, 2), nn.Linear(8, 1)

        def forward(self, x: Tensor, padding: Tensor) -> Tensor:
            return self.head(self.encoder(self.embed(x), src_key_padding_mask=padding).mean(1))

    x, y = sequences()
    padding = torch.zeros(8, 6, dtype=torch.bool)
    padding[::2, 4:] = True
    return Model(), ((x, padding), y), F.mse_loss


@healthy
def causal_attention_with_infinite_mask() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.head = nn.Linear(3, 24), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            mask = torch.full((6, 6), -torch.inf).triu(1)
            return self.head(((q @ k.mT / math.sqrt(8) + mask).softmax(-1) @ v)[:, -1])

    return Model(), sequences(), F.mse_loss


@healthy
def scaled_dot_product_attention() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.head = nn.Linear(3, 24), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unsqueeze(1).chunk(3, -1)
            return self.head(F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0, -1])

    return Model(), sequences(), F.mse_loss


@healthy
def experts_of_which_some_get_no_tokens() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(3, 8), nn.ModuleList(nn.Linear(3, 1) for _ in range(8))

        def forward(self, x: Tensor) -> Tensor:
            weight, choice = self.router(x).softmax(-1).max(-1)
            y = torch.zeros(len(x), 1)
            for i, expert in enumerate(self.experts):
                rows = (choice == i).nonzero()[:, 0]
                if len(rows):
                    y = y.index_add(0, rows, expert(x[rows]) * weight[rows].unsqueeze(1))
            return y

    return Model(), (torch.randn(4, 3), torch.randn(4, 1)), F.mse_loss


@healthy
def experts_called_with_no_rows() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(3, 6), nn.ModuleList(nn.Linear(3, 1) for _ in range(6))

        def forward(self, x: Tensor) -> Tensor:
            weight, choice = self.router(x).softmax(-1).topk(2)
            y = torch.zeros(len(x), 1)
            for i, expert in enumerate(self.experts):
                rows, slot = (choice == i).nonzero(as_tuple=True)
                y[rows] += expert(x[rows]) * weight[rows, slot].unsqueeze(1)
            return y

    return Model(), (torch.randn(2, 3), torch.randn(2, 1)), F.mse_loss


@healthy
def values_of_topk() -> Setup:
    return between(lambda h: h.topk(8).values)


@healthy
def sorted_values() -> Setup:
    return between(lambda h: h.sort(-1).values.cumsum(-1))


@healthy
def gathered_by_argmax() -> Setup:
    return between(lambda h: h.gather(1, h.argmax(1, keepdim=True)) + h)


@healthy
def median_and_quantile() -> Setup:
    return between(lambda h: h - h.median(1, keepdim=True).values + h.quantile(0.9, dim=1, keepdim=True))


@healthy
def max_pooling() -> Setup:
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(12, 1))
    return model, (torch.randn(16, 1, 8), torch.randn(16, 1)), F.mse_loss


@healthy
def initial_state_that_requires_grad() -> Setup:
    """As in many tutorials; the state is zero at every step, and no parameter."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.RNN(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            start = torch.zeros(1, x.size(0), 8).requires_grad_()
            return self.head(self.rnn(x, start.detach())[0][:, -1])

    return Model(), sequences(), F.mse_loss
