"""Recompile after a formula has changed.

`torch.compile` caches its results on disk, under a key that contains only the name of an operator: after a change of
`backward`, a new process would silently run the old gradient. The key includes a tag that users may set; ours is a
hash of the files that contain the formulas.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.compiler.config as compiler

_HASHES: dict[str, str] = globals().get("_HASHES", {})  # survives a reload, as the registry does
_ORIGINAL_TAG: str = globals().get("_ORIGINAL_TAG", compiler.cache_key_tag)


def update_cache_tag(operator: str, *formulas: Callable[..., Any] | None) -> None:
    """Include the formulas of an operator, by the content of their files, in the key of torch's compile cache."""
    content = hashlib.sha256()
    for formula in formulas:
        code = getattr(formula, "__code__", None)
        if code:
            file = Path(code.co_filename)
            content.update(file.read_bytes() if file.is_file() else code.co_code + repr(code.co_consts).encode())
    _HASHES[operator] = content.hexdigest()
    hashes = "".join(f"{name}{_HASHES[name]}" for name in sorted(_HASHES))
    compiler.cache_key_tag = f"{_ORIGINAL_TAG}torchcommodity-{hashlib.sha256(hashes.encode()).hexdigest()}"
