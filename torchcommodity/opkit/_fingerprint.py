"""So that a formula that was changed is compiled anew.

`torch.compile` keeps what it compiled on disk, under a key that knows an operator by its name alone: after a change of
`backward` a new process would be given the old gradient, silently. The key has a place for a tag, and ours is made of
the files in which the formulas stand.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.compiler.config as compiler

_FORMULAS: dict[str, str] = globals().get("_FORMULAS", {})  # survives a reload, as the registry does
_OTHERS: str = globals().get("_OTHERS", compiler.cache_key_tag)


def remember(operator: str, *formulas: Callable[..., Any] | None) -> None:
    """Let the formulas of an operator, and what stands beside them in their files, decide what is taken from disk."""
    content = hashlib.sha256()
    for formula in formulas:
        code = getattr(formula, "__code__", None)
        if code:
            file = Path(code.co_filename)
            content.update(file.read_bytes() if file.is_file() else code.co_code + repr(code.co_consts).encode())
    _FORMULAS[operator] = content.hexdigest()
    whole = "".join(f"{name}{_FORMULAS[name]}" for name in sorted(_FORMULAS))
    compiler.cache_key_tag = f"{_OTHERS}torchcommodity-{hashlib.sha256(whole.encode()).hexdigest()}"
