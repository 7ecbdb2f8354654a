"""Where NaN and infinity are born."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, faulty, regression, with_loss

NAN = ("nan_gradient", "infinite_gradient", "not_finite", "nan_loss")
INPUT = ("input_not_finite", "target_not_finite")


def deadband(h: Tensor) -> Tensor:
    """Values with exact zeros in them."""
    return h * (h > 0)


@faulty(*NAN, line="deadband(h).log()")
def log_of_zero() -> Setup:
    return between(lambda h: deadband(h).log())


@faulty(*NAN, line="deadband(h).sqrt()")
def sqrt_at_zero() -> Setup:
    return between(lambda h: deadband(h).sqrt())


@faulty(*NAN, line="/ deadband(h)")
def zero_divided_by_zero() -> Setup:
    return between(lambda h: deadband(h) / deadband(h))


@faulty(*NAN, line="y.var(0).sqrt()")
def std_of_a_constant() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h * 0 + h.mean()
        return h / (y.var(0).sqrt() + 1)

    return between(middle)


@faulty(*NAN, line="returns.std(0)")
def std_of_one_sample() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        returns = (output * target).mean(0, keepdim=True)
        return -(returns.mean(0) / returns.std(0)).sum()

    return with_loss(loss_fn)


@faulty(*NAN, line="torch.where(h > 0, h.sqrt(), 0.0)")
def where_selects_after_sqrt() -> Setup:
    return between(lambda h: torch.where(h > 0, h.sqrt(), 0.0))


@faulty(*NAN, line="deadband(h).log().masked_fill(h <= 0, 0)")
def masked_after_log() -> Setup:
    return between(lambda h: deadband(h).log().masked_fill(h <= 0, 0))


@faulty(*NAN, line="(1 / y)")
def where_selects_after_division() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = deadband(h)
        return torch.where(y > 0, (1 / y), y)

    return between(middle)


@faulty(*NAN, line="cosine.clamp(-1, 1).acos()")
def acos_at_one() -> Setup:
    def middle(h: Tensor) -> Tensor:
        u = F.normalize(h, dim=1)
        cosine = (u * u).sum(1, keepdim=True)
        return h + cosine.clamp(-1, 1).acos()

    return between(middle)


@faulty(*NAN, line="square.sum(1).sqrt()")
def norm_at_zero() -> Setup:
    def middle(h: Tensor) -> Tensor:
        square = (h - h).square()
        return h + square.sum(1).sqrt().unsqueeze(1)

    return between(middle)


@faulty(*NAN, line="(h * 1000).exp()")
def exp_overflow() -> Setup:
    return between(lambda h: (h * 1000).exp() / ((h * 1000).exp().sum(1, keepdim=True) + 1))


@faulty(*NAN, line="torch.log(1 + torch.exp(h))")
def softplus_by_hand() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h = h * 1000
        return torch.log(1 + torch.exp(h))

    return between(middle)


@faulty(*NAN, line="h.half()")
def half_overflow() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h = h * 1e6
        return h.half().float() * 0.5

    return between(middle)


@faulty("crash", "batch_norm", line=("self.norm(", "self.body(x)"))
def batch_norm_of_one_sample() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.norm, self.head = nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.norm(self.body(x)))

    return Model(), (torch.randn(1, 3), torch.randn(1, 1)), F.mse_loss


@faulty(*INPUT)
def nan_in_the_inputs() -> Setup:
    x, y = regression()
    x[3, 1] = torch.nan
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), (x, y), F.mse_loss


@faulty(*INPUT)
def infinite_return_in_the_inputs() -> Setup:
    prices = torch.tensor([0.0, 2.0, 3.0, 4.0]).expand(16, 4)
    returns = prices[:, 1:] / prices[:, :-1] - 1
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), (returns, torch.randn(16, 1)), F.mse_loss


@faulty(*INPUT)
def nan_in_the_targets() -> Setup:
    x, y = regression()
    y[5] = torch.nan
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), (x, y), F.mse_loss


@faulty(*NAN, *INPUT, line="x / x.std(0)")
def constant_feature_standardized() -> Setup:
    """NaN before the first parameter."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            x = x - x.mean(0)
            x = x / x.std(0)
            return self.net(x)

    x, y = regression()
    x[:, 2] = 1.0
    return Model(), (x, y), F.mse_loss


@faulty(*NAN, *INPUT, line="x.log().diff(")
def log_of_negative_price() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x.log().diff(dim=1))

    x, y = regression()
    return Model(), (x.abs() + 0.1 - 37.63 * (x > 1), y), F.mse_loss


@faulty(*NAN, *INPUT, line="x / self.scale")
def buffer_of_zero_scale() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
            self.register_buffer("scale", torch.tensor([1.0, 0.0, 1.0]))

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x / self.scale)

    x, y = regression()
    x[:, 1] = 0
    return Model(), (x, y), F.mse_loss
