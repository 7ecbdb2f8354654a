"""What the graph of a pt2 file may say: names, numbers, known operators.

`torch.export.load` looks up any function of torch by the name that a file gives, evaluates its expressions of sizes as
Python, and unpickles. A file is not asked to run, so its graph is read before torch sees it.
"""

import re
from collections.abc import Iterator
from typing import Any

TARGET = re.compile(
    r"torch\.ops\.commodity\.\w+\.default"
    r"|torch\.ops\.aten\.(?!from_file)(_assert_tensor_metadata|[a-zA-Z]\w*|__(and|or|xor)__)\.\w+"
    r"|torch\.sym_(max|min|not|int)"
    r"|_operator\.(add|sub|mul|floordiv|truediv|mod|pow|neg|getitem|eq|ne|lt|le|gt|ge|and_|or_)"
)
NAME = re.compile(r"-?[\w.+]*")  # and numbers such as -Infinity
SIZE = re.compile(  # numbers, names of sizes and a few functions: without a dot and other names there is no code
    r"('?[su]\d+'?|\d+|Symbol|Integer|Add|Mul|Max|Min|Mod|FloorDiv|PythonMod|(positive|integer)=True|[\s+\-*(),])*"
)
SPECS = {  # of (prices, days) and of one tensor; torch's own loader imports what a spec names
    "in_spec": '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", '
    '"context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, '
    '"context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}]',
    "out_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
}


def without_traces(graph: dict[str, Any]) -> dict[str, Any]:
    """The graph without what it says of the code it came from: paths of this machine, and guards that are Python."""
    for node in graph["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    graph["graph_module"]["metadata"] = {}
    graph["guards_code"] = []
    return graph


def check(graph: dict[str, Any]) -> None:
    """A ValueError where the graph names anything but operators on tensors, or holds any code."""
    for key, text in _texts(graph, ""):
        if key in SPECS:
            fine = text == SPECS[key]
        elif key in ("target", "as_operator"):
            fine = TARGET.fullmatch(text) is not None
        else:
            fine = (SIZE if key == "expr_str" else NAME).fullmatch(text) is not None
        if not fine:
            raise ValueError(f"a graph of tensor operators alone; its {key or 'keys'} has {text[:60]!r}")


def _texts(part: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every text with the key that it stands under, and every key."""
    if isinstance(part, str):
        yield key, part
    elif isinstance(part, list):
        for item in part:
            yield from _texts(item, key)
    elif isinstance(part, dict):
        for name, item in part.items():
            yield "", name
            yield from _texts(item, name)
