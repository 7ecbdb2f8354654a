"""C++ text to operators: schemas from function signatures, and the registration code around them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch_opkit._build.cache import INCLUDED
from torch_opkit._native import find_schema_mistake

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
PORTING = "https://github.com/torchcommodity/torchcommodity/blob/main/opkit/docs/porting.md"
PRELUDE = '#include "opkit.h"\nusing namespace opkit;\n'


def infer_schemas(cpp: str, functions: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Schema of each function, such as "(Tensor x, int k) -> Tensor"; of a mapping, the values that begin with "("."""
    if not isinstance(cpp, str):
        raise TypeError(f"load_inline: cpp must be the text of a C++ source; got {type(cpp).__name__}; join a list of sources")
    if isinstance(functions, str) or not functions:
        raise TypeError(f"load_inline: functions must be a list of function names; got {functions!r}")
    texts = dict(functions) if isinstance(functions, Mapping) else dict.fromkeys(functions, "")
    schemas = {}
    for name, text in texts.items():
        if not (isinstance(name, str) and name.isidentifier() and isinstance(text, str)):
            expected = "names of C++ functions, or map them to docstrings or schemas"
            raise TypeError(f"load_inline: functions must be {expected}; got {name!r}: {text!r}")
        schemas[name] = text if is_schema(text) else _infer_schema(cpp, name)
        if mistake := find_schema_mistake(name + schemas[name]):
            raise ValueError(f"load_inline: {mistake}")
    return schemas


def is_schema(text: str) -> bool:
    """Whether a value of `functions` is a schema; else it is a docstring, as in torch's load_inline."""
    return text.lstrip().startswith("(")


def check_stable(operation: str, texts: Mapping[str, str]) -> None:
    """Refuse sources by name that include torch's C++ API, which the stable ABI replaces."""
    for source, text in texts.items():
        for header in (name.decode() for name in INCLUDED.findall(text.encode())):
            if re.match(r"torch/(extension|torch|all|library|script|python)\.h|ATen/|c10/|pybind11/", header):
                raise ValueError(
                    f"{operation}: sources must be written for LibTorch's stable ABI, with \"opkit.h\"; got "
                    f"<{header}> in {source}; see the guide on porting, {PORTING}"
                )


def _infer_schema(cpp: str, name: str) -> str:
    match = re.search(rf"([\w:<>, ]+?)[\s&]+{name}\s*\(([^()]*)\)\s*\{{", cpp)
    if not match:
        raise ValueError(f"load_inline: functions must be defined in cpp; got {name!r}, which is not")
    result, parameters = match.groups()
    texts = [text for text in parameters.split(",") if text.strip()]
    arguments = [_argument(name, text, i) for i, text in enumerate(texts)]
    if result.strip() == "void":
        return f"({', '.join(arguments)}) -> ()"
    results_in_tuple = re.fullmatch(r"std::tuple<(.*)>", result.strip())
    results = [_type(name, text) for text in (results_in_tuple[1].split(",") if results_in_tuple else [result])]
    return f"({', '.join(arguments)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def _argument(function: str, text: str, index: int) -> str:
    declaration, equals, default = (part.strip() for part in text.partition("="))
    cpp_type, name = declaration.replace("&", " ").rsplit(maxsplit=1)
    if re.fullmatch(r"\s*(torch::stable::)?Tensor\s*&\s*\w+\s*", text):  # not const: the function writes to it
        return f"Tensor(a{index}!) {name.rstrip('_')}"
    return f"{_type(function, cpp_type)} {name.rstrip('_')}{equals}{default}"


def _type(function: str, text: str) -> str:
    cpp_type = re.sub(r"\bconst\b|&|\btorch::stable::|\s", "", text)
    if cpp_type not in TYPES:
        supported = ", ".join(TYPES)
        hint = f"; write Tensor, see the guide on porting, {PORTING}" if cpp_type.endswith("Tensor") else ""
        raise ValueError(f"load_inline: types in {function} must be one of {supported}; got {text.strip()!r}{hint}")
    return TYPES[cpp_type]


def write_sources(
    folder: Path, name: str, namespace: str, cpp: str, cuda: str | None, schemas: Mapping[str, str]
) -> list[Path]:
    """Write the author's texts and their registration; returns the files to compile."""
    text, unit, device = (folder / file for file in (f"{name}.cpp", "unit.cpp", f"{name}.cu"))
    text.write_text(cpp)
    unit.write_text(translation_unit(text, namespace, schemas, bool(cuda)))
    if not cuda:
        return [unit]
    device.write_text(f'{PRELUDE}#line 1 "{device}"\n{cuda}\n')
    return [unit, device]


def translation_unit(text: Path, namespace: str, schemas: Mapping[str, str], cuda: bool = False) -> str:
    """The source to compile: the author's text, with its own line numbers, and the registration of its functions.

    Functions are registered for the devices they are written for, so that a tensor on another device runs the
    reference of a record, or raises an error. A function without Tensor arguments is registered for all devices.
    """
    definitions = "\n".join(f'  m.def(R"schema({function}{schema})schema");' for function, schema in schemas.items())
    registrations = [f"STABLE_TORCH_LIBRARY_FRAGMENT({namespace}, m) {{\n{definitions}\n}}\n"]
    with_tensors = [function for function, schema in schemas.items() if "Tensor" in schema.partition("->")[0]]
    devices = ["CPU", *(["CUDA"] if cuda else [])]
    kernels = dict.fromkeys(devices, with_tensors)
    kernels["CompositeExplicitAutograd"] = [function for function in schemas if function not in with_tensors]
    for key, functions in kernels.items():
        lines = "\n".join(f'  m.impl("{function}", TORCH_BOX(&{function}));' for function in functions)
        registrations.append(f"STABLE_TORCH_LIBRARY_IMPL({namespace}, {key}, m) {{\n{lines}\n}}\n")
    return f'{PRELUDE}#line 1 "{text}"\n{text.read_text()}\n{"".join(registrations)}'
