"""Stages of a step: layers, backward pass, optimizer, data loader."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.autograd.profiler_util import FunctionEvent
from torch.utils.hooks import RemovableHandle

from torchcommodity.optimize._module import econometric_parts
from torchcommodity.optimize._steps import device_of

PREFIX = "torchcommodity."
STEP, DATA, COPY = "step", "data loader", "copy to device"
FORWARD, LOSS, BACKWARD, OPTIMIZER, OTHER = "rest of forward", "loss", "backward", "optimizer step", "other"
ECONOMETRIC, NETWORK, QUANTILES = "econometric part", "network", "quantiles"


class Stages:
    """Records stages of a module as events of the profiler. A layer inside another stage's layer belongs to that."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.active = module, list[AbstractContextManager[None] | None]()
        self.cuda = device_of(module).type == "cuda"

    @contextmanager
    def record(self, name: str) -> Iterator[None]:
        """Record a block; on a GPU, wait for its kernels."""
        with record_function(PREFIX + name):
            yield
            if self.cuda:
                torch.cuda.synchronize()

    @contextmanager
    def record_layers(self) -> Iterator[None]:
        """Record the top-level layers; the econometric part, network and quantiles of a model of `models.MODELS`."""
        handles, har = [], next((x for x in econometric_parts(self.module) if x in self.module.children()), None)
        for name, layer in stage_layers(self.module):
            if layer is not har:
                handles += self._hook(layer, name if har is None else NETWORK)
        if har is not None:
            for name, method in ((ECONOMETRIC, "forward"), (QUANTILES, "quantiles")):
                setattr(har, method, self._wrap(name, getattr(har, method)))
        try:
            yield
        finally:
            self.active.clear()
            for handle in handles:
                handle.remove()
            if har is not None:
                del har.forward, har.quantiles

    def _hook(self, layer: nn.Module, name: str) -> list[RemovableHandle]:
        def enter(*_: object) -> None:
            self.active.append(None if any(self.active) else self.record(name))
            if self.active[-1] is not None:
                self.active[-1].__enter__()

        def leave(*_: object) -> None:
            if self.active and (stage := self.active.pop()) is not None:
                stage.__exit__(None, None, None)

        return [layer.register_forward_pre_hook(enter), layer.register_forward_hook(leave, always_call=True)]

    def _wrap(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            with self.record(name):
                return function(*args, **kwargs)

        return wrapper


def stage_layers(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Top-level layers, with the layers of a ModuleList or ModuleDict in its place; none of a compiled module.

    A layer of torch.jit takes no hooks: it is timed with its parent.
    """
    if isinstance(module, torch.jit.ScriptModule) or hasattr(module, "_orig_mod"):
        return
    for name, layer in module.named_children():
        if isinstance(layer, torch.jit.ScriptModule):
            continue
        if isinstance(layer, nn.ModuleList | nn.ModuleDict):
            yield from ((f"{name}.{inner}", x) for inner, x in stage_layers(layer))
        else:
            yield name, layer


def stage_shares(events: list[FunctionEvent], total: float, names: list[str]) -> dict[str, float]:
    """Share of the time per stage, in order of `names`; the rest is `OTHER`."""
    recorded = Counter[str]()
    for event in events:
        recorded[event.name] += event.cpu_time_total
    times: dict[str, float] = {name: recorded[PREFIX + name] for name in names}
    layers = [name for name in names if name not in (DATA, COPY, FORWARD, LOSS, BACKWARD, OPTIMIZER)]
    times[FORWARD] -= sum(times[name] for name in layers)
    shares = {name: time / total for name, time in times.items() if time > 0}
    return shares | {OTHER: 1 - sum(shares.values())}
