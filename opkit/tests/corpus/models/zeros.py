"""Gradients that are exactly zero."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, classification, classifier, faulty, regression, with_loss

ZERO = ("zero_gradient", "dead_units", "saturated_units")


@faulty(*ZERO, line="h * 0.0")
def multiplied_by_zero() -> Setup:
    return between(lambda h: h * 0.0)


@faulty(*ZERO, line="self.weight_of_branch * self.branch(x)")
def branch_with_weight_zero() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.branch, self.weight_of_branch = nn.Linear(3, 1), nn.Linear(3, 1), 0.0

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + self.weight_of_branch * self.branch(x)

    return Model(), regression(), F.mse_loss


@faulty(*ZERO, line=("h * mask", "masked_fill"))
def mask_is_all_false() -> Setup:
    def middle(h: Tensor) -> Tensor:
        mask = h.detach().abs() > 1e6
        return h * mask

    return between(middle)


@faulty(*ZERO, line="h.masked_fill(mask, 0.0)")
def mask_is_inverted() -> Setup:
    def middle(h: Tensor) -> Tensor:
        mask = torch.ones(16, 8, dtype=torch.bool)
        return h.masked_fill(mask, 0.0)

    return between(middle)


@faulty(*ZERO, line="torch.where(h > 1e6, h, torch.zeros_like(h))")
def where_never_selects() -> Setup:
    return between(lambda h: torch.where(h > 1e6, h, torch.zeros_like(h)))


@faulty(*ZERO, line="h.clamp(5, 5)")
def clamped_to_a_point() -> Setup:
    return between(lambda h: h.clamp(5, 5))


@faulty(*ZERO, line="h.relu()).relu()")
def relu_of_minus_relu() -> Setup:
    return between(lambda h: (-h.relu()).relu())


@faulty(*ZERO, line="softmax(-1) * 3")
def softmax_over_one_class() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).tanh()).softmax(-1) * 3

    return Model(), regression(), F.mse_loss


@faulty(*ZERO, line=("nn.Softmax(dim=1)", ""))
def softmax_layer_of_one_output() -> Setup:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Softmax(dim=1)), regression(), F.mse_loss


@faulty(*ZERO, line="F.cross_entropy(logits, torch.zeros")
def cross_entropy_of_one_logit() -> Setup:
    return with_loss(lambda logits, target: F.cross_entropy(logits, torch.zeros(16, dtype=torch.long)))


@faulty(*ZERO)
def gate_of_two_zero_layers() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    for layer in (model[2], model[4]):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    return model, regression(), F.mse_loss


@faulty(*ZERO)
def every_weight_zero() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    for p in model.parameters():
        nn.init.zeros_(p)
    return model, regression(), F.mse_loss


@faulty(*ZERO, line=("self.up(self.down(x))", "self.down", "self.up"))
def adapter_with_both_factors_zero() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.down, self.up = nn.Linear(3, 1), nn.Linear(3, 2, bias=False), nn.Linear(2, 1, bias=False)
            nn.init.zeros_(self.down.weight)
            nn.init.zeros_(self.up.weight)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + self.up(self.down(x))

    return Model(), regression(), F.mse_loss


@faulty(*ZERO, line="self.a * self.b")
def product_of_two_zeros() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.branch = nn.Linear(3, 1), nn.Linear(3, 1)
            self.a, self.b = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + self.a * self.b * self.branch(x)

    return Model(), regression(), F.mse_loss


@faulty(*ZERO, line="lambda grad: grad * 0")
def tensor_hook_zeroes() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h.register_hook(lambda grad: grad * 0)
        return h.tanh()

    return between(middle)


@faulty(*ZERO, line=("torch.zeros_like(grads[0])", "register_full_backward_hook"))
def module_hook_zeroes() -> Setup:
    model, batch, loss_fn = between(torch.tanh)
    model.last.register_full_backward_hook(lambda module, grads, outputs: (torch.zeros_like(grads[0]),))
    return model, batch, loss_fn


@faulty(*ZERO, line=("grad * mask", "register_hook"))
def parameter_hook_zeroes() -> Setup:
    """A mask of sparse weights that was never filled in."""
    model, batch, loss_fn = between(torch.tanh)
    mask = torch.zeros(8, 3)
    model.first.weight.register_hook(lambda grad: grad * mask)
    model.first.bias.requires_grad_(False)
    return model, batch, loss_fn


@faulty(*ZERO, line="0 * F.mse_loss(output, target)")
def loss_with_weight_zero() -> Setup:
    return with_loss(lambda output, target: 0 * F.mse_loss(output, target))


@faulty(*ZERO, line="[target > 10].sum()")
def sum_of_an_empty_selection() -> Setup:
    return with_loss(lambda output, target: (output - target).square()[target > 10].sum())


@faulty(*ZERO, line="(output - 10).relu()")
def margin_never_reached() -> Setup:
    return with_loss(lambda output, target: (output - 10).relu().mean())


@faulty(*ZERO, line="F.mse_loss(output, output)")
def compared_with_itself() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, output))


@faulty(*ZERO, "detach", line="F.mse_loss(output, output.detach())")
def compared_with_its_own_copy() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, output.detach()))


@faulty(*ZERO)
def layer_norm_of_one_feature() -> Setup:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1), nn.LayerNorm(1)), regression(), F.mse_loss


@faulty(*ZERO)
def dropout_of_everything() -> Setup:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(1.0), nn.Linear(8, 1)), regression(), F.mse_loss


@faulty(*ZERO, line="x[:, :0]")
def empty_slice() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factors, self.body = nn.Linear(3, 1, bias=False), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + (self.factors.weight[:, :0] * x[:, :0]).sum(1, keepdim=True)

    return Model(), regression(), F.mse_loss


@faulty(*ZERO, line="torch.minimum(h, torch.full_like(h, -100))")
def minimum_is_a_constant() -> Setup:
    return between(lambda h: torch.minimum(h, torch.full_like(h, -100)))


@faulty(*ZERO, line="self.limit")
def learned_limit_out_of_reach() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.limit = nn.Linear(3, 1), nn.Parameter(torch.tensor(1e6))

        def forward(self, x: Tensor) -> Tensor:
            return torch.minimum(self.layer(x), self.limit)

    return Model(), regression(), F.mse_loss


@faulty(*ZERO, line="(logits * valid.unsqueeze(1))")
def padding_mask_of_nothing_valid() -> Setup:
    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        valid = target < 0
        return F.cross_entropy((logits * valid.unsqueeze(1)), target)

    return classifier(), classification(), loss_fn
