"""A tensor that carries facts about its numbers through ordinary torch functions."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

JOINING = {
    torch.cat, torch.concat, torch.concatenate, torch.stack, torch.hstack, torch.vstack, torch.dstack,
    torch.row_stack, torch.column_stack, torch.block_diag,
}  # fmt: skip


class MetadataTensor(torch.Tensor):
    """A tensor with metadata that survive ordinary torch functions.

    Every tensor that a torch function returns carries the metadata of the *first* `MetadataTensor` among its operands,
    positional before keyword; plain tensors mix in freely and add nothing. An operand written in place (`x.add_(y)`,
    `out=x`) keeps its own. Where tensors are joined (`cat`, `stack` and their like), the facts on which all marked ones
    agree are kept: of a fact that differs, what is joined has none; a subclass may `merge` otherwise. Results that are
    not tensors pass through.

    The metadata say where the numbers come from, not which row or column they are: `x[:, 0]` carries the same facts as
    `x`. `torchcommodity.data.Panel` narrows them together with its columns.

    A subclass is stronger than its base: what comes of both is of the subclass, which can so mark numbers by type.

    Args:
        data: anything `torch.as_tensor` takes, of any shape; a tensor is shared, not copied, stays in its graph,
            and stays of its type where that is a subclass.
        metadata: any facts, by name; read again as `tensor.metadata["name"]`.

    NaN: untouched. Devices: all. Differentiable: yes, by the functions applied.

    Source: https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-python-api

    >>> price = MetadataTensor([65.0, -37.63], unit="$/bbl")
    >>> (price * torch.tensor(2.0)).metadata["unit"], price.sum().shape, price.tolist()[0]
    ('$/bbl', torch.Size([]), 65.0)
    """

    _metadata: dict[str, Any]

    @staticmethod
    def __new__(cls, data: Any, /, **metadata: Any) -> "MetadataTensor":
        tensor = _plain(data) if isinstance(data, torch.Tensor) else torch.as_tensor(data)
        marked = tensor.as_subclass(type(data) if isinstance(data, cls) else cls)
        marked._metadata = metadata
        return marked

    def __init__(self, data: Any, /, **metadata: Any) -> None:
        super().__init__()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The facts, read-only."""
        return MappingProxyType(self.__dict__.get("_metadata", {}))

    def with_metadata(self, **metadata: Any) -> "MetadataTensor":
        """The same numbers (a view in the same graph) with these facts added or replaced."""
        return type(self)(self, **{**self.metadata, **metadata})

    def plain(self) -> torch.Tensor:
        """The same numbers (a view in the same graph) as a `torch.Tensor` without metadata."""
        return _plain(self)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = super().__torch_function__(func, types, args, dict(kwargs or {}))  # type: ignore[no-untyped-call]
        facts = [x._metadata for x in _marked((args, kwargs or {})) if "_metadata" in x.__dict__]
        for tensor in _marked(result) if facts else ():
            if "_metadata" not in tensor.__dict__:
                tensor._metadata = cls.merge(facts) if func in JOINING else facts[0]
        return result

    @classmethod
    def merge(cls, facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The facts of what is joined from tensors with these: those on which all agree."""
        first, *others = facts
        return {name: fact for name, fact in first.items() if all(name in x and bool(x[name] == fact) for x in others)}

    def __deepcopy__(self, memo: dict[int, Any]) -> "MetadataTensor":
        if id(self) not in memo:
            numbers = copy.deepcopy(_plain(self), memo)
            memo[id(self)] = type(self)(numbers, **copy.deepcopy(dict(self.metadata), memo))
        return memo[id(self)]  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({_plain(self)!r}, metadata={dict(self.metadata)!r})"


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def _marked(value: Any) -> Iterator[MetadataTensor]:
    if isinstance(value, MetadataTensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _marked(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _marked(item)
