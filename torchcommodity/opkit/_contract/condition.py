"""How much rounding an operator may show: what its result changes if its input is rounded."""

import torch
from torch import Tensor

from torchcommodity.opkit._contract.case import Case, Tensors


def rounding_noise(case: Case, relative: float) -> Tensors:
    """For each output, how far it moves if every input element moves by `relative`, at random up or down, twice.

    A result that is sensitive to its input, as a difference of prices or a chaotic map, has no more correct digits
    than its rounded input allows, however well it is computed.
    """
    with torch.no_grad():
        base = case.call()
        moved = [_call_moved(case, relative, seed) for seed in (0, 1)]
    return tuple(_largest_change(y, [outputs[i] for outputs in moved]) for i, y in enumerate(base))


def _call_moved(case: Case, relative: float, seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)

    def move(x: Tensor) -> Tensor:
        if not x.is_floating_point():
            return x
        signs = torch.randint(2, x.shape, generator=generator).to(x) * 2 - 1
        return x * (1 + relative * signs)

    return case.map_tensors(move).call()


def _largest_change(y: Tensor, moved: list[Tensor]) -> Tensor:
    """At least half of the largest change of all elements: neighbours share their intermediate results."""
    if not y.is_floating_point():
        return torch.zeros(y.shape, dtype=torch.double)
    changes = torch.stack([(other - y).abs().double().nan_to_num(0.0) for other in moved]).amax(0)
    return changes.clamp(min=changes.max().item() / 2) if changes.numel() else changes
