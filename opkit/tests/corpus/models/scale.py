"""Gradients that vanish or explode, dead and saturated units."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, classifier, faulty, regression

DEAD = ("dead_units", "zero_gradient")
SATURATED = ("saturated_units", "zero_gradient", "vanishing")
VANISHING = ("vanishing", "zero_gradient")
EXPLODING = ("exploding", "infinite_gradient", "nan_gradient", "not_finite")


def stack(layer: type[nn.Module], depth: int, gain: float) -> nn.Sequential:
    """`depth` hidden layers, whose weights have standard deviation gain / sqrt(8)."""
    layers = [part for _ in range(depth) for part in (nn.Linear(8, 8), layer())]
    model = nn.Sequential(nn.Linear(3, 8), *layers, nn.Linear(8, 1))
    for module in model[1:-1]:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=gain / 8**0.5)
    return model


@faulty(*VANISHING)
def deep_sigmoid() -> Setup:
    return stack(nn.Sigmoid, 25, 1.0), regression(), F.mse_loss


@faulty(*VANISHING)
def deep_tanh_with_small_weights() -> Setup:
    return stack(nn.Tanh, 12, 0.05), regression(), F.mse_loss


@faulty(*VANISHING)
def tiny_initialization() -> Setup:
    model = stack(nn.Identity, 4, 1.0)
    for p in model.parameters():
        nn.init.normal_(p, std=1e-5)
    return model, regression(), F.mse_loss


@faulty(*EXPLODING)
def deep_linear_with_large_weights() -> Setup:
    return stack(nn.Identity, 20, 6.0), regression(), F.mse_loss


@faulty(*EXPLODING, *DEAD)
def deep_relu_with_normal_weights() -> Setup:
    model = stack(nn.ReLU, 20, 1.0)
    for module in model:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=3)
    return model, regression(), F.mse_loss


class Recurrent(nn.Module):
    """A recurrence without gates, h <- scale * W h."""

    def __init__(self, scale: float, steps: int) -> None:
        super().__init__()
        self.start, self.step, self.head = nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        nn.init.orthogonal_(self.step.weight)
        self.scale, self.steps = scale, steps

    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        for _ in range(self.steps):
            h = self.scale * self.step(h)
        return self.head(h)


@faulty(*VANISHING)
def recurrence_that_shrinks() -> Setup:
    return Recurrent(0.3, 40), regression(), F.mse_loss


@faulty(*EXPLODING)
def recurrence_that_grows() -> Setup:
    return Recurrent(2.0, 40), regression(), F.mse_loss


@faulty(*EXPLODING)
def inputs_not_scaled() -> Setup:
    x, y = regression()
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), (x * 1e6, y), F.mse_loss


@faulty(*EXPLODING)
def targets_not_scaled() -> Setup:
    x, y = regression()
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), (x, y * 1e8), F.mse_loss


@faulty(*EXPLODING)
def inverse_of_a_small_number() -> Setup:
    return between(lambda h: h / 1e-7)


@faulty(*DEAD)
def dead_by_bias() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    nn.init.constant_(model[0].bias, -100.0)
    return model, regression(), F.mse_loss


@faulty(*DEAD, line="(h - 100)")
def dead_by_function() -> Setup:
    return between(lambda h: F.relu(h - 100))


@faulty(*DEAD)
def dead_by_inputs() -> Setup:
    """Prices that were not centered, and weights that happen to be negative."""
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        model[0].weight.copy_(-model[0].weight.abs() - 0.1)
    x, y = regression()
    return model, (x.abs() + 70, y), F.mse_loss


@faulty(*DEAD)
def most_units_dead() -> Setup:
    model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
    with torch.no_grad():
        model[0].bias[2:] = -50
    return model, regression(), F.mse_loss


@faulty(*SATURATED, *DEAD, line=("torch.clamp(h - 50, min=0)", ".clamp"))
def dead_by_clamp() -> Setup:
    return between(lambda h: torch.clamp(h - 50, min=0))


@faulty(*DEAD)
def dead_convolution() -> Setup:
    model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 1))
    nn.init.constant_(model[0].bias, -30.0)
    return model, (torch.randn(16, 1, 8), torch.randn(16, 1)), F.mse_loss


@faulty(*SATURATED)
def saturated_by_inputs() -> Setup:
    x, y = regression()
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), (x * 1e5, y), F.mse_loss


@faulty(*SATURATED)
def saturated_by_weights() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.Sigmoid(), nn.Linear(8, 1))
    nn.init.normal_(model[0].weight, std=1e4)
    return model, regression(), F.mse_loss


@faulty(*SATURATED, line="torch.tanh(h * 1e5)")
def saturated_function() -> Setup:
    return between(lambda h: torch.tanh(h * 1e5))


@faulty(*SATURATED, line="h.sigmoid() * 2")
def saturated_method() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h = h + 1000
        return h.sigmoid() * 2

    return between(middle)


@faulty(*SATURATED)
def saturated_output_layer() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Tanh())
    nn.init.constant_(model[2].bias, 500.0)
    return model, regression(), F.mse_loss


@faulty(*SATURATED, line=("self.gate(x).sigmoid()",))
def gate_shut_by_bias() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.body, self.head = nn.Linear(3, 8), nn.Linear(3, 8), nn.Linear(8, 1)
            nn.init.constant_(self.gate.bias, -200.0)

        def forward(self, x: Tensor) -> Tensor:
            gate = self.gate(x).sigmoid()
            return self.head(gate * self.body(x))

    return Model(), regression(), F.mse_loss


@faulty(*SATURATED, line=("softmax(-1)", ""))
def attention_without_temperature() -> Setup:
    """Scores in the thousands: the softmax selects one key, and queries and keys get nothing."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(4, 1)
            nn.init.normal_(self.query.weight, std=1000)
            nn.init.normal_(self.key.weight, std=1000)

        def forward(self, x: Tensor) -> Tensor:
            scores = self.query(x) @ self.key(x).mT
            return (scores.softmax(-1) @ self.value(x)).mean(1)

    return Model(), (torch.randn(8, 5, 4), torch.randn(8, 1)), F.mse_loss


@faulty(*SATURATED, line="h.clamp(-1, 1)")
def clamped_out_of_range() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h = h + 70
        return h.clamp(-1, 1)

    return between(middle)


@faulty(*SATURATED, "exploding")
def classifier_of_raw_pixels() -> Setup:
    model = classifier(nn.Softmax(-1), classes=3)
    batch = (torch.rand(16, 3) * 255 * 1e4, torch.randint(3, (16,)))
    return model, batch, lambda p, target: (p - F.one_hot(target, 3)).square().mean()
