"""Training of any module on batches."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from torchcommodity.opkit.arguments import check_integer, current_operation, raise_invalid
from torchcommodity.optimize._batches import check_batches, raise_empty
from torchcommodity.optimize._calls import check_callable

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
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
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
            steps.step()
            losses.append(value.item())
        if not losses:
            raise_empty()
        yield sum(losses) / len(losses)
