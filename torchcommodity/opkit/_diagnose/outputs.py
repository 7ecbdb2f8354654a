"""Outputs of layers that return several Tensors: some of them may be left unused on purpose."""

from typing import Any

import torch
from torch import nn

from torchcommodity.opkit._diagnose.trace import Trace
from torchcommodity.opkit._diagnose.values import tensors_in


class OutputHooks:
    """Context manager that gives each of several outputs of a layer a bit of its own."""

    def __init__(self, model: nn.Module, trace: Trace) -> None:
        self.model, self.trace = model, trace
        self.parts: list[list[tuple[int, int]]] = []  # of each call, (own bit, bits of what it was computed from)
        self.returned = 0  # bits of what the whole model returns
        self.handles: list[Any] = []

    def __enter__(self) -> "OutputHooks":
        for module in self.model.modules():
            if not isinstance(module, torch.jit.ScriptModule):  # it takes no hooks
                self.handles.append(module.register_forward_hook(self._hook))
        if not isinstance(self.model, torch.jit.ScriptModule):
            self.handles.append(self.model.register_forward_pre_hook(self._enter))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def optional(self, loss_bits: int) -> int:
        """Bits of outputs that the loss does not use, while it uses another output of the same call."""
        bits = 0
        for parts in self.parts:
            if any(own & loss_bits for own, _ in parts):
                for own, sources in parts:
                    bits |= 0 if own & loss_bits else sources
        return bits

    def _enter(self, *_: object) -> None:
        self.trace.in_model = True

    def _hook(self, module: nn.Module, _: Any, output: Any) -> None:
        tensors = [x for x in tensors_in(output) if x.requires_grad]
        if module is self.model:
            self.trace.in_model = False
            self.returned |= self.trace.bits_of(tensors)
        if len(tensors) > 1:
            parts = []
            for x in tensors:
                sources, own = self.trace.bits_of(x), self.trace.new_bit()
                self.trace.bits[x] = sources | own
                parts.append((own, sources))
            self.parts.append(parts)
