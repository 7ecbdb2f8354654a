"""Strides: transposed, strided and expanded inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, Tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.determinism import try_gradients
from torch_opkit._contract.values import VALUES
from torch_opkit._op import Op

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x,
    "permuted": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 2 else x,
    "strided": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "batch-expanded": lambda x: x[:1].expand(x.shape) if x.dim() > 2 else x,
    "row-expanded": lambda x: x[..., :1, :].expand(x.shape) if x.dim() > 1 else x,
    "column-expanded": lambda x: x[..., :1].expand(x.shape) if x.dim() else x,
}
# All strides are zero, as those of the gradient of a sum; as inputs, many operators are degenerate there.
OF_GRADIENTS = {
    **LAYOUTS,
    "scalar-expanded": lambda x: x.flatten()[0].expand(x.shape) if x.dim() > 1 and x.numel() else x,
}


def changed_layouts(
    tensors: Sequence[Any], layouts: Mapping[str, Callable[[Tensor], Tensor]]
) -> Iterator[tuple[str, list[Any]]]:
    """Each layout with the tensors in it, of those that change a tensor."""
    for name, change in layouts.items():
        changed = [change(x) if isinstance(x, Tensor) else x for x in tensors]
        if any(x is not y for x, y in zip(changed, tensors)):
            yield name, changed


@register(
    "The kernel assumes contiguous memory. Call `.contiguous()` on every argument, or use its strides.",
    depends_on=VALUES,
)
def strides(case: Case) -> None:
    """Transposed, strided and expanded inputs give the result of contiguous inputs, forward and backward."""
    for name, tensors in changed_layouts(case.tensors, LAYOUTS):
        strided = case.with_tensors(tensors)
        contiguous = strided.map_tensors(torch.Tensor.contiguous)
        try:
            expected = contiguous.call()
        except Exception:  # other values than the sample's, which the operator refuses
            continue
        moved = contiguous.map_tensors(_move)
        _assert_same(strided.call(), expected, moved.call, f"result for {name} input", case)
        if case.op.backward and case.float_indices and try_gradients(contiguous) is not None:
            label = f"gradient for {name} input"
            _assert_same(strided.gradients(), contiguous.gradients(), moved.gradients, label, case)


def _assert_same(actual: Tensors, expected: Tensors, move: Callable[[], Tensors], label: str, case: Case) -> None:
    """Equal up to rounding: equal rows may make a deviation zero, by which a foreign operator divides."""
    try:
        assert_close(actual, expected, 1e-12, label)
    except AssertionError:
        if isinstance(case.op, Op) or not _within_rounding(actual, expected, move()):
            raise


def _move(x: Tensor) -> Tensor:
    """Each number moved by some roundings, at random up or down."""
    if not x.is_floating_point():
        return x
    signs = torch.randint(2, x.shape, generator=torch.Generator().manual_seed(0)).to(x) * 2 - 1
    return x * (1 + 1e-14 * signs)


def _within_rounding(actual: Tensors, expected: Tensors, moved: Tensors) -> bool:
    """Whether results differ no more than those for inputs that are moved by a few roundings."""
    for x, y, z in zip(actual, expected, moved, strict=True):
        if x.shape != y.shape or x.dtype != y.dtype or not y.is_floating_point():
            return False
        comparable = y.isfinite() & z.isfinite()
        noise = (z - y)[comparable].abs().max() if comparable.any() else torch.zeros(())
        if not bool(((x - y)[comparable].abs() <= noise).all()):
            return False
    return True
