"""What hooks of layers show: units that are the same for every sample, and which of several outputs the loss uses."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.trace import Call, Trace
from torch_opkit._diagnose.values import tensors_in

MAX_DEAD_SHARE, MAX_SATURATED_SHARE, MIN_SAMPLES = 0.9, 0.95, 8
LAYERS = (nn.ReLU, nn.ReLU6, nn.Sigmoid, nn.Tanh)
BOUNDS = {"sigmoid": (0.0, 1.0), "sigmoid_": (0.0, 1.0), "tanh": (-1.0, 1.0), "tanh_": (-1.0, 1.0)}
RECTIFIERS = {"relu", "relu_", "relu6", "threshold", "threshold_"}
FIX_DEAD = "use a smaller learning rate or bias, a leaky activation, or normalized inputs"
FIX_SATURATED = "normalize the inputs, or use a smaller initialization of the layer before"


class UnitObserver:
    """Dead rectifiers and saturated sigmoids: a context manager, which names layers, and an observer of calls."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.layer = model, ""
        self.findings: dict[tuple[str, str], ModelFinding] = {}  # by name and location
        self.handles: list[RemovableHandle] = []

    def __enter__(self) -> "UnitObserver":
        for name, module in self.model.named_modules():
            if isinstance(module, LAYERS):
                self.handles.append(module.register_forward_pre_hook(partial(self._set_layer, name)))
                self.handles.append(module.register_forward_hook(partial(self._set_layer, "")))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _set_layer(self, name: str, *_: object) -> None:
        self.layer = name

    def __call__(self, call: Call) -> None:
        if call.bits and call.name in RECTIFIERS | set(BOUNDS):
            for y in call.outputs:
                self._examine(call, y.detach())

    def _examine(self, call: Call, y: Tensor) -> None:
        """Gates of recurrent networks are functions too, so only layers are examined for saturation."""
        if call.name in RECTIFIERS:
            # units that are zero for every sample; none, if there are too few samples to say so
            zero = 0.0 if y.dim() < 2 or len(y) < MIN_SAMPLES or not y.numel() else 1 - _share((y != 0).any(0))
            if zero > MAX_DEAD_SHARE:
                self._add("dead_units", f"{zero:.0%} of the units are zero for every sample", FIX_DEAD, call)
        elif self.layer and y.dim() > 1 and y.numel() >= MIN_SAMPLES:
            low, high = BOUNDS[call.name]
            saturated = _share((y < low + 1e-3) | (y > high - 1e-3))
            if saturated > MAX_SATURATED_SHARE:
                self._add("saturated_units", f"{saturated:.0%} of the values are at the bounds", FIX_SATURATED, call)

    def _add(self, kind: str, message: str, fix: str, call: Call) -> None:
        names = (self.layer,) if self.layer else ()
        finding = ModelFinding(kind, message, fix, names, call.place.location)
        self.findings.setdefault((self.layer, finding.location), finding)


def _share(flags: Tensor) -> float:
    return flags.float().mean().item()


class OutputHooks:
    """Context manager that gives each of several outputs of a layer a bit of its own: some may be unused on purpose."""

    def __init__(self, model: nn.Module, trace: Trace) -> None:
        self.model, self.trace = model, trace
        self.parts: list[list[tuple[int, int]]] = []  # of each call, (own bit, bits of what it was computed from)
        self.returned = 0  # bits of what the whole model returns
        self.handles: list[RemovableHandle] = []

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

    def _hook(self, module: nn.Module, _: object, output: object) -> None:
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
