"""Steps of a model, forward pass or training step, run under torch.profiler with its schedule."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.profiler import ProfilerActivity

from torch_opkit.arguments import raise_invalid
from torchcommodity.optimize._batches import check_iterable, raise_empty, split_inputs
from torchcommodity.optimize._module import Loss, call_loss, call_model
from torchcommodity.optimize._profile.stages import BACKWARD, COPY, DATA, FORWARD, LOSS, OPTIMIZER, STEP, Stages
from torchcommodity.optimize._steps import device_of, to_device, versions

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


class Measurement(NamedTuple):
    """What was recorded."""

    profiler: torch.profiler.profile
    steps: int  # measured
    batch: object  # the last one
    notes: tuple[str, ...]


def measure(run: ProfiledStep, source: BatchSource, steps: int, warmup: int, wait: int) -> Measurement:
    """Run wait + warmup + steps steps, or fewer if the batches end, and record the last ones."""
    done, batch, written = 0, END, list[str]()
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (run.device.type == "cuda")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Profiler won't be using warmup")  # it is a note of the result
        schedule = torch.profiler.schedule(wait=wait, warmup=warmup, active=steps, repeat=1)
    with (
        run.stages.record_layers(),
        torch.profiler.profile(
            activities=activities, schedule=schedule, record_shapes=True, profile_memory=True
        ) as profiler,
    ):
        while done < wait + warmup + steps:
            with run.stages.record(STEP):
                with run.stages.record(DATA):
                    following = source.next()
                if following is END:
                    break
                before, batch = versions(following) if done == 0 else {}, following
                run(batch)
                written += [name for name, version in before.items() if versions(batch)[name] != version]
            profiler.step()
            done += 1
    measured = done - wait - warmup
    if done == 0:
        raise_empty()
    if measured <= 0:
        rule = f"batches must hold more than the {wait + warmup} of wait and warmup; pass a list, or warmup=0"
        raise_invalid("profile", rule, batches=done)
    notes = []
    if measured < steps:
        notes.append(f"the iterator of batches ended: {measured} of {steps} steps were measured")
    if warmup == 0:
        notes.append("no warm-up: the first measured step contains allocations and initializations")
    if written:
        names = ", ".join(written)
        notes.append(
            f"the step writes into its batch ({names}): a batch that comes again has other values; clone it in forward"
        )
    return Measurement(profiler, measured, batch, tuple(notes))


def peak_bytes(profiler: Any, cuda: bool = False) -> int:
    """Largest running sum of allocations and releases in order of time."""
    current = peak = 0
    for event in sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]" and (event.device_type().name == "CUDA") == cuda:
            current += event.nbytes()
            peak = max(peak, current)
    return int(peak)


def call_peak_bytes(call: Callable[..., object], inputs: tuple[object, ...]) -> int:
    """Peak memory of a call in addition to inputs and weights."""
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call(*inputs)
    return peak_bytes(profiler)
