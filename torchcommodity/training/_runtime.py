"""Device, precision, processes and threads of training, with Lightning Fabric."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from torch_opkit.arguments import current_operation
from torchcommodity.training._device import resolve_device

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Precision = Literal["32-true", "bf16-mixed", "16-mixed"]
MatmulPrecision = Literal["highest", "high", "medium"]


def make_fabric(device: str, precision: Precision, tensorboard: Path | None = None) -> "Fabric":
    """Launch Fabric with one device per process, and with the processes of torchrun, if any.

    Raises:
        ValueError: the device is not available.
    """
    from lightning_fabric import Fabric  # slow to import
    from lightning_fabric.loggers.tensorboard import TensorBoardLogger
    from lightning_fabric.plugins import MixedPrecision

    torchrun = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    local_processes = int(os.environ["LOCAL_WORLD_SIZE"]) if torchrun else 1
    target = fabric_device(device, local_processes if torchrun else None)
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)  # silences its startup messages
    fabric = Fabric(
        **target,
        num_nodes=int(os.environ["WORLD_SIZE"]) // local_processes if torchrun else 1,
        strategy="ddp" if torchrun else "auto",
        plugins=None if precision == "32-true" else MixedPrecision(precision, target["accelerator"]),
        loggers=None if tensorboard is None else TensorBoardLogger(tensorboard, name="", version=""),
    )
    fabric.launch()
    return fabric


def fabric_device(device: str, processes: int | None = None) -> dict[str, Any]:
    """Arguments of Fabric for a device; under torchrun, for that of each of its processes on this machine.

    Raises:
        ValueError: the device is not available, or has an index under torchrun, which gives each process its own.

    Example:
        >>> fabric_device("cpu")
        {'accelerator': 'cpu', 'devices': 1}
    """
    accelerator, _, index = str(device).partition(":")
    target = resolve_device(device).type
    if not index or accelerator == "cpu":
        return {"accelerator": target, "devices": processes or 1}
    if processes is not None:
        rule = f"device must have no index under torchrun, such as {target}"
        raise ValueError(f"{current_operation()}: {rule}; got {device}")
    return {"accelerator": target, "devices": [int(index)]}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and BLAS to one thread, and restore torch's setting on exit; also a decorator.

    A training step takes microseconds; synchronizing threads costs more than it saves, by a factor of several hundred
    on a loaded machine. The last bits of a BLAS sum, and so of a fit by `arch` or scipy, depend on the number of
    threads.
    """
    import scipy.linalg  # noqa: F401  # the limit reaches a BLAS that is loaded, and scipy has its own

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def torch_settings(fabric: "Fabric", matmul_precision: MatmulPrecision, num_threads: int) -> Iterator[None]:
    """Set threads and matmul precision; restore them and the global random generators on exit."""
    previous_threads, previous_precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    cuda = [fabric.device.index or 0] if fabric.device.type == "cuda" else []
    torch.set_num_threads(num_threads)
    torch.set_float32_matmul_precision(matmul_precision)
    try:
        with torch.random.fork_rng(devices=cuda):
            yield
    finally:
        torch.set_num_threads(previous_threads)
        torch.set_float32_matmul_precision(previous_precision)


def all_reduce_gradients(fabric: "Fabric", parameters: list[nn.Parameter]) -> None:
    """Sum the gradients over all processes; a process without a sequence contributes zero.

    DistributedDataParallel is not used, because it averages micro-batches of unequal size, casts prices to half
    precision and waits for parameters without a gradient.
    """
    if fabric.world_size == 1:
        return
    used = torch.tensor([float(p.grad is not None) for p in parameters], device=fabric.device)
    for parameter, count in zip(parameters, fabric.all_reduce(used, reduce_op="sum").tolist()):  # type: ignore[union-attr]
        if count:
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = fabric.all_reduce(gradient, reduce_op="sum")  # type: ignore[assignment]
