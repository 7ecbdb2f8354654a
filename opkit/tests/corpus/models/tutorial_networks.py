"""The five causes of tutorials on gradient linkage, in attention, convolutions and seq2seq."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty


class Attention(nn.Module):
    """One head of self-attention and a head, (N, T, 4) -> (N, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / 8**0.5
        return self.out((self.weights(scores) @ self.v(x)).mean(1))

    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)


def attention(model: nn.Module, loss_fn=F.mse_loss) -> Setup:
    return model, (torch.randn(8, 5, 4), torch.randn(8, 1)), loss_fn


@faulty("detach", line="scores.softmax(-1).detach()")
def attention_weights_detached() -> Setup:
    class Model(Attention):
        def weights(self, scores: Tensor) -> Tensor:
            return scores.softmax(-1).detach()

    return attention(Model())


@faulty("no_grad", line="return scores.softmax(-1) * 1")
def attention_weights_without_grad() -> Setup:
    class Model(Attention):
        def weights(self, scores: Tensor) -> Tensor:
            with torch.no_grad():
                return scores.softmax(-1) * 1

    return attention(Model())


@faulty("in_place", line="weights *= keep")
def attention_dropout_in_place() -> Setup:
    class Model(Attention):
        def weights(self, scores: Tensor) -> Tensor:
            weights = scores.softmax(-1)
            keep = torch.rand_like(weights) > 0.1
            weights *= keep
            return weights

    return attention(Model())


@faulty("data", line="scores.data.softmax(-1)")
def attention_of_data() -> Setup:
    class Model(Attention):
        def weights(self, scores: Tensor) -> Tensor:
            return scores.data.softmax(-1)

    return attention(Model())


@faulty("integer", "rounding", "not_differentiable", line="scores.argmax(-1)")
def hard_attention() -> Setup:
    class Model(Attention):
        def weights(self, scores: Tensor) -> Tensor:
            return F.one_hot(scores.argmax(-1), 5).float()

    return attention(Model())


@faulty("never_called", line="self.norm = nn.LayerNorm(8)")
def attention_norm_unused() -> Setup:
    class Model(Attention):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(8)

    return attention(Model())


@faulty("not_scalar", line="(output - target).square().mean(0)")
def attention_loss_by_column() -> Setup:
    return attention(Attention(), lambda output, target: (output - target).square().mean(0).expand(2))


class ConvNet(nn.Module):
    """Images (N, 1, 8, 8) to ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.fc = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.fc(x.flatten(1))

    def features(self, x: Tensor) -> Tensor:
        return F.relu(self.conv2(F.relu(self.conv1(x))))


def images(model: nn.Module, loss_fn=F.cross_entropy) -> Setup:
    return model, (torch.randn(16, 1, 8, 8), torch.randint(10, (16,))), loss_fn


@faulty("detach", line="x = x.detach()")
def convolution_detached() -> Setup:
    class Model(ConvNet):
        def features(self, x: Tensor) -> Tensor:
            x = F.relu(self.conv1(x))
            x = x.detach()
            return F.relu(self.conv2(x))

    return images(Model())


@faulty("copy", "python", "detach", line="torch.tensor(x.detach().numpy())")
def convolution_through_numpy() -> Setup:
    class Model(ConvNet):
        def features(self, x: Tensor) -> Tensor:
            x = self.conv1(x)
            return self.conv2(torch.tensor(x.detach().numpy()))

    return images(Model())


@faulty("in_place", line="x += 0.1")
def convolution_in_place() -> Setup:
    class Model(ConvNet):
        def features(self, x: Tensor) -> Tensor:
            x = torch.tanh(self.conv1(x))
            x += 0.1
            return self.conv2(x)

    return images(Model())


@faulty("data", line="x.data = x.data - x.data.mean()")
def convolution_centered_by_data() -> Setup:
    class Model(ConvNet):
        def features(self, x: Tensor) -> Tensor:
            x = self.conv1(x)
            x.data = x.data - x.data.mean()
            return self.conv2(x)

    return images(Model())


@faulty("never_called", line="self.conv3 = nn.Conv2d")
def convolution_unused() -> Setup:
    class Model(ConvNet):
        def __init__(self) -> None:
            super().__init__()
            self.conv3 = nn.Conv2d(4, 4, 3)

    return images(Model())


@faulty("not_scalar", line='F.cross_entropy(logits, labels, reduction="none")')
def classification_loss_per_image() -> Setup:
    return images(ConvNet(), lambda logits, labels: F.cross_entropy(logits, labels, reduction="none"))


class Seq2Seq(nn.Module):
    """Encoder, and a decoder that feeds its own outputs back, (N, T, 2) -> (N, 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder, self.out = nn.GRU(2, 8, batch_first=True), nn.GRUCell(1, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, state = self.encoder(x)
        h, y, outputs = self.context(state[-1]), torch.zeros(len(x), 1), []
        for _ in range(3):
            h = self.decoder(y, h)
            y = self.out(h)
            outputs.append(y)
        return self.join(outputs)

    def context(self, h: Tensor) -> Tensor:
        return h

    def join(self, outputs: list[Tensor]) -> Tensor:
        return torch.cat(outputs, 1)


def seq2seq(model: nn.Module) -> Setup:
    return model, (torch.randn(8, 6, 2), torch.randn(8, 3)), F.mse_loss


@faulty("detach", line="return h.detach()")
def encoder_detached() -> Setup:
    class Model(Seq2Seq):
        def context(self, h: Tensor) -> Tensor:
            return h.detach()

    return seq2seq(Model())


@faulty("copy", "python", line="torch.tensor([y.tolist()")
def decoder_outputs_in_a_list() -> Setup:
    class Model(Seq2Seq):
        def join(self, outputs: list[Tensor]) -> Tensor:
            return torch.tensor([y.tolist() for y in outputs]).squeeze(-1).T

    return seq2seq(Model())


@faulty("data", line="result.data[:, i] = y[:, 0]")
def decoder_outputs_into_data() -> Setup:
    class Model(Seq2Seq):
        def join(self, outputs: list[Tensor]) -> Tensor:
            result = torch.zeros(8, 3)
            for i, y in enumerate(outputs):
                result.data[:, i] = y[:, 0]
            return result

    return seq2seq(Model())


@faulty("no_grad", line="self.encoder(x)[1]")
def encoder_without_grad() -> Setup:
    class Model(Seq2Seq):
        @torch.no_grad()
        def encode(self, x: Tensor) -> Tensor:
            return self.encoder(x)[1]

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.decoder(torch.zeros(len(x), 1), self.encode(x)[-1])).expand(-1, 3)

    return seq2seq(Model())
