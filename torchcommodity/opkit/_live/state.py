"""The state of a live update: a dict of tensors that names the function, settings and panels it belongs to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._live.text import decode_text, encode_text
from torchcommodity.opkit.arguments import raise_invalid

State = dict[str, Tensor]
HEADER = "operator"  # the key of the header, as uint8 JSON


@dataclass(frozen=True)
class Header:
    """What stays the same from row to row."""

    operator: str
    settings: dict[str, Any]
    tensors: list[str]  # names of the settings that are tensors
    panels: list[tuple[str, list[int]]]  # dtype and shape of one row of each panel

    def to_tensor(self) -> Tensor:
        try:
            text = json.dumps(self.__dict__)
        except TypeError as error:
            raise_invalid(f"{self.operator}.start", f"settings must be numbers, strings or tensors: {error}", TypeError)
        return encode_text(text)


@lru_cache(maxsize=256)
def _parse(text: str) -> Header:
    return Header(**json.loads(text))


def read_header(operator: str, call: str, state: Any) -> Header:
    """The header of a state of `operator`; an error in words for anything else."""
    header = state.get(HEADER) if isinstance(state, dict) else None
    expected = f"state must be the dict of tensors that {operator}.start returned"
    if not isinstance(header, Tensor) or header.dtype != torch.uint8:
        received = {"keys": sorted(map(str, state))} if isinstance(state, dict) else {"state": type(state).__name__}
        raise_invalid(call, expected, TypeError, **received)
    result = _parse(decode_text(header))
    if result.operator != operator:
        raise_invalid(call, f"{expected}; start a state of its own", operator=result.operator)
    return result


def describe_row(x: Tensor, time: int) -> tuple[str, list[int]]:
    """Dtype and shape of one row of a panel."""
    return str(x.dtype), [n for axis, n in enumerate(x.shape, -x.dim()) if axis != time]


def check_rows(call: str, header: Header, rows: Sequence[Any], time: int) -> None:
    """Rows must have the dtypes and shapes of the history."""
    if len(rows) != len(header.panels):
        raise_invalid(call, f"rows of {len(header.panels)} panels are expected, as in start", panels=len(rows))
    for x, (dtype, shape) in zip(rows, header.panels):
        if not isinstance(x, Tensor):
            raise_invalid(call, "rows must be Tensors", TypeError, row=type(x).__name__)
        if describe_row(x, time) != (dtype, shape):
            raise_invalid(
                call, f"each row must be {dtype} {tuple(shape)}, as the history was", dtype=str(x.dtype), rows=x
            )
    if len({x.shape[time] for x in rows}) > 1:
        raise_invalid(
            call, "all panels must have the same number of rows", **{f"rows{i}": x for i, x in enumerate(rows)}
        )
