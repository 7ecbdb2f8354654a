"""One step of a model: forward pass, or forward, loss, backward and optimizer step; and the batches of the steps."""

from collections.abc import Iterable

import torch
from torch import nn

from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.optimize._batches import check_iterable, split_inputs
from torchcommodity.optimize._calls import Loss, call_loss, call_model
from torchcommodity.optimize._profile.stages import BACKWARD, COPY, FORWARD, LOSS, OPTIMIZER, Stages
from torchcommodity.optimize._steps import device_of, to_device

END = object()  # of the batches


class ProfiledStep:
    """Runs a step on a batch, with its stages recorded."""

    def __init__(self, module: nn.Module, loss_fn: Loss | None, optimizer: torch.optim.Optimizer | None) -> None:
        self.module, self.loss_fn, self.optimizer = module, loss_fn, optimizer
        self.stages, self.device = Stages(module), device_of(module)

    def __call__(self, batch: object) -> None:
        if self.device.type != "cpu":
            with self.stages.record(COPY):
                batch = to_device(batch, self.device)
        if self.optimizer is not None:
            self.optimizer.zero_grad()
        else:
            self.module.zero_grad()
        inputs, target = split_inputs(self.module, batch, self.loss_fn)
        with torch.set_grad_enabled(self.loss_fn is not None):
            with self.stages.record(FORWARD):
                output = call_model(self.module, inputs)
            if self.loss_fn is None:
                return
            with self.stages.record(LOSS):
                loss = call_loss(self.loss_fn, output, target)
            with self.stages.record(BACKWARD):
                loss.backward()
        if self.optimizer is not None:
            with self.stages.record(OPTIMIZER):
                if isinstance(self.optimizer, torch.optim.LBFGS):
                    raise_invalid("profile", "optimizer must have a step without a closure", optimizer="LBFGS")
                self.optimizer.step()


class BatchSource:
    """Batches one by one: a list or DataLoader starts again at its end, an iterator does not."""

    def __init__(self, batches: Iterable[object]) -> None:
        check_iterable(batches)
        self.batches, self.iterator = batches, iter(batches)

    def next(self) -> object:
        """The next batch, or END."""
        batch = next(self.iterator, END)
        if batch is END and self.iterator is not self.batches:
            self.iterator = iter(self.batches)
            batch = next(self.iterator, END)
        return batch
