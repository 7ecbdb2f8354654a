"""The operators with CUDA kernels, and their samples on the device."""

import torch
from gpu import DEVICE, REHEARSAL, to_gpu
from torch import Tensor

from torch_opkit import OPERATORS, Op
from torch_opkit._contract.case import Case, SkipCheck
from torch_opkit._contract.resize import resize
from torch_opkit._contract.runner import build_cases
from torchcommodity import ops


def native_operators() -> list[Op]:
    """By name; with a stand-in for the device, all with a native kernel for the CPU."""
    assert ops.NATIVE, ops.NATIVE.reason
    device = "cuda" if DEVICE.type == "cuda" else "cpu"
    own = [op for op in OPERATORS.values() if op.qualified_name.startswith("commodity::") and device in op.devices]
    few = [
        op for op in own if op.name in ("dcc_correlation", "ewm_mean", "garch_variance_backward", "rolling_quantile")
    ]
    return sorted(few if REHEARSAL else own, key=lambda op: op.name)


def cases_of(op: Op) -> list[Case]:
    """The samples of the record, on the CPU."""
    return list(build_cases(op))


def resized(case: Case, batch: int, rows: int, assets: int, dtype: torch.dtype) -> Case:
    """A sample in another size; as it is if its arguments fit no other size, or without a time axis."""
    try:
        larger = resize(case, batch=batch, rows=rows, assets=assets) if case.op.time else case
        larger.call()
    except (SkipCheck, ValueError, RuntimeError, TypeError):
        larger = case
    return larger.map_tensors(lambda x: x.to(dtype) if x.is_floating_point() else x)


def is_linear(case: Case) -> bool:
    """Whether inputs and outputs grow as the number of assets does: 70,000 of them do not fit into matrices."""
    if case.op.name == "rolling_correlation_backward":  # its sample computes matrices from weights
        return False
    sizes = [resized(case, 1, 12, assets, torch.float64) for assets in (40, 80)]
    small, large = (sum(x.numel() for x in (*c.inputs(), *c.call())) for c in sizes)
    return large < 3 * small


def on_gpu(case: Case) -> Case:
    return case.map_tensors(to_gpu)


def gradients(case: Case) -> tuple[Tensor, ...]:
    """Gradients of a scalar of all outputs, or none if the operator has no derivative."""
    leaves = [x.detach().clone().requires_grad_() for x in case.inputs()]
    outputs = [y for y in case.outputs(*leaves) if y.is_floating_point() and y.requires_grad]
    if not outputs:
        return ()
    loss = torch.stack([y.nan_to_num(0.0, 0.0, 0.0).double().sin().sum() for y in outputs]).sum()
    return torch.autograd.grad(loss, leaves, materialize_grads=True)


def shape_of(case: Case) -> str:
    return " ".join(str(tuple(x.shape)) for x in case.tensors if isinstance(x, Tensor)) or "no tensors"
