"""A tensor that carries metadata through ordinary torch functions."""

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from torch_opkit._implements import HANDLERS, as_plain, dispatch
from torch_opkit.arguments import raise_invalid, to_tensor

CONCATENATING = (
    torch.cat, torch.concat, torch.concatenate, torch.stack, torch.hstack, torch.vstack, torch.dstack,
    torch.row_stack, torch.column_stack, torch.block_diag,
)  # fmt: skip


class MetadataTensor(torch.Tensor):
    """A tensor with metadata that ordinary torch functions pass on.

    A result carries the metadata of the *first* `MetadataTensor` among the operands, positional before keyword; plain
    tensors have no effect. An operand that is written in place (`x.add_(y)`, `out=x`) keeps its own metadata. Functions
    that concatenate tensors (`cat`, `stack` and similar) keep the entries that are equal in all of them; a subclass may
    override `merge`. Results that are not tensors are returned unchanged. `implements(MetadataTensor, function)` gives
    a function another rule.

    Metadata describe the source of the values, not their position: `x[:, 0]` has the metadata of `x`.

    A function of a tensor of this class and one of a subclass returns the subclass.

    Args:
        data: anything that `torch.as_tensor` takes, of any shape. A tensor is shared, not copied; it stays in its
            graph, and keeps its type if that is a subclass.
        metadata: any values by name, available as `tensor.metadata["name"]`.

    NaN: unchanged. Devices: all. Differentiable through the functions applied.

    Raises:
        TypeError: one mapping `metadata={...}` instead of entries by name; an entry dtype, device or requires_grad;
            data that `torch.as_tensor` does not take.

    References:
        https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-python-api

    Example:
        >>> price = MetadataTensor([65.0, -37.63], unit="$/bbl")
        >>> (price * torch.tensor(2.0)).metadata["unit"], price.sum().shape, price.tolist()[0]
        ('$/bbl', torch.Size([]), 65.0)
    """

    _metadata: dict[str, Any]

    @staticmethod
    def __new__(cls, data: object, /, **metadata: object) -> "MetadataTensor":
        if isinstance(metadata.get("metadata"), Mapping):  # as the class of PyTorch's notes takes it
            raise_invalid(
                "MetadataTensor", "pass each entry by name: MetadataTensor(data, **metadata)", TypeError, **metadata
            )
        if settings := [name for name in ("dtype", "device", "requires_grad") if name in metadata]:
            rule = f"{settings[0]} is not an entry: pass a tensor that has it, torch.as_tensor(data, {settings[0]}=...)"
            raise_invalid("MetadataTensor", rule, TypeError, **{settings[0]: metadata[settings[0]]})
        tensor = as_plain(data) if isinstance(data, torch.Tensor) else to_tensor("MetadataTensor", "data", data)
        result = tensor.as_subclass(type(data) if isinstance(data, cls) else cls)
        result._metadata = metadata
        return result

    def __init__(self, data: object, /, **metadata: object) -> None:
        super().__init__()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata, read-only."""
        return MappingProxyType(self.__dict__.get("_metadata", {}))

    def with_metadata(self, **metadata: object) -> "MetadataTensor":
        """View of the tensor, in the same graph, with these metadata added or replaced."""
        return type(self)(self, **{**self.metadata, **metadata})

    def plain(self) -> torch.Tensor:
        """View of the tensor, in the same graph, as a `torch.Tensor` without metadata."""
        return as_plain(self)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return dispatch(cls, func, types, args, kwargs, default=cls._pass_on)

    @classmethod
    def _pass_on(
        cls, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call the function as for plain tensors; results without metadata get those of the first operand."""
        result = super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        first = next((x._metadata for x in _find((args, kwargs)) if "_metadata" in x.__dict__), None)
        for tensor in _find(result) if first is not None else ():
            tensor.__dict__.setdefault("_metadata", first)
        return result

    @classmethod
    def merge(cls, metadata: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Metadata of a concatenation: the entries that are equal in all tensors."""
        first, *others = metadata
        return {key: value for key, value in first.items() if all(key in x and bool(x[key] == value) for x in others)}

    def __deepcopy__(self, memo: dict[int, Any]) -> "MetadataTensor":
        if id(self) not in memo:
            values = copy.deepcopy(as_plain(self), memo)
            memo[id(self)] = type(self)(values, **copy.deepcopy(dict(self.metadata), memo))
        return memo[id(self)]  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: object = None) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({as_plain(self)!r}, metadata={dict(self.metadata)!r})"


def _find(value: object) -> Iterator[MetadataTensor]:
    if isinstance(value, MetadataTensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _find(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _find(item)


def _concatenate(function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    if "out" in kwargs:
        return NotImplemented  # `out` keeps its own metadata
    operands = list(_find((args, kwargs)))
    kind: type[MetadataTensor] = max((type(x) for x in operands), key=lambda kind: len(kind.__mro__))  # the subclass
    metadata = [x.metadata for x in operands if "_metadata" in x.__dict__]
    plain_args, plain_kwargs = tree_map_only(MetadataTensor, as_plain, (args, kwargs))
    return kind(function(*plain_args, **plain_kwargs), **(kind.merge(metadata) if metadata else {}))


# without the checks of `implements`, which import much
HANDLERS[MetadataTensor] = {function: functools.partial(_concatenate, function) for function in CONCATENATING}
