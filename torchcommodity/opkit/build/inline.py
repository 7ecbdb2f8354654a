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


def translation_unit(text: Path, namespace: str, schemas: Mapping[str, str]) -> str:
    """What is compiled: the author's text, in whose lines errors are counted, and its registration."""
    defined = "\n".join(f'  m.def("{function}{schema}");' for function, schema in schemas.items())
    bound = "\n".join(f'  m.impl("{function}", TORCH_BOX(&{function}));' for function in schemas)
    return (
        f'{PRELUDE}#line 1 "{text}"\n{text.read_text()}\n'
        f"STABLE_TORCH_LIBRARY_FRAGMENT({namespace}, m) {{\n{defined}\n}}\n"
        f"STABLE_TORCH_LIBRARY_IMPL({namespace}, CompositeExplicitAutograd, m) {{\n{bound}\n}}\n"
    )
