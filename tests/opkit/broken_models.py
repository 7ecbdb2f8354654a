"""Small models with one fault each, on the line that ends in `# fault`."""

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


def sum_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().sum()


def unreduced_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square()


def float_loss(output: Tensor, target: Tensor) -> float:
    return F.mse_loss(output, target).item()  # fault


def rounded_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(torch.round(output), target)  # fault


def copied_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(torch.tensor(output), target)  # fault


MODELS: dict[str, tuple[type[nn.Module], ...]] = {
    "detach": (Detached, DetachedInFunction),
    "data": (Data,),
    "python": (Item, ToList),
    "copy": (Copied,),
    "no_grad": (NoGrad, NoGradDecorated, Inference),
    "integer": (Long, Argmax, Comparison),
    "rounding": (Rounded, Sign),
    "in_place": (InPlace, InPlaceItem),
    "never_called": (NeverCalledLayer, NeverUsedParameter),
    "plain_list": (PlainList, PlainDict),
    "not_a_parameter": (NotAParameter,),
    "unused_result": (UnusedResult,),
    "frozen": (Frozen,),
    "nan_gradient": (NaN,),
    "infinite_gradient": (Infinite,),
    "vanishing": (Vanishing,),
    "exploding": (Exploding,),
    "dead_units": (DeadLayer, DeadFunction),
    "saturated_units": (Saturated,),
}
BROKEN = [(kind, model) for kind, models in MODELS.items() for model in models] + [("python", NumPy)]
LOSSES = [
    ("not_scalar", unreduced_loss), ("not_a_tensor", float_loss), ("rounding", rounded_loss),
    ("copy", copied_loss),
]  # fmt: skip
