"""In-place changes of what the backward pass needs, of leaves, and inference tensors."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, faulty, regression

LEAF = ("in_place", "crash")


@faulty("in_place", line="y += 1")
def add_to_sigmoid() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.sigmoid()
        y += 1
        return y

    return between(middle)


@faulty("in_place", line="exp().mul_(2)")
def multiply_exp() -> Setup:
    return between(lambda h: h.exp().mul_(2))


@faulty("in_place", line="y[:, 0] = 0")
def item_of_tanh() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.tanh()
        y[:, 0] = 0
        return y

    return between(middle)


@faulty("in_place", line="y[y < 0.5] = 0")
def masked_item_of_softmax() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.softmax(-1)
        y[y < 0.5] = 0
        return y

    return between(middle)


@faulty("in_place", line="weights.masked_fill_(")
def mask_after_softmax() -> Setup:
    def middle(h: Tensor) -> Tensor:
        weights = h.softmax(-1)
        weights.masked_fill_(weights > 0.3, 0.3)
        return weights * h

    return between(middle)


@faulty("in_place", line="y.clamp_(max=0.5)")
def clamp_sqrt() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.abs().add(1).sqrt()
        y.clamp_(max=0.5)
        return y

    return between(middle)


@faulty("in_place", line="F.relu(h.sigmoid(), inplace=True)")
def relu_in_place_of_sigmoid() -> Setup:
    return between(lambda h: F.relu(h.sigmoid(), inplace=True))


@faulty("in_place", line=("nn.ReLU(inplace=True)", "self.net(x)"))
def relu_layer_after_tanh_layer() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.ReLU(inplace=True), nn.Linear(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    return Model(), regression(), F.mse_loss


@faulty("in_place", line="F.dropout(h.exp()")
def dropout_in_place_of_exp() -> Setup:
    return between(lambda h: F.dropout(h.exp(), 0.5, inplace=True))


@faulty("not_differentiable", "in_place", "crash", line="out=y")
def out_argument() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = torch.empty(16, 8)
        torch.add(h, 1, out=y)
        return y

    return between(middle)


@faulty("in_place", line="h -= h.mean()")
def center_after_square() -> Setup:
    def middle(h: Tensor) -> Tensor:
        square = h**2
        h -= h.mean()
        return square + h

    return between(middle)


@faulty("in_place", line="states[:, t] = self.cell(")
def states_in_one_tensor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(1, 4), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            states = torch.zeros(16, 4, 4)
            for t in range(1, 4):
                states[:, t] = self.cell(x[:, t - 1 : t], states[:, t - 1])
            return self.head(states[:, -1])

    return Model(), regression(), F.mse_loss


@faulty("in_place", line="levels[t] *= ")
def recursion_in_one_tensor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.alpha, self.layer = nn.Parameter(torch.tensor(0.3)), nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            levels = self.layer(x).T.exp()
            for t in range(1, 4):
                levels[t] *= 1 - self.alpha * levels[t - 1]
            return levels[-1:].T

    return Model(), regression(), F.mse_loss


@faulty(*LEAF, line="self.bias += x.mean()")
def leaf_added_to() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.bias = nn.Linear(3, 1), nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.bias += x.mean()
            return self.layer(x) + self.bias

    return Model(), regression(), F.mse_loss


@faulty(*LEAF, line="self.layer.weight[0, 0] = 0")
def leaf_item() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            self.layer.weight[0, 0] = 0
            return self.layer(x)

    return Model(), regression(), F.mse_loss


@faulty(*LEAF, line="weight.view(-1)[0].clamp_(min=0)")
def leaf_through_a_view() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            self.layer.weight.view(-1)[0].clamp_(min=0)
            return self.layer(x)

    return Model(), regression(), F.mse_loss


@faulty("in_place", line="p.mul_(0.99)")
def weight_decay_after_use() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            y = self.last(self.first(x).tanh())
            with torch.no_grad():
                for p in self.parameters():
                    p.mul_(0.99)
            return y

    return Model(), regression(), F.mse_loss


@faulty("in_place", line="optimizer.step()")
def optimizer_step_before_backward() -> Setup:
    first, last = nn.Linear(3, 8), nn.Linear(8, 1)
    model = nn.Sequential(first, nn.Tanh(), last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        F.mse_loss(output, target).backward(retain_graph=True)
        optimizer.step()
        return F.l1_loss(output, target)

    return model, regression(), loss_fn


@faulty("in_place", "crash", line="y += 2")
def expanded_value() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.mean(0, keepdim=True).expand(16, -1)
        y += 2
        return y

    return between(middle)


@faulty("in_place", "crash", line="part.mul_(")
def one_of_several_views() -> Setup:
    def middle(h: Tensor) -> Tensor:
        for part in h.unbind(1):
            part.mul_(2)
        return h

    return between(middle)


@faulty("in_place", line="scores.div_(")
def divide_attention_scores() -> Setup:
    def middle(h: Tensor) -> Tensor:
        scores = h.exp()
        scores.div_(scores.sum(-1, keepdim=True))
        return scores * h

    return between(middle)


@faulty("in_place", line="total.index_add_(")
def index_add_to_saved() -> Setup:
    def middle(h: Tensor) -> Tensor:
        total = h.sigmoid()
        total.index_add_(0, torch.tensor([0, 1]), h[:2])
        return total

    return between(middle)


@faulty("in_place", line="y.copy_(h.flip(1))")
def copy_over_saved() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = h.tanh()
        z = y * y
        y.copy_(h.flip(1))
        return y + z

    return between(middle)


@faulty("in_place", line="x.zero_()")
def batch_zeroed_after_use() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            y = self.layer(x)
            x.zero_()
            return y

    return Model(), regression(), F.mse_loss


@faulty("in_place", line=("max_norm=0.1", "self.table(x.long().abs())"))
def embedding_renormalized_after_use() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.table = nn.Linear(3, 3), nn.Embedding(6, 3, max_norm=0.1)

        def forward(self, x: Tensor) -> Tensor:
            similarity = self.layer(x) @ self.table.weight.T
            return similarity.mean(1, keepdim=True) + self.table(x.long().abs()).mean((1, 2)).unsqueeze(1)

    return Model(), regression(), F.mse_loss
