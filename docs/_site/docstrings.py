"""Our docstrings for mkdocstrings: shapes, which stand as comments in signatures, come to the page."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import griffe

COMMENT = re.compile(r"  # (?!type:|noqa|pragma)(.+)$")
PARAMETER = re.compile(r"^\s+\*{0,2}(\w+)\b.*[,(]  # ")
TITLES = re.compile(r"^(Shape|References?|Source|Devices|Modes):[ \n]", re.MULTILINE)


class House(griffe.Extension):
    """Puts comments of signatures and fields where Google's style has them, and names sections as griffe does."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring:
            func.docstring.value = _with_shapes(_sections(func.docstring.value), _signature(func))

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring:
            cls.docstring.value = _sections(cls.docstring.value) + _fields(cls)
        elif fields := _fields(cls):
            cls.docstring = griffe.Docstring(fields.strip(), parent=cls, parser="google")

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """`data.load` is the function of `data/load.py`, for Python; griffe has kept the module of that name."""
        modules = list(_modules(pkg))
        for alias in (member for module in modules for member in module.members.values() if member.is_alias):
            with suppress(griffe.AliasResolutionError):
                alias.resolve_target()  # while every module is still where its path says
        exported = [(module, *pair) for module in modules for pair in _exported(pkg, module)]
        for room, name, meant in exported:
            if not meant.is_module:
                room.members[name] = griffe.Alias(name, meant, parent=room)

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        if mod.docstring:
            mod.docstring.value = _sections(mod.docstring.value)


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for inner in module.members.values():
        if not inner.is_alias and inner.is_module:
            yield from _modules(inner)


def _exported(pkg: griffe.Module, room: griffe.Module) -> Iterator[tuple[str, griffe.Object]]:
    for name in map(str, room.exports or ()):
        with suppress(KeyError):  # what another package made is documented there
            yield name, _found(pkg, room.imports[name])


def _found(pkg: griffe.Module, path: str) -> griffe.Object:
    """What Python finds at a path: an import goes before a module of the same name."""
    module, _, name = path.removeprefix(f"{pkg.name}.").rpartition(".")
    room = pkg[module] if module else pkg
    imported = room.imports.get(name, path) if room.is_module else path
    return room.members[name] if imported == path else _found(pkg, imported)


def _fields(cls: griffe.Class) -> str:
    """What the comments say of the fields of a record."""
    lines = {name: COMMENT.search(attr.lines[-1]) for name, attr in cls.attributes.items() if attr.lines}
    said = [f"    {name}: {_code(found[1])}" for name, found in lines.items() if found and name[0] != "_"]
    return "\n\nAttributes:\n" + "\n".join(said) if said else ""


def _signature(func: griffe.Function) -> list[str]:
    lines = func.lines
    end = next((row for row, line in enumerate(lines) if line.lstrip().startswith(('"""', 'r"""'))), len(lines))
    return [line for line in lines[:end] if COMMENT.search(line)]


def _sections(text: str) -> str:
    """`Example:` is a section; so is a doctest that stands alone. Shape and references are paragraphs."""
    text = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
    text, *doctest = re.split(r"^(?=>>> )", text, maxsplit=1, flags=re.MULTILINE)
    if doctest:
        text += "Examples:\n" + re.sub(r"^(?=.)", "    ", doctest[0], flags=re.MULTILINE)
    return "\n".join(_paragraphs(text.splitlines()))


def _paragraphs(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if found := TITLES.match(line + "\n"):
            inside = True
            yield f"**{found[1]}.** {line[found.end() - 1 :].strip()}".rstrip()
        elif inside and line.startswith("    "):
            yield line[4:]
        else:
            inside = False
            yield line


def _with_shapes(text: str, signature: list[str]) -> str:
    for line in signature:
        shape = _code(COMMENT.search(line)[1])  # type: ignore[index]
        if line.lstrip().startswith(("def ", "async def ")):  # one line: what goes in and what comes out
            summary, _, rest = text.partition("\n\n")
            shape = shape if "->" in shape or shape[0] != "`" else f"`-> {shape[1:]}"
            text = f"{summary}\n\n{shape}\n\n{rest}"
        elif line.lstrip().startswith(") ->"):
            text = _before(text, r"^Returns:\n    ", shape) or f"{text}\n\nReturns:\n    {shape}"
        elif name := PARAMETER.match(line):
            text = _before(text, rf"^    {name[1]}: ", shape) or text
    return text


def _before(text: str, place: str, shape: str) -> str | None:
    found = re.search(place, text, flags=re.MULTILINE)
    return f"{text[: found.end()]}{shape} {text[found.end() :]}" if found else None


def _code(comment: str) -> str:
    """`(..., T, N) float64` as code up to the end of the shape, words as words."""
    shape = re.match(r"\([^)]*\)(?: -> \([^)]*\))*(?= |,|;|$)", comment)
    return f"`{shape[0]}`{comment[shape.end() :]}" if shape else comment
