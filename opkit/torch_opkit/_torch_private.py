"""The private names of PyTorch that `Op` uses, all in one module.

PyTorch's own operators use them to support `torch.func`; there is no public way yet (pytorch#168393). `TESTED` lists
the versions that were tested. A version without one of these names raises ImportError at import.
"""

import re
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch

__all__ = [
    "SingleLevelFunction",
    "after_autograd",
    "after_versions",
    "allow_fallback",
    "allow_recording",
    "any_requires_grad",
    "assume_constant_result",
    "below_autograd",
    "below_versions",
    "correct_gradient_count",
    "decomposition_table",
    "fill_defaults",
    "find_schema",
    "forward_ad",
    "forward_mode_active",
    "is_batched",
    "is_tensor_like_type",
    "meta_table",
    "parse_schema",
    "recording_is_off",
    "single_level",
    "tangents_enabled",
    "transforms_active",
    "warn_untested",
    "warn_vmap_fallback",
]

TESTED = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
Function = TypeVar("Function", bound=Callable[..., Any])

try:
    from torch._C import _after_ADInplaceOrView_keyset as after_versions
    from torch._C import _after_autograd_keyset as after_autograd
    from torch._C import _any_requires_grad as any_requires_grad
    from torch._C import _are_functorch_transforms_active as transforms_active
    from torch._C import _AutoDispatchBelowADInplaceOrView as below_versions
    from torch._C import _AutoDispatchBelowAutograd as below_autograd
    from torch._C import _get_schema as get_schema
    from torch._C import _SetExcludeDispatchKeyGuard as exclude_key
    from torch._C import parse_schema
    from torch._C._functorch import (  # type: ignore[attr-defined]  # not in its stub
        _set_vmap_fallback_warning_enabled as warn_vmap_fallback,
    )
    from torch._C._functorch import is_batchedtensor as is_batched
    from torch._decomp import decomposition_table, meta_table
    from torch._functorch.autograd_function import (  # type: ignore[attr-defined]  # private, see above
        enable_single_level_autograd_function as single_level,
    )
    from torch._library.utils import fill_defaults, is_tensor_like_type
    from torch.autograd import forward_ad
    from torch.autograd.function import _SingleLevelFunction as SingleLevelFunction
except ImportError as missing:
    raise ImportError(
        f"torch_opkit: torch must be one of the tested versions {', '.join(TESTED)}; got {torch.__version__}, "
        f"without a private name that operators need ({missing}). Install one of these, or a newer torch-opkit."
    ) from missing


def find_schema(name: str) -> "torch.FunctionSchema | None":
    """The schema of the operator "namespace::name", or "namespace::name.overload"; None if nothing declares it."""
    try:
        return get_schema(*(name.split(".") if "." in name else (name, "")))
    except RuntimeError:
        return None


def forward_mode_active() -> bool:
    """Whether a level of `torch.autograd.forward_ad` is active."""
    return forward_ad._current_level >= 0


def tangents_enabled(enabled: bool) -> AbstractContextManager[None]:
    """Context manager that enables or disables forward-mode derivatives."""
    return cast("AbstractContextManager[None]", forward_ad._set_fwd_grad_enabled(enabled))


def assume_constant_result(function: Function) -> Function:
    """Let `torch.compile` call a plain function of no Tensors instead of tracing it, and keep what it returns.

    As `torch.compiler.assume_constant_result`, without its import of Dynamo, which takes seconds and, where Triton is
    installed, enables the GIL of a free-threaded Python.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def allow_fallback(name: str) -> None:
    """Let Inductor call the operator `name` directly, although it has a decomposition.

    With CI set in the environment, Inductor treats an unused decomposition as an error; ours are for ONNX only. If
    Inductor is not imported yet, there is nothing to do.
    """
    if lowering := sys.modules.get("torch._inductor.lowering"):
        lowering.FALLBACK_ALLOW_LIST.add(name)


def warn_untested() -> None:
    """Warn if torch is older than every tested version; newer ones are expected to work."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    oldest = tuple(int(part) for part in TESTED[0].split("."))
    if version < oldest:
        tested = ", ".join(TESTED)
        warnings.warn(f"torch_opkit is tested with torch {tested}; this is {torch.__version__}", stacklevel=2)


def recording_is_off() -> bool:
    """Whether this is a kernel below autograd, which does not record."""
    return bool(torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradFunctionality))


def allow_recording() -> AbstractContextManager[None]:
    """Context manager in which autograd records, in a kernel below autograd too."""
    if not recording_is_off():
        return nullcontext()
    return cast("AbstractContextManager[None]", exclude_key(torch._C.DispatchKey.AutogradFunctionality, False))


def correct_gradient_count(message: str) -> str:
    """PyTorch's message on a wrong number of gradients, without the argument of its own that a custom_op's node has."""
    if "GeneratedBackwardFor" not in message:
        return message
    counts = r"\(expected (\d+), got (\d+)\)"
    return re.sub(counts, lambda m: f"(expected {int(m[1]) - 1}, got {int(m[2]) - 1})", message)
