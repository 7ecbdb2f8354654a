"""Small models with one fault each, and the line it is on: it ends in `# here`."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Two(nn.Module):
    """Two layers; a fault overrides `between`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.between(self.first(x)))

    def between(self, x: Tensor) -> Tensor:
        return x.tanh()


class Detached(Two):
    def between(self, x: Tensor) -> Tensor:
        return x.tanh().detach()  # here


class Data(Two):
    def between(self, x: Tensor) -> Tensor:
        return x.data.tanh()  # here


class NumPy(Two):
    def between(self, x: Tensor) -> Tensor:
        return torch.from_numpy(x.detach().numpy()) * 2  # here


class Items(Two):
    def between(self, x: Tensor) -> Tensor:
        return torch.tensor([[value.item() for value in row] for row in x])  # here


class ToList(Two):
    def between(self, x: Tensor) -> Tensor:
        return torch.tensor(x.tolist())  # here


class Copied(Two):
    def between(self, x: Tensor) -> Tensor:
        return torch.tensor(x)  # here


class NoGrad(Two):
    def between(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return x.tanh()  # here


class NoGradDecorated(Two):
    @torch.no_grad()
    def between(self, x: Tensor) -> Tensor:
        return x.tanh()  # here


class Inference(Two):
    def between(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            y = x.tanh()  # here
        return y.clone()


class Long(Two):
    def between(self, x: Tensor) -> Tensor:
        return (x * 10).long().float()  # here


class Argmax(Two):
    def between(self, x: Tensor) -> Tensor:
        return F.one_hot(x.argmax(-1), 8).float()  # here


class Compared(Two):
    def between(self, x: Tensor) -> Tensor:
        return (x > 0).float()  # here


class Rounded(Two):
    def between(self, x: Tensor) -> Tensor:
        return torch.round(x)  # here


class Sign(Two):
    def between(self, x: Tensor) -> Tensor:
        return x.sign()  # here


class InPlace(Two):
    def between(self, x: Tensor) -> Tensor:
        y = x.sigmoid()
        y += 1  # here
        return y


class InPlaceItem(Two):
    def between(self, x: Tensor) -> Tensor:
        y = x.exp()
        y[:, 0] = 0  # here
        return y


class NeverCalled(Two):
    def __init__(self) -> None:
        super().__init__()
        self.forgotten = nn.Linear(8, 8)  # here


class NeverUsedParameter(Two):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))  # here


class PlainList(Two):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]  # here

    def between(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).tanh()
        return x


class PlainDict(Two):
    def __init__(self) -> None:
        super().__init__()
        self.heads = {"oil": nn.Linear(8, 8)}  # here

    def between(self, x: Tensor) -> Tensor:
        return self.heads["oil"](x).tanh()


class NotAParameter(Two):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(8, requires_grad=True)  # here

    def between(self, x: Tensor) -> Tensor:
        return x.tanh() * self.scale


class UnusedResult(Two):
    def __init__(self) -> None:
        super().__init__()
        self.side = nn.Linear(8, 8)

    def between(self, x: Tensor) -> Tensor:
        self.side(x)  # here
        return x.tanh()


class Frozen(Two):
    def __init__(self) -> None:
        super().__init__()
        for parameter in self.parameters():
            parameter.requires_grad = False


class Detour(Two):
    """The fault lies two calls below."""

    def between(self, x: Tensor) -> Tensor:
        return _cleaned(x)


def _cleaned(x: Tensor) -> Tensor:
    return x.tanh().clone().detach().requires_grad_()  # here


class NaN(Two):
    def between(self, x: Tensor) -> Tensor:
        return (x - x).sqrt() + x.tanh()  # here


class Infinite(Two):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))

    def between(self, x: Tensor) -> Tensor:
        return x.tanh() + self.scale.sqrt()  # here


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


class Dead(Two):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        nn.init.constant_(self.first.bias, -100.0)

    def between(self, x: Tensor) -> Tensor:
        return self.relu(x)


class DeadFunction(Two):
    def __init__(self) -> None:
        super().__init__()
        nn.init.constant_(self.first.bias, -100.0)

    def between(self, x: Tensor) -> Tensor:
        return torch.relu(x)  # here


class Saturated(Two):
    def __init__(self) -> None:
        super().__init__()
        self.sigmoid = nn.Sigmoid()
        nn.init.constant_(self.first.bias, 100.0)

    def between(self, x: Tensor) -> Tensor:
        return self.sigmoid(x)


def summed(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().sum()


def unreduced(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square()


def number(output: Tensor, target: Tensor) -> float:
    return F.mse_loss(output, target).item()  # here


def rounded(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(torch.round(output), target)  # here


def copied(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(torch.tensor(output), target)  # here


MODELS: dict[str, tuple[type[nn.Module], ...]] = {
    "detach": (Detached, Detour),
    "data": (Data,),
    "python": (Items, ToList),
    "copied": (Copied,),
    "no_grad": (NoGrad, NoGradDecorated, Inference),
    "integer": (Long, Argmax, Compared),
    "rounding": (Rounded, Sign),
    "in_place": (InPlace, InPlaceItem),
    "never_called": (NeverCalled, NeverUsedParameter),
    "plain_list": (PlainList, PlainDict),
    "not_a_parameter": (NotAParameter,),
    "unused_result": (UnusedResult,),
    "frozen": (Frozen,),
    "nan_gradient": (NaN,),
    "infinite_gradient": (Infinite,),
    "vanishing": (Vanishing,),
    "exploding": (Exploding,),
    "dead_units": (Dead, DeadFunction),
    "saturated_units": (Saturated,),
}
FAULTS = [(kind, model) for kind, models in MODELS.items() for model in models] + [("detach", NumPy)]
LOSSES = [
    ("batch_size", summed), ("not_scalar", unreduced), ("not_a_tensor", number), ("rounding", rounded),
    ("copied", copied),
]  # fmt: skip
