"""Activation layers whose units are the same for every sample: dead or saturated."""

from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.trace import MAX_DEAD_SHARE, MIN_SAMPLES, Trace, dead_share

MAX_SATURATED_SHARE = 0.95
RECTIFIERS = (nn.ReLU, nn.ReLU6)
BOUNDED = (nn.Sigmoid, nn.Tanh)
FIX_DEAD = "use a smaller learning rate or bias, a leaky activation, or normalized inputs"
FIX_SATURATED = "normalize the inputs, or use a smaller initialization of the layer before"


class UnitHooks:
    """Context manager with forward hooks on activation layers."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.findings, self.handles = model, list[Finding](), list[Any]()

    def __enter__(self) -> "UnitHooks":
        for name, module in self.model.named_modules():
            if isinstance(module, (*RECTIFIERS, *BOUNDED)):
                self.handles.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str) -> Any:
        def hook(module: nn.Module, _: Any, y: Tensor) -> None:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                if isinstance(y, Tensor) and y.dim() > 1 and y.numel() >= MIN_SAMPLES:
                    self._examine(name, module, y.detach())

        return hook

    def _examine(self, name: str, module: nn.Module, y: Tensor) -> None:
        if isinstance(module, RECTIFIERS):
            share = dead_share(y)
            if share > MAX_DEAD_SHARE:
                message = f"{share:.0%} of the units are zero for every sample"
                self.findings.append(Finding("dead_units", message, FIX_DEAD, (name,)))
        else:
            low = 0.0 if isinstance(module, nn.Sigmoid) else -1.0
            share = ((y < low + 1e-3) | (y > 1 - 1e-3)).double().mean().item()
            if share > MAX_SATURATED_SHARE:
                message = f"{share:.0%} of the values are at the bounds"
                self.findings.append(Finding("saturated_units", message, FIX_SATURATED, (name,)))


def dead_units(trace: Trace) -> list[Finding]:
    """Dead units after `torch.relu` and similar functions, outside layers."""
    message = f"more than {MAX_DEAD_SHARE:.0%} of the units are zero for every sample"
    locations = dict.fromkeys(event.location for event in trace.events if event.kind == "dead_units")
    return [Finding("dead_units", message, FIX_DEAD, (), location) for location in locations]
