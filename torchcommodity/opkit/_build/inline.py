"""From C++ text to operators: the schema is read off the function's signature, the registration written around it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

TYPES = {
    "Tensor": "Tensor",
    "std::optional<Tensor>": "Tensor?",
    "int64_t": "int",
    "double": "float",
    "bool": "bool",
    "std::string": "str",
    "std::vector<int64_t>": "int[]",
    "std::vector<Tensor>": "Tensor[]",
}
PRELUDE = '#include "opkit.h"\nusing namespace opkit;\n'


def schemas(cpp: str, functions: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """The schema of each function, "(Tensor x, int k) -> Tensor"."""
    if isinstance(functions, str) or not functions:
        raise TypeError(f"load_inline: functions must name the functions that become operators; got {functions!r}")
    if isinstance(functions, Mapping):
        return dict(functions)
    return {name: _schema(cpp, name) for name in functions}


def _schema(cpp: str, name: str) -> str:
    found = re.search(rf"([\w:<>, ]+?)[\s&]+{name}\s*\(([^()]*)\)\s*\{{", cpp)
    if not found:
        raise ValueError(f"load_inline: functions must be defined in cpp; there is no function {name}(...) {{")
    returned, arguments = found.groups()
    inside = re.fullmatch(r"std::tuple<(.*)>", returned.strip())
    results = [_type(name, part) for part in (inside[1].split(",") if inside else [returned])]
    given = [_argument(name, part) for part in arguments.split(",") if part.strip()]
    return f"({', '.join(given)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def _argument(function: str, text: str) -> str:
    declared, equals, default = (part.strip() for part in text.partition("="))
    kind, name = declared.replace("&", " ").rsplit(maxsplit=1)
    return f"{_type(function, kind)} {name.rstrip('_')}{equals}{default}"


def _type(function: str, text: str) -> str:
    kind = re.sub(r"\bconst\b|&|\btorch::stable::|\s", "", text)
    if kind not in TYPES:
        known = ", ".join(TYPES)
        raise ValueError(f"load_inline: {function}: types of operators are {known}; got {text.strip()!r}")
    return TYPES[kind]


def translation_unit(text: Path, namespace: str, schemas: Mapping[str, str], cuda: bool = False) -> str:
    """What is compiled: the author's text, in whose lines errors are counted, and its registration.

    It answers on the devices that it was written for, so that a tensor of another one meets the reference of a record,
    or an error; only a function without a Tensor to tell the device answers everywhere.
    """
    defined = "\n".join(f'  m.def("{function}{schema}");' for function, schema in schemas.items())
    told = [function for function, schema in schemas.items() if "Tensor" in schema.partition("->")[0]]
    devices = ["CPU", *(["CUDA"] if cuda else [])]
    bound = dict.fromkeys(devices, told) | {"CompositeExplicitAutograd": [f for f in schemas if f not in told]}
    return (
        f'{PRELUDE}#line 1 "{text}"\n{text.read_text()}\n'
        f"STABLE_TORCH_LIBRARY_FRAGMENT({namespace}, m) {{\n{defined}\n}}\n"
        + "".join(_bound(namespace, key, functions) for key, functions in bound.items())
    )


def _bound(namespace: str, key: str, functions: Sequence[str]) -> str:
    lines = "\n".join(f'  m.impl("{function}", TORCH_BOX(&{function}));' for function in functions)
    return f"STABLE_TORCH_LIBRARY_IMPL({namespace}, {key}, m) {{\n{lines}\n}}\n"
