"""Stated samples in double precision: users have them in float32, and finite differences need float64."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._cases import Sample
from torchcommodity.opkit._contract.invocation import run_once

WIDER = dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64)
WIDER[torch.complex64] = torch.complex128


def widen_samples(samples: Sequence[Sample], function: Callable[..., Any]) -> tuple[Sample, ...]:
    """The samples in float64 and complex128; as they are, if the operator runs on the first one only so."""
    shared: dict[int, Tensor] = {}  # samples that differ in a setting only have the same tensors, and still do
    wide = tuple(_widen(sample, shared) for sample in samples)
    if any(map(_is_narrow, samples[0].tensors)) and not _runs(function, wide[0]) and _runs(function, samples[0]):
        return tuple(samples)
    return wide


def _widen(sample: Sample, shared: dict[int, Tensor]) -> Sample:
    tensors = list(sample.tensors)
    for i, x in enumerate(tensors):
        if isinstance(x, Tensor) and x.dtype in WIDER:
            tensors[i] = shared.setdefault(id(x), x.detach().to(WIDER[x.dtype]))
    return Sample(*tensors, **sample.settings)


def _is_narrow(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype in WIDER


def _runs(function: Callable[..., Any], sample: Sample) -> bool:
    try:
        run_once(function, sample)
    except Exception:
        return False
    return True
