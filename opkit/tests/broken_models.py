"""Small models with one fault each, on the line that ends in `# fault`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class TwoLayers(nn.Module):
    """Two layers; a broken model overrides `activate`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.activate(self.first(x)))

    def activate(self, x: Tensor) -> Tensor:
        return x.tanh()


class Detached(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return x.tanh().detach()  # fault


class Data(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return x.data.tanh()  # fault


class NumPy(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.from_numpy(x.detach().numpy()) * 2  # fault


class Item(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.tensor([[value.item() for value in row] for row in x])  # fault


class ToList(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.tensor(x.tolist())  # fault


class Copied(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.tensor(x)  # fault


class NoGrad(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return x.tanh()  # fault


class NoGradDecorated(TwoLayers):
    @torch.no_grad()
    def activate(self, x: Tensor) -> Tensor:
        return x.tanh()  # fault


class Inference(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            y = x.tanh()  # fault
        return y.clone()


class Long(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return (x * 10).long().float()  # fault


class Argmax(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return F.one_hot(x.argmax(-1), 8).float()  # fault


class Comparison(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return (x > 0).float()  # fault


class Rounded(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.round(x)  # fault


class Sign(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return x.sign()  # fault


class DetachedInPlace(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x.tanh()
        y.detach_()  # fault
        return y * 2


class NumPyOfResult(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.from_numpy(x.tanh().numpy())  # fault


class DataAssigned(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x.tanh()
        y.data = y.data.round()  # fault
        return y


class DataChanged(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x.tanh()
        y.data.clamp_(min=0)  # fault
        return y


class DataWritten(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = torch.zeros(len(x), 8)
        y.data[:] = x.tanh()  # fault
        return y


class StorageReplaced(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x * 2
        with torch.no_grad():
            y.set_(torch.ones_like(y))  # fault
        return y


class FrozenInForward(TwoLayers):
    def forward(self, x: Tensor) -> Tensor:
        self.first.requires_grad_(False)  # fault
        return super().forward(x)


class Symmetric(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        for parameter in self.parameters():
            nn.init.constant_(parameter, 0.1)


class ChangedWithoutGrad(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x * 2
        with torch.no_grad():
            y[:, 0] = 0  # fault
        return y


class MultipliedByZero(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return x.tanh() * torch.zeros(8)  # fault


class Masked(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.where(x > 1e6, x, 1.0)  # fault


class SoftmaxOfOne(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1).softmax(-1).squeeze(-1)  # fault


class Overwritten(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x * 2
        return y.fill_(1.0)  # fault


class Sampled(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return torch.normal(x, 1.0)  # fault


class ZeroBackward(torch.autograd.Function):  # fault
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return torch.zeros_like(grad)


class UsesZeroBackward(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return ZeroBackward.apply(x)


class KeepsGraph(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.state = torch.zeros(8)

    def activate(self, x: Tensor) -> Tensor:
        self.state = (x + self.state).tanh()  # fault
        return self.state


class NewParameter(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        weight = nn.Parameter(torch.ones(8, 8))  # fault
        return (x @ weight).tanh()


class ComputedOnce(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(8, requires_grad=True) * 0.5  # fault

    def activate(self, x: Tensor) -> Tensor:
        return x.tanh() * self.scale


class ResetInForward(TwoLayers):
    def forward(self, x: Tensor) -> Tensor:
        self.first.weight.data = torch.ones(8, 3)  # fault
        return super().forward(x)


class Crashes(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return x @ torch.ones(3, 3)  # fault


class InPlace(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x.sigmoid()
        y += 1  # fault
        return y


class InPlaceItem(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        y = x.exp()
        y[:, 0] = 0  # fault
        return y


class NeverCalledLayer(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Linear(8, 8)  # fault


class NeverUsedParameter(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))  # fault


class PlainList(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]  # fault

    def activate(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).tanh()
        return x


class PlainDict(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.heads = {"oil": nn.Linear(8, 8)}  # fault

    def activate(self, x: Tensor) -> Tensor:
        return self.heads["oil"](x).tanh()


class NotAParameter(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(8, requires_grad=True)  # fault

    def activate(self, x: Tensor) -> Tensor:
        return x.tanh() * self.scale


class UnusedResult(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.side = nn.Linear(8, 8)

    def activate(self, x: Tensor) -> Tensor:
        self.side(x)  # fault
        return x.tanh()


class Frozen(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        for parameter in self.parameters():
            parameter.requires_grad = False


class DetachedInFunction(TwoLayers):
    """The fault is in a function that the model calls."""

    def activate(self, x: Tensor) -> Tensor:
        return _activate_detached(x)


def _activate_detached(x: Tensor) -> Tensor:
    return x.tanh().clone().detach().requires_grad_()  # fault


class NaN(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return (x - x).sqrt() + x.tanh()  # fault


class Infinite(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))

    def activate(self, x: Tensor) -> Tensor:
        return x.tanh() + self.scale.sqrt()  # fault


class Vanishing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[layer for _ in range(30) for layer in (nn.Linear(8, 8), nn.Sigmoid())])
        self.last = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers(F.pad(x, (0, 5))))


class Exploding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)])
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=3.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(F.pad(x, (0, 5)))[:, :1]


class DeadLayer(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        nn.init.constant_(self.first.bias, -100.0)

    def activate(self, x: Tensor) -> Tensor:
        return self.relu(x)


class DeadFunction(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        nn.init.constant_(self.first.bias, -100.0)

    def activate(self, x: Tensor) -> Tensor:
        return torch.relu(x)  # fault


class Saturated(TwoLayers):
    def __init__(self) -> None:
        super().__init__()
        self.sigmoid = nn.Sigmoid()
        nn.init.constant_(self.first.bias, 100.0)

    def activate(self, x: Tensor) -> Tensor:
        return self.sigmoid(x)


def sharpe_loss(returns: Tensor) -> Tensor:
    """Negative Sharpe ratio of rows; it leaves out missing returns."""
    present = ~returns.isnan()
    known = torch.where(present, returns, 0)
    count = present.sum(-1)
    mean = known.sum(-1) / count
    deviation = torch.where(present, known - mean.unsqueeze(-1), 0).square().sum(-1).div(count).add(1e-6).sqrt()
    return -(mean / deviation).mean()


def sum_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().sum()


def unreduced_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square()


def loss_of_rows(output: Tensor, target: Tensor) -> Tensor:
    return -(output * target).sum(-1)  # fault


def float_loss(output: Tensor, target: Tensor) -> float:
    return F.mse_loss(output, target).item()  # fault


def rounded_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(torch.round(output), target)  # fault


def copied_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(torch.tensor(output), target)  # fault


def nan_loss(output: Tensor, target: Tensor) -> Tensor:
    return (target - target).log().mean() * output.mean()  # fault


def empty_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target)[target > 1e6].square().sum()  # fault


def broadcast_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(output, target.squeeze(1))  # fault


def probabilities_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(output.sigmoid(), (target > 0).float())  # fault


def new_loss(output: Tensor, target: Tensor) -> Tensor:
    return torch.tensor(F.mse_loss(output, target).item(), requires_grad=True)  # fault


def target_loss(output: Tensor, target: Tensor) -> Tensor:
    return target.square().mean()  # fault


MODELS: dict[str, tuple[type[nn.Module], ...]] = {
    "detach": (Detached, DetachedInFunction, DetachedInPlace),
    "data": (Data, DataAssigned, DataChanged, DataWritten, ResetInForward, StorageReplaced),
    "python": (Item, ToList, NumPy, NumPyOfResult),
    "copy": (Copied,),
    "no_grad": (NoGrad, NoGradDecorated, Inference, ChangedWithoutGrad),
    "zero_gradient": (MultipliedByZero, Masked, SoftmaxOfOne, Overwritten),
    "not_differentiable": (Sampled,),
    "wrong_backward": (UsesZeroBackward,),
    "graph_kept": (KeepsGraph,),
    "new_parameter": (NewParameter,),
    "crash": (Crashes,),
    "integer": (Long, Argmax, Comparison),
    "rounding": (Rounded, Sign),
    "in_place": (InPlace, InPlaceItem),
    "never_called": (NeverCalledLayer, NeverUsedParameter),
    "plain_list": (PlainList, PlainDict),
    "not_a_parameter": (NotAParameter, ComputedOnce),
    "unused_result": (UnusedResult,),
    "frozen": (Frozen, FrozenInForward),
    "nan_gradient": (NaN,),
    "infinite_gradient": (Infinite,),
    "vanishing": (Vanishing,),
    "symmetric_units": (Symmetric,),
    "exploding": (Exploding,),
    "dead_units": (DeadLayer, DeadFunction),
    "saturated_units": (Saturated,),
}
BROKEN = [(kind, model) for kind, models in MODELS.items() for model in models]
LOSSES = [
    ("not_scalar", unreduced_loss), ("not_scalar", loss_of_rows), ("not_a_tensor", float_loss),
    ("rounding", rounded_loss), ("copy", copied_loss), ("nan_gradient", nan_loss), ("zero_gradient", empty_loss),
    ("broadcast", broadcast_loss), ("double_softmax", probabilities_loss), ("python", new_loss),
    ("unused_result", target_loss),
]  # fmt: skip
