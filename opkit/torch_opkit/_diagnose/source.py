"""What the user's source says: where an attribute is assigned, which names `forward` uses, what is under `no_grad`."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any

from torch import nn

from torch_opkit._diagnose.locations import ENTRY, Place, is_library

CONSTRUCTORS = {"__init__", "__post_init__", "__setstate__"}
REGISTERING = {"register_parameter", "register_buffer", "add_module", "setattr"}
DISABLING = {"no_grad", "inference_mode", "set_grad_enabled"}


def assignment(module: nn.Module, attribute: str) -> str:
    """The line that assigns `self.attribute`, else the first line of the class; empty for a class of PyTorch."""
    line = _first(module, lambda node: _assigns(node, attribute), lambda name: True)
    return line or next((f"{file}:{tree.lineno}" for file, tree in _classes(module)), "")


def attribute_line(cls: type, attribute: str) -> str:
    """The line of a class that assigns an attribute of that name, as `ctx.name = ...`; empty without one."""
    file, tree = parse(cls)
    lines = (node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and _assigns(node, attribute))
    return next((f"{file}:{line}" for line in lines), "")


def state_assignment(module: nn.Module, attribute: str) -> str:
    """The line outside the constructor that assigns `self.attribute` or calls one of its methods, as `append`."""

    def changes(node: ast.AST) -> bool:
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.value
        return _assigns(node, attribute) or (isinstance(called, ast.Attribute) and called.attr == attribute)

    return _first(module, changes, lambda name: name not in CONSTRUCTORS) or assignment(module, attribute)


def replacement(module: nn.Module, layer: str, attribute: str, *, on_purpose: bool) -> str:
    """The line that assigns `self.layer.attribute`; one that says `requires_grad=False` only if `on_purpose`."""

    def replaces(node: ast.AST) -> bool:
        targets = node.targets if isinstance(node, ast.Assign) else []
        owners = [t.value for t in targets if isinstance(t, ast.Attribute) and t.attr == attribute]
        of_layer = any(isinstance(owner, ast.Attribute) and owner.attr == layer for owner in owners)
        says_false = any(isinstance(part, ast.Constant) and part.value is False for part in ast.walk(node))
        return of_layer and (on_purpose or not says_false)

    return _first(module, replaces, lambda name: True)


def call_line(code: CodeType | None, name: str) -> str:
    """The line of a function that calls `name`; empty without one."""
    file, tree = parse(code)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return next((f"{file}:{node.lineno}" for node in calls if name in names(node.func)), "")


def names_in_use(modules: Iterable[nn.Module], functions: Iterable[Any]) -> set[str]:
    """Every name in `forward`, in the methods that it names in turn, and in the given functions."""
    trees = [tree for cls in dict.fromkeys(map(type, modules)) for _, tree in _classes_of(cls)]
    definitions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    methods = [(node.name, names(node)) for node in definitions if node.name not in CONSTRUCTORS]
    used, known = {"forward"}, set[str]()
    for function in functions:
        source: Any = function if inspect.isroutine(function) else type(function)
        used |= names(parse(source)[1])
    while used != known:
        known = set(used)
        used = used.union(*(uses for name, uses in methods if name in known))
    return used


def names(tree: ast.AST) -> set[str]:
    """Names and attributes in a syntax tree."""
    nodes = list(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def _first(module: nn.Module, matches: Callable[[ast.AST], bool], in_method: Callable[[str], bool]) -> str:
    for file, tree in _classes(module):
        methods = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and in_method(node.name))
        for node in (node for method in methods for node in ast.walk(method)):
            if matches(node):
                return f"{file}:{node.lineno}"  # type: ignore[attr-defined]  # statements and calls have a line
    return ""


def _assigns(node: ast.AST, attribute: str) -> bool:
    """`self.attribute = ...`, also in a tuple or with an index, and `self.register_parameter("attribute", ...)`."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        written = (leaf for target in targets for leaf in _targets(target))
        return any(isinstance(leaf, ast.Attribute) and leaf.attr == attribute for leaf in written)
    if not (isinstance(node, ast.Call) and names(node.func) & REGISTERING):
        return False
    return any(isinstance(argument, ast.Constant) and argument.value == attribute for argument in node.args)


def _targets(target: ast.AST) -> Iterator[ast.AST]:
    if isinstance(target, ast.Tuple | ast.List):
        yield from (leaf for element in target.elts for leaf in _targets(element))
    else:
        yield target.value if isinstance(target, ast.Subscript | ast.Starred) else target


def _classes(module: nn.Module) -> list[tuple[str, Any]]:
    cls: Any = type(module)
    return _classes_of(cls)


@cache
def _classes_of(cls: Any) -> list[tuple[str, Any]]:
    """File and syntax tree of a class and its bases outside PyTorch."""
    classes = [c for c in cls.__mro__ if c.__module__.partition(".")[0] not in {"torch", "builtins", "abc", "typing"}]
    parsed = (parse(c) for c in classes)
    return [(file, tree.body[0]) for file, tree in parsed if tree.body]


@cache
def parse(thing: Any) -> tuple[str, ast.Module]:
    """File and syntax tree, with the line numbers of the file; empty where there is no source."""
    try:
        lines, first = inspect.getsourcelines(thing)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return "", ast.Module([], [])
    ast.increment_lineno(tree, max(first, 1) - 1)
    return inspect.getsourcefile(thing) or "", tree


def class_place(node: object) -> Place | None:
    """Where an `autograd.Function` of the user is defined."""
    function = getattr(type(node), "_forward_cls", None)
    if function is None or function.__module__.partition(".")[0] == "torch":
        return None
    file, tree = parse(function)
    return Place(f"{file}:{tree.body[0].lineno}" if tree.body else "", function.__name__)


def place_without_grad(place: Place) -> Place:
    """The innermost frame that runs under a `no_grad` of its own, and not what that calls; else `place`."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename != ENTRY:
        code, line = frame.f_code, frame.f_lineno
        if not is_library(code.co_filename) and any(line in block for block in _blocks_without_grad(code)):
            return Place(f"{code.co_filename}:{line}", place.function, code, place.applied_at)
        frame = frame.f_back
    return place


@cache
def _blocks_without_grad(code: CodeType) -> list[range]:
    """Lines of a function that are in a `with torch.no_grad()`, or all of them if it is decorated."""
    blocks = []
    for node in ast.walk(parse(code)[1]):
        if isinstance(node, ast.With | ast.FunctionDef):
            expressions = (
                node.decorator_list if isinstance(node, ast.FunctionDef) else [i.context_expr for i in node.items]
            )
            if any(names(expression) & DISABLING for expression in expressions):
                blocks.append(range(node.body[0].lineno, (node.body[-1].end_lineno or node.body[-1].lineno) + 1))
    return blocks
