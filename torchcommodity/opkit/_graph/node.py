"""Nodes and edges of a computation graph."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["leaf", "operator", "output"]
Edge = tuple[int, int]  # node j uses the result of node i


@dataclass(frozen=True)
class Node:
    """An operator, a leaf of the graph or an output, with the bytes that it saves for the backward pass."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    saved_bytes: int


def format_bytes(count: int) -> str:
    """Bytes with a binary unit: 512 B, 1.5 KiB, 20 MiB."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}"
