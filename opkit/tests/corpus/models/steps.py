"""Functions without a slope: integers, comparisons, indices, rounding and sampling."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, classification, classifier, faulty, regression, with_loss

STEP = ("rounding", "integer", "not_differentiable", "zero_gradient")
SAMPLE = ("not_differentiable", "no_grad", "integer", "sampling")


@faulty(*STEP, line="(h * 10).long()")
def cast_to_long() -> Setup:
    return between(lambda h: (h * 10).long().float())


@faulty(*STEP, line="h.to(torch.int8)")
def cast_to_int8() -> Setup:
    return between(lambda h: h.to(torch.int8).to(torch.float32))


@faulty(*STEP, line="h.bool()")
def cast_to_bool() -> Setup:
    return between(lambda h: h.bool().float())


@faulty(*STEP, line="h.type(torch.IntTensor)")
def cast_by_type() -> Setup:
    return between(lambda h: h.type(torch.IntTensor).type(torch.FloatTensor))


@faulty(*STEP, line="h.argmax(-1)")
def one_hot_of_argmax() -> Setup:
    return between(lambda h: F.one_hot(h.argmax(-1), 8).float())


@faulty(*STEP, line="h.max(-1)[1]")
def index_of_max() -> Setup:
    return between(lambda h: h.max(-1)[1].float().unsqueeze(1).expand(-1, 8))


@faulty(*STEP, line="topk(8).indices")
def topk_indices() -> Setup:
    return between(lambda h: h.topk(8).indices / 8.0)


@faulty(*STEP, line="h.argsort(-1)")
def ranks_by_argsort() -> Setup:
    return between(lambda h: h.argsort(-1).argsort(-1) / 7.0)


@faulty(*STEP, line="torch.round(h")
def rounded_to_cents() -> Setup:
    return between(lambda h: torch.round(h * 100) / 100)


@faulty(*STEP, line="h.sign()")
def sign_of_signal() -> Setup:
    return between(lambda h: h.sign())


@faulty(*STEP, line="h.floor()")
def floor_method() -> Setup:
    return between(lambda h: h.floor() + 1)


@faulty(*STEP, line="torch.ceil(h)")
def ceil_function() -> Setup:
    return between(lambda h: torch.ceil(h) + 1)


@faulty(*STEP, line="h.trunc()")
def trunc_method() -> Setup:
    return between(lambda h: h.trunc() + 1)


@faulty(*STEP, line="h // 0.5")
def floor_division() -> Setup:
    return between(lambda h: (h // 0.5) * 0.5)


@faulty(*STEP, line="torch.heaviside(h")
def heaviside() -> Setup:
    return between(lambda h: torch.heaviside(h, torch.tensor(0.5)))


@faulty(*STEP, line="(h > 0).float()")
def greater_than_zero() -> Setup:
    return between(lambda h: (h > 0).float())


@faulty(*STEP, line="torch.where(h > 0, 1.0, 0.0)")
def where_of_constants() -> Setup:
    return between(lambda h: torch.where(h > 0, 1.0, 0.0))


@faulty(*STEP, line="torch.where(h > 0, torch.ones_like(h)")
def where_of_ones_and_zeros() -> Setup:
    return between(lambda h: torch.where(h > 0, torch.ones_like(h), torch.zeros_like(h)))


@faulty(*STEP, line="torch.gt(torch.sigmoid(h), 0.5)")
def thresholded_probability() -> Setup:
    return between(lambda h: torch.gt(torch.sigmoid(h), 0.5).to(h.dtype))


@faulty(*STEP, line="torch.bucketize(h")
def buckets() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.table = nn.Linear(3, 4), nn.Embedding(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            return self.table(torch.bucketize(h, torch.linspace(-2, 2, 5))).mean((1, 2)).unsqueeze(1)

    return Model(), regression(), F.mse_loss


@faulty(*STEP, line="torch.histc(h")
def histogram() -> Setup:
    return between(lambda h: torch.histc(h.flatten(), 8).expand(16, 8) if h.requires_grad else h)


@faulty(*STEP, line="torch.count_nonzero(h")
def count_of_positives() -> Setup:
    return between(lambda h: torch.count_nonzero(h.relu(), 1).float().unsqueeze(1).expand(-1, 8))


@faulty(*SAMPLE, line="torch.multinomial(h.softmax(-1)")
def multinomial_sample() -> Setup:
    return between(lambda h: F.one_hot(torch.multinomial(h.softmax(-1), 1).squeeze(1), 8).float())


@faulty(*SAMPLE, line="torch.bernoulli(h.sigmoid())")
def bernoulli_gate() -> Setup:
    return between(lambda h: torch.bernoulli(h.sigmoid()))


@faulty(*SAMPLE, line="Categorical(logits=h).sample()")
def categorical_sample() -> Setup:
    return between(lambda h: F.one_hot(torch.distributions.Categorical(logits=h).sample(), 8).float())


@faulty(*SAMPLE, line=".sample()")
def normal_sample_without_reparameterization() -> Setup:
    return between(lambda h: torch.distributions.Normal(h, h.exp()).sample())


@faulty(*SAMPLE, line="torch.normal(h, h.exp())")
def normal_function() -> Setup:
    return between(lambda h: torch.normal(h, h.exp()))


@faulty(*SAMPLE, line="torch.poisson(h.exp())")
def poisson_counts() -> Setup:
    return between(lambda h: torch.poisson(h.exp()) + 1)


@faulty(*STEP, line="F.gumbel_softmax(h).argmax(-1)")
def argmax_of_gumbel() -> Setup:
    return between(lambda h: F.one_hot(F.gumbel_softmax(h).argmax(-1), 8).float())


@faulty(*STEP, line="h + (h.round() - h)")
def straight_through_without_detach() -> Setup:
    return between(lambda h: h + (h.round() - h))


@faulty("detach", line="(h + h.round() - h).detach()")
def straight_through_detached_whole() -> Setup:
    return between(lambda h: (h + h.round() - h).detach())


@faulty("rounding", "not_differentiable", "integer", line="torch.quantize_per_tensor(")
def quantize_and_dequantize() -> Setup:
    return between(lambda h: torch.quantize_per_tensor(h, 0.1, 0, torch.qint8).dequantize())


@faulty(*STEP, line="self.table(h.long())")
def embedding_of_a_result() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.table = nn.Linear(3, 1), nn.Embedding(10, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x).abs().clamp(max=9)
            return self.table(h.long()).squeeze(1)

    return Model(), regression(), F.mse_loss


@faulty(*STEP, line="positions = (signal > 0)")
def long_or_short_positions() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            signal = self.body(x)
            positions = (signal > 0) * 2.0 - 1.0
            return positions  # noqa: RET504

    return Model(), regression(), lambda output, target: -(output * target).mean()


@faulty(*STEP, line="logits.argmax(-1) == target")
def accuracy_as_loss() -> Setup:
    return classifier(), classification(), lambda logits, target: 1 - (logits.argmax(-1) == target).float().mean()


@faulty(*STEP, line="predicted = (output.sigmoid() > 0.5)")
def f1_as_loss() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        positive = (target > 0).float()
        predicted = (output.sigmoid() > 0.5).float()
        return 1 - 2 * (predicted * positive).sum() / (predicted.sum() + positive.sum() + 1)

    return with_loss(loss_fn)


@faulty(*STEP, line="torch.sign(output)")
def hit_rate_as_loss() -> Setup:
    return with_loss(lambda output, target: -(torch.sign(output) * torch.sign(target)).mean())


@faulty(*STEP, line="output.flatten().argsort()")
def rank_correlation_as_loss() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        a, b = output.flatten().argsort().argsort().float(), target.flatten().argsort().argsort().float()
        return -torch.corrcoef(torch.stack([a, b]))[0, 1]

    return with_loss(loss_fn)


@faulty(*STEP, line="torch.isclose(output, target")
def share_of_close_values() -> Setup:
    return with_loss(lambda output, target: 1 - torch.isclose(output, target, atol=0.1).double().mean())


@faulty(*STEP, line="output.round() - target")
def rounded_prices_in_loss() -> Setup:
    return with_loss(lambda output, target: (output.round() - target).square().mean())
