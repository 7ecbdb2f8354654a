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
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")  # `use_deterministic_algorithms` would import Inductor, for seconds
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


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
