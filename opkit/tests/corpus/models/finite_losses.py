"""Where NaN and infinity are born: in weights, probabilities and losses."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, classification, classifier, faulty, regression, with_loss
from corpus.models.finite import NAN, deadband


@faulty("parameter_not_finite", *NAN)
def weights_of_a_diverged_run() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    nn.init.constant_(model[0].weight, torch.nan)
    return model, regression(), F.mse_loss


@faulty("parameter_not_finite", *NAN)
def infinite_weight() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        model[2].bias.fill_(torch.inf)
    return model, regression(), F.mse_loss


@faulty(*NAN, line="scores.softmax(-1)")
def softmax_of_masked_row() -> Setup:
    def middle(h: Tensor) -> Tensor:
        mask = torch.zeros(16, 8, dtype=torch.bool)
        mask[2] = True
        scores = h.masked_fill(mask, -torch.inf)
        return scores.softmax(-1) * h

    return between(middle)


@faulty(*NAN, line="a.norm(dim=1) * b.norm(dim=1)")
def cosine_with_zero_vector() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        a, b = output.reshape(4, 4), torch.zeros(4, 4)
        return (1 - (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))).mean()

    return with_loss(loss_fn)


@faulty(*NAN, line="deadband(h).pow(0.5)")
def power_at_zero() -> Setup:
    return between(lambda h: deadband(h).pow(0.5))


@faulty(*NAN, line="-(p * p.log())")
def entropy_of_zero_probability() -> Setup:
    def middle(h: Tensor) -> Tensor:
        p = (h * 1000).softmax(-1)
        return -(p * p.log())

    return between(middle)


@faulty(*NAN, line="(1 - p).log()")
def log_of_saturated_sigmoid() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        p = (output * 1000).sigmoid()
        return -(p.log() + (1 - p).log()).mean()

    return with_loss(loss_fn)


@faulty("not_probabilities", "crash", *NAN, line="F.binary_cross_entropy(")
def logits_as_probabilities() -> Setup:
    return with_loss(lambda output, target: F.binary_cross_entropy(output * 9, (target > 0).float()))


@faulty(*NAN, line="F.cross_entropy(logits, target, ignore_index=-1)")
def every_target_ignored() -> Setup:
    x, _ = classification()

    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(logits, target, ignore_index=-1)

    return classifier(), (x, torch.full((16,), -1)), loss_fn


@faulty(*NAN, line="[target > 10].mean()")
def mean_of_an_empty_selection() -> Setup:
    return with_loss(lambda output, target: (output - target).square()[target > 10].mean())


@faulty(*NAN, line="(output / target).log()")
def log_ratio_of_signed_values() -> Setup:
    return with_loss(lambda output, target: (output / target).log().square().mean())


@faulty(*NAN, line="/ target.abs()")
def percentage_error_at_zero() -> Setup:
    model, (x, y), _ = between(torch.tanh)
    y[0] = 0
    return model, (x, y), lambda output, target: ((output - target).abs() / target.abs()).mean()


@faulty(*NAN, "crash", line="Normal(h, ")
def distribution_without_scale() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        h = output
        return -torch.distributions.Normal(h, h.relu(), validate_args=False).log_prob(target).mean()

    return with_loss(loss_fn)


@faulty(*NAN, line="-wealth.log()")
def log_wealth_of_bankruptcy() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        wealth = 1 + output * target * 100
        return -wealth.log().mean()

    return with_loss(loss_fn)


@faulty(*NAN, line="torch.hypot(y, y)")
def length_at_origin() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = deadband(h)
        return torch.hypot(y, y)

    return between(middle)
