"""How a foreign operator is called with the tensors and settings of a sample, and what counts as its outputs."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_opkit._cases import Sample
from torch_opkit._contract.signature import Parameter, arrange
from torch_opkit._op import is_floating


@dataclass(frozen=True, eq=False)
class Invocation:
    """Calls `target` with the tensors of a sample in their places, and returns a tuple of Tensors.

    The parameters of a module are tensors of the sample too, its last ones, so that checks differentiate, cast and
    move them. Buffers start each call with the values that they have now, with the dtype and device of the sample.
    """

    target: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    state: Mapping[str, Tensor]  # parameters of a module, by name

    def __call__(self, *tensors: Any, **settings: Any) -> tuple[Tensor, ...]:
        count = len(tensors) - len(self.state)
        args, kwargs = arrange(self.parameters, Sample(*tensors[:count], **settings))
        if not isinstance(self.target, torch.nn.Module):
            return flatten_outputs(self.target(*args, **kwargs))
        state, like = dict(zip(self.state, tensors[count:])), next((x for x in tensors if is_floating(x)), None)
        for name, buffer in self.target.named_buffers():
            state[name] = buffer.detach().clone()
            if like is not None:
                dtype = like.dtype if buffer.is_floating_point() else buffer.dtype
                state[name] = state[name].to(like.device, dtype)
        return flatten_outputs(torch.func.functional_call(self.target, state, tuple(args), kwargs))


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


def run_once(function: Callable[..., tuple[Tensor, ...]], sample: Sample) -> tuple[Tensor, ...]:
    """The outputs for copies of the sample's tensors, without gradients and from the same random state each time."""
    copies = [x.clone() if isinstance(x, Tensor) else x for x in sample.tensors]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return function(*copies, **sample.settings)


def flatten_outputs(result: object) -> tuple[Tensor, ...]:
    """The Tensors of a result: of one, or of a tuple or list that may hold other values."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (tuple, list)):
        others = (bool, int, float, str, torch.dtype, torch.Size, type(None))
        return tuple(y for item in result if not isinstance(item, others) for y in flatten_outputs(item))
    raise UnsupportedOutput(type(result).__name__)


class UnsupportedOutput(TypeError):  # noqa: N818  # becomes an error in words where it is reported
    """The operator returns something that holds no Tensors, or holds them by name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"check: the operator must return a Tensor, or a tuple or list of Tensors; got {name}. Pass a function "
            "that returns the Tensors, such as lambda x: tuple(op(x).values()) for a dict"
        )
