"""Layers whose units give the same whatever comes in: dead, or saturated."""

from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.trace import DEAD, ENOUGH, Trace, dead_share

SATURATED = 0.95
REVIVE = "use a smaller learning rate or bias, a leaky activation, or normalized inputs"
ZEROING = (nn.ReLU, nn.ReLU6)
SQUASHING = (nn.Sigmoid, nn.Tanh)


class Units:
    """Hooks on activation layers while they are open; they are gone afterwards."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.findings, self.handles = model, list[Finding](), list[Any]()

    def __enter__(self) -> "Units":
        for name, module in self.model.named_modules():
            if isinstance(module, (*ZEROING, *SQUASHING)):
                self.handles.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str) -> Any:
        def judge(module: nn.Module, _: Any, y: Tensor) -> None:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                if isinstance(y, Tensor) and y.dim() > 1 and y.numel() >= ENOUGH:
                    self._judge(name, module, y.detach())

        return judge

    def _judge(self, name: str, module: nn.Module, y: Tensor) -> None:
        if isinstance(module, ZEROING):
            dead = dead_share(y)
            if dead > DEAD:
                self._add("dead_units", f"{dead:.0%} of the units are zero for every sample", REVIVE, name)
        else:
            low = 0.0 if isinstance(module, nn.Sigmoid) else -1.0
            saturated = ((y < low + 1e-3) | (y > 1 - 1e-3)).double().mean().item()
            if saturated > SATURATED:
                remedy = "normalize what comes in, or initialize the layer before it smaller"
                self._add("saturated_units", f"{saturated:.0%} of the values are at the bounds", remedy, name)

    def _add(self, kind: str, message: str, remedy: str, name: str) -> None:
        self.findings.append(Finding(kind, message, remedy, (name,)))


def dead_by_function(trace: Trace) -> list[Finding]:
    """The same of `torch.relu` and its like, which are no layers."""
    message = f"more than {DEAD:.0%} of the units are zero for every sample"
    lines = dict.fromkeys(event.where for event in trace.events if event.kind == "dead_units")
    return [Finding("dead_units", message, REVIVE, (), where) for where in lines]
