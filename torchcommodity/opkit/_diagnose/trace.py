"""Record every torch function that a model calls, with its line, and where a gradient is cut off.

Each Tensor has a set of bits: one for every parameter that it was computed from, even where autograd has lost track,
and one for every break that it has passed. So the bits of the loss say which breaks lie between it and a parameter.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

SKIPPED_FILES = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent), "<")
LAYER_FILES = str(Path(torch.__file__).parent / "nn" / "modules")
MAX_DEAD_SHARE, MIN_SAMPLES = 0.9, 8
TO_PYTHON = {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__"}
RECTIFIERS = {"relu", "relu_", "relu6", "threshold", "threshold_"}
STEP_FUNCTIONS = {"round", "floor", "ceil", "trunc", "sign", "sgn", "frac_", "heaviside", "fix"}
WITHOUT_EFFECT = {"requires_grad_", "size", "dim"}
GET_DATA: Any = vars(torch._C.TensorBase)["data"].__get__


@dataclass
class Event:
    """A call of interest. `sources` are the bits of the parameters in its input; `bit` is its own if it is a break."""

    kind: str
    name: str
    location: str
    sources: int
    bit: int = 0
    shape: tuple[int, ...] = ()


class Trace(TorchFunctionMode):
    """Context manager around a forward pass."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        super().__init__()
        self.bits: Any = WeakTensorKeyDictionary()
        self.events: list[Event] = []
        self.last_use: dict[int, str] = {}  # bit of a parameter -> last line that used it
        self.lines: dict[Any, str] = {}  # grad_fn -> line that created it
        self.not_finite = ""  # first line with a result that is not finite, of finite arguments
        for i, parameter in enumerate(parameters):
            self.bits[parameter] = 1 << i
        self.parameter_bits = (1 << len(self.bits)) - 1
        self.next_bit = self.parameter_bits + 1

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        bits = self.bits_of(tensors)
        if bits:
            self._record(func, tensors, bits, result, _location())
        return result

    def bits_of(self, value: Any) -> int:
        bits = 0
        for x in tree_leaves(value):
            bits |= self.bits.get(x, 0) if isinstance(x, Tensor) else 0
        return bits

    def _record(self, func: Any, tensors: list[Tensor], bits: int, result: Any, location: str) -> None:
        name, sources = _name(func), bits & self.parameter_bits
        for x in tensors:
            if isinstance(x, torch.nn.Parameter) and x in self.bits:
                self.last_use[self.bits[x]] = location
        if name in TO_PYTHON:
            self.events.append(Event("python", name, location, sources))
        if name.rstrip("_") in STEP_FUNCTIONS:
            self.events.append(Event("rounding", name, location, sources))
        if _is_in_place(name) and tensors:
            self.events.append(Event("in_place", name, location, sources, shape=tuple(tensors[0].shape)))
            self.bits[tensors[0]] = self.bits.get(tensors[0], 0) | bits
        if name in WITHOUT_EFFECT:
            return
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        if name in RECTIFIERS and not _called_by_activation_layer():
            self._record_dead_units(outputs, name, location, sources)
        for y in outputs:
            if y.grad_fn:
                self.lines[y.grad_fn] = location
            if any(y is x for x in tensors):
                continue
            if not self.not_finite and all_finite(tensors) and not all_finite([y]):
                self.not_finite = location
            self.bits[y] = bits | self._record_break(func, name, tensors, y, sources, location)

    def _record_dead_units(self, outputs: list[Tensor], name: str, location: str, sources: int) -> None:
        with torch._C.DisableTorchFunction():
            if any(dead_share(y.detach()) > MAX_DEAD_SHARE for y in outputs):
                self.events.append(Event("dead_units", name, location, sources))

    def _record_break(self, func: Any, name: str, tensors: list[Tensor], y: Tensor, sources: int, location: str) -> int:
        """Bit of the break if the result lost its gradient here, else 0."""
        if y.requires_grad or not any(x.requires_grad for x in tensors):
            return 0
        event = Event(_break_kind(func, name, y), name, location, sources, self.next_bit)
        self.next_bit <<= 1
        self.events.append(event)
        return event.bit


def _break_kind(func: Any, name: str, y: Tensor) -> str:
    if func == GET_DATA:
        return "data"
    if name in {"detach", "detach_"}:
        return "detach"
    if name in {"tensor", "as_tensor", "asarray"}:
        return "copy"
    if not y.is_floating_point():
        return "integer"
    return "no_grad" if not torch.is_grad_enabled() else "not_differentiable"


def _name(func: Any) -> str:
    full_name = resolve_name(func) or getattr(func, "__qualname__", str(func))
    parts = full_name.split(".")
    return str(parts[-2] if parts[-1] == "__get__" else parts[-1])


def dead_share(y: Tensor) -> float:
    """Share of units that are zero for every sample; 0 for fewer than MIN_SAMPLES samples."""
    if y.dim() < 2 or len(y) < MIN_SAMPLES or not y.numel():
        return 0.0
    return 1 - (y != 0).any(0).double().mean().item()


def all_finite(tensors: list[Tensor]) -> bool:
    with torch._C.DisableTorchFunction():
        return all(bool(x.detach().isfinite().all()) for x in tensors if x.is_floating_point())


def _is_in_place(name: str) -> bool:
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")


def _location() -> str:
    """File and line of the innermost frame outside PyTorch and opkit."""
    frame: Any = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(SKIPPED_FILES):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _called_by_activation_layer() -> bool:
    """Whether the call comes from an activation layer of torch.nn, which `UnitHooks` examines."""
    frame: Any = sys._getframe(3)
    while frame and not frame.f_code.co_filename.startswith(LAYER_FILES):
        if not frame.f_code.co_filename.startswith(SKIPPED_FILES):
            return False
        frame = frame.f_back
    return bool(frame) and frame.f_code.co_filename.endswith("activation.py")
