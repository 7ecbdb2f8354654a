"""The line under `no_grad`: that of the block or function that disables gradients, not of what it calls."""

import ast
import sys
from collections.abc import Iterable
from functools import cache
from types import CodeType, FrameType

from torchcommodity.opkit._diagnose.locations import ENTRY, Place, is_library
from torchcommodity.opkit._diagnose.source import names, parse

DISABLING = {"no_grad", "inference_mode", "set_grad_enabled"}


def place_without_grad(place: Place) -> Place:
    """The innermost frame that runs under a `no_grad` of its own; `place` if its source does not show one."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename != ENTRY:
        code, line = frame.f_code, frame.f_lineno
        if not is_library(code.co_filename) and any(line in block for block in _blocks(code)):
            return Place(f"{code.co_filename}:{line}", place.function, code, place.applied_at)
        frame = frame.f_back
    return place


@cache
def _blocks(code: CodeType) -> list[range]:
    """Lines of a function that are in a `with torch.no_grad()`, or all of them if it is decorated."""
    nodes = list(ast.walk(parse(code)[1]))
    blocks = [n.body for n in nodes if isinstance(n, ast.With) and _disable(item.context_expr for item in n.items)]
    blocks += [n.body for n in nodes if isinstance(n, ast.FunctionDef) and _disable(n.decorator_list)]
    return [range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1) for body in blocks]


def _disable(expressions: Iterable[ast.AST]) -> bool:
    return any(names(expression) & DISABLING for expression in expressions)
