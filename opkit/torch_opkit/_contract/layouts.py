"""Strides: transposed, strided and expanded inputs."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_opkit._contract.case import Case
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.determinism import try_gradients
from torch_opkit._contract.values import VALUES

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x,
    "permuted": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 1 else x,
    "strided": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "batch-expanded": lambda x: x[:1].expand(x.shape) if x.dim() > 2 else x,
    "column-expanded": lambda x: x[..., :1].expand(x.shape) if x.dim() else x,
}


@register(
    "The kernel assumes contiguous memory. Call `.contiguous()` on every argument, or use its strides.",
    depends_on=VALUES,
)
def strides(case: Case) -> None:
    """Transposed, strided and expanded inputs give the result of contiguous inputs, forward and backward."""
    for name, change in LAYOUTS.items():
        strided = case.map_tensors(change)
        contiguous = strided.map_tensors(torch.Tensor.contiguous)
        try:
            expected = contiguous.call()
        except Exception:  # other values than the sample's, which the operator refuses
            continue
        assert_close(strided.call(), expected, 1e-12, f"result for {name} input")
        gradients = try_gradients(contiguous) if case.op.backward and case.float_indices else None
        if gradients is not None:
            assert_close(strided.gradients(), contiguous.gradients(), 1e-12, f"gradient for {name} input")
