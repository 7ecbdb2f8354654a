"""Run steps under torch.profiler, with its schedule."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity

from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.optimize._batches import raise_empty
from torchcommodity.optimize._profile.stages import DATA, STEP
from torchcommodity.optimize._profile.step import END, BatchSource, ProfiledStep
from torchcommodity.optimize._steps import versions


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
