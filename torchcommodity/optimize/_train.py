"""Training of any module on batches."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torchcommodity.opkit.arguments import check_integer, current_operation, raise_invalid
from torchcommodity.optimize._batches import check_batches, raise_empty
from torchcommodity.optimize._calls import check_callable
from torchcommodity.optimize._module import econometric_parts

Measure = Callable[[], float]
MakeOptimizer = Callable[..., torch.optim.Optimizer]  # of torch.optim, or a partial of one


def train_epochs(
    module: nn.Module,
    batches: Iterable[object],
    loss: Callable[[object], Tensor],  # of a batch
    *,
    epochs: int,
    optimizer: MakeOptimizer,
    learning_rate: float,
) -> Iterator[float]:
    """Train a module in place, and yield the mean loss of every epoch."""
    check_integer(current_operation(), 1, epochs=epochs)
    check_batches(batches, repeated=True)
    econometric = {id(x) for har in econometric_parts(module) for x in har.parameters()}
    parameters = [x for x in module.parameters() if x.requires_grad and id(x) not in econometric]
    if not parameters:
        raise_invalid(
            current_operation(), "the model must have a parameter that requires a gradient", model=type(module).__name__
        )
    check_callable("optimizer must be a class of torch.optim, or a functools.partial of one", optimizer)
    steps = optimizer(parameters, lr=learning_rate)
    for _ in range(epochs):
        module.train()
        losses = []
        for batch in batches:
            steps.zero_grad()
            value = loss(batch)
            value.backward()
            if all(parameter.grad is None for parameter in parameters):  # but one that is not trained had a gradient
                rule = "the loss must depend on the parameters that are trained; opkit.diagnose says where it is cut"
                raise_invalid(current_operation(), rule, model=type(module).__name__)
            steps.step()
            losses.append(value.item())
        if not losses:
            raise_empty()
        yield sum(losses) / len(losses)


class Training(NamedTuple):
    """How a module was trained: the best epoch, 0 for none, and losses."""

    epoch: int
    losses: tuple[float, ...]  # mean of every epoch
    measures: tuple[float, ...]  # in validation: before, and after every epoch


def keep_best_epoch(module: nn.Module, measure: Measure, epochs: Iterator[float]) -> Training:
    """Train a module in place by `train_epochs`, and leave it as it was after the epoch of the smallest measure."""
    losses, measures, best = list[float](), [measure()], copy.deepcopy(module.state_dict())
    for loss in epochs:
        losses.append(loss)
        measures.append(measure())
        if measures[-1] < min(measures[:-1]):
            best = copy.deepcopy(module.state_dict())
    module.load_state_dict(best)
    return Training(min(range(len(measures)), key=lambda k: measures[k]), tuple(losses), tuple(measures))
