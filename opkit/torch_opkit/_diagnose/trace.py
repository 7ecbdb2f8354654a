"""Record every torch function that a model calls, with its line, and where a gradient is cut off.

Each Tensor has a set of bits: one for every parameter that it was computed from, even where autograd has lost track,
and one for every break that it has passed. So the bits of the loss say which breaks lie between it and a parameter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils.weak import WeakTensorKeyDictionary

from torch_opkit._diagnose.locations import Place, current_place
from torch_opkit._diagnose.source import call_line, place_without_grad
from torch_opkit._diagnose.values import storage, tensors_in
from torch_opkit._torch_private import transforms_active

TO_PYTHON = {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__", "__complex__", "__dlpack__"}
PROPERTIES = {"requires_grad_", "requires_grad", "size", "dim", "shape", "grad_fn", "is_leaf", "grad", "retain_grad"}
DATA: Any = vars(torch._C.TensorBase)["data"]
GET_DATA, SET_DATA = DATA.__get__, DATA.__set__


@dataclass
class Event:
    """A call of interest. `sources` are the bits of the parameters in its input; `bit` is its own if it is a break.

    `hidden_write`: it changes values of the graph, and the graph does not know. `node`: what the change is there.
    """

    kind: str
    place: Place
    sources: int
    bit: int = 0
    shape: tuple[int, ...] = ()
    hidden_write: bool = False
    node: str = ""

    @property
    def location(self) -> str:
        return self.place.location


@dataclass
class Call:
    """A torch function, its Tensors, and the Tensors that it made or changed."""

    name: str
    function: Any
    tensors: list[Tensor]
    outputs: list[Tensor]
    place: Place
    bits: int
    records_graph: bool


class Trace(TorchFunctionMode):
    """Context manager around a forward pass. `observers` see every call."""

    def __init__(
        self, parameters: Iterable[Tensor], batch: Iterable[Tensor], observers: Iterable[Callable[[Call], None]]
    ) -> None:
        super().__init__()
        self.observers = list(observers)
        self.bits: Any = WeakTensorKeyDictionary()
        self.places: Any = WeakTensorKeyDictionary()  # Tensor -> where it was made
        self.graph: Any = WeakTensorKeyDictionary()  # Tensor with a grad_fn -> its storage
        self.nodes: dict[Node, tuple[Place, int]] = {}  # grad_fn -> where it was made, bits
        self.storages: dict[int, int] = {}  # storage -> bits of the last Tensor that was made in it
        self.aliases: Any = WeakTensorKeyDictionary()  # what `data` or `detach` returned -> which, and of what
        self.events: list[Event] = []
        self.writes: list[Event] = []  # every in-place change
        self.calls: list[tuple[int, Place]] = []  # bits of the arguments of every call
        self.last_use: dict[int, Place] = {}  # bit of a parameter -> last place that used it
        self.used_with: dict[int, int] = {}  # bit of a parameter -> bits of what it was used with
        self.leaves: list[tuple[Tensor, Place]] = []  # other leaves that the model uses, and their first use
        self.in_model = False
        self.parameters: Any = WeakTensorKeyDictionary({p: 1 << i for i, p in enumerate(parameters)})
        self.bits.update(self.parameters)
        self.parameter_bits = (1 << len(self.bits)) - 1
        self.batch_bit = self.parameter_bits + 1
        self.next_bit = self.batch_bit << 1
        for x in batch:
            self.bits[x] = self.batch_bit

    def __torch_function__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, tensors = function_name(func), list(tensors_in((args, kwargs)))
        if transforms_active():  # what a transform of torch.func wraps has no values to look at
            for x in tensors:
                if x in self.parameters:
                    self.last_use[self.parameters[x]] = current_place(name)
            return func(*args, **kwargs)
        records_graph = torch.is_grad_enabled()
        target = tensors[0] if tensors and func == SET_DATA else None
        before = [(x, x.requires_grad, _version(x)) for x in tensors]
        result = func(*args, **kwargs)
        with torch._C.DisableTorchFunction(), torch.no_grad():  # a checkpoint counts what autograd saves
            new = [x for x in tensors_in(result) if not any(x is y for y in tensors)]
            changed = [(x, in_graph) for x, in_graph, version in before if x is target or _version(x) != version]
            changed = [] if name in PROPERTIES else changed
            outputs, bits = [x for x, _ in changed] + new, self.bits_of(_values_used(name, tensors))
            call = Call(name, func, tensors, outputs, current_place(name), bits, records_graph)
            self._record(call, new)
            for x, in_graph in changed:
                self._record_write(call, x, in_graph)
        return result

    def bits_of(self, value: object) -> int:
        """Bits of all Tensors in a value."""
        bits = 0
        for x in tensors_in(value):
            known = self.bits.get(x)
            bits |= self._bits_of_graph(x.grad_fn) if known is None else known
        return bits

    def place_of(self, value: object) -> Place:
        """Where a Tensor was made."""
        if not isinstance(value, Tensor):
            return Place()
        known = None if value.grad_fn is None else self.nodes.get(value.grad_fn)
        return known[0] if known else self.places.get(value, Place())

    def new_bit(self) -> int:
        self.next_bit <<= 1
        return self.next_bit >> 1

    def _bits_of_graph(self, node: Any) -> int:
        """Bits of a Tensor that no torch function returned, as the output of an `autograd.Function`."""
        bits, stack, visited = 0, [node], {None}
        while stack:
            node = stack.pop()
            if node in visited or node is NotImplemented:
                continue
            visited.add(node)
            if node in self.nodes:
                bits |= self.nodes[node][1]
            else:
                bits |= self.bits.get(node.variable, 0) if hasattr(node, "variable") else 0
                stack += [following for following, _ in node.next_functions]
        return bits

    def _record(self, call: Call, new: list[Tensor]) -> None:
        for x in call.tensors:
            self._record_use(x, call)
        for observer in self.observers:
            observer(call)
        if call.name in PROPERTIES:
            if self.in_model and call.name in {"requires_grad_", "requires_grad"}:  # set to False in the forward pass
                frozen = [x for x in call.tensors if x in self.parameters and not x.requires_grad]
                self.events += [Event("frozen", call.place, self.parameters[x]) for x in frozen]
            return
        sources = call.bits & self.parameter_bits
        self.calls.append((sources, call.place))
        if sources and call.name in TO_PYTHON:
            self.events.append(Event("python", call.place, sources))
        for y in call.outputs:
            self.bits[y] = self.bits.get(y, 0) | call.bits
            self.places[y] = call.place
            if call.bits:
                self.storages[storage(y)] = self.bits[y]
            if y.grad_fn is not None and y.grad_fn is not NotImplemented:
                self.nodes[y.grad_fn] = call.place, self.bits[y]
                self.graph[y] = storage(y)
        for y in new:
            self.bits[y] |= self._record_break(call, y, sources)
            self._record_alias(call, y)

    def _record_use(self, x: Tensor, call: Call) -> None:
        bit = self.parameters.get(x)
        if self.graph.get(x, storage(x)) != storage(x):
            self._record_swap(x, call)
        if bit is not None:
            self.last_use[bit] = call.place
            self.used_with[bit] = self.used_with.get(bit, 0) | call.bits
        elif x.is_leaf and x.requires_grad and x not in self.bits:
            self.bits[x] = 0
            if isinstance(x, nn.Parameter):  # `nn.Parameter(y)` has the values of y, and not its graph
                bits = self.storages.get(storage(x), 0)
                if bits & self.parameter_bits:
                    event = Event("new_parameter", call.place, bits & self.parameter_bits, self.new_bit())
                    self.events.append(event)
                    bits |= event.bit
                self.bits[x] = bits
                call.bits |= bits
            if self.in_model:
                self.leaves.append((x, call.place))

    def _record_swap(self, x: Tensor, call: Call) -> None:
        """Another storage than when it was made: `set_`, which is no torch function, has replaced it."""
        self.graph[x] = storage(x)
        lines = (call_line(place.code, "set_") for place in (self.place_of(x), call.place))
        place = call.place._replace(location=next(filter(None, lines), call.place.location))
        event = Event("data", place, self.bits_of(x) & self.parameter_bits, self.new_bit(), hidden_write=True)
        self.bits[x] = self.bits_of(x) | event.bit
        call.bits |= event.bit
        self.events.append(event)

    def _record_break(self, call: Call, y: Tensor, sources: int) -> int:
        """Bit of the break if the result lost its gradient here, else 0."""
        if y.requires_grad or not any(x.requires_grad for x in _values_used(call.name, call.tensors)):
            return 0
        kind, place = _break_kind(call, y), call.place
        if place.applied_at:  # gradients are disabled in the forward of a Function; its result is what has no gradient
            place = place._replace(location=place.applied_at)
        elif kind == "no_grad":
            place = place_without_grad(place)
        event = Event(kind, place, sources, self.new_bit())
        self.events.append(event)
        return event.bit

    def _record_alias(self, call: Call, y: Tensor) -> None:
        """What `data` and `detach` return, and its views, share values with a Tensor that does not see its writes."""
        x = call.tensors[0] if call.tensors else y
        if storage(x) == storage(y):
            kind = "data" if call.function == GET_DATA else call.name
            if kind in {"data", "detach"}:
                self.aliases[y] = kind, x
            elif x in self.aliases:
                self.aliases[y] = self.aliases[x]

    def _record_write(self, call: Call, target: Tensor, in_graph: bool) -> None:
        """An in-place change: a cut of the graph (`detach_`), one that the graph does not know, or one that it does."""
        sources, shape, node = call.bits & self.parameter_bits, tuple(target.shape), type(target.grad_fn).__name__
        kind, base = "no_grad", target  # what hides the write from the graph, and the Tensor that it changes too
        if call.function == SET_DATA:
            kind = "data"
        elif target in self.aliases:
            kind, base = self.aliases[target]
        elif in_graph and not target.requires_grad:
            kind = "detach_"
        elif call.records_graph:
            self.writes.append(Event("in_place", call.place, sources, 0, shape, node=node))
            return
        if call.function == SET_DATA and target in self.graph:
            self.graph[target] = storage(target)
        affected: list[Tensor] = []  # results of the graph that share the values
        if kind != "detach_" and call.function == SET_DATA:
            affected = [target] if target.grad_fn is not None and not target.is_leaf else []
        elif kind != "detach_":
            affected = [x for x, key in self.graph.items() if key == storage(target) and not x.is_leaf]
        sources |= self.bits_of(affected) & self.parameter_bits
        event = Event(kind.rstrip("_"), call.place, sources, self.new_bit(), shape, bool(affected), node)
        for x in (target, base, *affected):
            self.bits[x] = self.bits.get(x, 0) | call.bits | event.bit
        self.events.append(event)
        self.writes.append(event)


def _values_used(name: str, tensors: list[Tensor]) -> list[Tensor]:
    """`zeros_like`, `new_full` and their like take only the shape of their first argument."""
    shape_only = name.endswith("_like") or (name.startswith("new_") and name != "new_tensor")
    return tensors[1:] if shape_only else tensors


def _break_kind(call: Call, y: Tensor) -> str:
    if call.function == GET_DATA:
        return "data"
    if call.name in {"detach", "detach_"}:
        return "detach"
    if call.name in {"tensor", "as_tensor", "asarray", "new_tensor"}:
        return "copy"
    if not (y.is_floating_point() or y.is_complex()):
        return "integer"
    if call.place.applied_at:
        return "not_differentiable"
    return "not_differentiable" if call.records_graph else "no_grad"


def function_name(func: object) -> str:
    full_name = resolve_name(func) or getattr(func, "__qualname__", str(func))
    parts = full_name.split(".")
    return str(parts[-2] if parts[-1] in {"__get__", "__set__"} else parts[-1])


def _version(x: Tensor) -> int:
    """Number of in-place changes. `detach_` is one that PyTorch does not count."""
    return -1 if x.is_inference() else 2 * x._version + x.requires_grad
