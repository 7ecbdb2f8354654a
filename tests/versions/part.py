"""What every part needs inside an environment: where it writes, and the operators of the wheel."""

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = Path(os.environ["TORCHCOMMODITY_VERSIONS_OUT"])
TORCH = os.environ["TORCHCOMMODITY_VERSIONS_TORCH"]  # such as 2.15
ARTIFACTS = OUT / "artifacts"


def run(function: Callable[[], dict[str, Any]]) -> None:
    """Write what a part returns, with the warnings that this library raised meanwhile, into the working folder."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        result = function()
    ours = {f"{w.category.__name__}: {w.message}" for w in raised if "torchcommodity" in Path(w.filename).parts}
    Path("result.json").write_text(json.dumps({**result, "warnings": sorted(ours)}))


def native_operators() -> list[Any]:
    """The operators of the wheel; RuntimeError if one of them has no native kernel, or they are those of a checkout."""
    import torch_opkit as opkit
    import torchcommodity
    from torchcommodity import ops

    if not Path(torchcommodity.__file__).is_relative_to(sys.prefix):
        raise RuntimeError(f"torchcommodity must be that of the wheel; got {torchcommodity.__file__}")
    if not ops.NATIVE:
        raise RuntimeError(f"the native library must load; got {ops.NATIVE.reason}")
    operators = [op for name, op in sorted(opkit.OPERATORS.items()) if name.startswith("commodity::")]
    if missing := [op.name for op in operators if "cpu" not in op.devices]:
        raise RuntimeError(f"operators must be native; got {', '.join(missing)} without a kernel")
    return operators
