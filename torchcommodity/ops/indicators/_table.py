"""Operators that are rows of a table: one definition and one signature for all of them."""

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor

from torchcommodity.ops.series import Operator, operator

P = ParamSpec("P")


def table_operator(
    definition: Callable[Concatenate[str, P], Tensor], name: str, doc: str, dtype: torch.dtype | None = None
) -> Operator[P, Tensor]:
    """The operator `name`: the formula `definition(name, ...)`, with the other parameters of `definition`."""

    def formula(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        return definition(name, *args, **kwargs)

    signature = inspect.signature(definition)
    _, *parameters = signature.parameters.values()
    formula.__name__ = formula.__qualname__ = name
    formula.__module__ = definition.__module__
    formula.__doc__ = doc
    formula.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": Tensor}
    formula.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # inspect reads it
    return operator(dtype=dtype)(formula)
