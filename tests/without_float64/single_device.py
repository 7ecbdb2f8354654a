"""The device "single": it has no float64 and no kernels of this library, as Apple's GPUs have not.

Its tensors live in CPU memory, and PyTorch's kernels for the CPU compute on them; whatever gives float64 on the device
is refused with the message of MPS, and so is a CPU tensor among its tensors. `CALLS` collects PyTorch's operators that
ran on the device. Import it in a process of its own: a backend can be registered only once in a process, and every
later test would see it.
"""

from typing import Any

import torch
from mps_kernels import KERNELS, has_mps_kernel
from torch import Tensor
from torch.utils import backend_registration

from torch_opkit import _widest

NAME = "single"
REFUSAL = "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64"
CPU_ARGUMENTS = {
    "aten::_to_copy",
    "aten::copy_",
    "aten::index.Tensor",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
}
CALLS = set[Any]()

backend_registration._setup_privateuseone_for_python_backend(NAME)
torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(data, device="single") as a copy of a CPU tensor
DEVICE = torch.device(NAME, 0)
_widest.WITHOUT_FLOAT64.add(NAME)


class SingleTensor(Tensor):
    """A tensor of the device, over a CPU tensor with its values."""

    @staticmethod
    def __new__(cls, values: Tensor) -> "SingleTensor":
        if values.dtype in (torch.float64, torch.complex128):
            raise TypeError(REFUSAL)
        return Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=DEVICE,
        )

    def __init__(self, values: Tensor) -> None:
        self.values_ = values

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    def __repr__(self) -> str:
        return f"{self.values_!r} on {NAME}"

    def tolist(self) -> Any:  # torch refuses it for tensor subclasses
        return self.values_.tolist()


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    if func.namespace == "commodity":
        return _reference(func)(*args, **kwargs)
    CALLS.add(func)
    values = [*args, *kwargs.values()]
    _check_devices(func, values)
    outputs = KERNELS.get(func, func)(*map(_to_cpu, args), **{name: _to_cpu(x) for name, x in kwargs.items()})
    if any(type(x) is torch.device and x.type == "cpu" for x in values):
        _check_cast(outputs, args[0])
        return outputs
    if func is torch.ops.aten.copy_.default and not isinstance(args[0], SingleTensor):
        _check_cast(args[0], args[1])
        return args[0]
    return _to_device(outputs)


def _check_cast(to: Any, x: Any) -> None:
    """A copy to the CPU casts on the device: `x.cpu().double()`, not `x.to("cpu", torch.float64)`."""
    if isinstance(x, SingleTensor) and to.dtype == torch.float64:
        raise TypeError(REFUSAL)


def operators_without_mps_kernel() -> list[str]:
    """PyTorch's operators that ran on the device and that MPS does not have."""
    names = {func.name().removeprefix("aten::") for func in CALLS - KERNELS.keys()}
    return sorted(name for name in names if not has_mps_kernel(name))


def _reference(func: Any) -> Any:
    from torch_opkit import OPERATORS

    return OPERATORS[func._schema.name].reference


def _check_devices(func: Any, values: list[Any]) -> None:
    """A CPU tensor with axes beside one of the device is an error, but for copies and index tensors."""
    leaves = [y for x in values for y in (x if isinstance(x, list | tuple) else (x,))]
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    strangers = [x for x in tensors if type(x) is not SingleTensor and x.dim()]
    if strangers and len(strangers) < len(tensors) and func.name() not in CPU_ARGUMENTS:
        raise RuntimeError(f"{func}: expected all tensors on the same device; got cpu and {NAME}")


def _to_cpu(x: Any) -> Any:  # without `tree_map`, which would take most of the time
    if type(x) is SingleTensor:
        return x.values_
    if isinstance(x, list | tuple):
        return [_to_cpu(y) for y in x]
    return torch.device("cpu") if type(x) is torch.device and x.type == NAME else x


def _to_device(x: Any) -> Any:
    if type(x) is Tensor:
        return SingleTensor(x)
    return type(x)(map(_to_device, x)) if isinstance(x, list | tuple) else x


_FALLBACK = torch.library.Library("_", "IMPL")
_FALLBACK.fallback(lambda func, *args, **kwargs: _run(func, args, kwargs), "PrivateUse1")
_FACTORIES = torch.library.Library("aten", "IMPL")
for _factory in (torch.ops.aten.empty.memory_format, torch.ops.aten.empty_strided.default):
    _FACTORIES.impl(_factory, lambda *a, _f=_factory, **k: _run(_f, a, k), "PrivateUse1")
