"""griffe extension: shows the shapes that stand as comments in signatures, and the section titles of this library."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe

COMMENT = re.compile(r"  # (?!type:|noqa|pragma)(.+)$")
KEYWORDS = re.compile(r"^    \*\*\w+: (.*(?:\n {8,}.*)*)\n?", re.MULTILINE)
PARAMETER = re.compile(r"^\s+\*{0,2}(\w+)\b.*[,(]  # ")
ROWS = re.compile(r"^(?:Args|Attributes):\n((?:    .*(?:\n|$))+)", re.MULTILINE)
SHARED = re.compile(r"^    (\w+(?:, \w+)+): (.*(?:\n {8,}.*)*)\n?", re.MULTILINE)  # one text for several parameters
TABLES = {"torchcommodity.ops.indicators._candlesticks", "torchcommodity.ops.indicators._math"}  # of operators
TITLES = re.compile(r"^(Shape|References?|Source|Devices|Modes):[ \n]", re.MULTILINE)


class ShapeComments(griffe.Extension):
    """Move comments of signatures and fields into Google-style sections."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring:
            _unpack_keywords(func)
            text = _add_shapes(_sections(func.docstring.value), _commented_lines(func))
            func.docstring.value = _state_returned_type(text, str(func.returns))

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring:
            cls.docstring.value = _sections(cls.docstring.value) + _attributes(cls)
            bases = {str(base) for one in (cls, *cls.resolved_bases) for base in one.bases}
            if not bases.isdisjoint({"NamedTuple", "TypedDict"}):  # griffe sees no signature
                cls.docstring.value = cls.docstring.value.replace("Args:\n", "Attributes:\n", 1)
        elif attributes := _attributes(cls):
            cls.docstring = griffe.Docstring(attributes.strip(), parent=cls, parser="google")

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show an operator that is a row of a table as the function that it is called as: it is made when imported."""
        if attr.module.path in TABLES:
            operator = getattr(importlib.import_module(attr.module.path), attr.name)
            if callable(operator):
                attr.parent.set_member(attr.name, _as_function(attr, operator))

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        if "_MODULES" in mod.members:  # a package that imports its names on first use, and makes `__all__` of them
            mod.exports = list(importlib.import_module(mod.path).__all__)
        if mod.docstring:
            mod.docstring.value = _sections(mod.docstring.value)


def _as_function(attr: griffe.Attribute, operator: Any) -> griffe.Function:
    signature = inspect.signature(operator)
    parameters = [
        griffe.Parameter(
            p.name,
            annotation=p.annotation.__name__,
            kind=griffe.ParameterKind.positional_or_keyword,
            default=None if p.default is p.empty else repr(p.default),
        )
        for p in signature.parameters.values()
    ]
    returns = signature.return_annotation.__name__
    func = griffe.Function(attr.name, parameters=griffe.Parameters(*parameters), returns=returns, lineno=attr.lineno)
    func.docstring = griffe.Docstring(_sections(inspect.getdoc(operator)), parent=func, parser="google")
    return func


def _unpack_keywords(func: griffe.Function) -> None:
    """Show the keywords of `**arguments: Unpack[...]`, and their text in the docstrings of that class and its bases."""
    rest = next((parameter for parameter in func.parameters if str(parameter.annotation).startswith("Unpack[")), None)
    if rest is None:
        return
    bundle = func.modules_collection[rest.annotation.slice.canonical_path]
    del func.parameters[rest.name]
    for name, attribute in bundle.attributes.items():
        kind = griffe.ParameterKind.keyword_only
        func.parameters.add(griffe.Parameter(name, annotation=attribute.annotation, kind=kind, default="None"))
    rows = "".join(ROWS.search(cls.docstring.value)[1] + "\n" for cls in (*reversed(bundle.mro()), bundle))
    text, note = func.docstring.value, KEYWORDS.search(func.docstring.value)
    intro = f"{', '.join(f'`{name}`' for name in bundle.attributes)}: {' '.join(note[1].split())}\n\n"
    func.docstring.value = text.replace(note[0], rows).replace("Args:\n", f"{intro}Args:\n", 1)


def _attributes(cls: griffe.Class) -> str:
    """Section Attributes from the comments of a dataclass's fields."""
    comments = {name: COMMENT.search(attr.lines[-1]) for name, attr in cls.attributes.items() if attr.lines}
    rows = [f"    {name}: {_code(match[1])}" for name, match in comments.items() if match and name[0] != "_"]
    return "\n\nAttributes:\n" + "\n".join(rows) if rows else ""


def _commented_lines(func: griffe.Function) -> list[str]:
    """Lines of a signature that end in a comment."""
    lines = func.lines
    end = next((row for row, line in enumerate(lines) if line.lstrip().startswith(('"""', 'r"""'))), len(lines))
    return [line for line in lines[:end] if COMMENT.search(line)]


def _sections(text: str) -> str:
    """Docstring with sections that griffe knows: examples are `Examples:`, shapes and references are paragraphs."""
    text = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
    text = SHARED.sub(lambda match: "".join(f"    {name}: {match[2]}\n" for name in match[1].split(", ")), text)
    text, *doctest = re.split(r"^(?=>>> )", text, maxsplit=1, flags=re.MULTILINE)
    if doctest:
        text += "Examples:\n" + re.sub(r"^(?=.)", "    ", doctest[0], flags=re.MULTILINE)
    return "\n".join(_paragraphs(text.splitlines()))


def _paragraphs(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if title := TITLES.match(line + "\n"):
            inside = True
            yield f"**{title[1]}.** {line[title.end() - 1 :].strip()}".rstrip()
        elif inside and line.startswith("    "):
            yield line[4:]
        else:
            inside = False
            yield line


def _add_shapes(text: str, signature: list[str]) -> str:
    for line in signature:
        shape = _code(COMMENT.search(line)[1])  # type: ignore[index]
        if line.lstrip().startswith(("def ", "async def ")):  # a signature on one line: input -> output
            summary, _, rest = text.partition("\n\n")
            shape = shape if "->" in shape or shape[0] != "`" else f"`-> {shape[1:]}"
            text = f"{summary}\n\n{shape}\n\n{rest}"
        elif line.lstrip().startswith(") ->"):
            text = _insert(text, r"^Returns:\n    ", shape) or f"{text}\n\nReturns:\n    {shape}"
        elif name := PARAMETER.match(line):
            text = _insert(text, rf"^    {name[1]}: ", shape) or text
    return text


def _state_returned_type(text: str, returns: str) -> str:
    """Text with the type before what is returned where griffe would take a sentence up to a colon for the type."""
    sentence = r"^Returns:\n    (?=[^:\n]* [^:\n]*:(?: |$))"
    return re.sub(sentence, lambda match: f"{match[0]}{returns}: ", text, flags=re.MULTILINE)


def _insert(text: str, pattern: str, shape: str) -> str | None:
    """Text with the shape after the first match, or None without a match."""
    match = re.search(pattern, text, flags=re.MULTILINE)
    return f"{text[: match.end()]}{shape} {text[match.end() :]}" if match else None


def _code(comment: str) -> str:
    """A comment with its leading shape as code: "(..., T, N) float64" gives "`(..., T, N)` float64"."""
    shape = re.match(r"\([^)]*\)(?: -> \([^)]*\))*(?= |,|;|$)", comment)
    return f"`{shape[0]}`{comment[shape.end() :]}" if shape else comment
