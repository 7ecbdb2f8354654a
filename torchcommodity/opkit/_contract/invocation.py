"""How a foreign operator is called with the tensors and settings of a sample, and what counts as its outputs."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._cases import Sample
from torchcommodity.opkit._contract.signature import Parameter, arrange
from torchcommodity.opkit._op import is_floating


@dataclass(frozen=True, eq=False)
class Invocation:
    """Calls `target` with the tensors of a sample in their places, and returns a tuple of Tensors.

    The parameters of a module are tensors of the sample too, its last ones, so that checks differentiate, cast and
    move them; buffers start each call with the values that they have now.
    """

    target: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    state: Mapping[str, Tensor]  # parameters of a module, by name

    def __call__(self, *tensors: Any, **settings: Any) -> tuple[Tensor, ...]:
        count = len(tensors) - len(self.state)
        args, kwargs = arrange(self.parameters, Sample(*tensors[:count], **settings))
        if not isinstance(self.target, torch.nn.Module):
            return flatten_outputs(self.target(*args, **kwargs))
        state = {**dict(zip(self.state, tensors[count:])), **_buffers(self.target, tensors)}
        return flatten_outputs(torch.func.functional_call(self.target, state, tuple(args), kwargs))


def _buffers(module: torch.nn.Module, tensors: tuple[Any, ...]) -> dict[str, Tensor]:
    """Copies of the buffers, with the dtype and device of the sample's first floating-point tensor."""
    like = next((x for x in tensors if is_floating(x)), None)
    copies = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}
    if like is None:
        return copies
    return {
        name: copy.to(like.device, like.dtype if copy.is_floating_point() else copy.dtype)
        for name, copy in copies.items()
    }


def call_twice(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """Names of the buffers that a call changes, and whether they change the result of the next call."""
    module, results = copy.deepcopy(module), []
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    for _ in range(2):
        torch.manual_seed(0)
        results.append([y.clone() for y in flatten_outputs(module(*args, **kwargs))])
    changed = tuple(name for name, buffer in module.named_buffers() if not torch.equal(buffer, before[name]))
    same = all(torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(*results))
    return changed, bool(changed) and not same


def run_once(function: Callable[..., Any], sample: Sample) -> Any:
    """The outputs for copies of the sample's tensors, without gradients and from the same random state each time."""
    copies = [x.clone() if isinstance(x, Tensor) else x for x in sample.tensors]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return function(*copies, **sample.settings)


def flatten_outputs(result: Any) -> tuple[Tensor, ...]:
    """The Tensors of a result: of one, or of a tuple or list that may hold other values."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (tuple, list)):
        return tuple(y for item in result if item is not None for y in _flatten_item(item))
    raise UnsupportedOutput(type(result).__name__)


def _flatten_item(item: Any) -> tuple[Tensor, ...]:
    is_number = isinstance(item, (bool, int, float, str, torch.dtype, torch.Size))
    return () if is_number else flatten_outputs(item)


class UnsupportedOutput(TypeError):  # noqa: N818  # becomes an error in words where it is reported
    """The operator returns something that holds no Tensors, or holds them by name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"check: the operator must return a Tensor, or a tuple or list of Tensors; got {name}. Pass a function "
            "that returns the Tensors, such as lambda x: tuple(op(x).values()) for a dict"
        )
