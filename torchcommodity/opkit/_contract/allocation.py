"""What new memory holds: NaN, or numbers, so that an element that is never written shows."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from torchcommodity.opkit._contract.case import Tensors

M_PERTURB = -6  # option of glibc's mallopt: the byte pattern of newly allocated memory


@contextmanager
def fill_nan(_: Tensors = ()) -> Iterator[None]:
    """New memory is NaN, or the largest integer."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


@contextmanager
def fill_numbers(outputs: Tensors) -> Iterator[None]:
    """Fill with numbers, which reveal an unwritten warm-up row: 32.5 in float64, 3.00 in float32, 2.0 in float16."""
    allocator = ctypes.CDLL(None) if os.name == "posix" else None
    mallopt = getattr(allocator, "mallopt", None)
    if mallopt:
        mallopt(M_PERTURB, 0x40 ^ 0xFF)
    blocks = [torch.full_like(y, 7) for y in outputs for _ in range(32)]
    del blocks  # without glibc: allocators reuse first what was freed last
    try:
        yield
    finally:
        if mallopt:
            mallopt(M_PERTURB, 0)
