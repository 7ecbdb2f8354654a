"""Every torch function that a model calls, with its line, and where a gradient's way through it is cut.

Each Tensor carries a mark: one bit for every parameter that it was computed from, also where autograd has lost sight of
it, and one for every cut that it has come through. So the loss tells which cuts lie between it and a parameter.
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

INSIDE = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent), "<")
DEAD, ENOUGH = 0.9, 8
LEAVES_TORCH = {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__"}
ZEROING = {"relu", "relu_", "relu6", "threshold", "threshold_"}
FLAT = {"round", "floor", "ceil", "trunc", "sign", "sgn", "frac_", "heaviside", "fix"}
DATA: Any = vars(torch._C.TensorBase)["data"].__get__


@dataclass
class Event:
    """One call of interest: `sources` are the parameters behind it, as bits; `mark` is its own bit if it is a cut."""

    kind: str
    name: str
    where: str
    sources: int
    mark: int = 0
    shape: tuple[int, ...] = ()


class Trace(TorchFunctionMode):
    """Open it around a forward pass."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        super().__init__()
        self.marks: Any = WeakTensorKeyDictionary()
        self.events: list[Event] = []
        self.used: dict[int, str] = {}  # by parameter bit: the last line that used it
        self.lines: dict[Any, str] = {}  # by grad_fn: the line that made it
        self.not_finite = ""  # the first line that made no finite number of finite ones
        for i, parameter in enumerate(parameters):
            self.marks[parameter] = 1 << i
        self.sources = (1 << len(self.marks)) - 1
        self.next = self.sources + 1

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = _name(func)
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        mark = 0
        for x in given:
            mark |= self.marks.get(x, 0)
        if mark:
            self._follow(func, name, given, mark, result, _line())
        return result

    def mark_of(self, result: Any) -> int:
        mark = 0
        for x in tree_leaves(result):
            mark |= self.marks.get(x, 0) if isinstance(x, Tensor) else 0
        return mark

    def _follow(self, func: Any, name: str, given: list[Tensor], mark: int, result: Any, where: str) -> None:
        self._use(given, where)
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        if name in LEAVES_TORCH:
            self.events.append(Event("python", name, where, mark & self.sources))
        if name.rstrip("_") in FLAT:
            self.events.append(Event("rounding", name, where, mark & self.sources))
        if _in_place(name) and given:
            self.events.append(Event("in_place", name, where, mark & self.sources, shape=tuple(given[0].shape)))
            self.marks[given[0]] = self.marks.get(given[0], 0) | mark
        if name in {"requires_grad_", "size", "dim"}:
            return
        if name in ZEROING and not _in_a_layer():
            self._zeroed(outputs, name, where, mark & self.sources)
        for y in outputs:
            if y.grad_fn:
                self.lines[y.grad_fn] = where
            if any(y is x for x in given):
                continue
            if not self.not_finite and all_finite(given) and not all_finite([y]):
                self.not_finite = where
            self.marks[y] = mark | self._cut(func, name, given, y, mark, where)

    def _zeroed(self, outputs: list[Tensor], name: str, where: str, sources: int) -> None:
        with torch._C.DisableTorchFunction():
            if any(dead_share(y.detach()) > DEAD for y in outputs):
                self.events.append(Event("dead_units", name, where, sources))

    def _cut(self, func: Any, name: str, given: list[Tensor], y: Tensor, mark: int, where: str) -> int:
        if y.requires_grad or not any(x.requires_grad for x in given):
            return 0
        event = Event(_kind(func, name, y), name, where, mark & self.sources, self.next)
        self.next <<= 1
        self.events.append(event)
        return event.mark

    def _use(self, given: list[Tensor], where: str) -> None:
        for x in given:
            if isinstance(x, torch.nn.Parameter) and x in self.marks:
                self.used[self.marks[x]] = where


def _kind(func: Any, name: str, y: Tensor) -> str:
    if func == DATA:
        return "data"
    if name in {"detach", "detach_"}:
        return "detach"
    if name in {"tensor", "as_tensor", "asarray"}:
        return "copied"
    if not y.is_floating_point():
        return "integer"
    return "no_grad" if not torch.is_grad_enabled() else "cut"


def _name(func: Any) -> str:
    full = resolve_name(func) or getattr(func, "__qualname__", str(func))
    parts = full.split(".")
    return str(parts[-2] if parts[-1] == "__get__" else parts[-1])


def dead_share(y: Tensor) -> float:
    """Of the units, those that are zero for every sample; too few samples tell nothing."""
    return 1 - (y != 0).any(0).double().mean().item() if y.dim() > 1 and len(y) >= ENOUGH and y.numel() else 0.0


def all_finite(tensors: list[Tensor]) -> bool:
    with torch._C.DisableTorchFunction():
        return all(bool(x.detach().isfinite().all()) for x in tensors if x.is_floating_point())


def _in_place(name: str) -> bool:
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")


def _line() -> str:
    """The innermost line that is neither PyTorch's nor ours."""
    frame: Any = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _in_a_layer() -> bool:
    """Called by a layer of torch.nn, which has hooks of its own."""
    frame: Any = sys._getframe(3)
    while frame and not frame.f_code.co_filename.startswith(str(Path(torch.__file__).parent / "nn" / "modules")):
        if not frame.f_code.co_filename.startswith(INSIDE):
            return False
        frame = frame.f_back
    return bool(frame) and frame.f_code.co_filename.endswith("activation.py")
