"""Models as other libraries write them, with batches and losses: torchvision, transformers, recurrent layers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + x)


class SmallResNet(nn.Module):
    """A CNN in the manner of torchvision."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList([ResidualBlock(channels), ResidualBlock(channels)])
        self.head = nn.Linear(channels, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


@dataclass
class EncoderOutput:
    """What a model of transformers returns."""

    logits: Tensor
    loss: Tensor | None = None


class Encoder(nn.Module):
    """A transformer block in the manner of transformers: keyword arguments, and an output object."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, width)
        self.encoder = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True, dropout=0.0)
        self.classifier = nn.Linear(width, 2)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None
    ) -> EncoderOutput:
        hidden = self.encoder(self.embedding(input_ids), src_key_padding_mask=attention_mask)
        logits = self.classifier(hidden[:, 0])
        return EncoderOutput(logits, None if labels is None else F.cross_entropy(logits, labels))


class TwoInputs(nn.Module):
    """Two positional arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.layer(x) + self.layer(y)


class PackedRnn(nn.Module):
    """Hidden states of a PackedSequence, one row for each element."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 3)

    def forward(self, x: nn.utils.rnn.PackedSequence) -> Tensor:
        return self.layer(x)[0].data


def first_output(output: Any, *_: Tensor) -> Tensor:
    return output[0].square().mean()


ids = torch.arange(12).view(2, 6) % 11
packed = nn.utils.rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
BATCHES: dict[str, tuple[Callable[[], nn.Module], Any, Any]] = {
    "tensor": (lambda: nn.Linear(4, 1), torch.ones(2, 4), torch.mean),
    "input and target": (lambda: nn.Linear(4, 1), [torch.ones(2, 4), torch.ones(2, 1)], F.mse_loss),
    "two inputs": (TwoInputs, ((torch.ones(2, 3), torch.ones(2, 3)), torch.ones(2, 1)), F.mse_loss),
    "mapping": (Encoder, {"input_ids": ids, "labels": torch.zeros(2, dtype=torch.long)}, lambda output: output.loss),
    "recurrent": (lambda: nn.LSTM(4, 3, batch_first=True), [torch.ones(2, 5, 4)], first_output),
    "packed": (lambda: nn.LSTM(4, 3), packed, lambda output: output[0].data.mean()),
    "packed with a target": (PackedRnn, (packed, torch.ones(5, 3)), F.mse_loss),
}
