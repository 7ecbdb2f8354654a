"""Allowlist for the graph of a pt2 file: names, numbers and known operators.

`torch.export.load` looks up any torch function that the file names, evaluates its size expressions as Python, and
unpickles. The graph is therefore checked before torch reads it.
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
NAME = re.compile(r"-?[\w.+]*")  # also numbers such as -Infinity
SIZE = re.compile(  # numbers, size symbols and a few functions; cannot be code without dots and other names
    r"('?[su]\d+'?|\d+|Symbol|Integer|Add|Mul|Max|Min|Mod|FloorDiv|PythonMod|(positive|integer)=True|[\s+\-*(),])*"
)
PROGRAM = re.compile(r"[\w.+\-%; ]*")  # statements of a `commodity` operator: no quotes, brackets or commas
FORMS = {"target": TARGET, "as_operator": TARGET, "expr_str": SIZE, "as_string": PROGRAM}  # other strings are names
SPECS = {  # of (prices, days) and of one tensor; torch's loader imports what a spec names
    "in_spec": '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", '
    '"context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, '
    '"context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}]',
    "out_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
}


def strip_debug_info(graph: dict[str, Any]) -> dict[str, Any]:
    """Remove stack traces, which contain local paths, and guards, which are Python code."""
    for node in graph["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    graph["graph_module"]["metadata"] = {}
    graph["guards_code"] = []
    return graph


def check_graph(graph: dict[str, Any]) -> None:
    """Raise ValueError if the graph names anything but tensor operators, or contains code."""
    for key, text in _strings(graph, ""):
        allowed = text == SPECS[key] if key in SPECS else FORMS.get(key, NAME).fullmatch(text) is not None
        if not allowed:
            raise ValueError(f"a graph with content other than tensor operators: {key or 'key'} {text[:60]!r}")


def _strings(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield every string with its key, and every key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield "", name
            yield from _strings(item, name)
