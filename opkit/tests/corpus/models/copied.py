"""Values that leave PyTorch: NumPy, Python numbers, lists, and copies by `torch.tensor`."""

import math
import statistics

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, between, faulty, regression, with_loss

PYTHON = ("python", "detach", "copy")


class Scaled(nn.Module):
    """A linear layer and a learned number, which `use` applies to the output."""

    def __init__(self, start: float = 0.5) -> None:
        super().__init__()
        self.layer, self.number = nn.Linear(3, 1), nn.Parameter(torch.tensor(start))

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self.layer(x))

    def use(self, y: Tensor) -> Tensor:
        return y * self.number


def scaled(model: type[Scaled]) -> Setup:
    return model(), regression(), F.mse_loss


@faulty("copy", line="torch.tensor(h)")
def tensor_of_tensor() -> Setup:
    return between(lambda h: torch.tensor(h).tanh())


@faulty("copy", line="h.new_tensor(h)")
def new_tensor() -> Setup:
    return between(lambda h: h.new_tensor(h).tanh())


@faulty(*PYTHON, line="h.tolist()")
def tensor_of_list() -> Setup:
    return between(lambda h: torch.tensor(h.tolist()).tanh())


@faulty(*PYTHON, line="torch.Tensor(h.tolist())")
def legacy_tensor_of_list() -> Setup:
    return between(lambda h: torch.Tensor(h.tolist()).tanh())


@faulty(*PYTHON, line="h.detach().numpy()")
def numpy_and_back() -> Setup:
    def middle(h: Tensor) -> Tensor:
        array = h.detach().numpy()
        return torch.from_numpy(np.tanh(array))

    return between(middle)


@faulty(*PYTHON, line="h.detach().cpu().numpy()")
def as_tensor_of_array() -> Setup:
    return between(lambda h: torch.as_tensor(np.tanh(h.detach().cpu().numpy())))


@faulty("python", "crash", line="h.numpy()")
def numpy_of_a_result() -> Setup:
    return between(lambda h: torch.from_numpy(np.maximum(h.numpy(), 0)))


@faulty("python", "crash", line="np.tanh(h)")
def numpy_function() -> Setup:
    return between(lambda h: torch.as_tensor(np.tanh(h)))


@faulty("python", "crash", line="np.asarray(h)")
def numpy_asarray() -> Setup:
    return between(lambda h: torch.from_numpy(np.asarray(h)).tanh())


@faulty("data", "python", line="np.log1p(np.abs(h.data.numpy()))")
def numpy_of_data() -> Setup:
    return between(lambda h: torch.from_numpy(np.log1p(np.abs(h.data.numpy()))))


@faulty(*PYTHON, line="value.item()) for value in row")
def items_in_lists() -> Setup:
    return between(lambda h: torch.tensor([[math.tanh(value.item()) for value in row] for row in h]))


@faulty(*PYTHON, line="float(row.sum())")
def floats_in_a_list() -> Setup:
    def middle(h: Tensor) -> Tensor:
        sums = [float(row.sum()) for row in h]
        return torch.tensor(sums).unsqueeze(1).expand(-1, 8)

    return between(middle)


@faulty(*PYTHON, line="pd.DataFrame(h.detach()")
def pandas_in_the_middle() -> Setup:
    def middle(h: Tensor) -> Tensor:
        frame = pd.DataFrame(h.detach().numpy())
        return torch.tensor(frame.rolling(2, min_periods=1).mean().to_numpy()).float()

    return between(middle)


@faulty(*PYTHON, line="torch.FloatTensor(")
def rows_through_python() -> Setup:
    return between(lambda h: torch.stack([torch.FloatTensor(row.tolist()).tanh() for row in h]))


@faulty(*PYTHON, line="self.number.item()")
def parameter_item() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * self.number.item()

    return scaled(Model)


@faulty(*PYTHON, line="float(self.number)")
def parameter_float() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * float(self.number)

    return scaled(Model)


@faulty(*PYTHON, line="int(self.number")
def parameter_int() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y ** int(self.number + 2)

    return scaled(Model)


@faulty(*PYTHON, line="math.exp(self.number)")
def parameter_in_math() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * math.exp(self.number)

    return scaled(Model)


@faulty(*PYTHON, line="max=self.number.item()")
def parameter_as_limit() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y.clamp(max=self.number.item())

    return scaled(Model)


@faulty(*PYTHON, "crash", line="torch.full(")
def parameter_as_fill_value() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * torch.full((16, 1), self.number)

    return scaled(Model)


@faulty(*PYTHON, "not_differentiable", line="torch.linspace(0")
def parameter_as_end_of_range() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * torch.linspace(0, float(self.number), 16).unsqueeze(1)

    return scaled(Model)


@faulty("copy", "python", line="torch.tensor([self.number, 1.0])")
def tensor_of_scalars() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * torch.tensor([self.number, 1.0]).sum()

    return scaled(Model)


@faulty("copy", "python", line="torch.tensor(self.number)")
def tensor_of_a_parameter() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return y * torch.tensor(self.number)

    return scaled(Model)


@faulty(*PYTHON, line="p=self.number.item()")
def parameter_as_dropout_rate() -> Setup:
    class Model(Scaled):
        def use(self, y: Tensor) -> Tensor:
            return F.dropout(y, p=self.number.item())

    return scaled(Model)


@faulty(*PYTHON, line="statistics.mean(")
def mean_of_a_list() -> Setup:
    return with_loss(lambda output, target: torch.tensor(statistics.mean((output - target).abs().flatten().tolist())))


@faulty(*PYTHON, "not_a_tensor", line="np.mean(")
def loss_of_numpy() -> Setup:
    return with_loss(lambda output, target: torch.tensor(np.mean((output.detach().numpy() - target.numpy()) ** 2)))


@faulty(*PYTHON, "not_a_tensor", line="total += F.mse_loss(a, b).item()")
def loss_summed_by_item() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        total = 0.0
        for a, b in zip(output, target):
            total += F.mse_loss(a, b).item()
        return torch.tensor(total / len(output), requires_grad=True)

    return with_loss(loss_fn)


@faulty(*PYTHON, line=".item(), requires_grad=True)")
def loss_wrapped_again() -> Setup:
    return with_loss(lambda output, target: torch.tensor(F.mse_loss(output, target).item(), requires_grad=True))


@faulty(*PYTHON, line=("sum(row.tolist())", "x * scores.detach()"))
def python_sum_of_attention() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score, self.head = nn.Linear(3, 3), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            scores = self.score(x).exp()
            totals = [sum(row.tolist()) for row in scores]
            return self.head(x * scores.detach() / torch.tensor(totals).unsqueeze(1))

    return Model(), regression(), F.mse_loss


@faulty(*PYTHON, "integer", line=("sorted(range(8)", "scores[i].item()"))
def ranking_by_python() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score, self.body, self.head = nn.Linear(3, 1), nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            scores = self.score(x).flatten()
            best = sorted(range(8), key=lambda i: scores[i].item())
            return self.head(self.body(x[best])).expand(2, -1, -1).reshape(16, 1)

    return Model(), regression(), F.mse_loss
